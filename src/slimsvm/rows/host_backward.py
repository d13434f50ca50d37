"""The gradient of a model with a learned metric, in one pass over rows in host memory.

A strip of kernel values is evaluated, used and dropped while it is in the processor's cache. No matrix of all rows and
points is held, so any number of rows can be used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse

from ..kernels import Array, Matrix
from ..kernels.metric_gradients import MetricGradient, metric_sums
from ..metric import Metric
from .host_matrix import HostMatrix
from .threads import blocks
from .tiles import FEW_FEATURES

if TYPE_CHECKING:
    from .host import HostRows

#: numbers in a strip of rows and their kernel values, half of a second-level cache; and the least rows of a strip
STRIP_VALUES, SMALLEST_STRIP = 1 << 17, 64
#: parts of the rows that are summed separately, so that sums do not depend on the number of threads
PARTS = 8
#: multiply-adds above which the parts are distributed to threads
WORTH_THREADS = 1 << 24
#: rows without a slope are skipped in the gradient of points if the others are at most this share
FEW = 0.6


def metric_pullback(against: HostMatrix, W: Array, V: Array, metric: Metric) -> MetricGradient:
    """Return the gradient of sum_ij <W_i, V_j> k(x_i, z_j) by points and metric, from kernel values that are held."""
    rows, placed = against.rows, against.points
    (m, d), dtype, values = placed.shape, against.K.dtype, against.prepared.values
    send = partial(np.asarray, dtype=dtype)
    factors = np.ones(d) if metric.factors is None else metric.factors
    widths = np.ones(m) if metric.widths is None else metric.widths
    kernel = metric_sums(rows.kernel, placed, V, factors, widths, send)
    strip = max(STRIP_VALUES // (m + d + 1), SMALLEST_STRIP)

    def sums_of(first: int, last: int) -> list[Array]:
        totals: list[Array] = []
        for some in blocks(last - first, strip):
            place = slice(first + some.start, first + some.stop)
            A, K, slopes = _with_slopes(_written_out(values[place]), against.K[place], send(W[place]))
            parts = kernel.sums(A, K.copy() if K.base is not None else K, slopes)
            totals = totals if totals else [np.asarray(part, np.float64) for part in parts]
            if some.start:
                for total, part in zip(totals, parts, strict=True):
                    total += part
        return totals

    rows.meter.add(rows.n * m)
    sums = summed_in_parts(rows, sums_of, strip, rows.n * m * d)
    points, log_factors, log_widths = kernel.gradient(sums)
    return MetricGradient(points, np.zeros_like(V), log_factors, log_widths)


def summed_in_parts(rows: HostRows, sums_of: Callable[[int, int], list[Array]], strip: int, work: int) -> list[Array]:
    """Return the sums over all rows, in the same order for any number of threads."""
    count = min(PARTS, -(-rows.n // strip)) if work >= WORTH_THREADS else 1
    size = -(-rows.n // count)
    found: list[list[Array]] = [[] for _ in range(count)]

    def add(number: int) -> None:
        found[number] = sums_of(number * size, min((number + 1) * size, rows.n))

    if count == 1:
        add(0)
    else:
        rows.share_out(add, count)
    return [sum(parts[1:], start=parts[0]) for parts in zip(*(part for part in found if part), strict=True)]


def _written_out(A: Matrix) -> Matrix:
    """Return sparse rows of few features as dense ones: sparse products with many points are slow."""
    return A.toarray() if issparse(A) and A.shape[1] <= FEW_FEATURES else A


def _with_slopes(A: Matrix, K: Array, W: Array) -> tuple[Matrix, Array, Array]:
    """Return the rows that have a slope, if they are few, or all rows, with their kernel values and slopes."""
    active = np.flatnonzero(W.any(axis=1))
    return (A[active], K[active], W[active]) if active.size < FEW * W.shape[0] else (A, K, W)
