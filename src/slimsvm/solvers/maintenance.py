"""One point fewer: the three ways in which budgeted SGD makes room (Wang, Crammer & Vucetic 2012).

Each takes a learner with a point too many and leaves f as near as that way can to what it was.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from .._core import core
from ..kernels import Array
from ..trainers.frames.online import Learner

#: added to the diagonal, relative to its largest entry, before a kernel matrix of points is inverted
RIDGE = 1e-10
#: values that differ by less than this, relative, are equal
SAME = 1e-9


def remove(run: Learner) -> None:
    """Drop the point with the shortest part in f: |c_p|^2 k(z_p, z_p)."""
    m = run.size
    run.leave(least(_squares(run.coef[:m]) * run.among.diagonal()[:m], run.born[:m]))


def least(values: Array, born: Array) -> int:
    """The position of the least value, and of the oldest point where rounding alone parts several.

    The steps of Pegasos leave all coefficients equal, so that this is the rule for rows of equal length.
    """
    return int(np.where(values <= values.min() * (1 + SAME), born, np.iinfo(born.dtype).max).argmin())


def project(run: Learner) -> None:
    """Drop the point that the others replace best, and give them its projection onto their span.

    With V the inverse of the kernel matrix, the others replace point p up to |c_p|^2 / V_pp, by -V_jp / V_pp c_p each.
    """
    m = run.size
    R = inverse_factor(run.among[:m, :m])  # V = R R'
    own = _squares(R)
    p = least(_squares(run.coef[:m]) / own, run.born[:m])
    shares, leaving = -(R @ R[p]) / own[p], run.coef[p].copy()  # its own share is -1
    run.coef[:m] += shares[:, None] * leaving
    run.outputs += leaving[:, None] * (shares @ run.against[:m])
    run.coef[p] = 0.0
    run.leave(p)


def inverse_factor(K: Array) -> Array:
    """R with R R' the inverse of a kernel matrix, moved a little from where it has none."""
    K = np.array(K, order="F")  # LAPACK's order, so that nothing is copied again
    K.flat[:: K.shape[0] + 1] += RIDGE * K.diagonal().max()
    factor, failed = dpotrf(K)
    if failed:  # a kernel that is not positive definite
        values = np.linalg.eigvalsh(K)
        K.flat[:: K.shape[0] + 1] += RIDGE * np.abs(values).max() - values[0]
        factor, _ = dpotrf(K)
    return dtrtri(factor, overwrite_c=True)[0]


def merge(run: Learner) -> None:
    """Replace the point of the smallest coefficient and the best partner for it by one point between the two.

    For the Gaussian kernel the best point is z = h z_p + (1 - h) z_j, with coefficient c_p k(z_p, z) + c_j k(z_j, z), and
    k(x, z) = k(x, z_p)^h k(x, z_j)^(1 - h) k(z_p, z_j)^(-h (1 - h)) needs no new kernel value.
    """
    m = run.size
    coef, near = run.coef[:m], run.among[:m, :m]
    squares = _squares(coef)
    p = least(squares, run.born[:m])
    j, h = core.best_merge(p, squares, coef @ coef[p], np.ascontiguousarray(near[p]))
    k = float(near[p, j])
    merged = coef[p] * k ** ((1 - h) ** 2) + coef[j] * k ** (h**2)
    column, pairs = (_between(K[p], K[j], h, k) for K in (run.against, near))
    run.outputs += merged[:, None] * column - coef[j][:, None] * run.against[j]
    run.coef[j], run.against[j] = merged, column
    run.among[j, :m] = run.among[:m, j] = pairs
    run.among[j, j] = 1.0
    run.parts[j] = _blend(run.parts[p], run.parts[j], h)
    run.leave(p)


def _squares(coef: Array) -> Array:
    return np.einsum("ij,ij->i", coef, coef)


def _between(p: Array, j: Array, h: float, k: float) -> Array:
    """Kernel values of h z_p + (1 - h) z_j from those of z_p and z_j; k = k(z_p, z_j)."""
    if h == 0.0:
        return j.copy()  # also where k is 0
    return p**h * j ** (1 - h) * k ** (-h * (1 - h))


def _blend(p: dict[int, float], j: dict[int, float], h: float) -> dict[int, float]:
    """The shares of h z_p + (1 - h) z_j."""
    if h == 0.0:
        return j
    return {row: h * p.get(row, 0.0) + (1 - h) * j.get(row, 0.0) for row in p | j}


MAINTENANCE: dict[str, Callable[[Learner], None]] = {"removal": remove, "projection": project, "merging": merge}
