"""What outputs of each row should be, as intervals, and the losses that a model is trained by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

Array = np.ndarray


def squared_distances(xp: Any, outputs: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the squared distance of each row's outputs from their intervals, and its slopes, for arrays of any library."""
    residual = xp.minimum(xp.maximum(outputs, low), high) - outputs
    return xp.sum(residual * residual, axis=1), -2 * residual


@dataclass(frozen=True)
class MarginTargets:
    """low <= f(x_i) <= high for each row and output, both (n, q).

    A classifier's margin target is one-sided, [1, inf) or (-inf, -1]. A regressor's is a tube around its target. Where
    an output does not concern a row the interval is (-inf, inf).
    """

    name: ClassVar[str] = "squared"  # of the loss
    low: Array
    high: Array

    @classmethod
    def beyond(cls, targets: Array, margins: Array | float) -> MarginTargets:
        """Return the margin targets y f >= margin for targets y of -1 and +1; none where y is 0 or the margin -inf."""
        return cls(
            np.where(targets > 0, margins, -np.inf),
            np.where(targets < 0, -margins, np.inf),
        )

    def __getitem__(self, rows: Array | slice) -> MarginTargets:
        return MarginTargets(self.low[rows], self.high[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        return self.low.shape

    def shortfall(self, outputs: Array) -> Array:
        """Return how far each output is outside its interval; below 0 inside it, -inf without a margin target."""
        return np.maximum(self.low - outputs, outputs - self.high)

    def residual(self, outputs: Array) -> Array:
        """Return the change that brings each output into its interval; 0 inside it."""
        return np.clip(outputs, self.low, self.high) - outputs

    @property
    def sides(self) -> tuple[Array, ...]:
        return self.low, self.high

    def measured(self, outputs: Array) -> tuple[Array, Array]:
        return squared_distances(np, outputs, *self.sides)

    def curvature(self, outputs: Array) -> float:
        return 2 * float(np.mean(self.residual(outputs) != 0))


#: scores of a model are outputs times this number. Outputs of -1 and +1, the margins of a hinge loss, are then nearly
#: certain: a probability of 0.95 with two classes
SHARPNESS = 3.0


def cross_entropies(xp: Any, outputs: Any, targets: Any) -> tuple[Any, Any]:
    """Return the cross-entropy of each row and its slopes, for arrays of any library; one output is for two classes."""
    certain = (targets + 1) / 2
    if outputs.shape[1] == 1:
        scores = SHARPNESS * outputs
        losses = xp.maximum(scores, 0 * scores) + xp.log1p(xp.exp(-xp.abs(scores))) - certain * scores
        return losses[:, 0], SHARPNESS * (0.5 * (1 + xp.tanh(0.5 * scores)) - certain)
    scores = SHARPNESS * (outputs - xp.max(outputs, axis=1, keepdims=True))
    shares = xp.exp(scores)
    sums = xp.sum(shares, axis=1, keepdims=True)
    losses = xp.log(sums)[:, 0] - xp.sum(certain * scores, axis=1)
    return losses, SHARPNESS * (shares / sums - certain)


@dataclass(frozen=True)
class CrossEntropy:
    """-log p of the class of each row, with p the softmax of SHARPNESS f(x), or the logistic function of one output.

    Targets are those of `OneVsRest`, (n, q): +1 for the output of the row's class, -1 for others, and 2 p - 1 where a row
    has a probability p of each class; its loss is then the mean over classes. Squared distances from margins ask each
    output to tell its class from all others. Cross-entropy asks only that the right output is the largest, which few points
    shared by many classes can do far better.
    """

    name: ClassVar[str] = "cross_entropy"
    targets: Array

    def __getitem__(self, rows: Array | slice) -> CrossEntropy:
        return CrossEntropy(self.targets[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        return self.targets.shape

    @property
    def sides(self) -> tuple[Array, ...]:
        return (self.targets,)

    def measured(self, outputs: Array) -> tuple[Array, Array]:
        return cross_entropies(np, outputs, self.targets)

    def curvature(self, outputs: Array) -> float:
        shares = self.measured(outputs)[1] / SHARPNESS + (self.targets + 1) / 2
        return SHARPNESS**2 * float(np.mean(shares * (1 - shares)))


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


#: all losses by name, as functions of a library, outputs and `sides`: the squared distance of outputs from their margin
#: targets, and one for classes only
LOSSES: dict[str, Callable[..., tuple[Any, Any]]] = {
    MarginTargets.name: squared_distances,
    CrossEntropy.name: cross_entropies,
}
