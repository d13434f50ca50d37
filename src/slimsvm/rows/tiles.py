"""Kernel values between rows and points, a strip of rows at a time, in threads.

A strip against all points is one compiled call without the interpreter's lock (`core.KernelPass`): inner products, the
rest of the kernel and weighted sums, in a fixed order. Kernels that are Python functions are called a tile at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from .._core import core
from ..kernels import KERNELS, RBF, Array, InnerKernel, Kernel, Matrix, inner_products, scaled
from ..kernels.spec import SPECS, core_arguments
from ..metric import Metric
from .boxes import Boxes
from .precision import USUAL, Given, Precision, Prepared, float32_error, plain_points, prepare
from .threads import ThreadPool, blocks

#: sparse points of at most this many features are made dense if they have at most this many numbers
FEW_FEATURES, WRITTEN_OUT = 4096, 1 << 25
#: features that more than this share of the points has are dense; for rarer ones, a list of these points is faster
FREQUENT = 1 / 40
#: sparse points of a panel, which share such lists
POSTED = 512
#: the most places of features in all panels of points, 4 bytes each; beyond, only the features that points have get a place
MOST_PLACES = 1 << 26
#: multiply-adds of all kernel values up to which the calling thread does them: threads take longer to start
SMALL_WORK = 1 << 22
#: multiply-adds of a strip, less than a millisecond, and the least and most rows of it; more: threads wait longer for the
#: last one
STRIP_WORK, LEAST_ROWS, MOST_ROWS = 1 << 24, 96, 2048
#: multiply-adds after which Ctrl-C is looked for
TURN_WORK = 1 << 31
#: rows of a strip whose values are copied to lines of points; more: longer waits for the last thread
FILL_STRIP = 128
#: rows of a strip of outputs of several classes; more: fewer threads at work
CLASS_ROWS = 96
#: rows and points of a tile of a kernel that is a Python function
TILE = 512
#: boxes of rows that a thread works through at a time
BOXES_A_STRIP = 16


class Tiles:
    """Kernel values between rows A and points B of a kernel that is a Python function."""

    def __init__(self, kernel: Kernel, A: Prepared, B: Prepared, pool: ThreadPool) -> None:
        self.kernel, self.A, self.B, self.pool = kernel, A, B, pool
        self.metric = B.metric or Metric()
        self.dtype = A.values.dtype if isinstance(kernel, InnerKernel) else np.dtype(np.float64)

    @property
    def work(self) -> int:
        """The multiply-adds of a row."""
        values = self.A.values
        return self.B.count * (1 + (values.nnz // max(self.A.count, 1) if issparse(values) else values.shape[1]))

    @property
    def strip(self) -> int:
        """The number of rows in a strip."""
        return TILE

    def each_strip(self, work: Callable[[slice], None]) -> None:
        """Call work(rows) for strips of all rows, in threads where the work is worth them."""
        n = self.A.count
        if n * self.work > SMALL_WORK:
            self.pool.run(work, n, self.strip)
        elif n:
            work(slice(0, n))

    def product(self, V: Array, boxes: Boxes | None = None) -> Array:  # noqa: ARG002
        """Return K(A, B) @ V in float64, without storing K; with boxes of A's rows, only for the points near each box."""
        out = np.zeros((self.A.count, V.shape[1]))
        self.spread(self.weights(V), out)
        return out

    def matrix(self, out: Array | None = None) -> Array:
        """Return K(A, B), for small sets; in the memory of `out` if given."""
        m, n = self.A.count, self.B.count
        K = np.empty((m, n), self.dtype) if out is None else out[: m * n].reshape(m, n)
        self.spread(values=K)
        return K

    def spread(self, V: Array | None = None, out: Array | None = None, values: Array | None = None) -> None:
        """Do what `run` does for all rows, in threads."""
        self.each_strip(lambda rows: self.run(rows, V, out, values))

    def fill(self, lines: Array, which: Array) -> None:
        """Set lines[which[j]] to the kernel values of point j and all rows."""

        def work(rows: slice) -> None:
            K = np.empty((rows.stop - rows.start, self.B.count), self.dtype)
            self.run(rows, values=K)
            lines[which, rows] = K.T

        self.each_strip(work)

    def gram(self, out: Array | None = None) -> Array:
        """Return K(A, A) for tiles whose points are their rows; values below the diagonal are those above it."""
        return self.matrix(out)

    def weights(self, V: Array) -> Array:
        """Return coefficients (m, q) in the form that `run` takes."""
        return V

    def run(self, rows: slice, V: Array | None = None, out: Array | None = None, values: Array | None = None) -> None:
        """Set values[rows] to K(A[rows], B) and add K(A[rows], B) V to out[rows]; both may also have these rows only."""
        own = slice(0, rows.stop - rows.start)
        there, here = (rows if array is not None and array.shape[0] > own.stop else own for array in (values, out))
        for cols in blocks(self.B.count, TILE):
            K = self._tile(rows, cols)
            if values is not None:
                values[there, cols] = K
            if out is not None and V is not None:
                out[here] += K @ V[cols]

    def _tile(self, rows: slice, cols: slice) -> Array:
        A, B = self.A.values[rows], self.B.values[cols]
        widths = {} if self.metric.widths is None else {"widths": self.metric.widths[cols].astype(self.dtype)}
        if isinstance(self.kernel, InnerKernel):
            a, b = self.A.norms[rows].astype(self.dtype), self.B.norms[cols].astype(self.dtype)
            return self.kernel.tail(inner_products(A, B), a, b, **widths)
        return self.kernel(scaled(A, self.metric.factors), B, **widths)


class CompiledTiles(Tiles):
    """Kernel values of a kernel that the compiled pass knows, in the precision `dtype`, by default that of the rows."""

    def __init__(self, kernel: Kernel, A: Prepared, B: Prepared, pool: ThreadPool, dtype: np.dtype | None = None) -> None:
        super().__init__(kernel, A, B, pool)
        self.real = self.dtype  # of inner products and coefficients
        narrow = isinstance(kernel, RBF) and self.real == np.float64 and dtype == np.float32
        self.dtype = np.dtype(np.float32) if narrow else self.real
        form = core_arguments(kernel.name, vars(kernel))
        rows, points = _forms(kernel, A, B, pool)
        norms: tuple[Array | None, Array | None] = (None, None)
        if isinstance(kernel, RBF):
            scale = kernel.gamma * float(np.log2(np.e))
            norms = (scale * A.norms).astype(self.real), self._full(scale * B.norms)
        widths = None if self.metric.widths is None else self._full(self.metric.widths)
        features = points.shape[1] if isinstance(points, np.ndarray) else points[0][0].size
        self.compiled = core.KernelPass(form, rows, points, B.count, features, *norms, widths, narrow)

    def _full(self, values: Array) -> Array:
        """Return a number for each point, filled up to full panels."""
        out = np.zeros((-(-self.B.count // core.PANEL) * core.PANEL, *values.shape[1:]), self.real)
        out[: self.B.count] = values
        return out

    @property
    def strip(self) -> int:
        return int(np.clip(STRIP_WORK // (self.work + 1), LEAST_ROWS, MOST_ROWS))

    def weights(self, V: Array) -> Array:
        """Return coefficients filled up to full panels, and those of several outputs to full columns."""
        q = V.shape[1]
        if q == 1:
            return self._full(V.ravel())
        columns = np.zeros((V.shape[0], -(-q // core.OUTPUTS) * core.OUTPUTS), self.real)
        columns[:, :q] = V
        return self._full(columns)

    def run(self, rows: slice, V: Array | None = None, out: Array | None = None, values: Array | None = None) -> None:
        """Do what `Tiles.run` does in one call."""
        self.compiled.run(rows.start, rows.stop, V, out, values)

    def product(self, V: Array, boxes: Boxes | None = None) -> Array:
        """Return K(A, B) @ V; with boxes, without points whose kernel values are negligible for all rows of a box."""
        if boxes is None:
            return super().product(V)
        out, placed, weights = np.zeros((self.A.count, V.shape[1])), boxes.placed(self.B.values), V.astype(self.real)
        sides = boxes.starts, boxes.rows, boxes.low, boxes.high, placed, boxes.reach, self.B.values, weights, out
        self.pool.run(lambda some: self.compiled.add_near(*sides, some.start, some.stop), boxes.count, BOXES_A_STRIP)
        return out

    def spread(self, V: Array | None = None, out: Array | None = None, values: Array | None = None) -> None:
        self._together(self.strip, V=V, out=out, values=values)

    def _together(self, size: int, **wanted: Any) -> None:
        count = self.A.count
        strips = core.Strips(count, size, max(TURN_WORK // (size * self.work + 1), 1))
        self.compiled.run_strips(strips, *self.pool.helpers_for(count * self.work, (count - 1) // size), **wanted)

    def fill(self, lines: Array, which: Array) -> None:
        count = self.A.count
        strips = core.Strips(count, FILL_STRIP, TURN_WORK // (FILL_STRIP * self.work + 1) + 1)
        helpers = self.pool.helpers_for(count * self.work, (count - 1) // FILL_STRIP)
        self.compiled.fill_rows(strips, *helpers, lines, which)

    def gram(self, out: Array | None = None) -> Array:
        """Return K(A, A), from the values above the diagonal: they are symmetric to the last bit."""
        n = self.A.count
        K = np.empty((n, n), self.dtype) if out is None else out[: n * n].reshape(n, n)
        self._together(core.PANEL, values=K, symmetric=True)
        return K


def add_class_outputs(pool: ThreadPool, parts: list[tuple[Array, CompiledTiles, Array]], outputs: Array) -> None:
    """Add K V of each part to its outputs (q, n): columns, tiles of the same rows, and `weights` of coefficients."""
    columns, tiles, weights = (list(side) for side in zip(*parts, strict=True))
    multiply_adds = outputs.shape[1] * sum(each.work for each in tiles)
    strips = core.Strips(outputs.shape[1], CLASS_ROWS)
    compiled = [each.compiled for each in tiles]
    helpers = pool.helpers_for(multiply_adds, (strips.n - 1) // strips.size)
    core.run_together(compiled, weights, columns, strips, outputs, *helpers)


def _forms(kernel: Kernel, A: Prepared, B: Prepared, pool: ThreadPool) -> tuple[Any, Any]:
    """Return rows and points in the form of `core.KernelPass`."""
    if not A.sparse:
        factors = None if isinstance(kernel, InnerKernel) or B.metric is None else B.metric.factors
        dtype = A.values.dtype if isinstance(kernel, InnerKernel) else np.float64
        rows = np.ascontiguousarray(scaled(A.values, factors), dtype=dtype)
        return rows, _panels(np.ascontiguousarray(B.values, dtype=rows.dtype), pool)
    X, Z = A.values, B.values
    if not issparse(Z) or (X.shape[1] <= FEW_FEATURES and X.shape[1] * Z.shape[0] <= WRITTEN_OUT):
        return (X.data, X.indices, X.indptr), _panels(Z if issparse(Z) else np.ascontiguousarray(Z, dtype=X.dtype), pool)
    if X.shape[1] > MOST_PLACES // max(-(-Z.shape[0] // POSTED), 4):
        X, Z = shared_features(X, Z)
    points: list[Any] = [None] * -(-Z.shape[0] // POSTED)

    def post(numbers: slice) -> None:
        for number in range(numbers.start, numbers.stop):
            points[number] = _posted(Z[number * POSTED : (number + 1) * POSTED])

    pool.run(post, len(points), 1)
    return (X.data, X.indices, X.indptr), points


def _panels(Z: Matrix, pool: ThreadPool) -> Array:
    """Return points in panels, (panels, features, PANEL)."""
    lines = np.empty((-(-Z.shape[0] // core.PANEL), Z.shape[1], core.PANEL), Z.dtype)

    def work(some: slice) -> None:
        if issparse(Z):
            core.panels_of_sparse(Z.data, Z.indices, Z.indptr, lines, some.start, some.stop)
        else:
            core.panels_of(Z, lines, some.start, some.stop)

    if lines.size < SMALL_WORK // 8:
        work(slice(0, lines.shape[0]))
    else:
        pool.run(work, lines.shape[0], 16)
    return lines


def _posted(B: csr_array) -> tuple[Array, Array, Array, Array, Array]:
    """Return a panel of sparse points: places, lines, and the starts, points and values of postings."""
    features, lanes = B.shape[1], core.PANEL
    counts = np.bincount(B.indices, minlength=features)
    frequent = np.flatnonzero(counts > max(FREQUENT * B.shape[0], 1))
    place = np.full(features, -1, np.int32)
    place[frequent] = np.arange(frequent.size)
    point, line = np.repeat(np.arange(B.shape[0]), np.diff(B.indptr)), place[B.indices]
    written = line >= 0
    lines = np.zeros((-(-B.shape[0] // lanes), frequent.size, lanes), B.dtype)
    np.add.at(lines, (point[written] // lanes, line[written], point[written] % lanes), B.data[written])
    rest = csr_array((B.data[~written], (B.indices[~written], point[~written])), shape=(features, B.shape[0]))
    return place, lines, rest.indptr.astype(np.int32), rest.indices.astype(np.int32), rest.data


def shared_features(A: csr_array, B: csr_array) -> tuple[csr_array, csr_array]:
    """Return both sets of rows with the features of B only, renumbered; their inner products are the same."""
    used, places = np.unique(B.indices, return_inverse=True)
    if not used.size:
        used, places = np.zeros(1, B.indices.dtype), B.indices
    found = np.minimum(np.searchsorted(used, A.indices), used.size - 1)
    kept = used[found] == A.indices
    starts = np.concatenate([[0], np.cumsum(kept)])[A.indptr].astype(np.int32)
    return (
        csr_array((A.data[kept], found[kept].astype(np.int32), starts), shape=(A.shape[0], used.size)),
        csr_array((B.data, places.astype(np.int32), B.indptr), shape=(B.shape[0], used.size)),
    )


def make_tiles(kernel: Kernel, A: Prepared, B: Prepared, pool: ThreadPool, dtype: np.dtype | None = None) -> Tiles:
    """Return the tiles for this kernel and these rows.

    `dtype` is the precision of kernel values, by default that of the rows; only the rbf kernel may have a lower one.
    """
    if (inside := kernel.inside(B.values)) is not B.values:
        B = replace(B, values=inside)
    known = kernel.name in SPECS and type(kernel) is KERNELS[kernel.name]
    if not known or not (isinstance(kernel, InnerKernel) or not (A.sparse or issparse(B.values))):
        return Tiles(kernel, A, B, pool)
    return CompiledTiles(kernel, A, B, pool, dtype)


def tiles_against(
    kernel: Kernel,
    A: Prepared,
    given: Given,
    points: Matrix,
    error: float,
    pool: ThreadPool,
    dtype: np.dtype | None = None,
    metric: Metric | None = None,
    precision: Precision = USUAL,
) -> Tiles:
    """Return tiles between the given rows, prepared as A, and any points.

    They are float64 if points are too far out for float32, or rows in the metric, which A does not know of. `dtype` is the
    precision of kernel values (`make_tiles`).
    """
    if not isinstance(kernel, InnerKernel):
        return make_tiles(kernel, A, plain_points(points, metric), pool)
    B, within = A.points(points, metric), A.measured(metric)
    doubtful = (B,) if metric is None else (B, within)
    if A.values.dtype == np.float32 and _worst(kernel, doubtful, metric) > precision.most(error):
        A = prepare(kernel, given, 0, error)
        B, within = A.points(points, metric), A.measured(metric)
    return make_tiles(kernel, within, B, pool, dtype)


def _worst(kernel: InnerKernel, doubtful: tuple[Prepared, ...], metric: Metric | None) -> float:
    """Return the largest error that float32 may make with these rows or points."""
    return max(float32_error(kernel, each, metric) for each in doubtful)
