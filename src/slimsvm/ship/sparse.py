"""Points by their nonzeros, for models of text and other sparse rows, and kernel values over them. Needs NumPy only.

A kernel's sum over features has three parts: one of the row alone, one of the point alone, and one of the features in which
both are nonzero,

    sum(x, z) = own(x) + own(z) + sum_i joint(x_i, z_i)      |x - z|^2 = |x|^2 + |z|^2 - 2 <x, z>

So a row needs only the columns of its own nonzeros. `ByColumn` holds the points for that, column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..c_bytes import sparse_layout
from ..kernels.spec import KernelSpec
from ..scaling import Array

#: the most numbers of points that are written out: 8 GiB
LARGEST = 1 << 30
#: features and entries are numbered below this
MOST_PLACES = 1 << 40
#: sums are double if the part of the points in the argument of exp is larger: |x|^2 + |z|^2 - 2 <x, z> loses digits
EXACT_EXPONENT = 50.0
#: products of nonzeros that are held at once; more: fewer passes over many rows, more memory
AT_ONCE = 1 << 20


def check_dense(size: int, features: int) -> None:
    """Raise ValueError if so many points with all their features are more than exports hold."""
    # in generated code, a model without points has one of zeros
    if max(size, 1) * features > LARGEST:
        raise ValueError(
            f"cannot export {size:,} points of {features:,} features, which take more than {LARGEST >> 27} GiB written "
            "out; train with fewer features or a smaller budget, or on sparse rows without a scaler that fills them"
        )


def check_csr(starts: Array, columns: Array, entries: int, features: int) -> None:
    """Raise ValueError unless starts and columns are those of a CSR array with so many entries and features."""
    if not 0 <= features < MOST_PLACES or (starts.size - 1) * features >= 1 << 62:
        raise ValueError(f"its points have {features} features, which is more than places are numbered for")
    if not starts.size or starts[0] != 0 or starts[-1] != entries or (np.diff(starts) < 0).any() or columns.size != entries:
        raise ValueError("the starts of its points do not fit the entries")
    if entries and not 0 <= columns.min() <= columns.max() < features:
        raise ValueError(
            f"its points have columns from {columns.min()} to {columns.max()}, and there are {features} features"
        )


@dataclass(frozen=True)
class SparsePoints:
    """Points as CSR: those of point j are at starts[j]:starts[j + 1], with columns in increasing order."""

    starts: Array  # (m + 1,)
    columns: Array
    values: Array  # float64, none of them 0
    features: int

    @classmethod
    def of(cls, starts: Array, columns: Array, values: Array, features: int) -> SparsePoints:
        """Return points of the pieces of a CSR array: entries of one feature are summed, zeros left out."""
        rows = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        return cls._of_entries(rows, np.asarray(columns), np.asarray(values, dtype=np.float64), starts.size - 1, features)

    @classmethod
    def _of_entries(cls, rows: Array, columns: Array, values: Array, size: int, features: int) -> SparsePoints:
        keys, place = np.unique(rows.astype(np.int64) * features + columns, return_inverse=True)
        sums = np.bincount(place.ravel(), values, keys.size)
        keys, sums = keys[sums != 0], sums[sums != 0]
        return cls(np.searchsorted(keys, features * np.arange(size + 1)), keys % max(features, 1), sums, features)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of points and of features."""
        return self.starts.size - 1, self.features

    @property
    def ndim(self) -> int:
        """The number of axes, as of an array."""
        return 2

    @property
    def nonzeros(self) -> int:
        """The number of entries."""
        return self.values.size

    @cached_property
    def rows(self) -> Array:
        """The point of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))

    def dense(self) -> Array:
        """Return the points with all their features."""
        check_dense(*self.shape)
        written = np.zeros(self.shape)
        written[self.rows, self.columns] = self.values
        return written

    def __mul__(self, factors: Array) -> SparsePoints:
        """Return the points with each feature multiplied by its factor."""
        return replace(self, values=self.values * factors[self.columns])

    def __truediv__(self, scales: Array) -> SparsePoints:
        """Return the points with each feature divided by its scale."""
        return replace(self, values=self.values / scales[self.columns])

    def weighted(self, coef: Array) -> SparsePoints:
        """Return the sums of points with coefficients (m, q), as q points."""
        q = coef.shape[1]
        rows, columns = np.repeat(np.arange(q), self.nonzeros), np.tile(self.columns, q)
        return self._of_entries(rows, columns, (coef[self.rows].T * self.values).ravel(), q, self.features)

    def by_column(self) -> ByColumn:
        """Return the points column by column; points of zeros have one entry of 0, since C has no empty tables."""
        if not self.nonzeros:
            zero = np.zeros(1, dtype=np.intp)
            return ByColumn(zero, np.array([0, 1]), zero, np.zeros(1), self.shape)
        order = np.lexsort((self.rows, self.columns))
        columns, starts = np.unique(self.columns[order], return_index=True)
        return ByColumn(columns, np.append(starts, order.size), self.rows[order], self.values[order], self.shape)


@dataclass(frozen=True)
class ByColumn:
    """The columns in which some point is nonzero: entries of column c are at starts[c]:starts[c + 1]."""

    columns: Array  # their features, in increasing order
    starts: Array
    points: Array  # the point of each entry
    values: Array
    shape: tuple[int, int]

    def narrow(self) -> Array:
        """Return the points with these columns only, (m, columns)."""
        check_dense(self.shape[0], self.columns.size)
        written = np.zeros((self.shape[0], self.columns.size))
        written[self.points, np.repeat(np.arange(self.columns.size), np.diff(self.starts))] = self.values
        return written

    def everywhere(self) -> ByColumn:
        """Return the same entries with a column for each feature."""
        counts = np.zeros(self.shape[1], dtype=np.int64)
        counts[self.columns] = np.diff(self.starts)
        return replace(self, columns=np.arange(self.shape[1]), starts=np.append(0, np.cumsum(counts)))


def smallest(values: Array) -> Array:
    """Return whole numbers in the smallest unsigned type of 8, 16 or 32 bits that holds them."""
    most = int(values.max(initial=0))
    return values.astype(np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32)


# Kernel values. The parts of a sum over features, as in `kernels.spec`, on arrays.


def _shared(x: Array, z: Array) -> Array:
    """Return |x - z| - |x| - |z|."""
    return np.where(np.sign(x) == np.sign(z), -2 * np.minimum(np.abs(x), np.abs(z)), 0.0)


OWN: dict[str, Callable[[Array], Array]] = {
    "inner": np.zeros_like,
    "squares": np.square,
    "manhattan": np.abs,
    "chi_squared": lambda x: x,
}
JOINT: dict[str, Callable[[Array, Array], Array]] = {
    "inner": lambda x, z: x * z,
    "squares": lambda x, z: -2 * x * z,
    "manhattan": _shared,
    "chi_squared": lambda x, z: -4 * x * z / (x + z),
}
#: kernel values by sums over features, parameters and widths
VALUES: dict[str, Callable[[Array, Mapping[str, float], Any], Array]] = {
    "identity": lambda s, _p, _w: s,
    "exp": lambda s, p, w: np.exp(-p["gamma"] * w * s),
    "power": lambda s, p, _w: (p["gamma"] * s + p["coef0"]) ** p["degree"],
    "tanh": lambda s, p, _w: np.tanh(p["gamma"] * s + p["coef0"]),
}


def own_sums(spec: KernelSpec, points: SparsePoints) -> Array:
    """Return own(z) of each point."""
    return np.bincount(points.rows, OWN[spec.total.name](points.values), points.shape[0])


def needs_double(spec: KernelSpec, parameters: Mapping[str, float], own: Array, widths: Array | None) -> bool:
    """Return whether sums over features would lose too many digits in float32, by own(z) of the points."""
    exponents = parameters.get("gamma", 0.0) * own * (1.0 if widths is None else widths)
    return spec.total.own is not None and bool(exponents.max(initial=0.0) > EXACT_EXPONENT)


@dataclass(frozen=True)
class SparseRows:
    """Rows by their nonzeros, as in a CSR array."""

    starts: Array
    columns: Array
    values: Array
    shape: tuple[int, ...]  # (n, d), or (d,) for a single row

    @classmethod
    def of(cls, rows: Array) -> SparseRows:
        """Return the rows of an array (n, d)."""
        places, columns = np.nonzero(rows)
        return cls(np.searchsorted(places, np.arange(rows.shape[0] + 1)), columns, rows[places, columns], rows.shape)

    @classmethod
    def of_csr(cls, rows: Any) -> SparseRows:
        """Return the rows of a sparse array, or of any object with the pieces of a CSR array."""
        rows = rows.tocsr() if hasattr(rows, "tocsr") else rows
        values = np.asarray(rows.data, dtype=np.float64)
        return cls(np.asarray(rows.indptr), np.asarray(rows.indices), values, tuple(rows.shape))

    @property
    def ndim(self) -> int:
        """The number of axes, as of an array."""
        return len(self.shape)

    def scaled(self, scale: Array) -> SparseRows:
        """Return the rows with each feature multiplied by its scale."""
        return replace(self, values=self.values * scale[self.columns])

    def dense(self) -> Array:
        """Return the rows with all their features, (n, d)."""
        n = self.starts.size - 1
        written = np.zeros((n, self.shape[-1]))
        np.add.at(written, (np.repeat(np.arange(n), np.diff(self.starts)), self.columns), self.values)
        return written


class SparseKernel:
    """The kernel between rows and sparse points."""

    def __init__(
        self, spec: KernelSpec, parameters: Mapping[str, float], points: SparsePoints, widths: Array | None
    ) -> None:
        self.spec, self.parameters, self.widths = spec, parameters, 1.0 if widths is None else widths
        self.size, self.table, self.own = points.shape[0], points.by_column(), own_sums(spec, points)

    def __call__(self, rows: SparseRows) -> Array:
        """Return the kernel values, (n, m)."""
        n, table = rows.starts.size - 1, self.table
        number = np.repeat(np.arange(n), np.diff(rows.starts))
        sums = np.bincount(number, OWN[self.spec.total.name](rows.values), n)[:, None] + self.own
        place = np.minimum(np.searchsorted(table.columns, rows.columns), table.columns.size - 1)
        hit = np.flatnonzero(table.columns[place] == rows.columns)
        begin, counts = table.starts[place[hit]], np.diff(table.starts)[place[hit]]
        ends = np.cumsum(counts)
        for some in _batches(ends):
            entry = _ranges(begin[some], counts[some])
            x, row = (np.repeat(part[hit[some]], counts[some]) for part in (rows.values, number))
            joint = JOINT[self.spec.total.name](x, table.values[entry])
            sums += np.bincount(row * self.size + table.points[entry], joint, sums.size).reshape(sums.shape)
        return VALUES[self.spec.value.name](sums, self.parameters, self.widths)


def _batches(ends: Array) -> list[slice]:
    """Return slices of places whose counts, given by their cumulative sums, are about AT_ONCE together."""
    total = int(ends[-1]) if ends.size else 0
    cuts = np.searchsorted(ends, np.arange(0, total, AT_ONCE), side="right").tolist()
    return [slice(low, high) for low, high in zip(cuts, [*cuts[1:], ends.size], strict=True) if high > low]


def _ranges(begin: Array, counts: Array) -> Array:
    """Return begin[0], begin[0] + 1, ... of counts[0] numbers, then those of the next, in one array."""
    before = np.cumsum(counts) - counts
    return np.repeat(begin - before, counts) + np.arange(int(counts.sum()))


@dataclass(frozen=True)
class Layout:
    """Tables of columns in one of four layouts, whichever takes the fewest bytes.

    Columns are those in which a point is nonzero, or all features, which need no list. A column has its nonzeros with the
    points that they belong to, or a number for every point.
    """

    tables: dict[str, Array]
    columns: int

    @property
    def listed(self) -> bool:
        """Whether columns are listed; otherwise each feature has one."""
        return "columns" in self.tables

    @property
    def ragged(self) -> bool:
        """Whether columns have their nonzeros only."""
        return "owners" in self.tables

    @property
    def nbytes(self) -> int:
        """The bytes of the tables."""
        return sum(values.nbytes for values in self.tables.values())


def layout_of(table: ByColumn, dtype: type) -> Layout:
    """Return the smallest layout of these points, with values of this type."""
    (m, d), used = table.shape, table.columns.size
    listed, ragged, _ = sparse_layout(m, d, table.values.size, used, np.dtype(dtype).itemsize)
    tables = {"columns": smallest(table.columns)} if listed else {}
    columns = table if listed else table.everywhere()
    if ragged:
        owners = {"owners": smallest(columns.points), "values": columns.values.astype(dtype)}
        return Layout(tables | {"starts": smallest(columns.starts)} | owners, columns.columns.size)
    return Layout(tables | {"values": columns.narrow().T.astype(dtype)}, columns.columns.size)


def rounded(points: Array | SparsePoints, bits: int) -> tuple[SparsePoints, Array]:
    """Return points as whole numbers of so many bits, without those that become 0, and the step of each point."""
    assert isinstance(points, SparsePoints)
    largest, most = np.zeros(points.shape[0]), 2 ** (bits - 1) - 1
    np.maximum.at(largest, points.rows, np.abs(points.values))
    steps = np.where(largest > 0, largest, 1.0) / most
    whole = np.rint(points.values / steps[points.rows])
    return SparsePoints.of(points.starts, points.columns, whole, points.features), steps
