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
from ..run import Run
from ..solvers.class_pairs import ClassPairs
from ..solvers.free_rows import USUAL_RULE, NewtonRule
from ..solvers.no_bias import NoBiasState
from ..solvers.one_class import OneClassState
from ..solvers.smo import SmoState
from ..solvers.tube import Tube
from .frames.per_output import Binary, BinaryTrainer, Pairs, Solution, TrainingInterrupted


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
            found = classes.solve(first, others, self.tol, Limits(self.max_iter).iterations)
            pairs.store_class(first, found, self.tol)
            pairs.task.run.record(gap=float(found.gap.max()))

        rows.share_out(solve, len(classes.tasks))

    def solve(self, problem: Binary) -> Solution:
        """Solve one output."""
        limit = Limits(self.max_iter).iterations
        if not self.bias and problem.goal.real:
            raise ValueError("bias=False is for classes: regression and novelty detection always have a bias")
        match problem.goal:
            case Novelty():
                return self._solve_one_class(problem, problem.goal.nu, limit)
            case Regression():
                return self._solve_regression(problem, problem.goal.epsilon, limit)
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
        found = Solution(dual(), run.bias(), run.steps, run.gap, Status.INTERRUPTED)
        raise TrainingInterrupted(found) from None
