"""New coefficients and bias for the points of a small model, by what the training rows demand of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..gram import Gram, one_blas_thread
from ..kernels import Array
from ..model import Expansion, Task
from ..responses import Responses
from .coefficients import CoefficientFit

#: kernel values between rows and points that a refit may hold
REFIT_VALUES = 1 << 24


@dataclass(frozen=True)
class Refit:
    """Rows and their demands h; calling it with a model gives that model the best coefficients and bias for them."""

    gram: Gram
    targets: Array
    demands: Array
    weights: Array

    @classmethod
    def of(cls, task: Task, model: Expansion | None, most: int) -> Refit:
        """The demands of a full model on the training rows, or of the labels alone; for models of up to `most` points.

        Where rows and points are too many, rows are drawn by chance.
        """
        rows, room = np.arange(task.gram.n), max(REFIT_VALUES // (most + 1), 1)
        if rows.size > room:
            rows = np.sort(task.rng.choice(rows, room, replace=False))
        gram = task.gram if rows.size == task.gram.n else task.gram.subset(rows)
        return cls(gram, task.targets[rows], demands(gram, task.targets[rows], model), task.weights[rows])

    def __call__(self, small: Expansion) -> Expansion:
        """The same points, fitted anew."""
        fit = CoefficientFit(self.gram.matrix(small.points), self.targets, self.demands, self.weights)
        with one_blas_thread():
            coef, bias = fit.solve(small.coef, small.bias)
        return replace(small, coef=coef, bias=bias)


def demands(gram: Gram, targets: Array, model: Expansion | None) -> Array:
    """h = min(1, y f(x)) where the full model is right; 1 where there is none, or none that is right anywhere.

    A row demands nothing (-inf) where the full model is wrong and of outputs that it has no part in.
    """
    margins = np.abs(targets) if model is None else targets * outputs(gram, model)
    if not (margins > 0).any():
        margins = np.abs(targets)
    return np.where(margins > 0, np.minimum(margins, 1.0), -np.inf)


def outputs(gram: Gram, model: Expansion) -> Array:
    """f(x) for each row."""
    full = Responses(gram, model.bias.size)
    full.add(model.points, model.coef)
    return full.values + model.bias
