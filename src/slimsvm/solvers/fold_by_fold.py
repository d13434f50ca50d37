"""The folds of a cross-validation each by itself, for rising C: for values of C that are far apart.

Solutions have little in common then, and what a fold can use of the others is not worth the wider steps. Each fold
continues from its own solution, on the line through the last two; its responses include the rows that it has left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .._core import core
from ..kernels import Array
from ..model import Status
from ..rows.protocol import Rows
from ..run import Run
from .folded_path import REFRESH, FoldedProblem, Tolerance
from .matrix_path import Solved
from .smo import SmoState


class OneFold:
    """The problem of a fold, and its last two solutions."""

    def __init__(self, rows: Rows, problem: FoldedProblem, weights: Array, tol: float, run: Run) -> None:
        n = weights.size
        self.weights, self.linear, self.y, self.fresh = weights, problem.linear, problem.y, 0.0
        self.state = SmoState(rows, problem.y, 0 * weights, Tolerance(tol), linear=problem.linear, run=run)
        self.C, self.earlier_C = 0.0, 0.0
        self.earlier, self.earlier_f = np.zeros((1, n)), np.zeros((1, n))

    def solve(self, C: float) -> None:
        """Solve for a larger C."""
        state, cap = self.state, C * self.weights
        alpha, f = state.alpha[None].copy(), state.responses.values.T.copy()
        if self.C:
            t, (moved, there, change) = (C - self.C) / (self.C - self.earlier_C), np.empty((3, *alpha.shape))
            core.advance(self.linear, self.y, cap[None], t, alpha, f, self.earlier, self.earlier_f, moved, there, change)
            if REFRESH * self.fresh < C:  # rounding grows with C too
                self.fresh, there, change = C, 0 * there, moved * self.y
            state.alpha, state.responses.values[:, 0] = moved[0], there[0]
            places = np.flatnonzero(change[0])
            state.responses.add_rows(places, change[0, places, None])
            self.earlier, self.earlier_f, self.earlier_C = alpha, f, self.C
        self.C, state.cap, state.status = C, cap, Status.CONVERGED
        state.solve(np.inf)


def fold_by_fold(problem: FoldedProblem, rows: Callable[[], Rows], Cs: Array, tol: float, run: Run) -> Iterator[Solved]:
    """Yield the solutions for rising values of C, each fold in a thread with rows of its own, until the time is over."""
    folds = [OneFold(rows(), problem, weights, tol, run.quiet()) for weights in problem.weights]
    for C in Cs:
        problem.rows.share_out(lambda fold, C=float(C): folds[fold].solve(C), len(folds))
        if run.over:
            return
        states = [fold.state for fold in folds]
        f = np.stack([state.responses.values[:, 0] for state in states])
        gap, bias = np.array([state.gap for state in states]), np.array([state.bias() for state in states])
        yield Solved.of(float(C), np.stack([state.signed for state in states]), f, bias, gap, tol)
