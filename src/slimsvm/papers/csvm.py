"""Condensed support vector machines: merge support vectors pair by pair, after training or during it.

Nguyen & Ho (2005, 2006) replace the two nearest support vectors of a class by one vector between them, again and again.
Nguyen, Matsumoto, Takishima & Hashimoto (2010) do so during training: a small working set receives rows that the current
model gets wrong, is trained, and is condensed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..kernels import RBF, Array, Kernel, stacked
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..reducers.prune import by_weight
from ..solvers.refit import Refit
from ..trainers.smo import SMO
from .merging import SCORES, Merging


@dataclass(frozen=True)
class CSVM(Reducer):
    """Replace two support vectors of a class by one until the budget is met; for the rbf kernel only.

    The new vector is the best one on the line between the two, with the coefficient of their projection onto it (see
    `solvers.merging`). `pairs` chooses the two: "nearest", as in the papers, or "cheapest", the pair whose merge moves w
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
        """Return whether the kernel is rbf: merging is defined for no other."""
        return isinstance(kernel, RBF)

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Merge down to the smallest size, then fit the models from the smallest to the largest."""
        full = model or CondensedTraining(self, task, sizes[-1]).run(deadline)
        merged = list(merged_models(task, sizes, full, self.pairs, deadline))
        refit = Refit.of(task, model, sizes[-1]) if self.refit else None
        origin = f"{full.size} {'support' if model else 'condensed'} vectors merged"
        for small, lost in reversed(merged):
            yield (refit(small), f"{origin}, refit") if refit else (small, f"{origin}, |w - w~| <= {lost:.3g}")
            if deadline.over:
                return


def merged_models(
    task: Task, sizes: Sequence[int], full: Expansion, pairs: str, deadline: Deadline
) -> Iterator[tuple[Expansion, float]]:
    """Yield the full model merged to each size, the largest first, with an upper bound on |w - w~|.

    After the deadline, it yields the points of the largest size with the largest coefficients, without a bound.
    """
    largest = min(sizes[-1], full.size)
    merging = Merging(task.rows, full.points, full.coef, classes_of(full.coef, task.targets), task.rng, pairs)
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

    def run(self, deadline: Deadline) -> Expansion:
        """Train and condense until all rows outside are beyond the margin, and return the model trained last."""
        firsts = np.unique(self.classes[self.outside], return_index=True)[1]  # at least one row of each class
        others = np.setdiff1d(np.arange(self.outside.size), firsts)
        chosen = np.concatenate([firsts, others[: self.capacity - firsts.size]])
        for _ in range(self.max_rounds):
            self.admit(chosen)
            rows = self.task.rows.of(self.points, cache=True)
            fit = self.trainer.fit(Task(rows, self.targets, self.weights, self.task.rng))
            chosen = self.within_margin(fit.model)
            if fit.dual is None or not chosen.size or deadline.over:
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
