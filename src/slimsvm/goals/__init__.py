"""Goals: the kinds of problem. A goal encodes labels as targets, decodes outputs as predictions and computes losses.

Only goals distinguish classification, regression and novelty detection: trainers, reducers, paths, files and exporters ask
the goal. A new goal is a class and a line here. Goals need NumPy only.
"""

from __future__ import annotations

from typing import Any, Protocol

from .classes import OneVsOne, OneVsOneDag, OneVsRest
from .decision import Decision
from .margin_targets import Array, MarginTargets
from .values import Novelty, Regression


class Goal(Protocol):
    """A kind of problem. Labels are class numbers 0 .. k-1, or real targets; arrays have a column for each output."""

    @property
    def name(self) -> str:
        """The goal's name in files."""

    @property
    def labelled(self) -> bool:
        """Whether rows have labels; otherwise the full model's scores are used as labels."""

    @property
    def real(self) -> bool:
        """Whether targets are real values; otherwise they are -1, 0 and +1."""

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 where predictions are values."""

    @property
    def outputs(self) -> int:
        """The number of columns."""

    @property
    def decision(self) -> Decision:
        """The rule by which `decode` works, for exporters."""

    @property
    def loss(self) -> str:
        """What the mean of the rows' losses is, in words."""

    def encode(self, labels: Array) -> Array:
        """Return the targets (n, q): -1, +1, or 0 where an output does not concern a row; or real values."""

    def margin_targets(self, targets: Array) -> MarginTargets:
        """Return the intervals in which outputs should lie according to the labels."""

    def followed(self, targets: Array, outputs: Array) -> MarginTargets:
        """Return the intervals in which a small model's outputs should lie according to the full model's outputs."""

    def groups(self, targets: Array) -> Array:
        """Return a group number for each row; rows of a group have the same targets."""

    def strata(self, labels: Array) -> Array | None:
        """Return the classes for a stratified choice of validation rows; None without classes."""

    def scores(self, outputs: Array) -> Array:
        """Return what scikit-learn's decision_function returns."""

    def decode(self, outputs: Array) -> Array:
        """Return the class number of each row, or its value."""

    def owner(self, coef: Array) -> Array:
        """Return the class that the coefficients (m, q) of each point favour most; 0 where predictions are values."""

    def concerned(self, coef: Array) -> Array:
        """Return whether each output concerns the row of each point, (m, q): not the pairs of other classes."""

    def losses(self, labels: Array, outputs: Array) -> Array:
        """Return the loss of each row, (n,); a model's validation error is their mean."""


#: goals whose labels are classes
CLASSIFIERS: dict[str, Any] = {goal.name: goal for goal in (OneVsRest, OneVsOne, OneVsOneDag)}
GOALS: dict[str, Any] = CLASSIFIERS | {goal.name: goal for goal in (Regression, Novelty)}
