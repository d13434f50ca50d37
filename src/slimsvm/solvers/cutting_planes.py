"""A linear SVM on features that grow in number, by cutting planes: one slack, one small quadratic program a round.

With features phi_i, signs y_i and caps C_i,

    minimise  P(v) = 1/2 |v|^2 + sum_i C_i max(0, 1 - y_i <phi_i, v>)        over v

The sum is the largest of 2^n planes d_c - <p_c, v>, one for each c in {0, 1}^n, with d_c = sum_i C_i c_i and
p_c = sum_i C_i c_i y_i phi_i; at v it is that with c_i = 1 where y_i <phi_i, v> < 1 (Joachims 2006). A few of the planes
give a lower bound of P, and its dual is a program over their weights,

    maximise  D(a) = <d, a> - 1/2 |v|^2,    v = sum_j a_j p_j                over a >= 0 with sum_j a_j = 1

Planes are added where they are tight until P - D is small. As in OCAS (Franc & Sonnenburg 2009) the best v so far is kept,
made better by an exact search of the line to the program's v, and the next plane is taken near it: that needs far fewer
rounds than planes at the program's own v, to the same gap.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array
from ..limits import Deadline

#: how far the next plane is taken from the best v towards the program's (OCAS)
AHEAD = 0.1
#: rounds without weight after which a plane is dropped
IDLE = 50
#: what is added to each |p_c|^2, as a share of the largest offset d and of the largest |p_c|^2: one solution, to be found
#: in spite of rounding, where planes depend on each other
RIDGE, ROUNDING = 1e-12, 1e-3


class CuttingPlanes:
    """The problem of one output: its planes, their weights, and the best v so far."""

    def __init__(self, y: Array, caps: Array) -> None:
        self.y, self.caps = y, caps
        self.masks = np.zeros((1, y.size), dtype=bool)  # the c of each plane; the first is 0, of the losses' lower bound 0
        self.normals = np.zeros((1, 0))  # p_c
        self.offsets = np.zeros(1)  # d_c
        self.weights = np.ones(1)
        self.idle = np.zeros(1, dtype=np.intp)
        self.best = np.zeros(0)
        self.margins = np.zeros(y.size)  # y_i <phi_i, best>

    def widen(self, feature: Array) -> None:
        """Give each row another feature, of which the best v so far has nothing."""
        pull = (self.caps * self.y).astype(feature.dtype) * feature
        self.normals = np.column_stack([self.normals, (self.masks @ pull).astype(np.float64)])
        self.best = np.append(self.best, 0.0)

    def solve(self, features: Array, gap: float, max_rounds: int, deadline: Deadline) -> float:
        """At most so many rounds towards P - D <= gap; returns P - D. `features` has a row for each coordinate of v."""
        left = np.inf
        for _ in range(max_rounds):
            self.weights = simplex_qp(self.normals @ self.normals.T, self.offsets, self.weights)
            v = self.weights @ self.normals
            ahead = self.y * (v.astype(features.dtype) @ features)
            self.improve(v, ahead)
            left = self.primal() - self.dual()
            if left <= gap or deadline.over:
                break
            self.cut(features, (1 - AHEAD) * self.margins + AHEAD * ahead)
        return left

    def improve(self, v: Array, ahead: Array) -> None:
        """Go to the best point of the ray from the best v so far through another one, whose margins are `ahead`."""
        step, change = v - self.best, ahead - self.margins
        length = line_search(float(self.best @ step), float(step @ step), self.margins, change, self.caps)
        self.best = self.best + length * step
        self.margins = self.margins + length * change

    def cut(self, features: Array, margins: Array) -> None:
        """Add the plane that is tight where rows have these margins, and drop those that were long without weight."""
        self.idle = np.where(self.weights > 0, 0, self.idle + 1)
        self.idle[0] = 0
        keep = self.idle <= IDLE
        mask = margins < 1
        pull = (self.caps * self.y * mask).astype(features.dtype)
        self.masks = np.vstack([self.masks[keep], mask])
        self.normals = np.vstack([self.normals[keep], (features @ pull).astype(np.float64)])
        self.offsets = np.append(self.offsets[keep], self.caps @ mask)
        self.weights, self.idle = np.append(self.weights[keep], 0.0), np.append(self.idle[keep], 0)

    def primal(self) -> float:
        """P at the best v."""
        return float(self.best @ self.best / 2 + self.caps @ np.maximum(1 - self.margins, 0.0))

    def dual(self) -> float:
        """D at the weights."""
        v = self.weights @ self.normals
        return float(self.weights @ self.offsets - v @ v / 2)

    def pull(self) -> Array:
        """sum_j a_j c_ij C_i y_i, the coefficient of each row in sum_j a_j sum_i C_i c_ij y_i Phi(x_i)."""
        held = self.weights > 0
        return (self.weights[held] @ self.masks[held]) * self.caps * self.y

    def newest_pull(self) -> Array:
        """C_i c_i y_i of the newest plane."""
        return self.masks[-1] * self.caps * self.y


def line_search(slope: float, curvature: float, margins: Array, change: Array, caps: Array) -> float:
    """The t >= 0 with the least slope t + curvature t^2 / 2 + sum_i caps_i max(0, 1 - margins_i - t change_i)."""
    lossy = (margins < 1) | ((margins == 1) & (change < 0))
    slope -= float(caps[lossy] @ change[lossy])  # the derivative at 0 from the right
    if slope >= 0:
        return 0.0
    turning = np.flatnonzero((1 - margins) * change > 0)  # rows whose loss begins or ends at some t > 0
    at = (1 - margins[turning]) / change[turning]
    order = np.argsort(at, kind="stable")
    at, jumps = at[order], (caps[turning] * np.abs(change[turning]))[order]
    after = slope + np.cumsum(jumps)  # the derivative behind each of these, but for its curvature
    first = int(np.argmax(np.append(after + curvature * at, np.inf) >= 0))
    before = after[first - 1] if first else slope
    zero = -before / curvature
    return float(min(zero, at[first])) if first < at.size else float(zero)


def simplex_qp(Q: Array, d: Array, a: Array) -> Array:
    """min 1/2 a'Qa - d'a over a >= 0 with sum a = 1, from such an a, by active sets as in Lawson & Hanson's NNLS."""
    most = float(np.abs(d).max()) or 1.0
    Q, d = Q / most, d / most
    Q = Q + RIDGE * (1 + ROUNDING * float(np.abs(Q).max())) * np.eye(d.size)
    free, added = a > 0, -1
    for _ in range(10 * d.size):
        goal = _equality_qp(Q, d, free)
        if added >= 0 and goal[added] <= 0:
            break  # only rounding made it look better
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
    """The minimum over a with sum a = 1 that is 0 where it is not free."""
    index = np.flatnonzero(free)
    m = index.size
    system = np.ones((m + 1, m + 1))
    system[:m, :m], system[m, m] = Q[np.ix_(index, index)], 0.0
    goal = np.zeros(free.size)
    goal[index] = np.linalg.solve(system, np.append(d[index], 1.0))[:m]
    return goal
