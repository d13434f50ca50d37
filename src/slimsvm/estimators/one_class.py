"""SlimOneClassSVM: novelty detection on a budget of support vectors."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.metaestimators import available_if

from ..goals import Novelty
from ..kernels import Array, Matrix
from .base import KernelMachine, Labelled, fit_reporting
from .methods import learns_streams
from .streams import learn_batch


class SlimOneClassSVM(OutlierMixin, KernelMachine):
    """Novelty detection by a one-class SVM with a budget of support vectors.

    Trains the exact one-class SVM, as `sklearn.svm.OneClassSVM` does, and shrinks it to a budget. A small model is fitted
    to the scores of the full one and judged by them.

    Parameters
    ----------
    budget : int or float, default=None
        The most support vectors: a count, or a fraction of the full model's. None: no limit.
    tolerance : float, default=None
        Keep the smallest model whose validation error is at most this much. The error is the mean squared distance of its
        scores to the full model's, as a share of the variance of the full model's scores. With `budget` too, the smallest
        within both.
    scoring : str, callable or None, default=None
        How models are compared, as in `SlimSVC`. sample_weight is not used. The y of a scorer are the full model's
        predictions, +1 and -1. None: the squared distance to the full model's scores.
    budget_bytes, budget_precision, budget_us, budget_batch_size : int, str, float, int
        Limits on the bytes of exported C tables and on the time of `predict`, as in `SlimSVC`.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "precomputed"} or callable, default="rbf"
        As in `SlimSVC`.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel width, as in `OneClassSVM`.
    nu : float, default=0.5
        The share of the training rows, above 0 and up to 1, that may be called novel; at least that share become support
        vectors.
    degree, coef0 : int, float
        Parameters of the poly and sigmoid kernels, as in `OneClassSVM`.
    trainer : str or trainer, default="smo"
        "smo" or an instance of `slimsvm.trainers.SMO`; "bsgd" learns row by row within a budget, in `partial_fit` too.
    reducer : str or reducer, default="slim"
        As in `SlimSVR`.
    tol : float, default=1e-3
        The largest violation of the optimality conditions at which training ends, as in `OneClassSVM`.
    max_iter : int, default=-1
        The most pair steps; -1 means 10 million, or a thousand for each row if that is more.
    time_limit, warm_start, checkpoint, checkpoint_seconds : float, bool, path, float
        The most seconds of the fit, a start from the last fit, and a file from which a fit that was cut short continues, as
        in `SlimSVC`: for the trainer "smo" and the reducer "slim".
    cache_mb : float, default=512
        Memory for kernel rows, in MiB.
    validation_fraction : float, default=0.2
        The share of the rows on which models are compared when a budget or tolerance is given.
    device : str, default="cpu"
        Where rows are kept and kernels evaluated, as in `SlimSVC`.
    verbose : bool, default=False
        Print how far the fit has come.
    random_state : int, RandomState instance or None, default=None
        Chooses the validation rows and seeds methods that draw at random.

    Attributes
    ----------
    offset_ : float
        decision_function = score_samples - offset_.
    support_vectors_, support_, dual_coef_, intercept_, coef_, n_support_, path_
        As in `SlimSVR`.
    n_kernel_evals_, n_iter_, status_, fit_status_, shape_fit_, model_, n_features_in_, feature_names_in_
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
    C = 1.0

    def __init__(
        self,
        budget: int | float | None = None,
        *,
        tolerance: float | None = None,
        scoring: str | Callable[..., float] | None = None,
        budget_bytes: int | None = None,
        budget_precision: str = "float32",
        budget_us: float | None = None,
        budget_batch_size: int = 1,
        kernel: str | Callable[..., Array] = "rbf",
        gamma: str | float = "scale",
        nu: float = 0.5,
        degree: int = 3,
        coef0: float = 0.0,
        trainer: Any = "smo",
        reducer: Any = "slim",
        tol: float = 1e-3,
        max_iter: int = -1,
        time_limit: float | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = 60.0,
        cache_mb: float = 512,
        validation_fraction: float = 0.2,
        device: str = "cpu",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.budget = budget
        self.tolerance = tolerance
        self.scoring = scoring
        self.budget_bytes = budget_bytes
        self.budget_precision = budget_precision
        self.budget_us = budget_us
        self.budget_batch_size = budget_batch_size
        self.kernel = kernel
        self.gamma = gamma
        self.nu = nu
        self.degree = degree
        self.coef0 = coef0
        self.trainer = trainer
        self.reducer = reducer
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.cache_mb = cache_mb
        self.validation_fraction = validation_fraction
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

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
