"""From a full model, or from the labels alone, to a small one.

Part of the rows is kept for validation. The reducer makes models of growing size from the others, and their errors on the
validation rows decide which one is kept.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from .goals import Goal, OneVsOne
from .kernels import Array, Kernel, Matrix
from .limits import Deadline
from .model import Expansion, Fit, Holdout, Status, Task
from .pairs import PairTargets
from .path import Path, Step, sizes_up_to
from .progress import silent
from .reducers import REDUCERS
from .rows.homes import open_rows
from .rows.protocol import Meter, Rows

#: the sizes up to which a tolerance is looked for first; each further search goes four times as far
FIRST_REACH = 64
#: endings after which no further work is started
CUT_SHORT = (Status.INTERRUPTED, Status.TIME_LIMIT)


@dataclass(frozen=True)
class Selection:
    """Rows, labels and settings from which one model is selected; the validation rows are the same in every run."""

    X: Matrix
    labels: Array  # as the goal takes them
    weights: Array
    kernel: Kernel
    goal: Goal
    reducer: Any
    seed: int
    ids: Array  # the rows' numbers in the training set
    validation_fraction: float = 0.2
    device: str = "cpu"
    cache_mb: float = 512.0
    meter: Meter = field(default_factory=Meter)
    report: Callable[[str, float], None] = silent
    follow: bool = True  # whether the reducer sees the full model; otherwise it works from the labels alone

    def split(self) -> tuple[Array, Array]:
        """Return the training rows and the validation rows.

        Where there are too few rows, or rows of a class, to give some to both parts, both are all rows.
        """
        everything, fraction = np.arange(self.labels.size), self.validation_fraction
        needed, strata = math.ceil(1 / min(fraction, 1 - fraction)), self.goal.strata(self.labels)
        if min(np.unique(strata, return_counts=True)[1] if strata is not None else [everything.size]) < needed:
            return everything, everything
        train, validation = train_test_split(everything, test_size=fraction, stratify=strata, random_state=self.seed)
        return np.sort(train), np.sort(validation)

    def rows(self, index: Array, error: float = np.inf) -> Rows:
        """Return some of the rows in the home of the device, with kernel values to within `error`."""
        return open_rows(
            self.kernel,
            self.X,
            device=self.device,
            meter=self.meter,
            cache_mb=self.cache_mb,
            error=error,
            ids=self.ids[index],
            index=None if index.size == self.labels.size else index,
        )

    def task(
        self, train: Array, validation: Array | None = None, error: float = np.inf, targets: PairTargets | None = None
    ) -> Task:
        """Return the task on some of the rows, with others for validation; targets are written out by default."""
        return Task(
            rows=self.rows(train, error),
            targets=self.goal.encode(self.labels[train]) if targets is None else targets,  # type: ignore[arg-type]
            weights=self.weights[train],
            rng=np.random.default_rng(self.seed),
            holdout=None if validation is None else self.holdout(validation),
            report=self.report,
            goal=self.goal,
        )

    def whole(self, error: float = np.inf) -> Task:
        """Return the task on all rows."""
        return self.task(np.arange(self.labels.size), error=error)

    def training(self, trainer: Any, error: float) -> Task:
        """Return the task on all rows for a trainer, without the zeros of pairs of classes where it needs none."""
        pairs = isinstance(self.goal, OneVsOne) and self.goal.outputs > 1 and getattr(trainer, "takes_pairs", False)
        targets = PairTargets(self.labels, self.goal.n_classes) if pairs else None
        return self.task(np.arange(self.labels.size), error=error, targets=targets)

    def holdout(self, validation: Array) -> Holdout:
        """Return the validation rows with their labels and weights."""
        return Holdout(self.rows(validation), self.labels[validation], self.weights[validation], self.goal)

    def validation_error(self, model: Expansion) -> float:
        """Return the error of a full model on the validation rows."""
        if not self.goal.labelled:
            return 0.0  # the others are compared with this one
        return self.holdout(self.split()[1]).judge(model).error

    def following(self, full: Expansion) -> Selection:
        """Return the selection with the full model's scores as labels, where rows have none of their own."""
        if self.goal.labelled:
            return self
        scores = full.on(self.rows(np.arange(self.labels.size))).ravel()
        variance = float(np.cov(scores, aweights=self.weights, ddof=0)) or 1.0
        return replace(self, labels=scores, goal=replace(self.goal, variance=variance))  # type: ignore[type-var]

    def baseline(self, trainer: Any, error: float) -> tuple[float, Array | None]:
        """Return the full model's validation error, and coefficients from which training on all rows can start.

        The error is that of a model which was trained without the validation rows.
        """
        if not self.goal.labelled:
            return 0.0, None  # the full model is what the others are compared with
        train, validation = self.split()
        part: Fit = trainer.fit(self.task(train, error=error))
        start = None
        if part.dual is not None:
            start = np.zeros((self.labels.size, self.goal.outputs))
            start[train] = part.dual
        return self.holdout(validation).judge(part.model).error, start

    def select(self, full: Expansion, budget: Any, allowed: float | None) -> tuple[Expansion, Path | None]:
        """Return the model to keep and the path it is from.

        With an error `allowed`, that is the smallest model within it and the budget; otherwise the best within the budget.
        It is the full model, without a path, where that is within the budget or nothing smaller is good enough. After
        Ctrl-C the status of the path is INTERRUPTED, and the model is the best so far.
        """
        limit = resolve_budget(budget, full.size)
        if (limit is None and allowed is None) or full.size < 2:
            return full, None
        full = full.written_out() if self.follow else full  # as reducers take it
        selection = self.following(full)
        if allowed is None:
            return selection.best(limit or 1, full)
        return selection._smallest(full, limit, allowed)

    def best(self, limit: int, full: Expansion | None) -> tuple[Expansion, Path]:
        """Return the best model of at most `limit` points, and its path: from the full model, or from the labels alone."""
        deadline = Deadline(self.reducer.time_limit)
        path = self._path(self.reducer, self.task(*self.split()), limit, full)
        return self._finished(path, path.best(limit), full, deadline)

    def _smallest(self, full: Expansion, limit: int | None, allowed: float) -> tuple[Expansion, Path | None]:
        task, end = self.task(*self.split()), limit or full.size - 1
        reach, deadline = min(FIRST_REACH, end), Deadline(self.reducer.time_limit)
        while True:
            path = self._path(replace(self.reducer, time_limit=deadline.left), task, reach, full)
            step = path.within(allowed)
            if step is not None:
                return self._finished(path, step, full, deadline)
            if reach == end or path.status in CUT_SHORT:
                break
            reach = min(4 * reach, end)
        if path.status is Status.INTERRUPTED:
            return (full if limit is None else path.best(limit).model), path
        kept = "the full model is returned" if limit is None else f"the best of at most {limit} is returned"
        warnings.warn(
            f"no model of at most {reach} support vectors has the validation error allowed, {allowed:.4g}; {kept}. "
            "Raise tolerance or budget, or try another reducer",
            UserWarning,
            stacklevel=2,
        )
        return (full, None) if limit is None else self._finished(path, path.best(limit), full, deadline)

    def _path(self, reducer: Any, task: Task, limit: int, full: Expansion | None) -> Path:
        """Return the reducer's path to `limit`, with a warning where the time limit cut it short."""
        check_kernel(reducer, self.kernel)
        path = reducer.path(task, sizes_up_to(limit, reducer.sizes_per_doubling), full if self.follow else None)
        if path.status is Status.TIME_LIMIT:
            warnings.warn(
                f"{type(reducer).__name__} {path.status.value}. The largest model that it found has {path.sizes[-1]} "
                f"support vectors; {limit} were asked for",
                ConvergenceWarning,
                stacklevel=2,
            )
        return path

    def _finished(self, path: Path, step: Step, full: Expansion | None, deadline: Deadline) -> tuple[Expansion, Path]:
        """Return the model of a step, fitted to all rows by reducers that do so, and the path.

        The fit is skipped after Ctrl-C or a time limit. Ctrl-C during the fit keeps the step's model and marks the path.
        """
        if not self.reducer.finishes or path.status in CUT_SHORT or deadline.over:
            return step.model, path
        reducer = replace(self.reducer, time_limit=deadline.left)
        try:
            return reducer.finished(self.whole(), step, full if self.follow else None), path
        except KeyboardInterrupt:
            return step.model, replace(path, status=Status.INTERRUPTED)


def check_selection(validation_fraction: Any, tolerance: Any) -> None:
    """Raise ValueError unless both are shares of rows."""
    if not isinstance(validation_fraction, Real) or not 0 < float(validation_fraction) < 1:
        raise ValueError(f"validation_fraction must be a share of the rows between 0 and 1, not {validation_fraction!r}")
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 <= float(tolerance) < 1):
        raise ValueError(f"tolerance must be a share of errors from 0 up to 1, such as 0.005, not {tolerance!r}")


def names_where(able: Callable[[Any], bool]) -> list[str]:
    """Return the names of the reducers for which `able` is true."""
    return sorted(name for name, kind in REDUCERS.items() if able(kind))


def check_kernel(reducer: Any, kernel: Kernel) -> None:
    """Raise ValueError where the method of a reducer is not defined for the kernel."""
    if not reducer.takes(kernel):
        raise ValueError(
            f"{type(reducer).__name__} does not work with the {kernel.name} kernel; the reducers that do are "
            f"{names_where(lambda kind: kind.takes(kernel))}"
        )


def resolve_budget(budget: Any, full_size: int) -> int | None:
    """Return the budget as a number of support vectors; None, with a warning, where the full model is within it."""
    if budget is None:
        return None
    limit = int(budget) if isinstance(budget, Integral) else max(1, round(budget * full_size))
    if limit < full_size:
        return limit
    warnings.warn(
        f"budget={budget} is not below the {full_size} support vectors of the full model, which is returned",
        UserWarning,
        stacklevel=2,
    )
    return None
