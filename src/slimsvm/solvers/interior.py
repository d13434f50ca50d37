"""A primal-dual interior point method for the LP machine on given columns: a well-centred solution to any precision.

    max_u  sum_i u_i     0 <= u_i <= cap_i,   -1 <= t <= 1,   t = K'(y u),   sum_i y_i u_i = 0

The multipliers of the two equations are the coefficients c and the bias b of f = K c + b. Each step solves a system of one
equation a column (Mehrotra 1992). Solutions to a loose precision lie in the middle of the optimal ones, which is what
column generation wants: prices from a corner make it add the wrong columns (Gondzio, Gonzalez-Brevis & Munari 2013).
"""

from __future__ import annotations

import time

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..kernels import Array
from ..model import Status
from ..rows.threads import SMALLEST_STRIP, Crew

#: the share of the way to the nearest bound that a step goes
NEARLY = 0.99


class Effort:
    """The iterations and seconds that a run may still spend."""

    def __init__(self, max_iter: int, seconds: float | None) -> None:
        self.limit = max_iter if max_iter >= 0 else np.inf
        self.deadline = np.inf if seconds is None else time.monotonic() + seconds
        self.spent = 0

    @property
    def iterations(self) -> float:
        """The iterations left."""
        return self.limit - self.spent

    @property
    def seconds(self) -> float:
        """The seconds left."""
        return max(self.deadline - time.monotonic(), 0.0)

    def over(self) -> Status | None:
        """The limit that is reached, if any."""
        if self.iterations <= 0:
            return Status.MAX_ITER
        return None if self.seconds > 0 else Status.TIME_LIMIT


def lp_objective(K: Array, y: Array, cap: Array, x: Array) -> float:
    """|c|_1 + sum_i cap_i max(0, 1 - y_i f_i) for x = (c, b)."""
    return float(np.abs(x[:-1]).sum() + cap @ np.maximum(1 - y * (K @ x[:-1] + x[-1]), 0.0))


def balanced(u: Array, y: Array) -> Array:
    """u with the heavier side scaled down, so that sum y u = 0."""
    sides = np.where(y > 0, u[y > 0].sum(), u[y < 0].sum())
    return u * sides.min() / sides


def interior_point(K: Array, y: Array, cap: Array, eps: float, effort: Effort, crew: Crew) -> tuple[Array, Array, float]:
    """u, c and b whose relative duality gap, and violation of the equations, are at most `eps`, within the effort."""
    k = K.shape[1]
    u = balanced(cap / 2, y)
    t = np.clip(K.T @ (y * u), -0.9, 0.9)
    x, Z = np.zeros(k + 1), np.ones(2 * (y.size + k))  # x holds c and b
    while not effort.over() and min(u.min(), (cap - u).min(), 1 - np.abs(t).max(initial=0.0)) > 0:  # 0 by rounding
        effort.spent += 1
        system = Newton(K, y, cap, u, t, x, Z, crew)
        if system.violation(lp_objective(K, y, cap, x)) <= eps or not system.factorised:
            break
        dx, du, dt, dZ, primal, dual = system.step()
        u, t, x, Z = u + primal * du, t + primal * dt, x + dual * dx, Z + dual * dZ
    return balanced(u, y), x[:k], float(x[k])


class Newton:
    """Newton's equations at one iterate: S holds the distances to the bounds u >= 0, u <= cap, t >= -1, t <= 1, and Z
    their multipliers; S Z is brought to a target, the equations to 0.
    """

    def __init__(self, K: Array, y: Array, cap: Array, u: Array, t: Array, x: Array, Z: Array, crew: Crew) -> None:
        self.K, self.y, self.u, self.Z = K, y, u, Z
        self.S = np.concatenate([u, cap - u, 1 + t, 1 - t])
        z_low, z_high, v_low, v_high = self.parts(Z)
        self.for_u = 1 + z_low - z_high - y * (K @ x[:-1] + x[-1])
        self.for_t = x[:-1] + v_low - v_high
        self.for_c = np.append(t - K.T @ (y * u), -(y @ u))
        low, high, below, above = self.parts(Z / self.S)
        self.D, self.E = 1 / (low + high), 1 / (below + above)
        self.factor = self._factor(crew)

    def parts(self, both: Array) -> tuple[Array, Array, Array, Array]:
        """The four bounds of S or Z."""
        n, k = self.K.shape
        return both[:n], both[n : 2 * n], both[2 * n : 2 * n + k], both[2 * n + k :]

    def _factor(self, crew: Crew) -> tuple[Array, bool] | None:
        k = self.K.shape[1]
        scaled = np.empty((self.y.size, k + 1))  # K with the column of the bias
        scaled[:, :k], scaled[:, k] = self.K, 1.0
        scaled *= np.sqrt(self.D)[:, None]
        M = np.zeros((k + 1, k + 1))

        def work(columns: slice) -> None:  # the upper triangle of scaled' scaled
            M[: columns.stop, columns] = scaled[:, : columns.stop].T @ scaled[:, columns]

        crew.run(work, k + 1, SMALLEST_STRIP)
        M[np.arange(k), np.arange(k)] += self.E
        try:
            return cho_factor(M, lower=False, overwrite_a=True)
        except (LinAlgError, ValueError):  # not positive definite, or not a number, in floating point
            return None

    @property
    def factorised(self) -> bool:
        """Whether rounding leaves a direction to go."""
        return self.factor is not None

    def violation(self, objective: float) -> float:
        """The largest of the relative gap and the violations of the equations of c and b."""
        total = float(self.u.sum())
        gap = abs(objective - total) / objective
        return max(gap, float(np.abs(self.for_c[:-1]).max(initial=0.0)), float(abs(self.for_c[-1])) / total)

    def direction(self, target: Array) -> tuple[Array, Array, Array, Array, Array]:
        """The changes of (c, b), u, t, S and Z that bring S Z to S Z + target, to first order."""
        low, high, below, above = self.parts(target / self.S)
        g = self.for_u + low - high
        h = self.for_t + below - above
        q = self.y * self.D * g
        right = np.append(self.K.T @ q - self.E * h, q.sum()) - self.for_c
        x = cho_solve(self.factor, right)
        du = self.D * (g - self.y * (self.K @ x[:-1] + x[-1]))
        dt = self.E * (x[:-1] + h)
        dS = np.concatenate([du, -du, dt, -dt])
        return x, du, dt, dS, (target - self.Z * dS) / self.S

    def step(self) -> tuple[Array, Array, Array, Array, float, float]:
        """Mehrotra's predictor and corrector: the changes of (c, b), u, t and Z, and how far to go in (u, t) and Z."""
        S, Z = self.S, self.Z
        *_, dS, dZ = self.direction(-S * Z)
        mean = S @ Z / S.size
        ahead = (S + room(S, dS) * dS) @ (Z + room(Z, dZ) * dZ) / S.size
        x, du, dt, dS, dZ = self.direction((ahead / mean) ** 3 * mean - S * Z - dS * dZ)
        return x, du, dt, dZ, room(S, dS), room(Z, dZ)


def room(x: Array, change: Array) -> float:
    """How far x can go along the change and stay above 0, 1 at most."""
    falling = change < 0
    return min(1.0, NEARLY * float((x[falling] / -change[falling]).min(initial=np.inf)))
