"""Compressed vector machines: gradient support vectors (Xu, Gardner, Tyree & Weinberger 2015, section 4).

The small model follows the outputs of the full model f in the sense of least squares, and its points are free to move:

    minimise  sum_i (f~(x_i) - f(x_i))^2,    f~(x) = sum_j k(x, z_j) alpha_j + b,        over all z_j and alpha_j    (10)

The bias b is that of the full model, and the rows x_i are its support vectors. Points and coefficients start from the
result of LARS-SVM and are optimised together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..rows.protocol import Rows
from ..solvers.descent import DescentSettings, descend
from ..solvers.refit import Refit
from .lars import Support, lars

#: when to stop; the loss and its gradient are relative to the loss of the bias alone
OPTIMIZERS = {
    "lbfgs": DescentSettings(300, "lbfgs", memory=20, ftol=1e-6, gtol=1e-9),
    "cg": DescentSettings(300, "cg", gtol=1e-7),
}
ROWS = ("support", "all")


@dataclass(frozen=True)
class CVM(Reducer):
    """CVM (Xu et al. 2015): the points and coefficients of LARS-SVM, moved to follow the full model's outputs (10).

    `optimizer` is "lbfgs" or "cg", conjugate gradients as in the paper, which need more passes; it makes at most
    `max_steps` steps for each size. `rows` to follow the full model on are "support", its support
    vectors, as in the paper, or "all" the training rows with their weights, which is slower.

    The paper ends there, with the full model's bias. With `refit` each model is also tried with coefficients and bias that
    are fitted to the full model's margins on all rows, as for `slant` and `lars`, and the one with the lower validation
    error is kept. That helps if points are few: least squares spend them on outputs far from the decision boundary too.
    `refit=False` is the paper's method.
    """

    optimizer: str = "lbfgs"
    rows: str = "support"
    refit: bool = True
    max_steps: int = 300
    real_valued: ClassVar[bool] = True
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
        """Yield the models of LARS with moved points, for each size."""
        assert model is not None
        support = Support.of(task, model)
        followed, weights = (task.rows, task.weights) if self.rows == "all" else (support.rows, np.ones(support.rows.n))
        loss = OutputLoss(followed, model, weights)
        refit = Refit.of(task, model, sizes[-1]) if self.refit else None
        for stop in lars(support, sizes[-1]):
            if stop.index.size in sizes or stop.last or deadline.over:
                start = support.expansion(stop.index, stop.coef)
                small, steps = moved(start, loss, replace(OPTIMIZERS[self.optimizer], steps=self.max_steps), deadline)
                settings = f"{steps} steps of {self.optimizer}"
                yield small, settings
                if refit is not None:
                    yield refit(small), f"{settings}, refit"
            if deadline.over:
                return


class OutputLoss:
    """sum_i w_i |f~(x_i) - f(x_i)|^2 as a share of its value for f~ = b; points are in the home's coordinates."""

    def __init__(self, rows: Rows, model: Expansion, weights: Array) -> None:
        self.rows = rows
        self.goals = model.on(rows) - model.bias
        scale = float(weights @ (self.goals**2).sum(axis=1))
        self.weights = weights[:, None] / (scale if scale > 0 else 1.0)
        self.against = rows.moving(np.zeros((0, rows.d)))

    def __call__(self, points: Array, coef: Array) -> tuple[float, Array, Array]:
        """Return the loss and its derivatives with respect to points (m, d) and coefficients (m, q)."""
        off = self.against.move(points, coef) - self.goals
        slopes = self.weights * off
        loss = float(np.vdot(slopes, off))
        slopes *= 2
        return loss, self.against.pullback(slopes, coef), self.against.back(slopes)


def moved(start: Expansion, loss: OutputLoss, settings: DescentSettings, deadline: Deadline) -> tuple[Expansion, int]:
    """Return the expansion with points and coefficients moved downhill, its bias kept, and the steps taken."""
    d = start.points.shape[1]

    def value_and_gradient(both: Array) -> tuple[float, Array]:
        value, *slopes = loss(both[:, :d], both[:, d:])
        return value, np.hstack(slopes)

    both = np.hstack([loss.rows.inward(start.points), start.coef])
    end = descend(value_and_gradient, both, settings, deadline)
    if not end.value <= value_and_gradient(both)[0]:  # rounding can make a line search fail
        return start, 0
    return Expansion(start.kernel, loss.rows.outward(end.x[:, :d]), end.x[:, d:], start.bias), end.steps
