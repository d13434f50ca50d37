"""A run: whom a computation tells how far it is, when it must end, and where its states are saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite, log
from threading import Lock
from time import perf_counter
from typing import Any

from .clock import Deadline
from .states import Finite, State

#: rounds after which a run whose gap has not fallen yet counts as a quarter done; more: bars that move more slowly
ROUNDS = 200
#: least time between two entries of a history, as a share of the seconds so far and in seconds; more: fewer entries
SPARSE, SHORTEST = 0.02, 0.01


def silent(*_: Any) -> None:
    """Report no progress."""


def not_recorded(**measures: Any) -> None:
    """Record nothing."""


@dataclass
class GapProgress:
    """The share done of a run that closes a gap: from its largest value to its goal, on a logarithmic scale.

    The share never falls. A gap often grows before it falls, so rounds count too: they fill half of the rest, r rounds a
    share of r / (r + `quarter`) of it. The share therefore grows in every round, and reaches 1 only at the goal. A goal of
    0 is infinitely far on this scale, so only rounds count until the gap is 0.
    """

    goal: float
    largest: Finite = 0.0
    rounds: int = 0
    quarter: float = ROUNDS
    closed: float = field(default=0.0, init=False)
    share: float = field(default=0.0, init=False)

    def update(self, gap: float) -> float:
        """Return the share done, from 0 to 1, after another round with this gap."""
        if gap <= self.goal:
            self.closed = 1.0
        elif self.goal > 0 and isfinite(gap):
            self.largest = max(self.largest, gap)
            self.closed = max(self.closed, log(self.largest / gap) / log(self.largest / self.goal))
        self.share = max(self.share, self.closed + (1 - self.closed) * 0.5 * self.rounds / (self.rounds + self.quarter))
        self.rounds += 1
        return self.share

    def inside(self, part: float) -> float:
        """Return the share done when a part of the next round is done; the round fills half of the rest at most."""
        return self.share + (1 - self.share) * 0.5 * part


class History:
    """Measures of the model by seconds: a few hundred entries at most.

    Each entry is a dict with the `phase`, the `seconds` since the start, and measures: the `gap` of training, or the
    validation `error` and `size` of a small model.
    """

    def __init__(self) -> None:
        self.begun, self.entries = perf_counter(), list[dict[str, Any]]()
        self.latest: dict[str, float] = {}
        self.lock = Lock()  # outputs are trained by several threads

    def record(self, phase: str, **measures: float) -> None:
        """Add an entry, unless the last one of the phase is from nearly the same time."""
        seconds = perf_counter() - self.begun
        with self.lock:
            self.latest = {"seconds": seconds, **measures}
            last: dict[str, Any] = self.entries[-1] if self.entries else {"phase": "", "seconds": 0.0}
            early = seconds < last["seconds"] * (1 + SPARSE) + SHORTEST
            if last["phase"] != phase or "size" in measures or not early:
                self.entries.append({"phase": phase, **self.latest})

    def words(self) -> str:
        """Return the latest measures as text."""
        return "".join(f", {name} {value:.3g}" for name, value in self.latest.items() if name != "seconds")


class Printed:
    """Reports of progress as lines on standard output, one for each tenth of a phase, with the seconds and the measures."""

    def __init__(self, name: str, history: History | None = None) -> None:
        self.name, self.history, self.phase, self.tenths = name, history or History(), "", -1

    def __call__(self, phase: str, done: float) -> None:
        """Print a line if another tenth is done."""
        if phase != self.phase:
            self.phase, self.tenths = phase, -1
        if int(10 * done) > self.tenths:
            self.tenths = int(10 * done)
            seconds = perf_counter() - self.history.begun
            print(f"[{self.name}] {phase} {10 * self.tenths} %, {seconds:.1f} s{self.history.words()}", flush=True)


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
