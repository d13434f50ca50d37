"""The cross-entropy of outputs: a loss in which only differences between the scores of classes count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

Array = np.ndarray

#: scores of a model are outputs times this number. Outputs of -1 and +1, the margins of a hinge loss, are then nearly
#: certain: a probability of 0.95 with two classes
SHARPNESS = 3.0


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
        if outputs.shape[1] == 1:
            scores, certain = SHARPNESS * outputs, (self.targets + 1) / 2
            losses = np.logaddexp(0, scores) - certain * scores
            return losses[:, 0], SHARPNESS * (_logistic(scores) - certain)
        scores = SHARPNESS * outputs
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        sums = shares.sum(axis=1, keepdims=True)
        certain = (self.targets + 1) / 2
        return np.log(sums[:, 0]) - (certain * scores).sum(axis=1), SHARPNESS * (shares / sums - certain)

    def curvature(self, outputs: Array) -> float:
        """Return the mean second derivative of the loss by an output."""
        shares = self.measured(outputs)[1] / SHARPNESS + (self.targets + 1) / 2
        return SHARPNESS**2 * float(np.mean(shares * (1 - shares)))


def _logistic(scores: Array) -> Array:
    """Return 1 / (1 + exp(-scores)) without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * scores))
