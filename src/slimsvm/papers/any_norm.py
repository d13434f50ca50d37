"""SVMs with any norm of the slack (Dekel & Singer 2006, "Support Vector Machines on a Budget").

    min  1/2 |w|^2 + C |xi|,   y_i (f(x_i) + b) >= 1 - xi_i
    max  sum a - 1/2 a'Qa,     y'a = 0,  a >= 0,  |a|* <= C        (the dual, eq. 4; Q_ij = y_i y_j K_ij)

A norm of `solvers.norms` defines the set |a|* <= C. Pair steps keep a box and a limited sum; an ellipsoid a'Pa <= r^2 goes
into the objective with a multiplier. With f = K (a y), the optimum has multipliers mu, theta >= 0 with

    y_i - f_i - mu y_i (Pa)_i = b + theta y_i        for free a_i         (mu: of the ellipsoid, theta: of the sum)

If the sum is at its limit, the free rows of the two labels have the values b + theta and b - theta. Theta is then the
smallest slack among the support vectors; with the norm of budget-L1 it is the B-th largest of all slacks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..checks import check_count
from ..clock import check_time_limit
from ..kernels import Array
from ..limits import Limits
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
from ..trainers.smo import SMO
from .ellipsoid import solve_in_ellipsoid
from .limited import LimitedState
from .norms import Norm, Two
from .paper_steps import paper_steps


@dataclass(frozen=True)
class AnyNorm(BinaryTrainer):
    """The SVM with any norm of the slack, solved to `tol`; `max_iter` limits the pair steps (-1: no limit).

    `time_limit` is in seconds for each output.

    `prune` keeps that many of the largest coefficients and sets the others to 0 (section 5 of the paper); the bias stays
    the same. With several classes each output is pruned by itself, so the outputs may use different rows.

    `steps="exact"` finds the multiplier of an ellipsoid by a root search. `steps="paper"` clips each pair step at the
    surface of the ellipsoid, as the paper does. That can end before the optimum: on the surface a pair can only move
    inwards, and if every pair with a gain would move outwards, several rows would have to move at once. For norms without
    an ellipsoid both are the same.

    Rows have no weights: a weighted norm |w xi| would weight the rows in the limit of the sum too, which pair steps cannot
    keep.
    """

    weighted: ClassVar[bool] = False

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    norm: Norm = field(default_factory=Two)
    prune: int | None = None
    steps: str = "exact"
    working_set: int = 2048
    time_limit: float | None = None
    starts_warm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        if not isinstance(self.norm, Norm):
            raise ValueError(f"norm must be one of slimsvm.solvers.norms, such as OneTwo(t=3.0), not {self.norm!r}")
        if self.prune is not None:
            check_count(self.prune)
        if self.steps not in ("exact", "paper"):
            raise ValueError(f"steps must be 'exact' or 'paper', not {self.steps!r}")
        SMO(working_set=self.working_set)  # checks the setting

    def solve(self, problem: Binary) -> Solution:
        """Solve one output, and prune it if `prune` is set."""
        run = LimitedState(problem.rows, problem.y, self.norm.feasible_set(self.C, problem.rows.ids), self)
        run.deadline, run.record = problem.deadline.within(self.time_limit), problem.record
        if problem.start is not None:
            run.begin_from(problem.start)
            run.scale_into_set()
        limit = Limits(self.max_iter).iterations
        if np.isinf(run.feasible.ellipsoid.radius):
            run.solve(limit, problem.report)
        elif self.steps == "exact":
            solve_in_ellipsoid(run, limit, problem.report)
        else:
            paper_steps(run, limit, problem.report)
        dual = run.signed if self.prune is None else pruned(run.signed, self.prune)
        return Solution(dual, run.bias(), run.steps, run.gap, run.status)


def pruned(dual: Array, count: int) -> Array:
    """Return the `count` coefficients of the largest absolute value, the others 0; the first of equals are kept."""
    kept = np.argsort(-np.abs(dual), kind="stable")[:count]
    out = np.zeros_like(dual)
    out[kept] = dual[kept]
    return out
