"""The exact C-SVM by sequential minimal optimisation (`solvers.smo`)."""

from __future__ import annotations

from dataclasses import dataclass

from ..limits import Limits
from ..solvers.class_pairs import ClassPairs
from ..solvers.smo import SmoState
from .frames.per_output import Binary, BinaryTrainer, Pairs, Solution


@dataclass(frozen=True)
class SMO(BinaryTrainer):
    """C-SVM with an unregularised bias, solved to `tol`; `max_iter` limits the pair steps of each output (-1: no limit)."""

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    working_set: int = 2048

    def __post_init__(self) -> None:
        if self.working_set < 2:
            raise ValueError(f"working_set must be 2 rows at least, since a step moves a pair, not {self.working_set!r}")

    def small(self) -> int:
        """Return a few working sets: smaller problems leave most threads idle."""
        return 4 * self.working_set

    def solve_together(self, pairs: Pairs) -> None:
        """Solve the pairs of small classes, one class against all later ones in each thread."""
        targets, rows = pairs.targets, pairs.task.rows
        if not ClassPairs.fits(targets.groups):
            return
        classes = ClassPairs(rows, targets.groups, self.C * pairs.task.weights)

        def solve(first: int) -> None:
            for found in classes.solve(first, self.tol, Limits(self.max_iter).iterations):
                pairs.store_class(first, found, self.tol)

        rows.share_out(solve, targets.n_classes - 1)

    def solve(self, problem: Binary) -> Solution:
        """Solve one output."""
        run = SmoState(problem.rows, problem.y, self.C * problem.weights, self)
        if problem.start is not None:
            run.begin_from(problem.start)
        run.solve(Limits(self.max_iter).iterations, problem.report)
        return Solution(run.signed, run.bias(), run.steps, run.gap, run.status)
