"""Kernel products for rows that are seen once: prediction."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse

from .._core import core
from ..kernels import Array, Chi2, InnerKernel, Kernel, Matrix, Poly, dense, scaled, squared_norms
from ..kernels.spec import SPECS, core_arguments
from ..metric import Metric
from ..pairs import PairCoefficients
from .boxes import LazyBoxes
from .host import HostRows
from .precision import Given, prepare, value_dtype
from .protocol import Meter
from .threads import Crew, blocks
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
    outputs, crew = np.repeat(bias[None], X.shape[0], axis=0), Crew()
    for some in blocks(X.shape[0], max(MOST_VALUES // max(points.shape[0], 1), 1)):
        K = kernel_values(kernel, X[some], points, against, meter, metric).astype(np.float64, copy=False)
        part = outputs[some]

        def work(rows: slice, K: Array = K, part: Array = part) -> None:
            core.pair_outputs(K[rows], against, counts, part[rows], np.empty(counts.size))

        crew.run(work, K.shape[0], PAIR_ROWS)
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
        add_class_outputs(rows.crew, parts, outputs)  # type: ignore[arg-type]
    return outputs.T


def _tiles(kernel: Kernel, X: Matrix, points: Matrix, V: Array, metric: Metric | None) -> Tiles:
    given, error, crew = Given(X), kernel_error(V), Crew()
    rows = prepare(kernel, given, points.shape[0], error, metric, crew=crew)
    dtype = value_dtype(kernel, rows, points.shape[0], error)
    return tiles_against(kernel, rows, given, points, error, crew, dtype, metric)


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
