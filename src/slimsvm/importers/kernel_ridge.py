"""scikit-learn's KernelRidge as an expansion: every training row is a point."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from ..goals import Regression
from ..kernels import KERNELS, Matrix, make_kernel
from ..model import Expansion
from .imported import NO_CLASSES, Imported

#: the C for alpha = 0, no regularisation
LARGEST_C = 1e12


def is_kernel_ridge(model: Any) -> bool:
    """Return whether this is a KernelRidge."""
    return isinstance(model, KernelRidge)


def import_kernel_ridge(ridge: Any) -> Imported:
    """Return the expansion inside a fitted KernelRidge.

    KernelRidge minimises sum_i (y_i - f(x_i))^2 + alpha |f|^2, which is slim's loss for C = 1 / alpha and no tube.
    """
    check_is_fitted(ridge)
    dual = np.asarray(ridge.dual_coef_, dtype=np.float64).reshape(ridge.X_fit_.shape[0], -1)
    n_features = ridge.X_fit_.shape[1]
    params = {"kernel": _name(ridge), "gamma": 1.0 / n_features if ridge.gamma is None else float(ridge.gamma)}
    params |= {"degree": _degree(ridge), "coef0": float(ridge.coef0)}
    kernel = make_kernel(params["kernel"], gamma=params["gamma"], degree=params["degree"], coef0=params["coef0"])
    alpha = float(np.max(ridge.alpha))
    params |= {"C": 1.0 / alpha if alpha * LARGEST_C > 1 else LARGEST_C, "epsilon": 0.0}
    model = Expansion(kernel, _points(ridge), dual, np.zeros(dual.shape[1]))
    return Imported(model, Regression(outputs=dual.shape[1]), NO_CLASSES, n_features, params, squared=True)


def _name(ridge: Any) -> Any:
    """Return the kernel's name, or a function of two sets of rows."""
    if callable(ridge.kernel):  # a function of two rows
        return partial(pairwise_kernels, metric=ridge.kernel, **(ridge.kernel_params or {}))
    name = {"polynomial": "poly"}.get(ridge.kernel, ridge.kernel)
    if name not in KERNELS:
        raise ValueError(f"cannot shrink a KernelRidge with kernel={ridge.kernel!r}; the kernels are {sorted(KERNELS)}")
    return name


def _degree(ridge: Any) -> int:
    """Return the degree, which must be a whole number for polynomial kernels."""
    if ridge.kernel in ("poly", "polynomial") and (ridge.degree != int(ridge.degree) or ridge.degree < 1):
        raise ValueError(
            f"cannot shrink a KernelRidge with degree={ridge.degree!r}; polynomial kernels here have a whole degree of at "
            "least 1"
        )
    return int(ridge.degree)


def _points(ridge: Any) -> Matrix:
    if ridge.kernel == "precomputed":
        return np.arange(ridge.X_fit_.shape[0])[:, None]
    return csr_array(ridge.X_fit_) if issparse(ridge.X_fit_) else ridge.X_fit_
