"""Mini-batches: the order of the rows, pass by pass, and steps of Adam on them in the home of the rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows.metric_problem import MetricLosses
from ..states import go_on
from .adam import Moments, plain_steps, recorded_steps


@dataclass
class SavedBatches:
    """The generator before a pass, and the place in the pass."""

    rng: np.random.Generator
    place: int


class MiniBatches:
    """The numbers of rows for mini-batches, each row at most once in a pass; `shuffled` returns all rows in a new order."""

    def __init__(
        self, shuffled: Callable[[np.random.Generator], Any], rows: int, size: int, rng: np.random.Generator
    ) -> None:
        self.shuffled, self.rows, self.size, self.rng = shuffled, rows, min(size, rows), rng
        self._begin()

    def _begin(self, place: int = 0) -> None:
        """Begin a pass, at a place in the order of its rows."""
        self.before, self.place = deepcopy(self.rng), place
        self.order = self.shuffled(self.rng)

    def __next__(self) -> Any:
        """Return the next batch."""
        if self.place + self.size > self.rows:
            self._begin()
        self.place += self.size
        return self.order[self.place - self.size : self.place]

    def state(self) -> SavedBatches:
        """Return the state that the next batches depend on."""
        return SavedBatches(self.before, self.place)

    def restore(self, saved: SavedBatches) -> None:
        """Continue from a saved state."""
        go_on(self.rng, saved.rng)
        self._begin(saved.place)


def steps_on(there: MetricLosses, batches: MiniBatches, now: Moments) -> Callable[[float], None]:
    """Return a function that takes a step of Adam on the next batch, recorded where the home can do that."""
    held = batches.order[: batches.size] + 0  # recorded steps read the numbers of their rows here
    again = recorded_steps(lambda x: there.on_batch(x, held), now, there.keep_within, there.recorded)
    if again is None:
        return plain_steps(lambda x: there.on_batch(x, next(batches)), now, there.keep_within)

    def step(rate: float) -> None:
        held[...] = next(batches)
        again(rate)

    return step
