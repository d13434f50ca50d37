"""Reports of progress: silent ones, and the share done of a run that closes a gap."""

from __future__ import annotations

from math import isfinite, log


def silent(phase: str, done: float) -> None:
    """Report no progress."""


def no_progress(done: float) -> None:
    """Report no progress of a part."""


class GapProgress:
    """How far a gap has come from its largest value to its goal, on a logarithmic scale.

    The share never falls. A goal of 0 is infinitely far away, so the share stays 0 until it is met.
    """

    def __init__(self, goal: float, largest: float = 0.0) -> None:
        self.goal, self.largest, self.share = goal, largest, 0.0

    def update(self, gap: float) -> float:
        """Take in the gap as it is now and return the share done, from 0 to 1."""
        if gap <= self.goal:
            self.share = 1.0
        elif self.goal > 0 and isfinite(gap):
            self.largest = max(self.largest, gap)
            self.share = max(self.share, log(self.largest / gap) / log(self.largest / self.goal))
        return self.share


class Printed:
    """Reports of progress as lines on standard output, one for each tenth of a phase."""

    def __init__(self, name: str) -> None:
        self.name, self.phase, self.tenths = name, "", -1

    def __call__(self, phase: str, done: float) -> None:
        """Print a line where another tenth is done."""
        if phase != self.phase:
            self.phase, self.tenths = phase, -1
        if int(10 * done) > self.tenths:
            self.tenths = int(10 * done)
            print(f"[{self.name}] {phase} {10 * self.tenths} %", flush=True)
