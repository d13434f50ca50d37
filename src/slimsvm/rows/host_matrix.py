"""K(rows, points) in host memory: strips in threads, compiled products, sums in a fixed order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._core import core
from ..kernels import RBF, Array, InnerKernel, Kernel, Matrix, squared_norms
from ..kernels.metric_gradients import MetricGradient, gaussian_gradient
from ..metric import Metric
from .curvatures import CompiledCurvatures, RunningCurvatures
from .kernel_matrix import KernelMatrix
from .precision import Prepared, float32_error, plain_points
from .protocol import Curvatures
from .threads import READ_COST, ThreadPool, blocks
from .tiles import Tiles, make_tiles, tiles_against


def fits_sums(kernel: Kernel, values: Matrix, K: Array) -> bool:
    """Return whether compiled code has these sums: for the rbf kernel, and rows in the precision of kernel values."""
    plain = issparse(values) or (isinstance(values, np.ndarray) and values.flags.c_contiguous)
    return type(kernel) is RBF and plain and values.dtype == K.dtype and K.size > 0


class GaussianSums:
    """Sums over rows X with P_ij = K_ij <W_i, V_j>, or with one output P_ij = K_ij W_i and `scale` V_j.

    `squares` are the squared factors f^2 of features. The spread is a sum over points too, by the weights `pulls`.
    """

    of_rows: Array  # P' X, (m, d)
    of_norms: Array  # P' |f x|^2, (m,)
    of_ones: Array  # P' 1
    spread: Array  # (X * X)' P (pulls * scale), (d,)

    def __init__(
        self, values: Matrix, K: Array, W: Array, V: Array, squares: Array, pulls: Array | None, pool: ThreadPool
    ) -> None:
        (m, q), d, dtype = V.shape, values.shape[1], K.dtype
        self.scale = V[:, 0] if q == 1 else np.ones(m)
        full = np.zeros((q + 1, -(-m // core.PANEL) * core.PANEL), dtype)
        full[:q, :m] = V.T
        if pulls is not None:
            full[q, :m] = pulls * self.scale
        sums = np.zeros(m * (d + 2) + (0 if pulls is None else d))
        core.backward(
            K,
            (values.data, values.indices, values.indptr) if issparse(values) else values,
            np.ascontiguousarray(W.T, np.float64),
            full[:q],
            np.ascontiguousarray(squares, dtype),
            None if pulls is None else full[q],
            sums,
            *pool.helpers_for(K.size * (d + 4 * q)),
        )
        by_point = sums[: m * (d + 2)].reshape(m, d + 2)
        self.of_rows, self.of_norms, self.of_ones = by_point[:, :d], by_point[:, d], by_point[:, d + 1]
        self.spread = sums[m * (d + 2) :]


#: rows of a strip where kernel values are only read, by NumPy and by compiled code
READ_STRIP, TIMES_STRIP = 1 << 14, 1 << 9
#: sparse rows of at most this many numbers are made dense for gradients: sparse products with many points are slow
DENSE_VALUES = 1 << 25
#: with at most this many points, gradients leave sparse rows sparse
FEW_POINTS = 16
#: numbers in rows and kernel values that are multiplied at a time, and the parts of the rows that are summed separately
BLOCK_VALUES, PARTS = 1 << 18, 8
#: numbers to read below which one thread is faster than several
SMALL_WORK = 1 << 21
#: rows are added one by one if at most this share of the weights is not 0; otherwise BLAS multiplies all
SPARSE = 0.3


class HostArrays:
    """NumPy in the form in which a kernel matrix asks for arrays (`Backend` is that of other libraries)."""

    xp = np
    is_gpu = False
    sum_dtype = np.dtype(np.float64)
    send = fetch = staticmethod(lambda array, dtype=np.float64: np.asarray(array, dtype))
    cast = staticmethod(lambda array, dtype: array.astype(dtype, copy=False))
    empty = empty_or_none = staticmethod(np.empty)

    @staticmethod
    def exp(exponents: Array, *, at_most_1: bool) -> Array:
        """Return exp of an array, in its own memory; `at_most_1` replaces positive exponents by 0."""
        if at_most_1:
            np.minimum(exponents, 0, out=exponents)
        return np.exp(exponents, out=exponents)

    @staticmethod
    def permutation(count: int, rng: np.random.Generator) -> Array:
        """Return the numbers below `count` in random order."""
        return rng.permutation(count)

    @staticmethod
    def take(array: Any, index: Array, axis: int = 0) -> Any:
        """Return some rows, or columns."""
        if axis:
            return np.ascontiguousarray(array[:, index])
        return array[index] if issparse(array) else array.take(index, axis=0)


class HostMatrix(KernelMatrix):
    """K(rows, points) of `HostRows`.

    Kernel values of points that move are float32 until a point is too far out for that. They then stay float64: a loss that
    changed its precision back and forth would have jumps.
    """

    def __init__(self, rows: Any, points: Matrix, *, placed: bool, exact: bool) -> None:
        self.prepared, self.dense_rows = rows.prepared, None
        super().__init__(rows, points, placed=placed, exact=exact)

    # Kernel values.

    def _fill(self, points: Matrix, metric: Metric | None = None) -> None:
        if points.shape[0]:
            self._evaluate(self._tiles(points, metric), np.zeros((points.shape[0], 0)))
        else:
            self.K = self.memory = np.empty((self.rows.n, 0), self.rows.dtype)

    def move(self, placed: Array, V: Array, metric: Metric | None = None) -> Array:
        self.points, self.placed = placed, True
        return self._evaluate(self._tiles(placed, metric), V)

    def _tiles(self, points: Matrix, metric: Metric | None = None) -> Tiles:
        rows = self.rows
        if not self.placed:
            return tiles_against(
                self.kernel, self.prepared, rows.given, points, rows.error, rows.pool, precision=rows.precision
            )
        if not isinstance(self.kernel, InnerKernel):
            return make_tiles(self.kernel, self.prepared, plain_points(points, metric), rows.pool)
        if self.prepared.values.dtype == np.float32:
            held, placed = self._in(metric, points)
            allowed = max(rows.precision.float32_error, float32_error(self.kernel, held, metric))
            if float32_error(self.kernel, placed, metric) <= allowed:
                return make_tiles(self.kernel, held, placed, rows.pool)
            self.prepared = self.prepared.doubled()
        return make_tiles(self.kernel, *self._in(metric, points), rows.pool)

    def _in(self, metric: Metric | None, points: Array) -> tuple[Prepared, Prepared]:
        """Return the rows with their norms in a metric, and the points in it."""
        rows = self.prepared.measured(metric)
        return rows, as_rows(points, rows).folded(metric)

    def _evaluate(self, tiles: Tiles, V: Array) -> Array:
        """Fill K and return K @ V, a strip of rows at a time."""
        n, m = self.rows.n, tiles.B.count
        self.dtype, self.size = tiles.dtype, m
        if self.space is None or self.space.size < n * m or self.space.dtype != tiles.dtype:
            self.space = np.empty(n * m, tiles.dtype)
        self.K = self.memory = K = self.space[: n * m].reshape(n, m)
        if not m:
            return np.zeros((n, V.shape[1]))
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

    def _features(self) -> Matrix:
        """Return the rows for gradients: dense if points are many and memory allows."""
        if self.dense_rows is None:
            values = self.prepared.values
            if not self.placed and self.size <= FEW_POINTS:  # points that move need many gradients
                return values
            affordable = issparse(values) and values.shape[0] * values.shape[1] <= DENSE_VALUES
            self.dense_rows = values.toarray() if affordable else values
        return self.dense_rows

    # Products by compiled code.

    @property
    def _copies(self) -> bool:
        """Whether kernel values are copied to the precision of their sums."""
        return self._sum_dtype != self.dtype

    @property
    def _compiled(self) -> bool:
        """Whether there are kernel values and their sums have their precision."""
        return self.K.size > 0 and self.dtype == self._sum_dtype

    def times(self, V: Array) -> Array:
        q, (n, m) = V.shape[1], self.K.shape
        if not self._compiled or not q:
            return super().times(V)
        weights = np.ascontiguousarray(V.T, self.dtype)
        if q > 1 and self.dtype == np.float32:
            columns = next((some for some in core.OUTPUT_COLUMNS if some >= q), core.OUTPUT_COLUMNS[-1])
            full = np.zeros((-(-q // columns) * columns, m), np.float32)
            full[:q] = weights
            weights = np.ascontiguousarray(full.reshape(-1, columns, m).transpose(0, 2, 1))
        lines = np.empty((q, n))
        core.times(self.K, weights, lines, TIMES_STRIP, *self.rows.pool.helpers_for(READ_COST * n * m))
        return lines.T

    def back(self, W: Array, rows: Array | None = None) -> Array:
        """Return K[rows].T @ W; one line, or several that are mostly 0, by compiled code."""
        q, n = W.shape[1], self.rows.n
        if not self._compiled or (q != 1 and np.count_nonzero(W) > SPARSE * n * q):
            return super().back(W, rows)
        lines, found = np.zeros((q, n)), np.empty((q, self.size))
        lines[:, slice(None) if rows is None else rows] = W.T
        core.back(self.K, lines, found, *self.rows.pool.helpers_for(READ_COST // 2 * np.count_nonzero(W) * self.size))
        return found.T

    def running_curvatures(self, count: int, *, growing: bool = False) -> Curvatures:
        if self._compiled and not growing:
            return CompiledCurvatures(self.K, count, self.rows.pool)
        return RunningCurvatures(self, count)

    def pullback(self, W: Array, V: Array) -> Array:
        if not fits_sums(self.kernel, self.prepared.values, self.K):
            return super().pullback(W, V)
        placed = self.points if self.placed else self.rows.to_coordinates(self.points)
        self.rows.meter.add(np.count_nonzero(W.any(axis=1)) * self.size)
        sums = GaussianSums(self.prepared.values, self.K, W, V, np.zeros(self.rows.d), None, self.rows.pool)
        return 2 * self.kernel.gamma * sums.scale[:, None] * (sums.of_rows - sums.of_ones[:, None] * placed)

    def metric_pullback(self, W: Array, V: Array, metric: Metric) -> MetricGradient:
        if not fits_sums(self.kernel, self.prepared.values, self.K):
            return super().metric_pullback(W, V, metric)
        m, d = self.points.shape
        factors = np.ones(d) if metric.factors is None else metric.factors
        widths = np.ones(m) if metric.widths is None else metric.widths
        self.rows.meter.add(self.rows.n * m)
        sums = GaussianSums(self.prepared.values, self.K, W, V, factors**2, widths, self.rows.pool)
        parts = sums.of_rows, sums.of_norms, sums.of_ones, sums.spread
        points, *logs = gaussian_gradient(self.kernel.gamma, self.points, sums.scale, factors, widths, parts)
        return MetricGradient(points, np.zeros_like(V), *logs)

    # Strips and sums, the same for any number of threads.

    def _each(self, work: Callable[[slice], None]) -> None:
        strip = min(READ_STRIP, max(2 * BLOCK_VALUES // (self.size + 1), 1)) if self._copies else READ_STRIP
        self._run(work, self.rows.n, self.size, strip)

    def _summed(self, count: int, width: int, sums: Callable[[slice], Any], shape: tuple[int, ...], cost: int) -> Array:
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
            self.rows.pool.run(work, count, strip)


def as_rows(points: Array, like: Prepared) -> Prepared:
    """Return points, given in the coordinates of these rows, in the precision of the rows."""
    values = np.ascontiguousarray(points, dtype=like.values.dtype)
    return Prepared(values, squared_norms(values), like.centre)
