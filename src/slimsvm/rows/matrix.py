"""Rows whose kernel matrix is in memory: for many problems with the same kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import core
from ..kernels import Array
from .protocol import Rows
from .threads import Crew, blocks

#: kernel rows that are summed at a time; more: more memory for a copy of them
SUMMED = 256
#: strips of columns that threads sum up; more: more threads have work
STRIPS = 16
#: kernel rows that are evaluated at a time
EVALUATED = 2048


class MatrixRows:
    """The part of `Rows` that solvers of dual problems use, with all kernel values in memory; the rest is that of the rows.

    `K` is the matrix of more rows, and these are its lines and columns with the numbers `places`.
    """

    #: rounds with fewer rows take less time, but a part of the matrix is a copy
    worth_shrinking = False
    worth_caching = False
    keeps_vectors = False

    def __init__(self, rows: Rows, K: Array, crew: Crew, places: Array | None = None) -> None:
        self.rows, self.n, self.dtype, self.K, self.crew = rows, rows.n, rows.dtype, K, crew
        self.plain = places is None  # whether these are all lines and columns, in order
        self.places = np.arange(rows.n) if places is None else places

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the rows."""
        return getattr(self.rows, name)

    def subset(self, index: Array) -> MatrixRows:
        return MatrixRows(self.rows.subset(index), self.K, self.crew, self.places[index])

    def on_demand(self) -> None:
        """Return None: blocks are copied."""

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        columns = index if columns is None else columns
        size = index.size, columns.size
        values = np.empty(size, self.dtype) if out is None else out[: size[0] * size[1]].reshape(size)
        core.gathered(self.K, self.places[index], self.places[columns], values)
        return values

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:  # noqa: ARG002
        """Return K(rows, rows[index]) @ V."""
        sums, weights = np.zeros((V.shape[1], self.n)), np.ascontiguousarray(V.T, self.dtype)

        def work(strip: int) -> None:
            some = slice(strip * self.n // STRIPS, (strip + 1) * self.n // STRIPS)
            columns = np.arange(some.start, some.stop)
            for part in blocks(index.size, SUMMED):
                places = self.places[index[part]]
                values = self.K[places, some] if self.plain else self.block(index[part], columns)
                sums[:, some] += weights[:, part] @ values

        self.share_out(work, STRIPS)
        return sums.T

    def share_out(self, work: Callable[[int], None], count: int) -> None:

        def each(numbers: slice) -> None:
            for number in range(numbers.start, numbers.stop):
                work(number)

        self.crew.run(each, count, 1)


def in_memory(rows: Rows, space: Array) -> Rows:
    """Return the rows with their kernel matrix in the memory of `space`, which has room for it."""
    K = space[: rows.n**2].reshape(rows.n, rows.n)
    everyone = np.arange(rows.n)
    for some in blocks(rows.n, EVALUATED):
        rows.block(everyone[some], everyone, out=K[some].reshape(-1))
    return MatrixRows(rows, K, getattr(rows, "crew", None) or Crew())
