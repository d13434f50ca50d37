"""The Forgetron: each mistake adds its row; if the budget is full, f shrinks and the oldest point leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..kernels import Array
from ..model import Task
from ..solvers.online import Learner, State, unit_step
from ..trainers.frames.online import OnlineTrainer

#: limit on the damage of all removals, as a share of the mistakes (Dekel et al. 2008)
DAMAGE = 15 / 32


@dataclass(frozen=True)
class ForgetronState(State):
    """A state with the damage of all removals so far, the Q of the paper."""

    damage: float = 0.0


class OldestRemoval(Learner):
    """The running learner of the self-tuned Forgetron; mistake i takes seat i mod budget, that of the oldest point."""

    start: ForgetronState

    def __init__(self, settings: Forgetron, state: ForgetronState, room: int) -> None:
        super().__init__(settings, state, room)
        self.damage = state.damage

    def state(self, **more: Any) -> Any:
        """Return the state with the damage."""
        return super().state(damage=self.damage, **more)

    def update(self, row: int, move: Array) -> None:
        """Add the row; if all seats are taken, scale f by phi and remove the oldest point."""
        seat, coef = (self.moves - 1) % self.settings.budget, unit_step(move, self.within[row, row])
        if seat < self.size:
            phi = self.shrinkage(seat, row, coef)
            self.coef *= phi
            self.outputs *= phi
            coef = phi * coef
        self.seat(seat, row, coef)

    def shrinkage(self, seat: int, row: int, coef: Array) -> float:
        """Return the factor phi by which f shrinks before the point leaves, and add up the damage of its removal.

        After a step to f', removing a point of norm sigma phi from phi f' does damage (phi sigma)^2 + 2 phi sigma
        - 2 phi^2 sigma mu, with mu = <f', the point at norm 1>. Dekel et al. call it Psi.
        """
        m, leaving = self.size, self.coef[seat]
        value = self.among[seat, :m] @ self.coef[:m] + self.against[seat, row] * coef
        square = max(float(leaving @ leaving * self.among[seat, seat]), 0.0)
        a, b = square - 2 * float(value @ leaving), 2 * square**0.5
        phi = largest_phi(a, b, self.damage - DAMAGE * self.moves)
        self.damage += a * phi**2 + b * phi
        return phi


def largest_phi(a: float, b: float, c: float) -> float:
    """Return the largest phi in (0, 1] with a phi^2 + b phi + c <= 0, for b >= 0 > c."""
    if a + b + c <= 0:
        return 1.0
    # the value is below 0 at 0 and above 0 at 1: one root lies between, in a form that also holds for a = 0
    return -2 * c / (b + (b * b - 4 * a * c) ** 0.5)


@dataclass(frozen=True)
class Forgetron(OnlineTrainer):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz & Singer 2008): shrinks f, then removes the oldest point.

    It learns row by row on the host. For each u with |u| <= 1/4 sqrt((B + 1) / log(B + 1)), budget B >= 83, the mistakes of
    a pass are at most 2 |u|^2 + 4 sum_t max(0, 1 - y_t u(x_t)).
    """

    learner: ClassVar[type[Learner]] = OldestRemoval

    def begin(self, task: Task) -> ForgetronState:
        """Return the state before the first row, without damage."""
        return ForgetronState(**vars(super().begin(task)))
