"""A vector of the kernel's space, as a sum over rows less a sum over points, and the point that comes closest to it.

r_c = sum_i A_ic Phi(x_i) - sum_j B_jc Phi(b_j),     one for each output c
maximise  sum_c <r_c, Phi(z)>^2 / k(z, z)            over z: one multiple of Phi(z) then leaves the least of r
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from ..kernels import RBF, Array
from ..rows.protocol import Rows

#: the relative gain of a fixed-point step under which it has converged
SETTLED = 1e-3


class Residual:
    """r over the rows of a Rows with coefficients A (n, q), less its points (k, d) with coefficients B (k, q)."""

    def __init__(self, gram: Rows, A: Array, points: Array, B: Array) -> None:
        self.gram, self.kernel, self.A, self.points, self.B = gram, gram.kernel, A, points, B

    def inner(self, Z: Array) -> tuple[Array, Array, Array]:
        """<r_c, Phi(z)> for each output and point, (q, m), and the kernel values that make them."""
        K, own = self.gram.matrix(Z), self.kernel(self.points, Z)
        self.gram.meter.add(own.size)
        return self.A.T @ K - self.B.T @ own, K, own

    def gains(self, Z: Array) -> Array:
        """sum_c <r_c, Phi(z)>^2 / k(z, z) for each point; 0 where an indefinite kernel has k(z, z) <= 0."""
        norms = self.kernel.diagonal(Z, np.arange(Z.shape[0]))
        return np.where(norms > 0, np.square(self.inner(Z)[0]).sum(axis=0) / np.where(norms > 0, norms, 1.0), 0.0)

    def slopes(self, Z: Array) -> tuple[Array, Array]:
        """S = sum_c <r_c, Phi(z)>^2 for each point, and half its gradient."""
        inner, K, own = self.inner(Z)
        rows, centre = self.gram.rows.values, self.gram.rows.centre  # prepared: sparse or centred, where that helps
        moved = Z if centre is None else Z - centre
        pull = self.kernel.pullback(rows, moved, K, (self.A @ inner).astype(rows.dtype))
        return np.square(inner).sum(axis=0), pull - self.kernel.pullback(self.points, Z, own, self.B @ inner)

    def climb(self, Z: Array, max_steps: int) -> Array:
        """The best point (1, d) on the way up from each of Z."""
        if isinstance(self.kernel, RBF):
            return self._fixed_point(Z, self.kernel.gamma, max_steps)
        return self._ascent(Z, max_steps)

    def _fixed_point(self, Z: Array, gamma: float, max_steps: int) -> Array:
        """z <- sum_i w_i x_i / sum_i w_i, w_i = k(x_i, z) sum_c A_ic <r_c, Phi(z)>: all over rows and points alike.

        Where the gradient is 0, z is such a mean (Schoelkopf et al. 1999). The sum of the w_i is S, so the step is that
        of the gradient of log S / (4 gamma), which is never undefined but far from all rows. It may overshoot.
        """
        best, top = Z[:1], -np.inf
        for _ in range(max_steps + 1):
            S, slope = self.slopes(Z)
            leader = int(S.argmax())
            gain = S[leader] - top
            if gain > 0:
                best, top = Z[[leader]], S[leader]
            if abs(gain) <= SETTLED * S[leader]:
                break
            Z = Z + slope / (2 * gamma * np.maximum(S, np.finfo(float).tiny))[:, None]
        return best

    def _ascent(self, Z: Array, max_steps: int) -> Array:
        """Quasi-Newton steps on the gain itself, which is not that of S where k(z, z) varies."""
        scale = float(self.gains(Z).max()) or 1.0
        runs = [minimize(self._loss, z, (scale,), method="L-BFGS-B", jac=True, options={"maxiter": max_steps}).x for z in Z]
        tried = np.vstack([Z, *runs])
        return tried[[int(np.nan_to_num(self.gains(tried)).argmax())]]

    def _loss(self, z: Array, scale: float) -> tuple[float, Array]:
        """Minus the gain at z over `scale`, and its gradient; d k(z, z) / dz is twice that of either argument."""
        Z = z[None]
        norm = self.kernel(Z, Z)
        if not norm[0, 0] > 0:
            return 0.0, np.zeros_like(z)
        S, slope = self.slopes(Z)
        own = self.kernel.pullback(Z, Z, norm, np.ones((1, 1)))
        gain = S[0] / norm[0, 0]
        return -gain / scale, -2 * ((slope - gain * own) / norm[0, 0] / scale).ravel()
