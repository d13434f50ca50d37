"""A run: whom a computation tells how far it is, when it must end, and where its states are saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .clock import Deadline
from .progress import not_recorded, silent
from .states import State


class Checkpoint:
    """Where the states of a long run are saved, from which a later run continues; this one saves nothing.

    A run offers its state in every round. The checkpoint decides when and where to save it. At its start, a run asks for
    the last saved state.
    """

    def within(self, name: str) -> Checkpoint:  # noqa: ARG002
        """Return the checkpoint of a part of the run."""
        return self

    def saved(self) -> State | None:
        """Return the state that was saved last; None for a new run."""
        return None

    def offer(self, state: Callable[[], State]) -> None:
        """Save the state if the last save is long enough ago."""

    def keep(self, state: State, *, now: bool = False) -> None:
        """Save a state that must not be lost, such as a result: with the next save, or with `now` at once."""


class PartCheckpoint(Checkpoint):
    """The checkpoint of a run within a run: its states are saved as part of the outer one's."""

    def __init__(self, outer: Checkpoint, around: Callable[[State], State]) -> None:
        self.outer, self.around = outer, around

    def offer(self, state: Callable[[], State]) -> None:
        """Offer the states of both runs."""
        self.outer.offer(lambda: self.around(state()))

    def keep(self, state: State, *, now: bool = False) -> None:
        """Save the states of both runs."""
        self.outer.keep(self.around(state), now=now)


#: saves nothing
NO_CHECKPOINT = Checkpoint()
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
    checkpoint: Checkpoint = NO_CHECKPOINT  # saves the states of long computations
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
        return replace(self, checkpoint=self.checkpoint.within(name))

    def saved_by(self, checkpoint: Checkpoint = NO_CHECKPOINT) -> Run:
        """Return a run whose states another checkpoint saves; by default none does."""
        return replace(self, checkpoint=checkpoint)

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
