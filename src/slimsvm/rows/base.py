"""The part of `Rows` that needs only the caller's rows in host memory: answers about few rows and few points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ..kernels import Array, InnerKernel, Kernel, Matrix, Precomputed, dense
from ..metric import Metric
from .precision import USUAL, Given, Precision, narrow
from .protocol import Meter, Rows
from .threads import one_blas_thread, one_openmp_thread


def _smallest(values: Array, count: int) -> Array:
    """Return the positions of the `count` smallest values, in any order."""
    return np.argpartition(values, count - 1)[:count] if 0 < count < values.size else np.arange(values.size)[:count]


class RowCache:
    """The most recently used kernel rows, as many as fit in the given memory.

    `empty` allocates the memory, on a device for example.
    """

    def __init__(
        self, n: int, dtype: np.dtype, megabytes: float, empty: Callable[[tuple[int, int], np.dtype], Any] = np.empty
    ) -> None:
        slots = int(megabytes * 2**20 // (n * dtype.itemsize)) if n else 0
        self.rows = empty((min(slots, n), n), dtype)  # the system allocates pages when they are written
        self.slot_of = np.full(n, -1, dtype=np.intp)
        self.held = np.full(self.rows.shape[0], -1, dtype=np.intp)
        self.used = np.zeros(self.rows.shape[0], dtype=np.int64)
        self.clock = 0

    def seat(self, index: Array) -> tuple[Array, Array]:
        """Return slots for as many of the rows `index` as fit, and which of these must be filled.

        Returns (slots, new): slots[k] is the slot of index[k] or -1; new[k] is whether it must be filled.
        """
        self.clock += 1
        slots = self.slot_of[index]
        self.used[slots[slots >= 0]] = self.clock
        missing = np.flatnonzero(slots < 0)
        free = _smallest(self.used, missing.size)  # the least recently used
        free = free[self.used[free] < self.clock]
        missing = missing[: free.size]
        evicted = self.held[free]
        self.slot_of[evicted[evicted >= 0]] = -1
        self.held[free] = index[missing]
        self.slot_of[index[missing]] = free
        self.used[free] = self.clock
        slots[missing] = free
        new = np.zeros(index.size, dtype=bool)
        new[missing] = True
        return slots, new


#: kernel rows are cached if one kernel value takes more multiply-adds than this
EXPENSIVE = 256
#: sparse rows of at most this many entries, zeros included, are dense for k-means
WRITTEN_OUT = 2**25


class GivenRows(Rows):
    """What homes share that refer to rows in host memory; a home adds how kernel values are computed."""

    working_set: int = 2048
    spent = 0
    arrays: Any  # the arrays of the home, as `KernelMatrix` asks for them
    _cache: RowCache | None

    def __init__(
        self,
        kernel: Kernel,
        given: Given,
        meter: Meter | None,
        cache_mb: float,
        error: float,
        ids: Array | None,
        precision: Precision = USUAL,
    ) -> None:
        self.kernel, self.given, self.meter, self.precision = kernel, given, meter or Meter(), precision
        self.cache_mb, self.error, self._cache = cache_mb, error, None
        self.ids = np.arange(self.n) if ids is None or (not ids.size and self.n) else ids

    @property
    def n(self) -> int:
        return self.given.n

    @property
    def d(self) -> int:
        return self.given.d

    def projected(self, metric: Metric) -> Any:
        """Return other rows in the same home: these in the coordinates of a metric's points."""
        values = [metric.projected(block) for _, block in self.given.blocks()]
        return self.of(np.concatenate([metric.projected(np.zeros((0, self.d))), *values]))

    def pays_to_cache(self, cost: float) -> bool:
        """Return whether reading a kernel row is faster than computing it, at `cost` multiply-adds for each value."""
        if isinstance(self.kernel, Precomputed) or not self.cache_mb:
            return False
        return cost > EXPENSIVE if isinstance(self.kernel, InnerKernel) else True

    @property
    def cache(self) -> RowCache:
        """The kernel rows used last; memory is allocated with the first row."""
        if self._cache is None:
            self._cache = RowCache(self.n, self.dtype, self.cache_mb, self.arrays.empty)
        return self._cache

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:
        if not (self.worth_caching if keep is None else keep):
            self.meter.add(self.n * index.size)
            return self._product_with(index, V)
        slots, new = self.cache.seat(index)
        seated = slots >= 0
        self.meter.add(self.n * int(new.sum() + (~seated).sum()))
        out = np.zeros((self.n, V.shape[1]))
        if seated.any():
            out += self._cached_product(slots[seated], new[seated], index[seated], V[seated])
        if not seated.all():
            out += self._product_with(index[~seated], V[~seated])
        return out

    def _cached_product(self, slots: Array, new: Array, index: Array, V: Array) -> Array:
        raise NotImplementedError

    def _product_with(self, index: Array, V: Array) -> Array:
        raise NotImplementedError

    def _places(self, points: Matrix) -> Array:
        """Return the places of the rows with these numbers."""
        order = np.argsort(self.ids, kind="stable")
        numbers = np.asarray(points).ravel()
        place = np.minimum(np.searchsorted(self.ids, numbers, sorter=order), self.n - 1)
        found = order[place]
        if (self.ids[found] != numbers).any():
            raise ValueError(
                "a precomputed kernel has values for the given rows only, and a point is not one of them; give the rows "
                "that the model was trained on"
            )
        return found

    def take(self, index: Array) -> Matrix:
        return self.kernel.points(self.given.take(index).rows(), self.ids[index])

    def mean(self, index: Array) -> Array:
        return dense(self.given.take(index).rows().mean(axis=0))[None]

    def means(
        self, index: Array, count: int, rng: np.random.Generator, *, rounds: int, weights: Array | None = None
    ) -> Array:
        return means(self.given.take(index).rows(), count, rounds, rng, weights)

    def diagonal(self) -> Array:
        self.meter.add(self.n)
        parts = [self.kernel.diagonal(rows, self.ids[some]) for some, rows in self.given.blocks()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def among(self, A: Matrix, B: Matrix | None = None, *, placed: bool = False) -> Array:
        B = A if B is None else B
        if not (isinstance(self.kernel, Precomputed) or issparse(A) or issparse(B)):
            return super().among(A, B, placed=placed)
        self.meter.add(A.shape[0] * B.shape[0])
        if isinstance(self.kernel, Precomputed):
            return self.kernel(self.given.take(self._places(A)).rows(), B)
        return self.kernel(A.astype(np.float64, copy=False), B.astype(np.float64, copy=False))


def means(
    X: Matrix,
    count: int,
    rounds: int,
    rng: np.random.Generator,
    weights: Array | None = None,
    written_out: int = WRITTEN_OUT,
) -> Array:
    """Return the centres of at most `count` clusters of the rows, by `rounds` rounds of k-means.

    Sparse rows of up to `written_out` entries are made dense. scikit-learn's k-means centres dense rows only, so the same
    seed would give other means for sparse rows.
    """
    X = narrow(X) if issparse(X) and X.shape[0] * X.shape[1] > written_out else dense(X)
    kmeans = KMeans(min(count, X.shape[0]), n_init=1, max_iter=rounds, random_state=int(rng.integers(2**31)))
    # threads sum in any order, so the last digit would not be reproducible
    with warnings.catch_warnings(), one_openmp_thread(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # about fewer distinct rows than clusters
        return kmeans.fit(X, sample_weight=weights).cluster_centers_
