"""One path of slim with a learned metric: the searches, the models made so far, and the state to continue from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from ..keeping import PartKeeper, State, StateError
from ..kernels import Array, Kernel, Matrix
from ..made import Made
from ..metric import Metric
from ..model import Expansion, Status, Task
from ..run import Run
from ..solvers.metric_search import with_objective
from ..solvers.point_search import Objective, known_objectives, objective_of
from ..states import floats, pack, unpack

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


@dataclass
class SavedModel:
    """A model of a path, and what made it."""

    points: Annotated[Array, floats("m", "d")]
    coef: Annotated[Array, floats("m", "q")]
    bias: Annotated[Array, floats("q")]
    factors: Annotated[Array, floats("d", positive=True)] | None
    widths: Annotated[Array, floats("m", positive=True)] | None
    made: Made

    @classmethod
    def of(cls, model: Expansion, made: Made, points: Array) -> SavedModel:
        """Return the state of a model, with its points as an array."""
        metric = model.metric or Metric()
        return cls(points, model.coef, model.bias, metric.factors, metric.widths, made)

    def model(self, kernel: Kernel, points: Matrix) -> Expansion:
        """Return the model."""
        metric = None if self.factors is None and self.widths is None else Metric(self.factors, self.widths)
        return Expansion(kernel, points, self.coef, self.bias, metric)


@dataclass(kw_only=True)
class SavedGrowingPath:
    """The models made so far, how many sizes were tried, both searches, and the last descent if it has begun."""

    made: list[SavedModel]
    tried: int
    compare_at: int
    fixed_objective: Made
    fixed: State
    objective: Made
    search: State
    inside: State | None = None


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
        self.inside: State | None = None  # the state of the descent of the last size
        saved = self.run.keeper.saved()
        if saved is not None:
            self._restore(saved)

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
        if self.inside is not None:
            self.search.run = self._run_of_last()
            self.search.resume_last(self.inside)
            self.inside = None
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
        before = self._state(tried=len(self.sizes) - 1)
        return self.run.saved_by(PartKeeper(self.run.keeper, lambda inside: before | {"inside": inside}))

    def _state(self, tried: int | None = None) -> State:
        made = [SavedModel.of(model, made, model.points) for model, made in self.made]
        return pack(
            SavedGrowingPath(
                made=made,
                tried=self.tried if tried is None else tried,
                compare_at=self.compare_at,
                fixed_objective=self.fixed.objective.made,
                fixed=self.fixed.state(),
                objective=self.search.objective.made,
                search=self.search.state(),
            )
        )

    def _restore(self, saved: State) -> None:
        found = unpack(SavedGrowingPath, saved, d=self.task.rows.d, q=self.search.demands.shape[1])
        known = known_objectives(self.objectives, self.slim.schedule)
        self.fixed = self.fixed.under(objective_of(known, found.fixed_objective))
        self.search = with_objective(self.search, objective_of(known, found.objective))
        self.fixed.restore(found.fixed)
        self.search.restore(found.search)
        for each in found.made:
            objective, stopped = objective_of(known, each.made).made, each.made.stopped
            made = replace(objective, metric=self.search.kind, loss=self.search.loss_name, stopped=stopped)
            self.made.append((each.model(self.task.rows.kernel, each.points), made))
        if not len(found.made) <= found.tried <= len(self.sizes):
            raise StateError(f"'tried' that is not between {len(found.made)} and {len(self.sizes)}")
        self.tried, self.compare_at, self.inside = found.tried, found.compare_at, found.inside


def ended(size: int, sizes: Sequence[int], run: Run) -> Status:
    """Return the status of a path whose largest model has that size."""
    if size >= sizes[-1]:
        return Status.BUDGET
    return Status.TIME_LIMIT if run.over else Status.EXHAUSTED
