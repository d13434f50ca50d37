"""A model whose metric is learned with its points and coefficients.

Small problems have the best coefficients at every step (`learned`). Where that would take too long, and with other losses,
all numbers move together by mini-batches (`joint`).
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..kernels import RBF, Array
from ..model import UNKNOWN, Expansion, Judgement, Task
from ..selection.path import Made
from ..solvers.basis import wanted
from ..states import State
from .joint import BATCH, RATE, Joint, Plan, Rows
from .learned import LearnedLoss, Parameters
from .point_search import DECAY_POWERS, LEAST_DECAY, Objective, PointSearch, briefer, enough_rows, memory_for
from .starts import spread
from .validation import best_power, is_better

#: steps of a descent in shares of `Slim.steps`: to choose a decay and a kind, for sizes below the last, for the last, and
#: to refine the chosen model. More: a lower loss, in proportion more time
TRIAL, WAY, LAST, FINAL = 0.5, 0.8, 4.0, 1.2
#: rows for each number that is learned, and the least rows, for the last size. More: no other model, in more time
ROWS_PER_NUMBER, LEAST_ROWS = 40, 1 << 15
#: multiply-adds of a step up to which models have the best coefficients at every step; beyond, mini-batches
MOST_PROJECTED = 1e10
#: standard errors of the difference by which another decay must be better. More: fewer changes of the decay
BETTER_BY = 1.0
#: rows from which on blocks of neighbouring rows take part in the choice: the errors on fewer are noise
ENOUGH_ROWS = 500
#: mini-batches: passes over the rows and rows visited at most, for the last size; and the least steps
PASSES, MOST_VISITS, FEWEST_STEPS = 100, 1 << 22, 1000
#: the share of the time left for a size on the way and for the last one, and the most steps within a time limit
WAY_SECONDS, LAST_SECONDS, MOST_STEPS = 0.05, 0.85, 10**6
#: the rate from a model that is good already, as a share of the first one
GENTLY = 0.25


def batches_for(rows: int, most: int = MOST_VISITS // BATCH) -> int:
    """Return the mini-batches for a model of so many rows."""
    return min(max(PASSES * rows // BATCH, briefer(FEWEST_STEPS, rows)), most)


class Learner:
    """What learns a kind of metric on the rows of a task, under an objective, and the present model."""

    def __init__(self, task: Task, search: PointSearch, kind: str, objective: Objective | None = None) -> None:
        self.task, self.kind, self.objective = task, kind, objective or search.objective
        self.unit, self.steps = search.unit, search.steps
        known = search.rows.n == task.rows.n and search.objective.target == self.objective.target
        self.margin_targets = search.margin_targets if known else wanted(task, self.objective.model)
        self.spread = spread(task.rows.to_coordinates(task.rows.take(search.subsample)))
        self.adopt(search.model)

    @property
    def made(self) -> Made:
        """The settings of the present model."""
        return replace(self.objective.made, metric=self.kind)

    @property
    def model(self) -> Expansion:
        """The present model."""
        found = self.parameters
        placed = self.task.rows.from_coordinates(found.points)
        return Expansion(
            self.task.rows.kernel, placed, found.theta[1:].copy(), found.theta[0].copy(), found.metric(self.kind)
        )

    def adopt(self, model: Expansion) -> None:
        """Continue from a model, with its metric."""
        points, theta = self.task.rows.to_coordinates(model.points), np.vstack([model.bias, model.coef])
        self.parameters = Parameters(points, theta, np.log(model.factors), np.log(model.widths))

    def grow(self, search: PointSearch, size: int) -> None:
        """Add centres of the rows that fall short."""
        added = search.new_points(size - self.parameters.points.shape[0], self.model.on(search.task.rows))
        if search.rows is not self.task.rows:
            added = self.task.rows.to_coordinates(search.rows.from_coordinates(added))
        self.parameters = self.parameters.grown(added)

    def descend(self, share: float, *, last: bool = False, saved: State | None = None) -> None:
        """Take a share of the usual steps, on enough of the rows; the last size uses more of them."""
        (m, d), n = self.parameters.points.shape, self.task.rows.n
        count = enough_rows(m * d, n, ROWS_PER_NUMBER, LEAST_ROWS) if last else enough_rows(m * d, n)
        affordable = int(MOST_PROJECTED / (m * (m + 4 * d)))
        if count > affordable and isinstance(self.task.rows.kernel, RBF):
            self._descend_by_batches(share, last=last, saved=saved)
            return
        chosen = self.task.sample(min(count, max(affordable, m)))
        steps = briefer(share * self.steps, n)
        self.parameters = self._loss(chosen).descended(self.parameters, steps, self.task.run.deadline, memory_for(m * d))

    def _descend_by_batches(self, share: float, *, last: bool, saved: State | None) -> None:
        """Move all numbers together; a model at the end of the path does so gently."""
        gamma: float = self.task.rows.kernel.gamma  # type: ignore[attr-defined]
        rng = np.random.default_rng(deepcopy(self.task.rng).integers(2**32))  # a run that continues draws the same number
        joint, run = (
            Joint(self.dense, gamma, rng, kind=self.kind),
            self.task.run.share(LAST_SECONDS if last else WAY_SECONDS),
        )
        steps = max(int(self.steps / 50 * share / LAST * batches_for(self.task.rows.n)), 1)
        plan = Plan(steps if run.deadline.left is None else MOST_STEPS, GENTLY * RATE if share == FINAL else RATE)
        found = joint.descended(joint.numbers(self.model), plan, run, saved)
        self.adopt(joint.model(self.task.rows.kernel, found, "float32"))  # type: ignore[arg-type]

    @cached_property
    def dense(self) -> Rows:
        """The rows for mini-batches."""
        return Rows(self.task, self.margin_targets)

    def choose_decay(self) -> None:
        """Continue with the decay whose model has the lowest loss on validation rows after a few steps."""
        trials, state, holdout = dict[int, Learner](), deepcopy(self.task.rng), self.task.holdout

        def judged(power: int) -> Judgement:
            trial = trials[power] = copy(self)
            trial.task = replace(self.task, rng=deepcopy(state))
            if self.objective.tries_decays:
                trial.objective = self.objective.with_decay(power)
            trial.descend(TRIAL)
            return UNKNOWN if holdout is None else holdout.judge_shortfall(trial.model)

        most = DECAY_POWERS if self.objective.tries_decays and holdout is not None else 0
        power = best_power(judged, most, BETTER_BY, self.task.run.deadline)
        self.parameters, self.objective = trials[power].parameters, trials[power].objective

    def is_better(self, fixed: PointSearch) -> bool:
        """Return whether the model goes on in place of the fixed one that it was learned from.

        It does unless it is worse on random validation rows, or on blocks of neighbouring rows that neither has seen. If
        rows are few, it may not be worse at all: their errors are noise.
        """
        task, few = self.task, self.task.rows.n < ENOUGH_ROWS
        if task.holdout is not None and not is_better(self.model, fixed.model, [task.holdout], 0.0 if few else 1.0):
            return False
        if few:
            return True
        found = fixed.without_blocks(briefer(TRIAL * self.steps, task.rows.n))
        if found is None:
            return True
        search, blocks = found
        other = Learner(search.task, search, self.kind, self.objective)
        other.spread = self.spread
        other.descend(TRIAL)
        return is_better(other.model, search.model, blocks)

    def _loss(self, chosen: Array) -> LearnedLoss:
        """Return the loss on some of the rows, with the same relative weight of the decay as on all."""
        task, whole = self.task, chosen.size == self.task.rows.n
        weights = task.weights[chosen]
        rows, margin_targets = (
            (task.rows, self.margin_targets) if whole else (task.rows.subset(chosen), self.margin_targets[chosen])
        )
        share = float(weights.sum() / max(float(task.weights.sum()), 1e-300))
        usual = LEAST_DECAY * self.objective.multiple
        if task.rows.n < ENOUGH_ROWS:  # few rows need as much as a fixed metric
            usual = self.objective.decay_at(len(self.parameters.points), task.goal.outputs, real=task.goal.real)
        decay = self.unit * share * (usual if self.objective.decay is None else self.objective.decay)
        return LearnedLoss(rows, margin_targets, weights, self.spread, self.kind, decay)
