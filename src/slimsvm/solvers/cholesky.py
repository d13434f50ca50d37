"""A Cholesky factor that grows with its matrix, one point at a time."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtrs

from ..kernels import Array


class GrowingCholesky:
    """The lower factor L of a positive definite matrix A = L L', which grows by a row and a column for each point.

    A_ij is an inner product of points i and j. The pivot of a new point is the part of its squared length A_ii that lies
    outside the span of the points before it. `threshold` is the share of A_ii up to which a pivot counts as zero, and the
    point as linearly dependent. Raise it where the entries of A have fewer correct digits.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.size = 0
        self._memory = np.zeros((0, 0))

    @property
    def factor(self) -> Array:
        """L, (m, m)."""
        return self._memory[: self.size, : self.size]

    def eliminate(self, links: Array, own: Array) -> tuple[Array, Array]:
        """Return L^-1 links and the pivots of candidates, from A between them and the points, (m, count), and A_ii."""
        halves = self.forward(links)
        return halves, own - np.square(halves).sum(axis=0)

    def independent(self, pivots: Array, own: Array) -> Array:
        """Return whether candidates with these pivots are linearly independent of the points; NaN is not."""
        return pivots > self.threshold * np.abs(own)

    def append(self, half: Array, pivot: float) -> None:
        """Add a point by the numbers that `eliminate` returned for it."""
        m = self.size
        if m == self._memory.shape[0]:
            memory = np.zeros((2 * m + 8, 2 * m + 8))
            memory[:m, :m] = self._memory
            self._memory = memory
        self._memory[m, :m], self._memory[m, m] = half, np.sqrt(pivot)
        self.size += 1

    def add(self, links: Array, own: float) -> bool:
        """Add a point by its inner products with the points (m,) and with itself, unless it is linearly dependent."""
        halves, pivots = self.eliminate(links[:, None], np.array([own]))
        if not self.independent(pivots, np.array([own])).all():
            return False
        self.append(halves[:, 0], float(pivots[0]))
        return True

    def keep(self, size: int) -> None:
        """Keep the first points and drop the others."""
        self.size = size

    def forward(self, B: Array) -> Array:
        """Return L^-1 B."""
        return self._solve(B, transposed=False)

    def backward(self, B: Array) -> Array:
        """Return L^-T B."""
        return self._solve(B, transposed=True)

    def solve(self, B: Array) -> Array:
        """Return A^-1 B."""
        return self.backward(self.forward(B))

    def _solve(self, B: Array, *, transposed: bool) -> Array:
        if not self.size or not B.size:
            return B
        solution, _ = dtrtrs(self.factor, B, lower=1, trans=int(transposed))  # LAPACK itself: the factor is often small
        return solution
