"""Kernel values of points with a learned metric, on a device.

For kernels of the inner product the points contain the squared factors, <f x, f z> = <x, f^2 z>, and only the norms of the
rows change. Other kernels multiply the rows of a tile by the factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import Array, InnerKernel, Kernel, Matrix
from ..metric import Metric
from .backends import FLOAT32, FLOAT64, Backend, Held
from .precision import rounding_error

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
    on, kernel, placed = rows.backend, rows.kernel, rows.to_coordinates(points)
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
