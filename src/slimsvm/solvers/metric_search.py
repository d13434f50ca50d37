"""The search behind slim with a learned metric: mini-batches first, then a quasi-Newton descent on all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..checks import check_at_least_zero
from ..keeping import Saved, restore_rng, rng_state
from ..kernels import Array, Matrix
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.metric_problem import MetricLosses
from ..rows.threads import one_blas_thread
from .adam import AdamSettings, Moments, plain_steps, recorded_steps, take_steps
from .descent import DescentSettings, descend
from .learned_metric import KINDS, MetricLoss, Parameters, ParameterUnits, at_points, grown, metric_of
from .point_search import Objective, PointSearch, Schedule

#: the share of the time left for a model below the largest size, times its size as a share of the largest, and the least
#: such share. More: better small models, less time for the largest
WAY_SECONDS, LEAST_SHARE = 0.15, 0.05
#: L-BFGS is skipped if there is no time for this many steps
FEWEST_STEPS = 20
#: L-BFGS ends when this many steps together gain less than this share of the loss. More steps, or less gain: a later end
WINDOW, LEAST_GAIN = 20, 1e-4
#: the state before a descent
NOTHING = Saved(None)


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
        Mini-batches and steps of L-BFGS for smaller sizes, on a subsample of the rows.
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


class MetricSearch(PointSearch):
    """A model that grows under one objective, whose metric is learned with its points and coefficients."""

    def __init__(
        self,
        task: Task,
        objective: Objective,
        unit: float,
        schedule: Schedule,
        deadline: Deadline,
        learning: Learning,
        kind: str,
    ) -> None:
        super().__init__(task, objective, unit, schedule.in_all_features(), deadline)
        self.learning, self.kind, self.clamped = learning, kind, False
        scale = float(np.std(self.demands.residual(np.zeros(self.demands.shape)))) if task.goal.real else 1.0
        self.units = ParameterUnits(spread(task.rows.take(self.subsample)), scale or 1.0, KINDS[kind])
        self.parameters = Parameters(self.points, self.found.theta, np.zeros(task.rows.d), np.zeros(0))

    @property
    def name(self) -> str:
        """The settings as text."""
        return f"{self.objective.name}, metric={self.kind}"

    @property
    def model(self) -> Expansion:
        """The present model."""
        found, rows = self.parameters, self.task.rows
        metric = metric_of(found, KINDS[self.kind])
        return Expansion(rows.kernel, rows.outward(found.points), found.theta[1:].copy(), found.theta[0].copy(), metric)

    def state(self) -> dict[str, Any]:
        """Return the state that the next size depends on, for a keeper."""
        return {
            "objective": self.objective.name,
            "model": self.parameters.state(),
            "clamped": self.clamped,
            "subsample": self.subsample,
            "rng": rng_state(self.rng),
            "task_rng": rng_state(self.task.rng),
        }

    def restore(self, saved: Saved) -> None:
        """Continue from a saved state."""
        self.parameters = self._read_parameters(saved.part("model"))
        self.clamped = saved.value("clamped", bool)
        self.subsample = saved.places("subsample", self.task.rows.n)
        self.units = replace(self.units, spread=spread(self.task.rows.take(self.subsample)))
        restore_rng(self.rng, saved.part("rng"))
        restore_rng(self.task.rng, saved.part("task_rng"))

    def _read_parameters(self, saved: Saved) -> Parameters:
        return Parameters.restored(saved, self.task.rows.d, self.demands.shape[1])

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

    def learn(self, size: int, *, last: bool, share: float = 1.0) -> None:
        """Grow to a model of that size: on all rows if it is the last one, else on a subsample.

        `share` is the size as a share of the last one. Smaller models get time in proportion.
        """
        missing = size - self.parameters.points.shape[0]
        if missing > 0:
            self.parameters = grown(self.parameters, self._new_points(missing, self.model.on(self.task.rows)))
        rows = np.arange(self.task.rows.n) if last else self._enough_rows(self.parameters.points.size)
        self._descend_in_metric(rows, self._last_effort(rows.size) if last else self._way_effort(share))

    def resume_last(self, saved: Saved) -> None:
        """Continue the last size from a saved state of its descent."""
        self._resume(saved, self._last_effort(self.task.rows.n))

    def finish(self) -> None:
        """Refine the model on all rows for some passes at a lower rate."""
        self._descend_in_metric(np.arange(self.task.rows.n), self._finish_effort())

    def resume_finish(self, saved: Saved) -> None:
        """Continue the refinement from a saved state of its descent."""
        self._resume(saved, self._finish_effort())

    def _resume(self, saved: Saved, effort: LearningEffort) -> None:
        self.parameters = self._read_parameters(saved.part("model"))
        self._descend_in_metric(np.arange(self.task.rows.n), effort, saved)

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
        seconds = WAY_SECONDS * max(share, LEAST_SHARE)
        return LearningEffort(
            self.learning.way_batches, self.learning.rate, self.learning.way_steps, (0.6 * seconds, 0.4 * seconds)
        )

    # Descent.

    def _descend_in_metric(self, rows: Array, effort: LearningEffort, saved: Saved = NOTHING) -> None:
        """Move points, coefficients and metric together; keep the lowest loss seen, which may be the start's.

        `saved` is the state of a descent from the same start, which continues.
        """
        loss = self._metric_loss(rows)
        effort = self._affordable(loss, effort)
        x = self._by_batches(loss, effort, saved)
        self.keeper.keep({"model": loss.start.state(), "batches_ended": x})
        seen = _Lowest(loss.cheapest_near(x), np.zeros(x.size))
        self._polish(loss, seen, x, effort)
        self.parameters, self.clamped = loss.at(seen.x), loss.at_bound(seen.x)

    def _metric_loss(self, rows: Array, start: Parameters | None = None) -> MetricLoss:
        """Return the loss on some of the rows, relative to the present model or another one."""
        part, learning = self.task.part(rows), self.learning
        total = max(float(self.task.weights.sum()), 1e-300)
        decay = self.unit * (self.schedule.least_decay if self.objective.decay is None else self.objective.decay)
        return MetricLoss(
            part.rows,
            self.demands[rows] if rows.size < self.task.rows.n else self.demands,
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
        left = self.deadline.left
        if left is None:
            return np.inf
        points = self.task.rows.inward(self.task.rows.take(self.subsample[:size]))
        loss = self._metric_loss(self.subsample, at_points(self.parameters, points))
        if loss.at_home is not loss:
            return 0.0
        begun = perf_counter()
        loss(np.zeros(loss.origin.size))
        seconds = (perf_counter() - begun) * (self.task.rows.n / self.subsample.size) * max(size / points.shape[0], 1.0)
        return left / max(seconds, 1e-9)

    def _affordable(self, loss: MetricLoss, effort: LearningEffort) -> LearningEffort:
        """Return the effort; without L-BFGS if there is time for a few steps only, which mini-batches then use."""
        for_batches, for_steps = effort.shares
        share = (1 - for_batches) * for_steps
        if loss.at_home is not loss or not effort.steps:
            return effort
        if share * self.passes_left(loss.start.points.shape[0]) * self.task.rows.n > FEWEST_STEPS * loss.rows.n:
            return effort
        return replace(effort, steps=0, shares=(for_batches + share, 0.0))

    def _by_batches(self, loss: MetricLoss, effort: LearningEffort, saved: Saved) -> Array:
        """Return the vector after a descent by mini-batches, which keeps it in the home of the rows."""
        if "batches_ended" in saved.state:
            return saved.array("batches_ended", loss.origin.size)
        there, settings = loss.at_home, AdamSettings(effort.batches, effort.rate, self._seconds(effort.shares[0]))
        size = max(self._batch_rows(loss.rows.n), there.least_batch)
        batches = MiniBatches(there.shuffled, loss.rows.n, size, self.rng)
        now = Moments.at(there.sent(np.zeros(loss.origin.size)))
        if "batches" in saved.state:
            batches.restore(saved.part("batches"))
            now = _read_moments(saved.part("descent"), there, loss.origin.size)

        def offered(now: Moments) -> dict[str, Any]:
            descent = {name: there.fetched(getattr(now, name)).copy() for name in ("x", "mean", "square")}
            return {"model": loss.start.state(), "batches": batches.state(), "descent": descent | {"steps": now.steps}}

        with one_blas_thread():
            x = take_steps(
                _steps(there, batches, now),
                now,
                settings,
                self.deadline,
                lambda now: self.keeper.offer(lambda: offered(now)),
            )
        return there.fetched(x)

    def _polish(self, loss: MetricLoss, seen: _Lowest, x: Array, effort: LearningEffort) -> None:
        """Run L-BFGS from the better of the start and the end of the mini-batches; few coefficients are whitened."""
        seen(x)
        seconds = self._seconds(effort.shares[1])
        deadline = self.deadline if seconds is None else Deadline(seconds)
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
            descend(seen, seen.x, settings, deadline)
            return
        variables = loss.whitened(seen.x)

        def value_and_gradient(u: Array) -> tuple[float, Array]:
            value, gradient = seen(variables.at(u))
            return value, variables.carried(gradient)

        descend(value_and_gradient, np.zeros(x.size), settings, deadline)

    def _seconds(self, share: float) -> float | None:
        """Return a share of the time left; None without a deadline."""
        left = self.deadline.left
        return None if left is None else share * left


class MiniBatches:
    """The numbers of rows for mini-batches, each row at most once in a pass; `shuffled` returns all rows in a new order."""

    def __init__(
        self, shuffled: Callable[[np.random.Generator], Any], rows: int, size: int, rng: np.random.Generator
    ) -> None:
        self.shuffled, self.rows, self.size, self.rng = shuffled, rows, min(size, rows), rng
        self._begin()

    def _begin(self, place: int = 0) -> None:
        """Begin a pass, at a place in the order of its rows."""
        self.before, self.place = rng_state(self.rng), place
        self.order = self.shuffled(self.rng)

    def __next__(self) -> Any:
        """Return the next batch."""
        if self.place + self.size > self.rows:
            self._begin()
        self.place += self.size
        return self.order[self.place - self.size : self.place]

    def state(self) -> dict[str, Any]:
        """Return the state that the next batches depend on."""
        return {"rng": self.before, "place": self.place}

    def restore(self, saved: Saved) -> None:
        """Continue from a saved state."""
        restore_rng(self.rng, saved.part("rng"))
        self._begin(saved.count("place"))


def _steps(there: MetricLosses, batches: MiniBatches, now: Moments) -> Callable[[float], None]:
    """Return a function that takes a step of Adam on the next batch, recorded where the home can do that."""
    held = batches.order[: batches.size] + 0  # recorded steps read the numbers of their rows here
    again = recorded_steps(lambda x: there.on_batch(x, held), now, there.keep_within, there.recorded)
    if again is None:
        return plain_steps(lambda x: there.on_batch(x, next(batches)), now, there.keep_within)

    def step(rate: float) -> None:
        held[...] = next(batches)
        again(rate)

    return step


def _read_moments(saved: Saved, there: MetricLosses, size: int) -> Moments:
    x, mean, square = (there.sent(saved.array(name, size)) for name in ("x", "mean", "square"))
    return Moments(x, mean, square, saved.count("steps"))


class _Lowest:
    """A loss that remembers the vector with its lowest value: L-BFGS may step to where the loss is infinite."""

    def __init__(self, loss: Callable[[Array], tuple[float, Array]], start: Array) -> None:
        self.loss, self.x, self.value = loss, start, np.inf
        self(start)

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the loss and its gradient."""
        value, gradient = self.loss(x)
        if value < self.value:
            self.x, self.value = x.copy(), value
        return value, gradient


def spread(X: Matrix) -> Array:
    """Return the standard deviation of each feature; exactly 0 where all rows have the same value."""
    if not issparse(X):
        return np.where(np.ptp(X, axis=0) > 0, X.std(axis=0, dtype=np.float64), 0.0)
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    squares = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
    varying = X.max(axis=0).toarray().ravel() != X.min(axis=0).toarray().ravel()
    return np.where(varying, np.sqrt(np.maximum(squares - mean**2, 0.0)), 0.0)


def with_objective(search: MetricSearch, objective: Objective) -> MetricSearch:
    """Return a search under another objective that continues from the model of this one."""
    if objective.name == search.objective.name:
        return search
    other = MetricSearch(
        search.task, objective, search.unit, search.schedule, search.deadline, search.learning, search.kind
    )
    other.parameters = replace(search.parameters)
    return other
