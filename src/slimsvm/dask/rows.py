"""The home of rows on a Dask cluster: parts stay on the workers, and products of them come back.

A product brings one number per row and output. Rows are sent only if a method needs some of them: the working set of a
round, a subsample, support vectors.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import numpy as np

from ..kernels import Array, InnerKernel, Kernel, Linear, Matrix, Precomputed, dense
from ..metric import Metric
from ..rows.base import means
from ..rows.host import HostRows
from ..rows.kernel_matrix import KernelMatrix
from ..rows.precision import FLOAT32_ERROR, USUAL, Precision, Prepared, fits_float32, rounding_error
from ..rows.protocol import Meter, Rows
from ..rows.threads import ThreadPool, one_blas_thread
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


class DaskRows(Rows):
    """n rows with a kernel on the workers of a cluster.

    `held` are the parts in the form of tiles, all relative to one centre. `places` are the row numbers of each
    part, `source` the rows before preparation and `index` their numbers in `source`.
    """

    in_one_place = False
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
        self.pool = ThreadPool()
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
        return self.index.size

    @property
    def d(self) -> int:
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
            return make_tiles(self.kernel, A, B, self.pool).matrix(out)

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
        owners = []
        for number, place in enumerate(self.places):
            where = np.flatnonzero(np.isin(index, place))
            if where.size:
                order = np.argsort(place, kind="stable")
                owners.append((number, where, order[np.searchsorted(place, index[where], sorter=order)]))
        return owners

    def diagonal(self) -> Array:
        homes = self.source.submitted(self.held, _home, self.kernel)
        self.meter.add(self.n)
        return self.joined(self.source.gathered(homes, _diagonal))

    # Some of the rows.

    def take(self, index: Array) -> Matrix:
        return self.kernel.points(self.source[self.index[index]], self.ids[index])

    def mean(self, index: Array) -> Array:
        return self.source[self.index[index]].mean(axis=0, dtype=np.float64)[None]

    def means(
        self, index: Array, count: int, rng: np.random.Generator, *, rounds: int, weights: Array | None = None
    ) -> Array:
        return means(self.source[self.index[index]], count, rounds, rng, weights)

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
        return HostRows(self.kernel, self.source[self.index[index]], self.meter, 0.0, 0.0, self.ids[index])

    def against(self, points: Matrix, *, exact: bool = True) -> DaskMatrix:
        """Return a handle on K(rows, points)."""
        return DaskMatrix(self, self.to_coordinates(points), exact=exact)

    def moving(self, placed: Array, *, exact: bool = False) -> DaskMatrix:
        """Return a handle on K between the rows and points that move."""
        return DaskMatrix(self, placed, exact=exact)


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
        return self.kernel.points(self.source[self.index[index]], self.ids[index])

    def mean(self, index: Array) -> Array:
        return self.from_coordinates(self.prepared.values[index].mean(axis=0, dtype=np.float64)[None])

    def means(
        self, index: Array, count: int, rng: np.random.Generator, *, rounds: int, weights: Array | None = None
    ) -> Array:
        return means(self.from_coordinates(self.prepared.values[index].astype(np.float64)), count, rounds, rng, weights)

    def subset(self, index: Array) -> LocalRows:
        part = super().subset(index)
        part.index = self.index[index]  # type: ignore[attr-defined]
        return part  # type: ignore[return-value]

    def fetch(self, index: Array) -> HostRows:
        return HostRows(self.kernel, self.source[self.index[index]], self.meter, 0.0, 0.0, self.ids[index])


class DaskMatrix(KernelMatrix):
    """K(rows, points), in parts where the rows are; sums over rows are added up from the parts in their order."""

    def __init__(self, rows: DaskRows, placed: Array, *, exact: bool) -> None:
        self.rows, self.points, self.exact = rows, placed, exact
        self._fill(placed)

    def _fill(self, points: Matrix, metric: Metric | None = None) -> None:
        if metric is not None:
            raise NotImplementedError("rows on a cluster have no kernel values in a metric; give metric='fixed'")
        rows, submit = self.rows, self.rows.source.client.submit
        rows.meter.add(rows.n * points.shape[0])
        settings = {"placed": True, "exact": self.exact, "pure": False}
        self.held = [submit(parts.against, part, rows.kernel, points, **settings) for part in rows.held]
        self.size = points.shape[0]

    def _changed(self, points: Array, method: str, argument: Any) -> None:
        """Set other points, which a method of each part's matrix makes."""
        self.points, self.size = points, points.shape[0]
        self.held = self.rows.source.submitted(self.held, parts.changed, method, argument)

    def append(self, points: Matrix) -> None:
        placed = self.rows.to_coordinates(points)
        self.rows.meter.add(self.rows.n * placed.shape[0])
        self._changed(np.vstack([self.points, placed]), "append", placed)

    def keep(self, columns: Array) -> None:
        self._changed(self.points[columns], "keep", columns)

    def first(self, size: int) -> DaskMatrix:
        part = copy.copy(self)
        part._changed(self.points[:size], "first", size)
        return part

    def _all(self, method: str, *arguments: Any) -> list[Any]:
        return self.rows.source.gathered(self.held, parts.answer, method, *arguments)

    def _sums(self, method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Return the answer of each part to its own arguments."""
        return self.rows.source.each(self.held, parts.answer, [(method, *own) for own in arguments])

    def times(self, V: Array) -> Array:
        return self.rows.joined(self._all("times", V))

    def column(self, point: int) -> Array:
        return self.rows.joined(self._all("column", point))

    def nearest(self) -> Array:
        return self.rows.joined(self._all("nearest"))

    def largest_square(self) -> float:
        return max(self._all("largest_square"))

    def back(self, W: Array, rows: Array | None = None) -> Array:
        if rows is not None:
            whole = np.zeros((self.rows.n, W.shape[1]))
            np.add.at(whole, rows, W)
            W = whole
        return np.sum(self._sums("back", [(own,) for own in self.rows.dealt(W)]), axis=0)

    def curvature(self, rows: Array, weights: Array, since: int = 0) -> Array:
        chosen = np.bincount(rows, minlength=self.rows.n)
        arguments = [
            (np.repeat(np.arange(own.size), own), given, since)
            for own, given in zip(self.rows.dealt(chosen), self.rows.dealt(weights), strict=True)
        ]
        return np.sum(self._sums("curvature", arguments), axis=0)

    def pullback(self, W: Array, V: Array) -> Array:
        self.rows.meter.add(int(W.any(axis=1).sum()) * self.size)
        return np.sum(self._sums("pullback", [(own, V) for own in self.rows.dealt(W)]), axis=0)

    def group_means(self, group: Array, weights: Array) -> Array:
        total = np.bincount(group, weights)
        shares = np.zeros((group.size, total.size))
        shares[np.arange(group.size), group] = weights / total[group]
        return self.back(shares).T

    def features(self, T: Array) -> DaskRows:
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
