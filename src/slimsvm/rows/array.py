"""Rows on a device: torch (CUDA, MPS, CPU), CuPy and array_api_strict through the array API standard.

Rows are sent to the device once, in the precision that `precision` allows. With a translation-invariant kernel they are
centred first. Sparse rows become dense there. The caller's array is not copied on the host: a few rows for an expansion or
for k-means are read from it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..kernels import KERNELS, RBF, Array, Custom, InnerKernel, Kernel, Linear, Matrix, Precomputed
from ..metric import Metric
from .array_matrix import ArrayDual, ArrayMatrix
from .array_metric import metric_product
from .backends import FLOAT32, FLOAT64, Backend, Held, is_out_of_memory
from .base import GivenRows
from .host import HostRows
from .precision import FLOAT32_ERROR, MIXED_ERROR, USUAL, Given, Precision, fits_float32, mean_row, rounding_error
from .protocol import Dual, DualVectors, Meter, OnDemand
from .threads import blocks

#: the most numbers that sparse rows may have when they are made dense on a device
WRITTEN_OUT = 1 << 33
#: rows whose mean is the centre; more: no better centre, and the host works longer than the device
CENTRE_ROWS = 256
#: float32 sums are used where the allowed error of kernel values is above this: summing adds as much as errors of 1e-6
FLOAT32_SUMS = 2e-6
#: the working set of a GPU with at least `MANY_ROWS` rows. A larger one saves rounds, which are slow with many rows. Its
#: pair steps are slower, because the block exceeds the host's caches, which does not pay with fewer rows
GPU_WORKING_SET, MANY_ROWS = 4096, 1 << 17
#: bytes of rows up to which the host evaluates kernel rows on demand; with more, a device is faster in spite of its copies
FEW_BYTES = 1 << 19


class ArrayRows(GivenRows):
    """Rows on the device of a `Backend`; the other arguments are those of `HostRows`."""

    def __init__(
        self,
        backend: Backend,
        kernel: Kernel,
        X: Matrix,
        meter: Meter | None = None,
        cache_mb: float = 512.0,
        error: float = FLOAT32_ERROR,
        ids: Array | None = None,
        *,
        index: Array | None = None,
        precision: Precision = USUAL,
    ) -> None:
        super().__init__(kernel, Given(X, index), meter, cache_mb, error, ids, precision)
        _check(kernel, self.given, backend)
        self.backend = self.arrays = backend
        centred = isinstance(kernel, InnerKernel) and kernel.translation_invariant and self.n > 0
        self.centre = mean_row(_some_of(self.given)) if centred else None
        self.held = self._uploaded()
        check_finite(self.held.radius)
        self.dtype = self.value_dtype(self.held)
        self.working_set = GPU_WORKING_SET if backend.is_gpu and self.n >= MANY_ROWS else GivenRows.working_set

    @property
    def worth_caching(self) -> bool:
        """Whether reading a kernel row from memory is faster than computing it again; not on a GPU."""
        return not (self.backend.is_gpu and isinstance(self.kernel, InnerKernel)) and self.pays_to_cache(self.d)

    @property
    def worth_shrinking(self) -> bool:
        """Whether rounds with fewer rows take less time; not on a GPU, where other work takes most of it."""
        return not self.backend.is_gpu and super().worth_shrinking

    @property
    def keeps_vectors(self) -> bool:
        on = self.backend
        return on.is_gpu and on.is_torch and on.has_float64 and isinstance(self.kernel, InnerKernel)

    # Precision.

    def _uploaded(self) -> Held:
        """Return the rows on the device, in float32 where the work is large and the rounding small."""
        float32_pays = self.precision.is_large(self.n, self.n, self.d) or not self.backend.has_float64
        if isinstance(self.kernel, InnerKernel) and float32_pays and self.backend.plain_float32:
            with np.errstate(over="ignore", invalid="ignore"):  # the largest norm tells
                rows = self._sent(FLOAT32)
            if fits_float32(rows.radius) and self.rounding(rows) <= self.precision.most(self.error):
                return rows
        return self.in_float64()

    def in_float64(self) -> Held:
        """Return the rows in float64; raise ValueError where the device has none."""
        self.backend.needs_float64(f"float32 is too coarse for the {self.kernel.name} kernel with these rows")
        return self._sent(FLOAT64)

    def _sent(self, dtype: np.dtype) -> Held:
        if isinstance(self.given.X, OnDevice):
            return self.given.X.held(dtype, self.given.index, self.centre)
        return self.backend.upload(self.given, dtype, self.centre)

    def value_dtype(self, rows: Held) -> np.dtype:
        """Return the precision of kernel values of these rows, which may be lower than that of the rows."""
        mixed = isinstance(self.kernel, RBF) and self.error >= MIXED_ERROR and self.backend.plain_float32
        return FLOAT32 if mixed and self.precision.is_large(self.n, self.n, self.d) else rows.dtype

    def rounding(self, rows: Held) -> float:
        """Return the error of kernel values from float32 inner products with these rows or points."""
        return rounding_error(self.kernel, self.d, rows.radius) if isinstance(self.kernel, InnerKernel) else 0.0

    def pair(self, points: Matrix) -> tuple[Held, Held]:
        """Return the rows and points on the device; in float64 if points are too far out for float32."""
        if isinstance(self.kernel, Precomputed):
            return self.held, self.backend.columns(points)
        given = Given(points)
        there = self.backend.upload(given, self.held.dtype, self.centre)
        if self.held.dtype == FLOAT32 and self.rounding(there) > self.precision.most(self.error):
            return self.in_float64(), self.backend.upload(given, FLOAT64, self.centre)
        return self.held, there

    def own(self, index: Array) -> Held:
        """Return some of the rows as points."""
        if isinstance(self.kernel, Precomputed):
            return self.backend.columns(self.ids[index])
        return self.backend.subset(self.held, index)

    # Rows as rows.

    def subset(self, index: Array) -> ArrayRows:
        part = copy.copy(self)
        part.given, part.ids, part.held = self.given.take(index), self.ids[index], self.backend.subset(self.held, index)
        part.cache_mb, part._cache = 0.0, None
        return part

    def of(self, points: Matrix, *, exact: bool = False, cache: bool = False) -> ArrayRows | HostRows:
        """Return other rows on the same meter; with a precomputed kernel, those of these rows that have the given numbers.

        On a device without float64, rows with exact kernel values are on the host.
        """
        if isinstance(self.kernel, Precomputed):
            return self.subset(self._places(points))
        error, cache_mb = 0.0 if exact else self.error, self.cache_mb if cache else 0.0
        if exact and not self.backend.has_float64:
            return HostRows(self.kernel, points, self.meter, cache_mb, error, precision=self.precision)
        return ArrayRows(self.backend, self.kernel, points, self.meter, cache_mb, error, precision=self.precision)

    def fetch(self, index: Array) -> HostRows:
        return HostRows(self.kernel, self.given.take(index).rows(), self.meter, 0.0, 0.0, self.ids[index])

    # Kernel values.

    def evaluator(self, B: Held, dtype: np.dtype | None = None, *, summed: bool = False) -> Callable[[Held], Any]:
        """Return a function from rows A to K(A, B) on the device, by default in the precision of B.

        Values that are only `summed` are not clipped to 1 after rounding, which saves a pass over the tile.
        """
        return evaluator(self.backend, self.kernel, B, dtype, summed=summed)

    def diagonal(self) -> Array:
        if not isinstance(self.kernel, Custom):
            return super().diagonal()
        self.meter.add(self.n)
        values = [self.evaluator(one)(one) for one in (self.held.part(slice(i, i + 1)) for i in range(self.n))]
        return np.array([float(value[0, 0]) for value in values])

    def among(self, A: Matrix, B: Matrix | None = None, *, placed: bool = False) -> Array:
        if not isinstance(self.kernel, Custom):
            return super().among(A, B, placed=placed)
        B = A if B is None else B
        self.meter.add(A.shape[0] * B.shape[0])
        left, right = (self.backend.points(points, self.held.dtype).values for points in (A, B))
        return self.backend.fetch(self.kernel.values(left, right, self.backend.xp))

    def product(self, points: Matrix, V: Array, metric: Metric | None = None) -> Array:
        """Return K(rows, points) @ V."""
        if metric is not None and metric.projection is not None:
            return self.projected(metric).product(points, V, metric.within)
        self.meter.add(self.n * points.shape[0])
        if metric is not None:
            return metric_product(self, points, V, metric)
        return self._product(*self.pair(points), V)

    def sum_precision(self, dtype: np.dtype) -> np.dtype:
        """Return the precision in which kernel values of a precision are summed."""
        return FLOAT32 if dtype == FLOAT32 and self.error >= FLOAT32_SUMS else self.backend.sum_dtype

    def form(self) -> Any:
        """Return the rows as points of `squared_distance_form`, (n, d + 2); None for other kernels than rbf."""
        if not isinstance(self.kernel, RBF):
            return None
        return squared_distance_form(self.backend, self.held, self.kernel.gamma).T

    def _product(self, A: Held, B: Held, V: Array) -> Array:
        on, dtype = self.backend, self.value_dtype(A)
        sums = self.sum_precision(dtype)
        weights, values, out = on.send(V, sums), self.evaluator(B, dtype, summed=True), on.empty((self.n, V.shape[1]), sums)

        def work(some: slice) -> None:
            out[some, :] = on.cast(values(A.part(some)), sums) @ weights

        on.tiled(self.n, V.shape[0] + self.d, work)
        return on.fetch(out)

    def buffer(self, size: int) -> Array:
        return self.backend.host_memory(size, self.dtype)

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        m, n = index.size, index.size if columns is None else columns.size
        self.meter.add(m * n)
        K = np.empty((m, n), self.dtype) if out is None else out[: m * n].reshape(m, n)
        A = self.backend.subset(self.held, index)
        by_columns = columns is not None or isinstance(self.kernel, Precomputed)
        B = self.own(index if columns is None else columns) if by_columns else A
        values = self.evaluator(B, self.dtype)

        def work(some: slice) -> None:
            self.backend.fetch_into(values(A.part(some)), K[some])

        self.backend.tiled(m, n + self.d, work)
        return K

    def on_demand(self) -> OnDemand | None:
        """Return kernel rows that compiled code of the host evaluates, for few rows; None for others.

        A solution needs few kernel rows, and copies of blocks from a device would take longer than these rows.
        """
        if not isinstance(self.kernel, InnerKernel) or self.n * self.d * FLOAT32.itemsize > FEW_BYTES:
            return None
        X = self.given.rows()
        X = np.asarray(X) if isinstance(X, OnDevice) else X
        return HostRows(self.kernel, X, self.meter, 0.0, self.error, self.ids, precision=self.precision).on_demand()

    def dual_vectors(self, problem: Dual, working: Array) -> DualVectors | None:
        try:
            return ArrayDual(self, problem, working)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return None

    def against(self, points: Matrix, *, exact: bool = True) -> ArrayMatrix:
        return ArrayMatrix(self, points, placed=False, exact=exact)

    def moving(self, placed: Array, *, exact: bool = False) -> ArrayMatrix:
        return ArrayMatrix(self, placed, placed=True, exact=exact)

    def linear(self, values: Array) -> ArrayRows:
        """Return rows of other features with the linear kernel, on the same device and meter."""
        return ArrayRows(self.backend, Linear(), values, self.meter, self.cache_mb, precision=self.precision)

    # Products with rows as points, through the cache.

    def _product_with(self, index: Array, V: Array) -> Array:
        """Return K(rows, rows[index]) @ V without the cache."""
        return self._product(self.held, self.own(index), V)

    def _cached_product(self, slots: Array, new: Array, index: Array, V: Array) -> Array:
        """Return the product with the kernel rows in these slots; those that are new are filled first."""
        self._fill(slots[new], index[new])
        on = self.backend
        total = on.zeros((self.n, V.shape[1]), on.sum_dtype)
        for some in blocks(slots.size, max(on.tile_values // (self.n + 1), 1)):
            K = on.cast(on.take(self.cache.rows, slots[some]), on.sum_dtype)
            total += K.T @ on.send(V[some], on.sum_dtype)
        return on.fetch(total)

    def _fill(self, slots: Array, index: Array) -> None:
        """Write the kernel rows of `index` into the cache."""
        values = self.evaluator(self.own(index), self.dtype)

        def work(some: slice) -> None:
            K = values(self.held.part(some))
            for k, slot in enumerate(slots):
                self.cache.rows[int(slot), some] = K[:, k]

        self.backend.tiled(self.n if index.size else 0, index.size + self.d, work)


def evaluator(
    on: Backend, kernel: Kernel, B: Held, dtype: np.dtype | None = None, *, summed: bool = False
) -> Callable[[Held], Any]:
    """Return a function from rows A to K(A, B) on the device; see `ArrayRows.evaluator`."""
    if isinstance(kernel, RBF):
        right = squared_distance_form(on, B, kernel.gamma)
        return lambda A: on.exp(on.cast(A.lifted @ right, dtype or B.dtype), at_most_1=not summed)
    if isinstance(kernel, InnerKernel):
        return lambda A: kernel.tail(A.values @ B.values.T, A.norms, B.norms, on.xp)
    return lambda A: kernel.values(A.values, B.values, on.xp)


def squared_distance_form(on: Backend, B: Held, gamma: float) -> Any:
    """Return gamma (2 z, -1, -|z|^2) of the points z as columns, whose products with lifted rows are -gamma |x - z|^2."""
    d = B.d
    right = on.xp.concat([B.lifted[:, :d], B.lifted[:, d + 1 :], B.lifted[:, d : d + 1]], axis=1)
    right[:, :d] *= 2 * gamma
    right[:, d:] *= -gamma
    return right.T


def check_finite(radius: float) -> None:
    """Raise ValueError if the largest squared norm of the rows is not a number."""
    if not np.isfinite(radius):
        raise ValueError("rows must be finite numbers whose squares can be summed; some are not. Scale or drop them")


class OnDevice:
    """Rows that are on a device already; indexing copies rows to the host."""

    def __init__(self, backend: Backend, values: Any) -> None:
        self.backend, self.values = backend, values
        self.shape, self.ndim = tuple(values.shape), 2
        self.dtype = FLOAT64

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.backend.fetch(self.values, np.dtype(dtype or FLOAT64))

    def __getitem__(self, index: slice | Array) -> Array:
        some = self.values[index, :] if isinstance(index, slice) else self.backend.take(self.values, index)
        return self.backend.fetch(some)

    def variance(self, weights: Array | None) -> float:
        """Return the variance of all entries; a weight counts a row as many times."""
        on, spread, row_mean = self.backend, np.zeros(self.shape[0]), np.zeros(self.shape[0])

        def means(some: slice) -> None:
            row_mean[some] = on.fetch(on.xp.mean(on.cast(self.values[some, :], on.sum_dtype), axis=1))

        on.tiled(self.shape[0], 2 * self.shape[1], means)
        mean = float(np.average(row_mean, weights=weights))

        def spreads(some: slice) -> None:
            away = on.cast(self.values[some, :], on.sum_dtype) - mean
            spread[some] = on.fetch(on.xp.mean(away * away, axis=1))

        on.tiled(self.shape[0], 2 * self.shape[1], spreads)
        return float(np.average(spread, weights=weights))

    def largest(self) -> float:
        """Return the largest absolute value; infinity or NaN if there is one."""
        return float(self.backend.xp.max(self.backend.xp.abs(self.values)))

    def held(self, dtype: np.dtype, index: Array | None, centre: Array | None) -> Held:
        """Return some of the rows, all by default, in that precision and relative to the centre."""
        on = self.backend
        values = self.values if index is None else on.take(self.values, index)
        return on.with_norms(values, dtype, centre)


def on_device(backend: Backend, X: Any) -> OnDevice:
    """Return an array of a library with devices as rows on the backend's device, without a copy if they are there."""
    if X.ndim != 2:
        raise ValueError(f"rows must be a matrix of two axes, but X has {X.ndim}: {tuple(X.shape)}")
    values = backend.xp.asarray(X, device=backend.device)
    if values.dtype not in (backend.xp.float32, getattr(backend.xp, "float64", None)):
        values = backend.cast(values, backend.sum_dtype)
    return OnDevice(backend, values)


def _some_of(given: Given) -> Given:
    """Return at most CENTRE_ROWS of the rows, evenly spread."""
    return given.take(np.arange(0, given.n, -(-given.n // CENTRE_ROWS)))


def _check(kernel: Kernel, given: Given, backend: Backend) -> None:
    """Raise ValueError for kernels without an array form and for sparse rows that are too large to be made dense."""
    if not kernel.portable:
        possible = sorted(name for name, kind in KERNELS.items() if kind.portable)
        raise ValueError(
            f"the {kernel.name} kernel works on host arrays only, not on device {backend.name!r}; "
            f"use device='cpu', or a kernel of {possible}"
        )
    if issparse(given.X) and given.n * given.d > WRITTEN_OUT:
        raise ValueError(
            f"{given.n:,} sparse rows of {given.d:,} features: device {backend.name!r} holds rows written out, which would "
            f"take {given.n * given.d * 4 / 2**30:,.0f} GiB; use device='cpu', or fewer features, e.g. by TruncatedSVD"
        )
