"""Reports of progress: the share of a run that is done, and a history of how good the model was after how many seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, log
from threading import Lock
from time import perf_counter
from typing import Any

from .states import Finite

#: rounds after which a run whose gap has not fallen yet counts as a quarter done; more: bars that move more slowly
ROUNDS = 200
#: least time between two entries of a history, as a share of the seconds so far and in seconds; more: fewer entries
SPARSE, SHORTEST = 0.02, 0.01


def silent(*_: Any) -> None:
    """Report no progress."""


def no_progress(done: float) -> None:
    """Report no progress of a part."""


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
