"""All folds of a cross-validation for values of C close to each other: the exact SVM of each, one from the other.

    max  linear'c - 1/2 c'K c     c_i = y_i a_i,  0 <= a_i <= C w_i,  sum_i c_i = 0

The folds of a cross-validation are this problem with other weights w, which are 0 for the rows of the fold. They are solved
side by side, for rising C:

1. For the first C, the problem of all rows is solved. A fold starts from its solution without the fold's own rows.
2. From one C to the next, coefficients and responses K c go on along the line through the last two solutions, into the
   larger box; where that lowers the objective, only the bounds grow.
3. Each fold is solved on the rows that may change: the free ones, those that violate optimality, and those nearest to it,
   each in a thread. Where folds need nearly the same rows, they share the block of their kernel values, which is kept.
4. The changes of all folds are added to the responses of all rows in one product. It shows which of the other rows violate
   optimality now, and gives the outputs of the rows that a fold has left out.

A solution ends with a gap of at most `tol` over all its rows, as a separate fit does.

Where values of C are far apart, solutions have little in common, and what a fold can use of the others is not worth the
wider steps. Then each fold goes on from its own solution in the same way, a fold in each thread (`fold_by_fold`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .._core import core
from ..kernels import Array
from ..model import Status
from ..rows.protocol import Rows
from ..rows.threads import Spaces
from ..run import BY_ITSELF, Run
from .matrix_path import Copies, Solved
from .smo import MOST_STEPS, MOST_STEPS_A_ROW, SmoState

#: memory for a block and for the copy of a part of it, in which steps are shorter, relative to the block's
COPIES = 1.5
#: rows that are solved for together, however little memory there is
LEAST_ROWS = 64
#: the gap to which the rows in memory are solved, as a share of the gap of all rows; less: fewer products, and more steps
CLOSE = 0.03
#: rows of the block of all folds that none of them needs any more, as a share, with which it is made anew
STALE = 0.5
#: coefficients within this share of their box from a bound are at the bound, but for rounding
ROUNDED = 1e-10
#: growth of C after which responses are computed anew, since rounding grows with C too
REFRESH = 4.0
#: rounds after which a fold stops as it is
MOST_ROUNDS = 200


@dataclass(frozen=True)
class FoldedRule:
    """Which rows are solved for together.

    Of the rows at a bound, those nearest to the margin are solved for too: `near` as a share of the free and violating
    ones, and at least `least`. More of them: fewer products with all rows. Folds share a block unless pair steps pass more
    rows in it that their own fold does not need than `copied` times the kernel values in blocks of their own.
    """

    near: float = 0.1
    least: int = 128
    copied: float = 4.0


@dataclass(frozen=True)
class Memory:
    """Memory for kernel values, in MiB: for a block of each thread, and for one that all folds share."""

    own: float
    shared: float
    spaces: Spaces


@dataclass(frozen=True)
class FoldedProblem:
    """The rows, one for each variable, the signs y, the linear term, and the weights of each fold, (folds, n)."""

    rows: Rows
    y: Array
    linear: Array
    weights: Array


class FoldedPath:
    """The solutions of all folds, from one C to the next larger one."""

    def __init__(
        self,
        problem: FoldedProblem,
        tol: float,
        memory: Memory,
        run: Run = BY_ITSELF,
        rule: FoldedRule = FoldedRule(),
    ) -> None:
        self.problem, self.tol, self.run, self.rule = problem, tol, run, rule
        self.memory, numbers = memory, 2**20 / problem.rows.dtype.itemsize
        self.folds, n = np.arange(problem.weights.shape[0]), problem.weights.shape[1]
        self.alpha: Array = np.zeros(problem.weights.shape)
        self.responses, self.cap, self.bias = self.alpha.copy(), self.alpha.copy(), np.zeros(self.folds.size)
        self.earlier, self.earlier_f, self.earlier_C, self.fresh = self.alpha.copy(), self.alpha.copy(), 0.0, 0.0
        self.most = max(int(np.sqrt(memory.own * numbers / COPIES)), LEAST_ROWS)
        self.counts, self.begun = np.zeros(self.folds.size, dtype=np.int64), 0.0  # pair steps of each fold
        self.latest = 0  # pair steps for the last C
        self.shared = _Shared(problem.rows, max(int(np.sqrt(memory.shared * numbers)), LEAST_ROWS))
        self.copies = Copies(n, min(int(np.sqrt(COPIES - 1) * self.most), n), problem.rows.dtype)

    def solutions(self, Cs: Array) -> Iterator[Solved]:
        """Yield the solutions for rising values of C, until the time is over."""
        with self.memory.spaces.of(self.shared.most**2) as space:
            self.shared.space = space[: self.shared.most**2].reshape(self.shared.most, -1)
            for C in Cs:
                before = self.counts.sum()
                gaps = self.advanced(float(C))
                self.latest = int(self.counts.sum() - before)
                if self.run.over:
                    return
                yield Solved.of(
                    float(C), self.alpha * self.problem.y, self.responses.copy(), self.bias.copy(), gaps.copy(), self.tol
                )

    def advanced(self, C: float) -> Array:
        """Solve all folds for a larger C, and return their gaps."""
        self.cap = C * self.problem.weights
        if self.begun:
            t = (C - self.begun) / (self.begun - self.earlier_C)
            there, f = self.alpha, self.responses
            self.move(t, there, f)
            self.earlier, self.earlier_f, self.earlier_C = there, f, self.begun
        else:
            self.begin(C)
        if REFRESH * self.fresh < C:
            self.fresh, self.responses = C, np.zeros_like(self.responses)
            self.add(self.folds, self.alpha * self.problem.y)
        self.begun = C
        return self.settled()

    def move(self, t: float, alpha: Array, f: Array) -> None:
        """Move along the lines from the earlier solutions through the last ones, times t, into the boxes."""
        self.alpha, self.responses, change = np.empty((3, *alpha.shape))
        core.advance(
            self.problem.linear,
            self.problem.y,
            self.cap,
            t,
            alpha,
            f,
            self.earlier,
            self.earlier_f,
            self.alpha,
            self.responses,
            change,
        )
        self.add(self.folds, change)

    def begin(self, C: float) -> None:
        """Start all folds from the solution of all rows, without the rows of the fold."""
        problem, cap = self.problem, C * self.problem.weights.max(axis=0)
        state = SmoState(problem.rows, problem.y, cap, Tolerance(self.tol), linear=problem.linear, run=self.run)
        state.solve(np.inf)
        self.counts[0] += state.steps
        shape = self.alpha.shape
        self.move(0.0, np.tile(state.alpha, (shape[0], 1)), np.tile(state.responses.values[:, 0], (shape[0], 1)))

    def add(self, folds: Array, change: Array) -> None:
        """Add changes of the coefficients of some folds to the responses of all rows."""
        moved = np.flatnonzero(change.any(axis=0))
        if moved.size:
            V = np.ascontiguousarray(change[:, moved].T)
            self.responses[folds] += self.problem.rows.product_of(moved, V, keep=False).T

    def bounds(self, fold: int) -> tuple[Array, Array]:
        """Return v of the rows whose coefficient can grow (else -inf), and of those whose can shrink (else inf)."""
        grow, shrink = np.empty((2, self.alpha.shape[1]))
        v = self.problem.linear - self.responses[fold]
        core.bounds(self.alpha[fold], self.cap[fold], self.problem.y, v, grow, shrink)
        return grow, shrink

    def settled(self) -> Array:
        """Run rounds until the gap of each fold is within `tol`, or nothing moves; return the gaps."""
        gaps = np.full(self.folds.size, np.inf)
        for _ in range(MOST_ROUNDS):
            sides = [self.bounds(fold) for fold in range(gaps.size)]
            gaps[:] = [max(grow.max() - shrink.min(), 0.0) for grow, shrink in sides]
            unsolved = np.flatnonzero(gaps > self.tol)
            if not unsolved.size or self.run.over:
                break
            self.round(unsolved, [sides[fold] for fold in unsolved.tolist()], gaps.copy())
        self.bias[:] = [_bias(*each) for each in sides]
        return gaps

    def round(self, folds: Array, sides: list[tuple[Array, Array]], gaps: Array) -> None:
        """Solve each of some folds on the rows that it needs, and add the changes to the responses of all rows."""
        before, goals = self.alpha[folds], np.maximum(CLOSE * gaps, self.tol / 2)
        wanted = [_wanted(grow, shrink, self.most, self.rule) for grow, shrink in sides]
        union, rows = np.unique(np.concatenate(wanted)), self.problem.rows
        if self.pays_to_share(union.size, [index.size for index in wanted]):
            self.shared.include(union)
            index, K = self.shared.index, self.shared.values
            rows.share_out(lambda number: self.solve(folds[number], index, K, goals, gaps), folds.size)
        else:

            def solve(number: int) -> None:
                index = wanted[number]
                with self.memory.spaces.of(index.size**2) as space:
                    self.solve(folds[number], index, rows.block(index, out=space), goals, gaps)

            rows.share_out(solve, folds.size)
        self.add(folds, (self.alpha[folds] - before) * self.problem.y)

    def pays_to_share(self, union: int, sizes: list[int]) -> bool:
        """Return whether folds share a block: it is made once, but pair steps take longer in it than in their own."""
        steps = self.latest / self.folds.size
        longer = steps * (union * len(sizes) - sum(sizes))
        return union <= self.shared.most and longer <= self.rule.copied * sum(size**2 for size in sizes)

    def solve(self, fold: int, index: Array, K: Array, goals: Array, gaps: Array) -> None:
        """Solve a fold on some of its rows, with their kernel values, and set the gap that is left there."""
        problem, cap = self.problem, self.cap[fold, index]
        linear, y = problem.linear[index], problem.y[index]
        alpha, f = self.alpha[fold, index], self.responses[fold, index]
        ranges = core.Ranges(np.zeros(1, dtype=np.intp), np.array([index.size]))
        with self.copies.of() as copy:
            copy.clear()
            steps, gaps[fold], self.bias[fold] = core.settle(
                K, ranges, linear, y, cap, alpha, f, goals[fold], max(MOST_STEPS, MOST_STEPS_A_ROW * index.size), copy
            )
        self.counts[fold] += steps
        self.alpha[fold, index] = _snapped(alpha, cap)


@dataclass(frozen=True)
class Tolerance:
    """The settings of the solver of all rows."""

    tol: float
    working_set: None = None


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

        def solve(fold: int, C: float = float(C)) -> None:
            folds[fold].solve(C)

        problem.rows.share_out(solve, len(folds))
        if run.over:
            return
        states = [fold.state for fold in folds]
        f = np.stack([state.responses.values[:, 0] for state in states])
        gap, bias = np.array([state.gap for state in states]), np.array([state.bias() for state in states])
        yield Solved.of(float(C), np.stack([state.signed for state in states]), f, bias, gap, tol)


def _bias(grow: Array, shrink: Array) -> float:
    """Return the mean v of the free rows, or the middle of the bounds if no row is free (LIBSVM's rule)."""
    free = np.isfinite(grow) & np.isfinite(shrink)
    if free.any():
        return float(grow[free].mean())
    ends = [end for end in (grow.max(), shrink.min()) if np.isfinite(end)]
    return float(np.mean(ends)) if ends else 0.0


def _snapped(alpha: Array, cap: Array) -> Array:
    """Return coefficients within their box; those that rounding has left next to a bound are at it."""
    return np.where(alpha >= (1 - ROUNDED) * cap, cap, np.where(alpha > ROUNDED * cap, alpha, 0.0))


class _Shared:
    """The kernel values among the rows that any fold needs; rows are added, and those not needed are left out at times."""

    def __init__(self, rows: Rows, most: int) -> None:
        self.rows, self.most = rows, most
        self.index = np.empty(0, dtype=np.intp)
        self.space = np.empty((0, 0), rows.dtype)

    @property
    def values(self) -> Array:
        """The kernel values, (m, m)."""
        return self.space[: self.index.size, : self.index.size]

    def include(self, wanted: Array) -> None:
        """Include rows, at most `most`."""
        held = np.zeros(self.rows.n, dtype=bool)
        held[self.index] = True
        new = wanted[~held[wanted]]
        size = self.index.size + new.size
        if size > self.most or size - wanted.size > STALE * size:
            needed = np.zeros(held.size, dtype=bool)
            needed[wanted] = True
            stay = np.flatnonzero(needed[self.index])
            self.space[: stay.size, : stay.size] = self.space[np.ix_(stay, stay)]
            self.index = self.index[stay]
            size = stay.size + new.size
        old, self.index = self.index, np.concatenate([self.index, new])
        if new.size:
            block = self.rows.block(new, self.index)
            self.space[old.size : size, :size] = block
            self.space[: old.size, old.size : size] = block[:, : old.size].T


def _wanted(grow: Array, shrink: Array, most: int, rule: FoldedRule) -> Array:
    """Return the rows to solve for: the free ones, those that violate optimality, and some that are nearest to it.

    If they are too many, those that violate it most.
    """
    can_grow, can_shrink = np.isfinite(grow), np.isfinite(shrink)
    free = can_grow & can_shrink
    level = grow[free].mean() if free.any() else (grow.max() + shrink.min()) / 2
    wrong = int(((grow > level) & ~free).sum() + ((shrink < level) & ~free).sum())
    near = max(int(rule.near * (free.sum() + wrong)), rule.least)
    if free.sum() + wrong + 2 * near > most:
        half = most // 2
        return np.union1d(_largest(grow, half), _largest(-shrink, half))
    risers, fallers = np.where(free, -np.inf, grow), np.where(free, -np.inf, -shrink)
    counts = int((risers > level).sum()) + near, int((fallers > -level).sum()) + near
    return np.concatenate([np.flatnonzero(free), _largest(risers, counts[0]), _largest(fallers, counts[1])])


def _largest(score: Array, count: int) -> Array:
    """Return the places of the largest finite scores, at most `count`, ascending."""
    finite = np.flatnonzero(np.isfinite(score))
    if finite.size <= count:
        return finite
    return np.sort(finite[np.argpartition(-score[finite], count)[:count]])
