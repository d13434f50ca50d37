"""Rows in the form that tiles need, and the precision that is enough for them.

Tiles are float32 where the work is large and the rounding provably small (`FLOAT32_ERROR`), float64 otherwise. Rows are
centred first if the kernel is translation-invariant, which loses fewer digits. Rows with many zeros become CSR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, issparse

from .._core import core
from ..kernels import RBF, Array, InnerKernel, Kernel, Matrix, dense, scaled, squared_norms
from ..metric import Metric
from .memory import empty_like_rows, gathered, is_mapped
from .threads import ALONE, ThreadPool, blocks

#: the largest error of kernel values from float32 tiles if the caller allows more
FLOAT32_ERROR = 1e-4
#: the error of float32 kernel values from float64 inner products: that of the power's polynomial and of its exponent
MIXED_ERROR = 5e-7
#: the least and the largest squared norm for which float32 holds all products, and gradients made of them. Rows of features
#: like 1e-20 or 1e20 are float64: with wider limits products become 0 or infinite
LEAST_SQUARE, LARGEST_SQUARE = 1e-24, 1e24
#: multiply-adds below which float64 takes no noticeable time
SMALL_WORK = 1 << 24
#: the share of nonzeros below which sparse products are faster than BLAS
SPARSE_DENSITY = 0.2
#: rows that are read, centred and converted at a time; more: more memory; fewer: more calls
BLOCK_ROWS = 4096
#: rows of a strip that a thread converts; more: fewer threads at work
COPIED_ROWS = 1024
#: numbers in rows that are worth threads
WORTH_THREADS = 1 << 17
#: no threads


@dataclass(frozen=True)
class Precision:
    """When kernel values are float32: for more than `small_work` multiply-adds, with errors up to `float32_error`."""

    small_work: float = SMALL_WORK
    float32_error: float = FLOAT32_ERROR

    def is_large(self, n: int, partners: int, d: int) -> bool:
        """Return whether n x partners kernel values of d features are enough work for float32 to be faster."""
        return n * partners * d > self.small_work

    def most(self, error: float) -> float:
        """Return the largest error of float32 kernel values for a caller who allows `error`."""
        return min(error, self.float32_error)


#: the thresholds of all homes by default
USUAL = Precision()


@dataclass(frozen=True)
class Given:
    """The caller's rows: an array, or its rows with some numbers. Holds no copy."""

    X: Matrix
    index: Array | None = None

    @property
    def n(self) -> int:
        return self.X.shape[0] if self.index is None else self.index.size

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def take(self, index: Array) -> Given:
        """Return some of the rows, by their numbers here."""
        return Given(self.X, index if self.index is None else self.index[index])

    def rows(self) -> Matrix:
        """Return the rows as a matrix; a copy unless they are all of the array."""
        if self.index is None:
            return self.X
        return self.X[self.index] if issparse(self.X) else gathered(self.X, self.index)

    def nonzeros(self) -> int:
        """Return the number of stored entries of sparse rows."""
        return int(self.X.nnz if self.index is None else np.diff(self.X.indptr)[self.index].sum())

    def block(self, some: slice) -> Matrix:
        """Return the rows of a slice."""
        return self.X[some] if self.index is None else self.X[self.index[some]]

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield the rows a block at a time, each with its place."""
        for some in blocks(self.n, BLOCK_ROWS):
            yield some, self.X[some] if self.index is None else self.X[self.index[some]]


@dataclass(frozen=True)
class Prepared:
    """Rows in the form tiles need: one precision, centred where that helps, CSR where most entries are zero.

    With a metric of factors f, the squared norm of a row is |f x|^2, and the values of points are multiplied by f^2, since
    <f x, f z> = <x, f^2 z>. So the values of the rows, which are many, do not change.
    """

    values: Matrix
    norms: Array  # squared, float64
    centre: Array | None
    metric: Metric | None = None  # of points

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.values.shape[0]

    @property
    def sparse(self) -> bool:
        """Whether the rows are CSR."""
        return issparse(self.values)

    @property
    def fits_float32(self) -> bool:
        """Whether float32 holds the products of the rows."""
        return fits_float32(float(self.norms.max(initial=0.0)))

    def like(self, X: Matrix) -> Prepared:
        """Return other rows in the same form; dense points stay dense even if these rows are sparse."""
        X = X.toarray() if issparse(X) and not self.sparse else X
        return _converted(Given(X), self.values.dtype, self.centre)

    def measured(self, metric: Metric | None) -> Prepared:
        """Return the rows with their norms in a metric."""
        if metric is None or metric.factors is None or not self.norms.size:
            return self
        return replace(self, norms=_norms(self.values, metric.factors))

    def points(self, X: Matrix, metric: Metric | None) -> Prepared:
        """Return points in the form of these rows, multiplied by the squared factors of the metric."""
        return self.like(X).folded(metric)

    def folded(self, metric: Metric | None) -> Prepared:
        """Return points multiplied by the squared factors of the metric."""
        if metric is None:
            return self
        values = scaled(self.values, metric.squares).astype(self.values.dtype, copy=False)
        return replace(self.measured(metric), values=values, metric=metric)

    def take(self, index: Array) -> Prepared:
        """Return a few of the rows."""
        values = self.values[index] if self.sparse else gathered(self.values, index)
        norms = self.norms[index] if self.norms.size else self.norms
        return Prepared(values, norms, self.centre, self.metric and self.metric.part(index))

    def doubled(self) -> Prepared:
        """Return the rows in float64, with the norms of their values."""
        if self.sparse:
            values = self.values.astype(np.float64)
            return Prepared(values, squared_norms(values), self.centre)
        return Prepared(*copied_rows(Given(self.values), np.dtype(np.float64), None), self.centre)


def _converted(given: Given, dtype: np.dtype, centre: Array | None, pool: ThreadPool = ALONE) -> Prepared:
    X = given.X
    if issparse(X):
        values = narrow(csr_array(given.rows(), dtype=dtype))
        norms = np.empty(values.shape[0])
        pool.run(
            lambda some: core.row_squares(values.data, values.indptr, norms, some.start, some.stop), norms.size, BLOCK_ROWS
        )
        return Prepared(values, norms, centre)
    if given.index is None and centre is None and not (is_mapped(X) and (X.dtype != dtype or not X.flags.c_contiguous)):
        values, norms = np.ascontiguousarray(X, dtype=dtype), np.empty(given.n)
        pool.run(
            lambda some: core.convert_rows(values, None, None, None, norms, some.start, some.stop), given.n, COPIED_ROWS
        )
        return Prepared(values, norms, centre)
    return Prepared(*copied_rows(given, dtype, centre, pool), centre)


def copied_rows(given: Given, dtype: np.dtype, centre: Array | None, pool: ThreadPool = ALONE) -> tuple[Array, Array]:
    """Return a copy of dense rows relative to the centre, a block at a time, and the squared norms of its rows."""
    values, norms = empty_like_rows(given.X, (given.n, given.d), dtype), np.empty(given.n)
    floats, doubles = (values, None) if dtype == np.float32 else (None, values)
    whole = is_plain(given)

    def copy(some: slice) -> None:
        if whole:
            core.convert_rows(given.X, centre, floats, doubles, norms, some.start, some.stop)
            return
        rows = np.ascontiguousarray(given.block(some))
        rows = rows if rows.dtype.char in "fd" and rows.dtype.isnative else rows.astype(np.float64)
        narrow_part, wide_part = (None if side is None else side[some] for side in (floats, doubles))
        core.convert_rows(rows, centre, narrow_part, wide_part, norms[some], 0, rows.shape[0])

    pool.run(copy, given.n, COPIED_ROWS)
    return values, norms


def is_plain(given: Given) -> bool:
    """Return whether the rows are all of an array that compiled code can read."""
    X = given.X
    return bool(given.index is None and X.dtype.char in "fd" and X.dtype.isnative and X.flags.c_contiguous)


def _norms(values: Matrix, factors: Array) -> Array:
    """Return the squared norms of rows whose features are multiplied by factors, a block of rows at a time."""
    parts = [squared_norms(scaled(values[some], factors)) for some in blocks(values.shape[0], BLOCK_ROWS)]
    return np.concatenate(parts) if parts else np.zeros(0)


def narrow(X: csr_array) -> csr_array:
    """Return the same CSR array with 32-bit indices, after checking that all of them are features."""
    if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        raise ValueError(f"a sparse array of {X.shape[1]} features has indices beyond them; build it again")
    if X.nnz >= 2**31:
        raise ValueError(f"a sparse array of {X.nnz:,} nonzeros; {2**31 - 1:,} are possible. Give fewer rows")
    return csr_array((X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)), X.shape)


def prepare(
    kernel: Kernel,
    given: Given,
    partners: int,
    error: float,
    metric: Metric | None = None,
    precision: Precision = USUAL,
    pool: ThreadPool | None = None,
) -> Prepared:
    """Return the rows in the best form for tiles against about `partners` points, with kernel values to within `error`."""
    if not isinstance(kernel, InnerKernel):
        return plain_rows(given.rows())
    pool = pool if pool is not None and given.n * given.d >= WORTH_THREADS else ALONE
    centre, sparse = None, _sparse_rows(given, pool)
    if sparse is not None:
        given = Given(sparse)
    else:
        given = Given(given.rows().toarray()) if issparse(given.X) else given
        centre = mean_row(given, pool) if kernel.translation_invariant and given.n else None
    if precision.is_large(given.n, partners, given.d):
        with np.errstate(over="ignore", invalid="ignore"):  # the norms tell
            rows = _converted(given, np.dtype(np.float32), centre, pool)
        if rows.fits_float32 and float32_error(kernel, rows.measured(metric), metric) <= precision.most(error):
            return rows
    return _converted(given, np.dtype(np.float64), centre, pool)


def value_dtype(kernel: Kernel, rows: Prepared, partners: int, error: float, precision: Precision = USUAL) -> np.dtype:
    """Return the precision of kernel values against about `partners` points, with values to within `error`.

    It may be lower than that of the rows: distances of rows far from their mean need float64 inner products, but the
    exponential of such a distance can be a float32 number.
    """
    if not isinstance(kernel, InnerKernel):
        return np.dtype(np.float64)
    dtype = rows.values.dtype
    if isinstance(kernel, RBF) and not rows.sparse and error >= MIXED_ERROR:
        return np.dtype(np.float32) if precision.is_large(rows.count, partners, rows.values.shape[1]) else dtype
    return dtype


def plain_rows(X: Matrix) -> Prepared:
    """Return rows as they are, for kernels that are not of the inner product."""
    return Prepared(X, np.empty(0), None)


def plain_points(X: Matrix, metric: Metric | None) -> Prepared:
    """Return points for such kernels, multiplied by the factors of a metric."""
    return Prepared(X if metric is None else scaled(X, metric.factors), np.empty(0), None, metric)


def float32_error(kernel: InnerKernel, rows: Prepared, metric: Metric | None = None) -> float:
    """Return the expected error of kernel values from float32 inner products of these rows.

    The norms of the rows are those of the metric (`Prepared.measured`).
    """
    terms = np.diff(rows.values.indptr).max(initial=0) if rows.sparse else rows.values.shape[1]
    return rounding_error(kernel, terms, float(rows.norms.max(initial=0.0)), metric)


def fits_float32(radius: float) -> bool:
    """Return whether float32 holds the products of rows whose largest squared norm is `radius`."""
    return LEAST_SQUARE <= radius <= LARGEST_SQUARE


def rounding_error(kernel: InnerKernel, terms: int, radius: float, metric: Metric | None = None) -> float:
    """Return the expected error for rows with at most `terms` nonzeros and squared norms up to `radius`.

    Rounding errors of a sum of d terms grow with sqrt(d) (Higham & Mary 2019), and the kernel amplifies them. A width
    multiplies the squared distance, and so the radius. It is infinite where products may exceed float32.
    """
    if not radius <= LARGEST_SQUARE:
        return np.inf
    if metric is not None:
        if not metric.fits_float32:
            return np.inf
        radius *= metric.widest
    unit = float(np.finfo(np.float32).eps) / 2
    return (kernel.amplification(radius) * (np.sqrt(terms) + 4.0) + 4.0) * unit


def _sparse_rows(given: Given, pool: ThreadPool) -> csr_array | None:
    """Return the rows as CSR where sparse products are faster; None for others."""
    if given.n == 0 or given.d == 0:
        return None
    most = SPARSE_DENSITY * given.n * given.d
    if issparse(given.X):
        return csr_array(given.rows()) if given.nonzeros() < most else None
    if is_plain(given):
        return _compressed(given.X, most, pool)
    nonzeros = sum(np.count_nonzero(rows) for _, rows in given.blocks())
    return csr_array(given.rows()) if nonzeros < most else None


def _compressed(X: Array, most: float, pool: ThreadPool) -> csr_array | None:
    """Return an array without its zeros, if it has fewer than `most` other numbers."""
    counts = np.zeros(X.shape[0], np.int32)
    pool.run(lambda some: core.count_nonzeros(X, some.start, some.stop, counts), X.shape[0], COPIED_ROWS)
    starts = np.zeros(X.shape[0] + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    if not starts[-1] < min(most, 2**31):
        return csr_array(X) if starts[-1] < most else None
    places, features, data = starts.astype(np.int32), np.empty(starts[-1], np.int32), np.empty(starts[-1], X.dtype)
    floats, doubles = (data, None) if X.dtype == np.float32 else (None, data)

    def fill(some: slice) -> None:
        core.fill_sparse(X, some.start, some.stop, places, floats, doubles, features)

    pool.run(fill, X.shape[0], COPIED_ROWS)
    return csr_array((data, features, places), shape=X.shape)


def mean_row(given: Given, pool: ThreadPool = ALONE) -> Array:
    """Return the mean of the rows, summed in float64 in their order, a block at a time."""
    parts = np.zeros((-(-given.n // BLOCK_ROWS), given.d))

    def add(some: slice) -> None:
        parts[some.start // BLOCK_ROWS] = dense(given.block(some)).sum(axis=0, dtype=np.float64)

    pool.run(add, given.n, BLOCK_ROWS, exactly=True)
    return np.asarray(parts.sum(axis=0) / given.n)
