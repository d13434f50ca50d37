"""Gaussian points merged pair by pair, the two nearest of a class first (Nguyen & Ho 2005).

Two points with coefficients c_p and c_j become z = h z_p + (1 - h) z_j with the coefficient c_p u + c_j v, where

    u = k(z_p, z) = exp(-D (1 - h)^2),   v = k(z_j, z) = exp(-D h^2),   D = gamma |z_p - z_j|^2,

and h makes that coefficient, the length of the projection, largest. From any other point x the new one is at
D(x, z) = h D(x, z_p) + (1 - h) D(x, z_j) - h (1 - h) D, so no kernel values are needed while points are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array

from .._core import core
from ..kernels import RBF, Array, Matrix
from ..rows.host import HostRows
from ..rows.protocol import Meter

#: points of a class among which all pairs are held; a larger class is cut into parts by chance until it has shrunk
CELL = 4096


def merge_pair(smaller: Array, larger: Array, far: float) -> tuple[float, Array, float]:
    """The best point between two of these coefficients that are D = far apart; the shorter coefficients come first.

    Returns the share h <= 1/2 of the first point, the new coefficients, and the squared distance in feature space
    between the pair and the new point, summed over the outputs.
    """
    a, b, c, k = smaller @ smaller, larger @ larger, smaller @ larger, np.exp(-far)
    h = core.best_merge(0, np.array([a, b]), np.array([a, c]), np.array([1.0, k]))[1]
    coef = smaller * np.exp(-far * (1 - h) ** 2) + larger * np.exp(-far * h**2)
    return h, coef, max(float(a + b + 2 * c * k - coef @ coef), 0.0)


def distances(far: Array, coef: Array, others: Array) -> Array:  # noqa: ARG001
    """D itself: the nearest pair is merged, as in the papers."""
    return far


def losses(far: Array, coef: Array, others: Array) -> Array:
    """Nearly what a merge would lose: the better of the mean of the two, weighted by |c|, and the heavier of the two."""
    squares = np.einsum("ij,ij->i", others, others)
    a, products, k = coef @ coef, others @ coef, np.exp(-far)
    h = np.sqrt(a) / (np.sqrt(a) + np.sqrt(squares)) if a > 0 else np.zeros_like(squares)
    u, v = np.exp(-far * (1 - h) ** 2), np.exp(-far * h**2)
    mean = a * (1 - u**2) + squares * (1 - v**2) + 2 * products * (k - u * v)
    return np.where(far < np.inf, np.minimum(mean, np.minimum(a, squares) * (1 - k**2)), np.inf)


#: which pair to merge: score(D, coefficients of a point, coefficients of others) for each of the others, the least first
SCORES: dict[str, Callable[[Array, Array, Array], Array]] = {"nearest": distances, "cheapest": losses}


class Cell:
    """Distances among some points of one class, and for each point the best other one to merge it with.

    `best` is the score of that pair, or a lower bound of it where `partner` is -1: only a bound that is the least of all
    is worth the work of finding out (Müllner 2011, the generic algorithm).
    """

    def __init__(self, places: Array, K: Array, coef: Array, score: Callable[[Array, Array, Array], Array]) -> None:
        self.places, self.coef, self.score = places, coef, score
        self.far = -np.log(np.clip(K, np.finfo(K.dtype).tiny, 1.0))
        np.fill_diagonal(self.far, np.inf)  # as are, later, the distances of points that are gone
        self.rough = coef.astype(K.dtype)  # float32 is good enough, and twice as fast, to choose by
        self.best, self.partner = np.full(places.size, np.inf), np.zeros(places.size, dtype=np.intp)
        for p in range(places.size):
            self.find_partner(p)

    def find_partner(self, p: int) -> Array:
        """Look for the best pair of a point; returns the scores of all."""
        scores = self.score(self.far[p], self.rough[p], self.rough)
        self.partner[p] = scores.argmin()
        self.best[p] = scores[self.partner[p]]
        return scores

    def best_pair(self) -> tuple[float, int, int]:
        """The least score and the two points, the lighter first; infinite where there are no two."""
        while self.partner[p := int(self.best.argmin())] < 0:
            self.find_partner(p)
        j = int(self.partner[p])
        lighter = np.square(self.coef[p]).sum() <= np.square(self.coef[j]).sum()
        return float(self.best[p]), *((p, j) if lighter else (j, p))

    def merge(self, p: int, j: int) -> tuple[float, float]:
        """Point j becomes the best point for both, and p is gone; returns the share of p in it, and the loss."""
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
    """Points with coefficients and classes that become fewer one by one.

    A merged point keeps the place of one of the two. It is a mean of the points given: `home` has the place of the point
    that each of them is now a part of, `shares` how much of it. `lost` is an upper bound of |w - w~|, the sum over the
    merges so far.
    """

    def __init__(
        self,
        kernel: RBF,
        given: Matrix,
        coef: Array,
        groups: Array,
        meter: Meter,
        rng: np.random.Generator,
        pairs: str = "nearest",
    ) -> None:
        self.kernel, self.meter, self.rng, self.score = kernel, meter, rng, SCORES[pairs]
        self.given, self.coef, self.groups = given, np.array(coef, dtype=np.float64), groups
        self.places = np.arange(coef.shape[0])
        self.home, self.shares, self.lost = self.places.copy(), np.ones(self.places.size), 0.0
        self.look_around()

    @property
    def size(self) -> int:
        """The number of points left."""
        return self.places.size

    def look_around(self) -> None:
        """Compute the distances among the points that are left, class by class, or among all if no class has two."""
        self.looked = self.size
        points = HostRows(self.kernel, self.points(), self.meter, cache_mb=0.0)
        self.cells = []
        for some in self.neighbourhoods():
            places = self.places[some]
            self.cells.append(Cell(places, points.block(some), self.coef[places], self.score))
        self.pairs = [cell.best_pair() for cell in self.cells]

    def neighbourhoods(self) -> Iterator[Array]:
        """Sets of points of a class, by their numbers among those left, of at most `CELL` each."""
        groups = self.groups[self.places]
        if np.unique(groups).size == self.size:
            groups = np.zeros(self.size)
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            if own.size > CELL:
                own = self.rng.permutation(own)
            yield from np.array_split(own, -(-own.size // CELL))

    def points(self) -> Matrix:
        """The points that are left."""
        columns = np.arange(self.home.size)
        means = csr_array((self.shares, (np.searchsorted(self.places, self.home), columns)), (self.size, columns.size))
        return means @ self.given

    def merge(self) -> None:
        """Replace the best pair by one point."""
        if self.size <= self.looked // 2 or not np.isfinite(min(self.pairs)[0]):
            self.look_around()
        number = min(range(len(self.pairs)), key=self.pairs.__getitem__)
        cell, (_, p, j) = self.cells[number], self.pairs[number]
        h, loss = cell.merge(p, j)
        self.pairs[number] = cell.best_pair()
        self.coef[cell.places[j]] = cell.coef[j]
        self.join(cell.places[p], cell.places[j], h)
        self.lost += np.sqrt(loss)

    def join(self, gone: int, kept: int, h: float) -> None:
        """Write down that a point is now a part of another."""
        leaving = self.home == gone
        self.shares[self.home == kept] *= 1 - h
        self.shares[leaving] *= h
        self.home[leaving] = kept
        self.places = np.delete(self.places, np.searchsorted(self.places, gone))
