"""A binary problem on the feasible set of a norm: pair steps keep the box and the sum, a multiplier the ellipsoid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._core import core
from ..kernels import Array
from ..rows.protocol import Rows
from ..solvers.smo import Rounds, SmoState
from .norms import FeasibleSet

#: a sum of alphas is at its limit if the relative distance is at most this; a larger value ends steps too early
AT_LIMIT = 1e-10


class LimitedState(SmoState):
    """A binary problem on a feasible set; the objective has the term -mu/2 a'Pa, `mu` the multiplier of the ellipsoid."""

    by_rows = False

    def __init__(self, rows: Rows, y: Array, feasible: FeasibleSet, settings: Rounds) -> None:
        super().__init__(rows, y, feasible.cap, settings)
        self.feasible, self.mu = feasible, 0.0
        self.shrinks = feasible.ellipsoid.P.ndim < 2  # a full P couples the active rows to all others

    @property
    def v(self) -> Array:
        """y - f - mu y Pa: y times the gradient of the dual with respect to alpha."""
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

    def part(self, rows: Array) -> LimitedState:
        """Return the problem of some of the rows; their sum is limited to what the other rows leave."""
        left = self.feasible.total - (self.alpha.sum() - self.alpha[rows].sum())
        ellipsoid = replace(self.feasible.ellipsoid, P=self.feasible.ellipsoid.part(rows))
        feasible = FeasibleSet(self.cap[rows], left, ellipsoid)
        part = LimitedState(self.rows.subset(rows), self.y[rows], feasible, self.settings)
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
