"""The search behind slim with a learned metric: mini-batches first, then a quasi-Newton descent on all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter
from typing import Annotated

import numpy as np
from scipy.sparse import issparse

from ..checks import check_at_least_zero
from ..goals.demands import CrossEntropy, Demands, RowLoss
from ..kernels import Array, Matrix
from ..limits import Deadline
from ..model import Expansion, Judgement, Task
from ..rows.threads import one_blas_thread
from ..selection.path import Made
from ..solvers.descent import DescentSettings, descend
from ..states import State, StateError, floats, go_on, pack, row_numbers, unpack
from .adam import AdamSettings, Moments, take_steps
from .decay_choice import best_power
from .learned_metric import KINDS, MetricLoss, Parameters, ParameterUnits, at_points, grown, metric_of
from .mini_batches import MiniBatches, SavedBatches, steps_on
from .point_search import Objective, PointSearch, Schedule
from .watch import Lowest, Watch

#: the share of the time left for a model below the largest size, times its size as a share of the largest, and the least
#: such share. More: better small models, less time for the largest
WAY_SECONDS, LEAST_SHARE = 0.15, 0.05
#: the share of the time left for a trial of another decay. More: a safer choice, less time for the largest model
TRIAL_SECONDS = 0.03
#: standard errors of the difference by which another decay must be better. More: fewer changes of the decay
BETTER_BY = 1.0
#: other decays are tried if there is time for this many gradients on all rows, of which a trial needs four at least
PASSES_FOR_TRIALS = 40
#: the most passes over the rows for a model below the largest size. More: such models take longer on few rows, for no gain
WAY_PASSES = 100
#: L-BFGS is skipped if there is no time for this many steps
FEWEST_STEPS = 20
#: L-BFGS ends when this many steps together gain less than this share of the loss. More steps, or less gain: a later end
WINDOW, LEAST_GAIN = 20, 1e-4


@dataclass(frozen=True)
class Learning:
    """Settings for learning a metric.

    Parameters
    ----------
    passes : int
        Passes over the rows by mini-batches, for the largest size. More: better models, in proportion more time.
    batches : int
        Mini-batches of a pass. More: noisier and cheaper steps.
    smallest_batch, largest_batch : int
        Least and most rows of a mini-batch.
    rate : float
        The first rate of Adam, in standard deviations of each feature. It falls to 0 as half a cosine.
    steps : int
        The most steps of L-BFGS on all rows after the mini-batches.
    time_for_batches, time_for_steps : float
        With a time limit: the share of the time left that mini-batches may take, and the share of the rest for L-BFGS.
    way_batches, way_steps : int
        Mini-batches and steps of L-BFGS for smaller sizes, on a subsample of the rows; at most 100 passes.
    watch : float
        Checks of the validation loss during the descent of the largest size: so many for each pass over the rows. Where the
        loss at the end is clearly higher than at an earlier check, the earlier model is kept as it was. 0: no checks.
    finish : float
        Share of the passes and of the rate for the refinement of the chosen model on all rows.
    pull : float
        The regularisation of the logarithms of factors and widths, in units of the squared error of one row.
    bound : float
        Factors and widths are kept between 1 / bound and bound.
    most_whitened : int
        L-BFGS has whitened coefficients with at most this many points. The curvature of more points takes too long.
    most_numbers : int
        The most numbers in points (size times features) that may move together with a metric. More: more memory, about 250
        bytes for each number.
    """

    passes: int = 100
    batches: int = 128
    smallest_batch: int = 256
    largest_batch: int = 1024
    rate: float = 0.05
    steps: int = 500
    time_for_batches: float = 0.6
    time_for_steps: float = 0.6
    way_batches: int = 1000
    way_steps: int = 30
    watch: float = 1.0
    finish: float = 0.25
    pull: float = 1.0
    bound: float = 1000.0
    most_whitened: int = 1024
    most_numbers: int = 1 << 24

    def __post_init__(self) -> None:
        for setting in fields(self):
            check_at_least_zero(setting.name, getattr(self, setting.name))
        if max(self.time_for_batches, self.time_for_steps) > 1:
            raise ValueError(
                "time_for_batches and time_for_steps must be shares of at most 1, not "
                f"{self.time_for_batches!r} and {self.time_for_steps!r}"
            )
        if not self.bound > 1:
            raise ValueError(f"bound must be a number above 1, not {self.bound!r}")
        if not 1 <= self.smallest_batch <= self.largest_batch or self.batches < 1:
            raise ValueError(
                "batches must be at least 1, and smallest_batch a number from 1 to largest_batch, not "
                f"{self.batches!r}, {self.smallest_batch!r} and {self.largest_batch!r}"
            )


@dataclass(frozen=True)
class LearningEffort:
    """The work on one model: mini-batches with a first rate, L-BFGS steps, and the shares of the time left for both."""

    batches: int
    rate: float
    steps: int
    shares: tuple[float, float]


@dataclass
class SavedGrowth:
    """The state that the next size depends on."""

    model: Parameters
    clamped: bool
    stopped_early: bool
    subsample: Annotated[Array, row_numbers("n")]
    rng: np.random.Generator
    task_rng: np.random.Generator


@dataclass
class SavedDescent:
    """The state of a descent: of the model at its start, and of the vectors that are relative to it."""

    model: Parameters
    watched: Annotated[Array, floats("v")] | None = None
    batches: SavedBatches | None = None
    descent: Moments | None = None
    batches_ended: Annotated[Array, floats("v")] | None = None

    @property
    def vectors(self) -> list[Array]:
        """All vectors."""
        moments = [] if self.descent is None else [self.descent.x, self.descent.mean, self.descent.square]
        return [vector for vector in (self.watched, self.batches_ended, *moments) if vector is not None]


class MetricSearch(PointSearch):
    """A model that grows under one objective, whose metric is learned with its points and coefficients."""

    def __init__(
        self,
        task: Task,
        objective: Objective,
        unit: float,
        schedule: Schedule,
        learning: Learning,
        kind: str,
        loss: str = Demands.name,
    ) -> None:
        super().__init__(task, objective, unit, schedule.in_all_features())
        self.learning, self.kind, self.clamped, self.stopped_early = learning, kind, False, False
        self.loss_name = loss
        self.pass_seconds: dict[int, float] = {}  # of a gradient on all rows, by the number of points
        self.row_loss: RowLoss = CrossEntropy(task.targets) if loss == CrossEntropy.name else self.demands
        scale = float(np.std(self.demands.residual(np.zeros(self.demands.shape)))) if task.goal.real else 1.0
        self.units = ParameterUnits(spread(task.rows.take(self.subsample)), scale or 1.0, KINDS[kind])
        self.parameters = Parameters(self.points, self.found.theta, np.zeros(task.rows.d), np.zeros(0))

    @property
    def made(self) -> Made:
        """The settings of the present model."""
        return replace(self.objective.made, metric=self.kind, loss=self.loss_name, stopped=self.stopped_early)

    @property
    def model(self) -> Expansion:
        """The present model."""
        return self._model_of(self.parameters)

    def _model_of(self, found: Parameters) -> Expansion:
        rows = self.task.rows
        metric = None if self.kind == "fixed" else metric_of(found, KINDS[self.kind])
        return Expansion(rows.kernel, rows.outward(found.points), found.theta[1:].copy(), found.theta[0].copy(), metric)

    def state(self) -> State:
        """Return the state that the next size depends on, for a checkpoint."""
        ends = self.clamped, self.stopped_early
        return pack(SavedGrowth(self.parameters, *ends, self.subsample, self.rng, self.task.rng))

    def restore(self, saved: State) -> None:
        """Continue from a saved state."""
        found = unpack(SavedGrowth, saved, **self._sizes)
        self.parameters, self.clamped, self.stopped_early = found.model, found.clamped, found.stopped_early
        self.subsample = found.subsample
        self.units = replace(self.units, spread=spread(self.task.rows.take(self.subsample)))
        go_on(self.rng, found.rng)
        go_on(self.task.rng, found.task_rng)

    @property
    def _sizes(self) -> dict[str, int]:
        """The sizes that arrays of states have."""
        return {"n": self.task.rows.n, "d": self.task.rows.d, "q": self.demands.shape[1]}

    def adopt(self, model: Expansion) -> None:
        """Continue from a model, with its metric."""
        points = self.task.rows.inward(model.points)
        limit = np.log(self.learning.bound)
        logs = (np.clip(np.log(part), -limit, limit) for part in (model.factors, model.widths))
        self.parameters = Parameters(points, np.vstack([model.bias, model.coef]), *logs)

    def adopt_if_better(self, model: Expansion) -> None:
        """Continue from a model if its loss on a subsample is lower than that of the present one."""
        before, loss = self.parameters, self._metric_loss(self.subsample)
        lowest = loss(np.zeros(loss.origin.size))[0]
        self.adopt(model)
        loss = self._metric_loss(self.subsample)
        if loss(np.zeros(loss.origin.size))[0] > lowest:
            self.parameters = before

    def with_best_decay(self) -> MetricSearch:
        """Return the search under the multiple of the decay with the lowest validation loss after a short descent."""
        schedule, size = self.schedule, self.parameters.points.size
        judge = self._judge()
        if not size or not self.objective.tries_decays(schedule) or judge is None:
            return self
        if self.run.over or 0 < self.passes_left(self.parameters.points.shape[0]) < PASSES_FOR_TRIALS:
            return self
        rows, trials = self._enough_rows(size), dict[int, MetricSearch]()

        def judged(power: int) -> Judgement:
            trials[power] = self.copied(self.objective.with_decay(schedule, power))
            trials[power]._descend_in_metric(rows, self._effort_within(TRIAL_SECONDS))
            return judge(trials[power].model)

        return trials[best_power(judged, schedule.decay_powers, BETTER_BY, self.run.deadline)]

    def written(self, points: Matrix) -> Array:
        """Return the points of a model, which are an array, for a state."""
        return points

    def read(self, written: Array) -> Matrix:
        """Return the points of a model from the array of `written`."""
        return written

    def under(self, objective: Objective) -> MetricSearch:
        """Return this search, or one under another objective that continues from the model of this one."""
        return self if objective.made == self.objective.made else self.copied(objective)

    def copied(self, objective: Objective) -> MetricSearch:
        """Return a search under an objective that continues from the model of this one."""
        other = MetricSearch(self.task, objective, self.unit, self.schedule, self.learning, self.kind, self.loss_name)
        other.parameters, other.pass_seconds = replace(self.parameters), self.pass_seconds
        return other

    def learn(self, size: int, *, last: bool, share: float = 1.0) -> None:
        """Grow to a model of that size: on all rows if it is the last one, else on a subsample.

        `share` is the size as a share of the last one. Smaller models get time in proportion.
        """
        missing = size - self.parameters.points.shape[0]
        if missing > 0:
            self.parameters = grown(self.parameters, self._new_points(missing, self.model.on(self.task.rows)))
        rows = np.arange(self.task.rows.n) if last else self._enough_rows(self.parameters.points.size)
        self._descend_in_metric(rows, self._last_effort(rows.size) if last else self._way_effort(share), watched=last)

    def resume_last(self, saved: State) -> None:
        """Continue the last size from a saved state of its descent."""
        self._resume(saved, self._last_effort(self.task.rows.n), watched=True)

    def finish(self) -> None:
        """Refine the model on all rows for some passes at a lower rate."""
        self._descend_in_metric(np.arange(self.task.rows.n), self._finish_effort())

    def resume_finish(self, saved: State) -> None:
        """Continue the refinement from a saved state of its descent."""
        self._resume(saved, self._finish_effort())

    def _resume(self, saved: State, effort: LearningEffort, *, watched: bool = False) -> None:
        found = unpack(SavedDescent, saved, **self._sizes)
        if any(vector.size != sum(part.size for part in found.model.arrays) for vector in found.vectors):
            raise StateError("vectors of another model")
        self.parameters = found.model
        self._descend_in_metric(np.arange(self.task.rows.n), effort, found, watched=watched)

    def _batch_rows(self, rows: int) -> int:
        """Return the rows of a mini-batch."""
        learning = self.learning
        return int(np.clip(-(-rows // learning.batches), learning.smallest_batch, learning.largest_batch))

    def _last_effort(self, rows: int) -> LearningEffort:
        batches = -(-self.learning.passes * rows // min(self._batch_rows(rows), rows))
        shares = self.learning.time_for_batches, self.learning.time_for_steps
        return LearningEffort(batches, self.learning.rate, self.learning.steps, shares)

    def _finish_effort(self) -> LearningEffort:
        whole, share = self._last_effort(self.task.rows.n), self.learning.finish
        return LearningEffort(int(share * whole.batches), share * whole.rate, whole.steps, (0.5, 0.8))

    def _way_effort(self, share: float) -> LearningEffort:
        return self._effort_within(WAY_SECONDS * max(share, LEAST_SHARE))

    def _effort_within(self, seconds: float) -> LearningEffort:
        """Return the effort on a smaller size within a share of the time left."""
        learning, shares, rows = self.learning, (0.6 * seconds, 0.4 * seconds), self.task.rows.n
        batches = min(learning.way_batches, -(-WAY_PASSES * rows // min(self._batch_rows(rows), rows)))
        return LearningEffort(batches, learning.rate, learning.way_steps, shares)

    # Descent.

    def _descend_in_metric(
        self, rows: Array, effort: LearningEffort, saved: SavedDescent | None = None, *, watched: bool = False
    ) -> None:
        """Move points, coefficients and metric together; keep the lowest loss seen, which may be the start's.

        If the descent is watched, an earlier model is kept where its validation loss is clearly lower than that of the
        lowest loss. `saved` is the state of a descent from the same start, which continues. There is no descent after the
        deadline.
        """
        if self.run.over and saved is None:
            return
        loss = self._metric_loss(rows)
        effort = self._affordable(loss, effort)
        watch = self._watch(loss, saved, watched=watched)
        x = self._by_batches(loss, effort, saved, watch)
        self.run.checkpoint.keep(pack(SavedDescent(loss.start, watch.kept, batches_ended=x)))
        seen = Lowest(loss.cheapest_near(x), np.zeros(x.size))
        self._polish(loss, seen, x, effort, watch)
        best = watch.earlier_than(seen.x)
        self.stopped_early = best is not None
        kept = seen.x if best is None else best
        self.parameters, self.clamped = loss.at(kept), loss.at_bound(kept)

    def _judge(self) -> Callable[[Expansion], Judgement] | None:
        """Return the mean loss of the validation rows as a function of a model; None without such rows."""
        holdout = self.task.holdout
        if holdout is None or self.loss_name == Demands.name:
            return None if holdout is None else holdout.judge_shortfall
        return partial(holdout.judge_by, CrossEntropy(holdout.goal.encode(holdout.labels)))

    def _watch(self, loss: MetricLoss, saved: SavedDescent | None, *, watched: bool) -> Watch:
        """Return what watches the validation loss of a descent; it does nothing without validation rows."""
        judge, often = self._judge(), self.learning.watch
        if not watched or judge is None or not often:
            return Watch(None, np.inf, np.zeros(0))
        batch = max(self._batch_rows(loss.rows.n), loss.at_home.least_batch)
        start = np.zeros(loss.origin.size) if saved is None or saved.watched is None else saved.watched
        return Watch(lambda x: judge(self._model_of(loss.at(x))), max(loss.rows.n / (often * batch), 1.0), start)

    def _metric_loss(self, rows: Array, start: Parameters | None = None) -> MetricLoss:
        """Return the loss on some of the rows, relative to the present model or another one."""
        part, learning = self.task.part(rows), self.learning
        total = max(float(self.task.weights.sum()), 1e-300)
        least = self.schedule.least_decay * self.objective.multiple
        decay = self.unit * (least if self.objective.decay is None else self.objective.decay)
        return MetricLoss(
            part.rows,
            self.row_loss[rows] if rows.size < self.task.rows.n else self.row_loss,
            part.weights,
            start or self.parameters,
            self.units,
            decay / total,
            learning.pull / total,
            learning.bound,
        )

    def passes_left(self, size: int) -> float:
        """Return how many gradients on all rows the time left allows for a model of that size; infinity without a deadline.

        One gradient is timed on a subsample. A device returns before it has computed, so it is not timed: 0.
        """
        left = self.run.deadline.left
        if left is None:
            return np.inf
        if size not in self.pass_seconds:
            self.pass_seconds[size] = self._timed_pass(size)
        return left / max(self.pass_seconds[size], 1e-9)

    def _timed_pass(self, size: int) -> float:
        """Return the seconds of a gradient on all rows for a model of that size; infinity on a device."""
        points = self.task.rows.inward(self.task.rows.take(self.subsample[:size]))
        loss = self._metric_loss(self.subsample, at_points(self.parameters, points))
        if loss.at_home is not loss:
            return np.inf
        begun = perf_counter()
        loss(np.zeros(loss.origin.size))
        return (perf_counter() - begun) * (self.task.rows.n / self.subsample.size) * max(size / points.shape[0], 1.0)

    def _affordable(self, loss: MetricLoss, effort: LearningEffort) -> LearningEffort:
        """Return the effort; without L-BFGS if there is time for a few steps only, which mini-batches then use."""
        for_batches, for_steps = effort.shares
        share = (1 - for_batches) * for_steps
        if loss.at_home is not loss or not effort.steps:
            return effort
        if share * self.passes_left(loss.start.points.shape[0]) * self.task.rows.n > FEWEST_STEPS * loss.rows.n:
            return effort
        return replace(effort, steps=0, shares=(for_batches + share, 0.0))

    def _by_batches(self, loss: MetricLoss, effort: LearningEffort, saved: SavedDescent | None, watch: Watch) -> Array:
        """Return the vector after a descent by mini-batches, which keeps it in the home of the rows."""
        if saved is not None and saved.batches_ended is not None:
            return saved.batches_ended
        there, settings = loss.at_home, AdamSettings(effort.batches, effort.rate, self._seconds(effort.shares[0]))
        size = max(self._batch_rows(loss.rows.n), there.least_batch)
        batches = MiniBatches(there.shuffled, loss.rows.n, size, self.rng)
        now = Moments.at(there.sent(np.zeros(loss.origin.size)))
        if saved is not None and saved.batches is not None and saved.descent is not None:
            batches.restore(saved.batches)
            now = saved.descent.moved(there.sent)

        def offered(now: Moments) -> State:
            return pack(SavedDescent(loss.start, watch.kept, batches.state(), now.moved(there.fetched)))

        def looked_at(now: Moments) -> None:
            if watch.is_due(now.steps):
                watch(there.fetched(now.x))
            self.run.checkpoint.offer(lambda: offered(now))

        with one_blas_thread():
            x = take_steps(
                steps_on(there, batches, now),
                now,
                settings,
                self.run.deadline,
                looked_at,
            )
        return there.fetched(x)

    def _polish(self, loss: MetricLoss, seen: Lowest, x: Array, effort: LearningEffort, watch: Watch) -> None:
        """Run L-BFGS from the better of the start and the end of the mini-batches; few coefficients are whitened."""
        seen(x)
        seconds = self._seconds(effort.shares[1])
        deadline = self.run.deadline if seconds is None else Deadline(seconds)
        settings = DescentSettings(
            effort.steps,
            memory=self.schedule.memory_for(x.size),
            ftol=0.0,
            gtol=0.0,
            window=WINDOW,
            least_gain=LEAST_GAIN,
        )
        if not effort.steps:
            return
        if self.parameters.points.shape[0] > self.learning.most_whitened:
            descend(watch.beside(seen), seen.x, settings, deadline)
            return
        variables, watched = loss.whitened(seen.x), watch.beside(seen)

        def value_and_gradient(u: Array) -> tuple[float, Array]:
            value, gradient = watched(variables.at(u))
            return value, variables.carried(gradient)

        descend(value_and_gradient, np.zeros(x.size), settings, deadline)

    def _seconds(self, share: float) -> float | None:
        """Return a share of the time left; None without a deadline."""
        left = self.run.deadline.left
        return None if left is None else share * left


def spread(X: Matrix) -> Array:
    """Return the standard deviation of each feature; exactly 0 where all rows have the same value."""
    if not issparse(X):
        return np.where(np.ptp(X, axis=0) > 0, X.std(axis=0, dtype=np.float64), 0.0)
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    squares = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
    varying = X.max(axis=0).toarray().ravel() != X.min(axis=0).toarray().ravel()
    return np.where(varying, np.sqrt(np.maximum(squares - mean**2, 0.0)), 0.0)
