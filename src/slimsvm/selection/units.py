"""Units of real targets: reducers work on targets that are standardised to mean 0 and variance 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels import Array
from ..model import Expansion
from ..rounding import rounded
from .path import Path


@dataclass(frozen=True)
class Units:
    """A mean and a scale: value = centre + scale * standardised value; of several targets an array of each."""

    centre: Any = 0.0
    scale: Any = 1.0

    @classmethod
    def of(cls, values: Array, weights: Array) -> Units:
        """Return the weighted mean and standard deviation of each target; a scale of 1 if all values are equal."""
        centre = np.average(values, axis=0, weights=weights)
        spread = np.sqrt(np.average(np.square(values - centre), axis=0, weights=weights))
        # differences that are only rounding are no spread
        scale = np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)
        return cls(centre, scale) if np.ndim(scale) else cls(float(centre), float(scale))

    def inside(self, values: Array) -> Array:
        """Return values standardised."""
        return (values - self.centre) / self.scale

    def outside(self, values: Array) -> Array:
        """Return standardised values in the user's unit."""
        return self.centre + self.scale * values

    def model_inside(self, model: Expansion) -> Expansion:
        """Return a model with standardised outputs."""
        return replace(model, coef=model.coef / self.scale, bias=self.inside(model.bias))

    def model_outside(self, model: Expansion) -> Expansion:
        """Return a model with outputs in the user's unit; tables of 4 bits hold the coefficients in that unit."""
        coef = self.scale * model.coef
        coef = rounded(np.asarray(coef), 4) if model.precision == "int4" and np.any(self.scale != 1) else coef
        return replace(model, coef=coef, bias=self.outside(model.bias))

    def path_outside(self, path: Path) -> Path:
        """Return a path of models with outputs in the user's unit."""
        return path.with_models(self.model_outside)


#: for labels that are classes
NO_UNITS = Units()
