"""The search behind slim: points that move downhill on a projected loss, from small models to larger ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

import numpy as np

from ..kernels import Array, Matrix
from ..model import Expansion, Holdout, Judgement, Task
from ..rows.protocol import Rows, SpannedRows
from ..rows.responses import largest
from ..rows.threads import one_blas_thread
from ..run import Run
from ..selection.path import Made
from ..solvers.basis import wanted
from ..solvers.descent import DescentSettings, descend
from ..solvers.newton import Fitted
from ..solvers.projection import ProjectedLoss
from ..states import State, StateError, floats, go_on, pack, row_numbers, unpack
from ..text import short
from .sparse_points import discriminating_span, with_few_entries
from .validation import best_power, block_numbers, harmless_power, validation_of

#: searches on fewer rows take fewer steps
USUAL_ROWS = 1500
#: with labels, decay grows from the least to 1 at FULL_DECAY_AT points, or to SEVERAL_DECAY with several outputs, which
#: share their points: few points regularise by themselves
LEAST_DECAY, FULL_DECAY_AT, SEVERAL_DECAY = 0.1, 64, 0.3
#: other decays are powers of a factor, up to so many up or down; by how many standard errors one must be better; and the
#: steps of a model without blocks of rows, on which it must do no harm. More: fewer changes, a safer choice
DECAY_FACTOR, DECAY_POWERS, DECAY_MARGIN, DECAY_STEPS = 10.0, 2, 2.0, 25
#: standard errors by which another target must beat "label": the full model has seen the validation rows
TARGET_MARGIN = 2.0
#: the largest size for which several sets of initial points are tried; rows moved towards the mean by these shares are
#: some. And the steps after which the best ones are chosen, for the largest size and for others, as shares of `Slim.steps`
SEVERAL_STARTS_UP_TO, TOWARDS_MEAN, TRIAL, EARLY_TRIAL = 16, (0.5, 0.25), 0.6, 0.2
#: descent steps between two passes over all rows. More: cheaper steps, on a less current choice of rows
ROUND_STEPS = 100
#: past steps that L-BFGS learns curvature from, and the most numbers in them
MEMORY, MEMORY_VALUES = 40, 1 << 23
#: a descent ends when so many steps together gain less than this share of the loss
WINDOW, LEAST_GAIN = 10, 1e-3
#: rows for each number to be found, and the least rows, for models below the largest size; all rows are used if a subsample
#: would have more than this share of them
ROWS_PER_NUMBER, LEAST_ROWS, SUBSAMPLE_SHARE = 10, 8192, 0.6
#: rows that a round uses for each row that falls short of its target, nearest to it first, and more beside them
NEARBY, BESIDE = 3, 1024
#: rounds of k-means for initial points, and the most rows that it uses
KMEANS_ROUNDS, KMEANS_ROWS = 10, 4096
#: the most kernel values between rows and points in memory: of more rows a subsample is used
MOST_VALUES = 1 << 26
#: the most features of points of sparse rows; fewer are those with most of the squared length
MOST_FEATURES = 1 << 20
#: with more features, points of sparse rows move in the span of a few directions; with more than the second number, those
#: of others move in the span of the principal axes that hold this share of the variance, if that saves most of the work
WIDE, SEVERAL_FEATURES, SPAN_SHARE = 4096, 128, 0.9
#: rounds that find the first directions, and the most that a round adds; how often the gradients of points widen the span
#: in the end, and the steps after each time. More: a lower loss, nearer to that of points in all features, in more time
SPAN_ROUNDS, SPAN_DIRECTIONS, WIDENINGS, WIDENED_STEPS = 10, 64, 2, 20
#: the change of outputs, in standard deviations, by which sparse points may lose entries. More: smaller, coarser models
ENTRIES_CHANGE = 0.05


def memory_for(numbers: int) -> int:
    """Return the past steps of L-BFGS in a search for this many numbers."""
    return int(np.clip(MEMORY_VALUES // max(numbers, 1), 10, MEMORY))


def enough_rows(numbers: int, rows: int, per_number: int = ROWS_PER_NUMBER, least: int = LEAST_ROWS) -> int:
    """Return how many of the rows are enough to find so many numbers; all of them if these are not many more."""
    most = max(per_number * numbers, least)
    return most if most < SUBSAMPLE_SHARE * rows else rows


@dataclass(frozen=True)
class Objective:
    """A loss: the margin targets, from the labels or from the full model, and the weight of |f|^2."""

    target: str
    decay: float | None
    model: Expansion | None
    multiple: float = 1.0  # of the usual decay

    @property
    def made(self) -> Made:
        """The settings of models under this objective."""
        return Made(target=self.target, decay=self.multiple)

    @property
    def tries_decays(self) -> bool:
        """Whether other decays are tried: with labels, unless the decay is given."""
        return self.target == "label" and self.decay is None

    @property
    def with_other_decays(self) -> list[Objective]:
        """This objective, and those with the other decays that may be chosen."""
        powers = sorted(range(-DECAY_POWERS, DECAY_POWERS + 1), key=abs)
        return [self.with_decay(power) for power in powers] if self.tries_decays else [self]

    def with_decay(self, power: int) -> Objective:
        """Return this objective with its usual decay times a power of the factor."""
        return replace(self, multiple=DECAY_FACTOR**power)

    def decay_at(self, size: int, outputs: int, *, real: bool) -> float:
        """Return the share of the SVM's own regularisation for a model of that size; `real` for real targets."""
        if self.decay is not None:
            return self.decay
        if self.target == "slant":
            return 0.0 if real else LEAST_DECAY  # the outputs of the full model are smooth already
        full = 1.0 if outputs == 1 else SEVERAL_DECAY
        return self.multiple * float(np.clip(size / FULL_DECAY_AT, LEAST_DECAY, full))


def briefer(steps: float, rows: int) -> int:
    """Return fewer steps where rows are few, at least a tenth: the loss on a few rows is soon as low as it is worth."""
    return int(np.ceil(steps * np.clip(rows / USUAL_ROWS, 0.1, 1.0)))


def known_objectives(objectives: Sequence[Objective]) -> list[Objective]:
    """Return the objectives that a model may have in the end: with the decays that are tried on the way."""
    return [each for given in objectives for each in given.with_other_decays]


def objective_of(objectives: Sequence[Objective], made: Made) -> Objective:
    """Return the objective under which a model was made."""
    for objective in objectives:
        if (objective.target, objective.multiple) == (made.target, made.decay):
            return objective
    raise StateError(f"the unknown objective {short(str(made))}")


@dataclass(kw_only=True)
class SavedPoints:
    """Points, with the span that they are in, and their coefficients."""

    basis: Annotated[Array, floats("features", "d")] | None = None
    widened: int = 0
    points: Annotated[Array, floats("m", "d")]
    found: Fitted


@dataclass(kw_only=True)
class SavedRounds(SavedPoints):
    """The state between two rounds on all rows."""

    steps: int


@dataclass(kw_only=True)
class SavedSearch(SavedPoints):
    """The state that the next size depends on."""

    subsample: Annotated[Array, row_numbers("n")]
    rng: np.random.Generator
    task_rng: np.random.Generator


Placed = TypeVar("Placed", bound=SavedPoints)


class PointSearch:
    """A model that grows under one objective. `unit` is the unit of decay: 1 / C for all rows.

    Trials of initial points take shares of `steps`; a `brief` search makes none, and adds nothing to the span in the end.
    `features` are the features of points; None for those of all rows, or for the main ones of very many.
    """

    def __init__(
        self,
        task: Task,
        objective: Objective,
        unit: float,
        steps: int = 50,
        features: Array | None = None,
        *,
        brief: bool = False,
    ) -> None:
        self.task = replace(task, run=task.run.saved_by())  # with a checkpoint, it saves the rounds on all rows
        self.objective, self.unit, self.steps, self.brief = objective, unit, steps, brief
        self.features = task.rows.main_features(MOST_FEATURES) if features is None else features
        self.home = task.rows if self.features is None else task.rows.on_features(self.features)
        self.span = self.home.spanned(WIDE, SEVERAL_FEATURES, SPAN_SHARE)  # None: in all features
        self.widens = self.span is not None and self.span.d == 0  # directions are found on the way
        self.widened = WIDENINGS  # times that the span was widened; `refine` starts at 0
        self.rows: Rows = self.home if self.span is None else self.span
        self.margin_targets = wanted(task, objective.model)
        self.rng = np.random.default_rng(task.rng.integers(2**32))
        self.loss = ProjectedLoss(self.rows, self.margin_targets, task.weights, unit)
        self.subsample = task.sample(KMEANS_ROWS)
        self.subsample_loss = self._loss_on_subsample(self.subsample)
        self.groups = task.goal.groups(task.targets)
        self.points = np.zeros((0, self.rows.d))
        self.found = Fitted(np.zeros((1, self.margin_targets.shape[1])), np.zeros(self.margin_targets.shape), np.inf)

    @property
    def made(self) -> Made:
        """The settings of the present model."""
        return self.objective.made

    @property
    def run(self) -> Run:
        """When the search must end, and what saves its rounds on all rows."""
        return self.task.run

    @run.setter
    def run(self, run: Run) -> None:
        self.task = replace(self.task, run=run)

    def state(self) -> State:
        """Return the state that the next size depends on, for a checkpoint."""
        placed = self._placed(self.points, self.found)
        return pack(SavedSearch(subsample=self.subsample, rng=self.rng, task_rng=self.task.rng, **placed))

    def restore(self, saved: State) -> None:
        """Continue from a saved state."""
        found = self._read(SavedSearch, saved)
        self.points, self.found, self.subsample = found.points, found.found, found.subsample
        self.subsample_loss = self._loss_on_subsample(self.subsample)
        go_on(self.rng, found.rng)
        go_on(self.task.rng, found.task_rng)

    def written(self, points: Matrix) -> Array:
        """Return the points of a model as an array for a state; if they have only some features, without the others."""
        return points if self.features is None else self.home.to_coordinates(points)

    def read(self, written: Array) -> Matrix:
        """Return the points of a model from the array of `written`."""
        return written if self.features is None else self.home.from_coordinates(written)

    def resume_rounds(self, saved: State) -> None:
        """Continue rounds on all rows from a saved state."""
        found = self._read(SavedRounds, saved)
        self._set_decay(found.points.shape[0])
        self.points, self.found = self._rounds(found.points, found.found, found.steps)
        self._widen()

    def _placed(self, points: Array, found: Fitted) -> dict[str, Any]:
        """Return the fields of `SavedPoints`."""
        span = {} if self.span is None else {"basis": self.span.basis, "widened": self.widened}
        return {"points": points, "found": found, **span}

    def _read(self, kind: type[Placed], saved: State) -> Placed:
        """Return a saved state, after moving into its span."""
        (n, q), sizes = self.margin_targets.shape, {"d": self.rows.d} if self.span is None else {"features": self.home.d}
        found = unpack(kind, saved, n=n, q=q, **sizes)
        if self.span is not None:
            if found.basis is None:
                raise StateError("no 'basis'")
            self.points = self.points[:0, :0]
            self._move_in(self.span.on_basis(found.basis))
            self.widened = found.widened
        return found

    @property
    def model(self) -> Expansion:
        """The present model."""
        return self._model_of_fit(self.found)

    def _model_of_fit(self, found: Fitted) -> Expansion:
        """Return the model with the present points and these coefficients."""
        return Expansion(self.rows.kernel, self.rows.from_coordinates(self.points), found.coef.copy(), found.bias.copy())

    @one_blas_thread()  # products are small, and woken threads of BLAS wait actively
    def sparse_model(self) -> Expansion:
        """Return the present model; points in a span of directions of sparse rows have few entries, if that is possible."""
        model = self.model
        if self.span is None or not self.widens or self.run.over:
            return model
        sums = self.span.slope_products(self.points)
        return with_few_entries(self.task.rows, model, sums, self.found.outputs, ENTRIES_CHANGE, self.run.deadline)

    @one_blas_thread()  # products are small, and woken threads of BLAS wait actively
    def grow(self, size: int, steps: int, *, all_rows: bool, last: bool) -> None:
        """Grow to a model of that size; a small one is also tried from new initial points."""
        self._set_decay(size)
        self._begin_span()
        start = np.vstack([self.points, self.new_points(size - self.points.shape[0], self.found.outputs)])
        theta = self.found.theta
        if 1 < size <= SEVERAL_STARTS_UP_TO and (last or self.margin_targets.shape[1] == 1) and not self.brief:
            trial_steps = briefer((TRIAL if last else EARLY_TRIAL) * self.steps, self.rows.n)
            trials = [self._after_trial(points, trial_steps) for points in (start, *self._fresh_starts(size))]
            _, start, theta = min(trials, key=lambda trial: trial[0])
        self._descend(start, theta, steps, all_rows)

    @one_blas_thread()  # products are small, and woken threads of BLAS wait actively
    def refine(self, model: Expansion, steps: int) -> None:
        """Refine a model by some steps on all rows, and in a wider span."""
        self._set_decay(model.size)
        self.widened = 0 if steps and self.widens and not self.brief else WIDENINGS
        if self.span is not None:
            self._move_in(self.span.including(model.points))
        start = self.rows.to_coordinates(model.points)
        self._descend(start, np.vstack([model.bias, model.coef]), steps, all_rows=True)
        self._widen()

    def best_objective(self, objectives: Sequence[Objective], steps: int) -> PointSearch:
        """Return the search under the objective with the lowest validation error after some steps from here.

        The first objective wins unless another is clearly better.
        """
        rows = self._enough_rows(self.points.size)
        part, unit = self.task.part(rows), self.unit * self._weight_share(rows)
        trials = [PointSearch(part, objective, unit, self.steps, self.features) for objective in objectives]
        for trial in trials:
            trial.refine(self.model, briefer(steps, rows.size))
        judged = [self.task.judge(trial.model) for trial in trials]
        errors, margin = [each.error for each in judged], TARGET_MARGIN * judged[0].standard_error
        best = trials[0] if errors[0] - margin <= min(errors) else trials[int(np.argmin(errors))]
        search = self.under(best.objective)
        search.refine(best.model, 0)
        return search

    def choose_decay(self) -> None:
        """Multiply the decay by the power of the factor that validation rows choose, if it does no harm.

        A random validation row has neighbours among the training rows. So for a model without blocks of neighbouring rows
        it must do no more harm to these than to random rows. Nothing else changes, the random numbers of the task included.
        """
        holdout = self.task.holdout
        if not self.objective.tries_decays or holdout is None:
            return
        judged = self._judged_decays([holdout])
        power = best_power(lambda power: judged(power)[0], DECAY_POWERS, DECAY_MARGIN, self.run.deadline)
        if power and not self.run.over:
            power = self._harmless_on_blocks(power, holdout)
        if power and not self.run.over:
            self.objective = self.objective.with_decay(power)
            self._set_decay(self.points.shape[0])
            self.loss.theta = self.found.theta
            self.found = self.loss.settle(self.points)

    def _judged_decays(self, judges: Sequence[Holdout]) -> Callable[[int], list[Judgement]]:
        """Return the judgements of a model with the decay times a power of the factor, as a function of the power.

        Points stay where they are, and each decay has the best coefficients for them. That takes far less time than to move
        the points under each decay, and the same decays win.
        """
        rows = self._enough_rows(self.points.size, deepcopy(self.task.rng))
        loss, usual = self._loss_on(rows), self.loss.decay * self._weight_share(rows)

        def judged(power: int) -> list[Judgement]:
            loss.decay, loss.theta = usual * DECAY_FACTOR**power, self.found.theta
            model = self._model_of_fit(loss.settle(self.points))
            return [judge.judge_shortfall(model) for judge in judges]

        return judged

    def _harmless_on_blocks(self, power: int, holdout: Holdout) -> int:
        """Return the power, or one nearer to 0, that does no harm to blocks of rows without which a model is grown.

        That model has fewer rows, which alone may ask for more decay. So its random validation rows are beside the blocks.
        """
        found = self.without_blocks(DECAY_STEPS if self.margin_targets.shape[1] == 1 else -(-DECAY_STEPS // 2))
        return 0 if found is None else harmless_power(power, found[0]._judged_decays([holdout, *found[1]]))

    def without_blocks(self, steps: int) -> tuple[PointSearch, list[Holdout]] | None:
        """Return a search of this size on a sample without blocks of neighbouring rows, and these; None without blocks.

        Random numbers of the task do not depend on it.
        """
        task = replace(self.task, rng=deepcopy(self.task.rng))
        part = task.part(task.sample(LEAST_ROWS))
        numbers = block_numbers(part.groups)
        if (numbers < 0).all():
            return None
        blocks = [validation_of(part, np.flatnonzero(numbers == number)) for number in range(numbers.max() + 1)]
        rest = part.part(np.flatnonzero(numbers < 0))
        unit = self.unit * float(rest.weights.sum() / task.weights.sum())
        search = PointSearch(rest, self.objective, unit, self.steps, self.features, brief=True)
        if self.span is not None and search.span is not None:
            search.points = search.points[:, :0]  # its own span may be wider
            search._move_in(search.span.on_basis(self.span.basis))
        search.grow(self.points.shape[0], steps, all_rows=False, last=False)
        return search, blocks

    def under(self, objective: Objective) -> PointSearch:
        """Return this search, or a new one on the same rows for another objective."""
        if objective.made == self.objective.made:
            return self
        return PointSearch(self.task, objective, self.unit, self.steps, self.features)

    # Losses on some of the rows.

    def _set_decay(self, size: int) -> None:
        """Set the decay for this size."""
        goal = self.task.goal
        self.loss.decay = self.unit * self.objective.decay_at(size, goal.outputs, real=goal.real)
        self.subsample_loss.decay = self.loss.decay * self._weight_share(self.subsample)

    def _weight_share(self, rows: Array) -> float:
        """Return the rows' share of all weights; 1 if all weights are 0."""
        total = self.task.weights.sum()
        return float(self.task.weights[rows].sum() / total) if total else 1.0

    def _enough_rows(self, numbers: int, rng: np.random.Generator | None = None) -> Array:
        """Return a subsample that is large enough to find this many numbers, or all rows if these are not many more."""
        return self.task.rows.sample(enough_rows(numbers, self.rows.n), rng or self.task.rng)

    def _loss_on(self, rows: Array) -> ProjectedLoss:
        return ProjectedLoss(self.rows.subset(rows), self.margin_targets[rows], self.task.weights[rows], self.loss.decay)

    def _loss_on_subsample(self, rows: Array) -> ProjectedLoss:
        """Return the loss on a random subsample, with the same relative weight of |f|^2 as on all rows."""
        if rows.size == self.rows.n:
            return self.loss
        loss = self._loss_on(rows)
        loss.decay *= self._weight_share(rows)
        return loss

    def _loss_on_relevant(self, outputs: Array) -> ProjectedLoss:
        """Return the loss on the relevant rows: those that fall short of their margin targets or nearly do."""
        nearness = self.margin_targets.shortfall(outputs).max(axis=1)
        count = NEARBY * int((nearness > 0).sum()) + BESIDE
        if count > SUBSAMPLE_SHARE * nearness.size:
            return self.loss
        return self._loss_on(np.sort(largest(nearness, count)))

    # Descent.

    def _descend(self, points: Array, theta: Array, steps: int, all_rows: bool) -> None:
        """Move the points by `steps` steps, then find the best coefficients and the outputs of all rows."""
        rows = self._enough_rows(points.size)
        if all_rows or rows.size == self.rows.n:
            self.points, self.found = self._descend_on_all(points, theta, steps)
            return
        loss = self._loss_on_subsample(rows)
        loss.theta = theta
        self.points, _ = self._quasi_newton(loss, points, steps)
        self.loss.theta = loss.theta
        self.found = self.loss.settle(self.points)

    def _descend_on_all(self, points: Array, theta: Array, steps: int) -> tuple[Array, Fitted]:
        """Return points and coefficients after `steps` steps; most rows are used only between rounds."""
        self.loss.theta = theta
        return self._rounds(points, self.loss.settle(points), steps)

    def _rounds(self, points: Array, found: Fitted, steps: int) -> tuple[Array, Fitted]:
        while steps > 0 and not self.run.over:
            self.run.checkpoint.keep(pack(SavedRounds(**self._placed(points, found), steps=steps)))
            part = self._loss_on_relevant(found.outputs)
            part.theta = found.theta
            moved, taken = self._quasi_newton(part, points, min(ROUND_STEPS, steps))
            self.loss.theta = part.theta
            after = self.loss.settle(moved)
            gain, steps = found.loss - after.loss, steps - ROUND_STEPS
            if gain > 0:
                points, found = moved, after
            if gain <= LEAST_GAIN * found.loss or taken < ROUND_STEPS:
                break
        return points, found

    def _after_trial(self, points: Array, steps: int) -> tuple[float, Array, Array]:
        """Return the loss on the subsample after a few steps from the points, and the points and coefficients then."""
        self.subsample_loss.theta = self.found.theta
        points, _ = self._quasi_newton(self.subsample_loss, points, steps)
        found = self.subsample_loss.settle(points)
        return found.loss, points, found.theta

    def _quasi_newton(self, loss: ProjectedLoss, points: Array, steps: int) -> tuple[Array, int]:
        """Return points after some steps of L-BFGS, and the number of steps."""
        scale = 1 / max(loss.total_weight, 1e-300)
        loss.forget()

        def value_and_gradient(points: Array) -> tuple[float, Array]:
            value, gradient = loss(points)
            return scale * value, scale * gradient

        memory = memory_for(points.size)
        settings = DescentSettings(steps, memory=memory, ftol=0.0, gtol=0.0, window=WINDOW, least_gain=LEAST_GAIN)
        end = descend(value_and_gradient, points, settings, self.run.deadline)
        return end.x, end.steps

    # The span in which points of rows with many features move.

    def _begin_span(self) -> None:
        """Find the first directions of the span, by linear models."""
        if self.span is None or self.span.d:
            return
        limits = SPAN_ROUNDS, SPAN_DIRECTIONS
        self._move_in(discriminating_span(self.span, self.margin_targets, self.task.weights, self.unit, *limits))

    def _widen(self) -> None:
        """Add the gradients of all points to the span and continue, as often as `WIDENINGS` says."""
        while self.span is not None and self.widened < WIDENINGS and not self.run.over:
            slopes = self.loss.problem.slopes(self.found.outputs)
            self._move_in(self.span.widened_downhill(self.points, slopes, self.found.coef, SPAN_DIRECTIONS))
            self.widened += 1
            self.points, self.found = self._rounds(self.points, self.found, WIDENED_STEPS)

    def _move_in(self, span: SpannedRows) -> None:
        """Continue in a span that has further directions after the present ones."""
        more = np.zeros((self.points.shape[0], span.d - self.points.shape[1]))
        self.rows = self.span = span
        self.points = np.hstack([self.points, more])
        theta, self.loss = self.loss.theta, ProjectedLoss(span, self.margin_targets, self.task.weights, self.loss.decay)
        self.loss.theta = theta
        self.subsample_loss = self._loss_on_subsample(self.subsample)

    # Initial points.

    def _fresh_starts(self, size: int) -> Iterator[Array]:
        """Yield initial points that do not depend on the present model: k-means, and random rows moved towards the mean."""
        nothing = np.zeros(self.margin_targets.shape)  # the outputs without a model
        yield self.new_points(size, nothing)
        mean = self.rows.to_coordinates(self.rows.mean(self.subsample))
        for share in TOWARDS_MEAN:
            yield mean + share * (self.new_points(size, nothing, sample=1) - mean)

    def new_points(self, count: int, outputs: Array, sample: int | None = None) -> Array:
        """Return new points: k-means centres of rows that fall short, in equal number from each group of rows."""
        sample = KMEANS_ROWS if sample is None else sample
        mass = (self.task.weights[:, None] * np.square(self.margin_targets.residual(outputs))).sum(axis=1)
        totals = np.bincount(self.groups, weights=mass)
        order = np.argsort(-totals, kind="stable")
        counts = np.full(order.size, count // order.size)
        counts[order[: count % order.size]] += 1
        found = [
            self._means(np.flatnonzero(self.groups == k), mass, counts[k], max(sample, counts[k]))
            for k in range(order.size)
            if counts[k]
        ]
        return np.vstack([np.zeros((0, self.points.shape[1])), *found])

    def _means(self, rows: Array, mass: Array, count: int, sample: int) -> Array:
        """Return centres of a sample of the rows, drawn in proportion to their mass."""
        chances = mass[rows] / mass[rows].sum() if mass[rows].any() else None
        most = min(sample, rows.size if chances is None else int((chances > 0).sum()))
        if most < count:
            chances, most = None, min(sample, rows.size)
        drawn = self.rng.choice(rows, most, replace=False, p=chances)
        centres = self.rows.means(drawn, count, self.rng, rounds=KMEANS_ROUNDS)
        return self.rows.to_coordinates(centres)
