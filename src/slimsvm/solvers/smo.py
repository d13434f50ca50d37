"""The exact C-SVM by sequential minimal optimisation on two levels.

    max  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij     0 <= a_i <= C w_i,  sum_i y_i a_i = 0

Each round takes a working set: the rows that violate the optimality conditions most, and as many rows of the last working
set. It solves the problem of these rows by compiled pair steps with second-order choice (Fan, Chen & Lin 2005) and adds
the change to the responses of all rows in one product. The optimum and the meaning of `tol` are LIBSVM's. Where pair steps
take long, the free rows are solved for by Newton's method (`free_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import numpy as np

from .._core import core
from ..kernels import Array
from ..model import Status
from ..rows.protocol import Dual, DualVectors, OnDemand, Rows
from ..rows.responses import Responses, largest
from ..run import BY_ITSELF, GapProgress, PartCheckpoint, Run
from ..states import Finite, State, StateError, floats, pack, row_numbers, unpack, whole
from .free_rows import MOST_FAILED, USUAL_RULE, NewtonRule, free_rows_steps
from .smo_on_device import run_on_device

#: pair steps run in float64 for smaller tolerances, for any precision of kernel values; larger: slower
FLOAT_TOL = 1e-4
#: most pair steps of a round; with more of them, Ctrl-C takes longer to have an effect
STEPS_A_ROUND = 100_000
#: share of active rows below which a round solves for these rows alone; a larger share shrinks the problem more often
SHRINK_BELOW = 0.5
#: gap to which problems of a single small block are solved, and the most rows of such a block; more rows take longer
EXACT, SMALL_BLOCK = 1e-12, 512
#: coefficients within this share of the cap from a bound are at the bound after a step of Newton's method
ROUNDED = 1e-12
#: rounds without a higher objective after which the run stops as STALLED; more of them delay that end
PATIENCE = 20
#: most pair steps of a run without a limit, in all and for each row, whichever is more; LIBSVM's are 10^7 and 100. On badly
#: scaled features steps go on for hours with a gap that hardly falls; raised, such a run ends later
MOST_STEPS, MOST_STEPS_A_ROW = 10_000_000, 1_000


class Rounds(Protocol):
    """The settings of an SmoState."""

    @property
    def tol(self) -> float:
        """The largest violation of the optimality conditions to accept."""

    @property
    def working_set(self) -> int | None:
        """The number of rows in a working set; None for the home's own size."""


@dataclass
class RoundCount:
    """What the next round depends on besides the coefficients and responses."""

    limit: float  # pair steps at most
    best: Finite  # the highest objective so far
    progress: GapProgress
    idle: Annotated[int, whole(-1, PATIENCE)] = -1  # rounds without a higher objective; the first meets its own again
    fresh: bool = True  # whether the last round was one of all rows
    tried: int = 0  # pair steps before the last attempt of Newton's method that failed
    failed: Annotated[int, whole(0, MOST_FAILED)] = 0  # attempts that failed
    active: Annotated[Array, row_numbers("n")] | None = None  # the rows of a problem of active rows that is being solved
    inner: State | None = None  # the state of that problem

    def is_stalled(self, objective: float) -> bool:
        """Count a round with this objective; return whether there were too many without a higher one."""
        self.idle = 0 if objective > self.best + 1e-12 * abs(self.best) else self.idle + 1
        self.best = max(self.best, objective)
        return self.idle >= PATIENCE


@dataclass
class SavedSmo:
    """The state that the next round depends on."""

    alpha: Annotated[Array, floats("n")]
    responses: Annotated[Array, floats("n", 1)]
    working: Annotated[Array, row_numbers("n")]
    steps: int
    spent: int
    rounds: RoundCount


def usual_working_set(rows: Rows) -> int:
    """Return the rows of a working set: as many as suit the home of the rows, or half of them where rows are few.

    The block of a working set takes the square of its size, and few rows need few rounds.
    """
    largest = rows.working_set
    return largest if rows.n <= 2 * largest else int(np.clip(rows.n // 8, largest // 2, largest))


class SmoState:
    """The state of a run on one problem: alpha, the responses f, and the working set with its kernel block.

        max  sum_i linear_i c_i - 1/2 c'K c     c_i = y_i (alpha_i - shift_i),  0 <= alpha <= cap,  sum_i c_i constant

    `linear` is y for classification (the default), the targets minus or plus epsilon for regression, and 0 for one-class
    problems. These problems differ in their data only. `shift` moves the box of a row's coefficient.
    """

    #: whether a round may solve for the active rows only
    shrinks: bool = True
    #: whether the steps need only kernel values, which may then be evaluated a kernel row at a time
    by_rows: bool = True
    #: most working sets of rows whose problem is solved by kernel rows on demand, without a working set
    on_demand_sets: int = 2
    #: most rows of a block that is solved to `EXACT`
    small_block: int = SMALL_BLOCK
    #: most pair steps of a run without a limit, in all and for each row, whichever is more
    most_steps: tuple[int, int] = (MOST_STEPS, MOST_STEPS_A_ROW)

    def __init__(
        self,
        rows: Rows,
        y: Array,
        cap: Array,
        settings: Rounds,
        *,
        linear: Array | None = None,
        shift: Array | None = None,
        newton: NewtonRule | None = USUAL_RULE,
        run: Run = BY_ITSELF,
    ) -> None:
        self.rows, self.y, self.cap, self.settings = rows, y, cap, settings
        self.newton, self.run = newton, run
        self.linear = y if linear is None else linear
        self.tol, self.size = settings.tol, settings.working_set or usual_working_set(rows)
        self.shift = np.zeros(rows.n) if shift is None else shift
        self.alpha = self.shift.copy()
        self.responses = Responses(rows, 1)
        self.working = np.empty(0, dtype=np.intp)
        self.index = self.working  # the working set in the order of the block
        self.buffer: Array | None = None
        self.limits = np.empty((2, 0))
        self.block = np.empty((0, 0))
        self.on_demand: OnDemand | None = None
        self.vectors: DualVectors | None = None  # while rounds run there
        self.steps = 0
        self.gap = np.inf
        self.status = Status.CONVERGED
        self.rounds: RoundCount | None = None

    @property
    def signed(self) -> Array:
        """The coefficients c of the rows."""
        return (self.alpha - self.shift) * self.y

    @property
    def needs_float64(self) -> bool:
        """Whether pair steps run in float64 for any precision of kernel values."""
        return self.tol < FLOAT_TOL

    @property
    def v(self) -> Array:
        """linear - f: y times the gradient of the dual with respect to alpha."""
        return self.linear - self.current_responses().ravel()

    def current_responses(self) -> Array:
        """Return the responses (n, 1); those that are kept beside the rows are fetched first."""
        if self.vectors is not None:
            self.responses.values[:, 0] = self.vectors.responses()
        return self.responses.values

    def bounds(self, v: Array) -> tuple[Array, Array]:
        """Return v of the rows whose coefficient can grow (else -inf), and of those whose can shrink (else inf)."""
        if self.limits.shape[1] != v.size:
            self.limits = np.empty((2, v.size))  # one piece of memory for all rounds: a new one takes longer to allocate
        grow, shrink = self.limits
        core.bounds(self.alpha, self.cap, self.y, v, grow, shrink)
        return grow, shrink

    def bias(self) -> float:
        """Return the mean v of the free rows, or the middle of the bounds if no row is free (LIBSVM's rule)."""
        free, v = (self.alpha > 0) & (self.alpha < self.cap), self.v
        if free.any():
            return float(v[free].mean())
        grow, shrink = self.bounds(v)
        ends = [end for end in (grow.max(), shrink.min()) if np.isfinite(end)]
        return float(np.mean(ends)) if ends else 0.0

    def solve(self, limit: float) -> None:
        """Run rounds until no pair of rows violates optimality by more than `tol`, or for `limit` pair steps.

        Without a limit a run ends after `most_steps`.
        """
        rounds = self.begun(limit)
        if rounds.active is not None:
            self.solve_active(rounds.active, rounds.limit, rounds)
        while self.status is not Status.TIME_LIMIT:
            self.run.checkpoint.offer(lambda: self.state(rounds))
            v = self.v
            grow, shrink = self.bounds(v)
            self.gap = self.widest(grow, shrink)
            self.tell(rounds, v)
            if self.gap <= self.tol:
                return
            if (ending := self.ending(rounds, self.objective(v))) is not None:
                self.status = ending
                return
            if self.solved_free(rounds, v, grow, shrink):
                continue
            active = self.active(grow, shrink) if rounds.fresh else None
            rounds.fresh = active is None
            if active is not None:
                self.solve_active(active, rounds.limit, rounds)
                continue
            if self.ran_on_device(rounds, grow, shrink):
                continue
            self.choose(grow, shrink)
            if self.on_demand is None:
                self.step(rounds.limit, v)
            else:
                self.step_whole(self.on_demand, rounds.limit, v)

    def tell(self, rounds: RoundCount, v: Array) -> None:  # noqa: ARG002
        """Record how good the coefficients are, and report the share done."""
        self.run.record(gap=self.gap)
        self.run.report(rounds.progress.update(self.gap))

    def begun(self, limit: float) -> RoundCount:
        """Return the count of a run of at most `limit` pair steps: a restored one, or a new one."""
        if limit == np.inf:
            in_all, a_row = self.most_steps
            limit = self.steps + max(in_all, a_row * self.rows.n)
        restored, self.rounds = self.rounds, None
        rounds = restored or RoundCount(limit, self.objective(), GapProgress(self.tol))
        rounds.limit = min(rounds.limit, limit)
        return rounds

    def ending(self, rounds: RoundCount, objective: float) -> Status | None:
        """Return how a run ends before the optimum: at a limit, or without progress; None if it goes on."""
        if self.steps >= rounds.limit:
            return Status.MAX_ITER
        if self.steps and self.run.over:
            self.run.checkpoint.keep(self.state(rounds), now=True)
            return Status.TIME_LIMIT
        return Status.STALLED if rounds.is_stalled(objective) else None

    def state(self, rounds: RoundCount) -> dict[str, Any]:
        """Return the state that the next round depends on, for a checkpoint."""
        responses = self.current_responses()
        return pack(SavedSmo(self.alpha, responses, self.working, self.steps, self.rows.spent, rounds))

    def restore(self, saved: State | None) -> None:
        """Continue from a saved state; `solve` then takes the same steps as the run that saved it."""
        state = unpack(SavedSmo, saved, n=self.rows.n)
        if not ((state.alpha >= 0) & (state.alpha <= self.cap)).all():
            raise StateError("coefficients outside of their bounds")
        self.alpha, self.responses.values, self.working = state.alpha, state.responses, state.working
        self.steps, self.rows.spent, self.rounds = state.steps, state.spent, state.rounds

    def solved_free(self, rounds: RoundCount, v: Array, grow: Array, shrink: Array) -> bool:
        """Solve for the free rows by Newton's method, if pair steps have taken as long; return whether that worked."""
        rows = self.due_rows(rounds, v, grow, shrink) if self.newton_waits(rounds) else None
        if rows is None:
            return False
        if self.moved_free(rows, v):
            return True
        rounds.tried, rounds.failed = self.steps, min(rounds.failed + 1, MOST_FAILED)
        return False

    def newton_waits(self, rounds: RoundCount) -> bool:
        """Return whether so many pair steps were made that Newton's method may be due."""
        return self.newton is not None and self.by_rows and self.steps - rounds.tried >= self.newton.steps

    def may_be_due(self, rounds: RoundCount, new: int = 0) -> bool:
        """Return whether Newton's method is due, with `new` rows at a bound that violate optimality."""
        free = int(((self.alpha > 0) & (self.alpha < self.cap)).sum())
        waited, size = self.steps - rounds.tried, min(self.size, self.rows.n)
        return self.newton is not None and self.newton.is_due(waited, rounds.failed, free, new, size)

    def due_rows(self, rounds: RoundCount, v: Array, grow: Array, shrink: Array) -> Array | None:
        """Return the rows that are free or should be, if Newton's method is due for them."""
        free = np.isfinite(grow) & np.isfinite(shrink)
        level, slack = v[free].mean() if free.any() else 0.0, self.tol / 4
        new = ~free & ((grow > level + slack) | (shrink < level - slack))
        return np.flatnonzero(free | new) if self.may_be_due(rounds, int(new.sum())) else None

    def moved_free(self, index: Array, v: Array) -> bool:
        """Move some rows to their optimum; return False, with nothing moved, if Newton's method does not find one."""
        y, cap, alpha, v = self.y[index], self.cap[index], self.alpha[index], v[index]
        ends = -y * alpha, y * (cap - alpha)
        K = self.rows.fetch(index).block(np.arange(index.size))
        steps = free_rows_steps(K, v, np.minimum(*ends), np.maximum(*ends), self.tol, self.run.deadline)
        if steps is None:
            return False
        moved = np.clip(alpha + y * steps, 0.0, cap)
        moved = np.where(moved < ROUNDED * cap, 0.0, np.where(moved > (1 - ROUNDED) * cap, cap, moved))
        change = (moved - alpha) * y
        objective, responses = self.objective(), self.responses.values.copy()
        self.responses.add_rows(index[change != 0], change[change != 0, None])
        self.alpha[index] = moved
        if self.objective() > objective:
            return True
        # with kernel values of very different sizes, rounding may take more than the steps gain
        self.responses.values[:], self.alpha[index] = responses, alpha
        return False

    def ran_on_device(self, rounds: RoundCount, grow: Array, shrink: Array) -> bool:
        """Run rounds whose vectors are beside the rows, if their home keeps them there; return whether any were run."""
        n, size = self.rows.n, self.size
        if not self.by_rows or not self.rows.keeps_vectors or n <= 2 * size:
            return False
        working = self.working if self.working.size == size else self.next_working(grow, shrink)
        if working.size < size:
            working = np.concatenate([working, np.setdiff1d(np.arange(n), working)[: size - working.size]])
        problem = Dual(self.linear, self.responses.values.ravel(), self.signed, grow > -np.inf, shrink < np.inf)
        self.vectors = self.rows.dual_vectors(problem, working)
        if self.vectors is None:
            return False
        try:
            return run_on_device(self, self.vectors, rounds, STEPS_A_ROUND)
        finally:
            self.current_responses()
            self.vectors = None

    def active(self, grow: Array, shrink: Array) -> Array | None:
        """Return the rows that are free or may still violate optimality; None unless they are a small share of many.

        A row at its bound most likely stays there if it forms a violating pair with no other row.
        """
        if not self.shrinks or self.rows.n < 4 * self.size or not self.rows.worth_shrinking:
            return None
        settled = ((shrink == np.inf) & (grow < shrink.min())) | ((grow == -np.inf) & (shrink > grow.max()))
        active = np.flatnonzero(~settled)
        return active if active.size < SHRINK_BELOW * self.rows.n else None

    def solve_active(self, active: Array, limit: float, rounds: RoundCount | None = None) -> None:
        """Solve for the active rows with the others fixed, then update the responses of all rows.

        The inner problem ends at the deadline too, and has then saved the state of both.
        """
        rounds = rounds or RoundCount(limit, 0.0, GapProgress(self.tol))
        part = self.part(active, self.inner_run(active, rounds))
        part.on_demand_sets = 1  # most active rows are free: their many steps are faster on the rows of a working set
        part.alpha, part.responses.values = self.alpha[active], self.responses.values[active]
        part.tol = self.settings.tol / 3  # rounds of few rows are cheap, and decision values become more accurate
        if rounds.active is not None:
            part.restore(rounds.inner)
            rounds.active = None
        try:
            part.solve(limit - self.steps)
        except KeyboardInterrupt:  # the bias depends on the responses of active rows alone
            self.alpha[active], self.responses.values[active] = part.alpha, part.responses.values
            self.steps += part.steps
            raise
        change = (part.alpha - self.alpha[active]) * self.y[active]
        self.alpha[active] = part.alpha
        self.steps += part.steps
        self.responses.add_rows(active[change != 0], change[change != 0, None])
        if part.status is Status.TIME_LIMIT:
            self.status, self.gap = part.status, self.violation()

    def inner_run(self, active: Array, rounds: RoundCount) -> Run:
        """Return the run of the problem of the active rows, whose state is saved with this one's."""
        return replace(
            self.run.part(rounds.progress.inside),
            history=lambda phase, **gaps: self.run.record(active_gap=max(gaps.values())),  # noqa: ARG005
            checkpoint=PartCheckpoint(
                self.run.checkpoint, lambda inner: self.state(replace(rounds, active=active, inner=inner))
            ),
        )

    def part(self, rows: Array, run: Run) -> SmoState:
        """Return the problem of some of the rows."""
        return SmoState(
            self.rows.subset(rows),
            self.y[rows],
            self.cap[rows],
            self.settings,
            linear=self.linear[rows],
            shift=self.shift[rows],
            newton=self.newton,
            run=run,
        )

    def begin_from(self, start: Array) -> None:
        """Start from coefficients, after moving them into this problem's box and scaling them to a sum of 0."""
        signed = self.y * np.clip(start * self.y, -self.shift, self.cap - self.shift)
        sides = [signed[signed > 0].sum(), -signed[signed < 0].sum()]
        for sign, total in zip((1, -1), sides, strict=True):
            if total > min(sides) * (1 + 1e-9):  # a difference by rounding must not move rows off their bounds
                signed[sign * signed > 0] *= min(sides) / total
        self.alpha = np.clip(signed * self.y + self.shift, 0.0, self.cap)
        support = np.flatnonzero(signed)
        self.responses.add_rows(support, signed[support, None])

    def violation(self) -> float:
        """Return the largest violation of the optimality conditions."""
        return self.widest(*self.bounds(self.v))

    def widest(self, grow: Array, shrink: Array) -> float:
        """Return the largest violation, from the bounds of all rows."""
        return float(max(grow.max() - shrink.min(), 0.0))

    def objective(self, v: Array | None = None) -> float:
        """Return the dual objective, with v where the caller has it."""
        terms = self.signed * (self.linear + (self.v if v is None else v))
        return 0.5 * float(terms.sum())  # BLAS would wake its threads for a product of two vectors, once a round

    def choose(self, grow: Array, shrink: Array) -> None:
        """Choose the next working set, the worst rows of both bounds and rows of the last set, and evaluate its block."""
        size, n = self.size, self.rows.n
        if self.index.size == n:
            return  # the block already has all rows
        if self.by_rows and self.small_block < n <= self.on_demand_sets * size and not self.needs_float64:
            self.on_demand = self.rows.on_demand()
        if n <= size or self.on_demand is not None:
            self.working = np.arange(n)
        else:
            self.working = self.next_working(grow, shrink)
        self.index = self.ordered(self.working)
        if self.on_demand is None:
            # all rounds share one piece of memory: a new one takes longer to allocate than its values take to compute
            self.buffer = self.rows.buffer(min(size, n) ** 2) if self.buffer is None else self.buffer
            self.block = self.rows.block(self.index, out=self.buffer)

    def next_working(self, grow: Array, shrink: Array) -> Array:
        """Return the worst rows of both bounds, and rows of the last working set."""
        half, chosen = max(self.size // (4 if self.working.size else 2), 1), np.zeros(self.rows.n, dtype=bool)
        chosen[largest(grow, half)] = chosen[largest(-shrink, half)] = True
        worst, earlier = np.flatnonzero(chosen), self.working[~chosen[self.working]]  # the most recent come first
        return np.concatenate([worst, earlier[: max(self.size - worst.size, 0)]])

    def ordered(self, working: Array) -> Array:
        """Return the rows of a working set in the order that `pair_steps` needs."""
        return working

    def step_whole(self, rows: OnDemand, limit: float, v: Array) -> None:
        """Solve the problem of all rows and add the change to their responses."""
        alpha = self.alpha.copy()
        most = int(min(limit - self.steps, STEPS_A_ROUND))
        steps, _ = rows.pair_steps(self.y, self.cap, alpha, v, 0.5 * self.tol, most)
        self.responses.values[:, 0] += rows.product((alpha - self.alpha) * self.y)
        self.alpha = alpha
        self.steps += steps

    def step(self, limit: float, v: Array) -> None:
        """Solve the block to a tenth of the gap and add the change to the responses of all rows."""
        index, tol = self.index, self.tol
        all_rows = index.size == self.rows.n
        small = all_rows and index.size <= self.small_block
        real = np.float64 if small or self.needs_float64 else self.rows.dtype
        alpha, y, v = self.alpha[index], self.y[index].astype(real), v[index].astype(real)
        block, cap = self.block.astype(real, copy=False), self.cap[index]
        goal = 0.5 * tol if all_rows else max(0.1 * self.gap, 0.5 * tol)
        steps, gap = self.pair_steps(block, y, cap, alpha, v, goal, int(min(limit - self.steps, STEPS_A_ROUND)))
        if small and gap <= goal:
            # The block has all rows. Solving it to the limit of rounding costs little, and makes the result independent of
            # the order of the rows and of how often each one is repeated.
            self.pair_steps(block, y, cap, alpha, v, EXACT, 1000 + 20 * index.size)
        change = (alpha - self.alpha[index]) * self.y[index]
        moved = change != 0
        if small:
            self.responses.values[index] += block[:, moved] @ change[moved, None]
        elif all_rows:
            # rows of the symmetric block are faster to read than its columns, and BLAS would wake its threads
            self.responses.values[index, 0] += np.einsum("i,ij->j", change[moved], block[moved])
        else:
            self.responses.add_rows(index[moved], change[moved, None])
        self.alpha[index] = alpha  # last, so that Ctrl-C in a product leaves coefficients and responses of one round
        self.steps += steps

    def pair_steps(
        self, block: Array, y: Array, cap: Array, alpha: Array, v: Array, goal: float, limit: int
    ) -> tuple[int, float]:
        """Run compiled pair steps on the block; return their number and the violation that is left."""
        return core.smo(block, y, cap, alpha, v, goal, limit)
