"""The SVM with the ramp loss, which ignores rows far on the wrong side (Collobert, Sinz, Weston & Bottou 2006).

    min  1/2 |w|^2 + C sum_i w_i R_s(y_i f(x_i)),     R_s(z) = H_1(z) - H_s(z),   H_t(z) = max(0, t - z)

by the concave-convex procedure (CCCP): each step replaces the concave part -H_s by its tangent, which makes the dual an
SVM whose box is shifted, solved by SMO from the coefficients of the step before:

    max  sum_i y_i d_i - 1/2 d'K d     -beta_i <= y_i d_i <= C w_i - beta_i,   sum_i d_i = 0,
    beta_i = C w_i where y_i f(x_i) < s, else 0.

A row beyond s has nothing to pay for going further: its coefficient is 0, and it is no support vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..kernels import Array
from ..model import Status, no_progress
from ..solvers.smo import SmoState
from .frames.per_output import Binary, BinaryTrainer, Solution
from .smo import SMO

#: steps without a lower objective after which rounding is to blame
PATIENCE = 10


@dataclass(frozen=True)
class Ramp(BinaryTrainer):
    """Ramp-loss SVM with a bias, by CCCP steps until no row changes its side of `s` (Collobert et al. 2006).

    The paper takes s from -1 (close to the SVM) to 0 (every error is ignored: the fewest support vectors); the default is
    the middle, and s = -inf the SVM itself. The problem is not convex: the result is a local minimum and depends on the
    start: the SVM of a random share of the rows, `subset`, as in the paper; the default, all rows, needs no chance.

    Exact steps lower the objective until no row changes its side, which takes finitely many. Ours are exact to `tol`: after
    one that did not lower the objective, rows within `tol` of s keep their beta (at s, each is a tangent). `max_iter`
    limits the pair steps of each output in all (-1: no limit).
    """

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    s: float = -0.5
    subset: float = 1.0
    working_set: int = 2048

    def __post_init__(self) -> None:
        if not self.s < 1:
            raise ValueError(f"s must be below 1, where the loss begins (the paper takes -1 to 0), not {self.s!r}")
        if not 0 < self.subset <= 1:
            raise ValueError(f"subset must be a share of the rows above 0 and up to 1, not {self.subset!r}")
        SMO(working_set=self.working_set)  # for its checks

    def small(self) -> int:
        """As for SMO, which does the work."""
        return self.smo.small()

    @property
    def smo(self) -> SMO:
        """The settings of each step's solver."""
        return SMO(self.C, self.tol, self.max_iter, self.working_set)

    def solve(self, problem: Binary) -> Solution:
        """CCCP steps on one output."""
        limit = self.max_iter if self.max_iter >= 0 else np.inf
        column = self.first(problem, limit)
        lowest, idle = np.inf, 0
        while column.status is Status.CONVERGED:
            objective = ramp_objective(column, self.s)
            idle = 0 if objective < lowest else idle + 1
            lowest = min(objective, lowest)
            beta = tangents(column, self.s, self.tol if idle else 0.0)
            changed = np.count_nonzero(beta != column.shift)
            problem.report(1.0 - 0.5 * changed / beta.size)
            if idle == PATIENCE:
                column.status = Status.STALLED
            elif not changed:
                break
            else:
                column = shifted(column, beta)
                column.solve(limit, no_progress)
        return Solution(column.signed, column.bias(), column.steps, column.gap, column.status)

    def first(self, problem: Binary, limit: float) -> SmoState:
        """The SVM of all rows, or the first step from the SVM of some."""
        column = SmoState(problem.rows, problem.y, self.C * problem.weights, self.smo)
        if problem.start is not None:
            column.begin_from(problem.start)
        if self.subset < 1:
            column.solve_active(share_of_each_class(problem.y, self.subset, problem.rng), limit)
            column = shifted(column, tangents(column, self.s, 0.0))
        column.solve(limit, partial(_first_half, problem.report))
        return column


def share_of_each_class(y: Array, share: float, rng: np.random.Generator) -> Array:
    """Random rows, that share of either class and one at least."""
    sides = [rng.permutation(np.flatnonzero(y == side)) for side in (-1, 1)]
    return np.sort(np.concatenate([rows[: int(np.ceil(share * rows.size))] for rows in sides]))


def margins(column: SmoState) -> Array:
    """y f(x) of every row, with the bias."""
    return column.y * (column.responses.values.ravel() + column.bias())


def ramp_objective(column: SmoState, s: float) -> float:
    """1/2 |w|^2 + C sum_i w_i R_s(y_i f(x_i))."""
    z = margins(column)
    norm = float(column.signed @ column.responses.values.ravel())
    return 0.5 * norm + float(column.cap @ (np.maximum(1 - z, 0.0) - np.maximum(s - z, 0.0)))


def tangents(column: SmoState, s: float, doubt: float) -> Array:
    """beta_i = C w_i where y_i f(x_i) < s, else 0; rows within `doubt` of s keep theirs."""
    z = margins(column)
    return np.where(np.abs(z - s) < doubt, column.shift, np.where(z < s, column.cap, 0.0))


def shifted(before: SmoState, beta: Array) -> SmoState:
    """The problem of the next step, begun from the solution of the one before; pair steps are counted on."""
    after = SmoState(before.rows, before.y, before.cap, before.settings, shift=beta)
    start = into_box(before.signed, before.y, -beta, before.cap - beta, margins(before))
    after.alpha = np.clip(start * before.y + beta, 0.0, before.cap)
    after.responses.values = before.responses.values.copy()
    after.steps = before.steps
    change = after.signed - before.signed
    after.responses.add_rows(np.flatnonzero(change), change[change != 0, None])
    return after


def into_box(signed: Array, y: Array, low: Array, high: Array, z: Array) -> Array:
    """Coefficients with low <= y d <= high and sum d = 0, for a box that holds 0.

    Rows are clipped; what one side then has too much is taken back from the rows with the widest margins z, so that most
    rows stay at their bounds.
    """
    clipped = y * np.clip(y * signed, low, high)
    excess = clipped.sum()
    order = np.argsort(-z)
    spare = np.where(clipped * excess > 0, np.abs(clipped), 0.0)[order]
    clipped[order] -= np.sign(excess) * np.clip(abs(excess) - (np.cumsum(spare) - spare), 0.0, spare)
    return clipped


def _first_half(report: Callable[[float], None], part: float) -> None:
    report(0.5 * part)
