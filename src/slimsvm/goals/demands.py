"""Demands: the interval in which each output of each row should lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

Array = np.ndarray


def squared_distances(xp: Any, outputs: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the squared distance of each row's outputs from their intervals, and its slopes, for arrays of any library."""
    residual = xp.minimum(xp.maximum(outputs, low), high) - outputs
    return xp.sum(residual * residual, axis=1), -2 * residual


@dataclass(frozen=True)
class Demands:
    """low <= f(x_i) <= high for each row and output, both (n, q).

    A classifier's demand is one-sided, [1, inf) or (-inf, -1]. A regressor's is a tube around its target. Where
    an output does not concern a row the interval is (-inf, inf).
    """

    name: ClassVar[str] = "squared"  # of the loss
    low: Array
    high: Array

    @classmethod
    def beyond(cls, targets: Array, margins: Array | float) -> Demands:
        """Return the demands y f >= margin for targets y of -1 and +1; no demand where y is 0 or the margin -inf."""
        return cls(
            np.where(targets > 0, margins, -np.inf),
            np.where(targets < 0, -margins, np.inf),
        )

    def __getitem__(self, rows: Array | slice) -> Demands:
        """Return the demands of some rows."""
        return Demands(self.low[rows], self.high[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and outputs."""
        return self.low.shape

    def shortfall(self, outputs: Array) -> Array:
        """Return how far each output is outside its interval; below 0 inside it, -inf without a demand."""
        return np.maximum(self.low - outputs, outputs - self.high)

    def residual(self, outputs: Array) -> Array:
        """Return the change that brings each output into its interval; 0 inside it."""
        return np.clip(outputs, self.low, self.high) - outputs

    @property
    def sides(self) -> tuple[Array, ...]:
        """The arrays (n, q) that the loss depends on, for homes that compute it themselves."""
        return self.low, self.high

    def measured(self, outputs: Array) -> tuple[Array, Array]:
        """Return the squared distance of each row's outputs from their intervals, (n,), and its slopes, (n, q)."""
        return squared_distances(np, outputs, *self.sides)

    def curvature(self, outputs: Array) -> float:
        """Return the mean second derivative of the loss by an output."""
        return 2 * float(np.mean(self.residual(outputs) != 0))
