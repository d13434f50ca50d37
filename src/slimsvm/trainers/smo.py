"""The exact C-SVM by sequential minimal optimisation on two levels.

    max  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij     0 <= a_i <= C w_i,  sum_i y_i a_i = 0

Each round takes the rows that violate the optimality conditions most, half of them carried over from the round before,
solves the problem on that block by compiled pair steps with second-order choice (Fan, Chen & Lin 2005), and adds the
change to the responses of all rows in one tiled product. The optimum and the meaning of `tol` are LIBSVM's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._core import core
from ..gram import Crew, Gram
from ..kernels import Array
from ..model import Fit, Status, Task
from ..responses import Responses, largest

#: below this tolerance the inner loop runs in float64 whatever the tiles are
FLOAT_TOL = 1e-4
#: pair steps after which a round ends in any case, so that an interrupt is heard
STEPS_A_ROUND = 100_000
#: the share of active rows below which the others rest for a while
SHRINK_BELOW = 0.5
#: the gap to which problems of a single small block are solved, and the rows of such a block
EXACT, SMALL_BLOCK = 1e-12, 512
#: rounds without any gain in the objective after which rounding is to blame
PATIENCE = 20


@dataclass(frozen=True)
class SMO:
    """C-SVM with an unregularised bias, solved to `tol`; `max_iter` limits the pair steps of each output (-1: no limit)."""

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    working_set: int = 2048

    def __post_init__(self) -> None:
        if self.working_set < 2:
            raise ValueError(f"working_set must be 2 rows at least, since a step moves a pair, not {self.working_set!r}")

    def fit(self, task: Task, start: Array | None = None) -> Fit:
        """Train every output; `start` holds signed coefficients (n, q) of an earlier run to begin from."""
        n, q = task.targets.shape
        solved: dict[int, _Solution] = {}
        # many small problems: a thread works on one at a time
        small = q > 1 and np.count_nonzero(task.targets, axis=0).max() <= min(4 * self.working_set, n - 1)
        crew = Crew(1) if small else task.gram.crew

        def solve(columns: slice) -> None:
            for column in range(q)[columns]:
                report = partial(_report, task, len(solved), q)
                solved[column] = self._solve(task, column, start, crew, report)

        (task.gram.crew if small else Crew(1)).run(solve, q, 1)
        dual = np.zeros((n, q))
        for column, solution in solved.items():
            dual[solution.rows, column] = solution.dual
        support = np.flatnonzero(dual.any(axis=1))
        model = task.expansion(support, dual[support], np.array([solved[column].bias for column in range(q)]))
        ends = {solution.status for solution in solved.values()}
        status = next((end for end in (Status.MAX_ITER, Status.STALLED) if end in ends), Status.CONVERGED)
        return Fit(model, status, sum(s.steps for s in solved.values()), dual, max(s.gap for s in solved.values()))

    def _solve(
        self, task: Task, column: int, start: Array | None, crew: Crew, report: Callable[[float], None]
    ) -> _Solution:
        """One output, on the rows that have a part in it."""
        rows = np.flatnonzero(task.targets[:, column])
        gram = task.gram if rows.size == task.gram.n else task.gram.subset(rows, crew)
        run = _Column(gram, task.targets[rows, column], self.C * task.weights[rows], self)
        if start is not None:
            run.begin_from(start[rows, column])
        run.solve(self.max_iter if self.max_iter >= 0 else np.inf, report)
        return _Solution(rows, run.alpha * run.y, run.bias(), run.steps, run.gap, run.status)


@dataclass(frozen=True)
class _Solution:
    """What is kept of one output."""

    rows: Array
    dual: Array  # signed, of those rows
    bias: float
    steps: int
    gap: float
    status: Status


class _Column:
    """The state of one binary problem: alpha, v = y - f, and the block of the last round."""

    def __init__(self, gram: Gram, y: Array, cap: Array, settings: SMO) -> None:
        self.gram, self.y, self.cap, self.settings = gram, y, cap, settings
        self.tol = settings.tol
        self.alpha = np.zeros(gram.n)
        self.responses = Responses(gram, 1)
        self.working = np.empty(0, dtype=np.intp)
        # one piece of memory for the blocks of all rounds: fresh pages cost more than the values
        self.buffer = np.empty(min(settings.working_set, gram.n) ** 2, gram.dtype)
        self.block = self.buffer[:0].reshape(0, 0)
        self.steps = 0
        self.gap = np.inf
        self.status = Status.CONVERGED

    @property
    def v(self) -> Array:
        """y - f: minus y times the gradient of the dual."""
        return self.y - self.responses.values.ravel()

    def bounds(self) -> tuple[Array, Array]:
        """v of the rows whose y a can still grow (else -inf), and of those whose y a can shrink (else +inf)."""
        rise, fall = self.alpha < self.cap, self.alpha > 0
        positive, v = self.y > 0, self.v
        return (
            np.where(np.where(positive, rise, fall), v, -np.inf),
            np.where(np.where(positive, fall, rise), v, np.inf),
        )

    def bias(self) -> float:
        """The mean v of the free rows, or the middle of the bounds where there are none (LIBSVM's rule)."""
        free = (self.alpha > 0) & (self.alpha < self.cap)
        if free.any():
            return float(self.v[free].mean())
        grow, shrink = self.bounds()
        ends = [end for end in (grow.max(), shrink.min()) if np.isfinite(end)]
        return float(np.mean(ends)) if ends else 0.0

    def solve(self, limit: float, report: Callable[[float], None]) -> None:
        """Rounds until no pair of rows violates optimality by more than `tol`, or `limit` pair steps."""
        first_gap, idle, best, fresh = 0.0, 0, -np.inf, True
        while True:
            grow, shrink = self.bounds()
            self.gap = float(max(grow.max() - shrink.min(), 0.0))
            first_gap = first_gap or self.gap
            report(_progress(first_gap, self.gap, self.tol))
            if self.gap <= self.tol:
                return
            if self.steps >= limit:
                self.status = Status.MAX_ITER
                return
            objective = self.objective()
            idle = 0 if objective > best + 1e-12 * abs(best) else idle + 1
            best = max(best, objective)
            if idle >= PATIENCE:
                self.status = Status.STALLED
                return
            active = self.active(grow, shrink) if fresh else None
            fresh = active is None
            if active is not None:
                self.solve_active(active, limit)
            else:
                self.choose(grow, shrink)
                self.step(limit)

    def active(self, grow: Array, shrink: Array) -> Array | None:
        """The rows that are free or may still violate optimality, where they are few among many; else None.

        A row at its bound whose v lies beyond all it could be paired with stays there, most likely.
        """
        if self.gram.n < 4 * self.settings.working_set or self.gram.rows_are_dear:
            return None
        resting = ((shrink == np.inf) & (grow < shrink.min())) | ((grow == -np.inf) & (shrink > grow.max()))
        active = np.flatnonzero(~resting)
        return active if active.size < SHRINK_BELOW * self.gram.n else None

    def solve_active(self, active: Array, limit: float) -> None:
        """Solve the problem of the active rows, the others fixed, and bring the responses of all rows up to date."""
        part = _Column(self.gram.subset(active), self.y[active], self.cap[active], self.settings)
        part.alpha, part.responses.values = self.alpha[active], self.responses.values[active]
        part.tol = self.settings.tol / 3  # rounds of few rows cost little, and decision values gain
        part.solve(limit - self.steps, _unheard)
        change = (part.alpha - self.alpha[active]) * self.y[active]
        self.alpha[active] = part.alpha
        self.steps += part.steps
        self.responses.add_rows(active[change != 0], change[change != 0, None])

    def begin_from(self, start: Array) -> None:
        """Take over coefficients, moved into this problem's box and onto its hyperplane."""
        alpha = np.clip(start * self.y, 0.0, self.cap)
        sides = [alpha[self.y > 0].sum(), alpha[self.y < 0].sum()]
        for sign, total in zip((1, -1), sides, strict=True):
            if total > min(sides) * (1 + 1e-9):  # rounding is no reason to move rows off their bounds
                alpha[self.y == sign] *= min(sides) / total
        self.alpha = alpha
        support = np.flatnonzero(alpha)
        self.responses.add_rows(support, (alpha * self.y)[support, None])

    def objective(self) -> float:
        """The dual objective: sum a - 1/2 sum a y f."""
        return float(self.alpha.sum() - 0.5 * (self.alpha * self.y) @ self.responses.values.ravel())

    def choose(self, grow: Array, shrink: Array) -> None:
        """The next working set and its kernel block: the worst rows of both sides, and rows of the last set."""
        size = self.settings.working_set
        if self.gram.n <= size:
            worst = np.arange(self.gram.n)
        else:
            half = max(size // (4 if self.working.size else 2), 1)
            worst = np.union1d(largest(grow, half), largest(-shrink, half))
        earlier = self.working[~np.isin(self.working, worst)][: max(size - worst.size, 0)]  # the latest come first
        self.working = np.concatenate([worst, earlier])
        self.block = self.gram.block(self.working, out=self.buffer)

    def step(self, limit: float) -> None:
        """Solve the block to a tenth of the gap and add the change to all responses."""
        index, tol = self.working, self.tol
        whole = index.size == self.gram.n
        small = whole and index.size <= SMALL_BLOCK
        real = np.float64 if small or tol < FLOAT_TOL else self.gram.dtype
        alpha, y, v = self.alpha[index], self.y[index].astype(real), self.v[index].astype(real)
        block, cap = self.block.astype(real, copy=False), self.cap[index]
        goal = 0.5 * tol if whole else max(0.1 * self.gap, 0.5 * tol)
        steps, gap = core.smo(block, y, cap, alpha, v, goal, int(min(limit - self.steps, STEPS_A_ROUND)))
        if small and gap <= goal:
            # one block holds all rows: going on until rounding stops it costs little, and makes the result
            # independent of the order of the rows and of how often each is repeated
            core.smo(block, y, cap, alpha, v, EXACT, 1000 + 20 * index.size)
        change = (alpha - self.alpha[index]) * self.y[index]
        moved = change != 0
        self.alpha[index] = alpha
        self.steps += steps
        self.responses.add_rows(index[moved], change[moved, None])


def _report(task: Task, done: int, outputs: int, part: float) -> None:
    task.report("train", (done + part) / outputs)


def _unheard(part: float) -> None:
    """Report nothing."""


def _progress(first: float, gap: float, tol: float) -> float:
    """The share of the way from the first gap to `tol`, on a logarithmic scale."""
    return 1.0 if gap <= tol else min(max(np.log(first / gap) / np.log(first / tol), 0.0), 1.0)
