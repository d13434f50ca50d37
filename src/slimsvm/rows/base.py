"""The part of `Rows` that needs only the caller's rows in host memory: answers about few rows and few points."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ..kernels import Array, InnerKernel, Kernel, Matrix, Precomputed, dense
from ..metric import Metric
from .cache import RowCache
from .precision import USUAL, Given, Precision, narrow
from .protocol import Arrays, Dual, DualVectors, Meter, OnDemand, PairsOnDemand, Rows, SpannedRows
from .threads import one_blas_thread, one_openmp_thread

#: kernel rows are cached if one kernel value takes more multiply-adds than this
EXPENSIVE = 256
#: sparse rows of at most this many entries, zeros included, are dense for k-means
WRITTEN_OUT = 2**25


class HostArrays:
    """NumPy's arrays."""

    xp: Any = np
    is_gpu = False

    def send(self, array: Array, dtype: Any) -> Array:
        """Return a copy of an array."""
        return np.array(array, dtype=dtype, order="C")

    fetch = send

    def exp(self, exponents: Array, *, at_most_1: bool) -> Array:
        """Return exp of an array, in its own memory."""
        if at_most_1:
            np.minimum(exponents, 0, out=exponents)
        return np.exp(exponents, out=exponents)

    def permutation(self, count: int, rng: np.random.Generator) -> Array:
        """Return the numbers below `count` in random order."""
        return rng.permutation(count)


HOST = HostArrays()


class GivenRows:
    """What homes share that refer to rows in host memory; a home adds how kernel values are computed."""

    working_set: int = 2048
    dtype: np.dtype
    spent = 0
    keeps_vectors: bool = False

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
        self.cache_mb, self.error = cache_mb, error
        self.ids = np.arange(self.n) if ids is None or (not ids.size and self.n) else ids

    @property
    def centre(self) -> Array | None:
        """The mean row, if the home holds rows relative to it."""
        raise NotImplementedError

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.given.n

    @property
    def d(self) -> int:
        """The number of features."""
        return self.given.d

    def projected(self, metric: Metric) -> Any:
        """Return other rows in the same home: these in the coordinates of a metric's points."""
        values = [metric.projected(block) for _, block in self.given.blocks()]
        return self.of(np.concatenate([metric.projected(np.zeros((0, self.d))), *values]))

    def of(self, points: Matrix, *, exact: bool = False, cache: bool = False) -> Any:
        """Return other rows in the same home and on the same meter."""
        raise NotImplementedError

    def pays_to_cache(self, cost: float) -> bool:
        """Return whether reading a kernel row is faster than computing it, at `cost` multiply-adds for each value."""
        if isinstance(self.kernel, Precomputed) or not self.cache_mb:
            return False
        return cost > EXPENSIVE if isinstance(self.kernel, InnerKernel) else True

    @property
    def worth_caching(self) -> bool:
        """Whether fetching a kernel row from memory is cheaper than computing it again."""
        raise NotImplementedError

    @property
    def worth_shrinking(self) -> bool:
        """Whether rounds with fewer rows take less time; not if all kernel rows are cached."""
        return not self.worth_caching

    @property
    def arrays(self) -> Arrays:
        """Where arrays of these rows are computed with."""
        return HOST

    @property
    def cache(self) -> RowCache:
        """The kernel rows used last."""
        raise NotImplementedError

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:
        """Return K(rows, rows[index]) @ V; `keep` caches the kernel rows (None: if that is faster)."""
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

    def buffer(self, size: int) -> Array:
        """Return host memory for blocks."""
        return np.empty(size, self.dtype)

    def on_demand(self) -> OnDemand | None:
        """Return None: blocks are faster."""
        return None

    def pairs_on_demand(self, largest: int) -> PairsOnDemand | None:  # noqa: ARG002
        """Return None: blocks are faster."""
        return None

    def dual_vectors(self, problem: Dual, working: Array) -> DualVectors | None:  # noqa: ARG002
        """Return None: the host keeps the vectors of dual problems."""
        return None

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
        """Return a few rows as points of an expansion."""
        return self.kernel.points(self.given.take(index).rows(), self.ids[index])

    def main_features(self, most: int) -> Array | None:  # noqa: ARG002
        """Return None: points have all features."""
        return None

    def on_features(self, features: Array) -> Rows:
        """Raise ValueError: only sparse rows of the host can do this."""
        raise ValueError(f"rows of {type(self).__name__} have points of all {self.d} features, not of {features.size}")

    def spanned(self, wide: int, several: int, share: float) -> SpannedRows | None:  # noqa: ARG002
        """Return None: points move in all features."""
        return None

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
        return placed if self.centre is None else placed - self.centre

    def outward(self, placed: Array) -> Array:
        """Return points relative to the centre as points of an expansion."""
        return self.kernel.inside(placed.copy() if self.centre is None else placed + self.centre)

    def diagonal(self) -> Array:
        """Return k(x_i, x_i) for each row."""
        self.meter.add(self.n)
        parts = [self.kernel.diagonal(rows, self.ids[some]) for some, rows in self.given.blocks()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def among(self, A: Matrix, B: Matrix | None = None, *, placed: bool = False) -> Array:
        """Return K(A, B) in float64 for a few points, B = A by default; `placed` points are relative to the centre."""
        B = A if B is None else B
        self.meter.add(A.shape[0] * B.shape[0])
        if isinstance(self.kernel, Precomputed):
            return self.kernel(self.given.take(self._places(A)).rows(), B)
        if issparse(A) or issparse(B):
            return self.kernel(A.astype(np.float64, copy=False), B.astype(np.float64, copy=False))
        A, B = (A, B) if placed else (self.inward(A), self.inward(B))
        return self.kernel(self.kernel.inside(A), B)

    def pullback_among(self, A: Array, Z: Array, K: Array, W: Array) -> Array:
        """Return sum_i W_ij dk(a_i, z_j) / dz_j for each of a few points z_j, (m, d), with K = among(A, Z)."""
        self.meter.add(A.shape[0] * Z.shape[0])
        return self.kernel.pullback(self.kernel.inside(A), Z, K, W)


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
