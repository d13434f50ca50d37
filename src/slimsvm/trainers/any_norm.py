"""SVMs with any norm of the slack (Dekel & Singer 2006, "Support Vector Machines on a Budget").

    min  1/2 |w|^2 + C |xi|,   y_i (f(x_i) + b) >= 1 - xi_i
    max  sum a - 1/2 a'Qa,     y'a = 0,  a >= 0,  |a|* <= C        (the dual, eq. 4; Q_ij = y_i y_j K_ij)

A norm of `norms` says what |a|* <= C is: a box and a limit of the sum go into the pair steps as they are; an ellipsoid
a'Pa <= r^2 goes into the objective with a multiplier. With f = K (a y), the optimum has mu, theta >= 0 with

    y_i - f_i - mu y_i (Pa)_i = b + theta y_i        for free a_i         (mu: of the ellipsoid, theta: of the sum)

so where the sum is at its limit, the free rows of the two labels lie on two levels, b + theta and b - theta. Theta is then
the smallest slack among the support vectors, the B-th largest of all slacks with the norm of budget-L1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..checks import check_count
from ..kernels import Array
from ..solvers.clipped import clipped_steps
from ..solvers.ellipsoid import solve_in_ellipsoid
from ..solvers.limited import LimitedState
from ..solvers.norms import Norm, OneInf, Two, TwoInf
from .frames.per_output import Binary, BinaryTrainer, Solution
from .smo import SMO


@dataclass(frozen=True)
class AnyNorm(BinaryTrainer):
    """The SVM with a norm of your choice for the slack, solved to `tol`; `max_iter` limits the pair steps (-1: no limit).

    `prune` keeps that many of the largest weights and sets the others to zero (section 5 of the paper); the bias stays as
    it is. With several classes that is so for each output, and the outputs may use different rows.

    `steps="exact"` finds the multiplier of an ellipsoid by a root search. The paper's own way, `steps="paper"`, clips each
    pair step at its surface. That gets stuck short of the optimum: at the surface a pair may only move inwards, and where
    each pair that gains would move outwards, several rows would have to move at once. Without an ellipsoid there is no
    difference.

    Rows have no weights: a weighted norm |w xi| would weigh the rows of the sum's limit too, which pair steps cannot keep.
    """

    weighted: ClassVar[bool] = False

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    norm: Norm = field(default_factory=Two)
    prune: int | None = None
    steps: str = "exact"
    working_set: int = 2048

    def __post_init__(self) -> None:
        if not isinstance(self.norm, Norm):
            raise ValueError(f"norm must be one of slimsvm.trainers.norms, such as OneTwo(t=3.0), not {self.norm!r}")
        if self.prune is not None:
            check_count(self.prune)
        if self.steps not in ("exact", "paper"):
            raise ValueError(f"steps must be 'exact' or 'paper', not {self.steps!r}")
        SMO(working_set=self.working_set)  # for its checks

    def small(self) -> int:
        """Problems of a few working sets leave most threads idle."""
        return 4 * self.working_set

    def solve(self, problem: Binary) -> Solution:
        """The optimum of one output, pruned where that is asked for."""
        run = LimitedState(problem.rows, problem.y, self.norm.limits(self.C, problem.rows.ids), self)
        if problem.start is not None:
            run.begin_from(problem.start)
        limit = self.max_iter if self.max_iter >= 0 else np.inf
        if np.isinf(run.limits.ellipsoid.radius):
            run.solve(limit, problem.report)
        elif self.steps == "exact":
            solve_in_ellipsoid(run, limit, problem.report)
        else:
            clipped_steps(run, limit, problem.report)
        dual = run.signed if self.prune is None else pruned(run.signed, self.prune)
        return Solution(dual, run.bias(), run.steps, run.gap, run.status)


@dataclass(frozen=True)
class OnBudget(BinaryTrainer):
    """`AnyNorm` with a norm of about the `budget` largest slacks; `prune` keeps as many weights, the largest."""

    weighted: ClassVar[bool] = False
    norm: ClassVar[Callable[[Any], Norm]]

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    budget: int | None = None
    prune: bool = False
    working_set: int = 2048

    def __post_init__(self) -> None:
        self.any_norm(2 if self.budget is None else self.budget)  # checks the settings

    def small(self) -> int:
        """As for any norm."""
        return 4 * self.working_set

    def any_norm(self, budget: int | None) -> AnyNorm:
        """The same in the general form."""
        norm, prune = type(self).norm(budget), budget if self.prune else None
        return AnyNorm(self.C, self.tol, self.max_iter, norm, prune, working_set=self.working_set)

    def solve(self, problem: Binary) -> Solution:
        """One output."""
        return self.any_norm(self.budget).solve(problem)


@dataclass(frozen=True)
class BudgetL1(OnBudget):
    """Budget-L1-SVM: C times the sum of the B = `budget` largest slacks, in the place of the sum of all.

    Rows classified better than the B-th worst are no support vectors (Theorem 2), so there are B of them at most but for
    ties, and the free support vectors do tie. `prune` keeps the B largest weights, whatever the ties.
    """

    norm = OneInf


@dataclass(frozen=True)
class BudgetL2(OnBudget):
    """Budget-L2-SVM: C times about the 2-norm of the B = `budget` largest slacks; `steps` as in `AnyNorm`.

    The number of support vectors follows B without a bound. `prune` keeps the B largest weights.
    """

    norm = TwoInf
    steps: str = "exact"

    def any_norm(self, budget: int | None) -> AnyNorm:
        """With the steps asked for."""
        return replace(super().any_norm(budget), steps=self.steps)


def pruned(dual: Array, count: int) -> Array:
    """The `count` largest coefficients by absolute value, the others 0; the first of equals are kept."""
    kept = np.argsort(-np.abs(dual), kind="stable")[:count]
    out = np.zeros_like(dual)
    out[kept] = dual[kept]
    return out
