"""Goals with real outputs: regression, of one target or several, and the score of novelty detection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .decision import Decision
from .margin_targets import MarginTargets

Array = np.ndarray


def per_target(numbers: Array) -> float | tuple[float, ...]:
    """Return a number, or one for each of several targets."""
    return tuple(numbers.tolist()) if np.ndim(numbers) else float(numbers)


def variance_of(values: Array, weights: Array) -> float | tuple[float, ...]:
    """Return the weighted variance of each target; 1 for a constant one."""
    variance = np.average(np.square(values - np.average(values, axis=0, weights=weights)), axis=0, weights=weights)
    return per_target(np.where(variance > 0, variance, 1.0))


@dataclass(frozen=True)
class Regression:
    """An output for each target, its predicted value; margin targets are tubes of radius `epsilon` around the targets.

    A row's loss is its squared error divided by `variance`, that of the training targets. The mean loss is then 1 - R^2; of
    several targets it is the mean over them. Labels of several targets are (n, outputs), and `epsilon` and `variance` may
    be a number for each.
    """

    name: ClassVar[str] = "regression"
    #: whether rows have labels; otherwise the full model's scores are used as labels
    labelled: ClassVar[bool] = True
    #: whether targets are real values
    real: ClassVar[bool] = True
    #: predictions are values
    n_classes: ClassVar[int] = 0
    #: what the mean of the losses is
    loss: ClassVar[str] = "1 - R^2"
    epsilon: float | tuple[float, ...] = 0.0
    variance: float | tuple[float, ...] = 1.0
    outputs: int = 1

    @property
    def decision(self) -> Decision:
        return Decision.VALUE if self.outputs == 1 else Decision.VALUES

    def encode(self, labels: Array) -> Array:
        """Return the targets (n, q)."""
        return np.asarray(labels, dtype=np.float64).reshape(-1, self.outputs)

    def margin_targets(self, targets: Array) -> MarginTargets:
        """Return the tubes around the targets."""
        return MarginTargets(targets - np.asarray(self.epsilon), targets + np.asarray(self.epsilon))

    def followed(self, targets: Array, outputs: Array) -> MarginTargets:  # noqa: ARG002
        """Return the demand that a small model has the outputs of the full one."""
        return MarginTargets(outputs, outputs)

    def groups(self, targets: Array) -> Array:
        """Return 0 for each row: there is one group."""
        return np.zeros(targets.shape[0], dtype=np.intp)

    def strata(self, labels: Array) -> Array | None:  # noqa: ARG002
        """Return None: there are no classes."""
        return None

    def scores(self, outputs: Array) -> Array:
        """Return the predicted values."""
        return self.decode(outputs)

    def decode(self, outputs: Array) -> Array:
        """Return the predicted values, (n,) of one target and (n, outputs) of several."""
        return outputs.ravel() if self.outputs == 1 else outputs

    def owner(self, coef: Array) -> Array:
        """Return 0 for each point: there are no classes."""
        return np.zeros(coef.shape[0], dtype=np.intp)

    def concerned(self, coef: Array) -> Array:
        """Return True for each point and output."""
        return np.ones(coef.shape, dtype=bool)

    def losses(self, labels: Array, outputs: Array) -> Array:
        """Return the squared error of each row, as a share of the variance of the targets."""
        return np.asarray((np.square(outputs - self.encode(labels)) / np.asarray(self.variance)).mean(axis=1))


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
    nu: float = 0.5  # the share of training rows that may be novel

    @property
    def decision(self) -> Decision:
        return Decision.SIDE

    def scores(self, outputs: Array) -> Array:
        return outputs.ravel()

    def decode(self, outputs: Array) -> Array:
        """Return +1 or -1 for each row."""
        return np.where(outputs.ravel() >= 0, 1, -1)
