"""A run: whom a computation tells how far it is, when it must end, and where its states are saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .clock import Deadline
from .keeping import Keeper
from .progress import not_recorded, silent

#: saves nothing
NO_KEEPER = Keeper()
#: never over
NEVER = Deadline()


@dataclass(frozen=True)
class Run:
    """What a computation passes on to its parts. It is never changed: a part gets a narrower one.

    `progress` takes the phase and the share of it that is done, and `history` the phase and measures of the model.
    """

    progress: Callable[[str, float], None] = silent
    history: Callable[..., None] = not_recorded
    deadline: Deadline = NEVER  # when the work must end
    keeper: Keeper = NO_KEEPER  # saves the states of long computations
    phase: str = "train"

    def report(self, done: float) -> None:
        """Say which share of this run is done."""
        self.progress(self.phase, done)

    def record(self, **measures: Any) -> None:
        """Take measures of the model so far, such as its gap."""
        self.history(phase=self.phase, **measures)

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return self.deadline.over

    def within(self, name: str) -> Run:
        """Return the run of a part whose states are saved under this name."""
        return replace(self, keeper=self.keeper.within(name))

    def saved_by(self, keeper: Keeper = NO_KEEPER) -> Run:
        """Return a run whose states another keeper saves; by default none does."""
        return replace(self, keeper=keeper)

    def share(self, share: float) -> Run:
        """Return a run that ends at this share of the time left."""
        return replace(self, deadline=self.deadline.share(share))

    def limited(self, seconds: float | None) -> Run:
        """Return a run that ends in `seconds` from now, or with this one if that is earlier."""
        return replace(self, deadline=self.deadline.within(seconds))

    def part(self, whole: Callable[[float], float]) -> Run:
        """Return the run of a part; `whole` gives the share of this run that is done from the share of the part."""
        return replace(self, progress=lambda phase, done: self.progress(phase, whole(done)))

    def of(self, number: int, count: int) -> Run:
        """Return the run of one of several equal parts, after so many that are done."""
        return self.part(lambda done: (number + done) / count)

    def during(self, phase: str) -> Run:
        """Return the run of another phase."""
        return replace(self, phase=phase)

    def quiet(self) -> Run:
        """Return a run that does not report how far it is."""
        return replace(self, progress=silent)


#: the run of a computation by itself: nobody listens, it has no end, and nothing is saved
BY_ITSELF = Run()
