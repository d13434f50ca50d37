"""Kernel values and gradients of points with a learned metric, and the loss of such a model, on a device.

For kernels of the inner product the points contain the squared factors, <f x, f z> = <x, f^2 z>, and only the norms of the
rows change. Other kernels multiply the rows of a tile by the factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..goals.demands import SHARPNESS, CrossEntropy, Demands
from ..kernels import RBF, Array, InnerKernel, Kernel, Matrix
from ..kernels.metric_gradients import MetricGradient, gaussian_gradient, metric_sums
from ..metric import Metric
from .backends import FLOAT32, FLOAT64, Backend, Held
from .metric_problem import MetricProblem
from .precision import fits_float32, rounding_error
from .protocol import Slopes
from .recording import TRIALS, recorded

if TYPE_CHECKING:
    from .array import ArrayRows


@dataclass(frozen=True)
class MetricPoints:
    """Points on a device with their metric."""

    values: Any  # (m, d): f^2 z for kernels of the inner product, f z for others
    norms: Any  # (m,), |f z|^2
    factors: Any  # (d,), or None for ones
    widths: Any  # (m,), or None for ones
    radius: float  # the largest squared norm

    @classmethod
    def of(cls, on: Backend, kernel: Kernel, placed: Array, metric: Metric, dtype: np.dtype) -> MetricPoints:
        """Return points that are relative to the rows' centre."""
        factors = np.ones(placed.shape[1]) if metric.factors is None else metric.factors
        folded = placed * (factors**2 if isinstance(kernel, InnerKernel) else factors)
        norms = np.square(placed * factors).sum(axis=1)
        sent = [None if part is None else on.send(part, dtype) for part in (metric.factors, metric.widths)]
        return cls(on.send(folded, dtype), on.send(norms, dtype), sent[0], sent[1], float(norms.max(initial=0.0)))

    def values_of(self, kernel: Kernel, A: Any, xp: Any) -> Any:
        """Return the kernel values of a tile of rows."""
        widths = {} if self.widths is None else {"widths": self.widths}
        if isinstance(kernel, InnerKernel):
            return kernel.tail(A @ self.values.T, self.row_norms(A, xp), self.norms, xp, **widths)
        return kernel.values(A if self.factors is None else A * self.factors, self.values, xp, **widths)

    def row_norms(self, A: Any, xp: Any) -> Any:
        """Return |f x|^2 for the rows of a tile."""
        scaled = A if self.factors is None else A * self.factors
        return xp.sum(scaled * scaled, axis=1)


def metric_product(rows: ArrayRows, points: Matrix, V: Array, metric: Metric) -> Array:
    """Return K(rows, points) @ V in a metric; in float64 where float32 is too coarse for the metric."""
    on, kernel, placed = rows.backend, rows.kernel, rows.inward(points)
    held, there = rows.held, MetricPoints.of(on, kernel, placed, metric, rows.held.dtype)
    if held.dtype == FLOAT32 and isinstance(kernel, InnerKernel):
        radius = max(_radius(rows, held, there), there.radius)
        if rounding_error(kernel, rows.d, radius, metric) > rows.precision.most(rows.error):
            held, there = rows.in_float64(), MetricPoints.of(on, kernel, placed, metric, FLOAT64)
    out, weights = np.zeros((rows.n, V.shape[1])), on.send(V, on.sum_dtype)

    def work(some: slice) -> None:
        K = there.values_of(kernel, held.values[some, :], on.xp)
        out[some] = on.fetch(on.cast(K, on.sum_dtype) @ weights)

    on.tiled(rows.n if V.shape[0] else 0, V.shape[0] + rows.d, work)
    return out


def _radius(rows: ArrayRows, held: Held, there: MetricPoints) -> float:
    """Return the largest squared norm of the rows in the metric."""
    largest, xp = [0.0], rows.backend.xp

    def work(some: slice) -> None:
        largest.append(float(xp.max(there.row_norms(held.values[some, :], xp))))

    rows.backend.tiled(rows.n, 2 * rows.d, work)
    return max(largest)


def backpropagate(rows: ArrayRows, placed: Array, V: Array, metric: Metric, slopes: Slopes) -> MetricGradient:
    """Return the gradient of a loss of the outputs K V; `slopes` are its derivatives with respect to the outputs.

    Sums over a tile have the precision of kernel values, sums over tiles the device's highest precision.
    """
    (m, d), on, dtype = placed.shape, rows.backend, rows.held.dtype
    send = partial(on.send, dtype=dtype)
    factors = np.ones(d) if metric.factors is None else metric.factors
    widths = np.ones(m) if metric.widths is None else metric.widths
    kernel, weights = metric_sums(rows.kernel, placed, V, factors, widths, send, on.xp), send(V)
    points = MetricPoints.of(on, rows.kernel, placed, metric, dtype)
    totals: list[Any] = []

    def work(some: slice) -> None:
        A = rows.held.values[some, :]
        K = points.values_of(rows.kernel, A, on.xp)
        W = send(slopes(some, on.fetch(K @ weights)))
        parts = [on.cast(part, on.sum_dtype) for part in (K.T @ W, *kernel.sums(A, K, W))]
        totals[:] = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts

    rows.meter.add(2 * rows.n * m)
    on.tiled(rows.n, m + d, work)
    coef, *sums = (on.fetch(total) for total in totals)
    by_points, log_factors, log_widths = kernel.gradient(sums)
    return MetricGradient(by_points, coef, log_factors, log_widths)


#: the rows of a mini-batch on a GPU: fewer leave it idle between batches; and the least batches of a pass
GPU_BATCH, GPU_BATCHES = 1 << 15, 8


class ArrayMetricLosses:
    """`MetricLosses` on a device (the rbf kernel). Large mini-batches are float32: rounding is below their sampling noise.

        K_ij = exp(-gamma w_j (|f x_i|^2 + |f z_j|^2 - 2 <x_i, f^2 z_j>)) = exp(<(x_i, |f x_i|^2, 1), r_j>)

    One product gives all exponents, and with one output one more product gives all sums over rows that the gradient needs:
    K' (W * (x, |f x|^2, 1)). So a kernel value is written twice and read a few times, for any number of features.
    """

    def __init__(self, rows: ArrayRows, problem: MetricProblem) -> None:
        self.rows, self.problem, self.on, self.xp = rows, problem, rows.backend, rows.backend.xp
        m, d, q = problem.sizes
        narrow = self.on.plain_float32 and rows.precision.is_large(rows.n, m, d) and fits_float32(rows.held.radius)
        self.coarse = self.on.converted(rows.held, FLOAT32) if narrow else rows.held
        self.ends = np.cumsum([m * d, (m + 1) * q, d, m])
        self.origin, self.units = self.sent(problem.origin), self.sent(problem.units)
        self.lowest, self.highest = (self.sent(bound) for bound in _bounds(problem, int(self.ends[1])))
        self.least_batch = min(GPU_BATCH, rows.n // GPU_BATCHES) if self.on.is_gpu else 1
        self.sides = self.on.send(np.hstack([*problem.sides, problem.weights[:, None]]), self.coarse.dtype)

    def sent(self, x: Array) -> Any:
        """Return a host vector on the device."""
        return self.on.send(x, self.on.sum_dtype)

    def shuffled(self, rng: np.random.Generator) -> Any:
        """Return the numbers of all rows in random order."""
        return self.on.permutation(self.rows.n, rng)

    def fetched(self, x: Any) -> Array:
        """Return a vector on the host."""
        return self.on.fetch(x)

    def keep_within(self, x: Any) -> None:
        """Clip the logarithms in a vector to their bounds, in place."""
        xp, start = self.xp, int(self.ends[1])
        x[start:] = xp.minimum(xp.maximum(x[start:], self.lowest), self.highest)

    def recorded(self, work: Callable[[], None], changed: list[Any]) -> Callable[[], None] | None:
        """Return a function that repeats some work on vectors on a CUDA device, and counts its evaluations."""
        meter = self.rows.meter
        before = meter.evaluations
        again = recorded(self.on, work, changed)
        evaluations = (meter.evaluations - before) // (TRIALS + 1)
        meter.add(before - meter.evaluations)
        if again is None:
            return None

        def counted() -> None:
            meter.add(evaluations)
            again()

        return counted

    def on_batch(self, x: Any, batch: Any) -> Any:
        """Return an estimate of the gradient from some of the rows."""
        problem, count, dtype = self.problem, batch.shape[0], self.coarse.dtype
        self.rows.meter.add(2 * count * problem.sizes[0])
        model = _Model(self, x, dtype, dtype)
        A, sides = (self.xp.take(part, batch, axis=0) for part in (self.coarse.values, self.sides))
        unit = problem.total * count / self.rows.n * problem.outputs**2
        return model.gradient(model.sums(A, sides, unit)[1:])

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the loss and its gradient on all rows."""
        problem, on, rows = self.problem, self.on, self.rows
        m, d, _ = problem.sizes
        model, totals = _Model(self, self.sent(x), rows.held.dtype, rows.value_dtype(rows.held)), list[Any]()
        unit = problem.total * problem.outputs**2

        def work(some: slice) -> None:
            parts = [
                on.cast(part, on.sum_dtype) for part in model.sums(rows.held.values[some, :], self.sides[some, :], unit)
            ]
            totals[:] = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts

        rows.meter.add(2 * rows.n * m)
        on.tiled(rows.n, m + d, work)
        gradient = on.fetch(model.gradient(totals[1:]))
        logs = slice(int(self.ends[1]), None)
        beyond = np.abs(problem.origin[logs] + problem.units[logs] * x[logs]) > problem.limit
        gradient[logs][beyond] = 0.0
        return float(totals[0] + model.penalty()), gradient


class _Model:
    """A model on the device: exponents in one precision, kernel values and sums of a tile in another."""

    def __init__(self, losses: ArrayMetricLosses, x: Any, exponents: np.dtype, values: np.dtype) -> None:
        (m, d, q), xp, on = losses.problem.sizes, losses.xp, losses.on
        self.problem, self.xp, self.on, self.dtype, self.units = losses.problem, xp, on, values, losses.units
        self.gamma: float = losses.rows.kernel.gamma  # type: ignore[attr-defined]
        numbers, (first, second) = losses.origin + losses.units * x, (int(end) for end in losses.ends[:2])
        self.Z, self.theta = xp.reshape(numbers[:first], (m, d)), xp.reshape(numbers[first:second], (m + 1, q))
        self.logs = xp.clip(numbers[second:], min=-self.problem.limit, max=self.problem.limit)
        metric = xp.exp(self.logs)
        self.factors, self.widths, V = metric[:d], metric[d:], self.theta[1:, :]
        # with one output P_ij = W_i K_ij V_j, and `gradient` multiplies by V_j at the end
        self.scale = V[:, 0] if q == 1 else xp.ones_like(self.widths)
        squares, reach = self.factors**2, self.gamma * self.widths[:, None]
        folded = self.Z * squares
        norms = xp.sum(folded * self.Z, axis=1)[:, None]
        self.right = on.cast(xp.concat([2 * reach * folded, -reach, -reach * norms], axis=1).T, exponents)
        self.squares = on.cast(squares, exponents)
        self.V, self.bias = on.cast(V, values), on.cast(self.theta[:1, :], values)
        self.with_pulls = on.cast(xp.concat([V, (self.widths * self.scale)[:, None]], axis=1), values)

    def sums(self, A: Any, sides: Any, unit: float) -> tuple[Any, ...]:
        """Return the sums over rows: the loss, its slopes by biases and coefficients, and the sums of `GaussianSums`."""
        xp, on, q = self.xp, self.on, self.problem.sizes[2]
        squared = A * A
        norms = (squared @ self.squares)[:, None]
        lifted = xp.concat([A, norms, xp.ones_like(norms)], axis=1)
        K = xp.exp(xp.clip(on.cast(lifted @ self.right, self.dtype), max=0.0))
        lifted, squared, sides = (on.cast(part, self.dtype) for part in (lifted, squared, sides))
        products = K @ self.with_pulls  # outputs, and with one output the products for the factors' sums
        outputs, weights = products[:, :q] + self.bias, sides[:, -1:]
        losses, slopes = ROW_LOSSES[self.problem.loss](xp, outputs, sides)
        W = weights * slopes / unit
        loss = xp.sum(weights * losses) / unit
        if q == 1:
            found, pulled = K.T @ (W * lifted), W * products[:, 1:]
            coef = found[:, -1:]
        else:
            coef = K.T @ W
            K *= W @ self.V.T
            found, pulled = K.T @ lifted, K @ self.with_pulls[:, q:]
        return loss, xp.sum(W, axis=0), coef, found, (pulled.T @ squared)[0, :]

    def gradient(self, sums: Any) -> Any:
        """Return the gradient with respect to the vector x, from the sums over rows without the loss."""
        (_, d, _), xp, problem = self.problem.sizes, self.xp, self.problem
        bias, coef, found, spread = (self.on.cast(part, self.on.sum_dtype) for part in sums)
        parts = found[:, :d], found[:, d], found[:, d + 1], spread
        points, *logs = gaussian_gradient(self.gamma, self.Z, self.scale, self.factors, self.widths, parts)
        coef = coef + (2 * problem.decay / problem.outputs**2) * self.theta[1:, :]
        by_logs = xp.concat(logs) + 2 * problem.pull * self.logs
        flat = [xp.reshape(part, (-1,)) for part in (points, bias, coef, by_logs)]
        return self.units * xp.concat(flat)

    def penalty(self) -> Any:
        """Return the regularisation of coefficients and logarithms."""
        coef, problem, xp = self.theta[1:, :], self.problem, self.xp
        return problem.decay / problem.outputs**2 * xp.sum(coef * coef) + problem.pull * xp.sum(self.logs * self.logs)


def _squared_distances(xp: Any, outputs: Any, sides: Any) -> tuple[Any, Any]:
    """Return `Demands.measured` on the device; losses have a column for each output, or one in all."""
    q = outputs.shape[1]
    residual = xp.minimum(xp.maximum(outputs, sides[:, :q]), sides[:, q : 2 * q]) - outputs
    return residual * residual, -2 * residual


def _cross_entropy(xp: Any, outputs: Any, sides: Any) -> tuple[Any, Any]:
    """Return `CrossEntropy.measured` on the device; one output is the difference of two scores."""
    targets, q = sides[:, :-1], outputs.shape[1]
    if q == 1:
        outputs, targets = (xp.concat([part / 2, -part / 2], axis=1) for part in (outputs, 2 * targets))
    scores = SHARPNESS * (outputs - xp.max(outputs, axis=1, keepdims=True))
    shares = xp.exp(scores)
    sums, own = xp.sum(shares, axis=1, keepdims=True), (targets + 1) / 2
    losses = xp.log(sums) - xp.sum(own * scores, axis=1, keepdims=True)
    slopes = SHARPNESS * (shares / sums - own)
    return losses, slopes[:, :1] if q == 1 else slopes


#: losses of rows on a device, by name
ROW_LOSSES: dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    Demands.name: _squared_distances,
    CrossEntropy.name: _cross_entropy,
}


def metric_losses(rows: ArrayRows, problem: MetricProblem) -> ArrayMetricLosses | None:
    """Return the loss of a problem; None for kernels other than rbf."""
    return ArrayMetricLosses(rows, problem) if isinstance(rows.kernel, RBF) else None


def _bounds(problem: MetricProblem, first: int) -> tuple[Array, Array]:
    """Return the bounds of the logarithms in a vector; 0 for those that are not learned."""
    origin, units = problem.origin[first:], problem.units[first:]
    moves = units > 0
    lowest, highest = (
        np.where(moves, (side * problem.limit - origin) / np.where(moves, units, 1.0), 0.0) for side in (-1, 1)
    )
    return lowest, highest
