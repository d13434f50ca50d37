"""The cross-entropy of outputs: a loss in which only differences between the scores of classes count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

Array = np.ndarray

#: scores of a model are outputs times this number. Outputs of -1 and +1, the margins of a hinge loss, are then nearly
#: certain: a probability of 0.95 with two classes
SHARPNESS = 3.0


def cross_entropies(xp: Any, outputs: Any, targets: Any) -> tuple[Any, Any]:
    """Return the cross-entropy of each row and its slopes, for arrays of any library; one output tells two classes apart."""
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
        """Return the loss of some rows."""
        return CrossEntropy(self.targets[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and outputs."""
        return self.targets.shape

    @property
    def sides(self) -> tuple[Array, ...]:
        """The arrays (n, q) that the loss depends on, for homes that compute it themselves."""
        return (self.targets,)

    def measured(self, outputs: Array) -> tuple[Array, Array]:
        """Return the loss of each row, (n,), and its slopes by the outputs, (n, q)."""
        return cross_entropies(np, outputs, self.targets)

    def curvature(self, outputs: Array) -> float:
        """Return the mean second derivative of the loss by an output."""
        shares = self.measured(outputs)[1] / SHARPNESS + (self.targets + 1) / 2
        return SHARPNESS**2 * float(np.mean(shares * (1 - shares)))

