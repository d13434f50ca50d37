"""Kernel rows that a compiled solver evaluates one at a time, when it first needs each."""

from __future__ import annotations

import numpy as np

from .._core import core
from ..kernels import RBF, Array, Kernel
from .precision import Prepared
from .protocol import Meter
from .tails import CompiledRBF

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


def on_demand(kernel: Kernel, rows: Prepared, meter: Meter) -> CompiledRows | None:
    """Return the kernel rows of dense float32 rows that fit in the processor's cache; None for others."""
    if not isinstance(kernel, RBF) or rows.sparse or rows.values.dtype != np.float32 or rows.values.nbytes > IN_CACHE:
        return None
    tail = CompiledRBF(kernel, rows.values.dtype)
    return CompiledRows(core.RbfRows(tail.scale, rows.values, tail.scaled(rows.norms)), rows.count, meter)
