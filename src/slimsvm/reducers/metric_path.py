"""One path of slim with a learned metric: the searches, the models made so far, and the state to continue from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..keeping import PartKeeper, Saved, StateError
from ..kernels import Array
from ..made import Made
from ..metric import Metric
from ..model import Expansion, Status, Task
from ..run import Run
from ..solvers.metric_search import with_objective
from ..solvers.point_search import Objective, known_objectives, objective_of

if TYPE_CHECKING:
    from .slim import Slim

#: with a time limit: the share of the time for initial points, which have the fixed metric, and the share after which
#: sizes below the largest are skipped. More: better small models, less time for the largest
FIRST_SECONDS, MOST_ON_THE_WAY = 0.15, 0.35
#: the same share if the largest model starts from one with the fixed metric, and the share of the time then left for that
#: start. More: a better start
LESS_ON_THE_WAY, START_SECONDS = 0.15, 0.35
#: the most rows for models of the fixed metric, which are only starts
START_ROWS = 1 << 15
#: passes over the rows that the time must allow for a fixed start of the largest model. More: mini-batches alone for longer
ENOUGH_PASSES = 300


class MetricRun:
    """A run in which a model grows with its metric.

    The smallest sizes start with the fixed metric, which tries several initial points. So does the last size if the fixed
    model has the lower loss: its coefficients are the best ones at every step, which mini-batches are slow to find.
    """

    def __init__(self, slim: Slim, task: Task, sizes: Sequence[int], objectives: list[Objective], kind: str) -> None:
        self.slim, self.task, self.sizes, self.objectives = slim, task, sizes, objectives
        self.run = task.run.within(f"metric path to {sizes[-1]}")
        schedule = slim.schedule
        compares = len(objectives) > 1 and task.n_validation > 0
        self.compare_at = min(schedule.compare_at, sizes[-1]) if compares else 0  # 0: the target is known
        largest = max(schedule.several_starts_up_to, self.compare_at)
        some = replace(task.part(task.sample(START_ROWS)), run=task.run.share(FIRST_SECONDS))
        self.fixed = slim._search(some, largest, objectives[0])
        self.search = slim._metric_search(task, objectives[0], kind)
        large = sizes[-1] > schedule.several_starts_up_to
        self.begins_fixed = large and self._has_time_to_begin_fixed()  # whether the last size does
        self.made: list[tuple[Expansion, Made]] = []
        self.tried = 0  # sizes that were made or skipped
        self.inside = Saved(None)  # the state of the descent of the last size
        saved = self.run.keeper.saved()
        if saved is not None:
            self._restore(Saved(saved))

    def _has_time_to_begin_fixed(self) -> bool:
        """Return whether the last size may begin with the fixed metric: where the time is short, mini-batches need it all.

        With several outputs and few rows it always does, since mini-batches are slow to find many coefficients. So it does
        with few rows on a device, whose time for a pass is not known.
        """
        passes = self.search.passes_left(self.sizes[-1])
        few_rows = self.task.rows.n <= START_ROWS
        return passes >= ENOUGH_PASSES or (few_rows and (self.task.goal.outputs > 1 or passes == 0))

    @property
    def ended(self) -> bool:
        """Whether there is no further size to make, or no time for it."""
        smaller = self.tried > 0 and self.search.model.size < self.sizes[self.tried - 1]  # no point could be added
        return self.tried == len(self.sizes) or smaller or (self.tried > 0 and self.run.over)

    @property
    def status(self) -> Status:
        """How the path ended."""
        return Status.CLAMPED if self.search.clamped else ended(self.search.model.size, self.sizes, self.run)

    def grow(self) -> tuple[Expansion, Made]:
        """Return the model of the next size; some sizes are skipped if time is short."""
        most = LESS_ON_THE_WAY if self.begins_fixed else MOST_ON_THE_WAY
        late = self.tried > 0 and self.run.deadline.used > most
        self.tried = len(self.sizes) if late else self.tried + 1
        size, last = self.sizes[self.tried - 1], self.tried == len(self.sizes)
        if self.inside.state:
            self.search.run = self._run_of_last()
            self.search.resume_last(self.inside)
            self.inside = Saved(None)
        else:
            self._grow_fixed(size)
            if last:
                self.search = self.search.with_best_decay()
            if last and self.begins_fixed:
                self._begin_last()
            self.search.run = self._run_of_last() if last else self.search.run
            self.search.learn(size, last=last, share=size / self.sizes[-1])
        self.made.append((self.search.model, self.search.made))
        if not self.run.over:  # a run with more time repeats a search that was cut short
            self.run.keeper.keep(self._state())
        return self.made[-1]

    def _grow_fixed(self, size: int) -> None:
        """Find the model of the fixed metric if a size starts with it, or to compare targets."""
        schedule, slim = self.slim.schedule, self.slim
        if size <= schedule.several_starts_up_to or self.compare_at:
            self.fixed.grow(size, slim._steps(size, self.task.goal.outputs), all_rows=False, last=False)
        if self.compare_at and size >= self.compare_at:
            self.fixed, self.compare_at = self.fixed.best_objective(self.objectives, slim.steps // 2), 0
            self.search = with_objective(self.search, self.fixed.objective)
        if size <= schedule.several_starts_up_to:
            self.search.adopt(self.fixed.model)

    def _begin_last(self) -> None:
        """Start the last size from the fixed model, grown as far as time allows, if that has the lower loss."""
        self.fixed.run = self.run.share(START_SECONDS).saved_by()
        decays_at: float = min(self.slim.schedule.decays_at, self.sizes[-1])
        for size in self.sizes:
            if size > self.fixed.model.size and not self.fixed.run.over:
                self.fixed.grow(size, self.slim._steps(size, self.task.goal.outputs), all_rows=False, last=False)
                if size >= decays_at:
                    self.fixed.choose_decay()
                    decays_at = np.inf
        self.search.adopt_if_better(self.fixed.model)

    def _run_of_last(self) -> Run:
        """Return the run of the last size's descent, with whose state that before this size is saved."""
        before = self._state() | {"tried": len(self.sizes) - 1}
        return self.run.saved_by(PartKeeper(self.run.keeper, lambda inside: before | {"inside": inside}))

    def _state(self) -> dict[str, Any]:
        made = [
            _written(model) | {"objective": str(Made(target=made.target, decay=made.decay)), "stopped": made.stopped}
            for model, made in self.made
        ]
        return {
            "made": made,
            "tried": self.tried,
            "compare_at": self.compare_at,
            "fixed": self.fixed.state(),
            "search": self.search.state(),
        }

    def _restore(self, saved: Saved) -> None:
        fixed, search = saved.part("fixed"), saved.part("search")
        known = known_objectives(self.objectives, self.slim.schedule)
        self.fixed = self.fixed.under(objective_of(known, fixed))
        self.search = with_objective(self.search, objective_of(known, search))
        self.fixed.restore(fixed)
        self.search.restore(search)
        kernel, d, q = self.task.rows.kernel, self.task.rows.d, self.search.demands.shape[1]
        for each in saved.parts("made"):
            objective, stopped = objective_of(known, each), each.value("stopped", bool)
            settings = replace(self.search.made, target=objective.target, decay=objective.multiple, stopped=stopped)
            self.made.append((_read(each, kernel, d, q), settings))
        self.tried = saved.count("tried", len(self.made), len(self.sizes))
        self.compare_at = saved.count("compare_at")
        self.inside = Saved(saved.state.get("inside"))


def ended(size: int, sizes: Sequence[int], run: Run) -> Status:
    """Return the status of a path whose largest model has that size."""
    if size >= sizes[-1]:
        return Status.BUDGET
    return Status.TIME_LIMIT if run.over else Status.EXHAUSTED


def _written(model: Expansion) -> dict[str, Any]:
    """Return the state of a model for a keeper; missing parts of the metric are empty."""
    metric = model.metric or Metric()
    parts = {"factors": metric.factors, "widths": metric.widths}
    learned = {name: np.zeros(0) if part is None else part for name, part in parts.items()}
    return {"points": model.points, "coef": model.coef, "bias": model.bias} | learned


def _read(saved: Saved, kernel: Any, d: int, q: int) -> Expansion:
    """Return the model of a state that `_written` made."""
    points, coef, bias = saved.array("points", None, d), saved.array("coef", None, q), saved.array("bias", q)
    m = points.shape[0]
    if coef.shape[0] != m:
        raise StateError(f"{m} points and coefficients of {coef.shape[0]}")
    metric = Metric(_positive(saved, "factors", d), _positive(saved, "widths", m))
    return Expansion(kernel, points, coef, bias, metric)


def _positive(saved: Saved, name: str, size: int) -> Array | None:
    """Return a part of a metric; None if the model does not have it."""
    part = saved.array(name, None)
    if part.size not in (0, size) or (part <= 0).any():
        raise StateError(f"{part.size} {name}, not {size} positive ones")
    return part if part.size else None
