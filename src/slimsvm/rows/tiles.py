"""Kernel values a tile at a time: one matrix product, one pass for the rest of the kernel, threads over strips of rows."""

from __future__ import annotations

import threading

import numpy as np
from scipy.sparse import csr_array, issparse

from .._core import core
from ..kernels import RBF, Array, InnerKernel, Kernel, Matrix, scaled
from ..metric import Metric
from .precision import FLOAT32_ERROR, Given, Prepared, float32_error, plain_points, prepare
from .threads import Crew, blocks

#: features up to which the points of all tiles are written out once
FEW_FEATURES = 4096
#: features above which a dense line of points would take more memory than its tile is worth
WIDE = 1 << 17


class Tail:
    """The kernel's own tail over a tile of inner products."""

    def __init__(self, kernel: InnerKernel, dtype: np.dtype) -> None:
        self.kernel, self.dtype = kernel, dtype

    def scaled(self, norms: Array) -> Array:
        """Return the squared norms as `values` takes them."""
        return norms.astype(self.dtype)

    def values(self, G: Array, a: Array, b: Array, widths: Array | None = None) -> Array:
        """Kernel values for the inner products G, in place where possible; `widths` multiply gamma of each column."""
        if widths is None:
            return self.kernel.tail(G, a, b)
        return self.kernel.tail(G, a, b, widths=widths)  # type: ignore[call-arg]  # kernels with a width take them

    def add_product(self, G: Array, a: Array, b: Array, V: Array, out: Array, widths: Array | None = None) -> None:
        """out += K @ V; G is scratch afterwards."""
        out += self.values(G, a, b, widths) @ V


class CompiledRBF(Tail):
    """The float32 RBF tail as one compiled pass, with the weighted sum in it where V is one column."""

    def __init__(self, kernel: RBF, dtype: np.dtype) -> None:
        super().__init__(kernel, dtype)
        self.scale = kernel.gamma * float(np.log2(np.e))  # the compiled tail takes powers of 2

    def scaled(self, norms: Array) -> Array:
        """Return the squared norms in the unit of the exponent."""
        return (self.scale * norms).astype(np.float32)

    def values(self, G: Array, a: Array, b: Array, widths: Array | None = None) -> Array:
        """Kernel values in place."""
        core.rbf_tail(self.scale, G, a, b, widths)
        return G

    def add_product(self, G: Array, a: Array, b: Array, V: Array, out: Array, widths: Array | None = None) -> None:
        """One fused pass for one column, the plain way for more."""
        if V.shape[1] == 1:
            core.rbf_tail_dot(self.scale, G, a, b, V.ravel(), out.ravel(), widths)
        else:
            super().add_product(G, a, b, V, out, widths)


def _tail(kernel: InnerKernel, dtype: np.dtype) -> Tail:
    compiled = isinstance(kernel, RBF) and dtype == np.float32
    return CompiledRBF(kernel, dtype) if compiled else Tail(kernel, dtype)  # type: ignore[arg-type]


class Tiles:
    """Kernel values between rows A and points B, a tile at a time; this one asks the kernel for whole blocks."""

    shape = (512, 512)

    def __init__(self, kernel: Kernel, A: Prepared, B: Prepared) -> None:
        self.kernel, self.A, self.B = kernel, A, B
        self.factors = B.metric.factors if B.metric else None
        self.widths = B.metric.widths if B.metric else None
        self.dtype = np.dtype(np.float64)

    def widths_of(self, cols: slice) -> Array | None:
        """Return the widths of the points of a tile, if they have any."""
        return None if self.widths is None else self.widths[cols]

    def values(self, rows: slice, cols: slice) -> Array:
        """Return the tile K(A[rows], B[cols])."""
        A, B, widths = scaled(self.A.values[rows], self.factors), self.B.values[cols], self.widths_of(cols)
        if widths is None:
            return self.kernel(A, B)
        return self.kernel(A, B, widths)  # type: ignore[call-arg]  # kernels with a width take them

    def transposed(self, rows: slice, cols: slice) -> Array:
        """Return the same tile as K(B[cols], A[rows])."""
        return self.values(rows, cols).T

    def add_product(self, rows: slice, cols: slice, V: Array, out: Array) -> None:
        """out[rows] += K(A[rows], B[cols]) @ V[cols]."""
        out[rows] += self.values(rows, cols) @ V[cols]


class InnerTiles(Tiles):
    """Tiles of an inner-product kernel: BLAS, then the tail."""

    shape = (1024, 256)

    def __init__(self, kernel: InnerKernel, A: Prepared, B: Prepared) -> None:
        super().__init__(kernel, A, B)
        self.dtype = A.values.dtype
        self.tail = _tail(kernel, self.dtype)
        self.a, self.b = self.tail.scaled(A.norms), self.tail.scaled(B.norms)
        self.widths = None if self.widths is None else self.widths.astype(self.dtype)
        self.local = threading.local()

    def scratch(self, m: int, n: int) -> Array:
        """Memory for one tile, the same for each tile of a thread: fresh pages cost more than the values in them."""
        if not hasattr(self.local, "tile"):
            self.local.tile = np.empty(self.shape[0] * self.shape[1], self.dtype)
        return self.local.tile[: m * n].reshape(m, n)

    def inner(self, rows: slice, cols: slice) -> Array:
        """Return the inner products of a tile, in scratch memory."""
        A, B = self.A.values[rows], self.B.values[cols]
        return np.matmul(A, B.T, out=self.scratch(A.shape[0], B.shape[0]))

    def values(self, rows: slice, cols: slice) -> Array:
        """Return the tile: inner products, then the tail."""
        return self.tail.values(self.inner(rows, cols), self.a[rows], self.b[cols], self.widths_of(cols))

    def transposed(self, rows: slice, cols: slice) -> Array:
        """Return the product the other way round, so that no tile is transposed in memory; points have no widths."""
        A, B = self.A.values[rows], self.B.values[cols]
        G = np.matmul(B, A.T, out=self.scratch(B.shape[0], A.shape[0]))
        return self.tail.values(G, self.b[cols], self.a[rows])

    def add_product(self, rows: slice, cols: slice, V: Array, out: Array) -> None:
        """Fused where the tail is compiled."""
        G, widths = self.inner(rows, cols), self.widths_of(cols)
        self.tail.add_product(G, self.a[rows], self.b[cols], V[cols], out[rows], widths)


class SparseTiles(InnerTiles):
    """Tiles of CSR rows against points written out as lines of one value per point, `core.SPARSE_LANES` points each."""

    def __init__(self, kernel: InnerKernel, A: Prepared, B: Prepared) -> None:
        super().__init__(kernel, A, B)
        # a strip is long enough to pay for writing out the points of a tile
        self.shape = (max(1024, A.values.shape[1] // 8), core.SPARSE_LANES)
        features = A.values.shape[1]
        self.lines = [self.line(cols) for cols in blocks(B.count, self.shape[1])] if features <= FEW_FEATURES else None

    def line(self, cols: slice) -> Array:
        """Return the points of one tile, transposed and padded to full lanes."""
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
            core.sparse_dot(A.data, A.indices, A.indptr[rows.start : rows.stop + 1], A.shape[1], line, G)
        else:
            G = A[rows] @ line
        width = cols.stop - cols.start
        return G if width == self.shape[1] else np.ascontiguousarray(G[:, :width])

    def transposed(self, rows: slice, cols: slice) -> Array:
        """Return a transposed view: the sparse side is always A."""
        return self.values(rows, cols).T


class WideTiles(InnerTiles):
    """Tiles of CSR rows with so many features that no array may have a place for each: by the features that occur."""

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
    """Return both sets of rows with no other features than those of B, renumbered; their inner products are the same."""
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


def make_tiles(kernel: Kernel, A: Prepared, B: Prepared) -> Tiles:
    """Return the tiles for this kernel and these rows."""
    if not isinstance(kernel, InnerKernel):
        return Tiles(kernel, A, B)
    if not A.sparse:
        return InnerTiles(kernel, A, B)
    return (WideTiles if A.values.shape[1] > WIDE else SparseTiles)(kernel, A, B)


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


def tiles_against(
    kernel: Kernel, A: Prepared, given: Given, points: Matrix, error: float, metric: Metric | None = None
) -> Tiles:
    """Return tiles between the given rows, prepared as A, and any points; float64 where points far out spoil float32.

    With a metric that may be so for the rows too, which were prepared without it.
    """
    if not isinstance(kernel, InnerKernel):
        return Tiles(kernel, A, plain_points(points, metric))
    B, within = A.points(points, metric), A.measured(metric)
    doubtful = (B,) if metric is None else (B, within)
    if A.values.dtype == np.float32 and _worst(kernel, doubtful, metric) > min(error, FLOAT32_ERROR):
        A = prepare(kernel, given, 0, error)
        B, within = A.points(points, metric), A.measured(metric)
    return make_tiles(kernel, within, B)


def _worst(kernel: InnerKernel, doubtful: tuple[Prepared, ...], metric: Metric | None) -> float:
    """Return the largest error that float32 may make with these rows or points."""
    return max(float32_error(kernel, each, metric) for each in doubtful)


def kernel_values(tiles: Tiles, rows: slice, out: Array) -> Array:
    """Fill `out` with K(A[rows], B) and return it."""
    if isinstance(tiles, InnerTiles) and not isinstance(tiles, SparseTiles):
        np.matmul(tiles.A.values[rows], tiles.B.values.T, out=out)
        values = tiles.tail.values(out, tiles.a[rows], tiles.b, tiles.widths)
        if values is not out:
            out[...] = values
        return out
    for some in blocks(out.shape[0], tiles.shape[0]):
        for cols in blocks(tiles.B.count, tiles.shape[1]):
            out[some, cols] = tiles.values(slice(rows.start + some.start, rows.start + some.stop), cols)
    return out
