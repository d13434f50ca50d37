"""Newton steps from curvatures: Cholesky factors of definite matrices, some of them kept from one call to the next."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from .._core import core
from ..kernels import Array

#: coefficients from which on factors are kept, and steps that are taken with a kept one; more: poorer steps that cost less
MANY, KEPT_STEPS = 96, 1
#: ridge over the largest diagonal element, below which rounding may make a matrix indefinite
JITTER = 1e-14
TOO_LARGE = "kernel values are too large for numbers of this kind; scale the features, or lower gamma or degree"


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


def solve_factored(factors: Array, right: Array) -> Array:
    """Return H^-1 right of each matrix H from its lower Cholesky factor: (k, s, s) and (k, s)."""
    solution = np.array(right, np.float64, order="C")
    core.solve_factored(factors, solution)
    return solution


def factor_definite(H: Array) -> Array:
    """Return the lower Cholesky factors of symmetric matrices, (k, s, s), each with the least ridge that makes it definite.

    Only lower triangles are read.
    """
    if not np.isfinite(np.diagonal(H, axis1=-2, axis2=-1)).all():
        raise ValueError(TOO_LARGE)
    try:
        return np.linalg.cholesky(_with_ridge(H, JITTER))  # NumPy's lets other threads work meanwhile
    except np.linalg.LinAlgError:
        return np.stack([_factor_of_one(each) for each in H])


def _factor_of_one(H: Array) -> Array:
    share = JITTER
    while share < np.inf:
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(_with_ridge(H, share))
        share *= 100
    raise ValueError(TOO_LARGE)


def _with_ridge(H: Array, share: float) -> Array:
    """Return matrices with a ridge of some share of the largest diagonal element."""
    shifted, place = H.copy(), np.arange(H.shape[-1])
    largest = shifted[..., place, place].max(axis=-1, keepdims=True)
    shifted[..., place, place] += share * np.where(largest == 0, 1.0, largest)
    return shifted
