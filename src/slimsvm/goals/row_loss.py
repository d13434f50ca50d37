"""Losses that a model is trained by: what each row's outputs cost, and in which direction less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .cross_entropy import CrossEntropy, cross_entropies
from .demands import Demands, squared_distances

Array = np.ndarray


class RowLoss(Protocol):
    """A loss of outputs (n, q). The total is the weighted sum over rows."""

    @property
    def name(self) -> str:
        """The name of the loss."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and outputs."""

    @property
    def sides(self) -> tuple[Array, ...]:
        """The arrays (n, q) that the loss depends on, for homes that compute it themselves."""

    def __getitem__(self, rows: Array | slice) -> RowLoss:
        """Return the loss of some rows."""

    def measured(self, outputs: Array) -> tuple[Array, Array]:
        """Return the loss of each row, (n,), and its slopes by the outputs, (n, q)."""

    def curvature(self, outputs: Array) -> float:
        """Return the mean second derivative of the loss by an output."""


#: all losses by name, as functions of a library, outputs and `sides`: the squared distance of outputs from their demands,
#: and one for classes only
LOSSES: dict[str, Callable[..., tuple[Any, Any]]] = {Demands.name: squared_distances, CrossEntropy.name: cross_entropies}
