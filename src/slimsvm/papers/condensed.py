"""Condensed support vector machines: merge support vectors pair by pair, after training or during it.

Nguyen & Ho (2005, 2006) replace the two nearest support vectors of a class by one vector between them, again and again.
Nguyen, Matsumoto, Takishima & Hashimoto (2010) do so during training: a small working set receives rows that the current
model gets wrong, is trained, and is condensed again.

Two points with coefficients c_p and c_j are replaced by z = h z_p + (1 - h) z_j with the coefficient c_p u + c_j v, where

    u = k(z_p, z) = exp(-D (1 - h)^2),   v = k(z_j, z) = exp(-D h^2),   D = gamma |z_p - z_j|^2.

The share h maximises that coefficient, the length of the pair's projection onto z. Any other point x is at the distance
D(x, z) = h D(x, z_p) + (1 - h) D(x, z_j) - h (1 - h) D, so a merge needs no new kernel values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from .._core import core
from ..kernels import RBF, Array, Kernel, Matrix, stacked
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..reducers.prune import by_weight
from ..rows.protocol import Rows
from ..solvers.basis import Refit
from ..trainers.smo import SMO

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


@dataclass(frozen=True)
class CSVM(Reducer):
    """Replace two support vectors of a class by one until the budget is met; for the rbf kernel only.

    The new vector is the best one on the line between the two, with the coefficient of their projection onto it (see
    `papers.condensed`). `pairs` chooses the two: "nearest", as in the papers, or "cheapest", the pair whose merge moves w
    least. The latter gives better models of few points, since it does not keep isolated outliers to the end. With several
    outputs, a support vector belongs to the class whose targets its coefficients agree with most. Vectors of different
    classes are merged only when no class has two left.

    The papers keep the projected coefficients and the full model's bias, as `refit=False` does. Their error grows with each
    merge. By default, coefficients and bias of each size are fitted to the full model's margins on the training rows, or to
    the labels where there is no full model. `CSVM(pairs="nearest", refit=False)` is the papers' method.

    Without a full model, CSVM trains one itself, with `C` and `tol`, on a working set of at most `working_set` vectors. A
    round trains on the working set, keeps the support vectors, merges the nearest of a class until they are few enough, and
    adds random rows that are within the margin, half a working set at most. It ends when no row is within the margin, or
    after `max_rounds`. A merged vector has the sum of its rows' weights. This follows the abstract of the 2010 paper, whose
    rules for choosing rows and for stopping were not available; the rules here are our own.
    """

    C: float = 1.0
    tol: float = 1e-3
    pairs: str = "cheapest"
    refit: bool = True
    working_set: int = 1000
    max_rounds: int = 100
    needs_model: ClassVar[bool] = False
    selects: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pairs not in SCORES:
            raise ValueError(f"unknown pairs {self.pairs!r}; there are {list(SCORES)}")
        for name, least in (("working_set", 2), ("max_rounds", 1)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be {least} or more, not {getattr(self, name)!r}")

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        return isinstance(kernel, RBF)

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Merge down to the smallest size, then fit the models from the smallest to the largest."""
        full = model or CondensedTraining(self, task, sizes[-1]).run()
        merged = list(merged_models(task, sizes, full, self.pairs))
        refit = Refit.of(task, model, sizes[-1]) if self.refit else None
        origin = f"{full.size} {'support' if model else 'condensed'} vectors merged"
        for small, lost in reversed(merged):
            yield (refit(small), f"{origin}, refit") if refit else (small, f"{origin}, |w - w~| <= {lost:.3g}")
            if task.run.over:
                return


def merged_models(task: Task, sizes: Sequence[int], full: Expansion, pairs: str) -> Iterator[tuple[Expansion, float]]:
    """Yield the full model merged to each size, the largest first, with an upper bound on |w - w~|.

    After the deadline, it yields the points of the largest size with the largest coefficients, without a bound.
    """
    largest = min(sizes[-1], full.size)
    merging = Merging(task.rows, full.points, full.coef, classes_of(full.coef, task.targets), task.rng, pairs)
    for size in sorted({min(size, full.size) for size in sizes}, reverse=True):
        while merging.size > size and not task.run.over:
            merging.merge()
        points, coef = merging.points(), merging.coef[merging.places]
        if merging.size == size:
            yield replace(full, points=points, coef=coef), merging.lost
        elif size == largest:
            kept = by_weight(coef, task.rng)[:size]
            yield replace(full, points=points[kept], coef=coef[kept]), np.inf


def classes_of(coef: Array, targets: Array) -> Array:
    """Return the class of each point: the one whose targets have the largest inner product with its coefficients."""
    codes = np.unique(targets, axis=0)
    if codes.shape[0] == 1:  # with rows of one class, coefficients of the other sign are a class too
        codes = np.vstack([codes, -codes])
    return (coef @ codes.T).argmax(axis=1)


class CondensedTraining:
    """Training on a working set of rows and merged vectors.

    `points`, `targets` and `weights` are the working set; `numbers` has the number of each row in it, and -1 for a merged
    vector. `outside` has the numbers of the rows that are neither in the working set nor part of a merged vector, in random
    order.
    """

    def __init__(self, settings: CSVM, task: Task, budget: int) -> None:
        self.task, self.trainer, self.max_rounds = task, SMO(settings.C, settings.tol), settings.max_rounds
        self.codes, self.classes = np.unique(task.targets, axis=0, return_inverse=True)
        self.capacity = max(settings.working_set, budget, 2 * self.codes.shape[0])
        self.numbers = np.empty(0, dtype=np.intp)
        self.points, self.targets, self.weights = task.rows.take(self.numbers), task.targets[:0], task.weights[:0]
        self.outside = task.rng.permutation(task.rows.n)

    def run(self) -> Expansion:
        """Train and condense until all rows outside are beyond the margin, and return the model trained last."""
        firsts = np.unique(self.classes[self.outside], return_index=True)[1]  # at least one row of each class
        others = np.setdiff1d(np.arange(self.outside.size), firsts)
        chosen = np.concatenate([firsts, others[: self.capacity - firsts.size]])
        for _ in range(self.max_rounds):
            self.admit(chosen)
            rows = self.task.rows.of(self.points, cache=True)
            fit = self.trainer.fit(Task(rows, self.targets, self.weights, self.task.rng))
            chosen = self.within_margin(fit.model)
            if fit.dual is None or not chosen.size or self.task.run.over:
                break
            self.condense(fit.dual)
        return fit.model

    def admit(self, chosen: Array) -> None:
        """Add rows to the working set, by their places in `outside`."""
        numbers = self.outside[chosen]
        self.outside = np.delete(self.outside, chosen)
        self.points = stacked(self.points, self.task.rows.take(numbers))
        self.targets = np.vstack([self.targets, self.task.targets[numbers]])
        self.weights, self.numbers = np.append(self.weights, self.task.weights[numbers]), np.append(self.numbers, numbers)

    def within_margin(self, model: Expansion) -> Array:
        """Return places in `outside` of rows with a margin below 1 - tol, at most half the working set's capacity."""
        if not self.outside.size:
            return self.outside
        targets = self.task.targets[self.outside]
        margins = targets * model.on(self.task.rows.subset(self.outside))
        short = (margins < 1 - self.trainer.tol) & (targets != 0)
        return np.flatnonzero(short.any(axis=1))[: self.capacity // 2]

    def condense(self, dual: Array) -> None:
        """Move rows that are no support vectors outside, and merge the other vectors down to the capacity."""
        support = dual.any(axis=1) | (self.numbers < 0)  # a merged vector stays: its rows cannot be added again
        self.outside = np.append(self.outside, self.numbers[~support])
        groups = (self.targets[support][:, None] == self.codes).all(axis=2).argmax(axis=1)
        merging = Merging(self.task.rows, self.points[support], dual[support], groups, self.task.rng)
        while merging.size > self.capacity:
            merging.merge()
        kept = merging.places
        single = np.bincount(merging.merged_into, minlength=merging.merged_into.size)[kept] == 1
        self.points, self.targets = merging.points(), self.targets[support][kept]
        self.weights = np.bincount(merging.merged_into, self.weights[support])[kept]
        self.numbers = np.where(single, self.numbers[support][kept], -1)
