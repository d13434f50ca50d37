"""Newton steps from curvatures: Cholesky factors of definite matrices, some of them kept from one call to the next."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from .._core import core
from ..kernels import Array

#: coefficients from which on factors are kept
MANY = 96
#: steps with a kept factor: one for so many coefficients, and no more than so many, since a new factor costs the more
PER_STEP, KEPT_STEPS = 96, 3
#: ridge over the largest diagonal element, below which rounding may make a matrix indefinite
JITTER = 1e-14


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
        factor = self.factors.get(output) if number < min(size // PER_STEP, KEPT_STEPS) else None
        return factor if factor is not None and factor.shape[0] == size else None


def solve_factored(factors: list[Array], right: Array) -> Array:
    """Return H^-1 right of each matrix H from its lower Cholesky factor; `right` has a line for each."""
    solutions = np.array(right, np.float64, order="C")
    for factor, solution in zip(factors, solutions, strict=True):
        core.solve_factored(factor, solution)
    return solutions


def factor_definite(H: Array, R: Array) -> Array:
    """Return the lower Cholesky factor of H + R, with the least ridge that makes it definite; lower triangles are read."""
    total, place = H + R, np.arange(H.shape[0])
    diagonal = total[place, place]
    largest, share = diagonal.max() or 1.0, JITTER
    while share * largest < np.inf:
        total[place, place] = diagonal + share * largest
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(total)  # NumPy's lets other threads work meanwhile
        share *= 100
    raise ValueError("kernel values are too large for numbers of this kind; scale the features, or lower gamma or degree")
