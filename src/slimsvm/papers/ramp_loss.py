"""The SVM with the ramp loss, which is constant for rows far on the wrong side (Collobert, Sinz, Weston & Bottou 2006).

    min  1/2 |w|^2 + C sum_i w_i R_s(y_i f(x_i)),     R_s(z) = H_1(z) - H_s(z),   H_t(z) = max(0, t - z)

The concave-convex procedure (CCCP) replaces the concave part -H_s by its tangent in each step. The dual of a step is that
of an SVM with a shifted box, solved by SMO from the coefficients of the step before:

    max  sum_i y_i d_i - 1/2 d'K d     -beta_i <= y_i d_i <= C w_i - beta_i,   sum_i d_i = 0,
    beta_i = C w_i where y_i f(x_i) < s, else 0.

The loss of a row with a margin below s is constant: its coefficient is 0, and it is not a support vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..clock import check_time_limit
from ..kernels import Array
from ..limits import Limits
from ..model import Status
from ..run import Run
from ..solvers.smo import SmoState
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
from ..trainers.smo import SMO

#: steps without a lower objective after which the run stops as STALLED; more of them delay that end
PATIENCE = 10


@dataclass(frozen=True)
class Ramp(BinaryTrainer):
    """Ramp-loss SVM with a bias, by CCCP steps until no row changes its side of `s` (Collobert et al. 2006).

    The paper takes s from -1 (close to the SVM) to 0 (the loss of all misclassified rows is constant: fewest support
    vectors). The default is the middle; s = -inf is the SVM itself. The problem is not convex. The result is a local
    minimum and depends on the start: the SVM of a random share `subset` of the rows, as in the paper, or by default of all
    rows, which needs no randomness.

    Exact steps lower the objective until no row changes its side, after finitely many steps. These steps are exact to
    `tol`: after one that did not lower the objective, rows within `tol` of s keep their beta (at s, any beta is a tangent).
    `max_iter` limits the total number of pair steps of each output (-1: no limit), and `time_limit` its seconds.
    """

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    s: float = -0.5
    subset: float = 1.0
    working_set: int = 2048
    time_limit: float | None = None
    starts_warm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        if not self.s < 1:
            raise ValueError(f"s must be below 1, where the loss begins (the paper takes -1 to 0), not {self.s!r}")
        if not 0 < self.subset <= 1:
            raise ValueError(f"subset must be a share of the rows above 0 and up to 1, not {self.subset!r}")
        SMO(working_set=self.working_set)  # checks the setting

    @property
    def smo(self) -> SMO:
        """The settings of each step's solver."""
        return SMO(self.C, self.tol, self.max_iter, self.working_set)

    def solve(self, problem: Binary) -> Solution:
        """Run CCCP steps on one output."""
        limit, run = Limits(self.max_iter).iterations, problem.run.limited(self.time_limit)
        state = self.first(problem, limit, run)
        lowest, idle = np.inf, 0
        while state.status is Status.CONVERGED:
            objective = ramp_objective(state, self.s)
            idle = 0 if objective < lowest else idle + 1
            lowest = min(objective, lowest)
            beta = tangents(state, self.s, self.tol if idle else 0.0)
            changed = np.count_nonzero(beta != state.shift)
            run.report(1.0 - 0.5 * changed / beta.size)
            if idle == PATIENCE:
                state.status = Status.STALLED
            elif not changed:
                break
            else:
                state = shifted(state, beta, run.quiet())
                state.solve(limit)
        return Solution(state.signed, state.bias(), state.steps, state.gap, state.status)

    def first(self, problem: Binary, limit: float, run: Run) -> SmoState:
        """Return the SVM of all rows, or the first step after the SVM of a subsample."""
        half = run.part(lambda done: 0.5 * done)
        first = run.quiet() if self.subset < 1 else half
        state = SmoState(problem.rows, problem.y, self.C * problem.weights, self.smo, run=first)
        if problem.start is not None:
            state.begin_from(problem.start)
        if self.subset < 1:
            state.solve_active(share_of_each_class(problem.y, self.subset, problem.rng), limit)
            if state.status is Status.TIME_LIMIT:
                return state
            state = shifted(state, tangents(state, self.s, 0.0), half)
        state.solve(limit)
        return state


def share_of_each_class(y: Array, share: float, rng: np.random.Generator) -> Array:
    """Return random rows: this share of each class, and at least one row of it."""
    sides = [rng.permutation(np.flatnonzero(y == side)) for side in (-1, 1)]
    return np.sort(np.concatenate([rows[: int(np.ceil(share * rows.size))] for rows in sides]))


def margins(state: SmoState) -> Array:
    """Return y f(x) of every row, with the bias."""
    return state.y * (state.responses.values.ravel() + state.bias())


def ramp_objective(state: SmoState, s: float) -> float:
    """Return 1/2 |w|^2 + C sum_i w_i R_s(y_i f(x_i))."""
    z = margins(state)
    norm = float(state.signed @ state.responses.values.ravel())
    return 0.5 * norm + float(state.cap @ (np.maximum(1 - z, 0.0) - np.maximum(s - z, 0.0)))


def tangents(state: SmoState, s: float, doubt: float) -> Array:
    """Return beta_i = C w_i where y_i f(x_i) < s, else 0; rows within `doubt` of s keep their beta."""
    z = margins(state)
    return np.where(np.abs(z - s) < doubt, state.shift, np.where(z < s, state.cap, 0.0))


def shifted(before: SmoState, beta: Array, run: Run) -> SmoState:
    """Return the problem of the next step, started from the solution and the step count of the one before."""
    after = SmoState(before.rows, before.y, before.cap, before.settings, shift=beta, run=run)
    start = into_box(before.signed, before.y, -beta, before.cap - beta, margins(before))
    after.alpha = np.clip(start * before.y + beta, 0.0, before.cap)
    after.responses.values = before.responses.values.copy()
    after.steps = before.steps
    change = after.signed - before.signed
    after.responses.add_rows(np.flatnonzero(change), change[change != 0, None])
    return after


def into_box(signed: Array, y: Array, low: Array, high: Array, z: Array) -> Array:
    """Return coefficients d with low <= y d <= high and sum d = 0, for a box that contains 0.

    The coefficients are clipped first. The excess of one sign is then taken from the rows with the largest margins z, so
    that most rows stay at their bounds.
    """
    clipped = y * np.clip(y * signed, low, high)
    excess = clipped.sum()
    order = np.argsort(-z)
    spare = np.where(clipped * excess > 0, np.abs(clipped), 0.0)[order]
    clipped[order] -= np.sign(excess) * np.clip(abs(excess) - (np.cumsum(spare) - spare), 0.0, spare)
    return clipped
