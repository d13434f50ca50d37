"""K(rows, points) on a device, for points that stay, grow in number or move."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import Array, Matrix, stacked
from ..kernels.metric_gradients import MetricGradient, metric_sums
from ..metric import Metric
from .array_curvatures import DeviceCurvatures
from .array_metric import MetricPoints
from .backends import FLOAT32, FLOAT64, Held
from .curvatures import RunningCurvatures
from .host_against import FEW
from .protocol import Curvatures

if TYPE_CHECKING:
    from .array import ArrayRows

#: rows that are averaged at a time; more: memory grows with their square
GROUPED_ROWS = 1024


class ArrayAgainst:
    """K(rows, points) of `ArrayRows`. With `exact`, sums have the device's highest precision, else that of K.

    With `placed`, points are in coordinates relative to the rows' centre. Kernel values become float64 with the first point
    that is too far out for float32. If the device has no memory for all kernel values, `K` is None, and each pass evaluates
    them again, a tile at a time.
    """

    def __init__(self, rows: ArrayRows, points: Matrix, *, placed: bool, exact: bool) -> None:
        self.rows, self.on, self.kernel, self.exact, self.placed = rows, rows.backend, rows.kernel, exact, placed
        self.held, self.points = rows.held, points
        self.K: Any = None  # kernel values, the first columns of `memory`
        self.memory: Any = None
        self._fill(points)

    def _fill(self, points: Matrix, metric: Metric | None = None) -> None:
        """Evaluate K for these points, in a metric if one is given, if there is memory for it."""
        A, B = self._pair(points)
        n, m = self.rows.n, points.shape[0]
        self.given, self.dtype, self.size = A, A.dtype, m
        self.evaluate = self.rows.evaluator(B) if metric is None else self._in(metric, points, A.dtype)
        self.K = self.memory = None  # freed before new memory is allocated
        K = self.on.empty_or_none((n, m), A.dtype)

        def work(some: slice) -> None:
            K[some, :] = self._values(some)

        if K is not None:
            self.on.tiled(n if m else 0, m + self.rows.d, work)
            self.K = self.memory = K

    def _in(self, metric: Metric, placed: Array, dtype: np.dtype) -> Callable[[Held], Any]:
        """Return a function that evaluates a tile in a metric."""
        kernel, xp = self.kernel, self.on.xp  # the function must not hold the handle, which holds it
        there = MetricPoints.of(self.on, kernel, placed, metric, dtype)
        return lambda part: there.values_of(kernel, part.values, xp)

    def _values(self, some: slice, rows: Array | None = None) -> Any:
        """Return a tile of K: a slice of all rows, or of those with these numbers."""
        if self.K is not None:
            return self.K[some, :] if rows is None else self.on.take(self.K, rows[some])
        part = self.given.part(some) if rows is None else self.on.subset(self.given, rows[some])
        values = self.evaluate(part)
        self.rows.meter.add(values.shape[0] * self.size)
        return values

    def _pair(self, points: Matrix) -> tuple[Held, Held]:
        if not self.placed:
            return self.rows.pair(points)
        there = self.on.points(points, self.held.dtype)
        if self.held.dtype == FLOAT32:
            allowed = max(self.rows.precision.float32_error, self.rows.rounding(self.rows.held))
            if self.rows.rounding(there) > allowed:
                self.on.needs_float64("a point is too far from the rows for float32")
                self.held, there = self.on.converted(self.held, FLOAT64), self.on.points(points, FLOAT64)
        return self.held, there

    # Points.

    def move(self, placed: Array, V: Array, metric: Metric | None = None) -> Array:
        """Evaluate K for other points, in a metric if one is given, and return the new K @ V."""
        self.points, self.placed = placed, True
        self._fill(placed, metric)
        return self.times(V)

    def append(self, points: Matrix) -> None:
        """Add points after the others."""
        old, new = self.size, ArrayAgainst(self.rows, points, placed=self.placed, exact=self.exact)
        self.points = stacked(self.points, points) if old else points
        size, dtype = old + new.size, max(self.dtype, new.dtype) if old else new.dtype
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
            self.memory, self.dtype = memory, dtype
        return True

    def keep(self, columns: Array) -> None:
        """Keep some of the points, in this order, and drop the others."""
        self.points = self.points[columns]
        if self.K is None:
            self._fill(self.points)
        else:
            self.K = self.memory = self.on.take(self.K, columns, axis=1)
            self.size = columns.size

    def first(self, size: int) -> ArrayAgainst:
        """Return a handle on the first points, which shares their kernel values."""
        if self.K is None:
            return ArrayAgainst(self.rows, self.points[:size], placed=self.placed, exact=self.exact)
        part = ArrayAgainst(self.rows, self.points[:0], placed=self.placed, exact=self.exact)
        part.K = part.memory = self.K[:, :size]
        part.points, part.held, part.dtype, part.size = self.points[:size], self.held, self.dtype, size
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
        products, weights = np.zeros((self.rows.n, V.shape[1])), self.on.send(V, self._sum_dtype)

        def work(some: slice) -> None:
            products[some] = self.on.fetch(self._rows(some) @ weights)

        self.on.tiled(self.rows.n if V.size else 0, self.size, work)
        return products

    def column(self, point: int) -> Array:
        """Return the kernel values of one point, (n,)."""
        if self.K is not None:
            return self.on.fetch(self.K[:, range(self.size)[point]])
        one = np.array([range(self.size)[point]])
        return (
            ArrayAgainst(self.rows, self.points[one], placed=self.placed, exact=self.exact).times(np.ones((1, 1))).ravel()
        )

    def nearest(self) -> Array:
        """Return for each row the number of the point with the largest kernel value, (n,)."""
        found = np.zeros(self.rows.n, dtype=np.intp)

        def work(some: slice) -> None:
            found[some] = self.on.fetch(self.on.xp.argmax(self._values(some), axis=1), np.dtype(np.intp))

        self.on.tiled(self.rows.n, self.size, work)
        return found

    def largest_square(self) -> float:
        """Return the largest squared kernel value."""
        squares = [0.0]

        def work(some: slice) -> None:
            K = self._values(some)
            squares.append(float(self.on.xp.max(K * K)))

        self.on.tiled(self.rows.n if self.size else 0, self.size, work)
        return max(squares)

    def back(self, W: Array, rows: Array | None = None) -> Array:
        """Return K[rows].T @ W, (m, q)."""

        def sums(some: slice) -> Any:
            return self._rows(some, rows).T @ self.on.send(W[some], self._sum_dtype)

        return self._summed(W.shape[0], self.size, sums, (self.size, W.shape[1]))

    def curvature(self, rows: Array, weights: Array, since: int = 0) -> Array:
        """Return the sum over some rows of w d d' with d = (1, k_1 .. k_m), or its columns from `since` on."""
        return self._summed(rows.size, 2 * self.size, *self._squares(rows, weights, since))

    def curvature_there(self, rows: Array, weights: Array, since: int = 0) -> Any:
        """Return `curvature` on the device."""
        return self._total(rows.size, 2 * self.size, *self._squares(rows, weights, since))

    def _squares(self, rows: Array, weights: Array, since: int) -> tuple[Callable[[slice], Any], tuple[int, int]]:
        """Return a function that sums a tile of some rows, and the shape of the sum."""
        m, dtype = self.size, self._sum_dtype

        def sums(some: slice) -> Any:
            part = rows[some]
            ones = self.on.send(np.ones((part.size, 1)), dtype)
            A = self.on.xp.concat([ones, self._rows(some, rows)], axis=1)
            A *= self.on.send(np.sqrt(weights[part])[:, None], dtype)
            return A.T @ A[:, since:]

        return sums, (m + 1, m + 1 - since)

    def running_curvatures(self, count: int, *, growing: bool = False) -> Curvatures:  # noqa: ARG002
        """Return curvatures of `count` outputs, on the device if it has float64."""
        return DeviceCurvatures(self, count) if self.on.has_float64 else RunningCurvatures(self, count)

    def pullback(self, W: Array, V: Array) -> Array:
        """Return the gradient of sum_ij <W_i, V_j> k(x_i, z_j) with respect to the points; rows with W = 0 are skipped."""
        active = np.flatnonzero(W.any(axis=1))
        chosen = active if active.size < FEW * self.rows.n else None
        placed = self.points if self.placed else self.rows.inward(self.points)
        Z, coef = self.on.send(placed, self.dtype), self.on.send(V.T, self.dtype)
        m, d = placed.shape

        def sums(some: slice) -> Any:
            A = self.held.values[some, :] if chosen is None else self.on.take(self.held.values, chosen[some])
            K = self._values(some, chosen)
            weights = self.on.send(W[some if chosen is None else chosen[some]], self.dtype) @ coef
            return self.kernel.pullback(self.on.cast(A, self.dtype), Z, K, weights, self.on.xp)

        count = self.rows.n if chosen is None else chosen.size
        self.rows.meter.add(count * m)
        return self._summed(count, 3 * m + d, sums, (m, d))

    def metric_pullback(self, W: Array, V: Array, metric: Metric) -> MetricGradient:
        """Return the gradient of sum_ij <W_i, V_j> k(x_i, z_j) by the points and by the metric in which they moved."""
        (m, d), on, totals = self.points.shape, self.on, list[Any]()
        send = partial(on.send, dtype=self.dtype)
        factors = np.ones(d) if metric.factors is None else metric.factors
        widths = np.ones(m) if metric.widths is None else metric.widths
        kernel = metric_sums(self.kernel, self.points, V, factors, widths, send, on.xp)

        def work(some: slice) -> None:
            A, K = on.cast(self.held.values[some, :], self.dtype), self._values(some) + 0.0
            parts = [on.cast(part, on.sum_dtype) for part in kernel.sums(A, K, send(W[some]))]
            totals[:] = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts

        self.rows.meter.add(self.rows.n * m)
        on.tiled(self.rows.n, m + d, work)
        points, log_factors, log_widths = kernel.gradient([on.fetch(total) for total in totals])
        return MetricGradient(points, np.zeros_like(V), log_factors, log_widths)

    def group_means(self, group: Array, weights: Array) -> Array:
        """Return the weighted mean of K's rows in each group, (groups, m)."""
        total = np.bincount(group, weights)
        means = np.zeros((total.size, self.size))
        order = np.argsort(group, kind="stable")
        share = weights / total[group]

        def work(some: slice) -> None:
            part = order[some]
            first, last = group[part[0]], group[part[-1]] + 1
            among = np.arange(first, last)[:, None] == group[part]
            sums = self.on.send(among * share[part], self.on.sum_dtype) @ self.on.cast(
                self._values(some, order), self.on.sum_dtype
            )
            means[first:last] += self.on.fetch(sums)

        self.on.tiled(group.size, self.size, work, GROUPED_ROWS)
        return means

    def features(self, T: Array) -> ArrayRows:
        """Return rows K @ T with the linear kernel, on the device."""
        from .array import linear_rows

        on = self.on
        values, weights = on.empty((self.rows.n, T.shape[1]), on.sum_dtype), on.send(T, self._sum_dtype)

        def work(some: slice) -> None:
            values[some, :] = on.cast(self._rows(some) @ weights, on.sum_dtype)

        on.tiled(self.rows.n, self.size, work)
        return linear_rows(values, self.rows)

    def _summed(self, count: int, width: int, sums: Callable[[slice], Any], shape: tuple[int, int]) -> Array:
        """Return the total of sums over tiles of range(count), in float64, on the device if it has float64."""
        if self.on.has_float64:
            return self.on.fetch(self._total(count, width, sums, shape))
        total = np.zeros(shape)

        def work(some: slice) -> None:
            total[:] += self.on.fetch(sums(some))

        self.on.tiled(count if total.size else 0, width, work)
        return total

    def _total(self, count: int, width: int, sums: Callable[[slice], Any], shape: tuple[int, int]) -> Any:
        """Return the total of sums over tiles of range(count) on the device."""
        total = self.on.zeros(shape, self.on.sum_dtype)

        def work(some: slice) -> None:
            total[...] += self.on.cast(sums(some), self.on.sum_dtype)

        self.on.tiled(count if min(shape) else 0, width, work)
        return total
