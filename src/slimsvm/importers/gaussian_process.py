"""The mean of scikit-learn's GaussianProcessRegressor as an expansion: every training row is a point."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product, Sum, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from ..goals import Regression
from ..kernels import make_kernel
from ..model import Expansion
from ..text import short
from .imported import NO_CLASSES, Imported


def is_gaussian_process(model: Any) -> bool:
    """Return whether this is a GaussianProcessRegressor."""
    return isinstance(model, GaussianProcessRegressor)


def import_gaussian_process(process: Any) -> Imported:
    """Return the expansion of the mean of a fitted GaussianProcessRegressor; normalize_y is folded in.

    The mean is the f that minimises sum_i (y_i - f(x_i))^2 / alpha + |f|^2. The small model has no standard deviations.
    """
    check_is_fitted(process, "alpha_")
    dual = np.asarray(process.alpha_, dtype=np.float64).reshape(process.X_train_.shape[0], -1)
    amplitude, length, noise = _parts(process.kernel_)
    rows = np.asarray(process.X_train_, dtype=np.float64)
    gamma = 0.5 / length**2
    # |f|^2 with the kernel amplitude * k is |f|^2 with k, divided by the amplitude
    C = amplitude / max(float(np.mean(process.alpha)) + noise, 1e-12)
    params = {"kernel": "rbf", "gamma": gamma, "C": C, "epsilon": 0.0}
    deviation, mean = (
        np.broadcast_to(np.ravel(part), dual.shape[1:]) for part in (process._y_train_std, process._y_train_mean)
    )
    kernel = make_kernel("rbf", gamma=gamma, degree=1, coef0=0.0)
    model = Expansion(kernel, rows, dual * amplitude * deviation, mean.astype(np.float64))
    return Imported(model, Regression(outputs=dual.shape[1]), NO_CLASSES, rows.shape[1], params, squared=True)


def _parts(kernel: Any) -> tuple[float, float, float]:
    """Return the amplitude, the length scale and the white noise of amplitude * RBF(length) + noise."""
    if isinstance(kernel, Sum):
        for white, rest in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(white, WhiteKernel):
                amplitude, length, noise = _parts(rest)
                return amplitude, length, noise + float(white.noise_level)
    if isinstance(kernel, Product):
        for constant, rest in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(constant, ConstantKernel) and not isinstance(rest, Sum):
                amplitude, length, noise = _parts(rest)
                return amplitude * float(constant.constant_value), length, noise
    if type(kernel) is RBF and np.size(kernel.length_scale) == 1:  # a Matern kernel is a subclass
        return 1.0, float(np.ravel(kernel.length_scale)[0]), 0.0
    raise ValueError(
        f"cannot shrink a GaussianProcessRegressor with the kernel {short(kernel)}; the kernels are RBF with one length "
        "scale, ConstantKernel * RBF, and either of them + WhiteKernel. For a length scale of each feature, divide the "
        "features by them and fit again"
    )
