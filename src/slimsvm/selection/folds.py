"""Training and validation rows: one split where rows are many, several folds where they are few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Judgement, Status, Task
from .path import Path, Step, averaged, merge

#: folds are added until there are ENOUGH_ROWS validation rows or MOST_FOLDS folds. More of either: less noise in the errors
#: that choose the model, and more time
ENOUGH_ROWS, MOST_FOLDS = 1000, 3
#: the same where a tolerance is compared with the errors: every one of few rows is then a validation row
MOST_FOLDS_FOR_TOLERANCE = 5
#: endings after which no further work is started
CUT_SHORT = (Status.INTERRUPTED, Status.TIME_LIMIT)


@dataclass(frozen=True)
class Splits:
    """How validation rows are found: a fraction of the rows in up to so many folds, or some of the last ones."""

    fraction: float = 0.2
    held_out: int = 0  # so many of the last rows are the validation rows; 0: they are drawn
    most_folds: int = MOST_FOLDS


def split_rows(strata: Array, fraction: float, seed: int) -> tuple[Array, Array]:
    """Return the training rows and the validation rows, with the same share of each stratum.

    A stratum with too few rows for both parts is in both of them.
    """
    scarce = scarce_rows(strata, fraction)
    ample = np.flatnonzero(~scarce)
    if not ample.size:
        return np.arange(strata.size), np.arange(strata.size)
    train, validation = train_test_split(ample, test_size=float(fraction), stratify=strata[ample], random_state=seed)
    both = np.flatnonzero(scarce)
    return np.sort(np.concatenate([train, both])), np.sort(np.concatenate([validation, both]))


def scarce_rows(strata: Array, fraction: float) -> Array:
    """Return which rows are in strata with too few rows for both parts."""
    _, places, counts = np.unique(strata, return_inverse=True, return_counts=True)
    return counts[places] < math.ceil(1 / min(fraction, 1 - fraction))


def fold_rows(strata: Array, fraction: float, seed: int, most_folds: int = MOST_FOLDS) -> list[tuple[Array, Array]]:
    """Return pairs of training and validation rows: the split, and more folds until validation rows are enough.

    No row is a validation row of two folds, except in strata that are too small to be split.
    """
    train, validation = split_rows(strata, fraction, seed)
    possible = int(1 / fraction + 1e-9)
    count = min(possible, most_folds, math.ceil(ENOUGH_ROWS / validation.size))
    both = np.intersect1d(train, validation)
    rest = np.setdiff1d(train, both)
    if count < 2 or not rest.size:
        return [(train, validation)]
    shuffled = np.random.default_rng(seed).permutation(rest)
    # sorted by class, so that each class is spread evenly over the folds
    dealt = shuffled[np.argsort(strata[shuffled], kind="stable")]
    folds = [(train, validation)]
    for fold in range(count - 1):
        chosen = dealt[fold :: possible - 1]
        folds.append((np.setdiff1d(np.arange(strata.size), chosen), np.union1d(chosen, both)))
    return folds


@dataclass
class FoldPaths:
    """The paths of one reducer on several folds of the rows, and their average.

    `full` is the full model of all rows. `fulls`, if given, are full models of each fold's training rows: small models that
    follow them have not seen the validation rows.
    """

    reducer: Any
    full: Expansion | None
    deadline: Deadline
    tasks: list[Task]
    fulls: Sequence[Expansion] = ()
    paths: list[Path] = field(default_factory=list)
    status: Status = Status.CONVERGED

    def extend(self, sizes: list[int], count: int | None = None) -> Path:
        """Run the reducer on those of the first `count` folds that have no path yet, and return the average.

        The status is that of the first path. Later paths that Ctrl-C or the time limit cut short are not counted.
        """
        for number, task in list(enumerate(self.tasks))[len(self.paths) : count]:
            reducer, first = replace(self.reducer, time_limit=self.deadline.left), not self.paths
            try:
                path = reducer.path(task, sizes, self._full_of(number))
            except (KeyboardInterrupt, TimeoutError) as stop:
                if first:
                    raise
                self.status = Status.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else self.status
                break
            self.status = path.status if first or path.status is Status.INTERRUPTED else self.status
            if first or path.status not in CUT_SHORT:
                self.paths.append(path)
            if path.status in CUT_SHORT:
                break
        return self.average

    def insert(self, size: int) -> Path:
        """Add a model of one more size to each path, grown from the next smaller one, and return the average."""
        reducer = replace(self.reducer, time_limit=self.deadline.left)

        def added(number: int, path: Path) -> Path:
            task, lower = self.tasks[number], path.up_to(size)
            model = reducer.between(task, lower, size, self._full_of(number))
            step = Step.judged(model, lower.made, task.judge(model))
            return merge([path, Path((step,), path.status)], path.status, path.n_validation)

        self.paths = [added(number, path) for number, path in enumerate(self.paths)]
        return self.average

    def _full_of(self, number: int) -> Expansion | None:
        return self.fulls[number] if self.fulls else self.full

    @property
    def average(self) -> Path:
        """The models of the first fold with the errors of all folds that have a path."""
        return replace(averaged(self.paths, shares_of(self.tasks[: len(self.paths)])), status=self.status)


def shares_of(tasks: list[Task]) -> Array:
    """Return the share of each task's validation rows, by weight."""
    totals = np.array([task.holdout.weights.sum() if task.holdout else 0.0 for task in tasks])
    return totals / totals.sum()


def judge_folds(tasks: list[Task], model_of: Callable[[int], Expansion]) -> Judgement:
    """Return the average judgement of the models of the folds."""
    return Judgement.mean([task.judge(model_of(number)) for number, task in enumerate(tasks)], shares_of(tasks))
