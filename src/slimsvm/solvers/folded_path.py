"""One kernel matrix for all folds of a cross-validation and for all values of C: the exact SVM of each, one from the other.

    max  linear'c - 1/2 c'K c     c_i = y_i a_i,  0 <= a_i <= C w_i,  sum_i c_i = 0

The folds of a cross-validation are this problem with other weights w, which are 0 for the rows of the fold. They are solved
side by side, for rising C:

1. For the first C, the problem of all rows is solved. A fold starts from its solution without the fold's own rows.
2. From one C to the next, coefficients grow in proportion. So do bounds and the responses K c of all rows, which cost nothing.
3. Few rows change sides then: the free ones, those that violate optimality, and some of those that are nearest to it. The
   kernel values among the rows that matter in any fold are kept in memory. Each fold is solved on them, in a thread of its own.
4. The changes of all folds are added to the responses of all rows in one product. It shows which of the other rows violate
   optimality now, and gives the outputs of the rows that a fold has left out.

A solution ends with a gap of at most `tol` over all its rows, as a separate fit does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._core import core
from ..kernels import Array
from ..model import Status
from ..rows.protocol import Rows
from ..run import BY_ITSELF, Run
from .smo import SmoState

#: problems of up to so many variables are solved whole; more: fewer products with all rows, and steps that take longer
WHOLE = 4096
#: rows near the margin that are solved for although they are at a bound: a share of the free ones, and at least so many. More:
#: fewer products with all rows, and steps that take longer
NEAR, LEAST_NEAR = 0.1, 128
#: rows that are solved for together, however little memory there is
LEAST_ROWS = 64
#: the gap to which the rows in memory are solved, as a share of the gap of all rows; less: fewer products, and more steps
CLOSE = 0.03
#: pair steps between two looks at the clock
STEPS_AT_ONCE = 200_000
#: rounds after which a fold stops as it is
MOST_ROUNDS = 200


@dataclass(frozen=True)
class Solved:
    """The solutions for one C: signed coefficients, responses and bias of each fold, and how far from the optimum it is."""

    C: float
    signed: Array  # (folds, n)
    responses: Array  # (folds, n), without the bias
    bias: Array  # (folds,)
    gap: Array  # (folds,)
    steps: int
    status: Status


@dataclass(frozen=True)
class FoldedProblem:
    """The rows, one for each variable, the signs y, the linear term, and the weights of each fold, (folds, n)."""

    rows: Rows
    y: Array
    linear: Array
    weights: Array


class FoldedPath:
    """The solutions of all folds, from one C to the next larger one."""

    def __init__(self, problem: FoldedProblem, tol: float, megabytes: float, run: Run = BY_ITSELF) -> None:
        self.problem, self.tol, self.run = problem, tol, run
        folds, n = problem.weights.shape
        self.alpha, self.responses = np.zeros((folds, n)), np.zeros((folds, n))
        self.cap = np.zeros((folds, n))
        # each thread has a part of the matrix
        self.most = max(int(np.sqrt(megabytes * 2**20 / problem.rows.dtype.itemsize)), LEAST_ROWS)
        self.steps, self.begun = 0, 0.0
        whole = n <= min(WHOLE, self.most)
        self.K = problem.rows.block(np.arange(n)) if whole else None

    def solutions(self, Cs: Array) -> Iterator[Solved]:
        """Yield the solutions for rising values of C, until the time is over."""
        for C in Cs:
            self.grow(float(C))
            gaps = self.settled()
            if self.run.over:
                return
            yield self.solved(float(C), gaps)

    def grow(self, C: float) -> None:
        """Scale coefficients and responses to a larger C; begin with those of all rows for the first one."""
        cap = C * self.problem.weights
        if not self.begun:
            self.cap = cap
            if self.K is None:
                self.begin(C)
        else:
            share = C / self.begun
            # a coefficient at its bound stays there whatever rounding does
            self.alpha = np.where(self.alpha >= self.cap, cap, np.minimum(self.alpha * share, cap))
            self.responses *= share
            self.cap = cap
        self.begun = C

    def begin(self, C: float) -> None:
        """Start all folds from the solution of all rows, without the rows of the fold."""
        problem = self.problem
        cap = C * problem.weights.max(axis=0)
        state = SmoState(problem.rows, problem.y, cap, _Tolerance(self.tol), linear=problem.linear, run=self.run)
        state.solve(np.inf)
        self.steps += state.steps
        v = problem.linear - state.responses.values[:, 0]
        for alpha, own in zip(self.alpha, self.cap, strict=True):
            alpha[:] = _balanced(np.minimum(state.alpha, own), problem.y, v)
        change = (self.alpha - state.alpha) * problem.y
        moved = np.flatnonzero(change.any(axis=0))
        self.responses[:] = state.responses.values[:, 0]
        self.add(moved, change[:, moved])

    def add(self, index: Array, change: Array) -> None:
        """Add changes of coefficients, (folds, rows), to the responses of all rows."""
        if index.size:
            self.responses += self.problem.rows.product_of(index, np.ascontiguousarray(change.T), keep=False).T

    def bounds(self, fold: int) -> tuple[Array, Array]:
        """Return v of the rows whose coefficient can grow (else -inf), and of those whose can shrink (else inf)."""
        grow, shrink = np.empty((2, self.alpha.shape[1]))
        v = self.problem.linear - self.responses[fold]
        core.bounds(self.alpha[fold], self.cap[fold], self.problem.y, v, grow, shrink)
        return grow, shrink

    def settled(self) -> Array:
        """Run rounds until the gap of each fold is within `tol`, or no round makes progress; return the gaps."""
        folds, n = self.alpha.shape
        gaps, everyone = np.full(folds, np.inf), np.arange(n)
        if self.K is not None:
            self.problem.rows.share_out(lambda fold: self.solve(fold, everyone, self.tol, gaps), folds)
            return gaps
        for _ in range(MOST_ROUNDS):
            sides = [self.bounds(fold) for fold in range(folds)]
            gaps[:] = [max(grow.max() - shrink.min(), 0.0) for grow, shrink in sides]
            unsolved = np.flatnonzero(gaps > self.tol)
            if not unsolved.size or self.run.over:
                break
            self.round(unsolved, sides, gaps)
        return gaps

    def round(self, folds: Array, sides: list[tuple[Array, Array]], gaps: Array) -> None:
        """Solve each of some folds on the rows that it needs, and add the changes to the responses of all rows."""
        before = self.alpha.copy()

        def solve(number: int) -> None:
            fold = int(folds[number])
            index = _wanted(*sides[fold], self.most)
            self.solve(fold, index, max(CLOSE * gaps[fold], self.tol / 2), np.empty(gaps.size))

        self.problem.rows.share_out(solve, folds.size)
        change = (self.alpha - before) * self.problem.y
        moved = np.flatnonzero(change.any(axis=0))
        self.add(moved, change[:, moved])

    def solve(self, fold: int, index: Array, goal: float, gaps: Array) -> None:
        """Solve a fold on some of its rows, and set the gap that is left there."""
        problem, cap = self.problem, self.cap[fold, index]
        K = problem.rows.block(index) if self.K is None else self.K
        linear, y = problem.linear[index], problem.y[index]
        alpha, f = self.alpha[fold, index], self.responses[fold, index]
        while not self.run.over:
            steps, gaps[fold] = core.settle(K, linear, y, cap, alpha, f, goal, STEPS_AT_ONCE)
            self.steps += steps
            if steps < STEPS_AT_ONCE:
                break
        self.alpha[fold, index] = alpha
        if self.K is not None:
            self.responses[fold] = f

    def solved(self, C: float, gaps: Array) -> Solved:
        """Return the solutions as they are."""
        signed = self.alpha * self.problem.y
        bias = np.array([self.bias(fold) for fold in range(gaps.size)])
        status = Status.CONVERGED if (gaps <= self.tol).all() else Status.STALLED
        return Solved(C, signed, self.responses.copy(), bias, gaps.copy(), self.steps, status)

    def bias(self, fold: int) -> float:
        """Return the mean v of the free rows of a fold, or the middle of the bounds if no row is free (LIBSVM's rule)."""
        grow, shrink = self.bounds(fold)
        free = np.isfinite(grow) & np.isfinite(shrink)
        if free.any():
            return float(grow[free].mean())
        ends = [end for end in (grow.max(), shrink.min()) if np.isfinite(end)]
        return float(np.mean(ends)) if ends else 0.0


@dataclass(frozen=True)
class _Tolerance:
    """The settings of the solver of all rows."""

    tol: float
    working_set: None = None


def _balanced(alpha: Array, y: Array, v: Array) -> Array:
    """Return coefficients whose signed sum is 0: those of the heavier sign that gain least shrink first."""
    excess = float((alpha * y).sum())
    side = np.flatnonzero((alpha > 0) & (y * excess > 0))
    order = side[np.argsort((v * y)[side])]
    room = np.maximum(abs(excess) - np.concatenate([[0.0], np.cumsum(alpha[order])[:-1]]), 0.0)
    balanced = alpha.copy()
    balanced[order] -= np.minimum(alpha[order], room)
    return balanced


def _wanted(grow: Array, shrink: Array, most: int) -> Array:
    """Return the rows to solve for: the free ones and the worst of both bounds, which form violating pairs or nearly do."""
    free = np.isfinite(grow) & np.isfinite(shrink)
    count = min(max(int(NEAR * free.sum()), LEAST_NEAR), most // 4)
    risers, fallers = np.where(free, -np.inf, grow), np.where(free, -np.inf, -shrink)
    worst = [np.argpartition(-score, count)[:count] for score in (risers, fallers)]
    found = np.concatenate([side[np.isfinite(score[side])] for side, score in zip(worst, (risers, fallers), strict=True)])
    return np.union1d(found, np.flatnonzero(free)[: most - found.size])
