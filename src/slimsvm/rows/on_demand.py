"""Kernel rows that a compiled solver evaluates one at a time, when it first needs each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import core
from ..kernels import RBF, Array, Kernel
from .precision import Prepared
from .protocol import Meter

#: kernel rows are evaluated one at a time if the rows have at most this many bytes, which fit in the processor's cache
IN_CACHE = 1 << 22


class CompiledRows:
    """K(rows, rows), a kernel row at a time, for problems without a working set. A solution needs few kernel rows."""

    def __init__(self, compiled: core.RbfRows, n: int, meter: Meter) -> None:
        self.compiled, self.n, self.meter = compiled, n, meter

    def pair_steps(self, y: Array, cap: Array, alpha: Array, v: Array, goal: float, limit: int) -> tuple[int, float]:
        """Run pair steps of SMO on all rows until no violation is above `goal`; alpha changes in place.

        Returns the number of steps and the largest violation left. `v` is y times the gradient of the dual.
        """
        before = self.compiled.evaluated
        steps, gap = self.compiled.smo(y.astype(np.float32), cap, alpha, v.astype(np.float32), goal, limit)
        self.meter.add(self.n * (self.compiled.evaluated - before))
        return steps, gap

    def product(self, signed: Array) -> Array:
        """Return K @ signed, (n,) in float64."""
        before, out = self.compiled.evaluated, np.zeros(self.n)
        self.compiled.add_product(signed, out)
        self.meter.add(self.n * (self.compiled.evaluated - before))
        return out


class CompiledPairs:
    """Pairs of classes by kernel rows that are evaluated when a solver first needs them."""

    def __init__(self, scale: float, rows: Prepared, meter: Meter) -> None:
        self.rows, self.meter, self.scale, self.norms = rows, meter, scale, (scale * rows.norms).astype(np.float32)

    def solve(self, own: Array, others: Array, *arguments: Any) -> None:
        """Solve the rows `own` of a class against the rows of others; `arguments` are the others of `core.rbf_pairs`."""
        self.meter.add(core.rbf_pairs(self.scale, self.rows.values, self.norms, own, others, *arguments))


def on_demand(kernel: Kernel, rows: Prepared, meter: Meter) -> CompiledRows | None:
    """Return the kernel rows of dense float32 rows that fit in the processor's cache; None for others."""
    if not _suits(kernel, rows, rows.count):
        return None
    scale = kernel.gamma * float(np.log2(np.e))  # type: ignore[attr-defined]
    return CompiledRows(core.RbfRows(scale, rows.values, (scale * rows.norms).astype(np.float32)), rows.count, meter)


def pairs_on_demand(kernel: Kernel, rows: Prepared, meter: Meter, largest: int) -> CompiledPairs | None:
    """Return the kernel rows of pairs of classes of at most `largest` rows, where `on_demand` would for each of them."""
    if not _suits(kernel, rows, largest):
        return None
    return CompiledPairs(kernel.gamma * float(np.log2(np.e)), rows, meter)  # type: ignore[attr-defined]


def _suits(kernel: Kernel, rows: Prepared, count: int) -> bool:
    if not isinstance(kernel, RBF) or rows.sparse or rows.values.dtype != np.float32:
        return False
    return bool(count * rows.values.shape[1] * rows.values.itemsize <= IN_CACHE)
