"""The pair steps of Dekel & Singer (2006), each clipped to the interval that all constraints allow (their eq. 9 to 13).

The steps stay in the feasible set and never lower the objective. On the surface of the ellipsoid a pair can only move
inwards. If every pair with a gain would move outwards, the steps end, even if the point is not optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..kernels import Array
from ..model import Status
from ..solvers.smo import SmoState
from .ellipsoid import best_multiplier
from .limited import LimitedState

#: a step must gain this share of the least gain of an unclipped step, tol^2 / 2 / curvature; larger: an earlier end
WORTH = 1e-4
#: points beyond this share of the radius count as on the surface
AT_SURFACE = 1 - 1e-9
#: smallest curvature of a pair, as in LIBSVM
FLAT = 1e-12


def paper_steps(run: LimitedState, limit: float, report: Callable[[float], None]) -> None:
    """Run pair steps until none gains enough, up to `limit` steps, or until the run's deadline."""
    row, diag = kernel_rows(run), run.rows.diagonal()
    run.status = Status.MAX_ITER
    while run.steps < limit:
        step = next(worthwhile_steps(run, row, diag), None)
        if step is None:
            run.status = Status.EXHAUSTED
            break
        move(run, row, *step)
        run.steps += 1
        if run.steps % 1000 == 0:
            report(0.5)
        if run.deadline.over:
            run.status = Status.TIME_LIMIT
            break
    measure_gap(run)
    report(1.0)


def measure_gap(run: LimitedState) -> None:
    """Compute the gap, on the surface with the multiplier that fits best, and set the status if it is below `tol`."""
    run.mu = best_multiplier(run) if run.length() >= AT_SURFACE * run.feasible.ellipsoid.radius else 0.0
    run.gap = run.violation()
    if run.gap <= run.tol:
        run.status = Status.CONVERGED


def kernel_rows(run: LimitedState) -> Callable[[int], Array]:
    """Return a function from row numbers to kernel rows: of the whole matrix if that is small, else through the cache."""
    n = run.rows.n
    if n <= run.size:
        return run.rows.block(np.arange(n)).__getitem__
    return lambda i: run.rows.product_of(np.array([i]), np.ones((1, 1)), keep=True).ravel()


def worthwhile_steps(run: LimitedState, row: Callable[[int], Array], diag: Array) -> Iterator[tuple[int, int, float]]:
    """Yield steps (i, j, t) that gain enough: i by violation, the largest first, each with the j that gains most."""
    grow, shrink = SmoState.bounds(run, run.v)
    longest = StepLengths(run)
    for i in np.argsort(-grow):
        slope = np.maximum(grow[i] - shrink, 0.0)
        if slope.max() <= run.tol:
            return
        curve = np.maximum(diag[i] + diag - 2 * row(i), FLAT)
        t = np.minimum(slope / curve, longest(i))
        gain = np.where(slope > run.tol, t * (slope - 0.5 * t * curve), 0.0)
        j = int(gain.argmax())
        if gain[j] > WORTH * 0.5 * run.tol**2 / curve[j]:
            yield int(i), j, float(t[j])


class StepLengths:
    """The longest steps of pairs, y_i a_i up and y_j a_j down, for one i and all j."""

    def __init__(self, run: LimitedState) -> None:
        self.y, self.half_room = run.y, run.room() / 2
        P = run.feasible.ellipsoid.P
        self.P = P if P.ndim else np.full(run.y.size, P)
        up, down = run.cap - run.alpha, run.alpha
        self.rise, self.fall = np.where(run.y > 0, up, down), np.where(run.y > 0, down, up)
        self.gradient = run.y * run.ellipsoid_gradient()
        self.within = min(run.length() ** 2 - run.feasible.ellipsoid.radius**2, 0.0)

    def __call__(self, i: int) -> Array:
        """Return the longest step for each j within the box (10), the sum (12) and c t^2 + 2 b t + a'Pa - r^2 <= 0 (13)."""
        t = np.minimum(self.rise[i], self.fall)
        t = np.where(self.y[i] > self.y, np.minimum(t, self.half_room), t)
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


def move(run: LimitedState, row: Callable[[int], Array], i: int, j: int, t: float) -> None:
    """Make one step and update the responses."""
    for k, signed in ((i, t), (j, -t)):
        run.alpha[k] = np.clip(run.alpha[k] + run.y[k] * signed, 0.0, run.cap[k])
        run.responses.values[:, 0] += signed * row(k)
