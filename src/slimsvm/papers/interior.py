"""A primal-dual interior point method for the LP-SVM on given columns: a well-centred solution to any precision.

    max_u  sum_i u_i     0 <= u_i <= cap_i,   -1 <= t <= 1,   t = K'(y u),   sum_i y_i u_i = 0

The multipliers of the two equations are the coefficients c and the bias b of f = K c + b. Each step solves a linear system
with one equation per column (Mehrotra 1992). Solutions to a low precision lie in the middle of the optimal ones. That suits
column generation: prices from a corner make it add the wrong columns (Gondzio, Gonzalez-Brevis & Munari 2013).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..kernels import Array
from ..limits import Effort

#: share of the way to the nearest bound that a step goes; a larger one converges faster and centres less
NEARLY = 0.99


def lp_objective(K: Array, y: Array, cap: Array, x: Array) -> float:
    """Return |c|_1 + sum_i cap_i max(0, 1 - y_i f_i) for x = (c, b)."""
    return float(np.abs(x[:-1]).sum() + cap @ np.maximum(1 - y * (K @ x[:-1] + x[-1]), 0.0))


def balanced(u: Array, y: Array) -> Array:
    """Return u with the heavier class scaled down, so that sum y u = 0."""
    sides = np.where(y > 0, u[y > 0].sum(), u[y < 0].sum())
    return u * sides.min() / sides


def interior_point(K: Array, y: Array, cap: Array, eps: float, effort: Effort) -> tuple[Array, Array, float]:
    """Return u, c and b with a relative duality gap and violations of at most `eps`, or those at the limits of `effort`."""
    k = K.shape[1]
    u = balanced(cap / 2, y)
    t = np.clip(K.T @ (y * u), -0.9, 0.9)
    x, Z = np.zeros(k + 1), np.ones(2 * (y.size + k))  # x holds c and b
    while (
        effort.reached() is None and min(u.min(), (cap - u).min(), 1 - np.abs(t).max(initial=0.0)) > 0
    ):  # rounding must not make it 0
        effort.spent += 1
        system = Newton(K, y, cap, u, t, x, Z)
        if system.violation(lp_objective(K, y, cap, x)) <= eps or not system.factorised:
            break
        dx, du, dt, dZ, primal, dual = system.step()
        u, t, x, Z = u + primal * du, t + primal * dt, x + dual * dx, Z + dual * dZ
    return balanced(u, y), x[:k], float(x[k])


class Newton:
    """Newton's equations at one iterate, for a given target of S Z and for violations of 0.

    S holds the distances to the bounds u >= 0, u <= cap, t >= -1 and t <= 1, and Z the multipliers of these bounds.
    """

    def __init__(self, K: Array, y: Array, cap: Array, u: Array, t: Array, x: Array, Z: Array) -> None:
        self.K, self.y, self.u, self.Z = K, y, u, Z
        self.S = np.concatenate([u, cap - u, 1 + t, 1 - t])
        z_low, z_high, v_low, v_high = self.parts(Z)
        self.for_u = 1 + z_low - z_high - y * (K @ x[:-1] + x[-1])
        self.for_t = x[:-1] + v_low - v_high
        self.for_c = np.append(t - K.T @ (y * u), -(y @ u))
        low, high, below, above = self.parts(Z / self.S)
        self.D, self.E = 1 / (low + high), 1 / (below + above)
        self.factor = self._factor()

    def parts(self, both: Array) -> tuple[Array, Array, Array, Array]:
        """Return S or Z by its four kinds of bounds."""
        n, k = self.K.shape
        return both[:n], both[n : 2 * n], both[2 * n : 2 * n + k], both[2 * n + k :]

    def _factor(self) -> tuple[Array, bool] | None:
        k = self.K.shape[1]
        scaled = np.empty((self.y.size, k + 1))  # K and a column of ones for the bias
        scaled[:, :k], scaled[:, k] = self.K, 1.0
        scaled *= np.sqrt(self.D)[:, None]
        M = scaled.T @ scaled
        M[np.arange(k), np.arange(k)] += self.E
        try:
            return cho_factor(M, lower=False, overwrite_a=True)
        except (LinAlgError, ValueError):  # not positive definite or not finite, by rounding
            return None

    @property
    def factorised(self) -> bool:
        """Whether the system could be factorised in floating point."""
        return self.factor is not None

    def violation(self, objective: float) -> float:
        """Return the largest of the relative gap and the violations of the equations of c and b."""
        total = float(self.u.sum())
        gap = abs(objective - total) / objective
        return max(gap, float(np.abs(self.for_c[:-1]).max(initial=0.0)), float(abs(self.for_c[-1])) / total)

    def direction(self, target: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return the changes of (c, b), u, t, S and Z that change S Z by `target`, to first order."""
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
        """Return Mehrotra's predictor-corrector step: changes of (c, b), u, t and Z, and the lengths for (u, t) and Z."""
        S, Z = self.S, self.Z
        *_, dS, dZ = self.direction(-S * Z)
        mean = S @ Z / S.size
        ahead = (S + room(S, dS) * dS) @ (Z + room(Z, dZ) * dZ) / S.size
        x, du, dt, dS, dZ = self.direction((ahead / mean) ** 3 * mean - S * Z - dS * dZ)
        return x, du, dt, dZ, room(S, dS), room(Z, dZ)


def room(x: Array, change: Array) -> float:
    """Return the longest step along the change, at most 1, that keeps x above 0."""
    falling = change < 0
    return min(1.0, NEARLY * float((x[falling] / -change[falling]).min(initial=np.inf)))
