"""Rows of many features for points that move in the span of a few directions.

With B the orthonormal directions and z = B c a point, <x, z> = <B'x, c> and |z| = |c|. So kernel values and gradients need
only the coordinates B'x of a row and its norm. The cost of a step grows with the number of directions, not of features.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array, Matrix, dense
from .host import HostRows
from .host_matrix import HostMatrix
from .precision import Given, Prepared
from .threads import one_blas_thread

#: a direction is in the span if at most this share of its length is outside it; the rest is rounding
OUTSIDE = 1e-4
#: a principal span is used if rows have this many times as many numbers as coordinates
LEAST_SAVING = 1.5
#: the least number of principal axes that is expected
FEWEST_AXES = 16
#: rows in the sample for principal axes; more: more precise and slower
PRINCIPAL_ROWS = 1024


class SpanRows(HostRows):
    """The rows `whole` as coordinates along the columns of `basis`, (features, k) and orthonormal.

    Rows keep their norms over all features, so kernel values with points in the span are exact.
    """

    def __init__(self, whole: HostRows, basis: Array, values: Array | None = None) -> None:
        self.__dict__.update(vars(whole))
        self.whole, self.basis = whole, basis
        values = whole.prepared.values @ basis if values is None else values
        self.given, self.prepared = Given(values), Prepared(values, whole.prepared.norms, None)
        self.cache_mb, self._cache, self.boxes = 0.0, None, self.boxes.anew()

    def subset(self, index: Array) -> SpanRows:
        return SpanRows(self.whole.subset(index), self.basis, self.prepared.values[index])

    def to_coordinates(self, points: Matrix) -> Array:
        """Return the coordinates of points, or of their projections onto the span."""
        if points.shape[1] == self.d != self.whole.d:
            return np.asarray(points, dtype=np.float64)
        return np.asarray(self.whole.to_coordinates(points) @ self.basis, dtype=np.float64)

    def from_coordinates(self, placed: Array) -> Matrix:
        """Return points with all features."""
        return self.whole.from_coordinates(placed @ self.basis.T)

    def coordinates(self) -> HostMatrix:
        return self.linear(self.prepared.values).against(np.eye(self.d))

    def slope_products(self, placed: Array) -> Array:
        K = self.moving(placed).K
        scale, slopes = self.kernel.slope(K, lambda: self.prepared.values @ placed.T.astype(K.dtype))  # type: ignore[attr-defined]
        slopes = np.ones_like(K) if slopes is None else slopes
        return scale**2 * np.asarray(slopes.T @ slopes, dtype=np.float64)

    # Other spans.

    def on_basis(self, basis: Array) -> SpanRows:
        return SpanRows(self.whole, np.asarray(basis, dtype=self.basis.dtype))

    def including(self, points: Matrix) -> SpanRows:
        return self._with(dense(self.whole.to_coordinates(points)).T, points.shape[0])

    def widened(self, W: Array, most: int) -> SpanRows:
        return self._with(self.whole.prepared.values.T @ np.asarray(W, dtype=self.basis.dtype), most)

    def widened_downhill(self, placed: Array, slopes: Array, coef: Array, most: int) -> SpanRows:
        return self.widened(self.moving(placed).K * (slopes @ coef.T), most)

    def _with(self, directions: Array, most: int) -> SpanRows:
        """Return the same rows with more directions, without those in the span."""
        directions = np.asarray(directions, dtype=self.basis.dtype)
        least = OUTSIDE * float(np.linalg.norm(directions))
        with one_blas_thread():  # the last digit of sums depends on the number of threads
            new = _orthonormal(self._outside(directions), least, most)
            new = _orthonormal(self._outside(new), 0.5, most)  # again, because of rounding
            values = np.hstack([self.prepared.values, self.whole.prepared.values @ new])
        return SpanRows(self.whole, np.hstack([self.basis, new]), values)

    def _outside(self, directions: Array) -> Array:
        """Return the part of directions outside the span."""
        return directions - self.basis @ (self.basis.T @ directions)


def _orthonormal(directions: Array, least: float, most: int) -> Array:
    """Return an orthonormal basis of directions: their principal axes, the `most` longest of those longer than `least`."""
    wide = directions.astype(np.float64, copy=False)
    squares, axes = np.linalg.eigh(wide.T @ wide)
    chosen = np.argsort(-squares)[:most]
    chosen = chosen[squares[chosen] > np.square(least)]
    return directions @ (axes[:, chosen] / np.sqrt(squares[chosen])).astype(directions.dtype)


def in_principal_span(rows: HostRows, share: float) -> SpanRows | None:
    """Return rows with a span that holds this share of their variance; None if that saves little work.

    Directions of little variance hardly change distances and inner products, so points need not move along them.
    """
    most = (rows.prepared.values.nnz / rows.n if rows.prepared.sparse else rows.d) / LEAST_SAVING
    if most < FEWEST_AXES:
        return None
    spread = np.arange(0, rows.n, -(-rows.n // PRINCIPAL_ROWS))
    values = dense(rows.prepared.values[spread]).astype(np.float64)
    mean = values.mean(axis=0)
    with one_blas_thread():  # the last digit of sums depends on the number of threads
        axes = _principal_axes(values - mean, share)
    return in_no_span(rows).on_basis(axes)._with(mean[:, None], 1) if axes.shape[1] <= most else None


def _principal_axes(centred: Array, share: float) -> Array:
    """Return the first principal axes of rows, (features, k), which hold this share of the sum of squared lengths."""
    n, d = centred.shape
    squares, vectors = np.linalg.eigh(centred.T @ centred if d <= n else centred @ centred.T)  # the smaller of the two
    squares, vectors = squares[::-1], vectors[:, ::-1]
    held = np.cumsum(np.maximum(squares, 0.0))
    count = int(np.searchsorted(held, share * held[-1])) + 1
    if d <= n:
        return vectors[:, :count]
    return centred.T @ (vectors[:, :count] / np.sqrt(np.maximum(squares[:count], np.finfo(float).tiny)))


def in_no_span(rows: HostRows) -> SpanRows:
    """Return rows with an empty span, which can be widened."""
    values = rows.prepared.values
    return SpanRows(rows, np.zeros((values.shape[1], 0), values.dtype), np.zeros((rows.n, 0), values.dtype))
