"""K(rows, points) in the memory of its device, for points that stay, grow in number or move.

Each answer is written once, over arrays of any library. A device adds four things: kernel values of a strip of rows, work
on strips of all rows, sums over rows in a fixed order, and copies to and from its memory. It overrides what it does faster:
the host by compiled code (`host_matrix`), an array library by its own solvers (`array_matrix`), a cluster by asking its
parts (`dask.rows`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from ..kernels import Array, Matrix, stacked
from ..kernels.metric_gradients import MetricGradient, metric_sums
from ..metric import Metric
from .curvatures import RunningCurvatures
from .protocol import Curvatures
from .threads import blocks

#: rows with weight 0 are skipped in gradients if the others are at most this share
FEW = 0.5
#: rows that are averaged in groups at a time; more: more memory
GROUPED_ROWS = 1 << 14


class KernelMatrix:
    """K = K(rows, points); all answers are on the host, in float64.

    Sums have the device's highest precision with `exact`, else that of kernel values. With `placed`, points are in the
    rows' own coordinates (`Rows.to_coordinates`). Where there is no memory for all kernel values, `K` is None, and each
    pass evaluates them again, a tile at a time.
    """

    rows: Any
    #: the number of points
    size: int

    def __init__(self, rows: Any, points: Matrix, *, placed: bool, exact: bool) -> None:
        self.rows, self.on, self.kernel, self.exact, self.placed = rows, rows.arrays, rows.kernel, exact, placed
        self.points, self.size, self.dtype = points, 0, rows.dtype
        self.K: Any = None  # kernel values, the first columns of `memory`
        self.memory: Any = None
        self.space: Any = None  # memory that `move` uses again
        self._fill(points)

    # What a device adds.

    def _fill(self, points: Matrix, metric: Metric | None = None) -> None:
        """Evaluate K for these points, in a metric if one is given; set K, memory, size and dtype."""
        raise NotImplementedError

    def _evaluated(self, some: slice, rows: Array | None) -> Any:
        """Return a tile of K that is not held."""
        raise NotImplementedError

    def _features(self) -> Any:
        """Return the features of all rows in their own coordinates, for gradients."""
        raise NotImplementedError

    def _each(self, work: Callable[[slice], None]) -> None:
        """Call work(strip) for strips of all rows, each of which reads its kernel values."""
        raise NotImplementedError

    def _summed(self, count: int, width: int, sums: Callable[[slice], Any], shape: tuple[int, ...], cost: int) -> Array:
        """Return the total of sums over strips of range(count), in the same order on every run.

        An item needs memory for `width` numbers, and as much time as reading `cost` numbers.
        """
        raise NotImplementedError

    def _values(self, some: slice, rows: Array | None = None) -> Any:
        """Return a tile of K: a slice of all rows, or of those with these numbers."""
        if self.K is None:
            return self._evaluated(some, rows)
        return self.K[some, :] if rows is None else self.on.take(self.K, rows[some])

    # Points.

    def move(self, placed: Array, V: Array, metric: Metric | None = None) -> Array:
        """Evaluate K for other points, also more or fewer, in a metric if one is given, and return the new K @ V."""
        self.points, self.placed = placed, True
        self._fill(placed, metric)
        return self.times(V)

    def append(self, points: Matrix) -> None:
        """Add points after the others."""
        old, new = self.size, type(self)(self.rows, points, placed=self.placed, exact=self.exact)
        self.points = stacked(self.points, points) if old else points
        size, dtype = old + new.size, np.result_type(self.dtype, new.dtype) if old else new.dtype
        if self.K is None or new.K is None or not self._has_room(size, dtype):
            self._fill(self.points)
            return
        self.memory[:, old:size] = self.on.cast(new.K, dtype)
        self.K, self.size = self.memory[:, :size], size

    def _has_room(self, size: int, dtype: np.dtype) -> bool:
        """Return whether there is memory for `size` points, after an attempt to allocate it."""
        if self.memory.shape[1] < size or self.dtype != dtype:
            memory = self.on.empty_or_none((self.rows.n, max(2 * self.size, size)), dtype)
            if memory is None:
                return False
            memory[:, : self.size] = self.on.cast(self.K, dtype)
            self.memory, self.dtype, self.space = memory, dtype, None
        return True

    def keep(self, columns: Array) -> None:
        """Keep some of the points, in this order, and drop the others."""
        self.points = self.points[columns]
        if self.K is None:
            self._fill(self.points)
        else:
            self.K = self.memory = self.on.take(self.K, columns, axis=1)
            self.size, self.space = columns.size, None

    def first(self, size: int) -> KernelMatrix:
        """Return the matrix of the first points, which shares their kernel values."""
        part = copy.copy(self)
        part.points, part.size, part.space = self.points[:size], size, None
        if self.K is None:
            part._fill(part.points)
        else:
            part.K = part.memory = self.K[:, :size]
        return part

    # Products.

    @property
    def _sum_dtype(self) -> np.dtype:
        return self.on.sum_dtype if self.exact else self.dtype

    def _rows(self, some: slice, rows: Array | None = None) -> Any:
        """Return rows of K, in the precision of sums."""
        return self.on.cast(self._values(some, rows), self._sum_dtype)

    def times(self, V: Array) -> Array:
        """Return K @ V, (n, q)."""
        products, weights = np.zeros((self.rows.n, V.shape[1]), order="F"), self.on.send(V, self._sum_dtype)

        def work(some: slice) -> None:
            products[some] = self.on.fetch(self._rows(some) @ weights)

        if V.size:
            self._each(work)
        return products

    def column(self, point: int) -> Array:
        """Return the kernel values of one point, (n,)."""
        if self.K is not None:
            return np.array(self.on.fetch(self.K[:, range(self.size)[point]]))
        return self.times(np.eye(self.size)[:, [point]])[:, 0]

    def nearest(self) -> Array:
        """Return for each row the number of the point with the largest kernel value, (n,)."""
        found = np.zeros(self.rows.n, dtype=np.intp)

        def work(some: slice) -> None:
            found[some] = self.on.fetch(self.on.xp.argmax(self._values(some), axis=1), np.dtype(np.intp))

        self._each(work)
        return found

    def largest_square(self) -> float:
        """Return the largest squared kernel value."""
        squares, xp = [0.0], self.on.xp

        def work(some: slice) -> None:
            K = self._values(some)
            squares.extend(float(end * end) for end in (xp.max(K), xp.min(K)))

        if self.size and self.rows.n:
            self._each(work)
        return max(squares)

    def back(self, W: Array, rows: Array | None = None) -> Array:
        """Return K[rows].T @ W, (m, q), for the rows with these numbers, all by default; W has a row for each."""
        q = W.shape[1]
        lines = W[:, 0] if q == 1 else W.T

        def sums(some: slice) -> Any:
            return self.on.send(lines[..., some], self._sum_dtype) @ self._rows(some, rows)

        shape = (self.size,) if q == 1 else (q, self.size)
        return self._summed(W.shape[0], self.size, sums, shape, cost=2 * self.size).reshape(q, self.size).T

    def curvature(self, rows: Array, weights: Array, since: int = 0) -> Array:
        """Return the sum over some rows of w d d' with d = (1, k_1 .. k_m), (m + 1, m + 1).

        `weights` has a number for each of all n rows. With `since`, return only the columns from that one on.
        """
        if not rows.size:
            return np.zeros((self.size + 1, self.size + 1 - since))
        chosen = weights[rows]
        if np.ptp(chosen) == 0:
            return self._summed(*self._squares(rows, None, since)) * chosen[0]
        return self._summed(*self._squares(rows, weights, since))

    def _squares(self, rows: Array, weights: Array | None, since: int) -> tuple[Any, ...]:
        """Return the arguments with which `_summed` gives `curvature`; without weights, all rows have weight 1."""
        m, dtype, on = self.size, self._sum_dtype, self.on

        def sums(some: slice) -> Any:
            roots = np.ones(some.stop - some.start) if weights is None else np.sqrt(weights[rows[some]])
            ones, A = on.send(roots, dtype), self._rows(some, rows)
            if weights is not None:
                A *= ones[:, None]
            total, first = on.empty((m + 1, m + 1 - since), dtype), 0 if since else 1
            B = A[:, since - 1 :] if since else A
            total[0, first:], total[1:, first:] = ones @ B, A.T @ B
            if not since:
                total[0, 0] = ones @ ones
                total[1:, 0] = total[0, 1:]
            return total

        return rows.size, m, sums, (m + 1, m + 1 - since), m * (2 + m // 16)

    def running_curvatures(self, count: int, *, growing: bool = False) -> Curvatures:  # noqa: ARG002
        """Return curvatures of `count` outputs for these points; if `growing`, also for points that are appended later."""
        return RunningCurvatures(self, count)

    # Gradients.

    def pullback(self, W: Array, V: Array) -> Array:
        """Return the gradient of sum_ij <W_i, V_j> k(x_i, z_j) with respect to the points z_j, (m, d).

        Rows with W = 0 are skipped if they are many.
        """
        on, active = self.on, np.flatnonzero(W.any(axis=1))
        chosen = active if active.size < FEW * self.rows.n else None
        features, placed = self._features(), self.points if self.placed else self.rows.to_coordinates(self.points)
        Z, coef = on.send(placed, self.dtype), on.send(V.T, self.dtype)

        def sums(some: slice) -> Any:
            A = features[some, :] if chosen is None else on.take(features, chosen[some])
            weights = on.send(W[some if chosen is None else chosen[some]], self.dtype)
            weights = weights * coef if coef.shape[0] == 1 else weights @ coef  # BLAS is slow at products of two vectors
            return self.kernel.pullback(on.cast(A, self.dtype), Z, self._values(some, chosen), weights, on.xp)

        (m, d), count = placed.shape, self.rows.n if chosen is None else chosen.size
        wide = features.nnz // max(self.rows.n, 1) if issparse(features) else d
        self.rows.meter.add(count * m)
        return self._summed(count, m + wide, sums, (m, d), cost=m * (4 + wide // 4))

    def metric_pullback(self, W: Array, V: Array, metric: Metric) -> MetricGradient:
        """Return the same gradient with respect to points and metric, after `move` in that metric; `coef` is 0."""
        (m, d), on, xp = self.points.shape, self.on, self.on.xp
        factors = np.ones(d) if metric.factors is None else metric.factors
        widths = np.ones(m) if metric.widths is None else metric.widths
        kernel = metric_sums(self.kernel, self.points, V, factors, widths, partial(on.send, dtype=self.dtype), xp)
        features = self._features()

        def parts(some: slice) -> tuple[Any, ...]:
            A, K = on.cast(features[some, :], self.dtype), self._values(some) + 0.0
            return kernel.sums(A, K, on.send(W[some], self.dtype))

        def sums(some: slice) -> Any:
            return xp.concat([xp.reshape(part, (-1,)) for part in parts(some)])

        shapes = [tuple(part.shape) for part in parts(slice(0, 0))]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        self.rows.meter.add(self.rows.n * m)
        total = self._summed(self.rows.n, m + d, sums, (int(ends[-1]),), cost=m * (4 + d // 4))
        found = [part.reshape(shape) for part, shape in zip(np.split(total, ends[:-1]), shapes, strict=True)]
        points, log_factors, log_widths = kernel.gradient(found)
        return MetricGradient(points, np.zeros_like(V), log_factors, log_widths)

    # Other rows.

    def group_means(self, group: Array, weights: Array) -> Array:
        """Return the weighted mean of K's rows in each group, (groups, m)."""
        total = np.bincount(group, weights)
        shares, means = weights / total[group], np.zeros((total.size, self.size))
        for some in blocks(group.size, GROUPED_ROWS):
            place = np.arange(some.stop - some.start)
            part = csr_array((shares[some], (group[some], place)), shape=(total.size, place.size))
            means += part @ self.on.fetch(self._values(some))
        return means

    def features(self, T: Array) -> Any:
        """Return rows K @ T with the linear kernel, on the same device."""
        return self.rows.linear(self.times(T))
