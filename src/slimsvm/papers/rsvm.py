"""Reduced support vector machines (Lee & Mangasarian 2001): a random basis, and the best coefficients for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..solvers.basis import bordered, check_C, kernel_norm, nested_models, proportional_rows

REGULARISERS = ("kernel", "coefficients")


@dataclass(frozen=True)
class RSVM(Reducer):
    """A random part of the rows J, each class in proportion, is the basis; its coefficients are fitted to all rows:

        minimise  1/2 (|beta|^2 + b^2) + C/2 sum_i w_i max(0, 1 - y_i f(x_i))^2,    f(x) = sum_J beta_j k(x, x_j) + b

    That is the paper's problem, regulariser="coefficients". With "kernel" it is 1/2 beta' K_JJ beta, the norm of f that
    an SVM has, and b is free.

    The paper smooths the hinge and stops Newton's method at a tolerance; here the problem itself is solved, to
    rounding. The basis of a smaller model is a part of that of a larger one. The full model is not used.

    Y.-J. Lee and O. L. Mangasarian, "RSVM: Reduced support vector machines", SIAM Data Mining 2001.
    """

    C: float = 1.0
    regulariser: str = "kernel"
    needs_model: ClassVar[bool] = False
    real_valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if self.regulariser not in REGULARISERS:
            raise ValueError(f"unknown regulariser {self.regulariser!r}; there are {list(REGULARISERS)}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Yield a model for each size; smaller models use the first points of the largest one."""
        index = proportional_rows(task.groups, sizes[-1], task.rng)
        points = task.rows.take(index)
        norm = self._norm(task.rows.block(index)) / self.C
        for small in nested_models(task, points, task.rows.against(points), norm, sizes, deadline):
            yield small, f"C={self.C:g}, regulariser={self.regulariser}"

    def _norm(self, K: Array) -> Array:
        if self.regulariser == "coefficients":
            return np.eye(K.shape[0] + 1)
        return bordered(kernel_norm(K), bias=0.0)
