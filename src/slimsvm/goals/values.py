"""Goals with one real output: regression, and the score of novelty detection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .decision import Decision
from .demands import Demands

Array = np.ndarray


@dataclass(frozen=True)
class Regression:
    """One output, the predicted value; demands are tubes of radius `epsilon` around the targets.

    A row's loss is its squared error divided by `variance`, that of the training targets. The mean loss is then 1 - R^2.
    """

    name: ClassVar[str] = "regression"
    #: whether rows have labels; otherwise the full model's scores are used as labels
    labelled: ClassVar[bool] = True
    #: whether targets are real values
    real: ClassVar[bool] = True
    #: the rule by which `decode` works
    decision: ClassVar[Decision] = Decision.VALUE
    #: predictions are values, of one output
    n_classes: ClassVar[int] = 0
    outputs: ClassVar[int] = 1
    #: what the mean of the losses is
    loss: ClassVar[str] = "1 - R^2"
    epsilon: float = 0.0
    variance: float = 1.0

    def encode(self, labels: Array) -> Array:
        """Return the targets (n, 1)."""
        return np.asarray(labels, dtype=np.float64)[:, None]

    def demands(self, targets: Array) -> Demands:
        """Return the tubes around the targets."""
        return Demands(targets - self.epsilon, targets + self.epsilon)

    def followed(self, targets: Array, outputs: Array) -> Demands:  # noqa: ARG002
        """Return the demand that a small model has the outputs of the full one."""
        return Demands(outputs, outputs)

    def groups(self, targets: Array) -> Array:
        """Return 0 for each row: there is one group."""
        return np.zeros(targets.shape[0], dtype=np.intp)

    def strata(self, labels: Array) -> Array | None:  # noqa: ARG002
        """Return None: there are no classes."""
        return None

    def scores(self, outputs: Array) -> Array:
        """Return the predicted values."""
        return outputs.ravel()

    def decode(self, outputs: Array) -> Array:
        """Return the predicted values."""
        return outputs.ravel()

    def owner(self, coef: Array) -> Array:
        """Return 0 for each point: there are no classes."""
        return np.zeros(coef.shape[0], dtype=np.intp)

    def concerned(self, coef: Array) -> Array:
        """Return True for each point and output."""
        return np.ones(coef.shape, dtype=bool)

    def losses(self, labels: Array, outputs: Array) -> Array:
        """Return the squared error of each row, as a share of the variance of the targets."""
        return np.square(outputs.ravel() - labels) / self.variance


@dataclass(frozen=True)
class Following(Regression):
    """Regression without targets: a small model follows the full one.

    The loss is the squared difference of the two models' outputs, so the mean loss is 1 - R^2 of the small model as a
    predictor of the full one.
    """

    name: ClassVar[str] = "following"
    labelled: ClassVar[bool] = False
    loss: ClassVar[str] = "1 - R^2, with the full model's outputs as targets"


@dataclass(frozen=True)
class Novelty(Following):
    """One output: at least 0 for rows like the training rows (+1), below 0 for novel ones (-1)."""

    name: ClassVar[str] = "novelty"
    decision: ClassVar[Decision] = Decision.SIDE
    nu: float = 0.5  # the share of training rows that may be novel

    def decode(self, outputs: Array) -> Array:
        """Return +1 or -1 for each row."""
        return np.where(outputs.ravel() >= 0, 1, -1)
