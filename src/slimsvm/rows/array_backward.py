"""The gradient of a model with a learned metric, in one pass over rows on a device."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import Array
from ..kernels.metric_gradients import MetricGradient, metric_sums
from ..metric import Metric
from .array_metric import MetricPoints
from .protocol import Slopes

if TYPE_CHECKING:
    from .array import ArrayRows


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
