"""From a full model, or from the labels alone, to a small one: hold rows out, walk the reducer's path, choose along it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from .kernels import Array, Kernel, Matrix
from .limits import Deadline
from .model import Expansion, Holdout, Status, Task, silent
from .multiclass import OneVsOne, OneVsRest
from .path import Path, Step, sizes_up_to
from .reducers import REDUCERS
from .rows.host import HostRows
from .rows.protocol import Meter, Rows

#: the share of rows that judge, and the rows that a class needs for a part of them to be spared
HOLDOUT, ROWS_TO_SPARE = 0.2, 5
#: how a path ends that somebody or something cut short
CUT_SHORT = (Status.INTERRUPTED, Status.TIME_LIMIT)


@dataclass(frozen=True)
class Shrinking:
    """Rows, labels and settings for one model to be shrunk; the same rows are held out in every run."""

    X: Matrix
    labels: Array  # class numbers
    weights: Array
    kernel: Kernel
    coding: OneVsRest | OneVsOne
    reducer: Any
    seed: int
    ids: Array  # the rows' numbers in the training set
    meter: Meter = field(default_factory=Meter)
    cache_mb: float = 512.0
    report: Callable[[str, float], None] = silent

    def split(self) -> tuple[Array, Array]:
        """Rows to learn from and rows to judge by; few rows do both."""
        everything = np.arange(self.labels.size)
        if np.unique(self.labels, return_counts=True)[1].min() < ROWS_TO_SPARE:
            return everything, everything
        learn, judge = train_test_split(everything, test_size=HOLDOUT, stratify=self.labels, random_state=self.seed)
        return np.sort(learn), np.sort(judge)

    def task(self, rows: Array, judges: Array | None = None, error: float = np.inf) -> Task:
        """The task on some of the rows, judged by others."""
        return Task(
            rows=self.home(rows, error),
            targets=self.coding.encode(self.labels[rows]),
            weights=self.weights[rows],
            rng=np.random.default_rng(self.seed),
            holdout=None if judges is None else self.holdout(judges),
            report=self.report,
        )

    def holdout(self, judges: Array) -> Holdout:
        """The rows that judge, and how."""
        return Holdout(self.home(judges), self.labels[judges], self.weights[judges], self.coding.decode)

    def home(self, rows: Array, error: float = np.inf) -> Rows:
        """Return some of the rows with their kernel, with values to within `error`."""
        index = None if rows.size == self.labels.size else rows
        return HostRows(self.kernel, self.X, self.meter, self.cache_mb, error, self.ids[rows], index=index)

    def error(self, model: Expansion) -> float:
        """The error of a model on the rows that judge."""
        _, judges = self.split()
        return self.holdout(judges).error(model)

    def shrink(self, full: Expansion, budget: Any, allowed: float | None) -> tuple[Expansion, Path | None]:
        """The best model within the budget, or the smallest with at most the error allowed, and the path it is from.

        The full model, and no path, where it fits the budget itself or nothing smaller is good enough.
        """
        limit = resolve_budget(budget, full.size)
        if (limit is None and allowed is None) or full.size < 2:
            return full, None
        if allowed is None:
            return self.best(limit or 1, full)
        return self._smallest(self.task(*self.split()), full, limit, allowed)

    def best(self, limit: int, full: Expansion | None) -> tuple[Expansion, Path]:
        """The best model of at most `limit` points, and its path: from the full model, or from the labels alone."""
        deadline = Deadline(self.reducer.time_limit)
        path = self._path(self.reducer, self.task(*self.split()), limit, full)
        return self._finished(path, path.best(limit), full, deadline), path

    def _finished(self, path: Path, step: Step, full: Expansion | None, deadline: Deadline) -> Expansion:
        """The model of a step, fitted to all rows by reducers that do so; not where somebody waits for the end."""
        if not self.reducer.finishes or path.status in CUT_SHORT or deadline.over:
            return step.model
        reducer = replace(self.reducer, time_limit=deadline.left)
        try:
            return reducer.finished(self.task(np.arange(self.labels.size)), step, full)
        except KeyboardInterrupt:
            return step.model

    def _path(self, reducer: Any, task: Task, limit: int, full: Expansion | None) -> Path:
        """The reducer's path to `limit`; a warning where it was cut short."""
        check_kernel(reducer, self.kernel)
        path = reducer.path(task, sizes_up_to(limit, reducer.sizes_per_doubling), full)
        if path.status in CUT_SHORT:
            warnings.warn(
                f"{type(reducer).__name__} {path.status.value}. The largest model that it found has {path.sizes[-1]} "
                f"support vectors; {limit} were asked for",
                ConvergenceWarning,
                stacklevel=2,
            )
        return path

    def _smallest(self, task: Task, full: Expansion, limit: int | None, allowed: float) -> tuple[Expansion, Path | None]:
        end = limit or full.size - 1
        reach, deadline = min(64, end), Deadline(self.reducer.time_limit)
        while True:
            path = self._path(replace(self.reducer, time_limit=deadline.left), task, reach, full)
            step = path.within(allowed)
            if step is not None:
                return self._finished(path, step, full, deadline), path
            if reach == end or path.status in CUT_SHORT:
                break
            reach = min(4 * reach, end)
        kept = "the full model is returned" if limit is None else f"the best of at most {limit} is returned"
        warnings.warn(
            f"no model of at most {reach} support vectors has the held-out error allowed, {allowed:.4g}; {kept}. "
            "Raise tolerance or budget, or try another reducer",
            UserWarning,
            stacklevel=2,
        )
        return (full, None) if limit is None else (self._finished(path, path.best(limit), full, deadline), path)


def check_budget(budget: Any, tolerance: Any) -> None:
    """Raise ValueError unless budget is a count or a fraction and tolerance a share of errors, or None."""
    whole = isinstance(budget, Integral) and not isinstance(budget, bool) and int(budget) >= 1
    fraction = isinstance(budget, Real) and not isinstance(budget, Integral) and 0 < float(budget) < 1
    if budget is not None and not whole and not fraction:
        raise ValueError(
            f"budget must be a number of support vectors (1, 2, ...) or a fraction of the full model's between 0 and 1, "
            f"not {budget!r}"
        )
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 <= float(tolerance) < 1):
        raise ValueError(f"tolerance must be a share of errors from 0 up to 1, such as 0.005, not {tolerance!r}")


def names_where(able: Callable[[Any], bool]) -> list[str]:
    """The names in REDUCERS of those that can."""
    return sorted(name for name, kind in REDUCERS.items() if able(kind))


def check_kernel(reducer: Any, kernel: Kernel) -> None:
    """Raise ValueError where the method of a reducer is not defined for the kernel."""
    if not reducer.takes(kernel):
        raise ValueError(
            f"{type(reducer).__name__} does not work with the {kernel.name} kernel; the reducers that do are "
            f"{names_where(lambda kind: kind.takes(kernel))}"
        )


def check_no_model(reducer: Any, budget: Any, tolerance: Any) -> None:
    """Raise ValueError where the reducer, the budget or the tolerance needs the full model that trainer=None leaves out."""
    if reducer.needs_model:
        raise ValueError(
            f"trainer=None leaves {type(reducer).__name__} without the full model that it shrinks; the reducers that work "
            f"from the labels alone are {names_where(lambda kind: not kind.needs_model)}. Give one of them, or a trainer"
        )
    if tolerance is not None:
        raise ValueError(
            f"trainer=None has no full model whose error tolerance={tolerance!r} could be compared with; give a budget "
            "alone, or a trainer"
        )
    if not isinstance(budget, Integral):
        raise ValueError(
            f"trainer=None has no full model to keep whole or to take a fraction of, and needs a number of support "
            f"vectors; budget is {budget!r}. Give budget=16, say, or a trainer"
        )


def resolve_budget(budget: Any, full_size: int) -> int | None:
    """The budget as a number of support vectors; None, with a warning, where the full model fits it."""
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
