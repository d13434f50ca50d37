"""Rows whose kernel matrix is in memory: for many problems with the same kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import core
from ..kernels import Array
from .protocol import Rows
from .threads import blocks

#: kernel rows that are summed at a time; more: more memory for a copy of them
SUMMED = 256
#: kernel rows that are evaluated at a time
EVALUATED = 2048


class MatrixRows:
    """The part of `Rows` that solvers of dual problems use, with all kernel values in memory; the rest is that of the rows."""

    #: rounds with fewer rows take less time, but a part of the matrix is a copy
    worth_shrinking = False
    worth_caching = False
    keeps_vectors = False

    def __init__(self, rows: Rows, K: Array | None = None) -> None:
        self.rows, self.n, self.dtype = rows, rows.n, rows.dtype
        self.K = evaluated(rows) if K is None else K

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the rows."""
        return getattr(self.rows, name)

    def subset(self, index: Array) -> MatrixRows:
        """Return some of the rows, with a copy of their kernel values."""
        return MatrixRows(self.rows.subset(index), self.block(index))

    def on_demand(self) -> None:
        """Return None: blocks are copied."""

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """Return a copy of kernel values, in the memory of `out` if given."""
        columns = index if columns is None else columns
        size = index.size, columns.size
        values = np.empty(size, self.dtype) if out is None else out[: size[0] * size[1]].reshape(size)
        core.gathered(self.K, index.astype(np.intp, copy=False), columns.astype(np.intp, copy=False), values)
        return values

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:  # noqa: ARG002
        """Return K(rows, rows[index]) @ V."""
        sums, weights = np.zeros((V.shape[1], self.n)), np.ascontiguousarray(V.T, self.dtype)
        parts = list(blocks(index.size, SUMMED))

        def work(strip: int) -> None:
            columns = slice(strip * self.n // STRIPS, (strip + 1) * self.n // STRIPS)
            for part in parts:
                sums[:, columns] += weights[:, part] @ self.K[index[part], columns]

        self.rows.share_out(work, STRIPS)
        return sums.T


#: strips of columns that threads sum up; more: more threads have work
STRIPS = 16


def evaluated(rows: Rows) -> Array:
    """Return the kernel matrix of all rows."""
    K = np.empty((rows.n, rows.n), rows.dtype)
    everyone = np.arange(rows.n)
    for some in blocks(rows.n, EVALUATED):
        rows.block(everyone[some], everyone, out=K[some].reshape(-1))
    return K


def in_memory(rows: Rows, megabytes: float) -> Rows:
    """Return the rows with their kernel matrix, if it takes at most this many MiB, else the rows."""
    fits = rows.n**2 * rows.dtype.itemsize <= megabytes * 2**20
    return MatrixRows(rows) if fits else rows  # type: ignore[return-value]
