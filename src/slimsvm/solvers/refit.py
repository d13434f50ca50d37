"""New coefficients and bias for the points of a small model, by what the training rows demand of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..kernels import Array
from ..model import Expansion, Task
from ..rows.protocol import Rows
from .coefficients import REFIT_VALUES, CoefficientFit
from .demands import demands


@dataclass(frozen=True)
class Refit:
    """Rows and their demands h; calling it with a model gives that model the best coefficients and bias for them."""

    gram: Rows
    targets: Array
    demands: Array
    weights: Array

    @classmethod
    def of(cls, task: Task, model: Expansion | None, most: int) -> Refit:
        """The demands of a full model on the training rows, or of the labels alone; for models of up to `most` points.

        Where rows and points are too many, rows are drawn by chance.
        """
        part = task.part(task.sample(max(REFIT_VALUES // (most + 1), 1)))
        return cls(part.rows, part.targets, demands(part, model, or_labels=True), part.weights)

    def __call__(self, small: Expansion) -> Expansion:
        """The same points, fitted anew."""
        fit = CoefficientFit(self.gram.matrix(small.points), self.targets, self.demands, self.weights)
        coef, bias = fit.solve(small.coef, small.bias)
        return replace(small, coef=coef, bias=bias)
