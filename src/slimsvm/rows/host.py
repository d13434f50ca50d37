"""The host's own home for rows: arrays in memory, tiles in threads, a cache of kernel rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .._core import core
from ..kernels import Array, InnerKernel, Kernel, Linear, Matrix, Precomputed, dense
from .cache import RowCache
from .host_against import HostAgainst
from .precision import FLOAT32_ERROR, Given, Prepared, narrow, plain_rows, prepare
from .protocol import Meter
from .threads import Crew, blocks, one_blas_thread, one_openmp_thread
from .tiles import make_tiles, tiled_matrix, tiled_product, tiles_against

#: multiply-adds of one evaluation above which a cached kernel row is cheaper than a new one
EXPENSIVE = 256
#: entries of sparse rows up to which k-means has them written out
WRITTEN_OUT = 2**25


class HostRows:
    """Rows in host memory. Dense rows are held once, in the precision of the tiles; the caller's array is only referred to.

    `index` picks rows of X without a copy of them. `error` is how far off a kernel value may be, `cache_mb` the memory for
    kernel rows, `ids` the numbers of the rows in the training set (0, 1, ... by default).
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        meter: Meter | None = None,
        cache_mb: float = 512.0,
        error: float = FLOAT32_ERROR,
        ids: Array | None = None,
        *,
        index: Array | None = None,
        crew: Crew | None = None,
    ) -> None:
        self.kernel, self.meter, self.cache_mb, self.error = kernel, meter or Meter(), cache_mb, error
        self.given = Given(X, index)
        self.ids = np.arange(self.n) if ids is None or (not ids.size and self.n) else ids
        self.prepared = prepare(kernel, self.given, self.n, error)
        self.crew = crew or Crew()
        self._cache: RowCache | None = None

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.given.n

    @property
    def d(self) -> int:
        """The number of features."""
        return self.given.d

    @property
    def dtype(self) -> np.dtype:
        """The precision of kernel values."""
        return self.prepared.values.dtype if isinstance(self.kernel, InnerKernel) else np.dtype(np.float64)

    @property
    def cache(self) -> RowCache:
        """The kernel rows used last; its memory is asked for when the first row is kept."""
        if self._cache is None:
            self._cache = RowCache(self.n, self.dtype, self.cache_mb)
        return self._cache

    # Rows as rows.

    def subset(self, index: Array) -> HostRows:
        """Return some of the rows, on the same meter, without a cache."""
        part = copy.copy(self)
        part.given, part.ids, part.prepared = self.given.take(index), self.ids[index], self.prepared.take(index)
        part.cache_mb, part._cache = 0.0, None
        return part

    def of(self, points: Matrix, *, exact: bool = False, cache: bool = False) -> HostRows:
        """Return other rows on the same meter; of a precomputed kernel, those of these rows with the numbers given."""
        if isinstance(self.kernel, Precomputed):
            return self.subset(self._places(points))
        error, cache_mb = 0.0 if exact else self.error, self.cache_mb if cache else 0.0
        return HostRows(self.kernel, points, self.meter, cache_mb, error, crew=self.crew)

    def _places(self, points: Matrix) -> Array:
        """Return where the rows with these numbers are."""
        order = np.argsort(self.ids, kind="stable")
        numbers = np.asarray(points).ravel()
        place = np.minimum(np.searchsorted(self.ids, numbers, sorter=order), self.n - 1)
        found = order[place]
        if (self.ids[found] != numbers).any():
            raise ValueError(
                "a precomputed kernel has values for the rows given alone, and a point is none of them; give the rows "
                "that the model was trained on"
            )
        return found

    def fetch(self, index: Array) -> HostRows:
        """Return some of the rows with float64 kernel values."""
        chosen = self.given.take(index)
        return HostRows(self.kernel, chosen.rows(), self.meter, 0.0, 0.0, self.ids[index], crew=self.crew)

    def take(self, index: Array) -> Matrix:
        """Return a few rows as an expansion keeps them."""
        return self.kernel.points(self.given.take(index).rows(), self.ids[index])

    def mean(self, index: Array) -> Array:
        """Return the mean of some rows, (1, d)."""
        return dense(self.given.take(index).rows().mean(axis=0))[None]

    def means(
        self, index: Array, count: int, rng: np.random.Generator, *, rounds: int, weights: Array | None = None
    ) -> Array:
        """Return the centres of at most `count` clusters of some rows, by k-means."""
        return means(self.given.take(index).rows(), count, rounds, rng, weights)

    def sample(self, most: int, rng: np.random.Generator) -> Array:
        """Return the numbers of all rows, or a sorted random subset of `most` of them."""
        rows = np.arange(self.n)
        return rows if rows.size <= most else np.sort(rng.choice(rows, most, replace=False))

    def inward(self, points: Matrix) -> Array:
        """Return points relative to the rows' centre, dense float64."""
        placed = dense(points).astype(np.float64)
        return placed if self.prepared.centre is None else placed - self.prepared.centre

    def outward(self, placed: Array) -> Array:
        """Return points relative to the centre as an expansion has them."""
        return placed.copy() if self.prepared.centre is None else placed + self.prepared.centre

    # Kernel values.

    def product(self, points: Matrix, V: Array) -> Array:
        """Return K(rows, points) @ V."""
        self.meter.add(self.n * points.shape[0])
        return tiled_product(tiles_against(self.kernel, self.prepared, self.given, points, self.error), V, self.crew)

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """Return K(rows[index], rows[columns]), columns as index by default, in the memory of `out` where that is given."""
        columns = index if columns is None else columns
        self.meter.add(index.size * columns.size)
        return tiled_matrix(make_tiles(self.kernel, self.prepared.take(index), self._points(columns)), self.crew, out)

    def diagonal(self) -> Array:
        """Return k(x_i, x_i) for each row."""
        self.meter.add(self.n)
        return self.kernel.diagonal(self.given.rows(), self.ids)

    def among(self, A: Matrix, B: Matrix | None = None) -> Array:
        """Return K(A, B) in float64 for a few points, B = A by default."""
        B = A if B is None else B
        self.meter.add(A.shape[0] * B.shape[0])
        if isinstance(self.kernel, Precomputed):
            return self.kernel(self.given.take(self._places(A)).rows(), B)
        return self.kernel(A, B)

    def pullback_among(self, A: Array, Z: Array, K: Array, W: Array) -> Array:
        """Return sum_i W_ij dk(a_i, z_j) / dz_j for each of a few points z_j, (m, d), with K = among(A, Z)."""
        self.meter.add(A.shape[0] * Z.shape[0])
        return self.kernel.pullback(A, Z, K, W)

    def against(self, points: Matrix, *, exact: bool = True) -> HostAgainst:
        """Return a handle on K(rows, points)."""
        return HostAgainst(self, points, placed=False, exact=exact)

    def moving(self, placed: Array, *, exact: bool = False) -> HostAgainst:
        """Return a handle on K between the rows and points that move, in coordinates relative to the centre."""
        return HostAgainst(self, placed, placed=True, exact=exact)

    def share_out(self, work: Callable[[int], None], count: int) -> None:
        """Call work(k) for each k in range(count), one in each thread."""

        def each(numbers: slice) -> None:
            for number in range(numbers.start, numbers.stop):
                work(number)

        self.crew.run(each, count, 1)

    def _points(self, index: Array) -> Prepared:
        if isinstance(self.kernel, InnerKernel):
            return self.prepared.take(index)
        return plain_rows(self.take(index))

    # Products with rows as points, through the cache.

    @property
    def worth_caching(self) -> bool:
        """Whether fetching a kernel row from memory is cheaper than computing it again."""
        if isinstance(self.kernel, Precomputed) or not self.cache_mb:
            return False
        if not isinstance(self.kernel, InnerKernel):
            return True
        values = self.prepared.values
        return 3 * values.nnz / self.n > EXPENSIVE if self.prepared.sparse else values.shape[1] > EXPENSIVE

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:
        """Return K(rows, rows[index]) @ V; with `keep`, by default where that pays, kernel rows are cached."""
        keep = self.worth_caching if keep is None else keep
        slots, new = self.cache.seat(index) if keep else (np.full(index.size, -1), np.zeros(index.size, dtype=bool))
        seated = slots >= 0
        out = np.zeros((self.n, V.shape[1]))
        if seated.any():
            self._add_cached(slots[seated], new[seated], index[seated], V[seated], out)
        if not seated.all():
            self.meter.add(self.n * int((~seated).sum()))
            rest = make_tiles(self.kernel, self.prepared, self._points(index[~seated]))
            out += tiled_product(rest, V[~seated], self.crew)
        return out

    def _add_cached(self, slots: Array, new: Array, index: Array, V: Array, out: Array) -> None:
        fresh = make_tiles(self.kernel, self.prepared, self._points(index[new]))
        fresh_slots = slots[new]
        self.meter.add(self.n * fresh_slots.size)
        weights = np.ascontiguousarray(V.T, dtype=self.dtype)
        sums = np.zeros((V.shape[1], self.n))

        def work(strip: slice) -> None:
            for cols in blocks(fresh_slots.size, fresh.shape[1]):
                self.cache.rows[fresh_slots[cols], strip] = fresh.transposed(strip, cols)
            for weight, total in zip(weights, sums, strict=True):
                self._add_rows(slots, weight, strip, total)

        self.crew.run(work, self.n, fresh.shape[0])
        out += sums.T

    def _add_rows(self, slots: Array, weight: Array, strip: slice, total: Array) -> None:
        if self.dtype == np.float32:
            core.sum_rows(self.cache.rows, slots, weight, strip.start, strip.stop, total)
        else:
            total[strip] += weight @ self.cache.rows[slots, strip]

    # Until every method speaks the protocol.

    @property
    def X(self) -> Matrix:  # noqa: D102, N802
        return self.given.rows()

    @property
    def rows(self) -> Prepared:  # noqa: D102
        return self.prepared

    def matrix(self, points: Matrix) -> Array:  # noqa: D102
        self.meter.add(self.n * points.shape[0])
        return tiled_matrix(tiles_against(self.kernel, self.prepared, self.given, points, self.error), self.crew)

    def points(self, index: Array) -> Matrix:  # noqa: D102
        return self.take(index)


def linear_rows(values: Array, like: HostRows) -> HostRows:
    """Return rows of the linear kernel, on the meter and in the threads of others."""
    return HostRows(Linear(), values, like.meter, like.cache_mb, crew=like.crew)


def means(X: Matrix, count: int, rounds: int, rng: np.random.Generator, weights: Array | None = None) -> Array:
    """Return the centres of at most `count` clusters of the rows, by so many rounds of k-means.

    Sparse rows are written out unless they are many: k-means centres dense rows only, and so a seed would give other
    means for the same rows.
    """
    X = narrow(X) if issparse(X) and X.shape[0] * X.shape[1] > WRITTEN_OUT else dense(X)
    kmeans = KMeans(min(count, X.shape[0]), n_init=1, max_iter=rounds, random_state=int(rng.integers(2**31)))
    # threads would sum in any order, and a seed would no longer fix the last digit
    with warnings.catch_warnings(), one_openmp_thread(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct rows than clusters
        return kmeans.fit(X, sample_weight=weights).cluster_centers_
