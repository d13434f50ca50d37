"""The row cache: the most recently used kernel rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels import Array


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
