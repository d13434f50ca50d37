"""The support vectors of the largest weights, as they are: a yardstick that other methods have to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Task
from ..solvers.demands import outputs
from ..solvers.refit import Refit
from .base import Models, Reducer

BIASES = ("kept", "balanced")


@dataclass(frozen=True)
class Prune(Reducer):
    """The support vectors of the largest |coefficient|, the baseline of Dekel & Singer (2006).

    For q outputs it is the norm of a support vector's q coefficients. Ties, of which a model with many support vectors at
    their bound is full, are broken by chance. Coefficients stay as they are; `bias` is "kept", as published, or
    "balanced": the small model then has the full one's mean output over the training rows. `refit` fits coefficients and
    bias anew to what the full model asks of the rows, which is another method on the same points.
    """

    bias: str = "kept"
    refit: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bias not in BIASES:
            raise ValueError(f"unknown bias {self.bias!r}; there are {list(BIASES)}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Longer and longer beginnings of one order."""
        assert model is not None
        order = by_weight(model.coef, task.rng)
        fitted = Refit.of(task, model, sizes[-1]) if self.refit else None
        full = outputs(task.rows, model) if self.bias == "balanced" and not fitted else None
        for size in sizes:
            kept = order[:size]
            small = replace(model, points=model.points[kept], coef=model.coef[kept])
            if fitted:
                yield fitted(small), "refit"
            elif full is not None:
                yield replace(small, bias=balanced(task, small, full)), "bias=balanced"
            else:
                yield small, "bias=kept"
            if size >= model.size or deadline.over:
                return


def by_weight(coef: Array, rng: np.random.Generator) -> Array:
    """The points by the norm of their coefficients, the largest first, equal ones in an order by chance."""
    return np.lexsort((rng.permutation(coef.shape[0]), -np.linalg.norm(coef, axis=1)))


def balanced(task: Task, small: Expansion, full: Array) -> Array:
    """The biases with which the outputs have the mean of the full model's."""
    return small.bias + np.average(full - outputs(task.rows, small), axis=0, weights=task.weights)
