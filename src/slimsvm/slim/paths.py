"""Paths of slim: the searches, the models made so far, and the state from which another run can continue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

from ..kernels import Array, Kernel, Matrix
from ..metric import Metric
from ..model import Expansion, Status, Task
from ..reducers.base import EndedModels
from ..run import PartCheckpoint, Run
from ..selection.path import Made
from ..states import State, StateError, floats, pack, unpack
from .metric_search import MetricSearch
from .point_search import Objective, PointSearch, known_objectives, objective_of

if TYPE_CHECKING:
    from .method import Slim

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


@dataclass
class SavedUnder:
    """The state of a search, and its objective."""

    objective: Made
    state: State

    @classmethod
    def of(cls, search: PointSearch) -> SavedUnder:
        """Return what continues a search."""
        return cls(search.objective.made, search.state())


@dataclass
class SavedPath:
    """The models made so far, how many sizes were tried, the searches, and the work on the last size if it has begun."""

    made: list[SavedModel]
    tried: int
    compares: bool
    search: SavedUnder
    fixed: SavedUnder | None = None
    inside: State | None = None
    learned: State | None = None


class PathRun:
    """One path: a subclass has the search, and `grow`, which finds the model of the next size."""

    search: PointSearch
    fixed: PointSearch | None = None  # the search with the kernel's own metric, beside another one
    d: int  # features of the points in a state
    models_a_size = 1  # at most

    def __init__(self, slim: Slim, task: Task, sizes: Sequence[int], objectives: list[Objective], name: str) -> None:
        self.slim, self.task, self.sizes, self.objectives = slim, task, sizes, objectives
        self.run = task.run.within(f"{name} to {sizes[-1]}")
        self.known = known_objectives(objectives, slim.schedule)
        self.compares = len(objectives) > 1 and task.n_validation > 0  # False: the target is known
        self.compare_at = min(slim.schedule.compare_at, sizes[-1])
        self.made: list[tuple[Expansion, Made]] = []
        self.tried = 0  # sizes that were made or skipped
        self.inside: State | None = None  # the state of the work on the last size

    def models(self) -> EndedModels:
        """Yield the models, first those of a saved state."""
        saved = self.run.checkpoint.saved()
        if saved is not None:
            self.restore(saved)
        yield from self.made
        while not self.ended:
            before = len(self.made)
            self.grow()
            if not self.run.over:  # a run with more time repeats a search that was cut short
                self.run.checkpoint.keep(self.state())
            yield from self.made[before:]
        return self.status

    def add(self, search: PointSearch) -> None:
        """Add the present model of a search to those made."""
        self.made.append((search.model, search.made))

    @property
    def ended(self) -> bool:
        """Whether there is no further size to make, or no time for it."""
        smaller = self.tried > 0 and self.made[-1][0].size < self.sizes[self.tried - 1]  # no point could be added
        return self.tried == len(self.sizes) or smaller or (self.tried > 0 and self.run.over)

    @property
    def status(self) -> Status:
        """How the path ended."""
        return ended(self.made[-1][0].size, self.sizes, self.run)

    def grow(self) -> None:
        """Find the model of the next size, and add it."""
        raise NotImplementedError

    def state(self, inside: State | None = None) -> State:
        """Return the state for a checkpoint; `inside` is that of the work on the last size."""
        made = [SavedModel.of(model, made, self.search.written(model.points)) for model, made in self.made]
        fixed = None if self.fixed is None else SavedUnder.of(self.fixed)
        search = SavedUnder.of(self.search)
        return pack(SavedPath(made, self.tried, self.compares, search, fixed, inside, self.learned_state()))

    def learned_state(self) -> State | None:
        """Return the state of what is learned beside the search, None without it."""
        return None

    def restore_learned(self, saved: State | None) -> None:
        """Continue what is learned beside the search."""
        if saved is not None:
            raise StateError("models that were learned otherwise")

    def restore(self, saved: State) -> None:
        """Continue from a saved state."""
        found = unpack(SavedPath, saved, d=self.d, q=self.search.demands.shape[1])
        if self.fixed is not None:
            self.fixed = self._continued(self.fixed, found.fixed)
        self.search = self._continued(self.search, found.search)
        for each in found.made:
            objective, stopped = objective_of(self.known, each.made), each.made.stopped
            made = replace(self._made_by(each.made), target=objective.target, decay=objective.multiple, stopped=stopped)
            self.made.append((each.model(self.task.rows.kernel, self.search.read(each.points)), made))
        least = -(-len(found.made) // self.models_a_size)
        if not least <= found.tried <= len(self.sizes):
            raise StateError(f"a 'tried' that is not between {least} and {len(self.sizes)}")
        if max((model.size for model, _ in self.made), default=0) > self.sizes[-1]:
            raise StateError(f"models of more than {self.sizes[-1]} points")
        self.tried, self.compares, self.inside = found.tried, found.compares, found.inside
        self.restore_learned(found.learned)

    def _made_by(self, saved: Made) -> Made:  # noqa: ARG002
        """Return the settings of a saved model that this path gives all its models."""
        return self.search.made

    def _continued(self, search: Any, saved: SavedUnder | None) -> Any:
        """Return a search under the objective of a state, from which it continues."""
        if saved is None:
            raise StateError("no 'fixed'")
        search = search.under(objective_of(self.known, saved.objective))
        search.restore(saved.state)
        return search


class FixedPath(PathRun):
    """A path with the kernel's own metric."""

    def __init__(self, slim: Slim, task: Task, sizes: Sequence[int], objectives: list[Objective]) -> None:
        super().__init__(slim, task, sizes, objectives, "path")
        self.search = slim._search(task, sizes[-1], objectives[0])
        self.d = self.search.home.d

    @property
    def decays_at(self) -> int:
        """The size at which other decays are tried; 0 if the models are too small for that."""
        least, most = self.slim.schedule.decays_from, self.slim.schedule.decays_at
        return max((size for size in self.sizes[:-1] if least <= size <= most), default=0)

    def grow(self) -> None:
        """Find the model of the next size; other decays are tried at one size, other targets at another."""
        size, task, slim = self.sizes[self.tried], self.task, self.slim
        compare, last = self.compares and size >= self.compare_at, size == self.sizes[-1]
        all_rows, last_steps = last and not compare, slim._last_steps(task, size)
        if last:
            self._keep_rounds()
            self.search.be_patient()
        if self.inside is not None:
            self.search.resume_rounds(self.inside)
        else:
            steps = last_steps if all_rows else slim._steps(task, size)
            self.search.grow(size, steps, all_rows=all_rows, last=last)
        self.inside = None
        if size == self.decays_at:
            self.search.choose_decay()
        if compare:
            objectives = [self.search.objective, *self.objectives[1:]]
            self.search, self.compares = self.search.best_objective(objectives, slim.steps // 2), False
        if compare and last:
            self._keep_rounds()
            self.search.be_patient()
            self.search.refine(self.search.model, last_steps)
        # the checkpoint of `_keep_rounds` refers to this path: without another one, a cycle would keep both in memory
        self.search.run = self.run.saved_by()
        self.tried += 1
        self.add(self.search)

    def _keep_rounds(self) -> None:
        """Let the search save the state of its rounds on all rows."""
        self.search.run = self.run.saved_by(PartCheckpoint(self.run.checkpoint, self.state))


class GrowingPath(PathRun):
    """A path on which a model grows with its metric.

    The smallest sizes start with the fixed metric, which tries several initial points. So does the last size if the fixed
    model has the lower loss: its coefficients are the best ones at every step, which mini-batches are slow to find.
    """

    search: MetricSearch
    fixed: PointSearch

    def __init__(self, slim: Slim, task: Task, sizes: Sequence[int], objectives: list[Objective], kind: str) -> None:
        super().__init__(slim, task, sizes, objectives, "metric path")
        several, self.d = slim.schedule.several_starts_up_to, task.rows.d
        some = replace(task.part(task.sample(START_ROWS)), run=task.run.share(FIRST_SECONDS))
        self.fixed = slim._search(some, max(several, self.compare_at if self.compares else 0), objectives[0])
        self.search = slim._metric_search(task, objectives[0], kind)
        self.begins_fixed = sizes[-1] > several and self._has_time_to_begin_fixed()  # whether the last size does

    def _has_time_to_begin_fixed(self) -> bool:
        """Return whether the last size may begin with the fixed metric: where the time is short, mini-batches need it all.

        With several outputs and few rows it always does, since mini-batches are slow to find many coefficients. So it does
        with few rows on a device, whose time for a pass is not known.
        """
        passes = self.search.passes_left(self.sizes[-1])
        few_rows = self.task.rows.n <= START_ROWS
        return passes >= ENOUGH_PASSES or (few_rows and (self.task.goal.outputs > 1 or passes == 0))

    @property
    def status(self) -> Status:
        """How the path ended."""
        return Status.CLAMPED if self.search.clamped else super().status

    def grow(self) -> None:
        """Find the model of the next size; some sizes are skipped if time is short."""
        most = LESS_ON_THE_WAY if self.begins_fixed else MOST_ON_THE_WAY
        late = self.tried > 0 and self.run.deadline.used > most
        self.tried = len(self.sizes) if late else self.tried + 1
        size, last = self.sizes[self.tried - 1], self.tried == len(self.sizes)
        if self.inside is not None:
            self.search.run = self._run_of_last()
            self.search.resume_last(self.inside)
            self.inside = None
            self.add(self.search)
            return
        self._grow_fixed(size)
        if last:
            self.search = self.search.with_best_decay()
        if last and self.begins_fixed:
            self._begin_last()
        self.search.run = self._run_of_last() if last else self.search.run
        self.search.learn(size, last=last, share=size / self.sizes[-1])
        self.add(self.search)

    def _grow_fixed(self, size: int) -> None:
        """Find the model of the fixed metric if a size starts with it, or to compare targets."""
        schedule, slim = self.slim.schedule, self.slim
        if size <= schedule.several_starts_up_to or self.compares:
            self.fixed.grow(size, slim._steps(self.task, size), all_rows=False, last=False)
        if self.compares and size >= self.compare_at:
            self.fixed, self.compares = self.fixed.best_objective(self.objectives, slim.steps // 2), False
            self.search = self.search.under(self.fixed.objective)
        if size <= schedule.several_starts_up_to:
            self.search.adopt(self.fixed.model)

    def _begin_last(self) -> None:
        """Start the last size from the fixed model, grown as far as time allows, if that has the lower loss."""
        self.fixed.run = self.run.share(START_SECONDS).saved_by()
        decays_at: float = min(self.slim.schedule.decays_at, self.sizes[-1])
        for size in self.sizes:
            if size > self.fixed.model.size and not self.fixed.run.over:
                self.fixed.grow(size, self.slim._steps(self.task, size), all_rows=False, last=False)
                if size >= decays_at:
                    self.fixed.choose_decay()
                    decays_at = inf
        self.search.adopt_if_better(self.fixed.model)

    def _run_of_last(self) -> Run:
        """Return the run of the last size's descent, with whose state that before this size is saved."""
        before = self.state() | {"tried": len(self.sizes) - 1}
        return self.run.saved_by(PartCheckpoint(self.run.checkpoint, lambda inside: before | {"inside": inside}))


def ended(size: int, sizes: Sequence[int], run: Run) -> Status:
    """Return the status of a path whose largest model has that size."""
    if size >= sizes[-1]:
        return Status.BUDGET
    return Status.TIME_LIMIT if run.over else Status.EXHAUSTED
