"""A change of variables under which the coefficients of a model have about the same curvature in every direction.

Kernels of neighbouring points are nearly the same function. So the loss hardly changes along some directions of the
coefficients and steeply along others, and L-BFGS needs many steps to learn which. With H = L L' the curvature with respect
to coefficients and c = c_0 + L^-T u, the curvature with respect to u is 1. Unlike in variable projection (Golub & Pereyra
1973), H is computed once, on a sample of the rows, and not at every step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..kernels import Array

#: a ridge on the curvature, as a share of its mean; more: smaller steps in directions of little curvature
RIDGE = 1e-4


@dataclass(frozen=True)
class Whitening:
    """x = origin + T u, where T changes only the numbers of `block`: biases and coefficients, (m + 1, q) in rows."""

    origin: Array
    block: slice
    lower: Array  # L, (m + 1, m + 1)

    @classmethod
    def of(cls, origin: Array, block: slice, curvature: Array) -> Whitening:
        """Return the change of variables for a curvature of biases and coefficients, which is the same for all outputs."""
        damped = curvature + (RIDGE * np.trace(curvature) / curvature.shape[0] + 1e-300) * np.eye(curvature.shape[0])
        return cls(origin, block, cholesky(damped, lower=True))

    def at(self, u: Array) -> Array:
        """Return the vector x of u."""
        x = self.origin + u
        x[self.block] = self.origin[self.block] + self._solved(u, transposed=True)
        return x

    def carried(self, gradient: Array) -> Array:
        """Return the gradient with respect to u from that with respect to x."""
        by_u = gradient.copy()
        by_u[self.block] = self._solved(gradient, transposed=False)
        return by_u

    def _solved(self, vector: Array, *, transposed: bool) -> Array:
        columns = vector[self.block].reshape(self.lower.shape[0], -1)
        return solve_triangular(self.lower, columns, lower=True, trans="T" if transposed else "N").ravel()
