"""The C-SVM without a bias by stochastic subgradient steps on the primal.

    min  lambda/2 |w|^2 + sum_i p_i max(0, 1 - y_i <w, phi(x_i)>)     lambda = 1 / (C sum w),  p_i = w_i / sum w

Divided by lambda this is 1/2 |w|^2 + C sum_i w_i max(0, 1 - y_i <w, phi(x_i)>), the objective of the other trainers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Limits, check_time_limit
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
from .sequential import SequentialRun, check_passes


@dataclass(frozen=True)
class Pegasos(BinaryTrainer):
    """Kernel Pegasos (Shalev-Shwartz et al. 2011): a violated margin adds its row, and the weights shrink by 1 - 1/t.

    w_(t+1) = (1 - 1/t) w_t + 1/(lambda t) [y_i <w_t, phi_i> < 1] y_i phi_i, so the coefficient of a row in w is the number
    of its violations divided by lambda t. The paper draws each row from all rows and returns the last weights:
    `replace=True, averaged=False`. The defaults differ in two ways. First, each pass takes the rows in a new order. This
    is mostly more accurate after the same number of steps, and makes the last weights of a pass feasible in the dual, so
    the responses give the duality gap without more kernel evaluations. Second, the weights are averaged, those after step t
    with weight t (Lacoste-Julien, Schmidt & Bach 2012), which makes the first passes steadier.

    The run ends when the relative duality gap, (primal - dual) / primal, is at most `gap` at the end of a pass (with
    `replace` the gap is mostly unknown, since the weights are not feasible in the dual); after `passes` (the same accuracy
    needs about C times as many); after `max_iter` steps; or after `time_limit` seconds for each output. With `replace`,
    rows are drawn in proportion to their weights; without, their violations count in proportion to them.

    A warm start goes on from the last model, within the box of the dual, with the steps that belong to the rows it was
    learned from; those of another method count as one pass.
    """

    starts_warm: ClassVar[bool] = True

    C: float = 1.0
    max_iter: int = -1
    passes: int = 50
    gap: float = 0.01
    averaged: bool = True
    replace: bool = False
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_passes(self.passes)
        check_time_limit(self.time_limit)
        if not self.gap >= 0:
            raise ValueError(f"gap must be 0 or a share of the primal objective above it, such as 0.01, not {self.gap!r}")

    def solve(self, problem: Binary) -> Solution:
        """Make passes over the rows of one output."""
        run = Violations(problem, self)
        if problem.start is not None and problem.start.any():
            run.begin_from_model(problem.start, problem.draws or run.rows.n)
        status = run.run(self.passes, Limits(self.max_iter, self.time_limit), self.gap)
        return Solution(run.model()[0] * problem.y, 0.0, run.steps, run.gap(), status, run.taken)


class Violations(SequentialRun):
    """Counts of the margin violations of each row; the weights are these counts divided by lambda t."""

    def __init__(self, problem: Binary, settings: Pegasos) -> None:
        super().__init__(problem, summed=settings.averaged)
        self.settings = settings
        self.cap = settings.C * problem.weights
        self.total = float(self.cap.sum())  # 1 / lambda
        self.share = problem.weights / problem.weights.sum()
        # without replacement every row comes once a pass, so its weight goes into the count
        self.count = np.ones(self.rows.n) if settings.replace else self.rows.n * self.share

    def begin_from_model(self, signed: Array, before: int) -> None:
        """Start with the weights of a model, and their sum, as if each of the steps `before` had left these weights.

        The coefficients are clipped to the box of the dual, and scaled down to its optimum along the line to 0.
        """
        alpha = np.clip(signed * self.y, 0.0, self.cap)[:, None]
        self.begin_from(alpha * [before / self.total, before * (before + 1) / (2 * self.total)], before)
        alpha, margins = self.last()
        if (excess := alpha @ margins / max(alpha.sum(), 1e-300)) > 1:
            self.alpha /= excess
            self.responses.values /= excess

    def order(self) -> Array:
        """Return all rows in random order, or n draws with replacement."""
        n = self.rows.n
        return self.problem.rng.choice(n, n, p=self.share) if self.settings.replace else super().order()

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:
        """Count a margin below 1. The margin of w_t is that of the counts divided by lambda (t - 1), and w_1 = 0."""
        return alpha + self.count[row] if step == 0 or margin * self.total < step else alpha

    def last(self) -> tuple[Array, Array]:
        """Return the alpha of the last weights, and their margins on all rows."""
        scale = self.total / max(self.taken, 1)
        return scale * self.alpha[:, 0], scale * self.margins()

    def model(self) -> tuple[Array, Array]:
        """Return alpha and margins of the model: the last weights, or the average (sum_t t w_(t+1)) / (sum_t t)."""
        if not self.settings.averaged:
            return self.last()
        t = max(self.taken, 1)
        scale = 2 * self.total / (t * (t + 1))  # t w_(t+1) = s_t / lambda
        return scale * self.alpha[:, 1], scale * self.margins(1)

    def gap(self) -> float:
        """Return (primal - dual) / primal of the model and of the last weights; infinity if these are not feasible."""
        alpha, margins = self.last()
        if (alpha > self.cap * (1 + 1e-9)).any():
            return np.inf
        dual = alpha.sum() - 0.5 * alpha @ margins
        alpha, margins = self.model()
        primal = 0.5 * alpha @ margins + self.cap @ np.maximum(1.0 - margins, 0.0)
        return float((primal - dual) / primal)
