"""Budgeted stochastic gradient descent for real targets, and for the boundary around rows: SVR and the one-class SVM.

With t rows seen before, T = t + 1 + late and S = lam T, the function is f = v / S, v = sum_j coef_j k(z_j, .). A row x of
weight w becomes a point of v:

    regression  r = y - offset - v(x) / S; if |r| > epsilon, v += sign(r) min(w, S (|r| - epsilon) / k(x, x)) k(x, .)
    novelty     if v(x) / S < rho, v += w k(x, .) and rho -= w (1 - nu) / S; else rho += w nu / S

The first is the implicit step of gradient descent: it brings the residual to epsilon, and never beyond. `late` makes
the first steps no larger than those that the SVM allows: with lam = 1 / (C n) and late = n, no coefficient of f exceeds C.
For novelty lam is nu, and late 1 / nu.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array, Kernel, Matrix, stacked
from ..model import Expansion, Task
from ..rows.protocol import Rows
from ..solvers.maintenance import MAINTENANCE
from ..solvers.online import Learner, State, mixed


@dataclass(frozen=True)
class ValueState(State):
    """A state whose function is v / S + offset; rho is -offset."""

    lam: float = 1.0
    late: float = 0.0
    offset: float = 0.0
    epsilon: float = 0.0
    nu: float | None = None  # None for regression
    maintenance: str = "removal"

    def scale(self, seen: int) -> float:
        """Return S after so many rows."""
        return self.lam * (seen + self.late)

    def expansion(self, kernel: Kernel) -> Expansion:
        """Return the last iterate."""
        return Expansion(kernel, self.points, self.coef / self.scale(max(self.seen, 1)), np.array([self.offset]))


def begin_values(state: State, task: Task, lam: float | None, C: float, maintenance: str) -> ValueState:
    """Return the state before the first row; `lam` of regression is 1 / (C n) by default."""
    goal, n = task.goal, task.targets.shape[0]
    if goal.outputs > 1:
        raise ValueError(
            f"trainer 'bsgd' learns one target, and y has {goal.outputs} columns; give trainer='smo' or trainer=None, or "
            "one estimator for each target"
        )
    common = vars(state) | {"maintenance": maintenance}
    if not goal.labelled:
        nu = float(getattr(goal, "nu", 0.5))
        return ValueState(**common, lam=nu, late=1 / nu, nu=nu)
    lam = 1 / (C * n) if lam is None else lam
    offset = float(np.average(task.targets[:, 0], weights=task.weights))
    return ValueState(**common, lam=lam, late=1 / (lam * C), offset=offset, epsilon=float(getattr(goal, "epsilon", 0.0)))


class ValueDescent(Learner):
    """The running learner, on v."""

    pairs: ClassVar[bool] = True
    start: ValueState

    def __init__(self, settings: object, state: ValueState, room: int) -> None:
        super().__init__(settings, state, room)
        self.offset = state.offset

    def state(self, **more: object) -> ValueState:
        """Return the state now."""
        return super().state(offset=self.offset, **more)

    def labels(self, targets: Array) -> Array:
        """Return the targets as they are."""
        return targets[:, 0]

    def read_block(self, block: Rows, own: Array, weights: Array) -> None:
        """Learn from the rows of a block with these targets, one row after the other."""
        pool: Matrix = stacked(self.points, block.take(np.arange(block.n)))
        self.evaluate(block, pool)
        for row in range(block.n):
            scale = self.start.scale(self.seen + 1)
            value, weight = float(self.outputs[0, row]) / scale, float(weights[row])
            move = self._novelty(value, weight, scale)
            if self.start.nu is None:
                move = self._regression(float(own[row]) - self.offset - value, weight, scale, float(self.within[row, row]))
            self.seen += 1
            if move:
                self.wrong += 1
                self.moves += 1
                self.update(row, np.array([move]))
        self.points = mixed(self.parts, pool)

    def _regression(self, residual: float, weight: float, scale: float, square: float) -> float:
        """Return the coefficient of a row in v."""
        beyond = abs(residual) - self.start.epsilon
        if beyond <= 0:
            return 0.0
        return float(np.sign(residual)) * (min(weight, scale * beyond / square) if square > 0 else weight)

    def _novelty(self, value: float, weight: float, scale: float) -> float:
        """Return the coefficient of a row in v, and move rho, which is -offset."""
        if self.start.nu is None:
            return 0.0
        outside = value < -self.offset
        self.offset += weight * ((1 - self.start.nu) if outside else -self.start.nu) / scale
        return weight if outside else 0.0

    def update(self, row: int, move: Array) -> None:
        """Add the row; remove a point if there are more than the budget."""
        self.seat(self.size, row, move)
        if self.size > self.settings.budget:
            MAINTENANCE[self.start.maintenance](self)
