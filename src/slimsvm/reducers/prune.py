"""Keep the support vectors with the largest coefficients: the baseline that other methods have to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..model import Expansion, Task
from ..solvers.basis import Refit
from .base import Models, Reducer

BIASES = ("kept", "balanced")


@dataclass(frozen=True)
class Prune(Reducer):
    """Keep the support vectors with the largest |coefficient| (the baseline of Dekel & Singer 2006).

    With q outputs, the norm of a support vector's q coefficients counts. Ties are broken at random; a model with many
    support vectors at the bound C has many ties. Coefficients are unchanged. `bias` is "kept", as published, or "balanced":
    the small model then has the full model's mean output on the training rows. With `refit`, coefficients and bias of the
    same points are fitted to the full model's margins; this makes better models, but is not the published method.
    """

    bias: str = "kept"
    refit: bool = False
    real_valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bias not in BIASES:
            raise ValueError(f"unknown bias {self.bias!r}; there are {list(BIASES)}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield for each size the first support vectors of one order."""
        assert model is not None
        order = by_weight(model.coef, task.rng)
        refit = Refit.of(task, model, sizes[-1]) if self.refit else None
        full_outputs = model.on(task.rows) if self.bias == "balanced" and not refit else None
        for size in sizes:
            largest = order[:size]
            small = model.part(largest)
            if refit:
                yield refit(small), "refit"
            elif full_outputs is not None:
                yield replace(small, bias=balanced_bias(task, small, full_outputs)), "bias=balanced"
            else:
                yield small, "bias=kept"
            if size >= model.size or task.run.over:
                return


def by_weight(coef: Array, rng: np.random.Generator) -> Array:
    """Return the order of points by the norm of their coefficients, the largest first and ties in random order."""
    return np.lexsort((rng.permutation(coef.shape[0]), -np.linalg.norm(coef, axis=1)))


def balanced_bias(task: Task, small: Expansion, full_outputs: Array) -> Array:
    """Return the biases with which each output has the full model's weighted mean on the rows that it concerns."""
    return small.bias + np.average(full_outputs - small.on(task.rows), axis=0, weights=task.output_weights)
