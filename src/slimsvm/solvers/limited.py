"""A binary problem within the limits of a norm: pair steps in a box under a limited sum, an ellipsoid by its multiplier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._core import core
from ..kernels import Array
from ..rows.protocol import Rows
from .norms import Limits
from .smo import Rounds, SmoState

#: a sum of alphas this close to its limit, relative to it, has reached it: rounding is all that is left
AT_LIMIT = 1e-10


class LimitedState(SmoState):
    """A binary problem within limits, the ellipsoid by its multiplier `mu`: the objective has -mu/2 a'Pa."""

    def __init__(self, rows: Rows, y: Array, limits: Limits, settings: Rounds) -> None:
        super().__init__(rows, y, limits.cap, settings)
        self.limits, self.mu = limits, 0.0

    @property
    def v(self) -> Array:
        """y - f - mu y Pa: minus y times the gradient of the dual."""
        return super().v - self.mu * self.y * self.pull() if self.mu else super().v

    def pull(self) -> Array:
        """Pa, half the gradient of a'Pa."""
        return self.limits.ellipsoid.times(self.alpha)

    def length(self) -> float:
        """(a'Pa)^(1/2)."""
        return float(np.sqrt(self.alpha @ self.pull()))

    def room(self) -> float:
        """What the sum may still grow by."""
        used = self.alpha.sum()
        left = self.limits.total - used
        return left if left > AT_LIMIT * used else 0.0

    def bounds(self) -> tuple[Array, Array]:
        """Column's bounds less theta y, with the theta for which their gap is least: then all pairs can be compared.

        With the largest v of the rows that can grow and the smallest of those that can shrink, for each label, the gap is
        least where theta is half of the distance of the two middles (and at least 0).
        """
        grow, shrink = super().bounds()
        if self.room() > 0:
            return grow, shrink
        up, down = (_middle(grow[rows], shrink[rows]) for rows in (self.y > 0, self.y < 0))
        theta = max((up - down) / 2, 0.0)
        return grow - theta * self.y, shrink - theta * self.y

    def bias(self) -> float:
        """Column's rule while the sum has room; then the middle of the levels of the two labels, as in nu-SVM."""
        if self.room() > 0:
            return super().bias()
        grow, shrink = super().bounds()
        free, v = (self.alpha > 0) & (self.alpha < self.cap), self.v
        levels = [
            v[free & rows].mean() if (free & rows).any() else _middle(grow[rows], shrink[rows])
            for rows in (self.y > 0, self.y < 0)
        ]
        return float(np.mean(levels))

    def objective(self) -> float:
        """The dual objective with the multiplier's term."""
        return super().objective() - (0.5 * self.mu * self.length() ** 2 if self.mu else 0.0)

    def begin_from(self, start: Array) -> None:
        """Take over coefficients, scaled into the limits."""
        super().begin_from(start)
        self.scale_into_limits()

    def scale_into_limits(self) -> None:
        """Divide the solution by what it exceeds the sum's limit or the ellipsoid by."""
        excess = max(self.alpha.sum() / self.limits.total, self.length() / self.limits.ellipsoid.radius, 1.0)
        self.alpha /= excess
        self.responses.values /= excess

    def violation(self) -> float:
        """The largest violation of the optimality conditions with this mu."""
        grow, shrink = self.bounds()
        return float(max(grow.max() - shrink.min(), 0.0))

    def active(self, grow: Array, shrink: Array) -> Array | None:
        """All rows where they are tied to each other by a dense P."""
        return None if self.limits.ellipsoid.P.ndim == 2 else super().active(grow, shrink)

    def part(self, rows: Array) -> LimitedState:
        """The problem of some of the rows, which may have what the others leave of the sum."""
        left = self.limits.total - (self.alpha.sum() - self.alpha[rows].sum())
        ellipsoid = replace(self.limits.ellipsoid, P=self.limits.ellipsoid.part(rows))
        limits = Limits(self.cap[rows], left, ellipsoid)
        part = LimitedState(self.rows.subset(rows), self.y[rows], limits, self.settings)
        part.mu = self.mu
        return part

    def ordered(self, working: Array) -> Array:
        """Rows of label +1 first."""
        return working[np.argsort(self.y[working] < 0, kind="stable")]

    def pair_steps(
        self, block: Array, y: Array, cap: Array, alpha: Array, v: Array, goal: float, limit: int
    ) -> tuple[int, float]:
        """Pair steps within the room of the sum, on K + mu yPy'."""
        gained = alpha.sum() - self.alpha[self.index].sum()
        room = max(self.room() - gained, 0.0)
        return core.smo(self.with_ellipsoid(block, y), y, cap, alpha, v, goal, limit, room)

    def with_ellipsoid(self, block: Array, y: Array) -> Array:
        """The block of K + mu y_i P_ij y_j."""
        if not self.mu:
            return block
        P = self.mu * self.limits.ellipsoid.part(self.index)
        if P.ndim == 2:
            return block + (P * np.outer(y, y)).astype(block.dtype)
        block = block.copy()
        block.flat[:: y.size + 1] += P
        return block


def _middle(grow: Array, shrink: Array) -> float:
    """The middle of the largest v that can grow and the smallest that can shrink, or the one there is."""
    ends = [end for end in (grow.max(initial=-np.inf), shrink.min(initial=np.inf)) if np.isfinite(end)]
    return float(np.mean(ends)) if ends else 0.0
