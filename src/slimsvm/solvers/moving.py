"""Points that move: a sum of losses and its gradient over the points, coefficients and biases of an expansion.

    L(Z, coef, bias) = sum_i loss_i(f(x_i)),        f(x) = sum_j k(x, z_j) coef_j + bias

With D_i the derivative of loss_i at f(x_i) and K the kernel between rows and points, the gradient is K'D for the
coefficients, the sum of D for the bias, and what the kernel's `pullback` makes of D coef' for the points. Value and
gradient come from one pass over strips of rows, whose kernel values stay in the second-level cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from ..kernels import Array, InnerKernel, Matrix, dense, squared_norms
from ..rows.precision import FLOAT32_ERROR, Prepared, float32_error
from ..rows.protocol import Rows
from ..rows.threads import blocks
from ..rows.tiles import InnerTiles, SparseTiles, Tiles, make_tiles

#: (rows, their outputs (k, q) in float64) -> the sum of their losses, and the derivative of each by its outputs (k, q);
#: called from several threads at once
Loss = Callable[[slice, Array], tuple[float, Array]]

#: numbers in a strip of rows and of their kernel values: what fits the second-level cache
STRIP_VALUES = 1 << 18
SMALLEST_STRIP = 64
#: parts with sums of their own, which make the result the same for any number of threads; and numbers in such sums
MOST_PARTS, PART_VALUES = 32, 1 << 24
#: the share of rows with a derivative other than 0 below which the gradient is computed for these alone
FEW = 0.75


@dataclass
class Slope:
    """The value of a loss, and its gradient."""

    value: float
    points: Array  # (m, d)
    coef: Array  # (m, q)
    bias: Array  # (q,)

    @classmethod
    def zero(cls, points: Array, bias: Array) -> Slope:
        """Nothing yet, for as many points and outputs."""
        return cls(0.0, np.zeros(points.shape), np.zeros((points.shape[0], bias.size)), np.zeros(bias.size))

    def add(self, other: Slope) -> None:
        """Add the sums over other rows."""
        self.value += other.value
        self.points += other.points
        self.coef += other.coef
        self.bias += other.bias


class MovingRows:
    """The rows of a Rows as points see them that move among them.

    Points are dense arrays in coordinates of their own, those of the Rows's tiles: `inward` and `outward` lead there and
    back. Tiles are in the Rows's precision, as long as no point is so far out that float32 would spoil its values.
    """

    def __init__(self, gram: Rows) -> None:
        self.gram, self.kernel = gram, gram.kernel
        self.rows = gram.rows

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.rows.count

    def inward(self, points: Matrix) -> Array:
        """The points of an expansion in these coordinates."""
        placed = dense(points).astype(np.float64)
        return placed if self.rows.centre is None else placed - self.rows.centre

    def outward(self, points: Array) -> Array:
        """Points in these coordinates as an expansion has them."""
        return points.copy() if self.rows.centre is None else points + self.rows.centre

    def tiles(self, points: Array) -> Tiles:
        """Tiles between the rows and the points."""
        if not isinstance(self.kernel, InnerKernel):
            return make_tiles(self.kernel, self.rows, Prepared(points, np.empty(0), None))
        if self.rows.values.dtype == np.float32:
            placed = _placed(points, self.rows)
            if float32_error(self.kernel, placed) <= max(FLOAT32_ERROR, float32_error(self.kernel, self.rows)):
                return make_tiles(self.kernel, self.rows, placed)
            # one precision from here on: a loss that changed it to and fro would have steps
            values = self.rows.values.astype(np.float64)
            self.rows = Prepared(values, squared_norms(values), self.rows.centre)
        return make_tiles(self.kernel, self.rows, _placed(points, self.rows))

    def strip(self, points: Array) -> int:
        """Rows in a strip; of sparse rows with many features enough to pay for a gradient of that many numbers."""
        values = self.rows.values
        wide = values.nnz // max(self.rows.count, 1) if issparse(values) else values.shape[1]
        long = values.shape[1] // 8 if issparse(values) else 0
        return max(STRIP_VALUES // (points.shape[0] + wide + 1), SMALLEST_STRIP, long)


class MovingLoss(MovingRows):
    """The loss of expansions on the rows of a Rows, with its gradient."""

    def __init__(self, gram: Rows, loss: Loss) -> None:
        super().__init__(gram)
        self.loss = loss
        self.local = threading.local()
        self.strips: dict[tuple[int, int], Matrix] = {}  # of CSR rows: cutting them out costs more than a small product

    def __call__(self, points: Array, coef: Array, bias: Array) -> Slope:
        """Value and gradient, with points as `inward` gives them."""
        self.gram.meter.add(self.rows.count * coef.shape[0])
        tiles = self.tiles(points)
        strip = self.strip(points)
        weights = np.ascontiguousarray(coef, dtype=tiles.dtype)
        parts = [Slope.zero(points, bias) for _ in range(self._part_count(points, strip))]
        size = -(-self.rows.count // len(parts))

        def work(numbers: slice) -> None:
            for number in range(numbers.start, numbers.stop):
                first, last = number * size, min((number + 1) * size, self.rows.count)
                for some in blocks(max(last - first, 0), strip):
                    self._add(parts[number], tiles, slice(first + some.start, first + some.stop), weights, bias)

        self.gram.crew.run(work, len(parts), 1)
        for part in parts[1:]:
            parts[0].add(part)
        return parts[0]

    def _part_count(self, points: Array, strip: int) -> int:
        most = min(MOST_PARTS, max(PART_VALUES // max(points.size, 1), 4))
        return int(np.clip(self.rows.count // strip, 1, most))

    def _add(self, total: Slope, tiles: Tiles, rows: slice, coef: Array, bias: Array) -> None:
        """Add the sums over one strip."""
        K = kernel_values(tiles, rows, self._scratch("kernel", rows, tiles))
        value, slopes = self.loss(rows, (K @ coef).astype(np.float64) + bias)
        total.value += value
        total.bias += slopes.sum(axis=0)
        active = np.flatnonzero(slopes.any(axis=1))
        if not active.size:
            return
        A, D = self._rows(rows), slopes.astype(tiles.dtype)
        if active.size < FEW * K.shape[0]:
            A, D, K = A[active], D[active], K[active]
        total.coef += K.T @ D
        W = self._scratch("slopes", slice(0, K.shape[0]), tiles)
        (np.multiply if bias.size == 1 else np.matmul)(D, coef.T, out=W)  # BLAS is slow at the product of two vectors
        total.points += self.gram.kernel.pullback(A, tiles.B.values, K, W)

    def _rows(self, rows: slice) -> Matrix:
        if not issparse(self.rows.values):
            return self.rows.values[rows]
        key = rows.start, rows.stop
        if key not in self.strips or self.strips[key].dtype != self.rows.values.dtype:
            self.strips[key] = self.rows.values[rows]
        return self.strips[key]

    def _scratch(self, name: str, rows: slice, tiles: Tiles) -> Array:
        """Memory for the values of a strip, the same for each strip of a thread: fresh pages are dear."""
        shape = rows.stop - rows.start, tiles.B.count
        memory = getattr(self.local, name, None)
        if memory is None or memory.size < shape[0] * shape[1] or memory.dtype != tiles.dtype:
            memory = np.empty(shape[0] * shape[1], tiles.dtype)
            setattr(self.local, name, memory)
        return memory[: shape[0] * shape[1]].reshape(shape)


def _placed(points: Array, rows: Prepared) -> Prepared:
    """Points, which are in the coordinates of `rows` already, in their precision."""
    values = np.ascontiguousarray(points, dtype=rows.values.dtype)
    return Prepared(values, squared_norms(values), rows.centre)


def kernel_values(tiles: Tiles, rows: slice, out: Array) -> Array:
    """K(A[rows], B)."""
    if isinstance(tiles, InnerTiles) and not isinstance(tiles, SparseTiles):
        np.matmul(tiles.A.values[rows], tiles.B.values.T, out=out)
        return tiles.tail.values(out, tiles.a[rows], tiles.b)
    for some in blocks(out.shape[0], tiles.shape[0]):
        for cols in blocks(tiles.B.count, tiles.shape[1]):
            out[some, cols] = tiles.values(slice(rows.start + some.start, rows.start + some.stop), cols)
    return out
