"""The host's home for rows: arrays in memory, tiles in threads, a cache of kernel rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from .._core import core
from ..kernels import RBF, Array, InnerKernel, Kernel, Linear, Matrix, Precomputed
from ..metric import Metric
from .base import GivenRows
from .boxes import LazyBoxes
from .host_matrix import HostArrays, HostMatrix
from .precision import (
    FLOAT32_ERROR,
    USUAL,
    Given,
    Precision,
    Prepared,
    narrow,
    plain_rows,
    prepare,
    value_dtype,
)
from .protocol import Meter, OnDemand, PairsOnDemand, Rows
from .threads import READ_COST, ThreadPool, blocks
from .tiles import Tiles, make_tiles, tiles_against

if TYPE_CHECKING:
    from .span import SpanRows


#: kernel rows are evaluated one at a time if the rows have at most this many bytes, which fit in the processor's cache
IN_CACHE = 1 << 22


class CompiledRows:
    """K(rows, rows), a kernel row at a time, for problems without a working set. A solution needs few kernel rows."""

    def __init__(self, compiled: core.RbfRows, n: int, meter: Meter) -> None:
        self.compiled, self.n, self.meter = compiled, n, meter

    def pair_steps(self, y: Array, cap: Array, alpha: Array, v: Array, goal: float, limit: int) -> tuple[int, float]:
        """Run pair steps of SMO on all rows until no violation is above `goal`; alpha changes in place.

        Returns the number of steps and the largest violation left. `v` is y times the gradient of the dual.
        """
        before = self.compiled.evaluated
        steps, gap = self.compiled.smo(y.astype(np.float32), cap, alpha, v.astype(np.float32), goal, limit)
        self.meter.add(self.n * (self.compiled.evaluated - before))
        return steps, gap

    def product(self, signed: Array) -> Array:
        before, out = self.compiled.evaluated, np.zeros(self.n)
        self.compiled.add_product(signed, out)
        self.meter.add(self.n * (self.compiled.evaluated - before))
        return out


class CompiledPairs:
    """Pairs of classes by kernel rows that are evaluated when a solver first needs them."""

    def __init__(self, scale: float, rows: Prepared, meter: Meter) -> None:
        self.rows, self.meter, self.scale, self.norms = rows, meter, scale, (scale * rows.norms).astype(np.float32)

    def solve(self, own: Array, others: Array, *arguments: Any) -> None:
        self.meter.add(core.rbf_pairs(self.scale, self.rows.values, self.norms, own, others, *arguments))


def on_demand(kernel: Kernel, rows: Prepared, meter: Meter) -> CompiledRows | None:
    """Return the kernel rows of dense float32 rows that fit in the processor's cache; None for others."""
    if not _suits(kernel, rows, rows.count):
        return None
    scale = kernel.gamma * math.log2(math.e)  # type: ignore[attr-defined]
    return CompiledRows(core.RbfRows(scale, rows.values, (scale * rows.norms).astype(np.float32)), rows.count, meter)


def pairs_on_demand(kernel: Kernel, rows: Prepared, meter: Meter, largest: int) -> CompiledPairs | None:
    """Return the kernel rows of pairs of classes of at most `largest` rows, where `on_demand` would for each of them."""
    if not _suits(kernel, rows, largest):
        return None
    return CompiledPairs(kernel.gamma * math.log2(math.e), rows, meter)  # type: ignore[attr-defined]


def _suits(kernel: Kernel, rows: Prepared, count: int) -> bool:
    if not isinstance(kernel, RBF) or rows.sparse or rows.values.dtype != np.float32:
        return False
    return bool(count * rows.values.shape[1] * rows.values.itemsize <= IN_CACHE)


#: rows of a strip in which cached kernel rows are summed; more: fewer threads at work
SUM_STRIP = 1 << 11
#: with more features, points may be sparse; less: sparse points where dense ones take little memory and are quicker
VERY_MANY_FEATURES = 1 << 16


class HostRows(GivenRows):
    """Rows in host memory. Dense rows are held once, in the precision of the tiles; the caller's array is not copied.

    `index` selects rows of X without a copy. `error` is the allowed error of a kernel value, `cache_mb` the memory for
    kernel rows, `ids` the numbers of the rows in the training set (0, 1, ... by default). `prepared` are the same rows in
    the form of tiles, if they exist already. `precision` says when kernel values are float32.
    """

    arrays = HostArrays

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        meter: Meter | None = None,
        cache_mb: float = 512.0,
        error: float = FLOAT32_ERROR,
        ids: Array | None = None,
        *,
        index: Array | None = None,
        pool: ThreadPool | None = None,
        prepared: Prepared | None = None,
        precision: Precision = USUAL,
    ) -> None:
        super().__init__(kernel, Given(X, index), meter, cache_mb, error, ids, precision)
        self.pool = pool or ThreadPool()
        made = prepared or prepare(kernel, self.given, self.n, error, precision=precision, pool=self.pool)
        self.prepared, self.dtype = made, value_dtype(kernel, made, self.n, error, precision)
        self.boxes = LazyBoxes(kernel, error)

    @property
    def centre(self) -> Array | None:  # type: ignore[override]
        """The mean row, if rows are held relative to it."""
        return self.prepared.centre

    @property
    def spent(self) -> int:
        """The work of products so far; rows are sorted into boxes after enough of it."""
        return self.boxes.work

    @spent.setter
    def spent(self, work: int) -> None:
        self.boxes.work = work

    # Rows as rows.

    def subset(self, index: Array) -> HostRows:
        part = copy.copy(self)
        part.given, part.ids, part.prepared = self.given.take(index), self.ids[index], self.prepared.take(index)
        part.cache_mb, part._cache, part.boxes = 0.0, None, self.boxes.anew()
        return part

    def main_features(self, most: int) -> Array | None:
        """Return the features that points have, ascending: the `most` with most of the squared length of sparse rows.

        Features that no row has are left out if they are the greater part of very many. None: points have all features.
        """
        values = self.prepared.values
        if not self.prepared.sparse or not isinstance(self.kernel, InnerKernel):
            return None
        d = values.shape[1]
        occurring = np.unique(values.indices) if d > VERY_MANY_FEATURES else np.arange(d)
        if occurring.size <= most:
            return occurring if occurring.size < d / 2 else None
        lengths = np.bincount(values.indices, weights=np.square(values.data, dtype=np.float64), minlength=d)
        return np.sort(np.argsort(-lengths, kind="stable")[:most])

    def on_features(self, features: Array) -> NarrowRows:
        if not self.prepared.sparse:
            raise ValueError("points with some features only need sparse rows, and these are dense")
        return NarrowRows(self, features)

    def spanned(self, wide: int, several: int, share: float) -> SpanRows | None:  # type: ignore[override]  # as centre
        """Return the rows for points in a span: an empty one for sparse rows, that of the principal axes for others."""
        from .span import in_no_span, in_principal_span

        if self.d <= min(wide, several) or not isinstance(self.kernel, InnerKernel):
            return None
        if self.prepared.sparse and self.d > wide:
            return in_no_span(self)
        return in_principal_span(self, share) if self.d > several else None

    def of(self, points: Matrix, *, exact: bool = False, cache: bool = False) -> HostRows:
        if isinstance(self.kernel, Precomputed):
            return self.subset(self._places(points))
        error, cache_mb = 0.0 if exact else self.error, self.cache_mb if cache else 0.0
        return HostRows(self.kernel, points, self.meter, cache_mb, error, pool=self.pool, precision=self.precision)

    def fetch(self, index: Array) -> HostRows:
        chosen = self.given.take(index)
        return HostRows(self.kernel, chosen.rows(), self.meter, 0.0, 0.0, self.ids[index], pool=self.pool)

    # Kernel values.

    def product(self, points: Matrix, V: Array, metric: Metric | None = None) -> Array:
        """Return K(rows, points) @ V."""
        if metric is not None and metric.projection is not None:
            return self.projected(metric).product(points, V, metric.within)
        self.meter.add(self.n * points.shape[0])
        tiles = self.tiles(points, metric)
        boxes = self.boxes.of(self.prepared, points.shape[0]) if metric is None else None  # boxes ignore metrics
        return tiles.product(V, boxes)

    def tiles(self, points: Matrix, metric: Metric | None = None) -> Tiles:
        """Return the tiles between the rows and any points."""
        rows, precision = self.prepared, self.precision
        return tiles_against(self.kernel, rows, self.given, points, self.error, self.pool, self.dtype, metric, precision)

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        self.meter.add(index.size * (index if columns is None else columns).size)
        rows = self.prepared.take(index)
        if columns is None and isinstance(self.kernel, InnerKernel):
            return make_tiles(self.kernel, rows, rows, self.pool, self.dtype).gram(out)
        points = self._points(index if columns is None else columns)
        return make_tiles(self.kernel, rows, points, self.pool, self.dtype).matrix(out)

    def on_demand(self) -> OnDemand | None:
        """Return kernel rows that compiled code evaluates, for few dense rows; None for others."""
        return on_demand(self.kernel, self.prepared, self.meter)

    def pairs_on_demand(self, largest: int) -> PairsOnDemand | None:
        """Return pairs of classes that compiled code solves, for few dense rows each; None for others."""
        return pairs_on_demand(self.kernel, self.prepared, self.meter, largest)

    def against(self, points: Matrix, *, exact: bool = True) -> HostMatrix:
        return HostMatrix(self, points, placed=False, exact=exact)

    def moving(self, placed: Array, *, exact: bool = False) -> HostMatrix:
        return HostMatrix(self, placed, placed=True, exact=exact)

    def linear(self, values: Array) -> HostRows:
        """Return rows of other features with the linear kernel, with the meter and threads of these."""
        return HostRows(Linear(), values, self.meter, self.cache_mb, pool=self.pool, precision=self.precision)

    def share_out(self, work: Callable[[int], None], count: int) -> None:

        def each(numbers: slice) -> None:
            for number in range(numbers.start, numbers.stop):
                work(number)

        self.pool.run(each, count, 1)

    def _points(self, index: Array) -> Prepared:
        if isinstance(self.kernel, InnerKernel):
            return self.prepared.take(index)
        return plain_rows(self.take(index))

    # Products with rows as points, through the cache.

    @property
    def worth_caching(self) -> bool:
        """Whether fetching a kernel row from memory is cheaper than computing it again."""
        values = self.prepared.values
        return self.pays_to_cache(3 * values.nnz / max(self.n, 1) if self.prepared.sparse else values.shape[1])

    def _product_with(self, index: Array, V: Array) -> Array:
        """Return K(rows, rows[index]) @ V without the cache."""
        return self._tiles_of(index).product(V, self.boxes.of(self.prepared, index.size))

    def _tiles_of(self, index: Array) -> Tiles:
        return make_tiles(self.kernel, self.prepared, self._points(index), self.pool, self.dtype)

    def _cached_product(self, slots: Array, new: Array, index: Array, V: Array) -> Array:
        """Return the product with the kernel rows in these slots; those that are new are filled first."""
        if new.any():
            self._fill_cache(slots[new], index[new])
        weights = np.ascontiguousarray(V.T, dtype=self.dtype)
        if self.dtype == np.float64:
            return (weights @ self.cache.rows[slots]).T
        sums, helpers = np.zeros((V.shape[1], self.n)), self.pool.helpers_for(READ_COST * self.n * slots.size)
        for weight, total in zip(weights, sums, strict=True):
            core.sum_rows(self.cache.rows, slots, weight, total, SUM_STRIP, *helpers)
        return sums.T

    def _fill_cache(self, slots: Array, index: Array) -> None:
        self._tiles_of(index).fill(self.cache.rows, slots)


class NarrowRows(HostRows):
    """Sparse rows for points that are 0 outside some features; points are arrays of these features.

    <x, z> needs these features only, and rows keep their norms over all features, so kernel values are exact.
    """

    def __init__(self, whole: HostRows, features: Array) -> None:
        self.__dict__.update(vars(whole))
        self.features, self.width = features, whole.d
        self.given = Given(csr_array(whole.given.rows())[:, features])
        self.prepared = Prepared(narrow(whole.prepared.values[:, features]), whole.prepared.norms, None)
        self.cache_mb, self._cache, self.boxes = 0.0, None, self.boxes.anew()

    def to_coordinates(self, points: Matrix) -> Array:
        """Return points reduced to these features."""
        return super().to_coordinates(points if points.shape[1] == self.features.size else points[:, self.features])

    def from_coordinates(self, placed: Array) -> Matrix:
        """Return points with all features, as CSR."""
        placed = self.kernel.inside(placed)
        rows, places = np.nonzero(placed)
        return csr_array((placed[rows, places], (rows, self.features[places])), shape=(placed.shape[0], self.width))


#: kernel rows that are summed at a time; more: more memory for a copy of them
SUMMED = 256
#: strips of columns that threads sum up; more: more threads have work
STRIPS = 16


class MatrixRows:
    """The part of `Rows` that solvers of dual problems use, by a kernel matrix in memory; the rest is the rows' own."""

    #: rounds with fewer rows take less time, but a part of the matrix is a copy
    worth_shrinking = False
    worth_caching = False
    keeps_vectors = False

    def __init__(self, rows: Rows, K: Array, pool: ThreadPool) -> None:
        self.rows, self.n, self.dtype, self.K, self.pool = rows, rows.n, rows.dtype, K, pool

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the rows."""
        return getattr(self.rows, name)

    def on_demand(self) -> None:
        """Return None: blocks are copied."""

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        columns = index if columns is None else columns
        size = index.size, columns.size
        values = np.empty(size, self.dtype) if out is None else out[: size[0] * size[1]].reshape(size)
        core.gathered(self.K, index, columns, values)
        return values

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:  # noqa: ARG002
        """Return K(rows, rows[index]) @ V."""
        sums, weights = np.zeros((V.shape[1], self.n)), np.ascontiguousarray(V.T, self.dtype)

        def work(strip: int) -> None:
            some = slice(strip * self.n // STRIPS, (strip + 1) * self.n // STRIPS)
            for part in blocks(index.size, SUMMED):
                sums[:, some] += weights[:, part] @ self.K[index[part], some]

        self.share_out(work, STRIPS)
        return sums.T

    def share_out(self, work: Callable[[int], None], count: int) -> None:

        def each(numbers: slice) -> None:
            for number in range(numbers.start, numbers.stop):
                work(number)

        self.pool.run(each, count, 1)
