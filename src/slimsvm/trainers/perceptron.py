"""The kernel perceptron, averaged or plain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array
from .frames.per_output import Binary, BinaryTrainer, Solution
from .frames.sequential import Limits, Walk


@dataclass(frozen=True)
class Perceptron(BinaryTrainer):
    """The perceptron (Rosenblatt 1958): each row on the wrong side, or on the border, is added with its label.

    There is no objective, no C and no bias; on rows that a margin separates the mistakes are at most (R / margin)^2
    (Novikoff 1962). With `averaged`, the model is the mean of the weights after every step (Freund & Schapire 1999), else
    the last weights. One pass is what the guarantees on new rows are about; more may overfit where classes overlap.
    Ends after `passes`, after `max_iter` steps, or at the end of a pass where the last weights are right on every row,
    since another pass would then make no mistake. Without `shuffle` the rows come in the order given.
    """

    weighted: ClassVar[bool] = False

    passes: int = 1
    averaged: bool = True
    shuffle: bool = True
    max_iter: int = -1

    def __post_init__(self) -> None:
        Limits(self.passes, self.max_iter)

    def solve(self, problem: Binary) -> Solution:
        """Passes over the rows."""
        walk = Mistakes(problem, shuffle=self.shuffle)
        status = walk.run(Limits(self.passes, self.max_iter), 0.0)
        alpha = walk.alpha[:, 1] / max(walk.steps, 1) if self.averaged else walk.alpha[:, 0]
        return Solution(alpha * problem.y, 0.0, walk.steps, walk.gap(), status)


class Mistakes(Walk):
    """How often each row was on the wrong side."""

    def __init__(self, problem: Binary, *, shuffle: bool) -> None:
        super().__init__(problem)
        self.shuffle = shuffle

    def order(self) -> Array:
        """Shuffled anew for each pass, or as given."""
        return super().order() if self.shuffle else np.arange(self.gram.n)

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:  # noqa: ARG002
        """One more mistake, or none."""
        return alpha + 1.0 if margin <= 0 else alpha

    def gap(self) -> float:
        """The share of rows that the last weights get wrong."""
        return float(np.mean(self.margins() <= 0))
