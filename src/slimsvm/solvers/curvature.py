"""Curvatures of squared losses: the sum of w d d' over the rows that fall short, with d = (1, k_1 .. k_m)."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy.linalg.lapack import dpotrs

from ..kernels import Array
from ..rows.protocol import Against

#: rows that fall short below which a curvature is summed anew; above, only the rows that changed are added or taken away
FEW_ROWS = 512
#: coefficients from which on factors are kept, and steps that are taken with a kept one; more: poorer steps that cost less
MANY, KEPT_STEPS = 192, 2


class RunningCurvature:
    """The sum of w d d' over the rows that fall short, d = (1, k): few of them come and go in a step."""

    def __init__(self) -> None:
        self.active: Array | None = None
        self.values = np.zeros((0, 0))

    def at(self, against: Against, active: Array, rows: Array, weights: Array) -> Array:
        """Return the sum over the active rows, whose numbers are `rows`."""
        changed = rows if self.active is None or rows.size < FEW_ROWS else np.flatnonzero(active != self.active)
        if 2 * changed.size >= rows.size:
            self.values = against.curvature(rows, weights)
        else:
            self._widen(against, weights)
            came, went = changed[active[changed]], changed[~active[changed]]
            self.values = self.values + against.curvature(came, weights) - against.curvature(went, weights)
        self.active = active
        return self.values

    def _widen(self, against: Against, weights: Array) -> None:
        """Add the points that are new since the last time."""
        old, size = self.values.shape[0], against.size + 1
        if size > old and self.active is not None:
            border = against.curvature(np.flatnonzero(self.active), weights, since=old)
            self.values = np.block([[self.values, border[:old]], [border.T]])


class KeptFactors:
    """Cholesky factors of the outputs' curvatures, kept for points that have moved a little since.

    Any definite matrix gives a step downhill, and a line search says how far. With many points that is worth a step or two:
    each costs two products with the kernel values, where a new curvature costs one for each point.
    """

    def __init__(self) -> None:
        self.factors: dict[int, Array] = {}

    def keep(self, output: int, factor: Array) -> None:
        """Keep a factor, if it is large enough to be worth that."""
        if factor.shape[0] >= MANY:
            self.factors[output] = factor

    def get(self, output: int, size: int, number: int) -> Array | None:
        """Return the factor for an output's step of that number, if there is one that serves; `size` coefficients."""
        factor = self.factors.get(output) if number < KEPT_STEPS else None
        return factor if factor is not None and factor.shape[0] == size else None


def solve_definite(H: Array, gradient: Array) -> Array:
    """Return H^-1 gradient for a symmetric H without negative eigenvalues, with the least ridge that makes it definite."""
    return solve_factored(factor_definite(H), gradient)


def solve_factored(factor: Array, gradient: Array) -> Array:
    """Return H^-1 gradient from the lower Cholesky factor of H."""
    return dpotrs(factor.T, gradient)[0]  # LAPACK itself: H is often small


def factor_definite(H: Array) -> Array:
    """Return the lower Cholesky factor of a symmetric H with the least ridge that makes it definite."""
    diagonal = np.arange(H.shape[0])
    jitter = 1e-14 * (float(H[diagonal, diagonal].max()) or 1.0)
    while np.isfinite(jitter):
        shifted = H.copy()
        shifted[diagonal, diagonal] += jitter
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(shifted)  # NumPy's lets other threads work meanwhile
        jitter *= 100
    raise ValueError("kernel values are too large for numbers of this kind; scale the features, or lower gamma or degree")
