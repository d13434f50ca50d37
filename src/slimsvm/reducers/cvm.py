"""Compressed vector machines: gradient support vectors (Xu, Gardner, Tyree & Weinberger 2015, section 4).

The small model follows the outputs of the full model f in the sense of least squares, and its points are free to move:

    minimise  sum_i (f~(x_i) - f(x_i))^2,    f~(x) = sum_j k(x, z_j) alpha_j + b,        over all z_j and alpha_j    (10)

The bias b is that of the full model, the rows x_i are its support vectors, and points and coefficients start where
LARS-SVM leaves them and are optimised together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
from ..solvers.demands import outputs
from ..solvers.moving import Loss, MovingLoss
from ..solvers.refit import Refit
from .base import Models, Reducer
from .lars import Support, lars

#: scipy's names and when to stop; the loss is a share of its value for the bias alone, and so is its gradient
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lbfgs": ("L-BFGS-B", {"ftol": 1e-6, "gtol": 1e-9, "maxcor": 20}),
    "cg": ("CG", {"gtol": 1e-7}),
}
ROWS = ("support", "all")


@dataclass(frozen=True)
class CVM(Reducer):
    """CVM (Xu et al. 2015): the points and coefficients of LARS-SVM, moved to follow the full model's outputs (10).

    `optimizer` is "lbfgs" or "cg", conjugate gradients as in the paper, which need more passes; it makes at most
    `max_steps` steps for each size. `rows` to follow the full model on are "support", its support
    vectors, as in the paper, or "all" the training rows with their weights, which is slower.

    The paper ends there, with the full model's bias. With `refit` each model is also tried with coefficients and bias
    fitted to what the full model is right about on all rows, as for `slant` and `lars`, and the one with the lower
    held-out error counts: that helps where points are few and squares go to outputs that matter to no decision.
    `refit=False` is the paper's method.
    """

    optimizer: str = "lbfgs"
    rows: str = "support"
    refit: bool = True
    max_steps: int = 300
    selects: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True
    sizes_per_doubling: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"unknown optimizer {self.optimizer!r}; there are {sorted(OPTIMIZERS)}")
        if self.rows not in ROWS:
            raise ValueError(f"unknown rows {self.rows!r}; there are {list(ROWS)}")
        if not self.max_steps >= 1:
            raise ValueError(f"max_steps must be 1 or more, not {self.max_steps!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Each size from its own stop of LARS."""
        assert model is not None
        support = Support.of(task, model)
        followed, weights = (task.rows, task.weights) if self.rows == "all" else (support.gram, np.ones(support.gram.n))
        loss = MovingLoss(followed, squares(followed, model, weights))
        refit = Refit.of(task, model, sizes[-1]) if self.refit else None
        for stop in lars(support, sizes[-1]):
            if stop.index.size in sizes or stop.last or deadline.over:
                start = support.expansion(stop.index, stop.coef)
                small, steps = moved(start, loss, self.optimizer, self.max_steps, deadline)
                settings = f"{steps} steps of {self.optimizer}"
                yield small, settings
                if refit is not None:
                    yield refit(small), f"{settings}, refit"
            if deadline.over:
                return


def squares(rows: Rows, model: Expansion, weights: Array) -> Loss:
    """sum_i w_i |f~(x_i) - f(x_i)|^2 as a share of its value for f~ = b."""
    goals = outputs(rows, model)
    scale = float(weights @ ((goals - model.bias) ** 2).sum(axis=1))
    weights = weights[:, None] / (scale if scale > 0 else 1.0)

    def loss(some: slice, found: Array) -> tuple[float, Array]:
        off = found - goals[some]
        slopes = weights[some] * off
        return float((slopes * off).sum()), 2 * slopes

    return loss


def moved(start: Expansion, loss: MovingLoss, optimizer: str, max_steps: int, deadline: Deadline) -> tuple[Expansion, int]:
    """The expansion with points and coefficients moved downhill from where they start, bias kept, and the steps taken."""
    Z, coef = loss.inward(start.points), start.coef

    def parts(theta: Array) -> tuple[Array, Array]:
        return theta[: Z.size].reshape(Z.shape), theta[Z.size :].reshape(coef.shape)

    def value_and_gradient(theta: Array) -> tuple[float, Array]:
        slope = loss(*parts(theta), start.bias)
        return slope.value, np.concatenate([slope.points.ravel(), slope.coef.ravel()])

    def watch(theta: Array) -> None:  # noqa: ARG001
        if deadline.over:
            raise StopIteration

    method, options = OPTIMIZERS[optimizer]
    theta = np.concatenate([Z.ravel(), coef.ravel()])
    with one_blas_thread():  # its own products are small; the threads are for the rows
        end = minimize(
            value_and_gradient, theta, jac=True, method=method, callback=watch, options={**options, "maxiter": max_steps}
        )
    if not end.fun <= value_and_gradient(theta)[0]:  # a line search that lost its way in rounding
        return start, 0
    points, coef = parts(end.x)
    return Expansion(start.kernel, loss.outward(points), coef, start.bias), end.nit
