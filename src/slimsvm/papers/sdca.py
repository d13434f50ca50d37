"""The C-SVM without a bias by stochastic dual coordinate ascent.

    max  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij     0 <= a_i <= C w_i

The box is the only constraint, so each coordinate can move alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Limits, check_time_limit
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
from .sequential import SequentialRun, check_passes

#: gradients up to this size count as 0, as in LIBLINEAR; a larger one saves updates of the responses and loses accuracy
ROUNDING = 1e-12
#: least value for K_ii, as in LIBSVM: a step with K_ii <= 0 goes to the end of its interval
TINY = 1e-12


@dataclass(frozen=True)
class SDCA(BinaryTrainer):
    """Dual coordinate ascent (Hsieh et al. 2008): one coordinate at a time moves to its optimum with the others fixed.

    The run ends when no row violates the optimality conditions by more than `tol` (the largest projected gradient) at the
    end of a pass; after `passes`; after `max_iter` steps; or after `time_limit` seconds for each output. Each pass takes
    the rows in a new order, as Hsieh et al. advise. With `replace`, each step draws from all rows, as in the comparison of
    Cotter, Shalev-Shwartz & Srebro (2012). Shrinking is left out: the responses of all rows are known, so a row that stays
    at its bound needs no kernel evaluations except those of its block.
    """

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    passes: int = 1000
    replace: bool = False
    time_limit: float | None = None
    starts_warm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_passes(self.passes)
        check_time_limit(self.time_limit)

    def solve(self, problem: Binary) -> Solution:
        """Make passes over the rows of one output, from the given start if there is one."""
        run = Ascent(problem, self.C * problem.weights, replace=self.replace)
        if problem.start is not None:
            run.begin_from(np.clip(problem.start * problem.y, 0.0, run.cap)[:, None])
        status = run.run(self.passes, Limits(self.max_iter, self.time_limit), self.tol)
        return Solution(run.alpha[:, 0] * problem.y, 0.0, run.steps, run.gap(), status)


class Ascent(SequentialRun):
    """Coordinate ascent on a feasible point of the dual."""

    def __init__(self, problem: Binary, cap: Array, *, replace: bool) -> None:
        super().__init__(problem)
        self.cap, self.replace = cap, replace

    def order(self) -> Array:
        """Return all rows in random order, or n draws with replacement."""
        n = self.rows.n
        return self.problem.rng.integers(n, size=n) if self.replace else super().order()

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:
        """Return the optimum of one coordinate (Hsieh et al., eq. 9)."""
        if abs(1.0 - margin) <= ROUNDING:
            return alpha
        return min(max(alpha + (1.0 - margin) / max(K_ii, TINY), 0.0), self.cap[row])

    def gap(self) -> float:
        """Return the largest projected gradient of the dual (eq. 8)."""
        gradient, alpha = 1.0 - self.margins(), self.alpha[:, 0]
        gain = np.where(alpha < self.cap, gradient, 0.0)
        loss = np.where(alpha > 0, -gradient, 0.0)
        return float(np.maximum(gain, loss).max(initial=0.0))
