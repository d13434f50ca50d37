"""Kernel matrices without the matrix: tiles, threads, precision, the row cache and the meter.

Everything that needs kernel values asks here. `Gram` holds one set of rows and answers

    gram.product(points, V)      K(rows, points) @ V
    gram.product_of(index, V)    the same for points that are rows, through the row cache
    gram.block(index)            the small matrix K(rows[index], rows[index])

in tiles that fit the second-level cache: one matrix product per tile, one pass for the rest of the kernel, threads over
strips of rows with BLAS at one thread each. What evaluates kernel values counts them, on the `Meter`.

Tiles are float32 where the work is large and the rounding provably small (`FLOAT32_ERROR`), float64 otherwise; sums over
tiles are float64 always.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache

import joblib
import numpy as np
from scipy.sparse import csr_array, issparse
from threadpoolctl import ThreadpoolController

from ._core import core
from .kernels import RBF, Array, InnerKernel, Kernel, Matrix, Precomputed, squared_norms

#: the error of a kernel value that float32 tiles may have where the caller asks for no less
FLOAT32_ERROR = 1e-4
#: the share of one point in the error of a prediction
PREDICTION_ERROR = 5e-4
#: multiply-adds below which float64 costs nothing that anyone would notice
SMALL_WORK = 1 << 24
#: multiply-adds below which preparing rows for tiles costs more than the kernel values
TINY_WORK = 1 << 20
#: multiply-adds of one evaluation above which a cached kernel row is cheaper than a new one
DEAR = 256
#: rows below which a strip is not worth a thread
SMALLEST_STRIP = 128
#: the share of nonzeros under which sparse products beat BLAS
SPARSE_DENSITY = 0.2


class Meter:
    """Counts kernel evaluations, from any thread."""

    def __init__(self) -> None:
        self.evaluations = 0
        self.lock = threading.Lock()

    def add(self, evaluations: int) -> None:
        """Count some more."""
        with self.lock:
            self.evaluations += evaluations


@dataclass(frozen=True)
class Rows:
    """Rows in the form tiles need: one precision, centred where that helps, CSR where most entries are zero."""

    values: Matrix
    norms: Array  # squared, float64
    centre: Array | None

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.values.shape[0]

    @property
    def sparse(self) -> bool:
        """Whether the rows are CSR."""
        return issparse(self.values)

    def like(self, X: Matrix) -> Rows:
        """Other rows in the same form; points may stay dense where these rows are sparse."""
        return _rows(X.toarray() if issparse(X) and not self.sparse else X, self.values.dtype, self.centre)

    def take(self, index: Array) -> Rows:
        """A few of the rows."""
        return Rows(self.values[index], self.norms[index] if self.norms.size else self.norms, self.centre)


def _rows(X: Matrix, dtype: np.dtype, centre: Array | None) -> Rows:
    if issparse(X):
        values = narrow(csr_array(X, dtype=dtype))
    elif centre is None:
        values = np.ascontiguousarray(X, dtype=dtype)
    else:
        values = np.empty(X.shape, dtype)
        for some in blocks(X.shape[0], 4096):  # the differences are float64, one block of them at a time
            values[some] = X[some] - centre
    return Rows(values, squared_norms(values), centre)


def narrow(X: csr_array) -> csr_array:
    """The same CSR array with 32-bit indices, all of which are features."""
    if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        raise ValueError(f"a sparse array of {X.shape[1]} features has indices beyond them; build it anew")
    if X.nnz >= 2**31:
        raise ValueError(f"a sparse array of {X.nnz:,} nonzeros; {2**31 - 1:,} are possible. Give fewer rows")
    return csr_array((X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)), X.shape)


def prepare(kernel: Kernel, X: Matrix, partners: int, error: float) -> Rows:
    """The rows of X in the best form for tiles against about `partners` points with kernel values to within `error`."""
    if not isinstance(kernel, InnerKernel):
        return plain_rows(X)
    centre = None
    if _is_sparse_work(X):
        X = csr_array(X)
    else:
        X = X.toarray() if issparse(X) else X
        centre = X.mean(axis=0, dtype=np.float64) if kernel.translation_invariant and X.shape[0] else None
    if X.shape[0] * partners * X.shape[1] > SMALL_WORK:
        rows = _rows(X, np.dtype(np.float32), centre)
        if float32_error(kernel, rows) <= min(error, FLOAT32_ERROR):
            return rows
    return _rows(X, np.dtype(np.float64), centre)


def plain_rows(X: Matrix) -> Rows:
    """Rows or points as they are, for kernels that are not of the inner product."""
    return Rows(X, np.empty(0), None)


def float32_error(kernel: InnerKernel, rows: Rows) -> float:
    """The error to expect of kernel values that are computed from float32 inner products among these rows.

    Rounding errors of a sum of d terms grow with sqrt(d) (Higham & Mary 2019), and the kernel amplifies them.
    """
    unit = float(np.finfo(np.float32).eps) / 2
    terms = np.diff(rows.values.indptr).max(initial=0) if rows.sparse else rows.values.shape[1]
    return (kernel.amplification(float(rows.norms.max(initial=0.0))) * (np.sqrt(terms) + 4.0) + 4.0) * unit


def _is_sparse_work(X: Matrix) -> bool:
    if X.shape[0] == 0 or X.shape[1] == 0:
        return False
    nonzeros = X.nnz if issparse(X) else np.count_nonzero(X)
    return nonzeros < SPARSE_DENSITY * X.shape[0] * X.shape[1]


def blocks(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover range(n)."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


class Tail:
    """The kernel's own tail over a tile of inner products."""

    def __init__(self, kernel: InnerKernel, dtype: np.dtype) -> None:
        self.kernel, self.dtype = kernel, dtype

    def scaled(self, norms: Array) -> Array:
        """The squared norms as `values` wants them."""
        return norms.astype(self.dtype)

    def values(self, G: Array, a: Array, b: Array) -> Array:
        """Kernel values for the inner products G, in place where possible."""
        return self.kernel.tail(G, a, b)

    def add_product(self, G: Array, a: Array, b: Array, V: Array, out: Array) -> None:
        """out += K @ V; G is scratch afterwards."""
        out += self.values(G, a, b) @ V


class CompiledRBF(Tail):
    """The float32 RBF tail as one compiled pass, with the weighted sum in it where V is one column."""

    def __init__(self, kernel: RBF, dtype: np.dtype) -> None:
        super().__init__(kernel, dtype)
        self.scale = kernel.gamma * float(np.log2(np.e))  # the compiled tail takes powers of 2

    def scaled(self, norms: Array) -> Array:
        """The squared norms in the exponent's unit."""
        return (self.scale * norms).astype(np.float32)

    def values(self, G: Array, a: Array, b: Array) -> Array:
        """Kernel values in place."""
        core.rbf_tail(self.scale, G, a, b)
        return G

    def add_product(self, G: Array, a: Array, b: Array, V: Array, out: Array) -> None:
        """One fused pass for one column, the plain way for more."""
        if V.shape[1] == 1:
            core.rbf_tail_dot(self.scale, G, a, b, V.ravel(), out.ravel())
        else:
            super().add_product(G, a, b, V, out)


def _tail(kernel: InnerKernel, dtype: np.dtype) -> Tail:
    compiled = isinstance(kernel, RBF) and dtype == np.float32
    return CompiledRBF(kernel, dtype) if compiled else Tail(kernel, dtype)  # type: ignore[arg-type]


class Tiles:
    """Kernel values between rows A and points B, a tile at a time; this one asks the kernel for whole blocks."""

    shape = (512, 512)

    def __init__(self, kernel: Kernel, A: Rows, B: Rows) -> None:
        self.kernel, self.A, self.B = kernel, A, B
        self.dtype = np.dtype(np.float64)

    def values(self, rows: slice, cols: slice) -> Array:
        """The tile K(A[rows], B[cols])."""
        return self.kernel(self.A.values[rows], self.B.values[cols])

    def transposed(self, rows: slice, cols: slice) -> Array:
        """The same tile as K(B[cols], A[rows])."""
        return self.values(rows, cols).T

    def add_product(self, rows: slice, cols: slice, V: Array, out: Array) -> None:
        """out[rows] += K(A[rows], B[cols]) @ V[cols]."""
        out[rows] += self.values(rows, cols) @ V[cols]


class InnerTiles(Tiles):
    """Tiles of an inner-product kernel: BLAS, then the tail."""

    shape = (1024, 256)

    def __init__(self, kernel: InnerKernel, A: Rows, B: Rows) -> None:
        super().__init__(kernel, A, B)
        self.dtype = A.values.dtype
        self.tail = _tail(kernel, self.dtype)
        self.a, self.b = self.tail.scaled(A.norms), self.tail.scaled(B.norms)
        self.local = threading.local()

    def scratch(self, m: int, n: int) -> Array:
        """Memory for one tile, the same for each tile of a thread: fresh pages cost more than the values in them."""
        if not hasattr(self.local, "tile"):
            self.local.tile = np.empty(self.shape[0] * self.shape[1], self.dtype)
        return self.local.tile[: m * n].reshape(m, n)

    def inner(self, rows: slice, cols: slice) -> Array:
        """The inner products of a tile, in scratch memory."""
        A, B = self.A.values[rows], self.B.values[cols]
        return np.matmul(A, B.T, out=self.scratch(A.shape[0], B.shape[0]))

    def values(self, rows: slice, cols: slice) -> Array:
        """Inner products, then the tail."""
        return self.tail.values(self.inner(rows, cols), self.a[rows], self.b[cols])

    def transposed(self, rows: slice, cols: slice) -> Array:
        """The product the other way round, so that no tile is transposed in memory."""
        A, B = self.A.values[rows], self.B.values[cols]
        G = np.matmul(B, A.T, out=self.scratch(B.shape[0], A.shape[0]))
        return self.tail.values(G, self.b[cols], self.a[rows])

    def add_product(self, rows: slice, cols: slice, V: Array, out: Array) -> None:
        """Fused where the tail is compiled."""
        self.tail.add_product(self.inner(rows, cols), self.a[rows], self.b[cols], V[cols], out[rows])


class SparseTiles(InnerTiles):
    """Tiles of CSR rows against points written out as lines of one value per point, `core.SPARSE_LANES` points each."""

    def __init__(self, kernel: InnerKernel, A: Rows, B: Rows) -> None:
        super().__init__(kernel, A, B)
        # a strip is long enough to pay for writing out the points of a tile
        self.shape = (max(1024, A.values.shape[1] // 8), core.SPARSE_LANES)
        features = A.values.shape[1]
        self.lines = [self.line(cols) for cols in blocks(B.count, self.shape[1])] if features <= 4096 else None

    def line(self, cols: slice) -> Array:
        """The points of one tile, transposed and padded to full lanes."""
        B = self.B.values[cols]
        line = np.zeros((B.shape[1], self.shape[1]), self.dtype)
        line[:, : B.shape[0]] = (B.toarray() if issparse(B) else B).T
        return line

    def inner(self, rows: slice, cols: slice) -> Array:
        """Compiled for float32, by scipy for float64."""
        line = self.lines[cols.start // self.shape[1]] if self.lines is not None else self.line(cols)
        A = self.A.values
        if self.dtype == np.float32:
            G = self.scratch(rows.stop - rows.start, self.shape[1])
            core.sparse_dot(A.data, A.indices, A.indptr[rows.start : rows.stop + 1], line, G)
        else:
            G = A[rows] @ line
        width = cols.stop - cols.start
        return G if width == self.shape[1] else np.ascontiguousarray(G[:, :width])

    def transposed(self, rows: slice, cols: slice) -> Array:
        """A transposed view: the sparse side is always A."""
        return self.values(rows, cols).T


def make_tiles(kernel: Kernel, A: Rows, B: Rows) -> Tiles:
    """The tiles for this kernel and these rows."""
    if not isinstance(kernel, InnerKernel):
        return Tiles(kernel, A, B)
    return (SparseTiles if A.sparse else InnerTiles)(kernel, A, B)


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Matrix products in the thread that asks for them, for the time of a `with` block."""
    return _threads().limit(limits=1, user_api="blas")


def one_openmp_thread() -> AbstractContextManager[object]:
    """scikit-learn's own loops in the thread that asks for them, for the time of a `with` block."""
    return _threads().limit(limits=1, user_api="openmp")


def thread_count() -> int:
    """The cores this process may use; OMP_NUM_THREADS lowers it, as for scikit-learn."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(joblib.cpu_count(), int(limit)) if limit.isdigit() and int(limit) else joblib.cpu_count()


class Crew:
    """Threads that work through strips of rows, with one BLAS thread each; they end with their owner."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or thread_count()
        self.pool: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[slice], None], n: int, size: int) -> None:
        """Call work(strip) for strips of at most `size` that cover range(n), four or more for each thread if n allows."""
        if size > SMALLEST_STRIP:
            size = min(size, max(-(-n // (4 * self.count)), SMALLEST_STRIP))
        if self.count == 1 or n <= size:
            for strip in blocks(n, size):
                work(strip)
            return
        self.pool = self.pool or ThreadPoolExecutor(self.count)
        strips, lock = blocks(n, size), threading.Lock()

        def worker() -> None:
            while True:
                with lock:
                    strip = next(strips, None)
                if strip is None:
                    return
                work(strip)

        with one_blas_thread():
            futures = [self.pool.submit(worker) for _ in range(self.count)]
            try:
                for future in futures:
                    future.result()
            except BaseException:  # Ctrl-C, or an error in one of the threads: nobody begins another strip
                with lock:
                    for _ in strips:
                        pass
                raise


def tiled_product(tiles: Tiles, V: Array, crew: Crew) -> Array:
    """K(A, B) @ V in float64, without K."""
    out = np.zeros((tiles.A.count, V.shape[1]))
    V = np.ascontiguousarray(V, dtype=tiles.dtype)

    def work(rows: slice) -> None:
        for cols in blocks(tiles.B.count, tiles.shape[1]):
            tiles.add_product(rows, cols, V, out)

    crew.run(work, tiles.A.count, tiles.shape[0])
    return out


def tiled_matrix(tiles: Tiles, crew: Crew, out: Array | None = None) -> Array:
    """K(A, B) in the tiles' precision, for small sets; `out` is memory to use again."""
    m, n = tiles.A.count, tiles.B.count
    K = np.empty((m, n), tiles.dtype) if out is None else out[: m * n].reshape(m, n)

    def work(rows: slice) -> None:
        for cols in blocks(tiles.B.count, tiles.shape[1]):
            K[rows, cols] = tiles.values(rows, cols)

    crew.run(work, tiles.A.count, tiles.shape[0])
    return K


def tiles_against(kernel: Kernel, A: Rows, X: Matrix, points: Matrix, error: float) -> Tiles:
    """Tiles between rows A, prepared from X, and any points; in float64 where points far out would spoil float32."""
    if not isinstance(kernel, InnerKernel):
        return Tiles(kernel, A, plain_rows(points))
    B = A.like(points)
    if A.values.dtype == np.float32 and float32_error(kernel, B) > min(error, FLOAT32_ERROR):
        A = prepare(kernel, X, 0, error)
        B = A.like(points)
    return make_tiles(kernel, A, B)


def kernel_product(kernel: Kernel, X: Matrix, points: Matrix, V: Array, meter: Meter) -> Array:
    """K(X, points) @ V for rows seen once: prediction."""
    if _is_tiny(kernel, X, points):
        meter.add(X.shape[0] * points.shape[0])
        return _row_by_row(kernel, X, points, V)
    error = PREDICTION_ERROR / float(np.abs(V).max(initial=np.finfo(float).tiny))
    A = prepare(kernel, X, points.shape[0], error)
    meter.add(X.shape[0] * points.shape[0])
    return tiled_product(tiles_against(kernel, A, X, points, error), V, Crew())


def _is_tiny(kernel: Kernel, X: Matrix, points: Matrix) -> bool:
    dense = isinstance(X, np.ndarray) and isinstance(points, np.ndarray)
    return dense and kernel.name in core.FORMS and X.size * points.shape[0] <= min(TINY_WORK, SMALL_WORK)


def _row_by_row(kernel: Kernel, X: Array, points: Array, V: Array) -> Array:
    """K(X, points) @ V by the compiled loop, without tiles."""
    given = vars(kernel)
    X, points, V = (np.ascontiguousarray(A, dtype=np.float64) for A in (X, points, V))
    out = np.empty((X.shape[0], V.shape[1]))
    parameters = given.get("gamma", 1.0), given.get("coef0", 0.0), given.get("degree", 1)
    core.expansion(core.FORMS[kernel.name], *parameters, X, points, V, np.zeros(V.shape[1]), out)
    return out


def _smallest(values: Array, count: int) -> Array:
    """The positions of the `count` smallest values, in no order."""
    return np.argpartition(values, count - 1)[:count] if 0 < count < values.size else np.arange(values.size)[:count]


class RowCache:
    """The last kernel rows used, as many as fit in the memory given."""

    def __init__(self, n: int, dtype: np.dtype, megabytes: float) -> None:
        slots = int(megabytes * 2**20 // (n * dtype.itemsize)) if n else 0
        self.rows = np.empty((min(slots, n), n), dtype)  # the system hands out pages as they are written
        self.slot_of = np.full(n, -1, dtype=np.intp)
        self.held = np.full(self.rows.shape[0], -1, dtype=np.intp)
        self.used = np.zeros(self.rows.shape[0], dtype=np.int64)
        self.clock = 0

    def seat(self, index: Array) -> tuple[Array, Array]:
        """Slots for as many of the rows `index` as there is room for, and which of these are still to be filled.

        Returns (slots, new): slots[k] is the slot of index[k] or -1, new[k] tells whether it must be filled.
        """
        self.clock += 1
        slots = self.slot_of[index]
        self.used[slots[slots >= 0]] = self.clock
        missing = np.flatnonzero(slots < 0)
        free = _smallest(self.used, missing.size)  # the longest unused
        free = free[self.used[free] < self.clock]
        missing = missing[: free.size]
        evicted = self.held[free]
        self.slot_of[evicted[evicted >= 0]] = -1
        self.held[free] = index[missing]
        self.slot_of[index[missing]] = free
        self.used[free] = self.clock
        slots[missing] = free
        new = np.zeros(index.size, dtype=bool)
        new[missing] = True
        return slots, new


@dataclass
class Gram:
    """The kernel values among one set of rows and between them and any points."""

    kernel: Kernel
    X: Matrix
    meter: Meter = field(default_factory=Meter)
    cache_mb: float = 512.0
    error: float = FLOAT32_ERROR  # how far off a kernel value may be
    ids: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # numbers in the training set, or 0, 1, ...

    def __post_init__(self) -> None:
        self.ids = self.ids if self.ids.size else np.arange(self.n)
        self.rows = prepare(self.kernel, self.X, self.X.shape[0], self.error)
        self.cache = RowCache(self.n, self.dtype, self.cache_mb)
        self.crew = Crew()

    def subset(self, index: Array, crew: Crew | None = None) -> Gram:
        """The Gram of some of the rows, on the same meter, without a cache."""
        part = copy.copy(self)
        part.X, part.ids, part.rows = self.X[index], self.ids[index], self.rows.take(index)
        part.cache_mb, part.cache = 0.0, RowCache(index.size, self.dtype, 0.0)
        part.crew = crew or self.crew
        return part

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.X.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """The precision of kernel values."""
        return self.rows.values.dtype if isinstance(self.kernel, InnerKernel) else np.dtype(np.float64)

    def points(self, index: Array) -> Matrix:
        """What an expansion keeps of the rows `index`."""
        return self.kernel.points(self.X[index], self.ids[index])

    def _point_rows(self, index: Array) -> Rows:
        if isinstance(self.kernel, InnerKernel):
            return self.rows.take(index)
        return plain_rows(self.points(index))

    def product(self, points: Matrix, V: Array) -> Array:
        """K(rows, points) @ V."""
        self.meter.add(self.n * points.shape[0])
        return tiled_product(tiles_against(self.kernel, self.rows, self.X, points, self.error), V, self.crew)

    def matrix(self, points: Matrix) -> Array:
        """K(rows, points) itself: for few points."""
        self.meter.add(self.n * points.shape[0])
        return tiled_matrix(tiles_against(self.kernel, self.rows, self.X, points, self.error), self.crew)

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """K(rows[index], rows[columns]), columns as index by default, in the memory of `out` where that is given."""
        columns = index if columns is None else columns
        self.meter.add(index.size * columns.size)
        return tiled_matrix(make_tiles(self.kernel, self.rows.take(index), self._point_rows(columns)), self.crew, out)

    def diagonal(self) -> Array:
        """k(x_i, x_i) for each row."""
        self.meter.add(self.n)
        return self.kernel.diagonal(self.X, self.ids)

    @property
    def rows_are_dear(self) -> bool:
        """Whether fetching a kernel row from memory is cheaper than computing it again."""
        if isinstance(self.kernel, Precomputed) or not self.cache_mb:
            return False
        if not isinstance(self.kernel, InnerKernel):
            return True
        values = self.rows.values
        return 3 * values.nnz / self.n > DEAR if self.rows.sparse else values.shape[1] > DEAR

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:
        """K(rows, rows[index]) @ V; with `keep`, by default where that pays, kernel rows are cached for the next time."""
        keep = self.rows_are_dear if keep is None else keep
        slots, new = self.cache.seat(index) if keep else (np.full(index.size, -1), np.zeros(index.size, dtype=bool))
        seated = slots >= 0
        out = np.zeros((self.n, V.shape[1]))
        if seated.any():
            self._add_cached(slots[seated], new[seated], index[seated], V[seated], out)
        if not seated.all():
            self.meter.add(self.n * int((~seated).sum()))
            rest = make_tiles(self.kernel, self.rows, self._point_rows(index[~seated]))
            out += tiled_product(rest, V[~seated], self.crew)
        return out

    def _add_cached(self, slots: Array, new: Array, index: Array, V: Array, out: Array) -> None:
        fresh = make_tiles(self.kernel, self.rows, self._point_rows(index[new]))
        fresh_slots = slots[new]
        self.meter.add(self.n * fresh_slots.size)
        weights = np.ascontiguousarray(V.T, dtype=self.dtype)
        sums = np.zeros((V.shape[1], self.n))

        def work(strip: slice) -> None:
            for cols in blocks(fresh_slots.size, fresh.shape[1]):
                self.cache.rows[fresh_slots[cols], strip] = fresh.transposed(strip, cols)
            for weight, total in zip(weights, sums, strict=True):
                self._add_rows(slots, weight, strip, total)

        self.crew.run(work, self.n, fresh.shape[0])
        out += sums.T

    def _add_rows(self, slots: Array, weight: Array, strip: slice, total: Array) -> None:
        if self.dtype == np.float32:
            core.sum_rows(self.cache.rows, slots, weight, strip.start, strip.stop, total)
        else:
            total[strip] += weight @ self.cache.rows[slots, strip]
