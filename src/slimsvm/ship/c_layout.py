"""Tables of sparse points column by column, in the layout that takes the fewest bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..c_bytes import sparse_layout
from .artefact import Array
from .sparse import ByColumn, SparsePoints, smallest


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
