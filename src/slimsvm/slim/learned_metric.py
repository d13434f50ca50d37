"""The loss of a model whose points, coefficients and metric are learned together.

    1/n sum_i w_i loss_i(f(x_i)) + decay / n |coef|^2 + pull / n (|log f|^2 + |log w|^2)

with the loss of a row (`goals.demands`): the squared distance of its outputs from their demands, or the cross-entropy of
its class. n is the sum of the weights, f are factors of the features and w widths of the points (`metric.Metric`). With
widths the kernel matrix among points is not a Gram matrix, and |f|^2 in a feature space is not defined, so coefficients are
regularised instead. `pull` regularises factors and widths towards 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ..goals.demands import RowLoss
from ..kernels import Array
from ..kernels.metric_gradients import MetricGradient
from ..metric import Metric
from ..rows.metric_problem import HasCoarseRows, HasMetricLosses, MetricLosses, MetricProblem
from ..rows.protocol import Rows
from ..states import floats
from .whitening import Whitening

#: for each kind of metric, whether factors and whether widths are learned
KINDS = {"fixed": (False, False), "scales": (True, False), "widths": (False, True), "both": (True, True)}
#: rows on which float32 is compared with the rows' own precision, and the share of the loss by which it may differ
COMPARED, HARDLY = 8192, 1e-4
#: least and most rows for the estimate of curvature, which uses four for each point. More: better directions, more time
CURVATURE_ROWS = 4096, 16384


@dataclass(frozen=True)
class Parameters:
    """The parameters of a model: points in the home's coordinates, biases above coefficients, and logarithms."""

    points: Annotated[Array, floats("m", "d")]
    theta: Annotated[Array, floats(("m", 1), "q")]
    log_factors: Annotated[Array, floats("d")]
    log_widths: Annotated[Array, floats("m")]

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """The parts, in the order of a vector."""
        return self.points, self.theta, self.log_factors, self.log_widths


@dataclass(frozen=True)
class ParameterUnits:
    """The unit of each part, so that one rate suits all of them.

    Points move in standard deviations of each feature, coefficients in those of the outputs.
    """

    spread: Array  # (d,), 0 for features that are constant
    outputs: float
    learned: tuple[bool, bool]
    #: the unit of a logarithm; more: the metric moves faster than points do
    logarithm: float = 0.5

    def of(self, like: Parameters) -> Array:
        """Return the unit of each number of a vector; 0 for parts that are not learned and for constant features."""
        scales, widths = self.learned
        varying = self.spread > 0
        parts = Parameters(
            np.broadcast_to(self.spread, like.points.shape),
            np.full(like.theta.shape, self.outputs),
            np.where(varying, self.logarithm * scales, 0.0),
            np.full(like.log_widths.shape, self.logarithm * widths),
        )
        return np.concatenate([part.ravel() for part in parts.arrays])


class MetricLoss:
    """The loss and its gradient as functions of a vector: the difference to an initial model, in units.

    `decay` and `pull` are already divided by the sum of all weights, so the loss on some rows estimates that on all.
    """

    least_batch = 1

    def __init__(
        self,
        rows: Rows,
        row_loss: RowLoss,
        weights: Array,
        start: Parameters,
        units: ParameterUnits,
        decay: float,
        pull: float,
        bound: float,
    ) -> None:
        start = _without_unlearned(start, units.learned)
        self.rows, self.row_loss, self.weights, self.start = rows, row_loss, weights, start
        self.units, self.decay, self.pull, self.outputs = units.of(start), decay, pull, units.outputs
        self.learned = units.learned
        self.total = max(float(weights.sum()), 1e-300)
        self.ends = np.cumsum([part.size for part in start.arrays])
        self.origin = np.concatenate([part.ravel() for part in start.arrays])
        self.limit = float(np.log(bound))
        self.coarse: Rows = rows.coarse(start.points.shape[0]) if isinstance(rows, HasCoarseRows) else rows
        self._there = self._sent_home()

    @property
    def at_home(self) -> MetricLosses:
        """The loss in the home of the rows, if the home computes it; otherwise this one."""
        return self if self._there is None else self._there

    def _sent_home(self) -> MetricLosses | None:
        """Return the loss in the home of the rows; None if the home does not compute it."""
        (m, d), q = self.start.points.shape, self.start.theta.shape[1]
        if not isinstance(self.rows, HasMetricLosses):
            return None
        problem = MetricProblem(
            (m, d, q),
            self.origin,
            self.units,
            self.row_loss.name,
            self.row_loss.sides,
            self.weights,
            self.total,
            self.outputs,
            self.decay,
            self.pull,
            self.limit,
        )
        return self.rows.metric_losses(problem)

    def sent(self, x: Array) -> Array:
        """Return the vector: this loss is on the host."""
        return x

    def shuffled(self, rng: np.random.Generator) -> Array:
        """Return the numbers of all rows in random order."""
        return rng.permutation(self.rows.n)

    def fetched(self, x: Array) -> Array:
        """Return a vector on the host."""
        return x

    def at(self, x: Array) -> Parameters:
        """Return the model of a vector, with logarithms within their bounds."""
        values = self.units * x
        values += self.origin
        parts = np.split(values, self.ends[:-1])
        points, theta = parts[0].reshape(self.start.points.shape), parts[1].reshape(self.start.theta.shape)
        return Parameters(points, theta, *(np.clip(part, -self.limit, self.limit) for part in parts[2:]))

    def keep_within(self, x: Array) -> None:
        """Clip the logarithms in a vector to their bounds, in place."""
        logs, units = slice(self.ends[1], None), self.units[self.ends[1] :]
        moves = units > 0
        values = np.clip(self.origin[logs] + units * x[logs], -self.limit, self.limit)
        x[logs] = np.where(moves, (values - self.origin[logs]) / np.where(moves, units, 1.0), 0.0)

    def recorded(self, work: Callable[[], None], changed: list[Array]) -> None:
        """Return None: the host repeats no work."""

    def at_bound(self, x: Array) -> bool:
        """Return whether a logarithm is at its bound."""
        model = self.at(x)
        return any((np.abs(part) >= self.limit * (1 - 1e-12)).any() for part in (model.log_factors, model.log_widths))

    def metric(self, model: Parameters) -> Metric:
        """Return the metric of a model."""
        return metric_of(model, self.learned)

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the loss and its gradient on all rows."""
        if self.at_home is not self:
            return self.at_home(x)
        return self._on(x, self.rows, self.row_loss, self.weights, self.total)

    def on_batch(self, x: Array, batch: Array) -> Array:
        """Return an estimate of the gradient from some of the rows."""
        return self._on_some(x, self.coarse, batch)[1]

    def on_coarse_rows(self, x: Array) -> tuple[float, Array]:
        """Return the loss and its gradient on all rows in float32."""
        return self._on(x, self.coarse, self.row_loss, self.weights, self.total)

    def cheapest_near(self, x: Array) -> Callable[[Array], tuple[float, Array]]:
        """Return the loss on all rows: in float32 if that hardly differs at x, else in the rows' own precision."""
        if self.at_home is not self or self.coarse is self.rows:
            return self
        some = np.arange(0, self.rows.n, -(-self.rows.n // COMPARED))
        exact, coarse = (self._on_some(x, rows, some)[0] for rows in (self.rows, self.coarse))
        return self.on_coarse_rows if abs(coarse - exact) <= HARDLY * exact else self

    def whitened(self, x: Array) -> Whitening:
        """Return variables for a descent from x in which the curvature of coefficients is about 1, by a sample of rows."""
        model = self.at(x)
        count = int(np.clip(4 * model.points.shape[0], *CURVATURE_ROWS))
        some = np.arange(0, self.rows.n, -(-self.rows.n // count))
        rows, weights = self.rows.subset(some), self.weights[some]
        K = rows.product(rows.outward(model.points), np.eye(model.points.shape[0]), self.metric(model))
        D = np.hstack([np.ones((some.size, 1)), K])
        steepness = self.row_loss[some].curvature(D @ model.theta)
        curvature = (steepness / max(float(weights.sum()), 1e-300)) * (D.T @ (weights[:, None] * D))
        return Whitening.of(x, slice(int(self.ends[0]), int(self.ends[1])), curvature + 2 * self.decay * np.eye(D.shape[1]))

    def _on_some(self, x: Array, rows: Rows, some: Array) -> tuple[float, Array]:
        total = self.total * some.size / self.rows.n
        return self._on(x, rows.subset(some), self.row_loss[some], self.weights[some], total)

    def _on(self, x: Array, rows: Rows, row_loss: RowLoss, weights: Array, total: float) -> tuple[float, Array]:
        model, unit = self.at(x), total * self.outputs**2
        coef, bias, losses, by_outputs = model.theta[1:], model.theta[0], np.empty(rows.n), np.empty(row_loss.shape)

        def slopes(some: slice, outputs: Array) -> Array:
            losses[some], by_outputs[some] = row_loss[some].measured(outputs + bias)
            return weights[some, None] / unit * by_outputs[some]

        found = rows.backpropagate(model.points, coef, self.metric(model), slopes)
        value = float(weights @ losses) / unit
        return value + self._penalty(model), self._gradient(x, model, found, (weights @ by_outputs) / unit)

    def _penalty(self, model: Parameters) -> float:
        logs = sum(float(part @ part) for part in (model.log_factors, model.log_widths))
        return self.decay * float(np.square(model.theta[1:]).sum()) / self.outputs**2 + self.pull * logs

    def _gradient(self, x: Array, model: Parameters, found: MetricGradient, bias: Array) -> Array:
        """Return the gradient with respect to the vector; 0 for logarithms that would leave their bounds."""
        coef = found.coef + 2 * self.decay / self.outputs**2 * model.theta[1:]
        parts = Parameters(
            found.points,
            np.vstack([bias, coef]),
            found.log_factors + 2 * self.pull * model.log_factors,
            found.log_widths + 2 * self.pull * model.log_widths,
        )
        gradient = np.concatenate([part.ravel() for part in parts.arrays])
        gradient *= self.units
        logs = slice(self.ends[1], None)
        outside = self.origin[logs] + self.units[logs] * x[logs]
        gradient[logs][np.abs(outside) > self.limit] = 0.0
        return gradient


def _without_unlearned(model: Parameters, learned: tuple[bool, bool]) -> Parameters:
    """Return a model whose metric is 1 in the parts that are not learned, as in `metric_of`."""
    scales, widths = learned
    return replace(model, log_factors=scales * model.log_factors, log_widths=widths * model.log_widths)


def metric_of(model: Parameters, learned: tuple[bool, bool]) -> Metric:
    """Return the metric of a model; None for a part that is not learned."""
    factors, widths = (
        np.exp(part) if given else None for part, given in zip((model.log_factors, model.log_widths), learned, strict=True)
    )
    return Metric(factors, widths)


def at_points(model: Parameters, points: Array) -> Parameters:
    """Return a model of other points without coefficients, with the factors of this one."""
    empty = replace(model, points=points[:0], theta=model.theta[:1], log_widths=model.log_widths[:0])
    return grown(empty, points)


def grown(model: Parameters, points: Array) -> Parameters:
    """Return a model with more points, without coefficients, and with the mean width of the others."""
    count, width = points.shape[0], float(model.log_widths.mean()) if model.log_widths.size else 0.0
    return replace(
        model,
        points=np.vstack([model.points, points]),
        theta=np.vstack([model.theta, np.zeros((count, model.theta.shape[1]))]),
        log_widths=np.concatenate([model.log_widths, np.full(count, width)]),
    )
