"""Budgeted stochastic gradient descent: kernel Pegasos that removes a point whenever it exceeds its budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from .._core import core
from ..kernels import RBF, Array, Kernel, Matrix, stacked
from ..model import Expansion, Task
from ..rows.protocol import Rows
from ..solvers.online import Learner, State, mixed
from .frames.online import OnlineTrainer

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


#: three ways to remove one point (Wang, Crammer & Vucetic 2012); each changes f as little as it can
MAINTENANCE: dict[str, Callable[[Learner], None]] = {"removal": remove, "projection": project, "merging": merge}


@dataclass(frozen=True)
class DescentState(State):
    """A state whose function is v / (lam t) after t rows, v = sum_j k(z_j, .) coef_j.

    Step t of Pegasos, f <- (1 - 1/t) f + 1 / (lam t) k(x, .) move, adds k(x, .) move to v and changes nothing else.
    """

    lam: float = 1.0
    maintenance: str = "removal"

    def expansion(self, kernel: Kernel) -> Expansion:
        """Return the last iterate."""
        unscaled = super().expansion(kernel)
        return replace(unscaled, coef=unscaled.coef / (self.lam * max(self.seen, 1)))


class BudgetedDescent(Learner):
    """The running learner of budgeted SGD, on v."""

    start: DescentState

    def required_margins(self, before: Array) -> Array:
        """Return lam (t - 1), the margin of v that is a margin of 1 of f; the first row always causes an update."""
        return self.start.lam * before

    def update(self, row: int, move: Array) -> None:
        """Add the row; remove a point if there are more than the budget."""
        self.seat(self.size, row, move)
        if self.size > self.settings.budget:
            MAINTENANCE[self.start.maintenance](self)


@dataclass(frozen=True)
class BSGD(OnlineTrainer):
    """Budgeted SGD for the SVM without a bias (Wang, Crammer & Vucetic 2012), with steps 1 / (lam t):

        min  lam / 2 |f|^2 + 1/n sum_i w_i max(0, 1 - y_i f(x_i))

    for targets that are values, and for novelty detection, the loss of these SVMs (`ValueDescent`),
    and for many classes the loss of Crammer & Singer, 1 - f_class(x) + max f_other(x). `lam` is 1 / (C n) by default,
    which makes this the objective of the C-SVM, with n the rows of `fit` or of a stream's first batch. It learns row by row
    on the host. The result is the last iterate, without Pegasos' optional projection onto a ball.

    `maintenance` removes a point: by "merging" two points (rbf kernel only), by "projection" of a point onto the others, or
    by "removal". The default is merging for the rbf kernel, the best of the three in the paper, and projection for other
    kernels. A merged point lies between the two points; of two points with opposite signs, the smaller one is projected
    onto the other. Projection inverts the kernel matrix of the points at each update, in O(budget^3).
    """

    weighted: ClassVar[bool] = True
    real_valued: ClassVar[bool] = True
    learner: ClassVar[type[Learner]] = BudgetedDescent

    C: float = 1.0
    lam: float | None = None
    maintenance: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lam is not None and not (isinstance(self.lam, Real) and 0 < self.lam < float("inf")):
            raise ValueError(f"lam must be a number above 0, or None for 1 / (C n), not {self.lam!r}")
        if self.maintenance is not None and self.maintenance not in MAINTENANCE:
            raise ValueError(f"unknown maintenance {self.maintenance!r}; there are {sorted(MAINTENANCE)}, or None")

    def learner_of(self, state: State) -> type[Learner]:
        """Return the learner of classes, or that of real targets."""
        return ValueDescent if isinstance(state, ValueState) else self.learner

    def begin(self, task: Task) -> State:
        if task.goal.real:
            return begin_values(super().begin(task), task, self.lam, self.C, self.maintenance_for(task.rows.kernel))
        lam = 1 / (self.C * task.targets.shape[0]) if self.lam is None else self.lam
        return DescentState(**vars(super().begin(task)), lam=lam, maintenance=self.maintenance_for(task.rows.kernel))

    def maintenance_for(self, kernel: Kernel) -> str:
        """Return the maintenance of the settings, or the best one for the kernel."""
        if self.maintenance == "merging" and not isinstance(kernel, RBF):
            others = sorted(MAINTENANCE.keys() - {"merging"})
            raise ValueError(
                f"merging needs the rbf kernel, and the kernel is {kernel.name!r}; choose "
                f"maintenance={' or '.join(map(repr, others))}, or kernel='rbf'"
            )
        return self.maintenance or ("merging" if isinstance(kernel, RBF) else "projection")


@dataclass(frozen=True)
class ValueState(State):
    """A state whose function is v / S + offset; rho is -offset."""

    lam: float = 1.0
    late: float = 0.0
    offset: float = 0.0
    epsilon: float = 0.0
    nu: float | None = None  # None for regression
    maintenance: str = "removal"

    def scale(self, seen: int) -> float:
        """Return S after so many rows."""
        return self.lam * (seen + self.late)

    def expansion(self, kernel: Kernel) -> Expansion:
        """Return the last iterate."""
        return Expansion(kernel, self.points, self.coef / self.scale(max(self.seen, 1)), np.array([self.offset]))


def begin_values(state: State, task: Task, lam: float | None, C: float, maintenance: str) -> ValueState:
    """Return the state before the first row; `lam` of regression is 1 / (C n) by default."""
    goal, n = task.goal, task.targets.shape[0]
    if goal.outputs > 1:
        raise ValueError(
            f"trainer 'bsgd' learns one target, and y has {goal.outputs} columns; give trainer='smo' or trainer=None, or "
            "one estimator for each target"
        )
    common = vars(state) | {"maintenance": maintenance}
    if not goal.labelled:
        nu = float(getattr(goal, "nu", 0.5))
        return ValueState(**common, lam=nu, late=1 / nu, nu=nu)
    lam = 1 / (C * n) if lam is None else lam
    offset = float(np.average(task.targets[:, 0], weights=task.weights))
    return ValueState(**common, lam=lam, late=1 / (lam * C), offset=offset, epsilon=float(getattr(goal, "epsilon", 0.0)))


class ValueDescent(Learner):
    """The running learner for real targets, and for the boundary around rows: SVR and the one-class SVM.

    With t rows seen before, T = t + 1 + late and S = lam T, the function is f = v / S, v = sum_j coef_j k(z_j, .). A row x
    of weight w becomes a point of v:

        regression  r = y - offset - v(x) / S; if |r| > epsilon, v += sign(r) min(w, S (|r| - epsilon) / k(x, x)) k(x, .)
        novelty     if v(x) / S < rho, v += w k(x, .) and rho -= w (1 - nu) / S; else rho += w nu / S

    The first is the implicit step of gradient descent: it brings the residual to epsilon, and never beyond. `late` makes
    the first steps no larger than those that the SVM allows: with lam = 1 / (C n) and late = n, no coefficient of f exceeds
    C. For novelty lam is nu, and late 1 / nu.
    """

    pairs: ClassVar[bool] = True
    start: ValueState

    def __init__(self, settings: object, state: ValueState, room: int) -> None:
        super().__init__(settings, state, room)
        self.offset = state.offset

    def state(self, **more: object) -> ValueState:
        """Return the state now."""
        return super().state(offset=self.offset, **more)

    def labels(self, targets: Array) -> Array:
        """Return the targets as they are."""
        return targets[:, 0]

    def read_block(self, block: Rows, values: Array, weights: Array) -> None:
        """Learn from the rows of a block with these targets, one row after the other."""
        pool: Matrix = stacked(self.points, block.take(np.arange(block.n)))
        self.evaluate(block, pool)
        for row in range(block.n):
            scale = self.start.scale(self.seen + 1)
            value, weight = float(self.outputs[0, row]) / scale, float(weights[row])
            move = self._novelty(value, weight, scale)
            if self.start.nu is None:
                move = self._regression(
                    float(values[row]) - self.offset - value, weight, scale, float(self.within[row, row])
                )
            self.seen += 1
            if move:
                self.wrong += 1
                self.moves += 1
                self.update(row, np.array([move]))
        self.points = mixed(self.parts, pool)

    def _regression(self, residual: float, weight: float, scale: float, square: float) -> float:
        """Return the coefficient of a row in v."""
        beyond = abs(residual) - self.start.epsilon
        if beyond <= 0:
            return 0.0
        return float(np.sign(residual)) * (min(weight, scale * beyond / square) if square > 0 else weight)

    def _novelty(self, value: float, weight: float, scale: float) -> float:
        """Return the coefficient of a row in v, and move rho, which is -offset."""
        if self.start.nu is None:
            return 0.0
        outside = value < -self.offset
        self.offset += weight * ((1 - self.start.nu) if outside else -self.start.nu) / scale
        return weight if outside else 0.0

    def update(self, row: int, move: Array) -> None:
        """Add the row; remove a point if there are more than the budget."""
        self.seat(self.size, row, move)
        if self.size > self.settings.budget:
            MAINTENANCE[self.start.maintenance](self)
