"""What every home of rows offers: the only place that holds rows and evaluates kernels.

A home keeps n rows of d features somewhere (host arrays, a GPU, a file, a cluster) and answers with small arrays on the
host. Trainers, reducers and solvers speak this protocol and nothing else. Vectors with one number per row (labels, weights,
responses) may live on the host. The rows and every matrix of n x m kernel values may not be assumed there.

    rows.product(points, V)      K(rows, points) @ V, in a metric if one is given
    rows.block(index)            the small matrix K(rows[index], rows[index])
    rows.against(points)         the matrix K(rows, points), which stays where the rows are (`kernel_matrix`)

Every kernel evaluation is counted on the `Meter`, gradients and kernel values among points included.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..kernels import Array, Kernel, Matrix, dense
from ..metric import Metric

if TYPE_CHECKING:
    from .kernel_matrix import KernelMatrix


class Meter:
    """Counts kernel evaluations, from any thread."""

    def __init__(self) -> None:
        self.evaluations = 0
        self.lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Meter], tuple[()]]:
        """Return a new meter: another process counts its own evaluations."""
        return Meter, ()

    def add(self, evaluations: int) -> None:
        """Add to the count."""
        with self.lock:
            self.evaluations += evaluations


class Rows(Protocol):
    """n rows with a kernel, in one home. Homes derive from it; what a home does not offer is None."""

    kernel: Kernel
    meter: Meter
    #: the precision of kernel values
    dtype: np.dtype
    #: the row to which the rows' own coordinates are relative; None for the origin
    centre: Array | None
    #: the rows' numbers in the training set, which are the points of a precomputed kernel
    ids: Array
    #: the work of products so far, if later products depend on it; part of the state of a run that can be resumed
    spent: int
    #: rows in the working set of methods that have one; larger where products with all rows are slow
    working_set: int

    @property
    def n(self) -> int:
        """The number of rows."""

    @property
    def d(self) -> int:
        """The number of features."""

    @property
    def worth_caching(self) -> bool:
        """Whether `product_of` caches kernel rows by default, because reading one is faster than computing it."""
        return False

    @property
    def worth_shrinking(self) -> bool:
        """Whether a round takes less time on some of the rows than on all; not if all kernel rows are cached."""
        return not self.worth_caching

    @property
    def keeps_vectors(self) -> bool:
        """Whether the vectors of a dual problem are kept beside the rows (`dual_vectors`), and not on the host."""
        return False

    @property
    def in_one_place(self) -> bool:
        """Whether mini-batches of rows take little time, as they do on one machine."""
        return True

    def product(self, points: Matrix, V: Array, metric: Metric | None = None) -> Array:
        """Return K(rows, points) @ V, (n, q) in float64; in the points' metric, if given."""

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:
        """Return K(rows, rows[index]) @ V; `keep` caches the kernel rows (None: if `worth_caching`)."""

    def buffer(self, size: int) -> Array:
        """Return host memory for `size` kernel values, which `block` fills fastest."""
        return np.empty(size, self.dtype)

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """Return K(rows[index], rows[columns]), columns = index by default, in the memory of `out` if given."""

    def on_demand(self) -> OnDemand | None:
        """Return K(rows, rows) as kernel rows that are evaluated when a solver needs them; None if blocks are faster."""
        return None

    def pairs_on_demand(self, largest: int) -> PairsOnDemand | None:  # noqa: ARG002
        """Return pairs of classes of at most `largest` rows, solved by such kernel rows; None if blocks are faster."""
        return None

    def dual_vectors(self, problem: Dual, working: Array) -> DualVectors | None:  # noqa: ARG002
        """Return the vectors of a dual problem, kept beside the rows; None if there is no memory for them.

        `working` is the first working set; all later ones have as many rows.
        """
        return None

    def diagonal(self) -> Array:
        """Return k(x_i, x_i) for each row."""

    def among(self, A: Matrix, B: Matrix | None = None, *, placed: bool = False) -> Array:
        """Return K(A, B) in float64 for a few points, B = A by default; `placed` points are in the home's coordinates."""
        B = A if B is None else B
        self.meter.add(A.shape[0] * B.shape[0])
        A, B = (A, B) if placed else (self.to_coordinates(A), self.to_coordinates(B))
        return self.kernel(self.kernel.inside(A), B)

    def pullback_among(self, A: Array, Z: Array, K: Array, W: Array) -> Array:
        """Return sum_i W_ij dk(a_i, z_j) / dz_j for each of a few points z_j, (m, d), with K = among(A, Z)."""
        self.meter.add(A.shape[0] * Z.shape[0])
        return self.kernel.pullback(self.kernel.inside(A), Z, K, W)

    def take(self, index: Array) -> Matrix:
        """Return a few rows as points of an expansion: features, or column numbers of a precomputed kernel."""

    def mean(self, index: Array) -> Array:
        """Return the mean of some rows, (1, d)."""

    def means(
        self, index: Array, count: int, rng: np.random.Generator, *, rounds: int, weights: Array | None = None
    ) -> Array:
        """Return the centres of at most `count` clusters of some rows, after `rounds` rounds of k-means."""

    def sample(self, most: int, rng: np.random.Generator) -> Array:
        """Return the numbers of all rows, or a sorted random subset of `most` of them."""
        rows = np.arange(self.n)
        return rows if rows.size <= most else np.sort(rng.choice(rows, most, replace=False))

    def subset(self, index: Array) -> Rows:
        """Return some of the rows, in the same home, without a cache."""

    def main_features(self, most: int) -> Array | None:  # noqa: ARG002
        """Return the `most` features with most of the squared length of sparse rows; None if there are no more."""
        return None

    def on_features(self, features: Array) -> Rows:
        """Return the rows for points with these features only; coordinates are without the others, which are zeros."""
        raise ValueError(f"rows of {type(self).__name__} have points of all {self.d} features, not of {features.size}")

    def spanned(self, wide: int, several: int, share: float) -> SpannedRows | None:  # noqa: ARG002
        """Return rows of many features for points that move in a span; None if points move in all features.

        For sparse rows of more than `wide` features the span is empty at first. For others of more than `several` features
        it is that of the mean and of the principal axes that hold this share of the variance, if they are few.
        """
        return None

    def of(self, points: Matrix, *, exact: bool = False, cache: bool = False) -> Rows:
        """Return other rows in the same home and on the same meter; with a precomputed kernel, rows by their `ids`.

        `exact` asks for float64 kernel values; `cache` gives them as large a cache as these rows have.
        """

    def fetch(self, index: Array) -> Rows:
        """Return some of the rows on the host, with float64 kernel values: for methods that learn row by row."""

    def to_coordinates(self, points: Matrix) -> Array:
        """Return points in the home's own coordinates, dense float64; relative to the rows' centre, if the home has one."""
        placed = dense(points).astype(np.float64)
        return placed if self.centre is None else placed - self.centre

    def from_coordinates(self, placed: Array) -> Array:
        """Return points in the home's coordinates as points of an expansion."""
        return self.kernel.inside(placed.copy() if self.centre is None else placed + self.centre)

    def against(self, points: Matrix, *, exact: bool = True) -> KernelMatrix:
        """Return the matrix K(rows, points); `exact` sums in float64 for any precision of kernel values."""

    def moving(self, placed: Array, *, exact: bool = False) -> KernelMatrix:
        """Return the matrix K(rows, points) for points in the home's own coordinates (`to_coordinates`), which may move."""

    def share_out(self, work: Callable[[int], None], count: int) -> None:
        """Call work(k) for each k in range(count), several at once if the home has threads."""
        for number in range(count):
            work(number)


class SpannedRows(Rows, Protocol):
    """Rows for points in the span of some directions; points are coordinates along these. The span can be widened."""

    basis: Array  # (features, k), orthonormal

    def coordinates(self) -> KernelMatrix:
        """Return the matrix of the coordinates themselves, as kernel values."""

    def slope_products(self, placed: Array) -> Array:
        """Return sum_x s s' over the rows, (m, m), with s_j the derivative of k(x, z_j) by <x, z_j>."""

    def on_basis(self, basis: Array) -> SpannedRows:
        """Return the same rows with another span."""

    def including(self, points: Matrix) -> SpannedRows:
        """Return the same rows with a span that contains these points too."""

    def widened(self, W: Array, most: int) -> SpannedRows:
        """Return the same rows with the directions X'W added to the span, W (n, r): the `most` longest."""

    def widened_downhill(self, placed: Array, slopes: Array, coef: Array, most: int) -> SpannedRows:
        """Return the same rows with the gradients of points added to the span; `slopes` are those of a loss by outputs."""


class OnDemand(Protocol):
    """K = K(rows, rows), a kernel row at a time, for problems without a working set."""

    def pair_steps(self, y: Array, cap: Array, alpha: Array, v: Array, goal: float, limit: int) -> tuple[int, float]:
        """Run pair steps of SMO until no violation is above `goal`; alpha changes in place.

        Returns the number of steps and the largest violation left. `v` is y times the gradient of the dual.
        """

    def product(self, signed: Array) -> Array:
        """Return K @ signed, (n,)."""


class PairsOnDemand(Protocol):
    """Exact C-SVMs of pairs of classes, many in one call."""

    def solve(self, own: Array, others: Array, *arguments: Any) -> None:
        """Solve the rows `own` of a class against the rows of others, one class after the other (`core.rbf_pairs`)."""


@dataclass(frozen=True)
class Dual:
    """A dual problem at some coefficients c: max linear'c - 1/2 c'K c; arrays of one number per row."""

    linear: Array
    responses: Array  # K c
    signed: Array  # c
    grows: Array  # whether c_i can grow
    shrinks: Array  # whether c_i can shrink


@dataclass(frozen=True)
class WorkingBlock:
    """What a round of SMO needs of a dual problem: how far it is from its optimum, and a working set with its block.

    `v` is linear - K c of the working set. Its arrays are valid until the next look.
    """

    gap: float
    objective: float
    working: Array
    v: Array
    block: Array


class DualVectors(Protocol):
    """The vectors of a dual problem in the home of its rows, where working sets are chosen."""

    def look(self) -> WorkingBlock:
        """Return the largest violation of optimality, the objective, and the next working set.

        That are the rows that violate most, in both directions, and rows of the last working set.
        """

    def move(self, index: Array, change: Array, signed: Array, grows: Array, shrinks: Array) -> None:
        """Add `change` to the coefficients of some rows, which are `signed` then and can grow or shrink or not."""

    def responses(self) -> Array:
        """Return K c, (n,)."""


class Factor(Protocol):
    """A factored definite matrix, in the home of the rows."""

    @property
    def size(self) -> int:
        """The number of unknowns."""

    def solve(self, right: Array) -> Array:
        """Return the inverse of the matrix times a vector."""


class Curvatures(Protocol):
    """Sums H of w d d' over the rows that fall short, d = (1, k_1 .. k_m), of several outputs."""

    #: outputs that are fitted together, in one product; threads fit other outputs (`share_out`)
    at_once: int

    def factors(self, outputs: Array, residual: Array, weights: Array, R: Array) -> list[Factor]:
        """Return the factor of H + R for each of some outputs; H sums over the rows with a residual.

        `residual` has a line for each of these outputs. Threads may call it for different outputs at the same time.
        """
