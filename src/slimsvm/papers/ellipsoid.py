"""The optimum within an ellipsoid, by the multiplier that puts it on the surface."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..model import Status
from .limited import LimitedState

#: most multipliers to try before the run stops as STALLED, and the largest step of their logarithm; larger steps may
#: overshoot
MOST_SOLVES, LARGEST_STEP = 50, 3.0


def solve_in_ellipsoid(run: LimitedState, limit: float, report: Callable[[float], None]) -> None:
    """Find a multiplier mu >= 0 for which a(mu) lies within the ellipsoid and mu (r^2 - a'Pa) <= tol/2 sum a.

    The left side is the ellipsoid's part of the duality gap. It is 0 at the optimum: either mu is 0, or a is on the
    surface. As in trust-region methods (More & Sorensen 1983) the length is a smooth function of mu that falls about like
    1 / (mu + curvature). So a secant search needs few solves, each of which starts from the last solution.
    """
    radius, run.tol = run.feasible.ellipsoid.radius, run.settings.tol / 2
    # an upper bound: at the optimum mu a'Pa <= sum a, and the sum is limited
    search = MultiplierSearch(min(run.feasible.total / radius, run.feasible.ellipsoid.reach) / radius)
    run.mu = first_multiplier(run, search.top)
    for number in range(MOST_SOLVES):
        steps = run.steps
        run.solve(limit, partial(_halfway, report, number))
        length, depth = run.length(), allowed_depth(run)
        if run.status is not Status.CONVERGED or not length or radius - depth <= length <= radius:
            break
        if run.steps == steps or search.narrow:
            run.tol /= 10  # at this tolerance, a change of mu has no visible effect
            search = MultiplierSearch(search.top)
        run.mu = search.next(run.mu, length, radius, depth, curvature(run))
    else:
        run.status = Status.STALLED
    if length > radius:  # the search ended early
        run.scale_into_set()
        run.gap = run.violation()
    report(1.0)


def allowed_depth(run: LimitedState) -> float:
    """Return how far inside the ellipsoid a may lie: the depth with mu (r^2 - (r - depth)^2) = tol/2 sum a."""
    radius, slack = run.feasible.ellipsoid.radius, 0.5 * run.settings.tol * float(run.alpha.sum())
    return radius if run.mu * radius**2 <= slack else radius - float(np.sqrt(radius**2 - slack / run.mu))


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


def curvature(run: LimitedState) -> float:
    """Return a'Qa / a'Pa, the scale of mu."""
    return float(run.signed @ run.responses.values.ravel()) / run.length() ** 2


def first_multiplier(run: LimitedState, top: float) -> float:
    """Return the mu that fits the start best; without a start the largest, whose problem is the easiest."""
    if np.count_nonzero(run.alpha) < 4:
        return top
    return float(np.clip(best_multiplier(run), run.settings.tol / 4 * top, top))


def best_multiplier(run: LimitedState) -> float:
    """Return the mu >= 0 that fits y - f = b + theta y + mu y Pa best on the support vectors."""
    support = run.alpha > 0
    y, gradient = run.y[support], run.ellipsoid_gradient()[support]
    design = np.column_stack([np.ones(y.size), y, y * gradient])
    return max(float(np.linalg.lstsq(design, y - run.responses.values.ravel()[support], rcond=None)[0][2]), 0.0)


def _halfway(report: Callable[[float], None], number: int, part: float) -> None:
    """Report each solve as half of the remaining work."""
    report(1 - 0.5**number * (1 - part / 2))
