"""The exact SVM by sequential minimal optimisation: C-SVM, epsilon-SVR and one-class SVM (`solvers.smo`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..clock import check_time_limit
from ..goals import Novelty, Regression
from ..kernels import Array
from ..limits import Limits
from ..model import Status
from ..rows.protocol import Rows
from ..rows.threads import blocks
from ..run import BY_ITSELF, Run
from ..solvers.class_pairs import ClassPairs
from ..solvers.free_rows import USUAL_RULE, NewtonRule
from ..solvers.no_bias import NoBiasState
from ..solvers.smo import Rounds, SmoState
from ..solvers.tube import Tube
from .frames.per_output import Binary, BinaryTrainer, Pairs, Solution, TrainingInterrupted

#: most rows of a working set. The start is near the optimum, so few rows change in a round; a larger set costs more time
#: than the rounds it saves
WORKING_SET = 512
#: rows with which outlying rows are found at the start; more: a better start that takes longer
LANDMARKS = 64
#: support vectors of the start whose kernel values are added between two looks at the clock; more: a later end
START_PART = 2048
#: the boundary is moved outwards by this share of the scores; more: rows that are clearly outside count as inside
ROUNDING = 1e-12


@dataclass(frozen=True)
class OneClassRounds:
    """The tolerance and the working set of a run."""

    tol: float
    working_set: int


class OneClassState(SmoState):
    """The one-class SVM of Schölkopf et al. (2001), by the pair steps of `smo`.

        min  1/2 a'K a     0 <= a_i <= w_i,  sum_i a_i = nu sum_i w_i

    f(x) = sum_i a_i k(x_i, x) - rho is at least 0 for all but a share nu of the rows at most. This is the problem of
    `SmoState` with labels of 1 and no linear term. The scale is LIBSVM's: the paper divides a and rho by nu n. It starts
    with coefficients on few rows, those least similar to others.
    """

    def __init__(
        self,
        rows: Rows,
        weights: Array,
        nu: float,
        settings: Rounds,
        *,
        newton: NewtonRule | None = USUAL_RULE,
        run: Run = BY_ITSELF,
    ) -> None:
        rounds = OneClassRounds(settings.tol, min(settings.working_set or WORKING_SET, WORKING_SET))
        super().__init__(rows, np.ones(rows.n), weights, rounds, linear=np.zeros(rows.n), newton=newton, run=run)
        self.total = nu * float(weights.sum())

    def begin_from(self, start: Array) -> None:
        """Start from coefficients, clipped to the box; outlying rows take the rest of the sum."""
        alpha = np.clip(start, 0.0, self.cap)
        alpha *= self.total / max(float(alpha.sum()), self.total)
        order = self._outlying_first()
        room = (self.cap - alpha)[order]
        filled = np.concatenate([[0.0], np.cumsum(room)])[:-1]
        alpha[order] += np.clip(self.total - alpha.sum() - filled, 0.0, room)
        self.alpha = alpha
        self._add_start(np.flatnonzero(alpha))

    def _add_start(self, support: Array) -> None:
        """Add the support vectors of the start to the responses; at the deadline, those added by then stand for all.

        They are a share nu of all rows at least, which can take longer than the time limit.
        """
        order = support[evenly_spaced(support.size)]
        for part in blocks(order.size, START_PART):
            self.responses.add_rows(order[part], self.alpha[order[part], None])
            if self.run.over and part.stop < order.size:
                added = np.zeros(self.rows.n)
                added[order[: part.stop]] = self.alpha[order[: part.stop]]
                scale = self.total / float(added.sum())
                self.alpha, self.responses.values = scale * added, scale * self.responses.values
                self.status = Status.TIME_LIMIT
                return

    def bias(self) -> float:
        """Return -rho, with a margin for rounding: rows on the boundary, such as free support vectors, are inside.

        Without a step, rho is the score that a share nu of the rows is below.
        """
        if self.steps or self.status is not Status.TIME_LIMIT:
            return super().bias() + ROUNDING * self.total
        v = self.v
        order = np.argsort(-v, kind="stable")
        below = int(np.searchsorted(np.cumsum(self.cap[order]), self.total))
        return float(v[order[min(below, order.size - 1)]])

    def _outlying_first(self) -> Array:
        """Return the rows by ascending mean kernel value with a few rows; it is small for support vectors."""
        landmarks = evenly_spaced(self.rows.n)[:LANDMARKS]
        likeness = self.rows.product_of(landmarks, np.ones((landmarks.size, 1)), keep=False)[:, 0]
        return np.argsort(likeness, kind="stable")


def evenly_spaced(n: int) -> Array:
    """Return 0 .. n-1 in an order whose first ones are spread evenly: that of multiples of the golden ratio modulo 1."""
    return np.argsort(np.modf(np.arange(n) * (np.sqrt(5.0) - 1) / 2)[0], kind="stable")


@dataclass(frozen=True)
class SMO(BinaryTrainer):
    """The SVM, solved to `tol`, with an unregularised bias; for classes `bias=False` leaves it out.

    For classes it is the C-SVM, for regression the SVM with the epsilon-insensitive loss, for novelty the one-class SVM,
    which has no C. The optima and the meaning of `tol` are LIBSVM's. `max_iter` limits the pair steps of each output. With
    -1 the limit is 10 million, or a thousand for each row if that is more: few problems need as many, and those that do
    might never end. `working_set` is the number of rows that a round solves for, None for 2,048 on the host and 4,096 on a
    GPU, and for down to half of that where rows are few. `time_limit` is in seconds for each output. Where pair steps take
    long, Newton's method solves for the free rows; `newton` says when, None never (`solvers.free_rows`). Without a bias it
    is not used, and a working set may be a single row.
    """

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    working_set: int | None = None
    time_limit: float | None = None
    newton: NewtonRule | None = USUAL_RULE
    bias: bool = True
    real_valued: ClassVar[bool] = True
    starts_warm: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        least = 2 if self.bias else 1
        if self.working_set is not None and self.working_set < least:
            why = "2 rows at least, since a step moves a pair" if self.bias else "1 row at least"
            raise ValueError(f"working_set must be {why}, not {self.working_set!r}")
        if not isinstance(self.newton, NewtonRule | None):
            raise ValueError(f"newton must be a NewtonRule or None, not {self.newton!r}")

    def solve_together(self, pairs: Pairs) -> None:
        """Solve the pairs of small classes, one class against all later ones in each thread."""
        targets, rows = pairs.targets, pairs.task.rows
        classes = ClassPairs.of(rows, targets.groups, self.C * pairs.task.weights, self.tol, self.working_set)
        if classes is None or not self.bias:
            return

        def solve(number: int) -> None:
            if pairs.task.run.over:
                return
            first, others = classes.tasks[number]
            solved = classes.solve(first, others, self.tol, Limits(self.max_iter).iterations)
            pairs.store_class(first, solved, self.tol)
            pairs.task.run.record(gap=float(solved.gap.max()))

        rows.share_out(solve, len(classes.tasks))

    def solve(self, problem: Binary) -> Solution:
        limit = Limits(self.max_iter).iterations
        if not self.bias and problem.goal.real:
            raise ValueError("bias=False is for classes: regression and novelty detection always have a bias")
        match problem.goal:
            case Novelty():
                return self._solve_one_class(problem, problem.goal.nu, limit)
            case Regression():
                return self._solve_regression(problem, np.asarray(problem.goal.epsilon).item(), limit)
        kind = SmoState if self.bias else NoBiasState
        run = kind(problem.rows, problem.y, self.C * problem.weights, self, newton=self.newton, run=self._run(problem))
        if not _restored(run, problem) and problem.start is not None:
            run.begin_from(problem.start)
        with _handed_over(run, lambda: run.signed):
            run.solve(limit)
        return Solution(run.signed, run.bias(), run.steps, run.gap, run.status)

    def _solve_regression(self, problem: Binary, epsilon: float, limit: float) -> Solution:
        run = Tube(problem.rows, problem.y, self.C * problem.weights, self, newton=self.newton, run=self._run(problem))
        if not _restored(run.state, problem) and problem.start is not None:
            run.begin_from(problem.start)
        with _handed_over(run.state, lambda: run.coef):
            status = run.solve(epsilon, limit)
        return Solution(run.coef, run.bias, run.state.steps, run.state.gap, status)

    def _solve_one_class(self, problem: Binary, nu: float, limit: float) -> Solution:
        run = OneClassState(problem.rows, problem.weights, nu, self, newton=self.newton, run=self._run(problem))
        if not _restored(run, problem):
            run.begin_from(np.zeros(problem.rows.n) if problem.start is None else problem.start)
        with _handed_over(run, lambda: run.signed):
            run.solve(limit)
        return Solution(run.signed, run.bias(), run.steps, run.gap, run.status)

    def _run(self, problem: Binary) -> Run:
        return problem.run.limited(self.time_limit)


def _restored(run: SmoState, problem: Binary) -> bool:
    """Continue from the saved state of a problem, and return whether there is one."""
    if problem.saved is not None:
        run.restore(problem.saved)
    return problem.saved is not None


@contextmanager
def _handed_over(run: SmoState, dual: Callable[[], Array]) -> Iterator[None]:
    """Let Ctrl-C in a `with` block end the training with what the run has found, if it has made a step."""
    try:
        yield
    except KeyboardInterrupt:
        if not run.steps:
            raise
        solution = Solution(dual(), run.bias(), run.steps, run.gap, Status.INTERRUPTED)
        raise TrainingInterrupted(solution) from None
