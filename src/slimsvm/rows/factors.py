"""Cholesky factors of definite matrices on the host, which solve Newton's systems."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from .._core import core
from ..kernels import Array
from .protocol import Factor

#: the first ridge, as a share of the largest diagonal element; a smaller one may be lost in rounding
JITTER = 1e-14
#: the factor by which the ridge grows until the matrix is definite
MORE = 100.0


@dataclass(frozen=True)
class HostFactor:
    """The lower Cholesky factor L of a matrix H = L L'."""

    lower: Array

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return self.lower.shape[0]

    def solve(self, right: Array) -> Array:
        """Return H^-1 right for one vector."""
        return solve_all([self], right[None])[0]


def solve_all(factors: Sequence[Factor], right: Array) -> Array:
    """Return the solution of each system, a line for each."""
    found = np.array(right, np.float64, order="C")
    if all(isinstance(factor, HostFactor) for factor in factors):
        core.solve_factored([factor.lower for factor in factors], found)  # type: ignore[attr-defined]
    else:
        found[:] = [factor.solve(line) for factor, line in zip(factors, right, strict=True)]
    return found


def factor_definite(H: Array, R: Array) -> HostFactor:
    """Return the factor of H + R, with the least ridge that makes it definite; lower triangles are read."""
    total, place = H + R, np.arange(H.shape[0])
    diagonal = total[place, place]
    largest, share = diagonal.max() or 1.0, JITTER
    while share * largest < np.inf:
        total[place, place] = diagonal + share * largest
        with suppress(np.linalg.LinAlgError):
            return HostFactor(np.linalg.cholesky(total))  # NumPy's releases the interpreter's lock
        share *= MORE
    raise not_finite()


def not_finite() -> ValueError:
    """Return the error for a matrix that is not finite."""
    return ValueError("kernel values are too large for float64; scale the features, or lower gamma or degree")
