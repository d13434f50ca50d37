"""Kernel values a tile at a time: one matrix product, one pass for the rest of the kernel, threads over strips of rows."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array, issparse

from .._core import core
from ..kernels import Array, InnerKernel, Kernel, Matrix, scaled
from ..metric import Metric
from .boxes import Boxes
from .precision import USUAL, Given, Precision, Prepared, float32_error, plain_points, prepare
from .tails import tail_of
from .threads import Crew, blocks

#: sparse points of at most this many features are made dense, all tiles at once if they have at most this many numbers
FEW_FEATURES, WRITTEN_OUT = 4096, 1 << 25
#: features that more than this share of the points has are dense; for rarer ones, a list of these points is faster
FREQUENT = 1 / 40
#: multiply-adds of all kernel values up to which the calling thread does them: threads take longer to start
SMALL_WORK = 1 << 22
#: boxes of rows that a thread works through at a time
BOXES_A_STRIP = 16
#: with more features, a dense line of points takes too much memory
WIDE = 1 << 17
#: the most places of features in all panels of points, 8 bytes each; with more features than a quarter of it there are none
MOST_PLACES = 1 << 26


class Tiles:
    """Kernel values between rows A and points B, a tile at a time; this class calls the kernel for each tile."""

    shape = (512, 512)

    def __init__(self, kernel: Kernel, A: Prepared, B: Prepared) -> None:
        self.kernel, self.A, self.B = kernel, A, B
        self.factors = B.metric.factors if B.metric else None
        self.widths = B.metric.widths if B.metric else None
        self.dtype = self.sum_dtype = np.dtype(np.float64)

    def widths_of(self, cols: slice) -> Array | None:
        """Return the widths of the points of a tile, if they have any."""
        return None if self.widths is None else self.widths[cols]

    def values(self, rows: slice, cols: slice) -> Array:
        """Return the tile K(A[rows], B[cols])."""
        A, B, widths = scaled(self.A.values[rows], self.factors), self.B.values[cols], self.widths_of(cols)
        if widths is None:
            return self.kernel(A, B)
        return self.kernel(A, B, widths)  # type: ignore[call-arg]  # kernels that can have widths take them

    def transposed(self, rows: slice, cols: slice) -> Array:
        """Return the transposed tile, K(B[cols], A[rows])."""
        return self.values(rows, cols).T

    def add_product(self, rows: slice, cols: slice, V: Array, out: Array) -> None:
        """Add K(A[rows], B[cols]) @ V[cols] to out[rows]."""
        out[rows] += self.values(rows, cols) @ V[cols]


class InnerTiles(Tiles):
    """Tiles of an inner-product kernel: BLAS, then the tail. Kernel values have the precision `dtype`, by default A's."""

    shape = (1024, 256)

    def __init__(self, kernel: InnerKernel, A: Prepared, B: Prepared, dtype: np.dtype | None = None) -> None:
        super().__init__(kernel, A, B)
        widths = self.widths is not None
        self.tail = tail_of(kernel, A.values.dtype, dtype or A.values.dtype, widths=widths)
        self.dtype, self.sum_dtype = self.tail.dtype, self.tail.sum_dtype
        self.a, self.b = self.tail.scaled(A.norms), self.tail.scaled(B.norms)
        self.widths = None if self.widths is None else self.widths.astype(self.dtype)
        self.local = threading.local()

    def scratch(self, m: int, n: int) -> Array:
        """Return memory for one tile, shared by all tiles of a thread: new pages take longer than the values in them."""
        if not hasattr(self.local, "tile"):
            self.local.tile = np.empty(self.shape[0] * self.shape[1], self.A.values.dtype)
        return self.local.tile[: m * n].reshape(m, n)

    def inner(self, rows: slice, cols: slice) -> Array:
        """Return the inner products of a tile, in scratch memory."""
        A, B = self.A.values[rows], self.B.values[cols]
        return np.matmul(A, B.T, out=self.scratch(A.shape[0], B.shape[0]))

    def values(self, rows: slice, cols: slice) -> Array:
        """Return the tile: inner products, then the tail."""
        return self.tail.values(self.inner(rows, cols), self.a[rows], self.b[cols], self.widths_of(cols))

    def transposed(self, rows: slice, cols: slice) -> Array:
        """Return K(B[cols], A[rows]) by a product in this order: no tile is transposed in memory. Points have no widths."""
        A, B = self.A.values[rows], self.B.values[cols]
        G = np.matmul(B, A.T, out=self.scratch(B.shape[0], A.shape[0]))
        return self.tail.values(G, self.b[cols], self.a[rows])

    def add_product(self, rows: slice, cols: slice, V: Array, out: Array) -> None:
        """Add K(A[rows], B[cols]) @ V[cols] to out[rows], in one pass if the tail is compiled."""
        G, widths = self.inner(rows, cols), self.widths_of(cols)
        self.tail.add_product(G, self.a[rows], self.b[cols], V[cols], out[rows], widths)


class SparseTiles(InnerTiles):
    """Tiles of CSR rows against dense points, stored as lines of one value for each of `core.SPARSE_LANES` points."""

    def __init__(self, kernel: InnerKernel, A: Prepared, B: Prepared) -> None:
        super().__init__(kernel, A, B)
        # long strips, because each makes the points of a tile dense
        self.shape = (max(1024, A.values.shape[1] // 8), core.SPARSE_LANES)
        once = A.values.shape[1] * (B.count + self.shape[1]) <= WRITTEN_OUT
        self.lines = self.lines_of(slice(0, B.count)) if once else None

    def lines_of(self, cols: slice) -> Array:
        """Return points transposed, (tiles, features, lanes), the last tile padded to full lanes."""
        B, lanes = self.B.values[cols], self.shape[1]
        count = -(-B.shape[0] // lanes)
        written = np.zeros((count * lanes, B.shape[1]), self.dtype)
        written[: B.shape[0]] = B.toarray() if issparse(B) else B
        return np.ascontiguousarray(written.reshape(count, lanes, B.shape[1]).transpose(0, 2, 1))

    def inner(self, rows: slice, cols: slice) -> Array:
        """Return inner products: by compiled code for float32, by scipy for float64."""
        line = self.lines[cols.start // self.shape[1]] if self.lines is not None else self.lines_of(cols)[0]
        A = self.A.values
        if self.dtype == np.float32:
            G = self.scratch(rows.stop - rows.start, self.shape[1])
            core.sparse_dot(A.data, A.indices, A.indptr[rows.start : rows.stop + 1], A.shape[1], line, G)
        else:
            G = A[rows] @ line
        width = cols.stop - cols.start
        return G if width == self.shape[1] else np.ascontiguousarray(G[:, :width])

    def transposed(self, rows: slice, cols: slice) -> Array:
        """Return a transposed view: the sparse side is always A."""
        return self.values(rows, cols).T


class PanelTiles(InnerTiles):
    """Tiles of CSR rows and CSR points of many features, few of them in common: only those of the points are used."""

    shape = (512, 512)

    def __init__(self, kernel: InnerKernel, A: Prepared, B: Prepared) -> None:
        super().__init__(kernel, A, B)
        self.panels = [_panel(B.values[cols]) for cols in blocks(B.count, self.shape[1])]

    def inner(self, rows: slice, cols: slice) -> Array:
        """Return the inner products of a tile, in scratch memory."""
        A, (place, lines, starts, points, values) = self.A.values, self.panels[cols.start // self.shape[1]]
        G = self.scratch(rows.stop - rows.start, lines.shape[0] * core.SPARSE_LANES)
        own = A.indptr[rows.start : rows.stop + 1]
        core.sparse_panel(A.data, A.indices, own, place, lines, starts, points, values, G)
        width = cols.stop - cols.start
        return G if width == G.shape[1] else np.ascontiguousarray(G[:, :width])

    def transposed(self, rows: slice, cols: slice) -> Array:
        """Return a transposed view: the rows are always A."""
        return self.values(rows, cols).T


def _panel(B: csr_array) -> tuple[Array, Array, Array, Array, Array]:
    """Return points in the form of `core.sparse_panel`: places, lines, and the starts, points and values of postings."""
    features, lanes = B.shape[1], core.SPARSE_LANES
    counts = np.bincount(B.indices, minlength=features)
    frequent = np.flatnonzero(counts > max(FREQUENT * B.shape[0], 1))
    place = np.full(features, -1, np.int32)
    place[frequent] = np.arange(frequent.size)
    point, line = np.repeat(np.arange(B.shape[0]), np.diff(B.indptr)), place[B.indices]
    written = line >= 0
    lines = np.zeros((-(-B.shape[0] // lanes), frequent.size, lanes), np.float32)
    np.add.at(lines, (point[written] // lanes, line[written], point[written] % lanes), B.data[written])
    rest = csr_array((B.data[~written], (B.indices[~written], point[~written])), shape=(features, B.shape[0]))
    return place, lines, rest.indptr.astype(np.int32), rest.indices.astype(np.int32), rest.data.astype(np.float32)


class WideTiles(InnerTiles):
    """Tiles of CSR rows with too many features for an array with a place for each; only features that occur are used."""

    def inner(self, rows: slice, cols: slice) -> Array:
        """Return inner products over the features that the points have."""
        A, B = self.A.values[rows], self.B.values[cols]
        if not issparse(B):
            return np.ascontiguousarray(A @ B.T)
        A, B = shared_features(A, B)
        return (A @ B.T).toarray()

    def transposed(self, rows: slice, cols: slice) -> Array:
        """Return a transposed view: the sparse side is always A."""
        return self.values(rows, cols).T


def shared_features(A: csr_array, B: csr_array) -> tuple[csr_array, csr_array]:
    """Return both sets of rows with the features of B only, renumbered; their inner products are the same."""
    used, places = np.unique(B.indices, return_inverse=True)
    if not used.size:
        return csr_array((A.shape[0], 1), dtype=A.dtype), csr_array((B.shape[0], 1), dtype=B.dtype)
    found = np.minimum(np.searchsorted(used, A.indices), used.size - 1)
    kept = used[found] == A.indices
    starts = np.concatenate([[0], np.cumsum(kept)])[A.indptr]
    return (
        csr_array((A.data[kept], found[kept], starts), shape=(A.shape[0], used.size)),
        csr_array((B.data, places, B.indptr), shape=(B.shape[0], used.size)),
    )


def make_tiles(kernel: Kernel, A: Prepared, B: Prepared, dtype: np.dtype | None = None) -> Tiles:
    """Return the tiles for this kernel and these rows.

    `dtype` is the precision of kernel values, by default that of the rows; kernels without a mixed tail ignore it.
    """
    if not isinstance(kernel, InnerKernel):
        return Tiles(kernel, A, B)
    if not A.sparse:
        return InnerTiles(kernel, A, B, dtype)
    features, panels = A.values.shape[1], -(-B.count // PanelTiles.shape[1])
    in_panels = FEW_FEATURES < features <= MOST_PLACES // max(panels, 4)
    if in_panels and issparse(B.values) and A.values.dtype == np.float32:
        return PanelTiles(kernel, A, B)
    return (WideTiles if features > WIDE else SparseTiles)(kernel, A, B)


def tiled_product(tiles: Tiles, V: Array, crew: Crew, boxes: Boxes | None = None) -> Array:
    """Return K(A, B) @ V in float64, without storing K; with boxes of A's rows, only for the points near each box."""
    out = np.zeros((tiles.A.count, V.shape[1]))
    V = np.ascontiguousarray(V, dtype=tiles.sum_dtype)
    if boxes is not None and isinstance(tiles, InnerTiles):
        _add_near(tiles, boxes, V, out, crew)
        return out

    def work(rows: slice) -> None:
        for cols in blocks(tiles.B.count, tiles.shape[1]):
            tiles.add_product(rows, cols, V, out)

    _run(tiles, work, crew)
    return out


def _add_near(tiles: InnerTiles, boxes: Boxes, V: Array, out: Array, crew: Crew) -> None:
    """Add K(A, B) @ V to out, without points whose kernel values are negligible for all rows of a box."""
    placed = boxes.placed(tiles.B.values)

    def work(some: slice) -> None:
        search = boxes.search(placed)
        for rows, near in map(search, range(some.start, some.stop)):
            if near.size:
                A, a, part = tiles.A.values[rows], tiles.a[rows], np.zeros((rows.size, V.shape[1]))
                for cols in blocks(near.size, tiles.shape[1]):
                    B = tiles.B.values[near[cols]]
                    G = np.matmul(A, B.T, out=tiles.scratch(rows.size, B.shape[0]))
                    tiles.tail.add_product(G, a, tiles.b[near[cols]], V[near[cols]], part)
                out[rows] = part

    crew.run(work, boxes.count, BOXES_A_STRIP)


def tiled_matrix(tiles: Tiles, crew: Crew, out: Array | None = None) -> Array:
    """Return K(A, B) in the tiles' precision, for small sets; in the memory of `out` if given."""
    m, n = tiles.A.count, tiles.B.count
    K = np.empty((m, n), tiles.dtype) if out is None else out[: m * n].reshape(m, n)

    def work(rows: slice) -> None:
        for cols in blocks(tiles.B.count, tiles.shape[1]):
            K[rows, cols] = tiles.values(rows, cols)

    _run(tiles, work, crew)
    return K


def tiled_gram(tiles: Tiles, crew: Crew, out: Array | None = None) -> Array:
    """Return K(A, A) from tiles whose points are their rows: tiles below the diagonal are those above it, transposed."""
    n = tiles.A.count
    K = np.empty((n, n), tiles.dtype) if out is None else out[: n * n].reshape(n, n)

    def work(rows: slice) -> None:
        for cols in blocks(n, tiles.shape[1]):
            own = slice(max(cols.start, rows.start), cols.stop)  # each entry has one writer: other strips have the rest
            if own.start < own.stop:
                K[rows, own] = tiles.values(rows, cols)[:, own.start - cols.start :]
                right = slice(max(rows.stop, cols.start), cols.stop)  # of the square on the diagonal
                if right.start < right.stop:
                    core.copy_transposed(K[rows, right], K[right, rows])

    _run(tiles, work, crew)
    return K


def _run(tiles: Tiles, work: Callable[[slice], None], crew: Crew) -> None:
    """Call work(rows) for strips of all rows, in threads where the work is worth them."""
    n, values = tiles.A.count, tiles.A.values
    width = values.nnz // max(n, 1) if issparse(values) else values.shape[1]
    if 0 < n <= tiles.shape[0] and n * tiles.B.count * width <= SMALL_WORK:
        work(slice(0, n))
    else:
        crew.run(work, n, tiles.shape[0])


def tiles_against(
    kernel: Kernel,
    A: Prepared,
    given: Given,
    points: Matrix,
    error: float,
    dtype: np.dtype | None = None,
    metric: Metric | None = None,
    precision: Precision = USUAL,
) -> Tiles:
    """Return tiles between the given rows, prepared as A, and any points.

    They are float64 if points are too far out for float32, or rows in the metric, which A does not know of. `dtype` is the
    precision of kernel values (`make_tiles`).
    """
    if not isinstance(kernel, InnerKernel):
        return Tiles(kernel, A, plain_points(points, metric))
    B, within = A.points(points, metric), A.measured(metric)
    doubtful = (B,) if metric is None else (B, within)
    if A.values.dtype == np.float32 and _worst(kernel, doubtful, metric) > precision.most(error):
        A = prepare(kernel, given, 0, error)
        B, within = A.points(points, metric), A.measured(metric)
    return make_tiles(kernel, within, B, dtype)


def _worst(kernel: InnerKernel, doubtful: tuple[Prepared, ...], metric: Metric | None) -> float:
    """Return the largest error that float32 may make with these rows or points."""
    return max(float32_error(kernel, each, metric) for each in doubtful)


def kernel_values(tiles: Tiles, rows: slice, out: Array) -> Array:
    """Fill `out` with K(A[rows], B) and return it."""
    if isinstance(tiles, InnerTiles) and not tiles.A.sparse:
        np.matmul(tiles.A.values[rows], tiles.B.values.T, out=out)
        values = tiles.tail.values(out, tiles.a[rows], tiles.b, tiles.widths)
        if values is not out:
            out[...] = values
        return out
    for some in blocks(out.shape[0], tiles.shape[0]):
        for cols in blocks(tiles.B.count, tiles.shape[1]):
            out[some, cols] = tiles.values(slice(rows.start + some.start, rows.start + some.stop), cols)
    return out
