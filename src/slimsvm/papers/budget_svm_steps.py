"""The solver of `budget_svm`: pair steps keep the box and the limited sum, a multiplier keeps the ellipsoid.

`solve_in_ellipsoid` finds the multiplier that puts the solution on the surface. `paper_steps` are those of Dekel & Singer
(2006), each clipped to the interval that all constraints allow (their eq. 9 to 13). They stay in the feasible set and never
lower the objective. On the surface of the ellipsoid a pair can only move inwards. If every pair with a gain would move
outwards, these steps end, even if the point is not optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from .._core import core
from ..kernels import Array
from ..model import Status
from ..rows.protocol import Rows
from ..run import BY_ITSELF, Run
from ..solvers.smo import Rounds, SmoState

#: a sum of alphas is at its limit if the relative distance is at most this; a larger value ends steps too early
AT_LIMIT = 1e-10


@dataclass(frozen=True)
class Ellipsoid:
    """The set a'Pa <= radius^2; P = M^-1 is a number, a diagonal (n,) or a matrix (n, n). By default the whole space."""

    radius: float = np.inf
    P: Array = field(default_factory=lambda: np.array(0.0))
    reach: float = np.inf  # sqrt(1'M1): no a in the set has a sum above radius * reach

    def times(self, a: Array) -> Array:
        """Return Pa."""
        return self.P @ a if self.P.ndim == 2 else self.P * a

    def part(self, rows: Array) -> Array:
        """Return P of some of the rows."""
        return self.P[np.ix_(rows, rows)] if self.P.ndim == 2 else self.P[rows] if self.P.ndim else self.P


@dataclass(frozen=True)
class FeasibleSet:
    """All a with 0 <= a_i <= cap_i and sum a <= total inside an ellipsoid."""

    cap: Array
    total: float = np.inf
    ellipsoid: Ellipsoid = field(default_factory=Ellipsoid)


class LimitedState(SmoState):
    """A binary problem on a feasible set; the objective has the term -mu/2 a'Pa, `mu` the multiplier of the ellipsoid."""

    by_rows = False

    def __init__(self, rows: Rows, y: Array, feasible: FeasibleSet, settings: Rounds, run: Run = BY_ITSELF) -> None:
        super().__init__(rows, y, feasible.cap, settings, run=run)
        self.feasible, self.mu = feasible, 0.0
        self.shrinks = feasible.ellipsoid.P.ndim < 2  # a full P couples the active rows to all others

    @property
    def v(self) -> Array:
        return super().v - self.mu * self.y * self.ellipsoid_gradient() if self.mu else super().v

    def ellipsoid_gradient(self) -> Array:
        """Return Pa, half the gradient of a'Pa."""
        return self.feasible.ellipsoid.times(self.alpha)

    def length(self) -> float:
        """Return (a'Pa)^(1/2)."""
        return float(np.sqrt(self.alpha @ self.ellipsoid_gradient()))

    def room(self) -> float:
        """Return how much the sum of alphas can still grow."""
        used = self.alpha.sum()
        left = self.feasible.total - used
        return left if left > AT_LIMIT * used else 0.0

    def bounds(self, v: Array) -> tuple[Array, Array]:
        """Return the bounds of `SmoState` minus theta y, with the theta >= 0 of the smallest gap.

        Theta is the multiplier of the sum, 0 below its limit. With theta, rows of both labels can be compared. Each label
        has a middle between its largest v that can grow and its smallest that can shrink; the gap is smallest for a theta
        of half the distance between the two middles.
        """
        grow, shrink = super().bounds(v)
        if self.room() > 0:
            return grow, shrink
        up, down = (_middle(grow[rows], shrink[rows]) for rows in (self.y > 0, self.y < 0))
        theta = max((up - down) / 2, 0.0)
        return grow - theta * self.y, shrink - theta * self.y

    def bias(self) -> float:
        """Return the bias of `SmoState`; at the limit of the sum, the middle between the two labels, as in nu-SVM."""
        if self.room() > 0:
            return super().bias()
        free, v = (self.alpha > 0) & (self.alpha < self.cap), self.v
        grow, shrink = super().bounds(v)
        levels = [
            v[free & rows].mean() if (free & rows).any() else _middle(grow[rows], shrink[rows])
            for rows in (self.y > 0, self.y < 0)
        ]
        return float(np.mean(levels))

    def scale_into_set(self) -> None:
        """Scale the solution down to the sum's limit and the ellipsoid if it exceeds them."""
        excess = max(self.alpha.sum() / self.feasible.total, self.length() / self.feasible.ellipsoid.radius, 1.0)
        self.alpha /= excess
        self.responses.values /= excess

    def part(self, rows: Array, run: Run) -> LimitedState:
        left = self.feasible.total - (self.alpha.sum() - self.alpha[rows].sum())
        ellipsoid = replace(self.feasible.ellipsoid, P=self.feasible.ellipsoid.part(rows))
        feasible = FeasibleSet(self.cap[rows], left, ellipsoid)
        part = LimitedState(self.rows.subset(rows), self.y[rows], feasible, self.settings, run)
        part.mu = self.mu
        return part

    def ordered(self, working: Array) -> Array:
        """Return the rows of label +1 first: the compiled steps with a limited sum need this order."""
        return working[np.argsort(self.y[working] < 0, kind="stable")]

    def pair_steps(
        self, block: Array, y: Array, cap: Array, alpha: Array, v: Array, goal: float, limit: int
    ) -> tuple[int, float]:
        """Run pair steps on K + mu y y'P, within the room of the sum."""
        gained = alpha.sum() - self.alpha[self.index].sum()
        room = max(self.room() - gained, 0.0)
        return core.smo(self.with_ellipsoid(block, y), y, cap, alpha, v, goal, limit, room)

    def with_ellipsoid(self, block: Array, y: Array) -> Array:
        """Return the block of K_ij + mu y_i P_ij y_j."""
        if not self.mu:
            return block
        P = self.mu * self.feasible.ellipsoid.part(self.index)
        if P.ndim == 2:
            return block + (P * np.outer(y, y)).astype(block.dtype)
        block = block.copy()
        block.flat[:: y.size + 1] += P
        return block


def _middle(grow: Array, shrink: Array) -> float:
    """Return the middle between the largest v that can grow and the smallest that can shrink, or the one that exists."""
    ends = [end for end in (grow.max(initial=-np.inf), shrink.min(initial=np.inf)) if np.isfinite(end)]
    return float(np.mean(ends)) if ends else 0.0


#: most multipliers to try before the run stops as STALLED, and the largest step of their logarithm; larger steps may
#: overshoot
MOST_SOLVES, LARGEST_STEP = 50, 3.0


def solve_in_ellipsoid(state: LimitedState, limit: float) -> None:
    """Find a multiplier mu >= 0 for which a(mu) lies within the ellipsoid and mu (r^2 - a'Pa) <= tol/2 sum a.

    The left side is the ellipsoid's part of the duality gap. It is 0 at the optimum: either mu is 0, or a is on the
    surface. As in trust-region methods (More & Sorensen 1983) the length is a smooth function of mu that falls about like
    1 / (mu + curvature). So a secant search needs few solves, each of which starts from the last solution.
    """
    whole, radius, state.tol = state.run, state.feasible.ellipsoid.radius, state.settings.tol / 2
    # an upper bound: at the optimum mu a'Pa <= sum a, and the sum is limited
    search = MultiplierSearch(min(state.feasible.total / radius, state.feasible.ellipsoid.reach) / radius)
    state.mu = first_multiplier(state, search.top)
    for number in range(MOST_SOLVES):
        steps = state.steps
        state.run = whole.part(partial(_halfway, number))
        state.solve(limit)
        length, depth = state.length(), allowed_depth(state)
        if state.status is not Status.CONVERGED or not length or radius - depth <= length <= radius:
            break
        if state.steps == steps or search.narrow:
            state.tol /= 10  # at this tolerance, a change of mu has no visible effect
            search = MultiplierSearch(search.top)
        state.mu = search.next(state.mu, length, radius, depth, curvature(state))
    else:
        state.status = Status.STALLED
    if length > radius:  # the search ended early
        state.scale_into_set()
        state.gap = state.violation()
    whole.report(1.0)


def allowed_depth(state: LimitedState) -> float:
    """Return how far inside the ellipsoid a may lie: the depth with mu (r^2 - (r - depth)^2) = tol/2 sum a."""
    radius, slack = state.feasible.ellipsoid.radius, 0.5 * state.settings.tol * float(state.alpha.sum())
    return radius if state.mu * radius**2 <= slack else radius - float(np.sqrt(radius**2 - slack / state.mu))


class MultiplierSearch:
    """Find the mu of a given length by secant steps on the logarithms of both, between the bounds known so far.

    Logarithms also suit problems with a limited sum, in which the length hardly depends on a large mu.
    """

    def __init__(self, top: float) -> None:
        self.top, self.low, self.high = top, 0.0, top
        self.last: tuple[float, float] | None = None

    @property
    def narrow(self) -> bool:
        """Whether the bounds are so close that they differ by rounding."""
        return self.high - self.low < 1e-4 * self.high

    def next(self, mu: float, length: float, radius: float, depth: float, shift: float) -> float:
        """Return the next mu to try, for half the allowed depth; the first step assumes length = 1 / (mu + shift)."""
        if length > radius:
            self.low = max(self.low, mu)
        else:
            self.high = min(self.high, mu)
        here = np.log(mu), np.log(length)
        slope = -mu / (mu + shift) if self.last is None else (here[1] - self.last[1]) / (here[0] - self.last[0])
        self.last = here
        step = (np.log(radius - 0.5 * depth) - here[1]) / slope if slope < 0 else np.nan
        guess = mu * np.exp(np.clip(step, -LARGEST_STEP, LARGEST_STEP))
        if self.low < guess < self.high:
            return float(guess)
        return float(np.sqrt(self.low * self.high)) if self.low else mu * np.exp(-LARGEST_STEP)


def curvature(state: LimitedState) -> float:
    """Return a'Qa / a'Pa, the scale of mu."""
    return float(state.signed @ state.responses.values.ravel()) / state.length() ** 2


def first_multiplier(state: LimitedState, top: float) -> float:
    """Return the mu that fits the start best; without a start the largest, whose problem is the easiest."""
    if np.count_nonzero(state.alpha) < 4:
        return top
    return float(np.clip(best_multiplier(state), state.settings.tol / 4 * top, top))


def best_multiplier(state: LimitedState) -> float:
    """Return the mu >= 0 that fits y - f = b + theta y + mu y Pa best on the support vectors."""
    support = state.alpha > 0
    y, gradient = state.y[support], state.ellipsoid_gradient()[support]
    design = np.column_stack([np.ones(y.size), y, y * gradient])
    return max(float(np.linalg.lstsq(design, y - state.responses.values.ravel()[support], rcond=None)[0][2]), 0.0)


def _halfway(number: int, part: float) -> float:
    """Return the share done: each solve is half of the remaining work."""
    return 1 - 0.5**number * (1 - part / 2)


#: a step must gain this share of the least gain of an unclipped step, tol^2 / 2 / curvature; larger: an earlier end
WORTH = 1e-4
#: points beyond this share of the radius count as on the surface
AT_SURFACE = 1 - 1e-9
#: smallest curvature of a pair, as in LIBSVM
FLAT = 1e-12


def paper_steps(state: LimitedState, limit: float) -> None:
    """Run pair steps until none gains enough, up to `limit` steps, or until the run's deadline."""
    row, diag = kernel_rows(state), state.rows.diagonal()
    state.status = Status.MAX_ITER
    while state.steps < limit:
        step = next(worthwhile_steps(state, row, diag), None)
        if step is None:
            state.status = Status.EXHAUSTED
            break
        move(state, row, *step)
        state.steps += 1
        if state.steps % 1000 == 0:
            state.run.report(0.5)
        if state.run.over:
            state.status = Status.TIME_LIMIT
            break
    measure_gap(state)
    state.run.report(1.0)


def measure_gap(state: LimitedState) -> None:
    """Compute the gap, on the surface with the multiplier that fits best, and set the status if it is below `tol`."""
    state.mu = best_multiplier(state) if state.length() >= AT_SURFACE * state.feasible.ellipsoid.radius else 0.0
    state.gap = state.violation()
    if state.gap <= state.tol:
        state.status = Status.CONVERGED


def kernel_rows(state: LimitedState) -> Callable[[int], Array]:
    """Return a function from row numbers to kernel rows: of the whole matrix if that is small, else through the cache."""
    n = state.rows.n
    if n <= state.size:
        return state.rows.block(np.arange(n)).__getitem__
    return lambda i: state.rows.product_of(np.array([i]), np.ones((1, 1)), keep=True).ravel()


def worthwhile_steps(state: LimitedState, row: Callable[[int], Array], diag: Array) -> Iterator[tuple[int, int, float]]:
    """Yield steps (i, j, t) that gain enough: i by violation, the largest first, each with the j that gains most."""
    grow, shrink = SmoState.bounds(state, state.v)
    longest = StepLengths(state)
    for i in np.argsort(-grow):
        slope = np.maximum(grow[i] - shrink, 0.0)
        if slope.max() <= state.tol:
            return
        curve = np.maximum(diag[i] + diag - 2 * row(i), FLAT)
        t = np.minimum(slope / curve, longest(i))
        gain = np.where(slope > state.tol, t * (slope - 0.5 * t * curve), 0.0)
        j = int(gain.argmax())
        if gain[j] > WORTH * 0.5 * state.tol**2 / curve[j]:
            yield int(i), j, float(t[j])


class StepLengths:
    """The longest steps of pairs, y_i a_i up and y_j a_j down, for one i and all j."""

    def __init__(self, state: LimitedState) -> None:
        self.y, self.half_room = state.y, state.room() / 2
        P = state.feasible.ellipsoid.P
        self.P = P if P.ndim else np.full(state.y.size, P)
        up, down = state.cap - state.alpha, state.alpha
        self.rise, self.fall = np.where(state.y > 0, up, down), np.where(state.y > 0, down, up)
        self.gradient = state.y * state.ellipsoid_gradient()
        self.within = min(state.length() ** 2 - state.feasible.ellipsoid.radius**2, 0.0)

    def __call__(self, i: int) -> Array:
        """Return the longest step for each j within the box (10), the sum (12) and c t^2 + 2 b t + a'Pa - r^2 <= 0 (13)."""
        t = np.minimum(self.rise[i], self.fall)
        t = np.where(self.y[i] > self.y, np.minimum(t, self.half_room), t)
        if np.isinf(self.within):
            return t
        b, c = self.gradient[i] - self.gradient, self.curvature(i)
        root = np.sqrt(b**2 - c * self.within)
        # the larger root of the parabola, in the form without cancellation
        surface = np.where(b > 0, -self.within / np.where(b > 0, b + root, 1.0), (root - b) / c)
        return np.minimum(t, surface)

    def curvature(self, i: int) -> Array:
        """Return d'Pd for the directions d = y_i e_i - y_j e_j; 1 for j = i, which never moves."""
        if self.P.ndim == 2:
            c = self.P[i, i] + self.P.diagonal() - 2 * self.y[i] * self.y * self.P[i]
        else:
            c = self.P[i] + self.P
        c[i] = 1.0
        return c


def move(state: LimitedState, row: Callable[[int], Array], i: int, j: int, t: float) -> None:
    """Make one step and update the responses."""
    for k, signed in ((i, t), (j, -t)):
        state.alpha[k] = np.clip(state.alpha[k] + state.y[k] * signed, 0.0, state.cap[k])
        state.responses.values[:, 0] += signed * row(k)
