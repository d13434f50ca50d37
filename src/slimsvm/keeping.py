"""What a long run leaves for a later one to go on from: states that are kept, and read back with checks.

A state is a dict of arrays, numbers, words, lists and dicts of these. A run offers its state in every round; whether and
where it is saved is the keeper's matter. A run that begins asks its keeper for the state saved last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
State = dict[str, Any]


class Keeper:
    """Where a run leaves its states; this one keeps nothing."""

    def within(self, name: str) -> Keeper:  # noqa: ARG002
        """Return the keeper of a part of the run."""
        return self

    def saved(self) -> State | None:
        """Return the state that was saved last; None where the run begins."""
        return None

    def offer(self, state: Callable[[], State]) -> None:
        """Save the state if the time for it has come."""

    def keep(self, state: State, *, now: bool = False) -> None:
        """Keep a state that must not be lost, such as a result: with the next save, or with `now` at once."""


class PartKeeper(Keeper):
    """The keeper of a run within a run: its states are saved as part of the outer one's."""

    def __init__(self, outer: Keeper, around: Callable[[State], State]) -> None:
        self.outer, self.around = outer, around

    def offer(self, state: Callable[[], State]) -> None:
        """Offer the state of both."""
        self.outer.offer(lambda: self.around(state()))

    def keep(self, state: State, *, now: bool = False) -> None:
        """Keep the state of both."""
        self.outer.keep(self.around(state), now=now)


class Saved:
    """A state read back from a file, which may be damaged or made by somebody else: each entry is checked."""

    def __init__(self, state: Any) -> None:
        self.state = state if isinstance(state, dict) else {}

    def array(self, name: str, *shape: int | None, kind: str = "f") -> Array:
        """Return a copy of an array of this shape (None: any size), of floats ("f") or of whole numbers ("i")."""
        found = self.state.get(name)
        fits = isinstance(found, np.ndarray) and found.dtype.kind == kind and len(shape) == found.ndim
        if not fits or any(size not in (None, have) for size, have in zip(shape, found.shape, strict=True)):  # type: ignore[union-attr]
            raise ValueError(f"its state has no array {name!r} of shape {shape}; begin anew without this checkpoint")
        return found.copy()  # type: ignore[union-attr]

    def places(self, name: str, below: int) -> Array:
        """Return an array of row numbers below a limit."""
        found = self.array(name, None, kind="i").astype(np.intp)
        if found.size and not 0 <= found.min() <= found.max() < below:
            raise ValueError(f"its state has rows in {name!r} that are not there; begin anew without this checkpoint")
        return found

    def value(self, name: str, *kinds: type) -> Any:
        """Return an entry of one of these types."""
        found = self.state.get(name)
        if not isinstance(found, kinds):
            raise ValueError(f"its state has no {name!r}; begin anew without this checkpoint")
        return found

    def number(self, name: str) -> float:
        """Return a number."""
        return float(self.value(name, int, float))

    def part(self, name: str) -> Saved:
        """Return a state within the state."""
        return Saved(self.value(name, dict))

    def parts(self, name: str) -> list[Saved]:
        """Return the states in a list."""
        return [Saved(each) for each in self.value(name, list)]


def rng_state(rng: np.random.Generator) -> State:
    """Return the state of a generator."""
    return dict(rng.bit_generator.state)


def restore_rng(rng: np.random.Generator, saved: Saved) -> None:
    """Set a generator to a state."""
    try:
        rng.bit_generator.state = saved.state
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"its state has no generator ({error}); begin anew without this checkpoint") from error
