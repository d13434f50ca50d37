"""The exact C-SVM by sequential minimal optimisation on two levels.

    max  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij     0 <= a_i <= C w_i,  sum_i y_i a_i = 0

Each round takes the rows that violate the optimality conditions most, half of them carried over from the round before,
solves the problem on that block by compiled pair steps with second-order choice (Fan, Chen & Lin 2005), and adds the
change to the responses of all rows in one tiled product. The optimum and the meaning of `tol` are LIBSVM's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from .._core import core
from ..kernels import Array
from ..model import Status, no_progress
from ..rows.protocol import Rows
from ..rows.responses import Responses, largest

#: below this tolerance the inner loop runs in float64 whatever the tiles are
FLOAT_TOL = 1e-4
#: pair steps after which a round ends in any case, so that an interrupt is heard
STEPS_A_ROUND = 100_000
#: the share of active rows below which the others rest for a while
SHRINK_BELOW = 0.5
#: the gap to which problems of a single small block are solved, and the rows of such a block
EXACT, SMALL_BLOCK = 1e-12, 512
#: rounds without any gain in the objective after which rounding is to blame
PATIENCE = 20


class Rounds(Protocol):
    """What a SmoState asks of a trainer's settings."""

    @property
    def tol(self) -> float:
        """The largest violation to end with."""

    @property
    def working_set(self) -> int:
        """The rows of a round."""


class SmoState:
    """The state of one problem: alpha, v = linear - f, and the block of the last round.

        max  sum_i linear_i c_i - 1/2 c'K c     c_i = y_i (alpha_i - shift_i),  0 <= alpha <= cap,  sum_i c_i constant

    `linear` is y for classification, the targets less or plus epsilon for regression and 0 for one class, so that these
    differ in their data alone. With a `shift` the box lies elsewhere.
    """

    def __init__(
        self,
        rows: Rows,
        y: Array,
        cap: Array,
        settings: Rounds,
        *,
        linear: Array | None = None,
        shift: Array | None = None,
    ) -> None:
        self.rows, self.y, self.cap, self.settings = rows, y, cap, settings
        self.linear = y if linear is None else linear
        self.tol = settings.tol
        self.shift = np.zeros(rows.n) if shift is None else shift
        self.alpha = self.shift.copy()
        self.responses = Responses(rows, 1)
        self.working = np.empty(0, dtype=np.intp)
        self.index = self.working  # the rows of the block
        # one piece of memory for the blocks of all rounds: fresh pages cost more than the values
        self.buffer = np.empty(min(settings.working_set, rows.n) ** 2, rows.dtype)
        self.block = self.buffer[:0].reshape(0, 0)
        self.steps = 0
        self.gap = np.inf
        self.status = Status.CONVERGED

    @property
    def signed(self) -> Array:
        """The coefficients of the rows."""
        return (self.alpha - self.shift) * self.y

    @property
    def v(self) -> Array:
        """Return linear - f, which is y times the gradient of the dual by alpha."""
        return self.linear - self.responses.values.ravel()

    def bounds(self) -> tuple[Array, Array]:
        """v of the rows whose y a can still grow (else -inf), and of those whose y a can shrink (else +inf)."""
        rise, fall = self.alpha < self.cap, self.alpha > 0
        positive, v = self.y > 0, self.v
        return (
            np.where(np.where(positive, rise, fall), v, -np.inf),
            np.where(np.where(positive, fall, rise), v, np.inf),
        )

    def bias(self) -> float:
        """The mean v of the free rows, or the middle of the bounds where there are none (LIBSVM's rule)."""
        free = (self.alpha > 0) & (self.alpha < self.cap)
        if free.any():
            return float(self.v[free].mean())
        grow, shrink = self.bounds()
        ends = [end for end in (grow.max(), shrink.min()) if np.isfinite(end)]
        return float(np.mean(ends)) if ends else 0.0

    def solve(self, limit: float, report: Callable[[float], None]) -> None:
        """Rounds until no pair of rows violates optimality by more than `tol`, or `limit` pair steps."""
        first_gap, idle, best, fresh = 0.0, 0, -np.inf, True
        while True:
            grow, shrink = self.bounds()
            self.gap = float(max(grow.max() - shrink.min(), 0.0))
            first_gap = first_gap or self.gap
            report(_progress(first_gap, self.gap, self.tol))
            if self.gap <= self.tol:
                return
            if self.steps >= limit:
                self.status = Status.MAX_ITER
                return
            objective = self.objective()
            idle = 0 if objective > best + 1e-12 * abs(best) else idle + 1
            best = max(best, objective)
            if idle >= PATIENCE:
                self.status = Status.STALLED
                return
            active = self.active(grow, shrink) if fresh else None
            fresh = active is None
            if active is not None:
                self.solve_active(active, limit)
            else:
                self.choose(grow, shrink)
                self.step(limit)

    def active(self, grow: Array, shrink: Array) -> Array | None:
        """The rows that are free or may still violate optimality, where they are few among many; else None.

        A row at its bound whose v lies beyond all it could be paired with stays there, most likely.
        """
        if self.rows.n < 4 * self.settings.working_set or self.rows.worth_caching:
            return None
        resting = ((shrink == np.inf) & (grow < shrink.min())) | ((grow == -np.inf) & (shrink > grow.max()))
        active = np.flatnonzero(~resting)
        return active if active.size < SHRINK_BELOW * self.rows.n else None

    def solve_active(self, active: Array, limit: float) -> None:
        """Solve the problem of the active rows, the others fixed, and bring the responses of all rows up to date."""
        part = self.part(active)
        part.alpha, part.responses.values = self.alpha[active], self.responses.values[active]
        part.tol = self.settings.tol / 3  # rounds of few rows cost little, and decision values gain
        part.solve(limit - self.steps, no_progress)
        change = (part.alpha - self.alpha[active]) * self.y[active]
        self.alpha[active] = part.alpha
        self.steps += part.steps
        self.responses.add_rows(active[change != 0], change[change != 0, None])

    def part(self, rows: Array) -> SmoState:
        """The problem of some of the rows."""
        return SmoState(
            self.rows.subset(rows),
            self.y[rows],
            self.cap[rows],
            self.settings,
            linear=self.linear[rows],
            shift=self.shift[rows],
        )

    def begin_from(self, start: Array) -> None:
        """Take over coefficients, moved into this problem's box and onto its hyperplane."""
        signed = self.y * np.clip(start * self.y, -self.shift, self.cap - self.shift)
        sides = [signed[signed > 0].sum(), -signed[signed < 0].sum()]
        for sign, total in zip((1, -1), sides, strict=True):
            if total > min(sides) * (1 + 1e-9):  # rounding is no reason to move rows off their bounds
                signed[sign * signed > 0] *= min(sides) / total
        self.alpha = np.clip(signed * self.y + self.shift, 0.0, self.cap)
        support = np.flatnonzero(signed)
        self.responses.add_rows(support, signed[support, None])

    def objective(self) -> float:
        """Return the dual objective."""
        signed = self.signed
        return float(self.linear @ signed - 0.5 * signed @ self.responses.values.ravel())

    def choose(self, grow: Array, shrink: Array) -> None:
        """The next working set and its kernel block: the worst rows of both sides, and rows of the last set."""
        size = self.settings.working_set
        if self.index.size == self.rows.n:
            return  # the block has all rows already
        if self.rows.n <= size:
            worst = np.arange(self.rows.n)
        else:
            half = max(size // (4 if self.working.size else 2), 1)
            worst = np.union1d(largest(grow, half), largest(-shrink, half))
        earlier = self.working[~np.isin(self.working, worst)][: max(size - worst.size, 0)]  # the latest come first
        self.working = np.concatenate([worst, earlier])
        self.index = self.ordered(self.working)
        self.block = self.rows.block(self.index, out=self.buffer)

    def ordered(self, working: Array) -> Array:
        """The rows of a working set as pair steps want them."""
        return working

    def step(self, limit: float) -> None:
        """Solve the block to a tenth of the gap and add the change to all responses."""
        index, tol = self.index, self.tol
        whole = index.size == self.rows.n
        small = whole and index.size <= SMALL_BLOCK
        real = np.float64 if small or tol < FLOAT_TOL else self.rows.dtype
        alpha, y, v = self.alpha[index], self.y[index].astype(real), self.v[index].astype(real)
        block, cap = self.block.astype(real, copy=False), self.cap[index]
        goal = 0.5 * tol if whole else max(0.1 * self.gap, 0.5 * tol)
        steps, gap = self.pair_steps(block, y, cap, alpha, v, goal, int(min(limit - self.steps, STEPS_A_ROUND)))
        if small and gap <= goal:
            # one block holds all rows: going on until rounding stops it costs little, and makes the result
            # independent of the order of the rows and of how often each is repeated
            self.pair_steps(block, y, cap, alpha, v, EXACT, 1000 + 20 * index.size)
        change = (alpha - self.alpha[index]) * self.y[index]
        moved = change != 0
        self.alpha[index] = alpha
        self.steps += steps
        if whole:
            self.responses.values[index] += block[:, moved] @ change[moved, None]
        else:
            self.responses.add_rows(index[moved], change[moved, None])

    def pair_steps(
        self, block: Array, y: Array, cap: Array, alpha: Array, v: Array, goal: float, limit: int
    ) -> tuple[int, float]:
        """Compiled pair steps on the block; the number of them and the violation left."""
        return core.smo(block, y, cap, alpha, v, goal, limit)


def _progress(first: float, gap: float, tol: float) -> float:
    """The share of the way from the first gap to `tol`, on a logarithmic scale."""
    return 1.0 if gap <= tol else min(max(np.log(first / gap) / np.log(first / tol), 0.0), 1.0)
