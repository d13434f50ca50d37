"""Gaussian points merged pair by pair, the two nearest of a class first (Nguyen & Ho 2005).

Two points with coefficients c_p and c_j become z = h z_p + (1 - h) z_j with the coefficient c_p u + c_j v, where

    u = k(z_p, z) = exp(-D (1 - h)^2),   v = k(z_j, z) = exp(-D h^2),   D = gamma |z_p - z_j|^2,

and h makes that coefficient, the length of the projection, largest. From any other point x the new one is at
D(x, z) = h D(x, z_p) + (1 - h) D(x, z_j) - h (1 - h) D, so no kernel values are needed while points are merged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from .._core import core
from ..gram import Gram, Meter
from ..kernels import RBF, Array, Matrix

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


class Cell:
    """Distances among some points of one class, and for each the nearest of the others.

    `near` is the distance to the nearest, or a lower bound of it where `partner` is -1: only a bound that is the least of
    all is worth the work of finding out (Müllner 2011, the generic algorithm).
    """

    def __init__(self, slots: Array, K: Array) -> None:
        self.slots = slots
        self.far = -np.log(np.clip(K, np.finfo(K.dtype).tiny, 1.0))
        np.fill_diagonal(self.far, np.inf)  # as are, later, the distances of points that are gone
        self.partner = self.far.argmin(axis=1)
        self.near = self.far.min(axis=1)

    def nearest(self) -> tuple[float, int, int]:
        """The distance and the places of the two nearest points; infinite where there are no two."""
        while True:
            p = int(self.near.argmin())
            if self.partner[p] >= 0:
                return float(self.near[p]), p, int(self.partner[p])
            self.partner[p] = self.far[p].argmin()
            self.near[p] = self.far[p, self.partner[p]]

    def merge(self, p: int, j: int, h: float) -> None:
        """Point j moves to h z_p + (1 - h) z_j, and p is gone."""
        if h > 0:
            row = h * self.far[p] + (1 - h) * self.far[j] - h * (1 - h) * self.far[p, j]
            self.far[j] = self.far[:, j] = np.maximum(row, 0.0)
        self.far[p] = self.far[:, p] = np.inf
        self.near[p], self.partner[p] = np.inf, j
        row = self.far[j]
        self.partner[(self.partner == p) | (self.partner == j)] = -1
        nearer = row <= self.near
        self.near[nearer], self.partner[nearer] = row[nearer], j
        self.partner[j] = row.argmin()
        self.near[j] = row[self.partner[j]]


class Merging:
    """Points with coefficients and classes that become fewer one by one.

    A merged point keeps the place of one of the two. It is a mean of the points given: `home` has the place of the point
    that each of them is now a part of, `shares` how much of it. `lost` is an upper bound of |w - w~|, the sum over the
    merges so far.
    """

    def __init__(
        self, kernel: RBF, given: Matrix, coef: Array, groups: Array, meter: Meter, rng: np.random.Generator
    ) -> None:
        self.kernel, self.meter, self.rng = kernel, meter, rng
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
        points = Gram(self.kernel, self.points(), self.meter, cache_mb=0.0)
        self.cells = [Cell(self.places[some], points.block(some)) for some in self.neighbourhoods()]
        self.pairs = [cell.nearest() for cell in self.cells]

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
        """Replace the two nearest points by one."""
        number = min(range(len(self.cells)), key=lambda n: self.pairs[n][0])
        if self.size <= self.looked // 2 or not np.isfinite(self.pairs[number][0]):
            self.look_around()
            number = min(range(len(self.cells)), key=lambda n: self.pairs[n][0])
        cell, (far, first, second) = self.cells[number], self.pairs[number]
        p, j = sorted((first, second), key=lambda place: np.square(self.coef[cell.slots[place]]).sum())
        h, coef, loss = merge_pair(self.coef[cell.slots[p]], self.coef[cell.slots[j]], far)
        self.join(cell.slots[p], cell.slots[j], h, coef)
        self.lost += np.sqrt(loss)
        cell.merge(p, j, h)
        self.pairs[number] = cell.nearest()

    def join(self, gone: int, kept: int, h: float, coef: Array) -> None:
        """Write down that a point is now a part of another."""
        leaving = self.home == gone
        self.shares[self.home == kept] *= 1 - h
        self.shares[leaving] *= h
        self.home[leaving] = kept
        self.coef[kept] = coef
        self.places = np.delete(self.places, np.searchsorted(self.places, gone))
