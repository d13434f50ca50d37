"""The problem from which one model is selected: rows, labels and weights, and their division into folds and tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..goals import Goal, OneVsOne, OneVsRest
from ..goals.values import variance_of
from ..kernels import Array, Kernel, Matrix
from ..model import Expansion, Holdout, Task
from ..pairs import PairTargets
from ..rows.homes import open_rows
from ..rows.protocol import Meter, Rows
from ..run import BY_ITSELF, Run
from .folds import Splits, fold_rows

#: the most targets of pairs of classes, 2 GiB
MOST_TARGETS = 1 << 28


@dataclass(frozen=True)
class Home:
    """Where rows are kept and kernels evaluated, and the count of evaluations."""

    device: str = "cpu"
    cache_mb: float = 512.0
    meter: Meter = field(default_factory=Meter)


@dataclass(frozen=True)
class Problem:
    """Rows with their labels; the validation rows are the same in every run."""

    X: Matrix
    labels: Array  # in the form of the goal
    weights: Array
    kernel: Kernel
    goal: Goal
    seed: int
    ids: Array  # the rows' numbers in the training set
    splits: Splits = field(default_factory=Splits)
    home: Home = field(default_factory=Home)
    probabilities: Array | None = None  # (n, k): what small models are fitted to in place of labels
    full_outputs: Array | None = None  # (n, q), those of the full model that small ones follow, if they are known
    run: Run = BY_ITSELF  # whom all work tells how far it is, when it must end, and where its states are saved

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.labels.shape[0])

    @property
    def strata(self) -> Array:
        """The class of each row; 0 without classes."""
        strata = self.goal.strata(self.labels)
        return np.zeros(self.n, dtype=np.intp) if strata is None else strata

    def split(self) -> tuple[Array, Array]:
        """Return the training rows and the validation rows; a class with too few rows is in both."""
        return self.fold_rows()[0]

    def fold_rows(self) -> list[tuple[Array, Array]]:
        """Return the training rows and the validation rows of each fold."""
        if self.splits.held_out:
            rows = np.arange(self.n)
            return [(rows[: -self.splits.held_out], rows[-self.splits.held_out :])]
        return fold_rows(self.strata, self.splits.fraction, self.seed, self.splits.most_folds)

    def within(self, name: str) -> Problem:
        """Return the problem whose tasks save their states under this name."""
        return replace(self, run=self.run.within(name))

    def rows(self, index: Array, error: float = np.inf) -> Rows:
        """Return some of the rows in the home of the device, with kernel values to within `error`."""
        return open_rows(
            self.kernel,
            self.X,
            device=self.home.device,
            meter=self.home.meter,
            cache_mb=self.home.cache_mb,
            error=error,
            ids=self.ids[index],
            index=None if index.size == self.n else index,
        )

    def task(
        self, train: Array, holdout: Holdout | None = None, error: float = np.inf, targets: PairTargets | None = None
    ) -> Task:
        """Return the task on some of the rows, with others for validation; targets are written out by default."""
        return Task(
            rows=self.rows(train, error),
            targets=self._targets(train) if targets is None else targets,  # type: ignore[arg-type]
            weights=self.weights[train],
            rng=np.random.default_rng(self.seed),
            holdout=holdout,
            goal=self.goal,
            run=self.run,
            full_outputs=None if self.full_outputs is None else self.full_outputs[train],
        )

    def _targets(self, train: Array) -> Array:
        """Return the targets of some rows, written out; pairs of very many classes would take too much memory."""
        if isinstance(self.goal, OneVsOne) and train.size * self.goal.outputs > MOST_TARGETS:
            raise ValueError(
                f"small models with an output for each pair of {self.goal.n_classes:,} classes need {self.goal.outputs:,} "
                f"targets for each of {train.size:,} rows, more than {MOST_TARGETS >> 27} GiB; give multiclass='ovr', "
                "which has an output for each class"
            )
        if self.probabilities is not None and isinstance(self.goal, OneVsRest):
            return self.goal.targets_of(self.probabilities[train])
        return self.goal.encode(self.labels[train])

    def training(self, trainer: Any, error: float) -> Task:
        """Return the task on all rows for a trainer, without the zeros of pairs of classes if it takes `PairTargets`."""
        pairs = isinstance(self.goal, OneVsOne) and self.goal.outputs > 1 and trainer.takes_pairs
        targets = PairTargets(self.labels, self.goal.n_classes) if pairs else None
        return self.within("training").task(np.arange(self.n), error=error, targets=targets)

    def following(self, full: Expansion) -> Problem:
        """Return the problem with the full model's scores as labels, if rows have none of their own."""
        if self.goal.labelled:
            return self
        scores = self.goal.scores(full.on(self.rows(np.arange(self.n))))
        variance = variance_of(scores, self.weights)
        return replace(self, labels=scores, goal=replace(self.goal, variance=variance))  # type: ignore[type-var]
