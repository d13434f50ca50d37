"""SlimSVR: kernel support vector regression on a budget of support vectors."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..calibration import check_calibration
from ..checks import check_at_least_zero
from ..goals import Regression
from ..kernels import Array, Matrix
from .base import KernelMachine, Labelled, fit_reporting
from .conformal import conformal_of
from .methods import learns_streams
from .streams import learn_batch
from .validation import training_rows

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


class SlimSVR(RegressorMixin, KernelMachine):
    """Kernel support vector regression with a budget of support vectors.

    Trains the exact SVM with the epsilon-insensitive loss, as `sklearn.svm.SVR` does, and shrinks it to a budget; or, with
    trainer=None, fits a small model directly to the targets, by the squared epsilon-insensitive loss.

    Parameters
    ----------
    budget : int or float, default=None
        The most support vectors: a count, or a fraction of the full model's. None: no limit.
    tolerance : float, default=None
        Keep the smallest model whose validation error is within this much of the full one's. The error is 1 - R^2, the
        mean squared error as a share of the variance of the targets, so 0.01 keeps R^2 to within 0.01. With `budget` too,
        the smallest within both. With neither, the full model is kept.
    scoring : str, callable or None, default=None
        How models are compared, as in `SlimSVC`. sample_weight is not used. None: 1 - R^2.
    budget_bytes, budget_precision, budget_us, budget_batch_size : int, str, float, int
        Limits on the bytes of exported C tables and on the time of `predict`, as in `SlimSVC`.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "precomputed"} or callable, default="rbf"
        As in `SlimSVC`.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel width, as in `SVR`.
    C : float, default=1.0
        Cost of an error beyond epsilon. float("inf") means 1e12.
    epsilon : float, default=0.1
        Errors up to this size cost nothing. It is in the units of y: scale y, or epsilon.
    degree, coef0 : int, float
        Parameters of the poly and sigmoid kernels, as in `SVR`.
    trainer : str, trainer or None, default="smo"
        "smo" or an instance of `slimsvm.trainers.SMO`; "bsgd" learns row by row within a budget, in `partial_fit` too.
        None trains no full model: a reducer that needs none then fits a model of at most `budget` support vectors.
    reducer : str or reducer, default="slim"
        A name in `slimsvm.reducers.REDUCERS`, or an instance, of a method that takes real targets: "slim", "spsvm",
        "reduced-set", "cvm", "lars", "osuna-girosi", "rsvm", "nystroem" and "prune".
    tol : float, default=1e-3
        The largest violation of the optimality conditions at which training ends, as in `SVR`.
    max_iter : int, default=-1
        The most pair steps; -1 means 10 million, or a thousand for each row if that is more.
    time_limit, warm_start, checkpoint, checkpoint_seconds : float, bool, path, float
        The most seconds of the fit, a start from the last fit, and a file from which a fit that was cut short continues, as
        in `SlimSVC`: for the trainer "smo" and the reducer "slim".
    cache_mb : float, default=512
        Memory for kernel rows, in MiB.
    validation_fraction : float, default=0.2
        The share of the rows on which models are compared when a budget or tolerance is given.
    calibration : {"conformal"} or None, default=None
        How intervals around predictions are made, for `predict_interval`: "conformal" from the errors of models that are
        fitted like this one to a part of the rows, on the other rows (five such models for up to 2,000 rows, else one).
    device : str, default="cpu"
        Where rows are kept and kernels evaluated, as in `SlimSVC`.
    verbose : bool, default=False
        Print how far the fit has come.
    random_state : int, RandomState instance or None, default=None
        Chooses the validation rows and seeds methods that draw at random.

    Attributes
    ----------
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        Rows of X, or other points if the reducer moves them.
    support_ : ndarray of shape (n_SV,)
        Their row numbers in X; only if they are rows of X.
    dual_coef_ : ndarray of shape (1, n_SV)
        Their coefficients.
    intercept_ : ndarray of shape (1,)
        The bias.
    coef_ : ndarray of shape (1, n_features)
        The weights of the features; only for the linear kernel.
    n_support_ : ndarray of shape (1,)
        The number of support vectors.
    calibration_ : Conformal
        The errors that intervals are made of; only with `calibration`.
    path_ : Path
        The models of growing size with their validation errors; None for the full model.
    n_kernel_evals_, n_iter_, status_, fit_status_, shape_fit_, model_, n_features_in_, feature_names_in_
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
    _calibrations = ("conformal",)

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
        C: float = 1.0,
        epsilon: float = 0.1,
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
        calibration: str | None = None,
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
        self.C = C
        self.epsilon = epsilon
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
        self.calibration = calibration
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Matrix, y: Any, sample_weight: Any = None) -> SlimSVR:
        """Train the full model and shrink it if a budget or tolerance is set.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows; the kernel matrix for kernel="precomputed".
        y : array-like of shape (n_samples,)
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
        """Return the value of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predicted values.
        """
        return self._read(X, lambda outputs: self.goal_.decode(outputs))

    def _labelled(self, y: Array, weights: Array, *, whole: bool) -> Labelled:  # noqa: ARG002
        """Return the targets, with the tube of `epsilon` around them."""
        check_at_least_zero("epsilon", self.epsilon)
        variance = float(np.cov(y, aweights=weights, ddof=0)) or 1.0
        return Labelled(Regression(float(self.epsilon), variance), y.astype(np.float64), weights)
