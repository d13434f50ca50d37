"""Deadlines and time limits."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from time import perf_counter
from typing import Any


def check_time_limit(seconds: float | None) -> None:
    """Raise ValueError unless a time limit is a number of seconds or None."""
    if seconds is not None and not (isinstance(seconds, Real) and float(seconds) > 0):
        raise ValueError(f"time_limit must be a number of seconds above 0, or None, not {seconds!r}")


class Deadline:
    """A point in time, `seconds` from now; None means never."""

    def __init__(self, seconds: float | None = None) -> None:
        self.begun = perf_counter()
        self.end = float("inf") if seconds is None else self.begun + seconds

    @property
    def left(self) -> float | None:
        """The seconds that remain, always above 0; None without a deadline."""
        return None if self.end == float("inf") else max(self.end - perf_counter(), 1e-9)

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return perf_counter() >= self.end

    @property
    def used(self) -> float:
        """The share of the time that is used up; 0 without a deadline."""
        return 0.0 if self.left is None else min((perf_counter() - self.begun) / max(self.end - self.begun, 1e-9), 1.0)

    def within(self, seconds: float | None) -> Deadline:
        """Return a deadline in `seconds` from now, or this one if it is earlier."""
        known = [limit for limit in (seconds, self.left) if limit is not None]
        return Deadline(min(known, default=None))

    def share(self, share: float) -> Deadline:
        """Return a deadline at this share of the time left."""
        return Deadline(None if self.left is None else share * self.left)


def microseconds(call: Callable[[], Any], calls: int = 200, seconds: float = 0.05, least: int = 1) -> float:
    """Return the time of the fastest of several calls; after that many seconds no more are made than the `least`."""
    best, end = float("inf"), perf_counter() + seconds
    for number in range(1, calls + 1):
        start = perf_counter()
        call()
        now = perf_counter()
        best = min(best, now - start)
        if now > end and number >= least:
            break
    return 1e6 * best
