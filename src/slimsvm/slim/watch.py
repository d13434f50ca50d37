"""What a descent remembers: the vector of its lowest loss, and that of its lowest validation loss."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np

from ..kernels import Array
from ..model import Judgement

#: evaluations of L-BFGS between two checks of the validation loss
STEPS_BETWEEN = 10


class Lowest:
    """A loss that remembers the vector with its lowest value: L-BFGS may step to where the loss is infinite."""

    def __init__(self, loss: Callable[[Array], tuple[float, Array]], start: Array) -> None:
        self.loss, self.x, self.value = loss, start, np.inf
        self(start)

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the loss and its gradient."""
        value, gradient = self.loss(x)
        if value < self.value:
            self.x, self.value = x.copy(), value
        return value, gradient


class Watch:
    """The validation loss along a descent, and the vector at which it was lowest.

    It is checked every so many mini-batches (`every`), and at every `STEPS_BETWEEN` evaluations of L-BFGS.
    """

    def __init__(self, judged: Callable[[Array], Judgement] | None, every: float, start: Array) -> None:
        self.judged, self.every, self.x = judged, every, start
        self.lowest = None if judged is None else judged(start)

    def __call__(self, x: Array) -> None:
        """Check a vector."""
        if self.judged is None or self.lowest is None:
            return
        found = self.judged(x)
        if found.error < self.lowest.error:
            self.x, self.lowest = x.copy(), found

    def is_due(self, steps: int) -> bool:
        """Return whether so many mini-batches end an interval between two checks."""
        return self.judged is not None and int(steps / self.every) > int((steps - 1) / self.every)

    def beside(self, seen: Lowest) -> Callable[[Array], tuple[float, Array]]:
        """Return the loss, with checks of the vector of its lowest value so far."""
        evaluations = count(1)

        def watched(x: Array) -> tuple[float, Array]:
            found = seen(x)
            if next(evaluations) % STEPS_BETWEEN == 0:
                self(seen.x)
            return found

        return watched

    def earlier_than(self, end: Array) -> Array | None:
        """Return the best vector if that at the end is clearly worse; None if the end is as good."""
        if self.judged is None or self.lowest is None:
            return None
        return self.x if self.judged(end).worse_than(self.lowest, 1.0) else None

    @property
    def kept(self) -> Array | None:
        """The vector of the lowest loss, for a checkpoint; None if nothing is watched."""
        return None if self.judged is None else self.x
