"""SlimOneClassSVM: novelty detection on a budget of support vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.metaestimators import available_if

from ..goals import Novelty
from ..kernels import Array, Matrix
from ..parameters import estimator, parameter
from .base import KernelMachine, Labelled, fit_reporting
from .methods import learns_streams
from .streams import learn_batch


@estimator
class SlimOneClassSVM(OutlierMixin, KernelMachine):
    """Novelty detection by a one-class SVM with a budget of support vectors.

    Trains the exact one-class SVM, as `sklearn.svm.OneClassSVM` does, and shrinks it to a budget. A small model is fitted
    to the scores of the full one and judged by them.

    Attributes
    ----------
    offset_ : float
        decision_function = score_samples - offset_.
    support_vectors_, support_, dual_coef_, intercept_, coef_, n_support_, path_
        As in `SlimSVR`.
    n_kernel_evals_, n_iter_, status_, fit_status_, device_, shape_fit_, model_, goal_, n_features_in_, feature_names_in_
        As in `SlimSVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SlimOneClassSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> novelty = SlimOneClassSVM(budget=8, nu=0.1, gamma=0.5, random_state=0).fit(X[y == 0])
    >>> novelty.predict(X[y == 2][:3])
    array([-1, -1, -1])
    """

    _labels_are = "none"
    #: the one-class SVM has no C; reducers count their regularisation in units of 1 / C
    C: ClassVar[float] = 1.0

    _: KW_ONLY
    nu: float = parameter("nu")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> SlimOneClassSVM:
        """Train the full model and shrink it if a budget or tolerance is set.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows; the kernel matrix for kernel="precomputed".
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of weight 0 counts as absent.

        Returns
        -------
        self : SlimOneClassSVM
            The fitted estimator.
        """
        return fit_reporting(self, X, y, sample_weight)

    @available_if(learns_streams)
    def partial_fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> SlimOneClassSVM:
        """Learn from another batch of a stream, row by row in the order given; only with trainer="bsgd".

        The first call fixes the settings: its rows determine gamma="scale". After `fit`, a stream continues from the
        fitted model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows of the batch.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : SlimOneClassSVM
            The fitted estimator.
        """
        return learn_batch(self, X, y, sample_weight)

    def decision_function(self, X: Matrix) -> Array:
        """Return the signed distance of each row to the boundary; it is below 0 for novel rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        return self._read(X, lambda outputs: self.goal_.scores(outputs))

    def score_samples(self, X: Matrix) -> Array:
        """Return the scores before `offset_` is subtracted: sums of kernel values, larger for rows like the training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Matrix) -> Array:
        """Return +1 for rows like the training rows and -1 for novel ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predictions.
        """
        return self._read(X, lambda outputs: self.goal_.decode(outputs))

    @property
    def offset_(self) -> float:
        """The score on the boundary."""
        return -float(self.model_.bias[0])

    def _labelled(self, y: Array, weights: Array, *, whole: bool) -> Labelled:  # noqa: ARG002
        """Return no labels; the full model's scores are used as labels when it is shrunk."""
        if not isinstance(self.nu, Real) or not 0 < float(self.nu) <= 1:
            raise ValueError(f"nu must be a share of the rows above 0 and up to 1, not {self.nu!r}")
        return Labelled(Novelty(nu=float(self.nu)), np.zeros(weights.size), weights)
