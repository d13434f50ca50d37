"""The sums over rows behind the gradient of a Gaussian model, by compiled code in threads.

With P_ij = K_ij <W_i, V_j>: P' X, P' |f x|^2 and P' 1 of each point, and (X * X)' P w, as in `GaussianSums`.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from .._core import core
from ..kernels import RBF, Array, Kernel, Matrix
from .threads import Crew


def fits_sums(kernel: Kernel, values: Matrix, K: Array) -> bool:
    """Return whether compiled code has these sums: for the rbf kernel, and rows in the precision of kernel values."""
    plain = issparse(values) or (isinstance(values, np.ndarray) and values.flags.c_contiguous)
    return isinstance(kernel, RBF) and plain and values.dtype == K.dtype and K.size > 0


class GaussianParts:
    """Sums that rows are added to. V (m, q) are coefficients, `pulls` (m,) weights of points for the spread."""

    def __init__(
        self, values: Matrix, V: Array, squares: Array, pulls: Array | None, crew: Crew, *, coef: bool = False
    ) -> None:
        (self.m, self.q), self.d, self.crew, self.coef, dtype = V.shape, values.shape[1], crew, coef, values.dtype
        self.rows = (values.data, values.indices, values.indptr) if issparse(values) else values
        self.scale = V[:, 0] if self.q == 1 else np.ones(self.m)
        full = np.zeros((self.q + 1, -(-self.m // core.PANEL) * core.PANEL), dtype)
        full[: self.q, : self.m] = V.T
        if pulls is not None:
            full[self.q, : self.m] = pulls * self.scale
        self.V, self.squares = full[: self.q], np.ascontiguousarray(squares, dtype)
        self.pulls = None if pulls is None else full[self.q]
        self.ends = np.cumsum([self.m * (self.d + 2), self.m * self.q * coef])
        self.sums = np.zeros(int(self.ends[-1]) + (0 if pulls is None else self.d))

    def add(self, K: Array, W: Array, start: int = 0) -> None:
        """Add rows from `start` on, with their kernel values and slopes (n, q)."""
        if not K.size:
            return
        helpers = self.crew.helpers_for(K.size * (self.d + 4 * self.q))
        lines = np.ascontiguousarray(W.T, np.float64)
        core.backward(K, self.rows, lines, self.V, self.squares, self.pulls, self.coef, start, self.sums, *helpers)

    def by_point(self) -> tuple[Array, Array, Array]:
        """Return <V_j> times the sums over rows of each point: of the rows, of their squared norms, and of ones."""
        parts = self.scale[:, None] * self.sums[: self.ends[0]].reshape(self.m, self.d + 2)
        return parts[:, : self.d], parts[:, self.d], parts[:, self.d + 1]

    @property
    def by_coef(self) -> Array:
        """K' W, (m, q)."""
        return self.sums[self.ends[0] : self.ends[1]].reshape(self.m, self.q)

    @property
    def spread(self) -> Array:
        """The sum over rows of their squares times P' pulls, (d,)."""
        return self.sums[self.ends[1] :]

    def in_metric(self) -> tuple[Array, Array, Array, Array]:
        """Return the sums that `gaussian_gradient` takes, without the factor `scale`."""
        parts = self.sums[: self.ends[0]].reshape(self.m, self.d + 2)
        return parts[:, : self.d], parts[:, self.d], parts[:, self.d + 1], self.spread
