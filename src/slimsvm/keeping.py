"""States of long runs, which a later run can continue from: how they are saved, and read back with checks.

A state is a dict of arrays, numbers, strings, lists and dicts of these. A run offers its state to a keeper in every round.
The keeper decides when and where to save it. At its start, a run asks its keeper for the last saved state.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, isnan
from typing import Any

import numpy as np

Array = np.ndarray
State = dict[str, Any]
#: the largest count in a state, of steps, rows or evaluations
MOST = 2**62
#: the largest entry of an array, as of features: products of two are float64 numbers
LARGEST = 1e150


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


class Saved:
    """A state read from a file, which may be damaged or forged: each entry is checked."""

    def __init__(self, state: Any) -> None:
        self.state = state if isinstance(state, dict) else {}

    def array(self, name: str, *shape: int | None, finite: bool = True) -> Array:
        """Return a copy of a float64 array of this shape (None: any size) without NaN; if `finite`, up to LARGEST."""
        found = self._array(name, "float64", *shape)
        if np.isnan(found).any() or (finite and (np.abs(found) > LARGEST).any()):
            raise StateError(f"numbers in {name!r} that are NaN or too large")
        return found

    def places(self, name: str, below: int) -> Array:
        """Return an array of row numbers below a limit, without repetition."""
        found = self._array(name, "int64", None).astype(np.intp)
        if found.size and not 0 <= found.min() <= found.max() < below:
            raise StateError(f"rows in {name!r} that are out of range")
        if np.unique(found).size < found.size:
            raise StateError(f"a row twice in {name!r}")
        return found

    def _array(self, name: str, dtype: str, *shape: int | None) -> Array:
        found = self.state.get(name)
        fits = isinstance(found, np.ndarray) and found.dtype == dtype and len(shape) == found.ndim
        if not fits or any(size not in (None, have) for size, have in zip(shape, found.shape, strict=True)):  # type: ignore[union-attr]
            raise StateError(f"no array {name!r} of shape {shape} and type {dtype}")
        return found.copy()  # type: ignore[union-attr]

    def value(self, name: str, *kinds: type) -> Any:
        """Return an entry of one of these types."""
        found = self.state.get(name)
        if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
            raise StateError(f"no {name!r}")
        return found

    def number(self, name: str, *, finite: bool = False) -> float:
        """Return a number, which is not NaN and, if `finite`, not infinite."""
        try:
            found = float(self.value(name, int, float))
        except OverflowError:
            raise StateError(f"a number {name!r} beyond float64") from None
        if isnan(found) or (finite and not isfinite(found)):
            raise StateError(f"{found} for {name!r}")
        return found

    def count(self, name: str, least: int = 0, most: int = MOST) -> int:
        """Return a whole number from `least` to `most`."""
        found = self.value(name, int)
        if not least <= found <= most:
            raise StateError(f"a {name!r} that is not between {least} and {most}")
        return int(found)

    def part(self, name: str) -> Saved:
        """Return a state within the state."""
        return Saved(self.value(name, dict))

    def parts(self, name: str) -> list[Saved]:
        """Return the states in a list."""
        return [Saved(each) for each in self.value(name, list)]


def rng_state(rng: np.random.Generator) -> State:
    """Return the state of a random generator."""
    return dict(rng.bit_generator.state)


def restore_rng(rng: np.random.Generator, saved: Saved) -> None:
    """Set a random generator to a state. PCG64 needs an odd increment; with others it can return zeros for ever."""
    try:
        if saved.state["state"]["inc"] % 2 != 1:
            raise ValueError("its increment is even")
        rng.bit_generator.state = saved.state
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise StateError(f"no generator ({error})") from error
