"""SlimSVR: kernel support vector regression on a budget of support vectors."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ..checks import check_at_least_zero
from ..goals import Regression
from ..kernels import Array, Matrix
from .base import KernelMachine, Labelled, fit_reporting

#: C and epsilon for targets of deviation 1, where nobody has chosen them
USUAL = {"C": 10.0, "epsilon": 0.05}


def in_units_of(y: Array) -> dict[str, float]:
    """Return a C and an epsilon for targets of any spread, in whose units both are."""
    spread = float(np.std(y)) or 1.0
    return {name: spread * value for name, value in USUAL.items()}


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
        "smo" or an instance of `slimsvm.trainers.SMO`. None trains no full model: a reducer that needs none then fits a
        model of at most `budget` support vectors.
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
        return fit_reporting(self, X, y, sample_weight)

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
