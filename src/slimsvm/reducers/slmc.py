"""Sparse large margin classifiers (Wu, Schölkopf & Bakir 2005, 2006): the best points for an SVM in their span.

For points Z = (z_1 .. z_s) let W(Z) be the optimum of the SVM whose w is in the span of the Phi(z_j):

    W(Z) = min over beta, b of  1/2 beta' K_zz beta + C sum_i w_i loss(y_i (b + K_i beta)),     K_i = k(x_i, z_1 .. z_s)

W is minimised over Z. By the envelope theorem its gradient is that of the right side with beta and b at their optimum:

    dW/dZ = 1/2 beta' dK_zz/dZ beta - sum_i a_i y_i dK_i/dZ beta,      a_i = -C w_i loss'(y_i f(x_i))

where the a_i are the dual solution, that of an SVM with the kernel K_xz K_zz^-1 K_zx.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import OptimizeResult, minimize

from ..kernels import Array, Kernel, Linear, dense
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.host import HostRows
from ..rows.threads import blocks, one_blas_thread
from ..solvers.basis import bordered, check_C, squared_hinge
from ..trainers.smo import SMO
from .base import Models, Reducer

#: what is added to the diagonal of K_zz, over its mean: points may come to lie on each other
RIDGE = 1e-8
#: kernel values whose gradients are carried back at a time
BLOCK = 1 << 21


@dataclass(frozen=True)
class SLMC(Reducer):
    """Points and coefficients of an SVM trained together, by descent on W(Z) (Wu, Schölkopf & Bakir).

    The paper has the hinge loss, `loss="hinge"`: an exact SVM in s dimensions on all rows for every value of W, here by
    SMO, which takes several times as long. The default is the squared hinge, C/2 sum_i w_i max(0, 1 - y_i f(x_i))^2:
    Newton's method solves it in a few steps, and W is then smooth. `tol` is that of the hinge's solver.

    The paper begins with rows by chance. Here these are drawn with the probability of their a_i for the points there are,
    so that both classes have the same, and each size begins with the points of the one before. Then at most `max_steps`
    steps of L-BFGS move all of them. With q outputs W is the sum of theirs. The full model plays no part. The kernel has to
    be positive definite, so that K_zz is a norm.

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
        if self.loss not in LOSSES:
            raise ValueError(f"unknown loss {self.loss!r}; there are {sorted(LOSSES)}")
        if self.max_steps < 0:
            raise ValueError(f"max_steps must be 0 (points stay where they begin) or more, not {self.max_steps!r}")

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Kernels with gradients, but for the one that is no inner product."""
        return super().takes(kernel) and kernel.definite

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Each size from the points of the one before and rows by chance."""
        Z = np.zeros((0, task.rows.X.shape[1]))
        dual = solve_squared_hinge(task, np.zeros((task.rows.n, 0)), np.zeros((0, 0)), self.C, None).dual
        for size in sorted({min(size, task.rows.n) for size in sizes}):
            if Z.size and deadline.over:
                return
            span = Span(task, partial(LOSSES[self.loss], C=self.C, tol=self.tol))
            Z = descend(span, np.vstack([Z, drawn(task, dual, size - Z.shape[0])]), self.max_steps, deadline)
            dual = span.best.dual
            yield Expansion(task.rows.kernel, Z, span.best.coef, span.best.bias), f"C={self.C:g}, loss={self.loss}"


@dataclass(frozen=True)
class Optimum:
    """The SVM in the span of some points: its value W, its coefficients, and y_i a_i for every row and output."""

    value: float
    coef: Array
    bias: Array
    dual: Array  # (n, q)


Solver = Callable[..., Optimum]


def solve_squared_hinge(
    task: Task,
    K: Array,
    K_zz: Array,
    C: float,
    start: Optimum | None,
    tol: float = 0.0,  # noqa: ARG001
) -> Optimum:
    """C/2 sum_i w_i max(0, 1 - y_i f(x_i))^2, by Newton's method from the coefficients given."""
    fit = squared_hinge(task, K, bordered(K_zz, bias=0.0) / C)
    q = task.targets.shape[1]
    coef, bias = fit.solve(*((np.zeros((K.shape[1], q)), np.zeros(q)) if start is None else (start.coef, start.bias)))
    slack = np.maximum(fit.unmet(coef, bias), 0.0)  # times sqrt(w)
    return Optimum(C / 2 * fit.objective(coef, bias), coef, bias, C * fit.signs * slack)


def solve_hinge(task: Task, K: Array, K_zz: Array, C: float, start: Optimum | None, tol: float) -> Optimum:
    """C sum_i w_i max(0, 1 - y_i f(x_i)), by SMO with the linear kernel on the rows' coordinates in the span."""
    root = cholesky(K_zz, lower=True)  # the inner product of two rows is K_i K_zz^-1 K_j'
    rows = solve_triangular(root, K.T.astype(np.float64), lower=True).T
    linear = Task(HostRows(Linear(), rows), task.targets, task.weights, task.rng)
    fit = SMO(C, tol).fit(linear, None if start is None else start.dual)
    assert fit.dual is not None
    w = rows.T @ fit.dual
    value = float(np.abs(fit.dual).sum() - np.square(w).sum() / 2)
    return Optimum(value, solve_triangular(root, w, lower=True, trans="T"), fit.model.bias, fit.dual)


LOSSES: dict[str, Solver] = {"squared_hinge": solve_squared_hinge, "hinge": solve_hinge}


class Span:
    """W(Z) and its gradient; the optimum for one Z is where the search for that of the next begins."""

    def __init__(self, task: Task, solve: Solver) -> None:
        self.task, self.solve = task, solve
        self.latest: Optimum | None = None
        self.best = Optimum(np.inf, np.empty(0), np.empty(0), np.empty(0))

    def __call__(self, Z: Array) -> tuple[float, Array]:
        """W(Z) and dW/dZ."""
        gram = self.task.rows
        K, K_zz = gram.matrix(Z), norm_in_span(gram, Z)
        found = self.solve(self.task, K, K_zz, start=self.latest)
        self.latest = found
        self.best = found if found.value < self.best.value else self.best
        gradient = gram.kernel.pullback(Z, Z, K_zz, found.coef @ found.coef.T)
        return found.value, gradient - pulled_back(gram, Z, K, found)


def norm_in_span(gram: HostRows, Z: Array) -> Array:
    """K_zz in float64, with a ridge."""
    K = HostRows(gram.kernel, Z, gram.meter, cache_mb=0.0, error=0.0).matrix(Z)
    return K + RIDGE * max(float(np.diag(K).mean()), np.finfo(float).tiny) * np.eye(K.shape[0])


def pulled_back(gram: HostRows, Z: Array, K: Array, found: Optimum) -> Array:
    """sum_i a_i y_i dK_i/dZ beta, over the rows that have an a_i, a block of them at a time."""
    total = np.zeros_like(Z)
    active = np.flatnonzero(found.dual.any(axis=1))
    for some in blocks(active.size, max(BLOCK // Z.shape[0], 1)):
        rows = active[some]
        total += gram.kernel.pullback(gram.X[rows], Z, K[rows], found.dual[rows] @ found.coef.T)
    return total


def descend(span: Span, Z: Array, steps: int, deadline: Deadline) -> Array:
    """The points with the least W(Z) that L-BFGS finds on its way from Z; `span.best` then belongs to them."""

    def value(flat: Array) -> tuple[float, Array]:
        W, gradient = span(flat.reshape(Z.shape))
        return W, gradient.ravel()

    def look_at_the_clock(intermediate_result: OptimizeResult) -> None:  # noqa: ARG001
        if deadline.over:
            raise StopIteration

    if not steps:
        span(Z)
        return Z
    options = {"maxiter": steps}
    with one_blas_thread():  # many small products
        found = minimize(value, Z.ravel(), jac=True, method="L-BFGS-B", callback=look_at_the_clock, options=options)
    return found.x.reshape(Z.shape)


def drawn(task: Task, dual: Array, count: int) -> Array:
    """Different rows by chance, with the probability of their a_i, as points; any row where too few have one."""
    weight = np.abs(dual).sum(axis=1)
    if np.count_nonzero(weight) < count:
        weight = np.ones(weight.size)
    rows = task.rng.choice(weight.size, count, replace=False, p=weight / weight.sum())
    return dense(task.rows.X[rows]).astype(np.float64)
