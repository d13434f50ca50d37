"""Kernel products for rows that are seen once: prediction, on the host and on a device that holds the points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from .._core import core
from ..kernels import RBF, Array, Chi2, InnerKernel, Kernel, Matrix, Poly, dense, scaled, squared_norms
from ..kernels.spec import SPECS, core_arguments
from ..metric import Metric
from ..pairs import PairCoefficients
from .array import FLOAT32_SUMS, OnDevice, check_finite, evaluator
from .backends import FLOAT32, FLOAT64, STAGED_VALUES, Backend, Held
from .boxes import LazyBoxes
from .host import HostRows
from .precision import MIXED_ERROR, USUAL, Given, Precision, fits_float32, mean_row, prepare, rounding_error, value_dtype
from .protocol import Meter
from .threads import ThreadPool, blocks
from .tiles import CompiledTiles, Tiles, add_class_outputs, tiles_against

#: the largest error of a prediction that one point may cause
PREDICTION_ERROR = 5e-4
#: multiply-adds below which preparing rows for tiles costs more than the kernel values
TINY_WORK = 1 << 20
#: kernel values that may be held for the outputs of pairs of classes, and rows of a strip of them
MOST_VALUES, PAIR_ROWS = 1 << 22, 8
#: rows that are written out where points are sparse; for more, panels of points are faster
FEW_SPARSE = 16


def kernel_product(
    kernel: Kernel, X: Matrix, points: Matrix, V: Array, meter: Meter, metric: Metric | None = None
) -> Array:
    """Return K(X, points) @ V."""
    if metric is not None and metric.projection is not None:
        X, metric = metric.projected(X), metric.within
    meter.add(X.shape[0] * points.shape[0])
    _check_rows(kernel, X, metric)
    if _is_tiny(kernel, X, points):
        return _row_by_row(kernel, X, points, V, metric)
    if isinstance(kernel, InnerKernel) and issparse(points) and _few_numbers(X):
        return _few_products(kernel, X, points, V, metric)
    tiles = _tiles(kernel, X, points, V, metric)
    boxes = None if metric is not None else LazyBoxes(kernel, kernel_error(V)).of(tiles.A, points.shape[0])
    return tiles.product(V, boxes)


def kernel_values(kernel: Kernel, X: Matrix, points: Matrix, V: Array, meter: Meter, metric: Metric | None = None) -> Array:
    """Return K(X, points) in the precision that products with V need."""
    if metric is not None and metric.projection is not None:
        X, metric = metric.projected(X), metric.within
    meter.add(X.shape[0] * points.shape[0])
    _check_rows(kernel, X, metric)
    return _tiles(kernel, X, points, V, metric).matrix()


def pair_outputs(
    kernel: Kernel,
    X: Matrix,
    points: Matrix,
    coef: PairCoefficients,
    bias: Array,
    meter: Meter,
    metric: Metric | None = None,
) -> Array:
    """Return the outputs of all pairs of many classes, (n, q); one product for each class would take longer."""
    against, counts = np.ascontiguousarray(coef.against, np.float64), coef.counts.astype(np.intp)
    outputs, pool = np.repeat(bias[None], X.shape[0], axis=0), ThreadPool()
    for some in blocks(X.shape[0], max(MOST_VALUES // max(points.shape[0], 1), 1)):
        K = kernel_values(kernel, X[some], points, against, meter, metric).astype(np.float64, copy=False)
        part = outputs[some]

        def work(rows: slice, K: Array = K, part: Array = part) -> None:
            core.pair_outputs(K[rows], against, counts, part[rows], np.empty(counts.size))

        pool.run(work, K.shape[0], PAIR_ROWS)
    return outputs


def class_outputs(
    kernel: Kernel,
    X: Matrix,
    points: Matrix,
    coef: PairCoefficients,
    bias: Array,
    meter: Meter,
    metric: Metric | None = None,
) -> Array:
    """Return the outputs of all pairs of a few classes, (n, q), by the points of one class after the other."""
    _check_rows(kernel, X, None)
    rows = HostRows(kernel, X, meter, 0.0, kernel_error(coef.against))
    if metric is None and rows.boxes.of(rows.prepared, points.shape[0]) is not None:
        return coef.outputs(lambda some, V: rows.product(points[some], V)) + bias
    parts = []
    for columns, some in coef.groups():
        if some.start < some.stop:
            tiles = rows.tiles(points[some], metric and metric.part(some))
            parts.append((columns, tiles, tiles.weights(coef.against[some])))
    if not all(isinstance(tiles, CompiledTiles) for _, tiles, _ in parts):
        return coef.outputs(lambda some, V: rows.product(points[some], V, metric and metric.part(some))) + bias
    meter.add(rows.n * points.shape[0])
    outputs = np.repeat(bias[:, None], rows.n, axis=1)
    if parts:
        add_class_outputs(rows.pool, parts, outputs)  # type: ignore[arg-type]
    return outputs.T


def _tiles(kernel: Kernel, X: Matrix, points: Matrix, V: Array, metric: Metric | None) -> Tiles:
    given, error, pool = Given(X), kernel_error(V), ThreadPool()
    rows = prepare(kernel, given, points.shape[0], error, metric, pool=pool)
    dtype = value_dtype(kernel, rows, points.shape[0], error)
    return tiles_against(kernel, rows, given, points, error, pool, dtype, metric)


def _check_rows(kernel: Kernel, X: Matrix, metric: Metric | None) -> None:
    """Raise ValueError for rows that the kernel is not defined for."""
    if not isinstance(kernel, Chi2 | Poly):
        return
    if metric is None or metric.factors is None:
        kernel.check_rows(X)
    else:
        for _, rows in Given(X).blocks():  # a block at a time, to save memory
            kernel.check_rows(scaled(rows, metric.factors))


def kernel_error(V: Array) -> float:
    """Return the allowed error of kernel values that are multiplied by these coefficients."""
    return PREDICTION_ERROR / float(np.abs(V).max(initial=np.finfo(float).tiny))


def _is_tiny(kernel: Kernel, X: Matrix, points: Matrix) -> bool:
    dense = isinstance(X, np.ndarray) and isinstance(points, np.ndarray)
    return dense and kernel.name in SPECS and X.size * points.shape[0] <= TINY_WORK


def _few_numbers(X: Matrix) -> bool:
    return bool(X.shape[0] <= FEW_SPARSE and X.shape[0] * X.shape[1] <= MOST_VALUES)


def _few_products(kernel: InnerKernel, X: Matrix, points: csr_array, V: Array, metric: Metric | None) -> Array:
    """Return K(X, points) @ V for few rows and sparse points: one product of sparse points with the rows written out."""
    widths = {} if metric is None or metric.widths is None else {"widths": metric.widths}
    factors = None if metric is None else metric.factors
    X, points = scaled(dense(X).astype(np.float64, copy=False), factors), scaled(points, factors)
    K = kernel.tail(np.ascontiguousarray((points @ X.T).T), squared_norms(X), squared_norms(points), **widths)
    return K @ V


def _row_by_row(kernel: Kernel, X: Array, points: Array, V: Array, metric: Metric | None) -> Array:
    """Return K(X, points) @ V by the compiled loop, without tiles."""
    widths = None
    if metric is not None:
        X, points = (scaled(A, metric.factors) for A in (X, points))
        widths = None if metric.widths is None else np.ascontiguousarray(metric.widths, dtype=np.float64)
    X, points, V = (np.ascontiguousarray(A, dtype=np.float64) for A in (X, points, V))
    out = np.empty((X.shape[0], V.shape[1]))
    core.expansion(*core_arguments(kernel.name, vars(kernel)), X, points, V, np.zeros(V.shape[1]), out, widths)
    return out


#: numbers of a block of rows; fewer: more calls; more: the device waits longer for its first block
PASSING_VALUES = 2 * STAGED_VALUES


@dataclass(frozen=True)
class Placed:
    """Points and coefficients on a device, for rows in one precision."""

    rows: np.dtype
    sent: np.dtype  # the precision in which float64 rows travel
    sums: np.dtype
    radius: float  # the largest squared norm of the points
    values: Callable[[Held], Any]  # from rows to their kernel values
    coef: Any


class PlacedPoints:
    """K(X, points) @ V for any rows X, with points and V on a device; `error` is the allowed error of a kernel value.

    Rows pass in blocks of `passing` numbers: the device works on one block while the host writes the next. Whether float32
    is enough for the rows, and whether they are finite, shows when the last of them has passed.
    """

    def __init__(
        self,
        on: Backend,
        kernel: InnerKernel,
        points: Matrix,
        V: Array,
        error: float,
        *,
        precision: Precision = USUAL,
        passing: int = PASSING_VALUES,
    ) -> None:
        self.on, self.kernel, self.points, self.V = on, kernel, points, V
        self.error, self.allowed, self.precision, self.passing = error, precision.most(error), precision, passing
        self.centre = mean_row(Given(points)) if kernel.translation_invariant and points.shape[0] else None
        self._placed: dict[tuple[np.dtype, np.dtype], Placed] = {}

    def product(self, X: Matrix) -> Array:
        large = self.precision.is_large(X.shape[0], *self.points.shape) or not self.on.has_float64
        if large and self.on.plain_float32:
            there = self._in(FLOAT32, FLOAT32)
            if self._fits(there.radius):
                out, radius = self._product(X, there)
                if self._fits(radius) and fits_float32(max(radius, there.radius)):
                    return self.on.fetch(out)
                if not self.on.has_float64:
                    check_finite(radius)
        self.on.needs_float64(f"float32 is too coarse for the {self.kernel.name} kernel with these rows")
        mixed = large and isinstance(self.kernel, RBF) and self.error >= MIXED_ERROR and self.on.plain_float32
        out, radius = self._product(X, self._in(FLOAT64, FLOAT32 if mixed else FLOAT64))
        check_finite(radius)
        return self.on.fetch(out)

    def _fits(self, radius: float) -> bool:
        """Return whether float32 products are exact enough for rows or points with squared norms up to `radius`."""
        return rounding_error(self.kernel, self.points.shape[1], radius) <= self.allowed

    def _in(self, rows: np.dtype, values: np.dtype) -> Placed:
        """Return the points for rows and kernel values in these precisions; they stay on the device."""
        if (rows, values) not in self._placed:
            held = self.on.upload(Given(self.points), rows, self.centre)
            # rows that are rounded before the centre is taken off may lose digits if it is far out (`Backend.upload`)
            near = self.centre is None or float(self.centre @ self.centre) <= held.radius
            sums = FLOAT32 if values == FLOAT32 and self.error >= FLOAT32_SUMS else self.on.sum_dtype
            evaluate = evaluator(self.on, self.kernel, held, values, summed=True)
            coef = self.on.send(self.V, sums)
            self._placed[rows, values] = Placed(rows, rows if near else FLOAT64, sums, held.radius, evaluate, coef)
        return self._placed[rows, values]

    def _product(self, X: Matrix, there: Placed) -> tuple[Any, float]:
        """Return K(X, points) @ V on the device, and the largest squared norm of the rows."""
        on, (n, d) = self.on, X.shape
        placed, given = on.placing(self.centre, there.sent), X.values if isinstance(X, OnDevice) else X
        out, norms = on.empty((n, self.V.shape[1]), there.sums), [on.zeros((), on.sum_dtype)]

        def work(some: slice) -> None:
            rows = placed(given[some] if given is X else given[some, :])
            A = Held(on.empty((rows.shape[0], d + 2), there.rows), d, 0.0, there.rows)
            norms.append(on.lift(rows, A.lifted, there.rows))
            out[some, :] = on.cast(there.values(A), there.sums) @ there.coef

        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the largest norm
            on.tiled(n, self.points.shape[0] + d, work, most=max(self.passing // (d + 1), 1))
        return out, on.largest(norms)
