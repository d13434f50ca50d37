"""The home of rows on a Dask cluster: parts stay on the workers, and products of them come back.

A product brings one number per row and output. Rows are sent only if a method needs some of them: the working set of a
round, a subsample, support vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from ..kernels import Array, InnerKernel, Kernel, Linear, Matrix, Precomputed, dense
from ..kernels.metric_gradients import MetricGradient
from ..metric import Metric
from ..rows.base import means
from ..rows.curvatures import RunningCurvatures
from ..rows.host import HostRows
from ..rows.precision import FLOAT32_ERROR, USUAL, Precision, Prepared, fits_float32, rounding_error
from ..rows.protocol import Curvatures, Meter
from ..rows.threads import Crew, one_blas_thread
from ..rows.tiles import make_tiles
from . import parts
from .partitions import Partitions, locate

#: a subset of the rows of at most this many numbers is fetched to the client process; more: less traffic, more memory
LOCAL_VALUES = 1 << 22


def local_values() -> int:
    """Return the most numbers of rows in the client process: `slimsvm.local-values` of Dask's configuration."""
    import dask

    return int(dask.config.get("slimsvm.local-values", LOCAL_VALUES))


def check_metric(X: Partitions, metric: str) -> None:
    """Raise ValueError if a metric is to be learned from rows on a cluster: its mini-batches would be round trips."""
    if metric not in ("fixed", "auto") and X.shape[0] * X.shape[1] > local_values():
        raise ValueError(
            f"metric={metric!r} is learned from rows on one machine, and these are on a cluster; give Slim(metric='fixed'),"
            " or fit a SlimSVC to a sample of the rows"
        )


class DaskRows:
    """n rows with a kernel on the workers of a cluster.

    `held` are the parts in the form of tiles, all relative to one centre. `places` are the row numbers of each
    part, `source` the rows before preparation and `index` their numbers in `source`.
    """

    worth_caching = False
    worth_shrinking = True
    keeps_vectors = False
    arrays = None
    outputs_at_once = HostRows.outputs_at_once
    #: larger than elsewhere, because a round is a round trip to the workers
    working_set = 4096
    spent = 0

    def __init__(
        self,
        kernel: Kernel,
        X: Partitions,
        meter: Meter | None = None,
        cache_mb: float = 512.0,
        error: float = FLOAT32_ERROR,
        ids: Array | None = None,
        *,
        index: Array | None = None,
        precision: Precision = USUAL,
    ) -> None:
        if isinstance(kernel, Precomputed):
            raise ValueError("a precomputed kernel has no rows to share out to a cluster; fit SlimSVC to the matrix")
        self.kernel, self.source, self.meter, self.cache_mb, self.error = kernel, X, meter or Meter(), cache_mb, error
        self.precision = precision
        self.index = np.arange(X.shape[0]) if index is None else index
        self.ids = self.index if ids is None else ids
        inner = isinstance(kernel, InnerKernel)
        self.centre = X.mean if inner and kernel.translation_invariant else None
        self.dtype: np.dtype = np.dtype(np.float64)
        self.held = self._prepared()
        self.places = [np.arange(*ends) for ends in pairwise(X.offsets)]
        self.in_order = index is None  # whether rows have the order of the parts
        self.crew = Crew()
        self.near: tuple[Array, Array, Array] | None = None  # numbers, values and norms of the rows fetched last
        if index is not None:
            self.held, self.places = self._chosen(index)

    def _prepared(self) -> list[Any]:
        """Return the parts in float32 where that is precise enough for all rows, else in float64."""
        source, n, d = self.source, *self.source.shape
        if isinstance(self.kernel, InnerKernel) and self.precision.is_large(n, n, d):
            held = source.spread_out(parts.prepared, "float32", self.centre)
            # the bound needs no answer of the workers, which the radius of all rows does
            if self._float32_is_enough(source.most_squared_norm(self.centre)) or self._float32_is_enough(
                max(source.gathered(held, parts.radius))
            ):
                self.dtype = np.dtype(np.float32)
                return held
        return source.spread_out(parts.prepared, "float64", self.centre)

    def _float32_is_enough(self, radius: float) -> bool:
        """Return whether rows of at most this squared norm have kernel values in float32 that are precise enough."""
        error = rounding_error(self.kernel, self.d, radius)  # type: ignore[arg-type]
        return fits_float32(radius) and error <= self.precision.most(self.error)

    def _chosen(self, index: Array) -> tuple[list[Any], list[Array]]:
        """Return some of the rows, by their numbers here, as parts and places."""
        owner, local = np.empty(self.n_held, dtype=np.intp), np.empty(self.n_held, dtype=np.intp)
        for number, place in enumerate(self.places):
            owner[place], local[place] = number, np.arange(place.size)
        held, places = [], []
        for number in np.unique(owner[index]).tolist():
            where = np.flatnonzero(owner[index] == number)
            held.append(self.source.client.submit(parts.subset, self.held[number], local[index[where]], pure=False))
            places.append(where)
        return held, places

    @property
    def n_held(self) -> int:
        """The number of rows in all parts."""
        return sum(place.size for place in self.places)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.index.size

    @property
    def d(self) -> int:
        """The number of features."""
        return self.source.shape[1]

    def joined(self, found: list[Array]) -> Array:
        """Return the answers of all parts, one line for each row, in the order of the rows."""
        if self.in_order:
            return np.concatenate(found)
        out = np.empty((self.n, *found[0].shape[1:]), found[0].dtype)
        for place, values in zip(self.places, found, strict=True):
            out[place] = values
        return out

    def dealt(self, values: Array) -> list[Array]:
        """Return the lines of an array that belong to the rows of each part."""
        return [values[place] for place in self.places]

    # Products.

    def product(self, points: Matrix, V: Array, metric: Metric | None = None) -> Array:
        """Return K(rows, points) @ V."""
        self.meter.add(self.n * points.shape[0])
        return self.joined(self.source.gathered(self.held, parts.product_with, self.kernel, dense(points), V, metric))

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:  # noqa: ARG002
        """Return K(rows, rows[index]) @ V; there is no cache."""
        self.meter.add(self.n * index.size)
        values, norms = self._fetched(index)
        return self.joined(self.source.gathered(self.held, parts.product, self.kernel, values, norms, V))

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """Return K(rows[index], rows[columns]), computed by the client process."""
        columns = index if columns is None else columns
        self.meter.add(index.size * columns.size)
        A = Prepared(*self._fetched(index), self.centre)
        B = A if columns is index else Prepared(*self._fetched(columns), self.centre)
        with one_blas_thread():  # idle threads of BLAS turn round for a tenth of a second, on cores that workers may need
            return make_tiles(self.kernel, A, B, self.crew).matrix(out)

    def _fetched(self, index: Array) -> tuple[Array, Array]:
        """Return some rows in the form of tiles, and their squared norms; rows of the last call are not fetched again."""
        if self.near is None or not np.isin(index, self.near[0]).all():
            self.near = self._with_new(np.unique(index))
        place = np.searchsorted(self.near[0], index)
        return self.near[1][place], self.near[2][place]

    def _with_new(self, index: Array) -> tuple[Array, Array, Array]:
        """Return sorted rows; those that are known are copied, the others come from the workers."""
        values, norms = np.empty((index.size, self.d), self.dtype), np.empty(index.size)
        known = np.zeros(index.size, dtype=bool) if self.near is None else np.isin(index, self.near[0])
        if known.any():
            assert self.near is not None
            place = np.searchsorted(self.near[0], index[known])
            values[known], norms[known] = self.near[1][place], self.near[2][place]
        new = np.flatnonzero(~known)
        asked = self._owners(index[new])
        for (_, where, _), (rows, squares) in zip(
            asked, self.source.selected(self.held, asked, parts.prepared_rows), strict=True
        ):
            values[new[where]], norms[new[where]] = rows, squares
        return index, values, norms

    def _owners(self, index: Array) -> list[tuple[int, Array, Array]]:
        """Return the parts that have some rows, with the places of these rows in `index` and their numbers in the part."""
        if self.in_order:
            return locate(index, self.source.offsets)
        found = []
        for number, place in enumerate(self.places):
            where = np.flatnonzero(np.isin(index, place))
            if where.size:
                order = np.argsort(place, kind="stable")
                found.append((number, where, order[np.searchsorted(place, index[where], sorter=order)]))
        return found

    def on_demand(self) -> None:
        """Return None: each kernel row would be a round trip."""

    def pairs_on_demand(self, largest: int) -> None:
        """Return None: so is each pair's."""

    def dual_vectors(self, problem: Any, working: Array) -> None:
        """Return None: the client process keeps the vectors of dual problems."""

    def buffer(self, size: int) -> Array:
        """Return memory for blocks, which the client process computes."""
        return np.empty(size, self.dtype)

    def main_features(self, most: int) -> None:
        """Return None: points have all features."""

    def on_features(self, features: Array) -> Any:
        """Raise ValueError: only sparse rows of the host have such a form."""
        raise ValueError(f"rows on a cluster have points of all {self.d} features, not of {features.size}")

    def spanned(self, wide: int, several: int, share: float) -> None:
        """Return None: points move in all features."""

    def diagonal(self) -> Array:
        """Return k(x_i, x_i) for each row."""
        homes = self.source.submitted(self.held, _home, self.kernel)
        self.meter.add(self.n)
        return self.joined(self.source.gathered(homes, _diagonal))

    # Few points, in the client process.

    def among(self, A: Matrix, B: Matrix | None = None, *, placed: bool = False) -> Array:
        """Return K(A, B) in float64 for a few points."""
        B = A if B is None else B
        self.meter.add(A.shape[0] * B.shape[0])
        A, B = (A, B) if placed else (self.inward(A), self.inward(B))
        return self.kernel(self.kernel.inside(A), B)

    def pullback_among(self, A: Array, Z: Array, K: Array, W: Array) -> Array:
        """Return sum_i W_ij dk(a_i, z_j) / dz_j for each of a few points z_j."""
        self.meter.add(A.shape[0] * Z.shape[0])
        return self.kernel.pullback(self.kernel.inside(A), Z, K, W)

    def inward(self, points: Matrix) -> Array:
        """Return points relative to the rows' centre, dense float64."""
        placed = dense(points).astype(np.float64)
        return placed if self.centre is None else placed - self.centre

    def outward(self, placed: Array) -> Array:
        """Return points relative to the centre as points of an expansion."""
        return self.kernel.inside(placed.copy() if self.centre is None else placed + self.centre)

    # Some of the rows.

    def take(self, index: Array) -> Matrix:
        """Return a few rows as points of an expansion."""
        return self.kernel.points(self.source[self.index[index]], self.ids[index])

    def mean(self, index: Array) -> Array:
        """Return the mean of some rows, (1, d)."""
        return self.source[self.index[index]].mean(axis=0, dtype=np.float64)[None]

    def means(
        self, index: Array, count: int, rng: np.random.Generator, *, rounds: int, weights: Array | None = None
    ) -> Array:
        """Return the centres of at most `count` clusters of some rows, by k-means."""
        return means(self.source[self.index[index]], count, rounds, rng, weights)

    def sample(self, most: int, rng: np.random.Generator) -> Array:
        """Return the numbers of all rows, or a sorted random subset of `most` of them."""
        rows = np.arange(self.n)
        return rows if rows.size <= most else np.sort(rng.choice(rows, most, replace=False))

    def subset(self, index: Array) -> Any:
        """Return some of the rows: in the client process if they are few, else on the workers."""
        if index.size * self.d <= local_values():
            _, values, norms = self._with_new(np.unique(index))
            place = np.searchsorted(np.unique(index), index)
            rows = Prepared(values[place], norms[place], self.centre)
            return LocalRows(self, index, rows)
        part = object.__new__(DaskRows)
        part.__dict__ |= self.__dict__
        part.index, part.ids, part.near = self.index[index], self.ids[index], None
        part.held, part.places = self._chosen(index)
        part.in_order = False
        return part

    def of(self, points: Matrix, *, exact: bool = False, cache: bool = False) -> HostRows:
        """Return other rows, in the client process."""
        return HostRows(self.kernel, points, self.meter, self.cache_mb if cache else 0.0, 0.0 if exact else self.error)

    def fetch(self, index: Array) -> HostRows:
        """Return some of the rows in the client process, with float64 kernel values."""
        return HostRows(self.kernel, self.source[self.index[index]], self.meter, 0.0, 0.0, self.ids[index])

    def against(self, points: Matrix, *, exact: bool = True) -> DaskAgainst:
        """Return a handle on K(rows, points)."""
        return DaskAgainst(self, self.inward(points), exact=exact)

    def moving(self, placed: Array, *, exact: bool = False) -> DaskAgainst:
        """Return a handle on K between the rows and points that move."""
        return DaskAgainst(self, placed, exact=exact)

    def share_out(self, work: Callable[[int], None], count: int) -> None:
        """Call work(k) for each k in range(count), one after the other: each of them uses the whole cluster."""
        for number in range(count):
            work(number)


def open_parts(
    kernel: Kernel,
    X: Partitions,
    meter: Meter | None = None,
    cache_mb: float = 512.0,
    error: float = FLOAT32_ERROR,
    ids: Array | None = None,
    *,
    index: Array | None = None,
    precision: Precision = USUAL,
) -> Any:
    """Return rows on the workers; those of a small problem in the client process."""
    if X.shape[0] * X.shape[1] > local_values():
        return DaskRows(kernel, X, meter, cache_mb, error, ids, index=index, precision=precision)
    return HostRows(kernel, X.everything(), meter, cache_mb, error, ids, index=index, precision=precision)


class LocalRows(HostRows):
    """A few rows of a cluster in the client process, relative to the centre of all rows."""

    def __init__(self, rows: DaskRows, index: Array, prepared: Prepared) -> None:
        super().__init__(rows.kernel, prepared.values, rows.meter, 0.0, rows.error, rows.ids[index], prepared=prepared)
        self.source, self.index = rows.source, rows.index[index]

    def take(self, index: Array) -> Matrix:
        """Return a few rows as points of an expansion."""
        return self.kernel.points(self.source[self.index[index]], self.ids[index])

    def mean(self, index: Array) -> Array:
        """Return the mean of some rows, (1, d)."""
        return self.outward(self.prepared.values[index].mean(axis=0, dtype=np.float64)[None])

    def means(
        self, index: Array, count: int, rng: np.random.Generator, *, rounds: int, weights: Array | None = None
    ) -> Array:
        """Return the centres of at most `count` clusters of some rows, by k-means."""
        return means(self.outward(self.prepared.values[index].astype(np.float64)), count, rounds, rng, weights)

    def subset(self, index: Array) -> LocalRows:
        """Return some of the rows."""
        part = super().subset(index)
        part.index = self.index[index]  # type: ignore[attr-defined]
        return part  # type: ignore[return-value]

    def fetch(self, index: Array) -> HostRows:
        """Return some of the rows with float64 kernel values."""
        return HostRows(self.kernel, self.source[self.index[index]], self.meter, 0.0, 0.0, self.ids[index])


class DaskAgainst:
    """K(rows, points), in parts where the rows are; sums over rows are added up from the parts in their order."""

    def __init__(self, rows: DaskRows, placed: Array, *, exact: bool, held: list[Any] | None = None) -> None:
        self.rows, self.placed, self.exact = rows, placed, exact
        self.held = self._opened(placed) if held is None else held

    def _opened(self, placed: Array) -> list[Any]:
        self.rows.meter.add(self.rows.n * placed.shape[0])
        source, kernel = self.rows.source, self.rows.kernel
        return [
            source.client.submit(parts.against, part, kernel, placed, placed=True, exact=self.exact, pure=False)
            for part in self.rows.held
        ]

    @property
    def size(self) -> int:
        """The number of points."""
        return self.placed.shape[0]

    def _all(self, method: str, *arguments: Any) -> list[Any]:
        return self.rows.source.gathered(self.held, parts.answer, method, *arguments)

    def _each(self, method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        return self.rows.source.each(self.held, parts.answer, [(method, *own) for own in arguments])

    # Points.

    def move(self, placed: Array, V: Array, metric: Metric | None = None) -> Array:
        """Evaluate K for other points and return the new K @ V; without a metric."""
        if metric is not None:
            raise NotImplementedError("rows on a cluster have no kernel values in a metric; give metric='fixed'")
        self.placed, self.held = placed, self._opened(placed)
        return self.times(V)

    def append(self, points: Matrix) -> None:
        """Add points after the others."""
        placed = self.rows.inward(points)
        self.rows.meter.add(self.rows.n * placed.shape[0])
        self.placed = np.vstack([self.placed, placed])
        self.held = self.rows.source.submitted(self.held, parts.changed, "append", placed)

    def keep(self, columns: Array) -> None:
        """Keep some of the points, in this order, and drop the others."""
        self.placed, self.held = (
            self.placed[columns],
            self.rows.source.submitted(self.held, parts.changed, "keep", columns),
        )

    def first(self, size: int) -> DaskAgainst:
        """Return a handle on the first points."""
        held = self.rows.source.submitted(self.held, parts.changed, "first", size)
        return DaskAgainst(self.rows, self.placed[:size], exact=self.exact, held=held)

    # Answers.

    def times(self, V: Array) -> Array:
        """Return K @ V, (n, q)."""
        return self.rows.joined(self._all("times", V))

    def column(self, point: int) -> Array:
        """Return the kernel values of one point, (n,)."""
        return self.rows.joined(self._all("column", point))

    def nearest(self) -> Array:
        """Return for each row the number of the point with the largest kernel value, (n,)."""
        return self.rows.joined(self._all("nearest"))

    def largest_square(self) -> float:
        """Return the largest squared kernel value."""
        return max(self._all("largest_square"))

    def back(self, W: Array, rows: Array | None = None) -> Array:
        """Return K[rows].T @ W, (m, q)."""
        if rows is not None:
            whole = np.zeros((self.rows.n, W.shape[1]))
            np.add.at(whole, rows, W)
            W = whole
        return np.sum(self._each("back", [(own,) for own in self.rows.dealt(W)]), axis=0)

    def curvature(self, rows: Array, weights: Array, since: int = 0) -> Array:
        """Return the sum over some rows of w d d' with d = (1, k_1 .. k_m), or its columns from `since` on."""
        chosen = np.bincount(rows, minlength=self.rows.n)
        arguments = [
            (np.repeat(np.arange(own.size), own), given, since)
            for own, given in zip(self.rows.dealt(chosen), self.rows.dealt(weights), strict=True)
        ]
        return np.sum(self._each("curvature", arguments), axis=0)

    def running_curvatures(self, count: int, *, growing: bool = False) -> Curvatures:  # noqa: ARG002
        """Return curvatures of `count` outputs."""
        return RunningCurvatures(self, count)

    def pullback(self, W: Array, V: Array) -> Array:
        """Return the gradient of sum_ij <W_i, V_j> k(x_i, z_j) with respect to the points z_j, (m, d)."""
        self.rows.meter.add(int(W.any(axis=1).sum()) * self.size)
        return np.sum(self._each("pullback", [(own, V) for own in self.rows.dealt(W)]), axis=0)

    def metric_pullback(self, W: Array, V: Array, metric: Metric) -> MetricGradient:
        """Return the gradient of sum_ij <W_i, V_j> k(x_i, z_j) by the points and by the metric in which they moved."""
        self.rows.meter.add(self.rows.n * self.size)
        found = self._each("metric_pullback", [(own, V, metric) for own in self.rows.dealt(W)])
        return MetricGradient(*(np.sum([getattr(part, each.name) for part in found], axis=0) for each in fields(found[0])))

    def group_means(self, group: Array, weights: Array) -> Array:
        """Return the weighted mean of K's rows in each group, (groups, m)."""
        total = np.bincount(group, weights)
        shares = np.zeros((group.size, total.size))
        shares[np.arange(group.size), group] = weights / total[group]
        return self.back(shares).T

    def features(self, T: Array) -> DaskRows:
        """Return rows K @ T with the linear kernel, on the workers."""
        source = self.rows.source
        held = source.submitted(self.held, parts.features, T)
        values = Partitions(source.client, source.submitted(held, _values))
        rows = DaskRows(Linear(), values, self.rows.meter, self.rows.cache_mb, self.rows.error)
        order = np.concatenate(self.rows.places)
        return rows if (order == np.arange(order.size)).all() else rows.subset(np.argsort(order))


def _home(rows: Prepared, kernel: Kernel) -> HostRows:
    return parts.home(kernel, rows)


def _diagonal(rows: HostRows) -> Array:
    return rows.diagonal()


def _values(rows: Prepared) -> Array:
    return rows.values
