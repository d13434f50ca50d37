"""Condensed support vector machines: support vectors merged pair by pair, after training or during it.

Nguyen & Ho (2005, 2006) replace the two nearest support vectors of a class by one vector between them, over and over.
Nguyen, Matsumoto, Takishima & Hashimoto (2010) do so while they train: a small working set takes in rows that the present
machine gets wrong, is trained, and is condensed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..kernels import RBF, Array, Kernel, stacked
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.host import HostRows
from ..solvers.demands import outputs
from ..solvers.merging import SCORES, Merging
from ..solvers.refit import Refit
from ..trainers import SMO
from .base import Models, Reducer
from .prune import by_weight


@dataclass(frozen=True)
class CSVM(Reducer):
    """Two support vectors of a class become one, until the budget is met; for the rbf kernel alone.

    The new vector is the best one on the line between the two, with the coefficient of its projection (see `merging`).
    `pairs` says which two: "nearest", as in the papers, or "cheapest", the two whose merger moves w least, which
    gives better points for few of them, as it does not leave lone outliers to the last. With several outputs a support
    vector belongs to the class whose targets its coefficients agree with most. When no class has two vectors left, two of
    different classes are merged.

    The papers keep the projected coefficients and the full model's bias, as `refit=False` does. These drift off by the
    sum of all merges; by default coefficients and bias of each wanted size are fitted to what the full model asks of the
    training rows, or to the labels where there is none (`Refit`). `CSVM(pairs="nearest", refit=False)` is the papers'.

    Without a full model the machine is trained here, with `C` and `tol`, on a working set of at most `working_set`
    condensed vectors and half as many new rows a round: train, keep the support vectors, merge the nearest of a class
    until they are few enough, take in rows within the margin (by chance) until there are none, or for `max_rounds`. A
    merged vector has the weight of all its rows. This follows the abstract of the 2010 paper; its rules for choosing
    rows and for stopping are not at hand, and these are ours.
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
        """The Gaussian kernel, whose merged points are known."""
        return isinstance(kernel, RBF)

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Merge down to the smallest size first, then fit the sizes from there up."""
        full = model or Condensing(self, task, sizes[-1]).run(deadline)
        merged = list(merged_models(task, sizes, full, self.pairs, deadline))
        fitted = Refit.of(task, model, sizes[-1]) if self.refit else None
        origin = f"{full.size} {'support' if model else 'condensed'} vectors merged"
        for small, lost in reversed(merged):
            yield (fitted(small), f"{origin}, refit") if fitted else (small, f"{origin}, |w - w~| <= {lost:.3g}")
            if deadline.over:
                return


def merged_models(
    task: Task, sizes: Sequence[int], full: Expansion, pairs: str, deadline: Deadline
) -> Iterator[tuple[Expansion, float]]:
    """The full model merged to each size, from the largest down, and bounds of |w - w~|.

    Out of time, the heaviest points of the largest size, and no bound.
    """
    kernel, largest = full.kernel, min(sizes[-1], full.size)
    assert isinstance(kernel, RBF)
    merging = Merging(kernel, full.points, full.coef, classes_of(full.coef, task.targets), task.rows.meter, task.rng, pairs)
    for size in sorted({min(size, full.size) for size in sizes}, reverse=True):
        while merging.size > size and not deadline.over:
            merging.merge()
        points, coef = merging.points(), merging.coef[merging.places]
        if merging.size == size:
            yield replace(full, points=points, coef=coef), merging.lost
        elif size == largest:
            kept = by_weight(coef, task.rng)[:size]
            yield replace(full, points=points[kept], coef=coef[kept]), np.inf


def classes_of(coef: Array, targets: Array) -> Array:
    """The class that each point speaks for: the one of whose targets its coefficients have the largest inner product."""
    codes = np.unique(targets, axis=0)
    if codes.shape[0] == 1:  # rows of one class: the other side is against it
        codes = np.vstack([codes, -codes])
    return (coef @ codes.T).argmax(axis=1)


class Condensing:
    """Training on a working set: its vectors with their targets, weights and row numbers (-1 once merged).

    `out` are the rows that are not in it, nor in one of its merged vectors, in an order by chance.
    """

    def __init__(self, settings: CSVM, task: Task, budget: int) -> None:
        self.task, self.trainer, self.max_rounds = task, SMO(settings.C, settings.tol), settings.max_rounds
        self.codes, self.classes = np.unique(task.targets, axis=0, return_inverse=True)
        self.room = max(settings.working_set, budget, 2 * self.codes.shape[0])
        self.points, self.targets = task.rows.X[:0], task.targets[:0]
        self.weights, self.rows = task.weights[:0], np.empty(0, dtype=np.intp)
        self.out = task.rng.permutation(task.rows.n)

    def run(self, deadline: Deadline) -> Expansion:
        """Rounds until all rows out are beyond the margin, and the machine trained last."""
        firsts = np.unique(self.classes[self.out], return_index=True)[1]  # one row of each class at least
        chosen = np.concatenate([firsts, np.setdiff1d(np.arange(self.out.size), firsts)[: self.room - firsts.size]])
        for _ in range(self.max_rounds):
            self.admit(chosen)
            gram = HostRows(self.task.rows.kernel, self.points, self.task.rows.meter)
            fit = self.trainer.fit(Task(gram, self.targets, self.weights, self.task.rng))
            chosen = self.within_margin(fit.model)
            if fit.dual is None or not chosen.size or deadline.over:
                break
            self.condense(fit.dual)
        return fit.model

    def admit(self, chosen: Array) -> None:
        """Take in rows, by their numbers among those out."""
        rows = self.out[chosen]
        self.out = np.delete(self.out, chosen)
        self.points = stacked(self.points, self.task.rows.X[rows])
        self.targets = np.vstack([self.targets, self.task.targets[rows]])
        self.weights, self.rows = np.append(self.weights, self.task.weights[rows]), np.append(self.rows, rows)

    def within_margin(self, model: Expansion) -> Array:
        """Rows out with an output below its target by more than tol, at most half a working set of them."""
        if not self.out.size:
            return self.out
        margins = self.task.targets[self.out] * outputs(self.task.rows.subset(self.out), model)
        short = (margins < 1 - self.trainer.tol) & (self.task.targets[self.out] != 0)
        return np.flatnonzero(short.any(axis=1))[: self.room // 2]

    def condense(self, dual: Array) -> None:
        """Send rows that are no support vectors out again, and merge the other vectors until there is room."""
        support = dual.any(axis=1) | (self.rows < 0)  # the rows of a merged vector could not come back
        self.out = np.append(self.out, self.rows[~support])
        kernel, rng = self.task.rows.kernel, self.task.rng
        assert isinstance(kernel, RBF)
        groups = (self.targets[support][:, None] == self.codes).all(axis=2).argmax(axis=1)
        merging = Merging(kernel, self.points[support], dual[support], groups, self.task.rows.meter, rng)
        while merging.size > self.room:
            merging.merge()
        kept = merging.places
        whole = np.bincount(merging.home, minlength=merging.home.size)[kept] == 1
        self.points, self.targets = merging.points(), self.targets[support][kept]
        self.weights = np.bincount(merging.home, self.weights[support])[kept]
        self.rows = np.where(whole, self.rows[support][kept], -1)
