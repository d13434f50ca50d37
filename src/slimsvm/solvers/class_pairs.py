"""The exact C-SVMs of many small pairs of classes, one class against all later ones in one compiled call.

All pairs of a class share the kernel values among its rows. No Python code runs for each pair: 1,000 classes have half a
million pairs of a few rows each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._core import core
from ..kernels import Array
from ..rows.protocol import Rows
from .smo import EXACT, SMALL_BLOCK, STEPS_A_ROUND

#: kernel values between a class and others that are in memory at a time; fewer: more calls
MOST_VALUES = 1 << 21


@dataclass(frozen=True)
class OneAgainst:
    """Solutions of one class against others: signed coefficients and, for each pair, bias, gap and steps."""

    others: Array  # class numbers
    dual: Array  # (others, rows of the class)
    other_dual: Array  # rows of all others, sorted by class
    bias: Array
    gap: Array
    steps: Array


class ClassPairs:
    """Classes whose pairs are solved whole: the rows of each (`groups`) and the largest coefficient of each row."""

    def __init__(self, rows: Rows, groups: list[Array], cap: Array) -> None:
        self.rows, self.groups, self.cap = rows, groups, cap
        self.own = [rows.block(group).astype(np.float64, copy=False) for group in groups]

    @staticmethod
    def fits(groups: list[Array]) -> bool:
        """Return whether each pair of classes has few enough rows."""
        return sum(sorted(group.size for group in groups)[-2:]) <= SMALL_BLOCK

    def solve(self, first: int, tol: float, limit: float, values: int = MOST_VALUES) -> Iterator[OneAgainst]:
        """Yield the solutions of a class against later ones, some at a time; a gap above `tol` is unfinished.

        About `values` kernel values are in memory at a time.
        """
        later = np.arange(first + 1, len(self.groups))
        sizes = np.array([self.groups[other].size for other in later], dtype=np.intp)
        share = np.cumsum(sizes) * self.groups[first].size // values
        for part in range(int(share[-1]) + 1 if later.size else 0):
            if (share == part).any():
                yield self._against(first, later[share == part], sizes[share == part], tol, limit)

    def _against(self, first: int, others: Array, sizes: Array, tol: float, limit: float) -> OneAgainst:
        mine, theirs = self.groups[first], np.concatenate([self.groups[other] for other in others])
        found = OneAgainst(
            others,
            np.empty((others.size, mine.size)),
            np.empty(theirs.size),
            np.empty(others.size),
            np.empty(others.size),
            np.empty(others.size, dtype=np.int64),
        )
        core.smo_pairs(
            self.own[first],
            self.rows.block(mine, theirs).astype(np.float64, copy=False),
            np.concatenate([self.own[other].ravel() for other in others]),
            sizes,
            self.cap[mine],
            self.cap[theirs],
            tol,
            EXACT,
            int(min(limit, STEPS_A_ROUND)),
            found.dual,
            found.other_dual,
            found.bias,
            found.gap,
            found.steps,
        )
        return found
