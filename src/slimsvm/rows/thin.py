"""Rows with many zeros for the search for a metric: compiled loops over the nonzeros of each row (rbf kernel, float32).

A feature that has one value in most rows is shifted until that value is 0. `backpropagate` shifts the points by as much,
which changes no distance. Tables with a column for each value of a category have such rows, scaled or not.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, vstack

from .._core import core
from ..kernels import RBF, Array, dense
from ..kernels.metric_gradients import MetricGradient, gaussian_gradient
from ..metric import Metric
from .host import HostRows
from .host_backward import summed_in_parts
from .memory import is_mapped
from .precision import Given, Prepared, narrow
from .protocol import Slopes
from .threads import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

#: the most features: the values of a panel of points must fit in the second-level cache
MOST_FEATURES = 1024
#: the share of nonzeros up to which the loops are faster than BLAS for certain
FEW_NONZEROS = 0.5
#: the most nonzeros, which have places of 32 bits; fewer, since their number is estimated
MOST_ENTRIES = 1 << 30
#: rows on which the share of nonzeros is estimated
SAMPLED = 4096
#: the least rows of a strip
SMALLEST_STRIP = 64


class ThinRows(HostRows):
    """Rows in host memory without their zeros, for `backpropagate` alone; points have the coordinates of the whole rows."""

    #: kernel values of a strip of rows; more: fewer calls; fewer: values stay in the nearer caches
    strip_values = 1 << 19

    def __init__(self, whole: HostRows, values: csr_array, shift: Array) -> None:
        self.__dict__.update(vars(whole))
        self.prepared = Prepared(values, np.zeros(0), None)
        self.cache_mb, self._cache, self.dtype = 0.0, None, np.dtype(np.float32)
        self.shift, self.local = shift, threading.local()
        self.starts, self.ends = values.indptr[:-1], values.indptr[1:]  # of each row among the entries

    def subset(self, index: Array) -> ThinRows:
        part = copy.copy(self)
        part.given, part.ids, part.boxes = self.given.take(index), self.ids[index], self.boxes.anew()
        part.starts, part.ends = self.starts[index], self.ends[index]
        return part

    def scratch(self, name: str, *shape: int) -> Array:
        """Return float32 memory of the calling thread: new pages take longer than the values in them."""
        size, held = int(np.prod(shape)), getattr(self.local, name, None)
        if held is None or held.size < size:
            held = np.empty(size, np.float32)
            setattr(self.local, name, held)
        return held[:size].reshape(shape)

    def backpropagate(self, placed: Array, V: Array, metric: Metric, slopes: Slopes) -> MetricGradient:
        m, q = V.shape
        points = ThinPoints.of(self.kernel.gamma, placed + self.shift, V, metric)  # type: ignore[attr-defined]
        strip = max(self.strip_values // (points.panels * core.SPARSE_LANES), SMALLEST_STRIP)

        def sums_of(first: int, last: int) -> list[Array]:
            """Return the sums over the rows from `first` to `last`: those of `ThinPoints.gradient`."""
            totals = points.zeros(q)
            for some in blocks(last - first, strip):
                self._add_strip(slice(first + some.start, first + some.stop), points, slopes, totals)
            return totals

        self.meter.add(2 * self.n * m)
        work = int((self.ends - self.starts).sum()) * m
        return points.gradient(summed_in_parts(self, sums_of, strip, work))

    def _add_strip(self, place: slice, points: ThinPoints, slopes: Slopes, totals: list[Array]) -> None:
        """Add the sums over a strip of rows."""
        A, count, (m, q) = self.prepared.values, place.stop - place.start, points.V.shape
        rows = A.data, A.indices, self.starts[place], self.ends[place]
        K = self.scratch("K", count, points.panels * core.SPARSE_LANES)
        norms, sums = self.scratch("norms", count), self.scratch("sums", count, 2, core.PARTIAL_SUMS)
        core.thin_values(*rows, points.lines, points.reach, points.level, points.squares, points.weights, norms, K, sums)
        values, products = K[:, :m], sums.sum(axis=2)
        W = np.asarray(slopes(place, products[:, :1] if q == 1 else values @ points.V), dtype=np.float32)
        if q == 1:
            weights, pulled = np.ascontiguousarray(W[:, 0]), W[:, 0] * products[:, 1]
        else:
            totals[2] += values.T @ W
            values *= W @ points.V.T
            weights, pulled = np.ones(count, np.float32), values @ points.weights[1, :m]
        found = self.scratch("found", *totals[0].shape)
        found[...] = 0.0
        core.thin_back(*rows, norms, weights, pulled, K, found, totals[1])
        totals[0] += found


@dataclass(frozen=True)
class ThinPoints:
    """Points with a metric in panels: K_ij = 2^(<x_i, line_j> + |f x_i|^2 reach_j + level_j), scale = gamma log2(e).

    The exponent is -scale w_j |f (x_i - z_j)|^2, so line_j = 2 scale w_j f^2 z_j, reach_j = -scale w_j and level_j =
    -scale w_j |f z_j|^2. Panels are filled up with points without weight.
    """

    gamma: float
    Z: Array  # (m, d)
    V: Array  # (m, q), float32
    factors: Array
    widths: Array
    scale: Array  # the coefficients if there is one output, else ones, as in `MetricSums`
    lines: Array  # (panels, d, lanes)
    reach: Array  # (panels * lanes,)
    level: Array
    squares: Array
    weights: Array  # (2, panels * lanes): coefficients, and widths times `scale`

    @classmethod
    def of(cls, gamma: float, Z: Array, V: Array, metric: Metric) -> ThinPoints:
        """Return points of a model."""
        (m, d), one = Z.shape, V.shape[1] == 1
        factors = np.ones(d) if metric.factors is None else metric.factors
        widths = np.ones(m) if metric.widths is None else metric.widths
        scale, squares, reach = V[:, 0] if one else np.ones(m), factors**2, gamma * float(np.log2(np.e)) * widths
        narrow_V, narrow_squares = V.astype(np.float32), squares.astype(np.float32)
        folded = Z * squares
        level, lanes = -reach * np.einsum("jf,jf->j", folded, Z), core.SPARSE_LANES
        panels = -(-m // lanes)
        folded *= 2 * reach[:, None]
        flat = np.zeros((4, panels * lanes), np.float32)
        for line, part in zip(flat, (-reach, level, V[:, 0], widths * scale), strict=True):
            line[:m] = part
        lines = np.zeros((panels * lanes, d), np.float32)
        lines[:m] = folded
        lines = np.ascontiguousarray(lines.reshape(panels, lanes, d).transpose(0, 2, 1))
        return cls(gamma, Z, narrow_V, factors, widths, scale, lines, flat[0], flat[1], narrow_squares, flat[2:4])

    @property
    def panels(self) -> int:
        """The number of panels."""
        return self.lines.shape[0]

    def zeros(self, q: int) -> list[Array]:
        """Return memory for sums: lines of features, of norms and of ones; spreads; slopes of several coefficients."""
        panels, d, lanes = self.lines.shape
        return [np.zeros((panels, d + 2, lanes)), np.zeros(d), np.zeros((self.Z.shape[0], q if q > 1 else 0))]

    def gradient(self, sums: list[Array]) -> MetricGradient:
        """Return the gradient from the sums over all rows."""
        lines, spread, coef = sums
        m, d = self.Z.shape
        found = lines.transpose(0, 2, 1).reshape(-1, d + 2)[:m]
        parts = found[:, :d], found[:, d], found[:, d + 1], spread
        by_points, factors, widths = gaussian_gradient(self.gamma, self.Z, self.scale, self.factors, self.widths, parts)
        return MetricGradient(by_points, coef if coef.shape[1] else found[:, d + 1 :], factors, widths)


def thin_rows(rows: HostRows) -> ThinRows | None:
    """Return the rows without their zeros; None for other kernels than rbf, few zeros, many features and mapped files."""
    if not isinstance(rows.kernel, RBF) or rows.d > MOST_FEATURES or not rows.n or is_mapped(rows.given.X):
        return None
    values = rows.prepared.values
    if rows.prepared.sparse:
        few = 0 < values.nnz <= FEW_NONZEROS * values.shape[0] * values.shape[1]
        return ThinRows(rows, narrow(values.astype(np.float32)), np.zeros(rows.d)) if few else None
    centre = np.zeros(rows.d) if rows.centre is None else rows.centre
    some = dense(rows.given.take(np.arange(0, rows.n, -(-rows.n // SAMPLED))).rows())
    middle = some.shape[0] // 2
    usual = np.partition(some, middle, axis=0)[middle]  # what more than half of the rows have, if that is one value
    own = np.where((some != usual).mean(axis=0) > FEW_NONZEROS, centre, usual)
    nonzeros = float((some != own).mean(axis=0).sum())  # of a row
    if nonzeros > FEW_NONZEROS * rows.d or nonzeros * rows.n > MOST_ENTRIES:
        return None
    return ThinRows(rows, narrow(vstack(list(_blocks(rows.given, own)), format="csr")), centre - own)


def _blocks(given: Given, centre: Array) -> Iterator[csr_array]:
    """Yield blocks of rows relative to a centre, without their zeros."""
    for _, rows in given.blocks():
        yield csr_array((dense(rows) - centre).astype(np.float32))
