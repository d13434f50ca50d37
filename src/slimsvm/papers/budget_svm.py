"""SVMs with any norm of the slack (Dekel & Singer 2006, "Support Vector Machines on a Budget").

    min  1/2 |w|^2 + C |xi|,   y_i (f(x_i) + b) >= 1 - xi_i                                            (eq. 2)
    max  sum a - 1/2 a'Qa,     y'a = 0,  a >= 0,  |a|* <= C,      Q_ij = y_i y_j K_ij                   (its dual, eq. 4)

A norm defines the set |a|* <= C: a box, a limit on the sum, an ellipsoid, or two of these. The interpolation norm
K(p, q, t) of xi is the least |x|_p + t |z|_q over all x + z = xi. Its dual norm is max(|a|_p*, |a|_q* / t), where 1* = inf,
2* = 2 and inf* = 1. A new norm is a class and a line in `NORMS`. Pair steps keep a box and a limited sum; an ellipsoid
a'Pa <= r^2 goes into the objective with a multiplier. With f = K (a y), the optimum has multipliers mu, theta >= 0 with

    y_i - f_i - mu y_i (Pa)_i = b + theta y_i        for free a_i         (mu: of the ellipsoid, theta: of the sum)

If the sum is at its limit, the free rows of the two labels have the values b + theta and b - theta. Theta is then the
smallest slack among the support vectors; with the norm of budget-L1 it is the B-th largest of all slacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..checks import check_count
from ..clock import check_time_limit
from ..kernels import Array
from ..limits import Limits
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
from ..trainers.smo import SMO
from .budget_svm_steps import Ellipsoid, FeasibleSet, LimitedState, paper_steps, solve_in_ellipsoid


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


@dataclass(frozen=True)
class AnyNorm(BinaryTrainer):
    """The SVM with any norm of the slack, solved to `tol`; `max_iter` limits the pair steps (-1: no limit).

    `time_limit` is in seconds for each output.

    `prune` keeps that many of the largest coefficients and sets the others to 0 (section 5 of the paper); the bias stays
    the same. With several classes each output is pruned by itself, so the outputs may use different rows.

    `steps="exact"` finds the multiplier of an ellipsoid by a root search. `steps="paper"` clips each pair step at the
    surface of the ellipsoid, as the paper does. That can end before the optimum: on the surface a pair can only move
    inwards, and if every pair with a gain would move outwards, several rows would have to move at once. For norms without
    an ellipsoid both find the optimum. `AnyNorm.paper` selects the paper's steps.

    Rows have no weights: a weighted norm |w xi| would weight the rows in the limit of the sum too, which pair steps cannot
    keep.
    """

    weighted: ClassVar[bool] = False

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    norm: Norm = field(default_factory=Two)
    prune: int | None = None
    steps: str = "exact"
    working_set: int = 2048
    time_limit: float | None = None
    starts_warm: ClassVar[bool] = True

    @classmethod
    def paper(cls, norm: Norm | None = None, C: float = 1.0, s: int | None = None) -> AnyNorm:
        """Return the method as printed: pair steps (9) in the interval of all constraints, then the s largest weights."""
        return cls(C, norm=norm or Two(), prune=s, steps="paper")

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        if not isinstance(self.norm, Norm):
            raise ValueError(f"norm must be one of slimsvm.papers.budget_svm, such as OneTwo(t=3.0), not {self.norm!r}")
        if self.prune is not None:
            check_count(self.prune)
        if self.steps not in ("exact", "paper"):
            raise ValueError(f"steps must be 'exact' or 'paper', not {self.steps!r}")
        SMO(working_set=self.working_set)  # checks the setting

    def solve(self, problem: Binary) -> Solution:
        """Solve one output, and prune it if `prune` is set."""
        feasible, limited = self.norm.feasible_set(self.C, problem.rows.ids), problem.run.limited(self.time_limit)
        state = LimitedState(problem.rows, problem.y, feasible, self, limited)
        if problem.start is not None:
            state.begin_from(problem.start)
            state.scale_into_set()
        limit = Limits(self.max_iter).iterations
        if self.steps == "paper":
            paper_steps(state, limit)
        elif np.isinf(state.feasible.ellipsoid.radius):
            state.solve(limit)
        else:
            solve_in_ellipsoid(state, limit)
        dual = state.signed if self.prune is None else pruned(state.signed, self.prune)
        return Solution(dual, state.bias(), state.steps, state.gap, state.status)


def pruned(dual: Array, count: int) -> Array:
    """Return the `count` coefficients of the largest absolute value, the others 0; the first of equals are kept."""
    kept = np.argsort(-np.abs(dual), kind="stable")[:count]
    out = np.zeros_like(dual)
    out[kept] = dual[kept]
    return out


@dataclass(frozen=True)
class NormBudget(BinaryTrainer):
    """`AnyNorm` with a norm of about the `budget` largest slacks; `prune` keeps that many of the largest coefficients.

    `steps` as in `AnyNorm`.
    """

    weighted: ClassVar[bool] = False
    norm: ClassVar[Callable[[Any], Norm]]

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    budget: int | None = None
    prune: bool = False
    working_set: int = 2048
    time_limit: float | None = None
    steps: str = "exact"
    starts_warm: ClassVar[bool] = True

    @classmethod
    def paper(cls, B: int | None = None, C: float = 1.0, iterations: int = -1) -> NormBudget:
        """Return the method as printed: a number of pair steps, then the B largest weights (None: the model's budget)."""
        return cls(C, max_iter=iterations, budget=B, prune=True, steps="paper")

    def __post_init__(self) -> None:
        self.any_norm(2 if self.budget is None else self.budget)  # checks the settings

    def any_norm(self, budget: int | None) -> AnyNorm:
        """Return the same trainer in the general form."""
        norm, prune = type(self).norm(budget), budget if self.prune else None
        more = {"working_set": self.working_set, "time_limit": self.time_limit, "steps": self.steps}
        return AnyNorm(self.C, self.tol, self.max_iter, norm, prune, **more)  # type: ignore[arg-type]

    def solve(self, problem: Binary) -> Solution:
        return self.any_norm(self.budget).solve(problem)


@dataclass(frozen=True)
class BudgetL1(NormBudget):
    """Budget-L1-SVM: C times the sum of the B = `budget` largest slacks instead of the sum of all.

    Rows with a smaller slack than the B-th largest are not support vectors (Theorem 2). So there are at most B support
    vectors except for ties, and the free support vectors do tie. `prune` keeps the B largest coefficients despite ties.
    """

    norm = OneInf


@dataclass(frozen=True)
class BudgetL2(NormBudget):
    """Budget-L2-SVM: C times about the 2-norm of the B = `budget` largest slacks.

    The number of support vectors grows with B but is not bounded by it. `prune` keeps the B largest coefficients.
    """

    norm = TwoInf
