"""The optimum of the rows that are free or might be, by Newton's method: where pair steps take long.

    max  v'd - 1/2 d'K d     lower <= d <= upper,  sum_i d_i = 0

With a large C the coefficients of free rows depend on each other so much that millions of pair steps move them by little.
If it is known which rows are at a bound, the steps d of the others follow from one linear system:

    K_FF d_F + b = v_F - K_FB d_B,     sum_i d_i = 0

Rows whose step leaves the box move to the bound, and rows that want to leave their bound become free, all at once, until
no row changes sides (block principal pivoting; Judice & Pires 1994). Pivots settle if most rows are on the right side, and
if K is not too close to singular. So a ridge r is added to it, and a larger one if they do not. This is a step of the
proximal point method: it raises the objective too, and leaves slopes that differ by r times the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..checks import check_at_least_zero
from ..clock import Deadline
from ..kernels import Array
from ..rows.curvatures import factor_definite

#: pivots without fewer changes of side than before, after which the method gives up; more: it gives up later
PATIENCE = 3
#: rows leave a bound if their slope exceeds b by this share of `tol`; smaller: more pivots for a gap that does not matter
SLOPE = 0.1
#: ridges by which the slopes of rows that move across their box change by these shares of `tol`; more: more systems
RIDGES = (0.1, 1.0, 10.0, 100.0)
#: multiply-adds of a Cholesky factorisation in the time in which a pair step passes a row of its block
ADDS_A_ROW = 6.0
#: rows at a bound that may violate optimality however few rows are free; more: earlier attempts, which fail more often
FEW_NEW = 32
#: each attempt that fails doubles the steps before the next one, up to this many times
MOST_FAILED = 20


@dataclass(frozen=True)
class NewtonRule:
    """When Newton's method is tried: after as many pair steps as take as long as `systems` of its systems.

    `steps` are the least number of pair steps. `most` limits the rows of a system, for memory and time. `share` limits the
    rows at a bound that violate optimality, relative to the free ones, if they are more than a few: pivots hardly settle
    then.
    """

    steps: int = 10_000
    systems: float = 8.0
    most: int = 4096
    share: float = 1 / 16

    def __post_init__(self) -> None:
        for setting in fields(self):
            check_at_least_zero(setting.name, getattr(self, setting.name))

    def is_due(self, steps: int, failed: int, free: int, new: int, size: int) -> bool:
        """Return whether to try, after `steps` pair steps on blocks of `size` rows since the last attempt that failed."""
        if not 0 < free <= self.most or new > max(self.share * free, FEW_NEW):
            return False
        system = free**3 / (6 * ADDS_A_ROW * size)  # in pair steps
        return steps >= max(self.steps, self.systems * system) * 2**failed


#: the rule of all trainers by default
USUAL_RULE = NewtonRule()


def free_rows_steps(
    K: Array, v: Array, lower: Array, upper: Array, tol: float, deadline: Deadline | None = None
) -> Array | None:
    """Return steps d that raise the objective, with the smallest ridge by which pivots settle; None if there is none."""
    widest = float((upper - lower).max())
    optima = (free_rows_optimum(K, v, lower, upper, tol, share * tol / widest, deadline) for share in RIDGES)
    return next((steps for steps in optima if steps is not None and steps @ (v - 0.5 * (K @ steps)) > 0), None)


def free_rows_optimum(
    K: Array, v: Array, lower: Array, upper: Array, tol: float, ridge: float, deadline: Deadline | None = None
) -> Array | None:
    """Return the steps d from a feasible point with slopes v to the optimum; None if the pivots do not settle in time."""
    K = K + ridge * np.eye(v.size)
    down, up = lower == 0, upper == 0
    free = ~(down | up)
    middle = v[free].mean() if free.any() else v.mean()
    down, up = down & (v <= middle), up & (v >= middle)
    fewest, patience = v.size + 1, PATIENCE
    while patience and not (deadline is not None and deadline.over):
        steps, bias = _steps(K, v, np.where(down, lower, np.where(up, upper, 0.0)), ~(down | up))
        slopes = v - K @ steps
        low, high = steps < lower, steps > upper
        leave = (down & (slopes > bias + SLOPE * tol)) | (up & (slopes < bias - SLOPE * tol))
        changes = int(low.sum() + high.sum() + leave.sum())
        if not changes:
            return steps
        patience = PATIENCE if changes < fewest else patience - 1
        fewest = min(fewest, changes)
        down, up = (down | low) & ~leave, (up | high) & ~leave
        if not (~(down | up)).any():
            return None
    return None


def _steps(K: Array, v: Array, fixed: Array, free: Array) -> tuple[Array, float]:
    """Return the steps of all rows and the bias b, with given steps of the rows that are not free."""
    factor = factor_definite(K[np.ix_(free, free)], np.zeros((1, 1)))
    first, ones = factor.solve((v - K @ fixed)[free]), factor.solve(np.ones(int(free.sum())))
    bias = float((first.sum() + fixed.sum()) / ones.sum())
    steps = fixed.copy()
    steps[free] = first - bias * ones
    return steps, bias
