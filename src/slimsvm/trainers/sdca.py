"""The C-SVM without a bias by stochastic dual coordinate ascent.

    max  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij     0 <= a_i <= C w_i

The rows' caps are the only constraints, so that one coordinate can move alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import Array
from .frames.per_output import Binary, BinaryTrainer, Solution
from .frames.sequential import Limits, Walk

#: gradients that are rounding, as in LIBLINEAR: a row at its optimum stays there, and no responses change
ROUNDING = 1e-12
#: what stands in for K_ii where that is not above 0, as in LIBSVM: the step then goes to the end of its interval
TINY = 1e-12


@dataclass(frozen=True)
class SDCA(BinaryTrainer):
    """Dual coordinate descent (Hsieh et al. 2008): one coordinate after the other goes to its optimum, others fixed.

    Ends where no row violates the optimality conditions by more than `tol` (the largest projected gradient), judged once
    a pass; after `passes` of them; after `max_iter` steps; or after `time_limit` seconds for each output. Each pass takes
    the rows in a new order, as Hsieh et al. advise; with `replace`, each step draws from all rows, as in the analyses and
    in the comparison of Cotter, Shalev-Shwartz & Srebro (2012). Hsieh et al.'s shrinking is not here: with all
    responses known, a row that stays at its bound costs no evaluations but those of its block.
    """

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    passes: int = 1000
    replace: bool = False
    time_limit: float | None = None

    def __post_init__(self) -> None:
        Limits(self.passes, self.max_iter, self.time_limit)

    def solve(self, problem: Binary) -> Solution:
        """Passes over the rows, from the start given where there is one."""
        walk = Ascent(problem, self.C * problem.weights, replace=self.replace)
        if problem.start is not None:
            walk.begin_from(problem.start)
        status = walk.run(Limits(self.passes, self.max_iter, self.time_limit), self.tol)
        return Solution(walk.alpha[:, 0] * problem.y, 0.0, walk.steps, walk.gap(), status)


class Ascent(Walk):
    """A dual point within its box."""

    def __init__(self, problem: Binary, cap: Array, *, replace: bool) -> None:
        super().__init__(problem)
        self.cap, self.replace = cap, replace

    def begin_from(self, signed: Array) -> None:
        """Take over the coefficients of an earlier run, moved into this box."""
        self.alpha[:, 0] = np.clip(signed * self.y, 0.0, self.cap)
        support = np.flatnonzero(self.alpha[:, 0])
        self.responses.add_rows(support, self.alpha[support, :1] * self.y[support, None])

    def order(self) -> Array:
        """All rows, or as many draws from them."""
        n = self.gram.n
        return self.problem.rng.integers(n, size=n) if self.replace else super().order()

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:  # noqa: ARG002
        """The optimum of one coordinate (Hsieh et al., eq. 9)."""
        if abs(1.0 - margin) <= ROUNDING:
            return alpha
        return min(max(alpha + (1.0 - margin) / max(K_ii, TINY), 0.0), self.cap[row])

    def gap(self) -> float:
        """The largest projected gradient: how much one more unit of a_i, or one less, would gain (eq. 8)."""
        gradient, alpha = 1.0 - self.margins(), self.alpha[:, 0]
        gain = np.where(alpha < self.cap, gradient, 0.0)
        loss = np.where(alpha > 0, -gradient, 0.0)
        return float(np.maximum(gain, loss).max(initial=0.0))
