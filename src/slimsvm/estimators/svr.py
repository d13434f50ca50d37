"""SlimSVR: kernel support vector regression on a budget of support vectors."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import KFold, train_test_split
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..calibration import Conformal, check_calibration
from ..checks import check_at_least_zero
from ..goals import Regression
from ..goals.values import variance_of
from ..kernels import Array, Matrix
from ..parameters import estimator, parameter
from .base import KernelMachine, Labelled, fit_reporting
from .methods import learns_streams
from .streams import learn_batch
from .validation import seed_of, training_rows

#: up to FEW_ROWS rows, errors are those of FOLDS models, each on the rows that it was not trained on; beyond, those of one
#: model on HELD_OUT of the rows. More: errors of models that are nearer to the final one, and more time
FEW_ROWS, FOLDS, HELD_OUT = 10_000, 5, 0.2


def conformal_of(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Conformal:
    """Return the errors of models that are made as the estimator on a part of the rows."""
    y = np.asarray(y, dtype=np.float64)
    if y.shape[0] < 2 * FOLDS:
        raise ValueError(f"calibration='conformal' takes {2 * FOLDS} rows at least, and there are {y.shape[0]}")
    seed, rows = seed_of(estimator.random_state), np.arange(y.shape[0])
    if rows.size <= FEW_ROWS:
        folds = list(KFold(FOLDS, shuffle=True, random_state=seed).split(rows))
    else:
        folds = [tuple(train_test_split(rows, test_size=HELD_OUT, random_state=seed))]
    limit = None if estimator.time_limit is None else estimator.time_limit / (len(folds) + 1)
    errors = [_errors(estimator, X, y, sample_weight, train, held, limit) for train, held in folds]
    return Conformal.of(np.concatenate(errors))


def _errors(estimator: Any, X: Any, y: Array, sample_weight: Any, train: Array, held: Array, limit: Any) -> Array:
    """Return the absolute errors of a model on the rows that it was not trained on."""
    like = clone(estimator).set_params(calibration=None, checkpoint=None, warm_start=False, time_limit=limit)
    weights = None if sample_weight is None else np.asarray(sample_weight)[train]
    like.fit(X[train], y[train], weights)
    return np.abs(y[held] - like.predict(X[held]))


#: C and epsilon for targets of deviation 1, where nobody has chosen them
USUAL = {"C": 10.0, "epsilon": 0.05}


def in_units_of(y: Array) -> dict[str, float]:
    """Return a C and an epsilon for targets of any spread, in whose units both are."""
    spread = float(np.std(y)) or 1.0
    return {name: spread * value for name, value in USUAL.items()}


def has_intervals(estimator: Any) -> bool:
    """Return True if the estimator has intervals, else raise AttributeError."""
    if getattr(estimator, "calibration_", None) is None and estimator.calibration is None:
        raise AttributeError("intervals need calibration='conformal', given before fit")
    return True


@estimator
class SlimSVR(RegressorMixin, KernelMachine):
    """Kernel support vector regression with a budget of support vectors.

    Trains the exact SVM with the epsilon-insensitive loss, as `sklearn.svm.SVR` does, and shrinks it to a budget; or, with
    trainer=None, fits a small model directly to the targets, by the squared epsilon-insensitive loss. Several targets, the
    columns of y, share the support vectors; `C` and `epsilon` hold for each of them in its own unit.

    Attributes
    ----------
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        Rows of X, or other points if the reducer moves them.
    support_ : ndarray of shape (n_SV,)
        Their row numbers in X; only if they are rows of X.
    dual_coef_ : ndarray of shape (n_targets, n_SV)
        Their coefficients.
    intercept_ : ndarray of shape (n_targets,)
        The bias.
    coef_ : ndarray of shape (n_targets, n_features)
        The weights of the features; only for the linear kernel.
    n_support_ : ndarray of shape (1,)
        The number of support vectors.
    calibration_ : Conformal
        The errors that intervals are made of; only with `calibration`.
    path_ : Path
        The models of growing size with their validation errors; None for the full model.
    n_kernel_evals_, n_iter_, status_, fit_status_, device_, shape_fit_, model_, goal_, n_features_in_, feature_names_in_
        As in `SlimSVC`.

    See Also
    --------
    compress : Shrink a kernel regressor that is already trained.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from slimsvm import SlimSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> svr = SlimSVR(budget=8, C=100, random_state=0).fit(X, y)
    >>> len(svr.support_vectors_) <= 8
    True
    """

    _labels_are = "values"
    _several_targets: ClassVar[bool] = True
    _calibrations = ("conformal",)

    _: KW_ONLY
    C: float = parameter("C")
    epsilon: float = parameter("epsilon")
    calibration: str | None = parameter("calibration")

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: y may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Matrix, y: Any, sample_weight: Any = None) -> SlimSVR:
        """Train the full model and shrink it if a budget or tolerance is set.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows; the kernel matrix for kernel="precomputed".
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their target values.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C by row. A row of weight 0 counts as absent.

        Returns
        -------
        self : SlimSVR
            The fitted estimator.
        """
        if self.calibration is None:
            return fit_reporting(self, X, y, sample_weight)
        check_calibration(self.calibration, self._calibrations)
        rows, targets = training_rows(clone(self), X, y, least=2)
        if targets.ndim > 1:
            raise ValueError(
                f"calibration='conformal' makes the intervals of one target, and y has {targets.shape[1]} columns; fit one "
                "SlimSVR for each target that needs intervals"
            )
        intervals = conformal_of(self, rows, targets, sample_weight)
        fit_reporting(self, X, y, sample_weight)
        self.calibration_ = intervals
        return self

    @available_if(has_intervals)
    def predict_interval(self, X: Matrix, coverage: float = 0.8) -> Array:
        """Return an interval for each row that holds this share of the true values; only with calibration="conformal".

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        coverage : float, default=0.8
            The share of rows like those of the training whose value is to lie in its interval.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            The lower and the upper end.
        """
        check_is_fitted(self)
        reach = self.calibration_.half_width(coverage)
        values = self.predict(X)
        return np.column_stack([values - reach, values + reach])

    @available_if(learns_streams)
    def partial_fit(self, X: Matrix, y: Any, sample_weight: Any = None) -> SlimSVR:
        """Learn from another batch of a stream, row by row in the order given; only with trainer="bsgd".

        The first call fixes the settings: its rows determine gamma="scale", the n of C, and the mean of the targets as the
        bias. After `fit`, a stream continues from the fitted model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows of the batch.
        y : array-like of shape (n_samples,)
            Their target values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : SlimSVR
            The fitted estimator.
        """
        return learn_batch(self, X, y, sample_weight)

    def predict(self, X: Matrix) -> Array:
        """Return the value of each row, or the values of several targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            The predicted values.
        """
        return self._read(X, lambda outputs: self.goal_.decode(outputs))

    def _labelled(self, y: Array, weights: Array, *, whole: bool) -> Labelled:  # noqa: ARG002
        """Return the targets, with the tube of `epsilon` around them."""
        check_at_least_zero("epsilon", self.epsilon)
        goal = Regression(float(self.epsilon), variance_of(y, weights), y.shape[1] if y.ndim > 1 else 1)
        return Labelled(goal, y.astype(np.float64), weights)
