"""A path of slim: models of growing sizes with the kernel's own metric, and with a learned one from where that wins.

Fixed models grow up to `DECIDED_AT` points, or to the size asked for. From the last of them a metric is learned, for the
decay that validation rows choose. The learned model goes on unless it is worse, on random validation rows or on blocks of
neighbouring rows without which both were made again: rows of another time may differ, and a metric fits rows closely. Work
is counted in steps, never timed, so a seed gives the same models on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

from ..kernels import Array, Kernel, Matrix
from ..metric import Metric, takes_widths
from ..model import Expansion, Status, Task
from ..reducers.base import EndedModels
from ..run import PartCheckpoint, Run
from ..selection.path import Made
from ..states import State, StateError, floats, pack, unpack
from .learned import Parameters
from .learner import ENOUGH_ROWS, LAST, TRIAL, WAY, Learner
from .point_search import TARGET_MARGIN, Objective, PointSearch, known_objectives, objective_of

if TYPE_CHECKING:
    from .method import Slim

#: the kinds compete at the largest of the sizes up to this one. More: a safer choice, in more time
DECIDED_AT = 32
#: other decays of fixed models are tried at the largest of the sizes in this range below the last. More points: a choice
#: for models more like the last one, more time
DECAYS_FROM, DECAYS_AT = 4, 32
#: points in the span of few axes are tried with a metric up to so many features. More: more is learned, in more time
TRIED_FEATURES = 512
#: the targets are compared at this size. Larger: a fairer comparison, more time on both
COMPARE_AT = 64
#: with a time limit: the share of the time after which sizes below the largest are skipped
MOST_ON_THE_WAY = 0.35


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
class SavedLearned:
    """The kind that won, "auto" before that; the objective and the learned model."""

    kind: str
    objective: Made = field(default_factory=Made)
    model: State | None = None


@dataclass
class SavedPath:
    """The models made so far, how many sizes were tried, the searches, and the work on the last size if it has begun."""

    made: list[SavedModel]
    tried: int
    compares: bool
    search: SavedUnder
    learned: SavedLearned
    inside: State | None = None


class SlimPath:
    """One path of fixed models ("fixed"), of learned ones (their kind), or of both until one wins ("auto")."""

    def __init__(self, slim: Slim, task: Task, sizes: Sequence[int], objectives: list[Objective], kind: str) -> None:
        self.slim, self.task, self.sizes, self.objectives = slim, task, sizes, objectives
        self.run = task.run.within(f"path to {sizes[-1]}")
        self.known = known_objectives(objectives)
        self.compares = len(objectives) > 1 and task.n_validation > 0  # False: the target is known
        self.compare_at = min(COMPARE_AT, sizes[-1])
        self.decays_at = max((size for size in sizes[:-1] if DECAYS_FROM <= size <= DECAYS_AT), default=0)
        self.decided_at = max((size for size in sizes if size <= DECIDED_AT), default=sizes[0])
        self.search = slim.search(task, sizes[-1], objectives[0])
        self.wanted = kind
        self.kind = "auto" if kind != "fixed" and self._may_learn() else "fixed"  # a learned kind once it is decided
        self.possible = kind if kind != "auto" else "both" if takes_widths(task.rows.kernel.name) else "scales"
        self.learner: Learner | None = None
        self.made: list[tuple[Expansion, Made]] = []
        self.tried = 0  # sizes that were made or skipped
        self.inside: State | None = None  # the state of the work on the last size

    def _may_learn(self) -> bool:
        """Return whether a metric is worth a trial: points move in the span of few axes to save time."""
        return self.search.span is None or self.wanted != "auto" or self.task.rows.d <= TRIED_FEATURES

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
        clamped = self.learner is not None and self.learner.parameters.clamped
        return Status.CLAMPED if clamped else ended(self.made[-1][0].size, self.sizes, self.run)

    @property
    def ended(self) -> bool:
        """Whether there is no further size to make, or no time for it."""
        smaller = self.tried > 0 and self.made[-1][0].size < self.sizes[self.tried - 1]  # no point could be added
        return self.tried == len(self.sizes) or smaller or (self.tried > 0 and self.run.over)

    def grow(self) -> None:
        """Make the models of the next size; where time is short, that is the last one."""
        if self.tried and self.run.deadline.used > MOST_ON_THE_WAY and self.wanted != "fixed":
            self.tried = len(self.sizes) - 1
        size, last = self.sizes[self.tried], self.tried + 1 == len(self.sizes)
        if self.learner is not None:
            if self.inside is None:
                self.learner.grow(self.search, size)
            self._descend(self.learner, last=last)
        else:
            self._grow_fixed(size, last=last)
            if self.kind == "auto" and not (self.wanted == "auto" and self.run.over):
                self._learn(size, last=last)
        self.inside = None
        self.tried += 1

    def _grow_fixed(self, size: int, *, last: bool) -> None:
        """Make the fixed model of a size; other decays are tried at one size, other targets at another."""
        task, slim = self.task, self.slim
        compare, last_steps = self.compares and size >= self.compare_at, slim.last_steps(task, size)
        all_rows = last and not compare
        if last:
            self.search.run = self._saving()
        if self.inside is not None:
            self.search.resume_rounds(self.inside)
        else:
            steps = last_steps if all_rows else slim.way_steps(task, size)
            self.search.grow(size, steps, all_rows=all_rows, last=last)
        if size == self.decays_at:
            self.search.choose_decay()
        if compare:
            objectives = [self.search.objective, *self.objectives[1:]]
            self.search, self.compares = self.search.best_objective(objectives, slim.steps // 2), False
        if compare and last:
            self.search.run = self._saving()
            self.search.refine(self.search.model, last_steps)
        # the checkpoint of `_saving` refers to this path: without another one, a cycle would keep both in memory
        self.search.run = self.run.saved_by()
        self.made.append((self.search.model, self.search.made))

    def _saving(self) -> Run:
        """Return the run of the last size, whose state is saved with that of this path."""
        return self.run.saved_by(PartCheckpoint(self.run.checkpoint, self.state))

    def _learn(self, size: int, *, last: bool) -> None:
        """Learn a metric from the present fixed model if it is time to, and choose between them."""
        if self.wanted != "auto":
            self.made.pop()
        if size == self.decided_at or last:
            self._decide(last=last)
        elif self.wanted != "auto":
            self._learn_from(self._new_learner(), self.search.model)

    def _decide(self, *, last: bool) -> None:
        """Learn from the present fixed model, and go on with what was learned unless it is worse."""
        learner = self._with_best_decay()
        if self.wanted == "auto" and not learner.is_better(self.search):
            learner = self._new_learner()  # less decay may fit neighbours of the rows only
            learner.descend(TRIAL)
            if not learner.is_better(self.search):
                self.kind = "fixed"
                return
        self.kind = self.possible
        if self.wanted == "auto" and self.task.rows.n >= ENOUGH_ROWS:  # on few rows it hardly matters, and takes long
            for model, _ in self.made[:-1]:
                self._learn_from(copy(learner), model)
        self.learner = learner
        if last:
            self._descend(learner, last=True)
        else:
            self.made.append((learner.model, learner.made))

    def _new_learner(self) -> Learner:
        """Return what learns from the present fixed model."""
        return Learner(self.task, self.search, self.possible)

    def _learn_from(self, learner: Learner, model: Expansion) -> None:
        learner.adopt(model)
        self._descend(learner)

    def _descend(self, learner: Learner, *, last: bool = False) -> None:
        """Add the model after a descent."""
        saving = self._saving() if last and learner is self.learner else self.run.saved_by()
        learner.task = replace(self.task, run=saving)
        learner.descend(LAST if last else WAY, last=last, saved=self.inside)
        learner.task = replace(self.task, run=self.run.saved_by())
        self.made.append((learner.model, learner.made))

    def _with_best_decay(self) -> Learner:
        """Return what is learned with the decay, and under the target, that validation rows choose."""
        learner = self._new_learner()
        learner.choose_decay()
        if not self.compares:
            return learner
        judged = self.task.judge(learner.model)
        for objective in self.objectives[1:]:
            other = Learner(self.task, self.search, self.possible, objective)
            other.adopt(learner.model)
            other.descend(TRIAL)
            found = self.task.judge(other.model)
            if judged.error - TARGET_MARGIN * judged.standard_error > found.error:
                learner, judged = other, found
        return learner

    # States.

    def state(self, inside: State | None = None) -> State:
        """Return the state for a checkpoint; `inside` is that of the work on the last size."""
        made = [SavedModel.of(model, made, self.search.written(model.points)) for model, made in self.made]
        learned = SavedLearned(self.kind)
        if self.learner is not None:
            learned = SavedLearned(self.kind, self.learner.objective.made, pack(self.learner.parameters))
        return pack(SavedPath(made, self.tried, self.compares, SavedUnder.of(self.search), learned, inside))

    def restore(self, saved: State) -> None:
        """Continue from a saved state."""
        q = self.search.margin_targets.shape[1]
        found = unpack(SavedPath, saved, d=self.search.home.d, q=q)
        self.search = self.search.under(objective_of(self.known, found.search.objective))
        self.search.restore(found.search.state)
        for each in found.made:
            objective = objective_of(self.known, each.made)
            kind = each.made.metric if each.made.metric in ("fixed", self.possible) else "fixed"
            made = replace(self.search.made, target=objective.target, decay=objective.multiple, metric=kind)
            self.made.append((each.model(self.task.rows.kernel, self.search.read(each.points)), made))
        if not len(found.made) <= 2 * found.tried <= 2 * len(self.sizes):
            raise StateError(f"a 'tried' that is not between {len(found.made) / 2:g} and {len(self.sizes)}")
        if max((model.size for model, _ in self.made), default=0) > self.sizes[-1]:
            raise StateError(f"models of more than {self.sizes[-1]} points")
        self.tried, self.compares, self.inside, self.kind = found.tried, found.compares, found.inside, found.learned.kind
        if self.kind not in ("auto", "fixed", self.possible):
            raise StateError(f"the unknown kind {self.kind!r}")
        if found.learned.model is not None:
            objective = objective_of(self.known, found.learned.objective)
            self.learner = Learner(self.task, self.search, self.possible, objective)
            self.learner.parameters = unpack(Parameters, found.learned.model, d=self.task.rows.d, q=q)


def ended(size: int, sizes: Sequence[int], run: Run) -> Status:
    """Return the status of a path whose largest model has that size."""
    if size >= sizes[-1]:
        return Status.BUDGET
    return Status.TIME_LIMIT if run.over else Status.EXHAUSTED
