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
from ..rows.protocol import PairsOnDemand, Rows
from .smo import EXACT, FLOAT_TOL, SMALL_BLOCK, STEPS_A_ROUND

#: kernel values between a class and others that are in memory at a time; fewer: more calls
MOST_VALUES = 1 << 21
#: larger pairs that a thread solves at a time; more: threads wait longer for the last one
FEW_PAIRS = 4


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
    """Classes whose pairs are solved whole: the rows of each (`groups`) and the largest coefficient of each row.

    Pairs of few rows are solved from blocks of kernel values, to the limit of rounding. Larger ones are solved to `tol` by
    kernel rows that are evaluated when they are needed. A task is one class against some of the later ones, with about
    `values` kernel values in memory.
    """

    def __init__(
        self, rows: Rows, groups: list[Array], cap: Array, by_rows: PairsOnDemand | None, values: int = MOST_VALUES
    ) -> None:
        self.rows, self.groups, self.cap, self.by_rows, self.values = rows, groups, cap, by_rows, values
        self.own = [] if by_rows else [rows.block(group).astype(np.float64, copy=False) for group in groups]
        self.tasks = [task for first in range(len(groups) - 1) for task in self._tasks(first)]

    @classmethod
    def of(cls, rows: Rows, groups: list[Array], cap: Array, tol: float, working_set: int | None) -> ClassPairs | None:
        """Return the pairs of classes; None if a pair has too many rows."""
        largest = sum(sorted(group.size for group in groups)[-2:])
        if largest <= SMALL_BLOCK:
            return cls(rows, groups, cap, None)
        if largest > 2 * (working_set or rows.working_set) or tol < FLOAT_TOL:
            return None
        by_rows = rows.pairs_on_demand(largest)
        return None if by_rows is None else cls(rows, groups, cap, by_rows)

    def _tasks(self, first: int) -> Iterator[tuple[int, Array]]:
        """Yield the later classes of a class, as many at a time as suit a thread."""
        later = np.arange(first + 1, len(self.groups))
        values = np.cumsum([self.groups[other].size for other in later]) * self.groups[first].size
        share = np.arange(later.size) // FEW_PAIRS if self.by_rows else values // self.values
        for part in np.unique(share):
            yield first, later[share == part]

    def solve(self, first: int, others: Array, tol: float, limit: float) -> OneAgainst:
        """Return the solutions of a class against others; a gap above `tol` is unfinished."""
        mine, theirs = self.groups[first], np.concatenate([self.groups[other] for other in others])
        sizes = np.array([self.groups[other].size for other in others], dtype=np.intp)
        solved = OneAgainst(
            others,
            np.empty((others.size, mine.size)),
            np.empty(theirs.size),
            np.empty(others.size),
            np.empty(others.size),
            np.empty(others.size, dtype=np.int64),
        )
        results = solved.dual, solved.other_dual, solved.bias, solved.gap, solved.steps
        caps, steps = (sizes, self.cap[mine], self.cap[theirs], tol), int(min(limit, STEPS_A_ROUND))
        if self.by_rows is not None:
            self.by_rows.solve(mine, theirs, *caps, steps, *results)
            return solved
        across = self.rows.block(mine, theirs).astype(np.float64, copy=False)
        squares = np.concatenate([self.own[other].ravel() for other in others])
        core.smo_pairs(self.own[first], across, squares, *caps, EXACT, steps, *results)
        return solved
