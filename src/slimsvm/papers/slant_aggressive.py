"""The aggressive variant of `slant`: optimise the present support vectors before another one is added (section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels import Array
from ..model import Status
from .slant import EPSILONS, Slant, SlantRun


class AggressiveRun(SlantRun):
    """A run that steps on support vectors until their shortfalls are `eps` or less; only then it adds one."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.block = np.zeros((0, 0))  # the kernel among the support vectors

    def settle(self) -> None:
        """Step on support vectors until their shortfalls are `eps` or less, then update all responses once."""
        if not self.index.size:
            return
        targets, sides = self.targets[self.index], self.sides[:, self.index]
        shortfall = self.shortfall(self.index, self.responses.values[self.index])
        change, signed = np.zeros_like(self.coef), np.empty(self.index.size)
        while self.steps < self.settings.max_steps and not self.deadline.over:
            value, rows, column = self.worst(shortfall, sides)
            if not value > self.eps:
                break
            for row in rows:
                step = self.eta / rows.size * targets[row, column]
                change[row, column] += step
                np.multiply(targets[:, column], self.block[row], out=signed)
                signed *= step
                shortfall[:, column] -= signed
            self.steps += 1
        self.coef += change
        moved = change.any(axis=1)
        self.responses.add_rows(self.index[moved], change[moved], keep=True)

    def ending(self, value: float, n_new: int, limit: int) -> Status | None:
        """Return why the run ends here; it has stalled by rounding if no row is to be added."""
        status = super().ending(value, n_new, limit)
        return Status.EXHAUSTED if status is None and not n_new else status

    def admit(self, rows: Array) -> None:
        """Make rows support vectors, and extend the kernel among them."""
        border = self.task.rows.block(rows, np.append(self.index, rows)).astype(np.float64)
        old = self.index.size
        self.block = np.block([[self.block, border[:, :old].T], [border]]) if old else border
        super().admit(rows)

    def step(self, rows: Array, column: int) -> None:
        """Leave the first step on the new rows to `settle`."""


@dataclass(frozen=True)
class AggressiveSlant(Slant):
    """`Slant` that adds a support vector only when all present ones have a shortfall of `eps` or less (section 6.1).

    The paper prints the inequality in the other direction; this is what its text says.
    """

    run_type: ClassVar[type[SlantRun]] = AggressiveRun
    epsilons: ClassVar[tuple[float, ...]] = EPSILONS
