"""Rows on a device: torch (CUDA, MPS, CPU), CuPy and array_api_strict through the array API standard.

Rows are sent to the device once, in the precision that `precision` allows, relative to their mean where the kernel does not
change with it. Sparse rows are written out there. The caller's array is only referred to: a few rows for an expansion, or
for k-means, are read from it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..kernels import KERNELS, Array, InnerKernel, Kernel, Linear, Matrix, Precomputed
from ..kernels.metric_gradients import MetricGradient
from ..metric import Metric
from . import precision
from .array_against import ArrayAgainst
from .array_backward import backpropagate
from .backends import FLOAT32, FLOAT64, TILE_VALUES, Backend, Held
from .base import GivenRows
from .cache import RowCache
from .host import HostRows
from .precision import Given, is_large_work, mean_row, rounding_error
from .protocol import Meter, Slopes
from .threads import blocks

#: numbers up to which sparse rows are written out on a device
WRITTEN_OUT = 1 << 33


class ArrayRows(GivenRows):
    """Rows on the device of a `Backend`; the other arguments are those of `HostRows`."""

    def __init__(
        self,
        backend: Backend,
        kernel: Kernel,
        X: Matrix,
        meter: Meter | None = None,
        cache_mb: float = 512.0,
        error: float = precision.FLOAT32_ERROR,
        ids: Array | None = None,
        *,
        index: Array | None = None,
    ) -> None:
        super().__init__(kernel, Given(X, index), meter, cache_mb, error, ids)
        _check(kernel, self.given, backend)
        self.backend = backend
        centred = isinstance(kernel, InnerKernel) and kernel.translation_invariant and self.n > 0
        self._centre = mean_row(self.given) if centred else None
        self.held = self._uploaded()
        self._cache: RowCache | None = None

    @property
    def centre(self) -> Array | None:
        """The mean row, where the kernel does not change when all rows move."""
        return self._centre

    @property
    def dtype(self) -> np.dtype:
        """The precision of kernel values."""
        return self.held.dtype

    @property
    def cache(self) -> RowCache:
        """The kernel rows used last, on the device."""
        if self._cache is None:
            self._cache = RowCache(self.n, self.dtype, self.cache_mb, self.backend.empty)
        return self._cache

    @property
    def worth_caching(self) -> bool:
        """Whether fetching a kernel row from memory is cheaper than computing it again."""
        return self.pays_to_cache(self.d)

    # Precision.

    def _uploaded(self) -> Held:
        """Return the rows on the device, in float32 where the work is large and the rounding small."""
        float32_pays = is_large_work(self.n, self.n, self.d) or not self.backend.has_float64
        if isinstance(self.kernel, InnerKernel) and float32_pays and self.backend.plain_float32:
            rows = self._sent(FLOAT32)
            if self.rounding(rows) <= min(self.error, precision.FLOAT32_ERROR):
                return rows
        return self._in_float64()

    def _in_float64(self) -> Held:
        self.backend.needs_float64(f"float32 is too coarse for the {self.kernel.name} kernel with these rows")
        return self._sent(FLOAT64)

    def _sent(self, dtype: np.dtype) -> Held:
        if isinstance(self.given.X, OnDevice):
            return self.given.X.held(dtype, self.given.index)
        return self.backend.upload(self.given, dtype, self.centre)

    def rounding(self, rows: Held, metric: Metric | None = None) -> float:
        """Return the error of kernel values from float32 inner products with these rows or points."""
        return rounding_error(self.kernel, self.d, rows.radius, metric) if isinstance(self.kernel, InnerKernel) else 0.0

    def pair(self, points: Matrix, metric: Metric | None = None) -> tuple[Held, Held]:
        """Return the rows and any points on the device; in float64 where points far out spoil float32."""
        if isinstance(self.kernel, Precomputed):
            return self.held, self.backend.columns(points)
        placed = self.inward(points)
        rows, there = self._measured(self.held, metric), self._points(placed, self.dtype, metric)
        if self.dtype == FLOAT32:
            error = max(self.rounding(each, metric) for each in ((there,) if metric is None else (rows, there)))
            if error > min(self.error, precision.FLOAT32_ERROR):
                return self._measured(self._in_float64(), metric), self._points(placed, FLOAT64, metric)
        return rows, there

    def _measured(self, rows: Held, metric: Metric | None) -> Held:
        """Return the rows with their norms in a metric."""
        if metric is None or metric.factors is None or not isinstance(self.kernel, InnerKernel):
            return rows
        return self.backend.with_norms(rows.values, rows.dtype, metric.factors)

    def _points(self, placed: Array, dtype: np.dtype, metric: Metric | None) -> Held:
        """Return points with the metric folded in, as `Prepared.folded` does; other kernels have factors in the tiles."""
        if metric is None:
            return self.backend.points(placed, dtype)
        inner = isinstance(self.kernel, InnerKernel)
        return self.backend.points_in(metric, placed, dtype, inner=inner)

    def own(self, index: Array) -> Held:
        """Return some of the rows as points."""
        if isinstance(self.kernel, Precomputed):
            return self.backend.columns(self.ids[index])
        return self.backend.subset(self.held, index)

    # Rows as rows.

    def subset(self, index: Array) -> ArrayRows:
        """Return some of the rows, on the same meter, without a cache."""
        part = copy.copy(self)
        part.given, part.ids, part.held = self.given.take(index), self.ids[index], self.backend.subset(self.held, index)
        part.cache_mb, part._cache = 0.0, None
        return part

    def of(self, points: Matrix, *, exact: bool = False, cache: bool = False) -> ArrayRows | HostRows:
        """Return other rows on the same meter; of a precomputed kernel, those of these rows with the numbers given.

        On a device without float64, rows with exact kernel values are on the host.
        """
        if isinstance(self.kernel, Precomputed):
            return self.subset(self._places(points))
        error, cache_mb = 0.0 if exact else self.error, self.cache_mb if cache else 0.0
        if exact and not self.backend.has_float64:
            return HostRows(self.kernel, points, self.meter, cache_mb, error)
        return ArrayRows(self.backend, self.kernel, points, self.meter, cache_mb, error)

    def fetch(self, index: Array) -> HostRows:
        """Return some of the rows on the host, with float64 kernel values."""
        return HostRows(self.kernel, self.given.take(index).rows(), self.meter, 0.0, 0.0, self.ids[index])

    def backpropagate(self, placed: Array, V: Array, metric: Metric, slopes: Slopes) -> MetricGradient:
        """Return the gradient of a loss of the outputs K V with respect to points, coefficients V and the metric."""
        return backpropagate(self, placed, V, metric, slopes)

    def share_out(self, work: Callable[[int], None], count: int) -> None:
        """Call work(k) for each k in range(count), one after the other: a device has one queue."""
        for number in range(count):
            work(number)

    # Kernel values.

    def tile(self, A: Held, B: Held) -> Any:
        """Return K(A, B) on the device."""
        xp, widths = self.backend.xp, {} if B.widths is None else {"widths": B.widths}
        if isinstance(self.kernel, InnerKernel):
            return self.kernel.tail(A.values @ B.values.T, A.norms, B.norms, xp, **widths)
        rows = A.values if B.factors is None else A.values * B.factors
        return self.kernel.values(rows, B.values, xp, **widths)

    def product(self, points: Matrix, V: Array, metric: Metric | None = None) -> Array:
        """Return K(rows, points) @ V."""
        self.meter.add(self.n * points.shape[0])
        return self._product(*self.pair(points, metric), V)

    def _product(self, A: Held, B: Held, V: Array) -> Array:
        on, out = self.backend, np.zeros((self.n, V.shape[1]))
        weights = on.send(V, on.sum_dtype)

        def work(some: slice) -> None:
            out[some] = on.fetch(on.cast(self.tile(A.part(some), B), on.sum_dtype) @ weights)

        on.tiled(self.n, V.shape[0] + self.d, work)
        return out

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """Return K(rows[index], rows[columns]), columns as index by default, in the memory of `out` where that is given."""
        columns = index if columns is None else columns
        m, n = index.size, columns.size
        self.meter.add(m * n)
        K = np.empty((m, n), self.dtype) if out is None else out[: m * n].reshape(m, n)
        A, B = self.backend.subset(self.held, index), self.own(columns)

        def work(some: slice) -> None:
            K[some] = self.backend.fetch(self.tile(A.part(some), B), K.dtype)

        self.backend.tiled(m, n + self.d, work)
        return K

    def against(self, points: Matrix, *, exact: bool = True) -> ArrayAgainst:
        """Return a handle on K(rows, points)."""
        return ArrayAgainst(self, points, placed=False, exact=exact)

    def moving(self, placed: Array, *, exact: bool = False) -> ArrayAgainst:
        """Return a handle on K between the rows and points that move, in coordinates relative to the centre."""
        return ArrayAgainst(self, placed, placed=True, exact=exact)

    # Products with rows as points, through the cache.

    def _product_with(self, index: Array, V: Array) -> Array:
        """Return K(rows, rows[index]) @ V without the cache."""
        return self._product(self.held, self.own(index), V)

    def _cached_product(self, slots: Array, new: Array, index: Array, V: Array) -> Array:
        """Return the product with the kernel rows in these slots; those that are new are filled first."""
        self._fill(slots[new], index[new])
        on = self.backend
        total = on.zeros((self.n, V.shape[1]), on.sum_dtype)
        for some in blocks(slots.size, max(TILE_VALUES // (self.n + 1), 1)):
            K = on.cast(on.take(self.cache.rows, slots[some]), on.sum_dtype)
            total += K.T @ on.send(V[some], on.sum_dtype)
        return on.fetch(total)

    def _fill(self, slots: Array, index: Array) -> None:
        """Write the kernel rows of `index` into the cache."""
        points = self.own(index)

        def work(some: slice) -> None:
            K = self.tile(self.held.part(some), points)
            for k, slot in enumerate(slots):
                self.cache.rows[int(slot), some] = K[:, k]

        self.backend.tiled(self.n if index.size else 0, index.size + self.d, work)


class OnDevice:
    """Rows that were computed on a device; what is read of them comes to the host."""

    def __init__(self, backend: Backend, values: Any) -> None:
        self.backend, self.values = backend, values
        self.shape = values.shape

    def __getitem__(self, index: slice | Array) -> Array:
        some = self.values[index, :] if isinstance(index, slice) else self.backend.take(self.values, index)
        return self.backend.fetch(some)

    def held(self, dtype: np.dtype, index: Array | None) -> Held:
        """Return some of the rows, all by default, in that precision."""
        values = self.backend.cast(self.values if index is None else self.backend.take(self.values, index), dtype)
        return self.backend.with_norms(values, dtype)


def linear_rows(values: Any, like: ArrayRows) -> ArrayRows:
    """Return rows of the linear kernel that are on the device already, on the meter of others."""
    return ArrayRows(like.backend, Linear(), OnDevice(like.backend, values), like.meter, like.cache_mb)


def _check(kernel: Kernel, given: Given, backend: Backend) -> None:
    """Raise ValueError for kernels without an array form and for sparse rows that are far too many to write out."""
    if not kernel.portable:
        possible = sorted(name for name, kind in KERNELS.items() if kind.portable)
        what = f"the {kernel.name} kernel works" if kernel.name in KERNELS else "a kernel function works"
        raise ValueError(
            f"{what} on host arrays only, not on device {backend.name!r}; use device='cpu', or a kernel of {possible}"
        )
    if issparse(given.X) and given.n * given.d > WRITTEN_OUT:
        raise ValueError(
            f"{given.n:,} sparse rows of {given.d:,} features: device {backend.name!r} holds rows written out, which would "
            f"take {given.n * given.d * 4 / 2**30:,.0f} GiB; use device='cpu', or fewer features, e.g. by TruncatedSVD"
        )
