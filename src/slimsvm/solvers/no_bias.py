"""The dual of the SVM without a bias, whose coefficients need not sum to 0.

    max  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij     0 <= a_i <= C w_i

Each block gets one more row, whose kernel values are 0 and whose coefficient has no bounds. A pair of this row and another
one moves the other alone, so that the compiled pair steps solve this problem too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import Array
from ..rows.protocol import Rows
from ..run import Run
from .smo import Rounds, SmoState

#: the coefficient of the additional row; no step changes it
MIDDLE = 1e300


class NoBiasState(SmoState):
    """The state of a run without a bias; a working set may be one row, chosen by the gain of its step."""

    shrinks = False
    by_rows = False

    def __init__(self, rows: Rows, y: Array, cap: Array, settings: Rounds, **more: Any) -> None:
        super().__init__(rows, y, cap, settings, **more | {"newton": None})
        self.diagonal = rows.diagonal() if self.size == 1 else np.empty(0)

    def bias(self) -> float:
        """Return 0."""
        return 0.0

    def widest(self, grow: Array, shrink: Array) -> float:
        """Return the largest violation: the additional row can grow and shrink, and its v is 0."""
        return float(max(grow.max(), 0.0) - min(shrink.min(), 0.0))

    def next_working(self, grow: Array, shrink: Array) -> Array:
        """Return the worst rows, or the one whose step gains most: v^2 / K_ii (Fan, Chen & Lin 2005, with one row)."""
        if self.size > 1:
            return super().next_working(grow, shrink)
        gain = np.square(np.maximum(np.maximum(grow, -shrink), 0.0)) / np.maximum(self.diagonal, np.finfo(float).tiny)
        return gain.argmax(keepdims=True)

    def pair_steps(
        self, block: Array, y: Array, cap: Array, alpha: Array, v: Array, goal: float, limit: int
    ) -> tuple[int, float]:
        n = y.size
        bordered = np.zeros((n + 1, n + 1), dtype=block.dtype)
        bordered[:n, :n] = block
        added = (np.append(y, y.dtype.type(1)), np.append(cap, 2 * MIDDLE), np.append(alpha, MIDDLE))
        slopes = np.append(v, v.dtype.type(0))
        solution = super().pair_steps(bordered, *added, slopes, goal, limit)
        alpha[:], v[:] = added[2][:n], slopes[:n]
        return solution

    def begin_from(self, start: Array) -> None:
        self.alpha = np.clip(start * self.y, 0.0, self.cap)
        support = np.flatnonzero(self.alpha)
        self.responses.add_rows(support, self.signed[support, None])

    def part(self, rows: Array, run: Run) -> SmoState:
        part = self.rows.subset(rows)
        return type(self)(part, self.y[rows], self.cap[rows], self.settings, run=run)
