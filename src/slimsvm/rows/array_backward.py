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

    Sums of a tile are in the precision of kernel values; those of all tiles are float64, on the host.
    """
    (m, d), on, dtype = placed.shape, rows.backend, rows.held.dtype
    send = partial(on.send, dtype=dtype)
    factors = np.ones(d) if metric.factors is None else metric.factors
    widths = np.ones(m) if metric.widths is None else metric.widths
    kernel, weights = metric_sums(rows.kernel, placed, V, factors, widths, send, on.xp), send(V)
    points = on.points_in(metric, placed, dtype, inner=isinstance(rows.kernel, InnerKernel))
    squares = send(factors**2)
    totals: list[Array] = []

    def work(some: slice) -> None:
        A = rows.held.values[some, :]
        K = rows.tile(_measured(rows, A, squares), points)
        W = send(slopes(some, on.fetch(K @ weights)))
        parts = [on.fetch(part) for part in (K.T @ W, *kernel.sums(A, K, W))]
        totals[:] = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts

    rows.meter.add(2 * rows.n * m)
    on.tiled(rows.n, 3 * m + d, work)
    coef, *sums = totals
    by_points, log_factors, log_widths = kernel.gradient(sums)
    return MetricGradient(by_points, coef, log_factors, log_widths)


def _measured(rows: ArrayRows, A: Any, squares: Any) -> Held:
    """Return rows of a tile with their squared norms in the metric."""
    norms = (A * A) @ squares if isinstance(rows.kernel, InnerKernel) else None
    return Held(A, norms, 0.0, rows.held.dtype)
