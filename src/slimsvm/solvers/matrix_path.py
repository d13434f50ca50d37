"""All folds of a cross-validation for all values of C, with the kernel matrix in memory: one exact SVM from the other.

    max  linear'c - 1/2 c'K c     c_i = y_i a_i,  0 <= a_i <= C w_i,  sum_i c_i = 0

The folds are this problem with other weights w, which are 0 for the rows of the fold. Between changes of sides,
coefficients lie on lines in C, so each solution starts on the line through the last two (settle.c). Responses K c of all
rows are kept: they show which rows violate optimality, and are the outputs of the rows that a fold has left out. A solution
ends with a gap of at most `tol` over all its rows, as a separate fit does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import numpy as np

from .._core import core
from ..kernels import Array
from ..model import Status
from ..run import Run
from .smo import MOST_STEPS, MOST_STEPS_A_ROW

#: coefficients and responses, (Cs, folds, n), and biases and gaps, (Cs, folds)
State = tuple[Array, Array, Array, Array]


@dataclass(frozen=True)
class Solved:
    """The solutions for one C: signed coefficients, responses and bias of each fold, and how far from the optimum it is."""

    C: float
    signed: Array  # (folds, n)
    responses: Array  # (folds, n), without the bias
    bias: Array  # (folds,)
    gap: Array  # (folds,)
    status: Status

    @classmethod
    def of(cls, C: float, signed: Array, responses: Array, bias: Array, gap: Array, tol: float) -> Solved:
        """Return solutions with the status that the gaps show."""
        return cls(C, signed, responses, bias, gap, Status.CONVERGED if (gap <= tol).all() else Status.STALLED)


class Copies:
    """Work space and copies of kernel values that threads use one after the other: new ones take longer to allocate."""

    def __init__(self, rows: int, most: int, dtype: np.dtype) -> None:
        self.rows, self.most, self.dtype = rows, most, dtype
        self.unused, self.lock = list[core.KernelCopy](), Lock()

    @contextmanager
    def of(self) -> Iterator[core.KernelCopy]:
        """Yield a copy, with what the last user left in it."""
        with self.lock:
            copy = self.unused.pop() if self.unused else None
        if copy is None:
            copy = core.KernelCopy(self.rows, np.empty(self.most**2, self.dtype))
        try:
            yield copy
        finally:
            with self.lock:
                self.unused.append(copy)

    def clear(self) -> None:
        """Forget all kernel values, before another kernel matrix."""
        for copy in self.unused:
            copy.clear()


@dataclass(frozen=True)
class MatrixProblem:
    """A kernel matrix, the ranges of its lines that are a problem's rows, their signs, linear term and weights."""

    K: Array
    ranges: core.Ranges
    y: Array
    linear: Array
    weights: Array  # (folds, n)
    tol: float

    @property
    def most_steps(self) -> int:
        """Pair steps of a solution after which it ends as it is, as a separate fit does."""
        return max(MOST_STEPS, MOST_STEPS_A_ROW * self.y.size)

    def solve(self, Cs: Array, known: int, folds: slice, state: State, copy: core.KernelCopy) -> int:
        """Solve some folds for rising Cs, those after the first ones, which are known; return the number of steps."""
        own = np.ascontiguousarray(self.weights[folds])
        return core.settle_path(
            self.K, self.ranges, self.linear, self.y, own, Cs, known, self.tol, self.most_steps, *state, copy
        )


def solutions(
    problem: MatrixProblem, Cs: Array, copies: Copies, share_out: Callable[[Callable[[int], None], int], None], run: Run
) -> Iterator[Solved]:
    """Yield the solutions for rising values of C, each fold in a thread, until the time is over."""
    folds, n = problem.weights.shape
    alpha, f, ends = np.zeros((folds, 3, 1, n)), np.zeros((folds, 3, 1, n)), np.zeros((2, folds, 3, 1))
    for number, C in enumerate(Cs):
        known = min(number, 2)
        few = Cs[number - known : number + 1]

        def solve(fold: int, known: int = known, few: Array = few) -> None:
            if not run.over:
                some = slice(known + 1)
                state = alpha[fold, some], f[fold, some], ends[0, fold, some], ends[1, fold, some]
                with copies.of() as copy:
                    problem.solve(few, known, slice(fold, fold + 1), state, copy)

        share_out(solve, folds)
        if run.over:
            return
        signed, (bias, gap) = alpha[:, known, 0] * problem.y, ends[:, :, known, 0].copy()
        yield Solved.of(float(C), signed, f[:, known, 0].copy(), bias, gap, problem.tol)
        if known == 2:
            alpha[:, :2], f[:, :2] = alpha[:, 1:].copy(), f[:, 1:].copy()
