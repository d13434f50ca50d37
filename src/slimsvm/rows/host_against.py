"""K(rows, points) in host memory, for points that stay, grow in number or move."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, issparse

from .._core import core
from ..kernels import Array, InnerKernel, Matrix, squared_norms, stacked
from ..kernels.metric_gradients import MetricGradient
from ..metric import Metric
from .curvatures import CompiledCurvatures, RunningCurvatures
from .gaussian_sums import GaussianParts, fits_sums
from .precision import Prepared, float32_error, plain_points
from .protocol import Curvatures
from .threads import blocks
from .tiles import Tiles, make_tiles, tiles_against

if TYPE_CHECKING:
    from .host import HostRows

#: rows of a strip where kernel values are only read, by NumPy and by compiled code
READ_STRIP, TIMES_STRIP = 1 << 14, 1 << 9
#: multiply-adds that take as long as reading a kernel value from memory
READ_COST = 8
#: sparse rows of at most this many numbers are made dense for gradients: sparse products with many points are slow
DENSE_VALUES = 1 << 25
#: with at most this many points, gradients leave sparse rows sparse
FEW_POINTS = 16
#: numbers in rows and kernel values that are multiplied at a time, and the parts of the rows that are summed separately
BLOCK_VALUES, PARTS = 1 << 18, 8
#: numbers to read below which one thread is faster than several
SMALL_WORK = 1 << 21
#: rows with weight 0 are skipped in gradients if the others are at most this share
FEW = 0.5
#: rows are added one by one if at most this share of the weights is not 0; otherwise BLAS multiplies all
SPARSE = 0.3


class HostAgainst:
    """K(rows, points) of `HostRows`. Sums are float64 with `exact`, else in the precision of kernel values.

    With `placed`, points are in coordinates relative to the rows' centre. Kernel values are float32 until a point is too
    far out for that. They then stay float64: a loss that changed its precision back and forth would have jumps.
    """

    def __init__(self, rows: HostRows, points: Matrix, *, placed: bool, exact: bool) -> None:
        self.rows, self.kernel, self.exact = rows, rows.kernel, exact
        self.prepared = rows.prepared
        self.memory = np.empty(0)
        self.dense_rows: Matrix = None
        self.points = points
        self.placed: Array | None = points if placed else None
        self.K = np.empty((rows.n, 0), rows.dtype)
        if points.shape[0]:
            self._evaluate(self._tiles(points), np.zeros((points.shape[0], 0)))

    @property
    def size(self) -> int:
        """The number of points."""
        return self.K.shape[1]

    # Points.

    def move(self, placed: Array, V: Array, metric: Metric | None = None) -> Array:
        """Evaluate K for other points, in a metric if one is given, and return the new K @ V, both in one pass."""
        self.points = self.placed = placed
        return self._evaluate(self._tiles(placed, metric), V)

    def append(self, points: Matrix) -> None:
        """Add points after the others."""
        old, new = self.K, HostAgainst(self.rows, points, placed=self.placed is not None, exact=self.exact).K
        size = old.shape[1] + new.shape[1]
        dtype = np.result_type(old, new) if old.shape[1] else new.dtype
        if self.memory.size < self.rows.n * size or self.memory.dtype != dtype or self.memory.ndim == 1:
            self.memory = np.empty((self.rows.n, max(2 * old.shape[1], size)), dtype)
            self.memory[:, : old.shape[1]] = old
        self.memory[:, old.shape[1] : size] = new
        self.K = self.memory[:, :size]
        self.points = points if not old.shape[1] else stacked(self.points, points)
        self.placed = None if self.placed is None else self.points

    def keep(self, columns: Array) -> None:
        """Keep some of the points, in this order, and drop the others."""
        self.K, self.memory = np.ascontiguousarray(self.K[:, columns]), np.empty(0)
        self.points = self.points[columns]
        self.placed = None if self.placed is None else self.points

    def first(self, size: int) -> HostAgainst:
        """Return a handle on the first points, which shares their kernel values."""
        part = HostAgainst(self.rows, self.points[:0], placed=self.placed is not None, exact=self.exact)
        part.K, part.points, part.prepared = self.K[:, :size], self.points[:size], self.prepared
        part.placed = None if self.placed is None else self.placed[:size]
        return part

    def _tiles(self, points: Matrix, metric: Metric | None = None) -> Tiles:
        if self.placed is None:
            own = self.rows
            return tiles_against(
                self.kernel, self.prepared, own.given, points, own.error, own.crew, precision=own.precision
            )
        if not isinstance(self.kernel, InnerKernel):
            return make_tiles(self.kernel, self.prepared, plain_points(points, metric), self.rows.crew)
        if self.prepared.values.dtype == np.float32:
            held, placed = self._in(metric, points)
            allowed = max(self.rows.precision.float32_error, float32_error(self.kernel, held, metric))
            if float32_error(self.kernel, placed, metric) <= allowed:
                return make_tiles(self.kernel, held, placed, self.rows.crew)
            self.prepared = self.prepared.doubled()
        return make_tiles(self.kernel, *self._in(metric, points), self.rows.crew)

    def _in(self, metric: Metric | None, points: Array) -> tuple[Prepared, Prepared]:
        """Return the rows with their norms in a metric, and the points in it."""
        rows = self.prepared.measured(metric)
        return rows, as_rows(points, rows).folded(metric)

    def _evaluate(self, tiles: Tiles, V: Array) -> Array:
        """Fill K and return K @ V, a strip of rows at a time."""
        n, m = self.rows.n, tiles.B.count
        if not m:
            self.K = np.empty((n, 0), tiles.dtype)
            return np.zeros((n, V.shape[1]))
        if self.memory.size < n * m or self.memory.dtype != tiles.dtype or self.memory.ndim > 1:
            self.memory = np.empty(n * m, tiles.dtype)
        self.K = K = self.memory[: n * m].reshape(n, m)
        self.rows.meter.add(n * m)
        q, exactly = V.shape[1], self._copies and V.shape[1] > 0
        products, weights = np.zeros((n, q)), None if exactly or not q else tiles.weights(V)

        def work(strip: slice) -> None:
            tiles.run(strip, values=K)
            products[strip] = K[strip] @ V  # in float64

        if exactly:
            self._run(work, n, m * (8 + self.rows.d // 4), max(BLOCK_VALUES // m, 1))
        else:
            tiles.spread(weights, products if q else None, K)
        return np.asfortranarray(products)

    # Products.

    @property
    def _sum_dtype(self) -> np.dtype:
        return np.dtype(np.float64) if self.exact else self.K.dtype

    def times(self, V: Array) -> Array:
        """Return K @ V, (n, q)."""
        if self._compiled and V.shape[1]:
            return self._times_compiled(V)
        products, weights = np.empty((self.rows.n, V.shape[1]), order="F"), V.astype(self._sum_dtype)

        def work(strip: slice) -> None:
            products[strip] = self.K[strip] @ weights

        self._run(work, self.rows.n, self.size, self._read_strip())
        return products

    @property
    def _compiled(self) -> bool:
        """Whether there are kernel values and their sums have their precision."""
        return self.K.size > 0 and self.K.dtype == self._sum_dtype

    def _times_compiled(self, V: Array) -> Array:
        """Return K @ V by compiled code; BLAS is slow at few columns."""
        q, (n, m) = V.shape[1], self.K.shape
        weights = np.ascontiguousarray(V.T, self.K.dtype)
        if q > 1 and self.K.dtype == np.float32:
            columns = next((some for some in core.OUTPUT_COLUMNS if some >= q), core.OUTPUT_COLUMNS[-1])
            full = np.zeros((-(-q // columns) * columns, m), np.float32)
            full[:q] = weights
            weights = np.ascontiguousarray(full.reshape(-1, columns, m).transpose(0, 2, 1))
        lines = np.empty((q, n))
        core.times(self.K, weights, lines, TIMES_STRIP, *self.rows.crew.helpers_for(READ_COST * n * m))
        return lines.T

    def _read_strip(self) -> int:
        """The number of rows to read at a time; fewer if they are copied to float64."""
        return min(READ_STRIP, max(2 * BLOCK_VALUES // (self.size + 1), 1)) if self._copies else READ_STRIP

    @property
    def _copies(self) -> bool:
        return self._sum_dtype != self.K.dtype

    def column(self, point: int) -> Array:
        """Return the kernel values of one point, (n,)."""
        return self.K[:, point].astype(np.float64)

    def nearest(self) -> Array:
        """Return for each row the number of the point with the largest kernel value, (n,)."""
        return self.K.argmax(axis=1)

    def largest_square(self) -> float:
        """Return the largest squared kernel value."""
        squares = (float(np.square(self.K[some]).max(initial=0.0)) for some in blocks(self.rows.n, 4096))
        return max(squares, default=0.0)

    def back(self, W: Array, rows: Array | None = None) -> Array:
        """Return K[rows].T @ W, (m, q)."""
        if self._compiled and (W.shape[1] == 1 or np.count_nonzero(W) <= SPARSE * self.rows.n * W.shape[1]):
            lines, found = np.zeros((W.shape[1], self.rows.n)), np.empty((W.shape[1], self.size))
            lines[:, slice(None) if rows is None else rows] = W.T
            core.back(self.K, lines, found, *self.rows.crew.helpers_for(READ_COST // 2 * np.count_nonzero(W) * self.size))
            return found.T
        weights = W.astype(self._sum_dtype)
        single = weights[:, 0] if W.shape[1] == 1 else weights.T

        def sums(some: slice) -> Array:
            return single[..., some] @ (self.K[some] if rows is None else self.K.take(rows[some], axis=0))

        shape = (self.size,) if W.shape[1] == 1 else (W.shape[1], self.size)
        return self._summed(W.shape[0], self.size, sums, shape, cost=2 * self.size).reshape(W.shape[1], self.size).T

    def curvature(self, rows: Array, weights: Array, since: int = 0) -> Array:
        """Return the sum over some rows of w d d' with d = (1, k_1 .. k_m), or its columns from `since` on."""
        m, dtype = self.size, self._sum_dtype
        if not rows.size:
            return np.zeros((m + 1, m + 1 - since))
        weights = weights[rows]
        alike = bool(np.ptp(weights) == 0)
        roots = np.broadcast_to(dtype.type(1), rows.size) if alike else np.sqrt(weights).astype(dtype)

        def sums(some: slice) -> Array:
            A, ones = self.K.take(rows[some], axis=0).astype(dtype, copy=False), np.ascontiguousarray(roots[some])
            if not alike:
                A *= ones[:, None]
            if since:
                return np.vstack([ones @ A[:, since - 1 :], A.T @ A[:, since - 1 :]])
            total = np.empty((m + 1, m + 1), dtype)
            total[0, 0], total[0, 1:], total[1:, 1:] = ones @ ones, ones @ A, A.T @ A
            total[1:, 0] = total[0, 1:]
            return total

        total = self._summed(rows.size, m, sums, (m + 1, m + 1 - since), cost=m * (2 + m // 16))
        return total * weights[0] if alike else total

    def running_curvatures(self, count: int, *, growing: bool = False) -> Curvatures:
        """Return curvatures of `count` outputs; the compiled ones are for points that stay."""
        if self._compiled and not growing:
            return CompiledCurvatures(self.K, count, self.rows.crew)
        return RunningCurvatures(self, count)

    def pullback(self, W: Array, V: Array) -> Array:
        """Return the gradient of sum_ij <W_i, V_j> k(x_i, z_j) with respect to the points; rows with W = 0 are skipped."""
        placed = self.rows.inward(self.points) if self.placed is None else self.placed
        values = self.prepared.values
        if fits_sums(self.kernel, values, self.K):
            self.rows.meter.add(int(W.any(axis=1).sum()) * self.size)
            sums = GaussianParts(values, V, np.ones(values.shape[1]), None, self.rows.crew)
            sums.add(self.K, W)
            pull, _, totals = sums.by_point()
            return 2 * self.kernel.gamma * (pull - totals[:, None] * placed)  # type: ignore[attr-defined]
        active = np.flatnonzero(W.any(axis=1))
        rows = active if active.size < FEW * self.rows.n else np.arange(self.rows.n)
        values, coef, placed = self._gradient_rows(), V.T.astype(self.K.dtype), placed.astype(self.K.dtype)

        def sums_of(some: slice) -> Array:
            part = rows[some] if rows is active else some  # a slice makes no copy
            weights = W[part].astype(self.K.dtype)
            weights = weights * coef if coef.shape[0] == 1 else weights @ coef  # BLAS is slow at products of two vectors
            return self.kernel.pullback(values[part], placed, self.K[part], weights)

        m, d = placed.shape
        wide = values.nnz // max(self.rows.n, 1) if issparse(values) else d
        self.rows.meter.add(rows.size * m)
        return self._summed(rows.size, m + wide, sums_of, (m, d), cost=m * (4 + wide // 4))

    def metric_pullback(self, W: Array, V: Array, metric: Metric) -> MetricGradient:
        """Return the gradient of sum_ij <W_i, V_j> k(x_i, z_j) by the points and by the metric in which they moved."""
        from .host_backward import metric_pullback

        return metric_pullback(self, W, V, metric)

    def _gradient_rows(self) -> Matrix:
        """Return the rows for gradients: dense if points are many and memory allows."""
        if self.dense_rows is None:
            values = self.prepared.values
            if self.placed is None and self.size <= FEW_POINTS:  # points that move need many gradients
                return values
            affordable = issparse(values) and values.shape[0] * values.shape[1] <= DENSE_VALUES
            self.dense_rows = values.toarray() if affordable else values
        return self.dense_rows

    def group_means(self, group: Array, weights: Array) -> Array:
        """Return the weighted mean of K's rows in each group, (groups, m)."""
        total = np.bincount(group, weights)
        shares, sums = weights / total[group], np.zeros((total.size, self.size))
        for some in blocks(group.size, READ_STRIP):
            place = np.arange(some.stop - some.start)
            part = csr_array((shares[some], (group[some], place)), shape=(total.size, place.size))
            sums += part @ self.K[some].astype(np.float64, copy=False)
        return sums

    def features(self, T: Array) -> HostRows:
        """Return rows K @ T with the linear kernel."""
        from .host import linear_rows

        return linear_rows(self.times(T), self.rows)

    # Sums over rows, the same for any number of threads.

    def _summed(self, count: int, width: int, sums: Callable[[slice], Array], shape: tuple[int, ...], cost: int) -> Array:
        """Return the total of sums over blocks of range(count), in the same order for any number of threads.

        An item needs memory for `width` numbers, and as much time as reading `cost` numbers.
        """
        block = max(BLOCK_VALUES // (width + 1), 256)
        if count <= block:
            return sums(slice(0, count)).astype(np.float64)
        parts = max(min(PARTS, 2 * count // block), 1)
        totals = np.zeros((parts, *shape))
        size = -(-count // parts)

        def add(numbers: slice) -> None:
            for number in range(numbers.start, numbers.stop):
                first, last = number * size, min((number + 1) * size, count)
                for some in blocks(max(last - first, 0), block):
                    totals[number] += sums(slice(first + some.start, first + some.stop))

        self._run(add, parts, size * cost, 1)
        return totals.sum(axis=0)

    def _run(self, work: Callable[[slice], None], count: int, cost: int, strip: int) -> None:
        """Call work(strip) for strips of range(count), in threads if the work is large enough."""
        if count * cost < SMALL_WORK:
            work(slice(0, count))
        else:
            self.rows.crew.run(work, count, strip)


def as_rows(points: Array, like: Prepared) -> Prepared:
    """Return points, given in the coordinates of these rows, in the precision of the rows."""
    values = np.ascontiguousarray(points, dtype=like.values.dtype)
    return Prepared(values, squared_norms(values), like.centre)
