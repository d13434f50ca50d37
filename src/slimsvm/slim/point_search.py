"""The search behind slim: points that move downhill on a projected loss, from small models to larger ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, TypeVar

import numpy as np

from ..checks import check_at_least_zero
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
from .decay_choice import best_power, harmless_power
from .few_entries import with_few_entries
from .linear_span import discriminating_span
from .neighbours import block_numbers, validation_of

#: searches on fewer rows take fewer steps
USUAL_ROWS = 1500


@dataclass(frozen=True)
class Schedule:
    """Settings that decide how long slim searches, on which rows and from which initial points.

    Parameters
    ----------
    compare_at : int
        Size at which the two targets are compared. Larger: a fairer comparison, more time on both.
    target_margin : float
        Standard errors of the validation error by which "slant" must beat "label". The full model was trained on the
        validation rows, so slant's score is optimistic.
    least_decay, full_decay_at, several_decay : float, int, float
        With labels, decay grows from `least_decay` to 1 at `full_decay_at` points; few points regularise by themselves.
        With several outputs, which share their points, it grows to `several_decay`.
        The slant target keeps `least_decay` at every size, and has no decay if targets are real: the full model's
        outputs are smooth already.
    decay_factor, decay_powers, decay_margin : float, int, float
        With labels and validation rows, multiples of that decay are tried: powers of `decay_factor`, up to `decay_powers`
        of them up or down. Another decay is used from then on if the loss on random validation rows is lower by
        `decay_margin` standard errors, and it does no more harm to blocks of neighbouring rows than to random rows, for a
        model that was grown without these blocks. With `decay_powers` of 0 none are tried.
    decays_from, decays_at, decay_steps : int
        Decays are tried at one size: the largest from `decays_from` to `decays_at` that is below the size asked for. If
        random rows are for another one, the model without the blocks is found by `decay_steps` descent steps, or half of
        them with several outputs. More points or steps: a choice for models more like the last one, more time.
    several_starts_up_to : int
        Largest size for which several sets of initial points are tried.
    towards_mean : tuple of float
        Initial points are also drawn among the rows and moved towards the mean of all rows. Each number is the share of
        the distance that is left, and one more trial.
    trial_steps, early_trial_steps : int
        Descent steps after which the best initial points are chosen: for the largest size, and for smaller sizes.
    few_numbers : int
        With at most this many numbers in points (size times features), the largest size gets up to three times the steps.
    round_steps : int
        Descent steps between two passes over all rows. More: cheaper steps, on a less current choice of rows.
    memory, memory_values : int
        Past steps that L-BFGS learns curvature from, and the most numbers in them.
    window, least_gain : int, float
        A descent ends when `window` steps together gain less than `least_gain` times the loss.
    patience : float
        The largest size and the refinement of the chosen model have so many times the steps, and end at so many times less
        gain. With 10, small models have a lower error, and a search uses most of its time limit.
    rows_per_number, least_rows : int
        Size of the subsample for models below the largest size: rows for each number to be found, and the least rows.
    nearby, beside : int
        Rows that a round uses: `nearby` for each row that falls short of its margin target, nearest to it first, and
        `beside` more.
    subsample_share : float
        All rows are used if a subsample would have more than this share of them.
    kmeans_rounds, kmeans_rows : int
        Rounds of k-means for initial points, and the most rows that it uses. Initial points are compared on as many rows.
    most_values : int
        The most kernel values between rows and points in memory. A subsample is used if all rows need more.
    most_features : int
        The most features of points if rows are sparse and have more: those with most of the squared length of all
        rows. Fewer: faster steps and smaller models, but less accurate ones if rare features separate the classes.
    wide : int
        With more features, points of sparse rows move in the span of a few directions (`slim.linear_span`). With a value
        of at least the number of features they move in all features, which is slow.
    several_features, span_share : int, float
        With more features, points of other rows move in the span of the principal axes that hold this share of the rows'
        variance, if that saves most of the work. With a share of 1 they move in all features.
    span_rounds, span_directions : int
        Rounds that find the first directions of the span, and the most directions that a round or a widening adds.
    widenings, widened_steps : int
        How often the gradients of the chosen model's points are added to a span of directions of sparse rows, and the
        descent steps after each time. More: a lower loss, nearer to that of the plain form, in more time. The span of
        principal axes is left as it is: models in a wider one have a lower loss, but no lower error on held-out rows.
    entries_change : float
        Points of sparse rows in a span of directions keep the fewest entries that change the outputs on the training rows
        by this share of their standard deviation (`slim.few_entries`). More: smaller models that differ more. With 0
        points have an entry for every feature that occurs.
    usual_rows : int
        Rows for which the largest size takes `Slim.steps` steps, with several outputs. More rows take more of them, up to
        twice as many, since they show more of what points can learn; fewer rows take fewer, half of them at least.
    """

    compare_at: int = 64
    target_margin: float = 2.0
    least_decay: float = 0.1
    full_decay_at: int = 64
    several_decay: float = 0.3
    decay_factor: float = 10.0
    decay_powers: int = 2
    decay_margin: float = 2.0
    decay_steps: int = 25
    decays_from: int = 4
    decays_at: int = 32
    several_starts_up_to: int = 16
    towards_mean: tuple[float, ...] = (0.5, 0.25)
    trial_steps: int = 30
    early_trial_steps: int = 10
    few_numbers: int = 1000
    round_steps: int = 100
    memory: int = 40
    memory_values: int = 1 << 23
    window: int = 10
    least_gain: float = 1e-3
    patience: float = 1.0
    rows_per_number: int = 10
    least_rows: int = 8192
    nearby: int = 3
    beside: int = 1024
    subsample_share: float = 0.6
    kmeans_rounds: int = 10
    kmeans_rows: int = 4096
    most_values: int = 1 << 26
    most_features: int = 1 << 20
    wide: int = 4096
    several_features: int = 128
    span_share: float = 0.9
    span_rounds: int = 10
    span_directions: int = 64
    widenings: int = 2
    widened_steps: int = 20
    entries_change: float = 0.05
    usual_rows: int = 1 << 14

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            for number in value if isinstance(value, tuple) else (value,):
                check_at_least_zero(setting.name, number)

    def in_all_features(self) -> Schedule:
        """Return the schedule for points that move in all features."""
        return replace(self, wide=sys.maxsize, several_features=sys.maxsize)

    def memory_for(self, numbers: int) -> int:
        """Return the past steps of L-BFGS in a search for this many numbers."""
        return int(np.clip(self.memory_values // numbers, 10, self.memory))

    def affordable(self, task: Task, size: int) -> Task:
        """Return the task on all rows, or on a subsample that keeps the kernel values to `size` points in memory."""
        return task.part(task.sample(max(self.most_values // size, 1)))


@dataclass(frozen=True)
class Objective:
    """A loss: the demands, from the labels or from the full model, and the weight of |f|^2."""

    target: str
    decay: float | None
    model: Expansion | None
    multiple: float = 1.0  # of the decay that the schedule gives

    @property
    def made(self) -> Made:
        """The settings of models under this objective."""
        return Made(target=self.target, decay=self.multiple)

    def tries_decays(self, schedule: Schedule) -> bool:
        """Return whether other decays are tried: with labels, unless the decay is given."""
        return self.target == "label" and self.decay is None and schedule.decay_powers > 0

    def with_other_decays(self, schedule: Schedule) -> list[Objective]:
        """Return this objective, and those with the other decays that may be chosen."""
        if not self.tries_decays(schedule):
            return [self]
        powers = range(-schedule.decay_powers, schedule.decay_powers + 1)
        return [self.with_decay(schedule, power) for power in sorted(powers, key=abs)]

    def with_decay(self, schedule: Schedule, power: int) -> Objective:
        """Return this objective with its usual decay times a power of the schedule's factor."""
        return replace(self, multiple=schedule.decay_factor**power)

    def decay_at(self, size: int, schedule: Schedule, outputs: int, real: bool) -> float:
        """Return the share of the SVM's own regularisation for a model of that size; `real` for real targets."""
        if self.decay is not None:
            return self.decay
        if self.target == "slant":
            return 0.0 if real else schedule.least_decay
        full = 1.0 if outputs == 1 else schedule.several_decay
        return self.multiple * float(np.clip(size / schedule.full_decay_at, schedule.least_decay, full))


def briefer(steps: int, rows: int) -> int:
    """Return fewer steps where rows are few, at least a tenth: the loss on a few rows is soon as low as it is worth."""
    return int(np.ceil(steps * np.clip(rows / USUAL_ROWS, 0.1, 1.0)))


def known_objectives(objectives: Sequence[Objective], schedule: Schedule) -> list[Objective]:
    """Return the objectives that a model may have in the end: with the decays that are tried on the way."""
    return [each for given in objectives for each in given.with_other_decays(schedule)]


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

    `features` are the features of points; None for the schedule's choice.
    """

    def __init__(
        self,
        task: Task,
        objective: Objective,
        unit: float,
        schedule: Schedule,
        features: Array | None = None,
    ) -> None:
        self.task = replace(task, run=task.run.saved_by())  # with a checkpoint, it saves the rounds on all rows
        self.objective, self.unit, self.schedule = objective, unit, schedule
        self.features = task.rows.main_features(schedule.most_features) if features is None else features
        self.home = task.rows if self.features is None else task.rows.on_features(self.features)
        self.span = self.home.spanned(
            schedule.wide, schedule.several_features, schedule.span_share
        )  # None: in all features
        self.widens = self.span is not None and self.span.d == 0  # directions are found on the way
        self.widened = schedule.widenings  # times that the span was widened; `refine` starts at 0
        self.rows: Rows = self.home if self.span is None else self.span
        self.demands = wanted(task, objective.model)
        self.rng = np.random.default_rng(task.rng.integers(2**32))
        self.loss = ProjectedLoss(self.rows, self.demands, task.weights, unit)
        self.subsample = task.sample(schedule.kmeans_rows)
        self.subsample_loss = self._loss_on_subsample(self.subsample)
        self.groups = task.goal.groups(task.targets)
        self.points = np.zeros((0, self.rows.d))
        self.found = Fitted(np.zeros((1, self.demands.shape[1])), np.zeros(self.demands.shape), np.inf)
        self.least_gain = schedule.least_gain

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
        return points if self.features is None else self.home.inward(points)

    def read(self, written: Array) -> Matrix:
        """Return the points of a model from the array of `written`."""
        return written if self.features is None else self.home.outward(written)

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
        (n, q), sizes = self.demands.shape, {"d": self.rows.d} if self.span is None else {"features": self.home.d}
        found = unpack(kind, saved, n=n, q=q, **sizes)
        if self.span is not None:
            if found.basis is None:
                raise StateError("no 'basis'")
            self.points = self.points[:0, :0]
            self._move_in(self.span.on_basis(found.basis))
            self.widened = found.widened
        return found

    def be_patient(self) -> None:
        """Let descents end at the gain that the schedule has for the last size."""
        self.least_gain = self.schedule.least_gain / max(self.schedule.patience, 1e-9)

    @property
    def model(self) -> Expansion:
        """The present model."""
        return self._model_of_fit(self.found)

    def _model_of_fit(self, found: Fitted) -> Expansion:
        """Return the model with the present points and these coefficients."""
        return Expansion(self.rows.kernel, self.rows.outward(self.points), found.coef.copy(), found.bias.copy())

    @one_blas_thread()  # products are small, and woken threads of BLAS wait actively
    def sparse_model(self) -> Expansion:
        """Return the present model; points in a span of directions of sparse rows have few entries, if that is possible."""
        schedule, model = self.schedule, self.model
        if self.span is None or not self.widens or not schedule.entries_change or self.run.over:
            return model
        sums = self.span.slope_products(self.points)
        return with_few_entries(self.task.rows, model, sums, self.found.outputs, schedule.entries_change, self.run.deadline)

    @one_blas_thread()  # products are small, and woken threads of BLAS wait actively
    def grow(self, size: int, steps: int, *, all_rows: bool, last: bool) -> None:
        """Grow to a model of that size; a small one is also tried from new initial points."""
        self._set_decay(size)
        self._begin_span()
        start = np.vstack([self.points, self._new_points(size - self.points.shape[0], self.found.outputs)])
        theta = self.found.theta
        if 1 < size <= self.schedule.several_starts_up_to and (last or self.demands.shape[1] == 1):
            trial_steps = self.schedule.trial_steps if last else self.schedule.early_trial_steps
            trial_steps = briefer(trial_steps, self.rows.n)
            trials = [self._after_trial(points, trial_steps) for points in (start, *self._fresh_starts(size))]
            _, start, theta = min(trials, key=lambda trial: trial[0])
        self._descend(start, theta, steps, all_rows)

    @one_blas_thread()  # products are small, and woken threads of BLAS wait actively
    def refine(self, model: Expansion, steps: int) -> None:
        """Refine a model by some steps on all rows, and in a wider span."""
        self._set_decay(model.size)
        self.widened = 0 if steps and self.widens else self.schedule.widenings
        if self.span is not None:
            self._move_in(self.span.including(model.points))
        start = self.rows.inward(model.points)
        self._descend(start, np.vstack([model.bias, model.coef]), steps, all_rows=True)
        self._widen()

    def best_objective(self, objectives: Sequence[Objective], steps: int) -> PointSearch:
        """Return the search under the objective with the lowest validation error after some steps from here.

        The first objective wins unless another is clearly better.
        """
        rows = self._enough_rows(self.points.size)
        part, unit = self.task.part(rows), self.unit * self._weight_share(rows)
        trials = [PointSearch(part, objective, unit, self.schedule, self.features) for objective in objectives]
        for trial in trials:
            trial.refine(self.model, briefer(steps, rows.size))
        judged = [self.task.judge(trial.model) for trial in trials]
        errors, margin = [each.error for each in judged], self.schedule.target_margin * judged[0].standard_error
        best = trials[0] if errors[0] - margin <= min(errors) else trials[int(np.argmin(errors))]
        search = self.under(best.objective)
        search.refine(best.model, 0)
        return search

    def choose_decay(self) -> None:
        """Multiply the decay by the power of the schedule's factor that validation rows choose, if it does no harm.

        A random validation row has neighbours among the training rows. So for a model without blocks of neighbouring rows
        it must do no more harm to these than to random rows. Nothing else changes, the random numbers of the task included.
        """
        holdout, schedule = self.task.holdout, self.schedule
        if not self.objective.tries_decays(schedule) or holdout is None:
            return
        judged = self._judged_decays([holdout])
        margin, most = schedule.decay_margin, schedule.decay_powers
        power = best_power(lambda power: judged(power)[0], most, margin, self.run.deadline)
        if power and not self.run.over:
            power = self._harmless_on_blocks(power, holdout)
        if power and not self.run.over:
            self.objective = self.objective.with_decay(schedule, power)
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
            loss.decay, loss.theta = usual * self.schedule.decay_factor**power, self.found.theta
            model = self._model_of_fit(loss.settle(self.points))
            return [judge.judge_shortfall(model) for judge in judges]

        return judged

    def _harmless_on_blocks(self, power: int, holdout: Holdout) -> int:
        """Return the power, or one nearer to 0, that does no harm to blocks of rows without which a model is grown.

        That model has fewer rows, which alone may ask for more decay. So its random validation rows are beside the blocks.
        """
        schedule, task = self.schedule, replace(self.task, rng=deepcopy(self.task.rng))
        part = task.part(task.sample(schedule.least_rows))
        numbers = block_numbers(part.groups)
        if (numbers < 0).all():
            return 0
        blocks = [validation_of(part, np.flatnonzero(numbers == number)) for number in range(numbers.max() + 1)]
        rest = part.part(np.flatnonzero(numbers < 0))
        unit = self.unit * float(rest.weights.sum() / task.weights.sum())
        brief = replace(schedule, widenings=0, several_starts_up_to=1)
        search = PointSearch(rest, self.objective, unit, brief, self.features)
        if self.span is not None and search.span is not None:
            search._move_in(search.span.on_basis(self.span.basis))
        steps = schedule.decay_steps if self.demands.shape[1] == 1 else -(-schedule.decay_steps // 2)
        search.grow(self.points.shape[0], steps, all_rows=False, last=False)
        return harmless_power(power, search._judged_decays([holdout, *blocks]))

    def under(self, objective: Objective) -> PointSearch:
        """Return this search, or a new one on the same rows for another objective."""
        if objective.made == self.objective.made:
            return self
        return PointSearch(self.task, objective, self.unit, self.schedule, self.features)

    # Losses on some of the rows.

    def _set_decay(self, size: int) -> None:
        """Set the decay for this size."""
        goal = self.task.goal
        self.loss.decay = self.unit * self.objective.decay_at(size, self.schedule, goal.outputs, goal.real)
        self.subsample_loss.decay = self.loss.decay * self._weight_share(self.subsample)

    def _weight_share(self, rows: Array) -> float:
        """Return the rows' share of all weights; 1 if all weights are 0."""
        total = self.task.weights.sum()
        return float(self.task.weights[rows].sum() / total) if total else 1.0

    def _enough_rows(self, numbers: int, rng: np.random.Generator | None = None) -> Array:
        """Return a subsample that is large enough to find this many numbers, or all rows if these are not many more."""
        most = max(self.schedule.rows_per_number * numbers, self.schedule.least_rows)
        most = most if most < self.schedule.subsample_share * self.rows.n else self.rows.n
        return self.task.rows.sample(most, rng or self.task.rng)

    def _loss_on(self, rows: Array) -> ProjectedLoss:
        return ProjectedLoss(self.rows.subset(rows), self.demands[rows], self.task.weights[rows], self.loss.decay)

    def _loss_on_subsample(self, rows: Array) -> ProjectedLoss:
        """Return the loss on a random subsample, with the same relative weight of |f|^2 as on all rows."""
        if rows.size == self.rows.n:
            return self.loss
        loss = self._loss_on(rows)
        loss.decay *= self._weight_share(rows)
        return loss

    def _loss_on_relevant(self, outputs: Array) -> ProjectedLoss:
        """Return the loss on the relevant rows: those that fall short of their demands or nearly do."""
        nearness = self.demands.shortfall(outputs).max(axis=1)
        count = self.schedule.nearby * int((nearness > 0).sum()) + self.schedule.beside
        if count > self.schedule.subsample_share * nearness.size:
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
        round_steps = self.schedule.round_steps
        while steps > 0 and not self.run.over:
            self.run.checkpoint.keep(pack(SavedRounds(**self._placed(points, found), steps=steps)))
            part = self._loss_on_relevant(found.outputs)
            part.theta = found.theta
            moved, taken = self._quasi_newton(part, points, min(round_steps, steps))
            self.loss.theta = part.theta
            after = self.loss.settle(moved)
            gain, least, steps = found.loss - after.loss, self.least_gain, steps - round_steps
            if gain > 0:
                points, found = moved, after
            if gain <= least * found.loss or taken < round_steps:
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

        schedule, memory = self.schedule, self.schedule.memory_for(points.size)
        settings = DescentSettings(
            steps, memory=memory, ftol=0.0, gtol=0.0, window=schedule.window, least_gain=self.least_gain
        )
        end = descend(value_and_gradient, points, settings, self.run.deadline)
        return end.x, end.steps

    # The span in which points of rows with many features move.

    def _begin_span(self) -> None:
        """Find the first directions of the span, by linear models."""
        if self.span is None or self.span.d:
            return
        limits = self.schedule.span_rounds, self.schedule.span_directions
        self._move_in(discriminating_span(self.span, self.demands, self.task.weights, self.unit, *limits))

    def _widen(self) -> None:
        """Add the gradients of all points to the span and continue, as often as the schedule says."""
        while self.span is not None and self.widened < self.schedule.widenings and not self.run.over:
            slopes = self.loss.problem.slopes(self.found.outputs)
            most = self.schedule.span_directions
            self._move_in(self.span.widened_downhill(self.points, slopes, self.found.coef, most))
            self.widened += 1
            self.points, self.found = self._rounds(self.points, self.found, self.schedule.widened_steps)

    def _move_in(self, span: SpannedRows) -> None:
        """Continue in a span that has further directions after the present ones."""
        more = np.zeros((self.points.shape[0], span.d - self.points.shape[1]))
        self.rows = self.span = span
        self.points = np.hstack([self.points, more])
        theta, self.loss = self.loss.theta, ProjectedLoss(span, self.demands, self.task.weights, self.loss.decay)
        self.loss.theta = theta
        self.subsample_loss = self._loss_on_subsample(self.subsample)

    # Initial points.

    def _fresh_starts(self, size: int) -> Iterator[Array]:
        """Yield initial points that do not depend on the present model: k-means, and random rows moved towards the mean."""
        nothing = np.zeros(self.demands.shape)  # the outputs without a model
        yield self._new_points(size, nothing)
        mean = self.rows.inward(self.rows.mean(self.subsample))
        for share in self.schedule.towards_mean:
            yield mean + share * (self._new_points(size, nothing, sample=1) - mean)

    def _new_points(self, count: int, outputs: Array, sample: int | None = None) -> Array:
        """Return new points: k-means centres of rows that fall short, in equal number from each group of rows."""
        sample = self.schedule.kmeans_rows if sample is None else sample
        mass = (self.task.weights[:, None] * np.square(self.demands.residual(outputs))).sum(axis=1)
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
        centres = self.rows.means(drawn, count, self.rng, rounds=self.schedule.kmeans_rounds)
        return self.rows.inward(centres)
