"""Units of real targets: reducers work on targets of mean 0 and variance 1, whatever the user's unit is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .kernels import Array
from .model import Expansion
from .path import Path


@dataclass(frozen=True)
class Units:
    """Values are centre + scale * inside values."""

    centre: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, values: Array, weights: Array) -> Units:
        """Return the weighted mean and standard deviation of values as their units; a scale of 1 where all are alike."""
        centre = float(np.average(values, weights=weights))
        spread = float(np.sqrt(np.average(np.square(values - centre), weights=weights)))
        # targets that differ by rounding alone have no spread
        return cls(centre, spread if spread > 1e-12 * abs(centre) else 1.0)

    def inside(self, values: Array) -> Array:
        """Return values in these units."""
        return (values - self.centre) / self.scale

    def outside(self, values: Array) -> Array:
        """Return inside values as the user has them."""
        return self.centre + self.scale * values

    def model_inside(self, model: Expansion) -> Expansion:
        """Return a model whose outputs are in these units."""
        return replace(model, coef=model.coef / self.scale, bias=self.inside(model.bias))

    def model_outside(self, model: Expansion) -> Expansion:
        """Return a model with outputs as the user has them."""
        return replace(model, coef=self.scale * model.coef, bias=self.outside(model.bias))

    def path_outside(self, path: Path) -> Path:
        """Return a path of models with outputs as the user has them."""
        steps = tuple(replace(step, model=self.model_outside(step.model)) for step in path.steps)
        return replace(path, steps=steps)


#: those of classes
NO_UNITS = Units()
