"""Orthonormal coordinates of all rows in the span of a growing list of points.

With L L' = K(B, B) for the points B, the coordinates of a row x are L^-1 k(B, x): their inner products are those of the
rows' projections on the span. A new point adds a coordinate and changes none of the others. The coordinates of all n rows
are K L^-T with K = K(rows, B), which stays where the rows are. Only products with them are needed:

    outputs   K (L^-T v)              one number for each row
    sums      L^-1 (K' pull)          one number for each coordinate
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array, Matrix
from ..rows.protocol import Rows
from .cholesky import GrowingCholesky

#: the share of |Phi(z)|^2 that a point must have outside the span of the others, by the precision of kernel values
INDEPENDENT = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


class SpanCoordinates:
    """Coordinates of rows in the span of points; coordinate 0 is a constant, for the bias.

    The constant is `bias` times the root mean square |Phi(x)|. `newest` is the coordinate that was added last, (n,).
    """

    def __init__(self, rows: Rows, bias: float) -> None:
        self.rows = rows
        self.diagonal = rows.diagonal()  # |Phi(x)|^2 of each row
        self.rest = self.diagonal.astype(np.float64)  # the part of it outside the span
        self.constant = bias * float(np.sqrt(np.abs(self.diagonal).mean()))
        self.newest = np.full(rows.n, self.constant)
        self.cholesky = GrowingCholesky(INDEPENDENT[rows.dtype])
        self.against = rows.against(rows.take(np.empty(0, dtype=np.intp)), exact=False)

    @property
    def size(self) -> int:
        """The number of points."""
        return self.cholesky.size

    def outside(self) -> Array:
        """Return the rows that are linearly independent of the points."""
        return np.flatnonzero(self.cholesky.independent(self.rest, self.diagonal))

    def forget(self, row: int) -> None:
        """Count a row as part of the span: it is outside by rounding only."""
        self.rest[row] = 0.0

    def add(self, point: Matrix, links: Array, own: float) -> bool:
        """Add a point (1, d) by k(points, z) and k(z, z), unless it is linearly dependent on the points before it."""
        if not self.cholesky.add(links, own):
            return False
        self.against.append(point)
        self.newest = self.outputs(np.eye(1, self.size + 1, self.size)[0])
        self.rest -= np.square(self.newest)
        return True

    def outputs(self, v: Array) -> Array:
        """Return the inner product of a vector (1 + k,) with the coordinates of each row, (n,)."""
        bias = self.constant * v[0]
        if not self.size:
            return np.full(self.rows.n, bias)
        return self.against.times(self.coefficients(v[1:, None])).ravel() + bias

    def sums(self, pull: Array) -> Array:
        """Return the sum over rows of pull_i times their coordinates, (1 + k,)."""
        return np.append(self.constant * pull.sum(), self._projected(pull[:, None]))

    def projected(self, pull: Array) -> Array:
        """Return the coefficients over the points, (k, q), of the projection of sum_i pull_i Phi(x_i) on the span."""
        return self.coefficients(self._projected(pull))

    def coefficients(self, v: Array) -> Array:
        """Return vectors given by their coordinates (k, q) as coefficients over the points, (k, q)."""
        return self.cholesky.backward(v)

    def _projected(self, pull: Array) -> Array:
        return self.cholesky.forward(self.against.back(pull)) if self.size else np.empty((0, pull.shape[1]))
