"""Perceptrons on a budget: the Forgetron lets the oldest point fade and forgets it, the RBP one at random.

Both learn from mistakes alone, by a step of length 1 in feature space: where k(x, x) is not 1, or the move is between two
of many classes, the coefficient is t / sqrt(k(x, x) <t, t>). The papers assume that rows have length 1, and this makes it
so at no loss: the length of a row has no part in whether it is a mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels import Array
from ..model import Task
from .frames.online import Learner, OnlineTrainer, State

#: the share of the mistakes that the damage of forgetting may reach (Dekel et al. 2008)
DAMAGE = 15 / 32


@dataclass(frozen=True)
class ForgetronState(State):
    """A state with the damage of all removals so far, the Q of the paper."""

    damage: float = 0.0


class Forgetting(Learner):
    """The self-tuned Forgetron at work; mistake number i sits in seat i mod budget, so that the oldest goes first."""

    start: ForgetronState

    def __init__(self, settings: Forgetron, state: ForgetronState, room: int) -> None:
        super().__init__(settings, state, room)
        self.damage = state.damage

    def state(self, **more: Any) -> Any:
        """With the damage."""
        return super().state(damage=self.damage, **more)

    def update(self, row: int, move: Array) -> None:
        """The step; where all seats are taken, f is scaled by phi and the oldest point leaves."""
        seat, coef = (self.moves - 1) % self.settings.budget, unit(move, self.within[row, row])
        if seat < self.size:
            phi = self.fade(seat, row, coef)
            self.coef *= phi
            self.outputs *= phi
            coef = phi * coef
        self.seat(seat, row, coef)

    def fade(self, seat: int, row: int, coef: Array) -> float:
        """The factor by which f shrinks before the point leaves; its damage is added up.

        After a step to f', removing a point of length sigma phi from phi f' does damage (phi sigma)^2 + 2 phi sigma
        - 2 phi^2 sigma mu, with mu = <f', the point at length 1>, which Dekel et al. call Psi.
        """
        m, leaving = self.size, self.coef[seat]
        value = self.among[seat, :m] @ self.coef[:m] + self.against[seat, row] * coef
        square = max(float(leaving @ leaving * self.among[seat, seat]), 0.0)
        a, b = square - 2 * float(value @ leaving), 2 * square**0.5
        phi = largest_fade(a, b, self.damage - DAMAGE * self.moves)
        self.damage += a * phi**2 + b * phi
        return phi


def largest_fade(a: float, b: float, c: float) -> float:
    """The largest phi in (0, 1] with a phi^2 + b phi + c <= 0, for b >= 0 > c."""
    if a + b + c <= 0:
        return 1.0
    # below 0 at 0 and above it at 1: one root in between, written so that a = 0 is no exception
    return -2 * c / (b + (b * b - 4 * a * c) ** 0.5)


class Discarding(Learner):
    """The RBP at work."""

    pairs: ClassVar[bool] = False

    def update(self, row: int, move: Array) -> None:
        """The step; where all seats are taken, one of the points leaves, each as likely as any other."""
        budget = self.settings.budget
        seat = self.size if self.size < budget else int(self.rng.integers(budget))
        self.seat(seat, row, unit(move, self.within[row, row]))


def unit(move: Array, square: float) -> Array:
    """The move at length 1, for a row of squared length `square`; unscaled where a kernel gives rows no length."""
    return move / np.sqrt(move @ move * (square if square > 0 else 1.0))


@dataclass(frozen=True)
class Forgetron(OnlineTrainer):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz & Singer 2008): shrink, then forget the oldest.

    For each u with |u| <= 1/4 sqrt((B + 1) / log(B + 1)), budget B >= 83, the mistakes of a pass are at most
    2 |u|^2 + 4 sum_t max(0, 1 - y_t u(x_t)).
    """

    learner: ClassVar[type[Learner]] = Forgetting

    def begin(self, task: Task) -> ForgetronState:
        """No damage yet."""
        return ForgetronState(**vars(super().begin(task)))


@dataclass(frozen=True)
class RBP(OnlineTrainer):
    """The randomised budget perceptron (Cavallanti, Cesa-Bianchi & Gentile 2007): discard a point at random.

    Against each u of |u| < sqrt(B) the expected mistakes of a pass are of the order of its hinge losses and of |u|^2.
    """

    learner: ClassVar[type[Learner]] = Discarding
