"""States of long runs, which a later run can continue from: when they are saved. What is in them is declared (`states`).

A state is a dict of arrays, numbers, strings, lists and dicts of these. A run offers its state to a keeper in every round.
The keeper decides when and where to save it. At its start, a run asks its keeper for the last saved state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

State = dict[str, Any]


class StateError(ValueError):
    """A saved state that no run can continue from. Callers that know the file name it."""

    def __init__(self, words: str) -> None:
        super().__init__(f"its state has {words}; start without this checkpoint")
        self.words = words


class Keeper:
    """Saves the states of a run; this one saves nothing."""

    def within(self, name: str) -> Keeper:  # noqa: ARG002
        """Return the keeper of a part of the run."""
        return self

    def saved(self) -> State | None:
        """Return the state that was saved last; None for a new run."""
        return None

    def offer(self, state: Callable[[], State]) -> None:
        """Save the state if the last save is long enough ago."""

    def keep(self, state: State, *, now: bool = False) -> None:
        """Save a state that must not be lost, such as a result: with the next save, or with `now` at once."""


class PartKeeper(Keeper):
    """The keeper of a run within a run: its states are saved as part of the outer one's."""

    def __init__(self, outer: Keeper, around: Callable[[State], State]) -> None:
        self.outer, self.around = outer, around

    def offer(self, state: Callable[[], State]) -> None:
        """Offer the states of both runs."""
        self.outer.offer(lambda: self.around(state()))

    def keep(self, state: State, *, now: bool = False) -> None:
        """Save the states of both runs."""
        self.outer.keep(self.around(state), now=now)
