"""The path on which the kernel's own metric and a learned one compete, and the better one goes on.

Fixed models grow up to `DECIDED_AT` points, or to the size asked for. From the last of them a metric is learned, for the
decay that validation rows choose. The learned model goes on unless it is worse, on random validation rows or on blocks of
neighbouring rows without which both were made again: rows of another time may differ, and a metric fits rows closely. Work
is counted in steps, never timed, so a seed gives the same models on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..kernels import Array
from ..metric import Metric, takes_widths
from ..model import CLEARLY, UNKNOWN, Expansion, Judgement, Task
from ..selection.path import Made
from ..states import State, StateError, pack, unpack
from .decay_choice import best_power
from .learned import LearnedLoss, model_metric
from .learned_metric import KINDS, Parameters, ParameterUnits, grown
from .metric_search import spread
from .neighbours import block_numbers, validation_of
from .paths import MOST_ON_THE_WAY, FixedPath
from .point_search import Objective, PointSearch, briefer, objective_of

if TYPE_CHECKING:
    from .method import Slim

#: the kinds compete at the largest of the sizes up to this one. More: a safer choice, in more time
DECIDED_AT = 32
#: steps of a descent: to choose a decay and a kind, for sizes below the last, for the last, and to refine the chosen model.
#: More: a lower loss, in proportion more time
TRIAL_STEPS, WAY_STEPS, LAST_STEPS, FINAL_STEPS = 25, 40, 200, 60
#: rows for each number that is learned, and the least rows, for the last size. More: no other model, in more time
ROWS_PER_NUMBER, LEAST_ROWS = 40, 1 << 15
#: rows from which on blocks of neighbouring rows take part in the choice: the errors on fewer are noise
ENOUGH_ROWS = 500
#: standard errors of the difference by which another decay must be better. More: fewer changes of the decay
BETTER_BY = 1.0


@dataclass
class SavedLearned:
    """The kind that won, "auto" before that; the objective and the learned model."""

    kind: str
    objective: Made = field(default_factory=Made)
    model: State | None = None


class CompetingPath(FixedPath):
    """A path of fixed models, and of learned ones from where they win; of learned ones alone if `kind` is not "auto"."""

    models_a_size = 2

    def __init__(self, slim: Slim, task: Task, sizes: Sequence[int], objectives: list[Objective], kind: str) -> None:
        super().__init__(slim, task, sizes, objectives)
        # a factor for a principal axis is no factor for a feature
        self.wanted = kind
        self.kind = "auto" if self.search.span is None else "fixed"  # "fixed" or a learned kind once it is decided
        self.possible = kind if kind != "auto" else "both" if takes_widths(task.rows.kernel.name) else "scales"
        self.learner: Learner | None = None
        self.decided_at = max((size for size in sizes if size <= DECIDED_AT), default=sizes[0])

    def grow(self) -> None:
        """Make the models of the next size; where time is short, that is the last one."""
        if self.tried and self.run.deadline.used > MOST_ON_THE_WAY:
            self.tried = len(self.sizes) - 1
        size, last = self.sizes[self.tried], self.tried + 1 == len(self.sizes)
        if self.learner is not None:
            self.tried += 1
            self.learner.grow(self.search, size)
            self._descend(self.learner, last=last)
            return
        super().grow()
        if self.kind == "fixed" or (self.wanted == "auto" and self.run.over):
            return
        if self.wanted != "auto":
            self.made.pop()
        if size == self.decided_at or last:
            self._decide(last=last)
        elif self.wanted != "auto":
            self._learn_from(Learner.of(self.search, self.possible), self.search.model)

    def learned_state(self) -> State | None:
        """Return the state of the learned model, or that the fixed one won."""
        learner = self.learner
        if learner is None:
            return pack(SavedLearned(self.kind))
        return pack(SavedLearned(self.kind, learner.objective.made, pack(learner.parameters)))

    def restore_learned(self, saved: State | None) -> None:
        """Continue from a saved state of the learned model."""
        if saved is None:
            raise StateError("no 'learned'")
        found = unpack(SavedLearned, saved)
        self.kind = found.kind
        if self.kind not in ("auto", "fixed", self.possible):
            raise StateError(f"the unknown kind {self.kind!r}")
        if found.model is not None:
            self.learner = Learner.of(self.search.under(objective_of(self.known, found.objective)), self.possible)
            self.learner.parameters = unpack(Parameters, found.model, d=self.search.rows.d, q=self.search.demands.shape[1])

    def _made_by(self, saved: Made) -> Made:
        kind = saved.metric if saved.metric in ("fixed", self.possible) else "fixed"
        return replace(self.search.made, metric=kind)

    def _decide(self, *, last: bool) -> None:
        """Learn from the present fixed model, and go on with what was learned unless it is worse."""
        learner = self._with_best_decay()
        self.kind = learner.kind
        if self.wanted == "auto" and not is_better(learner, self.search):
            learner = self._with_usual_decay()
            if not is_better(learner, self.search):
                self.kind = "fixed"
                return
        if self.wanted == "auto":
            for model, _ in self.made[:-1]:
                self._learn_from(copy(learner), model)
        self.learner = learner
        if last:
            self._descend(learner, last=True)
        else:
            self.made.append((learner.model, learner.made))

    def _learn_from(self, learner: Learner, model: Expansion) -> None:
        """Add what is learned from a model."""
        learner.adopt(model)
        self._descend(learner)

    def _descend(self, learner: Learner, *, last: bool = False) -> None:
        """Add the model after a descent."""
        learner.descend(LAST_STEPS if last else WAY_STEPS, last=last)
        self.made.append((learner.model, learner.made))

    def _with_best_decay(self) -> Learner:
        """Return what is learned with the decay, and under the target, that validation rows choose."""
        learner = Learner.of(self.search, self.possible)
        learner.adopt(self.search.model)
        learner.choose_decay()
        return self._with_best_target(learner) if self.compares else learner

    def _with_usual_decay(self) -> Learner:
        """Return what is learned with the fixed model's decay: less of it may fit neighbours of the rows only."""
        learner = Learner.of(self.search, self.possible)
        learner.adopt(self.search.model)
        learner.descend(TRIAL_STEPS)
        return learner

    def _with_best_target(self, learner: Learner) -> Learner:
        """Return a learner under the full model's margins if that has clearly the lower validation error."""
        judged = self.task.judge(learner.model)
        for objective in self.objectives[1:]:
            other = Learner.of(self.search.under(objective), self.possible)
            other.adopt(learner.model)
            other.descend(TRIAL_STEPS)
            found = self.task.judge(other.model)
            if judged.error - self.slim.schedule.target_margin * judged.standard_error > found.error:
                learner, judged = other, found
        return learner


class Learner:
    """A model whose metric is learned, on the rows of a search and under its objective."""

    def __init__(self, search: PointSearch, units: ParameterUnits, kind: str, objective: Objective) -> None:
        self.task, self.rows, self.demands, self.unit = search.task, search.rows, search.demands, search.unit
        self.schedule, self.units, self.kind, self.objective = search.schedule, units, kind, objective
        self.parameters = Parameters(search.points, search.found.theta, np.zeros(self.rows.d), np.zeros(len(search.points)))

    @classmethod
    def of(cls, search: PointSearch, kind: str) -> Learner:
        """Return what learns a kind of metric from the present model of a search."""
        units = spread(search.rows.inward(search.rows.take(search.subsample)))
        return cls(search, ParameterUnits(units, 1.0, KINDS[kind]), kind, search.objective)

    @property
    def made(self) -> Made:
        """The settings of the present model."""
        return replace(self.objective.made, metric=self.kind)

    @property
    def model(self) -> Expansion:
        """The present model."""
        found = self.parameters
        metric = model_metric(found, self.units.learned)
        return Expansion(
            self.rows.kernel, self.rows.outward(found.points), found.theta[1:].copy(), found.theta[0].copy(), metric
        )

    def adopt(self, model: Expansion) -> None:
        """Continue from a model, with its metric."""
        points, theta = self.rows.inward(model.points), np.vstack([model.bias, model.coef])
        logs = [np.log(part) if part is not None else np.zeros(size) for part, size in _parts(model.metric, points.shape)]
        self.parameters = Parameters(points, theta, *logs)

    def grow(self, search: PointSearch, size: int) -> None:
        """Add centres of the rows that fall short."""
        outputs = self.model.on(self.task.rows)
        self.parameters = grown(self.parameters, search._new_points(size - self.parameters.points.shape[0], outputs))

    def descend(self, steps: int, *, last: bool = False) -> None:
        """Take some steps, on enough of the rows; the last size uses more of them."""
        numbers, schedule = self.parameters.points.size, self.schedule
        per_number, least = (ROWS_PER_NUMBER, LEAST_ROWS) if last else (schedule.rows_per_number, schedule.least_rows)
        most = max(per_number * numbers, least)
        chosen = self.task.sample(most if most < schedule.subsample_share * self.rows.n else self.rows.n)
        loss, memory = self._loss(chosen), self.schedule.memory_for(self.parameters.points.size)
        self.parameters, _ = loss.descended(self.parameters, briefer(steps, self.rows.n), self.task.run.deadline, memory)

    def choose_decay(self) -> None:
        """Continue with the decay whose model has the lowest loss on validation rows after a few steps."""
        trials = dict[int, Learner]()
        state = deepcopy(self.task.rng)

        def judged(power: int) -> Judgement:
            trial = trials[power] = copy(self)
            trial.task = replace(self.task, rng=deepcopy(state))
            if self.objective.tries_decays(self.schedule):
                trial.objective = self.objective.with_decay(self.schedule, power)
            trial.descend(TRIAL_STEPS)
            holdout = self.task.holdout
            return UNKNOWN if holdout is None else holdout.judge_shortfall(trial.model)

        tries = self.objective.tries_decays(self.schedule) and self.task.holdout is not None
        power = best_power(judged, self.schedule.decay_powers if tries else 0, BETTER_BY, self.task.run.deadline)
        self.parameters, self.objective = trials[power].parameters, trials[power].objective

    def _loss(self, chosen: Array) -> LearnedLoss:
        """Return the loss on some of the rows, with the same relative weight of the decay as on all."""
        weights, whole = self.task.weights[chosen], chosen.size == self.rows.n
        rows, demands = (self.rows, self.demands) if whole else (self.rows.subset(chosen), self.demands[chosen])
        share = float(weights.sum() / max(float(self.task.weights.sum()), 1e-300))
        least = self.schedule.least_decay * self.objective.multiple
        decay = self.unit * share * (least if self.objective.decay is None else self.objective.decay)
        return LearnedLoss(rows, demands, weights, self.units, decay)


def _parts(metric: Metric | None, shape: tuple[int, ...]) -> list[tuple[Array | None, int]]:
    metric = metric or Metric()
    return [(metric.factors, shape[1]), (metric.widths, shape[0])]


def is_better(learner: Learner, search: PointSearch) -> bool:
    """Return whether a learned model goes on in place of the fixed one that it was learned from."""
    task = search.task
    if task.holdout is not None:
        fixed, learned = search.model, learner.model
        if task.judge(learned).worse_than(task.judge(fixed), 1.0):
            return False
        if task.holdout.judge_shortfall(learned).worse_than(task.holdout.judge_shortfall(fixed), 1.0):
            return False
    return task.rows.n < ENOUGH_ROWS or _harmless_on_blocks(learner, search)


def _harmless_on_blocks(learner: Learner, search: PointSearch) -> bool:
    """Return whether a learned model is not worse than a fixed one on blocks of neighbouring rows that neither has seen."""
    schedule, task = search.schedule, replace(search.task, rng=deepcopy(search.task.rng))
    part = task.part(task.sample(schedule.least_rows))
    numbers = block_numbers(part.groups)
    if (numbers < 0).all():
        return True
    rest = part.part(np.flatnonzero(numbers < 0))
    brief = replace(schedule, widenings=0, several_starts_up_to=1)
    fixed = PointSearch(
        rest, search.objective, search.unit * float(rest.weights.sum() / task.weights.sum()), brief, search.features
    )
    fixed.grow(search.points.shape[0], briefer(TRIAL_STEPS, rest.rows.n), all_rows=False, last=False)
    other = Learner(fixed, learner.units, learner.kind, learner.objective)
    other.adopt(fixed.model)
    other.descend(TRIAL_STEPS)
    blocks = [validation_of(part, np.flatnonzero(numbers == number)) for number in range(numbers.max() + 1)]
    together = validation_of(part, np.flatnonzero(numbers >= 0))
    before, after = fixed.model, other.model
    if together.judge(after).worse_than(together.judge(before), 1.0):
        return False
    if together.judge_shortfall(after).worse_than(together.judge_shortfall(before), 1.0):
        return False
    return not any(block.judge(after).worse_than(block.judge(before), CLEARLY) for block in blocks)
