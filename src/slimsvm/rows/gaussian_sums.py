"""The sums over rows behind the gradient of a Gaussian model, by compiled code in threads."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from .._core import core
from ..kernels import RBF, Array, Kernel, Matrix
from .threads import Crew


def fits_sums(kernel: Kernel, values: Matrix, K: Array) -> bool:
    """Return whether compiled code has these sums: for the rbf kernel, and rows in the precision of kernel values."""
    plain = issparse(values) or (isinstance(values, np.ndarray) and values.flags.c_contiguous)
    return type(kernel) is RBF and plain and values.dtype == K.dtype and K.size > 0


class GaussianSums:
    """Sums over rows X with P_ij = K_ij <W_i, V_j>, or with one output P_ij = K_ij W_i and `scale` V_j.

    `squares` are the squared factors f^2 of features. The spread is a sum over points too, by the weights `pulls`.
    """

    of_rows: Array  # P' X, (m, d)
    of_norms: Array  # P' |f x|^2, (m,)
    of_ones: Array  # P' 1
    spread: Array  # (X * X)' P (pulls * scale), (d,)

    def __init__(
        self, values: Matrix, K: Array, W: Array, V: Array, squares: Array, pulls: Array | None, crew: Crew
    ) -> None:
        (m, q), d, dtype = V.shape, values.shape[1], K.dtype
        self.scale = V[:, 0] if q == 1 else np.ones(m)
        full = np.zeros((q + 1, -(-m // core.PANEL) * core.PANEL), dtype)
        full[:q, :m] = V.T
        if pulls is not None:
            full[q, :m] = pulls * self.scale
        sums = np.zeros(m * (d + 2) + (0 if pulls is None else d))
        core.backward(
            K,
            (values.data, values.indices, values.indptr) if issparse(values) else values,
            np.ascontiguousarray(W.T, np.float64),
            full[:q],
            np.ascontiguousarray(squares, dtype),
            None if pulls is None else full[q],
            sums,
            *crew.helpers_for(K.size * (d + 4 * q)),
        )
        by_point = sums[: m * (d + 2)].reshape(m, d + 2)
        self.of_rows, self.of_norms, self.of_ones = by_point[:, :d], by_point[:, d], by_point[:, d + 1]
        self.spread = sums[m * (d + 2) :]
