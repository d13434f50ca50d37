"""The span of a growing list of kernel functions: orthonormal coordinates of all rows in it.

With L L' = K(B, B) for the points B, the coordinates of a row x are L^-1 k(B, x): their inner products are those of the
rows' projections. A new point adds a row to L and a coordinate to each row of data, and changes none that is there.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from ..kernels import Array

#: the share of |Phi(z)|^2 that a point must have outside the span of those before it, by the precision of kernel values
NEW = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


class Span:
    """Coordinates of n rows in the span of up to `limit` points; the 0-th coordinate is a constant, for the bias."""

    def __init__(self, diagonal: Array, limit: int, dtype: np.dtype, constant: float) -> None:
        self.coordinates = np.empty((limit + 1, diagonal.size), dtype)  # the system hands out pages as they are written
        self.coordinates[0] = self.constant = constant
        self.factor = np.zeros((limit, limit))  # L
        self.diagonal, self.rest = diagonal, diagonal.astype(np.float64)  # |Phi(x)|^2 in all, and outside the span
        self.least = NEW[np.dtype(dtype)]
        self.size = 0

    @property
    def features(self) -> Array:
        """The coordinates so far, a row for each: the constant, then one for each point."""
        return self.coordinates[: self.size + 1]

    def outside(self) -> Array:
        """The rows that the span does not hold."""
        return np.flatnonzero(self.rest > self.least * self.diagonal)

    def forget(self, row: int) -> None:
        """Count a row as held: it lies outside by no more than rounding."""
        self.rest[row] = 0.0

    def add(self, column: Array, links: Array, own: float) -> bool:
        """Add a point by k(rows, z), k(points, z) and k(z, z), unless the span all but holds it."""
        k = self.size
        along = solve_triangular(self.factor[:k, :k], links, lower=True) if k else np.empty(0)
        squared = own - along @ along
        if not squared > self.least * own:
            return False
        new = column - along.astype(column.dtype) @ self.coordinates[1 : k + 1]
        self.coordinates[k + 1] = new / np.sqrt(squared)
        self.rest -= np.square(self.coordinates[k + 1], dtype=np.float64)
        self.factor[k, :k], self.factor[k, k] = along, np.sqrt(squared)
        self.size += 1
        return True

    def projected(self, pull: Array) -> Array:
        """The coefficients over the points of the projection of sum_i pull_i Phi(x_i) on the span, (k, q)."""
        inner = self.coordinates[1 : self.size + 1]
        return self.coefficients((inner @ pull.astype(inner.dtype)).astype(np.float64))

    def coefficients(self, v: Array) -> Array:
        """The coefficients over the points of vectors with these coordinates, (k, q) to (k, q)."""
        return solve_triangular(self.factor[: self.size, : self.size], v, lower=True, trans="T") if self.size else v
