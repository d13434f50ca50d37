"""Budget maintenance of budgeted SGD: three ways to remove one point (Wang, Crammer & Vucetic 2012).

Each one takes a learner with one point more than its budget and changes f as little as it can.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from .._core import core
from ..kernels import Array
from .online import Learner

#: added to the diagonal of a kernel matrix before its inversion, relative to its largest entry; a larger one
#: is more stable and less exact
RIDGE = 1e-10
#: relative difference up to which values count as equal
SAME = 1e-9


def remove(run: Learner) -> None:
    """Remove the point whose term in f has the least squared norm, |c_p|^2 k(z_p, z_p)."""
    m = run.size
    run.leave(least(_squares(run.coef[:m]) * run.among.diagonal()[:m], run.born[:m]))


def least(values: Array, born: Array) -> int:
    """Return the position of the least value; of values that are equal up to rounding, that of the oldest point.

    Pegasos gives all points equal coefficients, so for rows of equal norm this removes the oldest point.
    """
    return int(np.where(values <= values.min() * (1 + SAME), born, np.iinfo(born.dtype).max).argmin())


def project(run: Learner) -> None:
    """Remove the point that is closest to the span of the others, and add its projection onto that span.

    With V the inverse of the kernel matrix, this loses |c_p|^2 / V_pp and adds -V_jp / V_pp c_p to each other coefficient.
    """
    m = run.size
    R = inverse_factor(run.among[:m, :m])  # V = R R'
    squares = _squares(R)
    p = least(_squares(run.coef[:m]) / squares, run.born[:m])
    shares, leaving = -(R @ R[p]) / squares[p], run.coef[p].copy()  # the share of p itself is -1
    run.coef[:m] += shares[:, None] * leaving
    run.outputs += leaving[:, None] * (shares @ run.against[:m])
    run.coef[p] = 0.0
    run.leave(p)


def inverse_factor(K: Array) -> Array:
    """Return R with R R' the inverse of a kernel matrix plus a small ridge."""
    K = np.array(K, order="F")  # LAPACK's order, so that nothing is copied again
    K.flat[:: K.shape[0] + 1] += RIDGE * (K.diagonal().max() or 1.0)  # all kernel values may be 0
    factor, failed = dpotrf(K)
    if failed:  # a kernel that is not positive definite
        values = np.linalg.eigvalsh(K)
        K.flat[:: K.shape[0] + 1] += RIDGE * np.abs(values).max() - values[0]
        factor, _ = dpotrf(K)
    return dtrtri(factor, overwrite_c=True)[0]


def merge(run: Learner) -> None:
    """Replace the point with the smallest coefficient and its best partner by one point between the two.

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
    """Return the kernel values of h z_p + (1 - h) z_j from those of z_p and z_j, with k = k(z_p, z_j)."""
    if h == 0.0:
        return j.copy()  # the formula below fails for k = 0
    return p**h * j ** (1 - h) * k ** (-h * (1 - h))


def _blend(p: dict[int, float], j: dict[int, float], h: float) -> dict[int, float]:
    """Return the shares of h z_p + (1 - h) z_j."""
    if h == 0.0:
        return j
    return {row: h * p.get(row, 0.0) + (1 - h) * j.get(row, 0.0) for row in p | j}


MAINTENANCE: dict[str, Callable[[Learner], None]] = {"removal": remove, "projection": project, "merging": merge}
