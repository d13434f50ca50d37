"""Merge the points of an rbf expansion pair by pair (Nguyen & Ho 2005).

Two points with coefficients c_p and c_j are replaced by z = h z_p + (1 - h) z_j with the coefficient c_p u + c_j v, where

    u = k(z_p, z) = exp(-D (1 - h)^2),   v = k(z_j, z) = exp(-D h^2),   D = gamma |z_p - z_j|^2.

The share h maximises that coefficient, the length of the pair's projection onto z. Any other point x is at the distance
D(x, z) = h D(x, z_p) + (1 - h) D(x, z_j) - h (1 - h) D, so a merge needs no new kernel values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array

from .._core import core
from ..kernels import RBF, Array, Matrix
from ..rows.protocol import Rows

#: points of a class whose pairs are all compared, by default; memory grows with its square
LARGEST_TABLE = 4096


def merge_pair(smaller: Array, larger: Array, far: float) -> tuple[float, Array, float]:
    """Return the best point between two points at distance D = far, of which the first has the shorter coefficients.

    These are the share h <= 1/2 of the first point, the new coefficients, and the squared distance in feature space between
    the pair and the new point, summed over the outputs.
    """
    a, b, c, k = smaller @ smaller, larger @ larger, smaller @ larger, np.exp(-far)
    h = core.best_merge(0, np.array([a, b]), np.array([a, c]), np.array([1.0, k]))[1]
    coef = smaller * np.exp(-far * (1 - h) ** 2) + larger * np.exp(-far * h**2)
    return h, coef, max(float(a + b + 2 * c * k - coef @ coef), 0.0)


def distances(far: Array, coef: Array, others: Array) -> Array:  # noqa: ARG001
    """Return D itself: the papers merge the nearest pair."""
    return far


def losses(far: Array, coef: Array, others: Array) -> Array:
    """Return an upper bound on the loss of a merge: the lower loss of the mean weighted by |c| and of the heavier point."""
    squares = np.einsum("ij,ij->i", others, others)
    a, products, k = coef @ coef, others @ coef, np.exp(-far)
    h = np.sqrt(a) / (np.sqrt(a) + np.sqrt(squares)) if a > 0 else np.zeros_like(squares)
    bounded = np.minimum(far, np.finfo(float).max)  # infinity times 0 would be NaN
    u, v = np.exp(-bounded * (1 - h) ** 2), np.exp(-bounded * h**2)
    mean = a * (1 - u**2) + squares * (1 - v**2) + 2 * products * (k - u * v)
    return np.where(far < np.inf, np.minimum(mean, np.minimum(a, squares) * (1 - k**2)), np.inf)


#: score(D, coefficients of a point, coefficients of the others) for each of the others; the pair with the lowest is merged
SCORES: dict[str, Callable[[Array, Array, Array], Array]] = {"nearest": distances, "cheapest": losses}


class PairTable:
    """Distances among some points of one class, and the best partner of each point.

    `best[p]` is the score of p and its partner, or a lower bound on it where `partner[p]` is -1. A bound is replaced by the
    score only when it is the lowest of all (Müllner 2011, the generic algorithm).
    """

    def __init__(self, places: Array, K: Array, coef: Array, score: Callable[[Array, Array, Array], Array]) -> None:
        self.places, self.coef, self.score = places, coef, score
        self.far = -np.log(np.clip(K, np.finfo(K.dtype).tiny, 1.0))
        np.fill_diagonal(self.far, np.inf)  # distances of points that were merged are inf too
        self.rough = coef.astype(K.dtype)  # float32 halves the time and is precise enough to choose a pair
        self.best, self.partner = np.full(places.size, np.inf), np.zeros(places.size, dtype=np.intp)
        for p in range(places.size):
            self.find_partner(p)

    def find_partner(self, p: int) -> Array:
        """Set the best partner of point p and return its scores with all points."""
        scores = self.score(self.far[p], self.rough[p], self.rough)
        self.partner[p] = scores.argmin()
        self.best[p] = scores[self.partner[p]]
        return scores

    def best_pair(self) -> tuple[float, int, int]:
        """Return the lowest score and its two points, the lighter one first; inf where fewer than two points are left."""
        while self.partner[p := int(self.best.argmin())] < 0:
            self.find_partner(p)
        j = int(self.partner[p])
        lighter = np.square(self.coef[p]).sum() <= np.square(self.coef[j]).sum()
        return float(self.best[p]), *((p, j) if lighter else (j, p))

    def merge(self, p: int, j: int) -> tuple[float, float]:
        """Replace j by the best point for p and j, and remove p; return the share of p in the new point, and the loss."""
        far = self.far[p, j]
        h, self.coef[j], loss = merge_pair(self.coef[p], self.coef[j], float(far))
        self.rough[j] = self.coef[j]
        if h > 0:
            row = h * self.far[p] + (1 - h) * self.far[j] - h * (1 - h) * far
            self.far[j] = self.far[:, j] = np.maximum(row, 0.0)
        self.far[p] = self.far[:, p] = np.inf
        self.partner[(self.partner == p) | (self.partner == j)] = -1
        self.best[p] = np.inf
        scores = self.find_partner(j)
        better = scores <= self.best
        better[j] = False
        self.best[better], self.partner[better] = scores[better], j
        return h, loss


class Merging:
    """Points with coefficients and classes, of which `merge` replaces two by one.

    `rows` is any home of rows with the rbf kernel: it evaluates the kernel among the points. A merged point takes the place
    of one of its two; `places` are the places of the remaining points, and `coef[places]` their coefficients. Every
    point is a weighted mean of given points: given point i is part of the point at `merged_into[i]`, with weight
    `shares[i]`. `lost` is an upper bound on |w - w~|, the sum over all merges so far. `largest_table` bounds the points of
    a class whose pairs are all compared: a larger class is split at random until it has shrunk.
    """

    def __init__(
        self,
        rows: Rows,
        given: Matrix,
        coef: Array,
        groups: Array,
        rng: np.random.Generator,
        pairs: str = "nearest",
        largest_table: int = LARGEST_TABLE,
    ) -> None:
        if not isinstance(rows.kernel, RBF):
            raise ValueError(f"merging is defined for the rbf kernel only, and the kernel is {rows.kernel.name!r}")
        self.rows, self.rng, self.score, self.largest_table = rows, rng, SCORES[pairs], largest_table
        self.given, self.coef, self.groups = given, np.array(coef, dtype=np.float64), groups
        self.places = np.arange(coef.shape[0])
        self.merged_into, self.shares, self.lost = self.places.copy(), np.ones(self.places.size), 0.0
        self._compare()

    @property
    def size(self) -> int:
        """The number of remaining points."""
        return self.places.size

    def points(self) -> Matrix:
        """Return the remaining points."""
        columns = np.arange(self.merged_into.size)
        numbers = np.searchsorted(self.places, self.merged_into)
        return csr_array((self.shares, (numbers, columns)), (self.size, columns.size)) @ self.given

    def merge(self) -> None:
        """Replace the best pair by one point."""
        if self.size <= self.compared // 2 or not np.isfinite(min(self.best_pairs)[0]):
            self._compare()
        number = min(range(len(self.best_pairs)), key=self.best_pairs.__getitem__)
        table, (_, p, j) = self.tables[number], self.best_pairs[number]
        h, loss = table.merge(p, j)
        self.best_pairs[number] = table.best_pair()
        self.coef[table.places[j]] = table.coef[j]
        self._record(table.places[p], table.places[j], h)
        self.lost += np.sqrt(loss)

    def _compare(self) -> None:
        """Compute the distances among the remaining points."""
        self.compared = self.size
        points = self.rows.of(self.points())
        self.tables = []
        for part in self._parts():
            places = self.places[part]
            self.tables.append(PairTable(places, points.block(part), self.coef[places], self.score))
        self.best_pairs = [table.best_pair() for table in self.tables]

    def _parts(self) -> Iterator[Array]:
        """Yield the points of each class, as numbers among the remaining points; all points if no class has two."""
        groups = self.groups[self.places]
        if np.unique(groups).size == self.size:
            groups = np.zeros(self.size)
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            if own.size > self.largest_table:
                own = self.rng.permutation(own)
            yield from np.array_split(own, -(-own.size // self.largest_table))

    def _record(self, removed: int, kept: int, h: float) -> None:
        """Update shares and places after a point became part of another, with weight h."""
        moved = self.merged_into == removed
        self.shares[self.merged_into == kept] *= 1 - h
        self.shares[moved] *= h
        self.merged_into[moved] = kept
        self.places = np.delete(self.places, np.searchsorted(self.places, removed))
