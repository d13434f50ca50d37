"""A linear SVM on features that grow in number, by cutting planes: one slack, one small quadratic program a round.

With features phi_i, signs y_i and caps C_i,

    minimise  P(v) = 1/2 |v|^2 + sum_i C_i max(0, 1 - y_i <phi_i, v>)        over v

The sum is the maximum over c in {0, 1}^n of the planes d_c - <p_c, v>, with d_c = sum_i C_i c_i and
p_c = sum_i C_i c_i y_i phi_i. At v the maximum is the plane with c_i = 1 where y_i <phi_i, v> < 1 (Joachims 2006). A few of
the planes give a lower bound of P, and its dual is a quadratic program over their weights,

    maximise  D(a) = <d, a> - 1/2 |v|^2,    v = sum_j a_j p_j                over a >= 0 with sum_j a_j = 1

Planes are added where they are tight until P - D is small. As in OCAS (Franc & Sonnenburg 2009), the best v so far is kept
and improved by an exact line search towards the program's v, and the next plane is taken near it. That takes far fewer
rounds to the same gap than planes at the program's own v.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..kernels import Array
from ..limits import Deadline
from ..rows.threads import one_blas_thread

#: the share of the way from the best v to the program's v at which the next plane is taken, as in OCAS
AHEAD = 0.1
#: rounds without weight after which a plane is dropped
IDLE = 50
#: added to each |p_c|^2, as a share of the largest offset d and of the largest |p_c|^2: the program then has one solution
#: where planes depend on each other, and rounding does not hide it
RIDGE, ROUNDING = 1e-12, 1e-3


class Features(Protocol):
    """The features of n rows, in any home, as products with them."""

    def outputs(self, v: Array) -> Array:
        """Return <phi_i, v> for each row, (n,)."""

    def sums(self, pull: Array) -> Array:
        """Return sum_i pull_i phi_i."""


class CuttingPlanes:
    """The problem of one output: its planes, their weights, and the best v so far."""

    def __init__(self, y: Array, caps: Array) -> None:
        self.y, self.caps = y, caps
        self.masks = np.zeros((1, y.size), dtype=bool)  # the c of each plane; c = 0 is first: losses are >= 0
        self.normals = np.zeros((1, 0))  # p_c
        self.offsets = np.zeros(1)  # d_c
        self.weights = np.ones(1)
        self.idle = np.zeros(1, dtype=np.intp)
        self.best = np.zeros(0)
        self.margins = np.zeros(y.size)  # y_i <phi_i, best>

    def widen(self, feature: Array) -> None:
        """Add a feature by its value for each row, (n,); the best v so far has a 0 there."""
        self.normals = np.column_stack([self.normals, self.masks @ (self.caps * self.y * feature)])
        self.best = np.append(self.best, 0.0)

    @one_blas_thread()
    def solve(self, features: Features, gap: float, max_rounds: int, deadline: Deadline) -> float:
        """Run rounds until P - D <= gap, at most `max_rounds`, and return P - D."""
        left = np.inf
        for _ in range(max_rounds):
            self.weights = simplex_qp(self.normals @ self.normals.T, self.offsets, self.weights)
            step = self.weights @ self.normals - self.best
            # not a difference of outputs, which may be float32: line searches would magnify its rounding
            change = self.y * features.outputs(step)
            ahead = self.margins + change
            self.improve(step, change)
            left = self.primal() - self.dual()
            if left <= gap or deadline.over:
                break
            self.cut(features, (1 - AHEAD) * self.margins + AHEAD * ahead)
        return left

    def improve(self, step: Array, change: Array) -> None:
        """Move the best v to the lowest P on the ray along a step, which changes margins by `change`."""
        length = line_search(float(self.best @ step), float(step @ step), self.margins, change, self.caps)
        self.best = self.best + length * step
        self.margins = self.margins + length * change

    def cut(self, features: Features, margins: Array) -> None:
        """Add the plane that is tight at these margins, and drop planes that had no weight for `IDLE` rounds."""
        self.idle = np.where(self.weights > 0, 0, self.idle + 1)
        self.idle[0] = 0
        keep = self.idle <= IDLE
        mask = margins < 1
        self.masks = np.vstack([self.masks[keep], mask])
        self.normals = np.vstack([self.normals[keep], features.sums(self.caps * self.y * mask)])
        self.offsets = np.append(self.offsets[keep], self.caps @ mask)
        self.weights, self.idle = np.append(self.weights[keep], 0.0), np.append(self.idle[keep], 0)

    def primal(self) -> float:
        """Return P at the best v."""
        return float(self.best @ self.best / 2 + self.caps @ np.maximum(1 - self.margins, 0.0))

    def dual(self) -> float:
        """Return D at the weights."""
        v = self.weights @ self.normals
        return float(self.weights @ self.offsets - v @ v / 2)

    def pull(self) -> Array:
        """Return the coefficient of each row in v = sum_j a_j p_j, sum_j a_j c_ij C_i y_i."""
        held = self.weights > 0
        return (self.weights[held] @ self.masks[held]) * self.caps * self.y

    def newest_pull(self) -> Array:
        """Return the coefficient of each row in the newest plane, C_i c_i y_i."""
        return self.masks[-1] * self.caps * self.y


def line_search(slope: float, curvature: float, margins: Array, change: Array, caps: Array) -> float:
    """Return the t >= 0 that minimises slope t + curvature t^2 / 2 + sum_i caps_i max(0, 1 - margins_i - t change_i)."""
    lossy = (margins < 1) | ((margins == 1) & (change < 0))
    slope -= float(caps[lossy] @ change[lossy])  # the derivative at 0 from the right
    if slope >= 0:
        return 0.0
    turning = np.flatnonzero((1 - margins) * change > 0)  # rows whose loss begins or ends at some t > 0
    at = (1 - margins[turning]) / change[turning]
    order = np.argsort(at, kind="stable")
    at, jumps = at[order], (caps[turning] * np.abs(change[turning]))[order]
    after = slope + np.cumsum(jumps)  # the derivative after each of them, without its curvature term
    first = int(np.argmax(np.append(after + curvature * at, np.inf) >= 0))
    before = after[first - 1] if first else slope
    zero = -before / curvature
    return float(min(zero, at[first])) if first < at.size else float(zero)


def simplex_qp(Q: Array, d: Array, a: Array) -> Array:
    """Minimise 1/2 a'Qa - d'a over a >= 0 with sum a = 1, from a feasible a, by active sets as in Lawson-Hanson NNLS."""
    most = float(np.abs(d).max()) or 1.0
    Q, d = Q / most, d / most
    Q = Q + RIDGE * (1 + ROUNDING * float(np.abs(Q).max())) * np.eye(d.size)
    free, added = a > 0, -1
    for _ in range(10 * d.size):
        goal = _equality_qp(Q, d, free)
        if added >= 0 and goal[added] <= 0:
            break  # its gradient was negative only by rounding
        outside = np.flatnonzero(free & (goal < 0))
        if outside.size:
            lengths = a[outside] / (a[outside] - goal[outside])
            a = np.maximum(a + lengths.min() * (goal - a), 0.0)
            free[outside[lengths.argmin()]], added = False, -1
            a[~free] = 0.0
            continue
        a = goal
        gradient = Q @ a - d
        added = int(gradient.argmin())
        if free[added] or gradient[added] >= a @ gradient - 1e-12:
            break
        free[added] = True
    return a / a.sum()


def _equality_qp(Q: Array, d: Array, free: Array) -> Array:
    """Return the minimum over a with sum a = 1 and a = 0 outside `free`."""
    index = np.flatnonzero(free)
    m = index.size
    system = np.ones((m + 1, m + 1))
    system[:m, :m], system[m, m] = Q[np.ix_(index, index)], 0.0
    goal = np.zeros(free.size)
    goal[index] = np.linalg.solve(system, np.append(d[index], 1.0))[:m]
    return goal
