"""The kernel perceptron, averaged or plain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..clock import check_time_limit
from ..kernels import Array
from ..limits import Limits
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
from .sequential import SequentialRun, check_passes


@dataclass(frozen=True)
class Perceptron(BinaryTrainer):
    """The perceptron (Rosenblatt 1958): each misclassified row is added with its label.

    There is no objective, no C and no bias. On separable rows it makes at most (R / margin)^2 mistakes (Novikoff 1962).
    With `averaged`, the model is the mean of the weights after every step (Freund & Schapire 1999), else the last weights.
    The guarantees for new rows hold for one pass; more passes may overfit if classes overlap. The run ends after `passes`,
    after `max_iter` steps, after `time_limit` seconds for each output, or at the end of a pass if the last weights classify
    every row correctly. Without `shuffle` the rows keep the order given. A warm start makes more passes from the weights of
    the last model, which then counts in the average as the rows do that it was learned from.
    """

    weighted: ClassVar[bool] = False
    starts_warm: ClassVar[bool] = True

    passes: int = 1
    averaged: bool = True
    shuffle: bool = True
    max_iter: int = -1
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        check_passes(self.passes)

    def solve(self, problem: Binary) -> Solution:
        """Make passes over the rows of one output."""
        run = Mistakes(problem, shuffle=self.shuffle)
        if problem.start is not None and problem.start.any():
            before = problem.draws or run.rows.n
            run.begin_from(np.outer(np.maximum(problem.start * problem.y, 0.0), [1.0, before]), before)
        status = run.run(self.passes, Limits(self.max_iter, self.time_limit), 0.0)
        alpha = run.alpha[:, 1] / max(run.taken, 1) if self.averaged else run.alpha[:, 0]
        return Solution(alpha * problem.y, 0.0, run.steps, run.gap(), status, run.taken)


class Mistakes(SequentialRun):
    """Counts of the mistakes on each row."""

    def __init__(self, problem: Binary, *, shuffle: bool) -> None:
        super().__init__(problem)
        self.shuffle = shuffle

    def order(self) -> Array:
        """Return the rows in random order, or in the order given."""
        return super().order() if self.shuffle else np.arange(self.rows.n)

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:
        """Count a mistake."""
        return alpha + 1.0 if margin <= 0 else alpha

    def gap(self) -> float:
        """Return the share of rows that the last weights misclassify."""
        return float(np.mean(self.margins() <= 0))
