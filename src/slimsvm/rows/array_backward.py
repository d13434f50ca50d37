"""The gradient of a model with a learned metric, in one pass over rows on a device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import Array, InnerKernel
from ..kernels.metric_gradients import MetricGradient, metric_sums
from ..metric import Metric
from .backends import Held
from .protocol import Slopes

if TYPE_CHECKING:
    from .array import ArrayRows


def backpropagate(rows: ArrayRows, placed: Array, V: Array, metric: Metric, slopes: Slopes) -> MetricGradient:
    """Return the gradient of a loss of K V, whose derivatives by outputs are the slopes.

    Sums of a tile are in the precision of kernel values, those of all tiles in the device's most precise numbers.
    """
    (m, d), on, dtype = placed.shape, rows.backend, rows.held.dtype
    send = partial(on.send, dtype=dtype)
    factors = np.ones(d) if metric.factors is None else metric.factors
    widths = np.ones(m) if metric.widths is None else metric.widths
    kernel, weights, squares = metric_sums(rows.kernel, placed, V, factors, widths, send, on.xp), send(V), send(factors**2)
    points = _points(rows, placed, metric, squares)
    totals: list[Any] = []

    def work(some: slice) -> None:
        A = rows.held.values[some, :]
        K = rows.tile(_measured(rows, A, squares), points)
        W = send(slopes(some, on.fetch(K @ weights)))
        parts = [on.cast(part, on.sum_dtype) for part in (K.T @ W, *kernel.sums(A, K, W))]
        totals[:] = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts

    rows.meter.add(2 * rows.n * m)
    on.tiled(rows.n, m + d, work)
    coef, *sums = (on.fetch(total) for total in totals)
    by_points, log_factors, log_widths = kernel.gradient(sums)
    return MetricGradient(by_points, coef, log_factors, log_widths)


def _points(rows: ArrayRows, placed: Array, metric: Metric, squares: Any) -> Held:
    """Return the points with the metric folded in; for inner products that is done on the device."""
    on, dtype = rows.backend, rows.held.dtype
    if not isinstance(rows.kernel, InnerKernel):
        return on.points_in(metric, placed, dtype, inner=False)
    Z = on.send(placed, dtype)
    folded = Z * squares
    widths = None if metric.widths is None else on.send(metric.widths, dtype)
    return Held(folded, on.xp.sum(folded * Z, axis=1), 0.0, dtype, widths)


def _measured(rows: ArrayRows, A: Any, squares: Any) -> Held:
    """Return rows of a tile with their squared norms in the metric."""
    norms = (A * A) @ squares if isinstance(rows.kernel, InnerKernel) else None
    return Held(A, norms, 0.0, rows.held.dtype)
