"""Sparse large margin classifiers (Wu, Schölkopf & Bakir 2005, 2006): the best points for an SVM in their span.

For points Z = (z_1 .. z_s) let W(Z) be the optimum of the SVM whose w is in the span of the Phi(z_j):

    W(Z) = min over beta, b of  1/2 beta' K_zz beta + C sum_i w_i loss(y_i (b + K_i beta)),     K_i = k(x_i, z_1 .. z_s)

W is minimised over Z. By the envelope theorem its gradient is that of the right side with beta and b at their optimum:

    dW/dZ = 1/2 beta' dK_zz/dZ beta - sum_i a_i y_i dK_i/dZ beta,      a_i = -C w_i loss'(y_i f(x_i))

where the a_i are the dual solution, that of an SVM with the kernel K_xz K_zz^-1 K_zx.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..kernels import Array, Kernel
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..solvers.basis import EXACT, check_C
from ..solvers.descent import DescentSettings, descend
from ..solvers.projection import ProjectedLoss
from ..trainers.smo import SMO

#: the ridge on K_zz, as a share of its mean diagonal, for points that coincide
RIDGE = 1e-8
#: the ridge of the squared hinge, as a share of the sum of weights
TIE_RIDGE = 1e-12


@dataclass(frozen=True)
class SLMC(Reducer):
    """Points and coefficients of an SVM trained together, by descent on W(Z) (Wu, Schölkopf & Bakir).

    The paper has the hinge loss, `loss="hinge"`: an exact SVM in s dimensions on all rows for every value of W, here by
    SMO, which takes several times as long. The default is the squared hinge, C/2 sum_i w_i max(0, 1 - y_i f(x_i))^2:
    Newton's method solves it in a few steps, and W is then smooth. `tol` is that of the hinge's solver.

    The paper's initial points are random rows. Here a row is drawn with a probability in proportion to its a_i for the
    present points, which treats both classes alike, and each size begins with the points of the one before. Then at most
    `max_steps` steps of L-BFGS move all points. With q outputs W is the sum of theirs. The full model is not used. The
    kernel has to be positive definite, so that K_zz is a norm.

    M. Wu, B. Schölkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005, and "A direct method for
    building sparse kernel learning algorithms", JMLR 7, 2006.
    """

    C: float = 1.0
    loss: str = "squared_hinge"
    tol: float = 1e-3
    max_steps: int = 50
    needs_model: ClassVar[bool] = False
    selects: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True
    sizes_per_doubling: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if self.loss not in OBJECTIVES:
            raise ValueError(f"unknown loss {self.loss!r}; there are {sorted(OBJECTIVES)}")
        if self.max_steps < 0:
            raise ValueError(f"max_steps must be 0 (points do not move) or more, not {self.max_steps!r}")

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Return whether the kernel has gradients and is positive definite."""
        return super().takes(kernel) and kernel.definite

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield a model for each size, from the points of the one before and random rows."""
        rows = task.rows
        Z = np.zeros((0, rows.d))
        dual = SquaredHinge(task, self.C, self.tol).optimum(Z).dual
        for size in sorted({min(size, rows.n) for size in sizes}):
            if Z.size and task.run.over:
                return
            objective = OBJECTIVES[self.loss](task, self.C, self.tol)
            Z = np.vstack([Z, rows.to_coordinates(rows.take(drawn(dual, size - Z.shape[0], task.rng)))])
            if self.max_steps:
                Z = descend(objective, Z, DescentSettings(self.max_steps), task.run.deadline).x
            found = objective.optimum(Z)
            dual = found.dual
            yield (
                Expansion(rows.kernel, rows.from_coordinates(Z), found.coef, found.bias),
                f"C={self.C:g}, loss={self.loss}",
            )


@dataclass(frozen=True)
class Optimum:
    """The SVM in the span of some points: its value W, its coefficients, and y_i a_i for every row and output."""

    value: float
    coef: Array
    bias: Array
    dual: Array  # (n, q)


class SpanObjective(Protocol):
    """W(Z); points are in the coordinates of the rows."""

    def __init__(self, task: Task, C: float, tol: float) -> None: ...

    def __call__(self, Z: Array) -> tuple[float, Array]:
        """Return W(Z) and dW/dZ."""

    def optimum(self, Z: Array) -> Optimum:
        """Return the SVM in the span of the points."""


class SquaredHinge:
    """W with C/2 sum_i w_i max(0, 1 - y_i f(x_i))^2: C/2 times a projected loss."""

    def __init__(self, task: Task, C: float, tol: float) -> None:
        self.C = C
        self.loss = ProjectedLoss(task.rows, task.margin_targets, task.weights, 1 / C, EXACT, TIE_RIDGE)

    def __call__(self, Z: Array) -> tuple[float, Array]:
        """Return W(Z) and dW/dZ."""
        value, gradient = self.loss(Z)
        return self.C / 2 * value, self.C / 2 * gradient

    def optimum(self, Z: Array) -> Optimum:
        """Return the SVM in the span of the points, by Newton's method."""
        found = self.loss.settle(Z)
        dual = -self.C / 2 * self.loss.problem.slopes(found.outputs)
        return Optimum(self.C / 2 * found.loss, found.coef, found.bias, dual)


class Hinge:
    """W with C sum_i w_i max(0, 1 - y_i f(x_i)), by SMO with the linear kernel on the rows' coordinates in the span."""

    def __init__(self, task: Task, C: float, tol: float) -> None:
        self.task, self.smo = task, SMO(C, tol)
        self.against = task.rows.moving(np.zeros((0, task.rows.d)), exact=True)
        self.dual: Array | None = None  # the start of the next solution

    def __call__(self, Z: Array) -> tuple[float, Array]:
        """Return W(Z) and dW/dZ."""
        found, rows = self.optimum(Z), self.task.rows
        gradient = rows.pullback_among(Z, Z, rows.among(Z, placed=True), found.coef @ found.coef.T)
        return found.value, gradient - self.against.pullback(found.dual, found.coef)

    def optimum(self, Z: Array) -> Optimum:
        """Return the SVM whose inner product of two rows is K_i K_zz^-1 K_j'."""
        self.against.move(Z, np.zeros((Z.shape[0], 0)))
        root = cholesky(ridged(self.task.rows.among(Z, placed=True)), lower=True)
        features = self.against.features(solve_triangular(root, np.eye(Z.shape[0]), lower=True).T)
        fit = self.smo.fit(Task(features, self.task.targets, self.task.weights, self.task.rng), self.dual)
        assert fit.dual is not None
        self.dual = fit.dual
        w = solve_triangular(root, self.against.back(fit.dual), lower=True)
        value = float(np.abs(fit.dual).sum() - np.square(w).sum() / 2)
        return Optimum(value, solve_triangular(root, w, lower=True, trans="T"), fit.model.bias, fit.dual)


OBJECTIVES: dict[str, type[SpanObjective]] = {"squared_hinge": SquaredHinge, "hinge": Hinge}


def ridged(K: Array) -> Array:
    """Return K with a ridge that makes it definite."""
    return K + RIDGE * max(float(np.diag(K).mean()), np.finfo(float).tiny) * np.eye(K.shape[0])


def drawn(dual: Array, count: int, rng: np.random.Generator) -> Array:
    """Return distinct random rows with probabilities in proportion to a_i; any rows if too few have one."""
    weight = np.abs(dual).sum(axis=1)
    if np.count_nonzero(weight) < count:
        weight = np.ones(weight.size)
    return rng.choice(weight.size, count, replace=False, p=weight / weight.sum())
