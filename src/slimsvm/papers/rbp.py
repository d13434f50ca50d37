"""The randomised budget perceptron: each mistake adds its row, and a random point leaves if the budget is full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..kernels import Array
from ..solvers.online import Learner, unit_step
from ..trainers.frames.online import OnlineTrainer


class RandomRemoval(Learner):
    """The running learner of RBP."""

    pairs: ClassVar[bool] = False

    def update(self, row: int, move: Array) -> None:
        """Add the row; if all seats are taken, it replaces a point drawn uniformly."""
        budget = self.settings.budget
        seat = self.size if self.size < budget else int(self.rng.integers(budget))
        self.seat(seat, row, unit_step(move, self.within[row, row]))


@dataclass(frozen=True)
class RBP(OnlineTrainer):
    """The randomised budget perceptron (Cavallanti, Cesa-Bianchi & Gentile 2007): removes a random point.

    It learns row by row on the host. Against each u of |u| < sqrt(B) the expected mistakes of a pass are of the order of
    its hinge losses and of |u|^2.
    """

    learner: ClassVar[type[Learner]] = RandomRemoval
