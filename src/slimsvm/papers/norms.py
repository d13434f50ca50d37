"""Norms of the slack for the any-norm SVM; each one defines the feasible set of alpha in the dual.

    min  1/2 |w|^2 + C |xi|        has the dual        max  sum a - 1/2 a'Qa,   y'a = 0,  a >= 0,  |a|* <= C

(Dekel & Singer 2006, eq. 2 and 4). |a|* <= C is a box, a limit on the sum, an ellipsoid, or two of these. The
interpolation norm K(p, q, t) of xi is the least |x|_p + t |z|_q over all x + z = xi. Its dual norm is
max(|a|_p*, |a|_q* / t), where 1* = inf, 2* = 2 and inf* = 1. A new norm is a class and a line in `NORMS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..checks import check_count
from ..kernels import Array


@dataclass(frozen=True)
class Ellipsoid:
    """The set a'Pa <= radius^2; P = M^-1 is a number, a diagonal (n,) or a matrix (n, n). By default the whole space."""

    radius: float = np.inf
    P: Array = field(default_factory=lambda: np.array(0.0))
    reach: float = np.inf  # sqrt(1'M1): no a in the set has a sum above radius * reach

    def times(self, a: Array) -> Array:
        """Return Pa."""
        return self.P @ a if self.P.ndim == 2 else self.P * a

    def part(self, rows: Array) -> Array:
        """Return P of some of the rows."""
        return self.P[np.ix_(rows, rows)] if self.P.ndim == 2 else self.P[rows] if self.P.ndim else self.P


@dataclass(frozen=True)
class FeasibleSet:
    """All a with 0 <= a_i <= cap_i and sum a <= total inside an ellipsoid."""

    cap: Array
    total: float = np.inf
    ellipsoid: Ellipsoid = field(default_factory=Ellipsoid)


class Norm:
    """A norm of the slack, with frozen settings; its dual norm defines the feasible set of alpha."""

    name: ClassVar[str]

    def feasible_set(self, C: float, ids: Array) -> FeasibleSet:
        """Return the set |a|* <= C for the rows with these numbers in the training set."""
        raise NotImplementedError


@dataclass(frozen=True)
class One(Norm):
    """The 1-norm: a_i <= C, the C-SVM."""

    name: ClassVar[str] = "1"

    def feasible_set(self, C: float, ids: Array) -> FeasibleSet:
        """Return the box."""
        return FeasibleSet(np.full(ids.size, float(C)))


@dataclass(frozen=True)
class Two(Norm):
    """The 2-norm, not squared: |a|_2 <= C."""

    name: ClassVar[str] = "2"

    def feasible_set(self, C: float, ids: Array) -> FeasibleSet:
        """Return the ball."""
        return ball(C, ids.size)


@dataclass(frozen=True)
class OneInf(Norm):
    """K(1, inf, B), the sum of the B largest slacks (Theorem 1): a_i <= C and sum a <= B C."""

    name: ClassVar[str] = "1-inf"
    budget: int = 100

    def __post_init__(self) -> None:
        check_count(self.budget)

    def feasible_set(self, C: float, ids: Array) -> FeasibleSet:
        """Return the box with a limited sum."""
        return FeasibleSet(np.full(ids.size, float(C)), total=self.budget * C)


@dataclass(frozen=True)
class TwoInf(Norm):
    """K(2, inf, sqrt B), about the 2-norm of the B largest slacks (Theorem 1): |a|_2 <= C and sum a <= sqrt(B) C."""

    name: ClassVar[str] = "2-inf"
    budget: int = 100

    def __post_init__(self) -> None:
        check_count(self.budget)

    def feasible_set(self, C: float, ids: Array) -> FeasibleSet:
        """Return the ball with a limited sum."""
        return ball(C, ids.size, total=np.sqrt(self.budget) * C)


@dataclass(frozen=True)
class OneTwo(Norm):
    """K(1, 2, t), between the 1-norm (t from sqrt(n) on) and t times the 2-norm (t up to 1): a_i <= C, |a|_2 <= t C."""

    name: ClassVar[str] = "1-2"
    t: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.t, Real) or not 0 < float(self.t) < np.inf:
            raise ValueError(f"t, the weight of the 2-norm against the 1-norm, must be a number above 0, not {self.t!r}")

    def feasible_set(self, C: float, ids: Array) -> FeasibleSet:
        """Return the box and the ball."""
        return ball(self.t * C, ids.size, cap=C)


@dataclass(frozen=True, eq=False)
class Mahalanobis(Norm):
    """(xi' M xi)^(1/2) for a positive definite M: a' M^-1 a <= C^2.

    M is (n, n), or (n,) for a diagonal matrix, with n the number of rows given to fit. A problem of some of the rows uses
    these rows and columns of M. The inverse of a full matrix takes n^2 numbers; that of a diagonal takes n.
    """

    name: ClassVar[str] = "mahalanobis"
    M: Any = 1.0

    def __post_init__(self) -> None:
        M = np.asarray(self.M, dtype=np.float64)
        if M.ndim > 2 or (M.ndim == 2 and M.shape[0] != M.shape[1]) or not np.isfinite(M).all():
            raise ValueError(
                f"M must be a number, the diagonal (n,) or the whole (n, n) of a positive definite matrix of finite "
                f"numbers; its shape is {M.shape}"
            )
        if (M <= 0).any() if M.ndim < 2 else not (np.allclose(M, M.T) and np.linalg.eigvalsh(M)[0] > 0):
            raise ValueError("M must be symmetric and positive definite; adding a multiple of the identity makes it so")

    def feasible_set(self, C: float, ids: Array) -> FeasibleSet:
        """Return the ellipsoid and the box around it: a_i <= C sqrt(M_ii) follows, and bounds every subproblem."""
        M = np.asarray(self.M, dtype=np.float64)
        if M.ndim and M.shape[0] <= ids.max(initial=-1):
            raise ValueError(
                f"M is for {M.shape[0]} rows, but there is a row number {ids.max()}; give M for all the rows of fit"
            )
        if M.ndim == 2:
            M = M[np.ix_(ids, ids)]
            return FeasibleSet(C * np.sqrt(M.diagonal()), ellipsoid=Ellipsoid(C, np.linalg.inv(M), float(np.sqrt(M.sum()))))
        M = M[ids] if M.ndim else np.full(ids.size, M)
        return FeasibleSet(C * np.sqrt(M), ellipsoid=Ellipsoid(C, 1 / M, float(np.sqrt(M.sum()))))


def ball(radius: float, n: int, *, cap: float = np.inf, total: float = np.inf) -> FeasibleSet:
    """Return |a|_2 <= radius with a box and a limited sum: a_i <= radius follows, and bounds every subproblem."""
    return FeasibleSet(np.full(n, float(min(cap, radius))), total, Ellipsoid(radius, np.array(1.0), float(np.sqrt(n))))


NORMS: dict[str, type[Norm]] = {norm.name: norm for norm in (One, Two, OneInf, TwoInf, OneTwo, Mahalanobis)}
