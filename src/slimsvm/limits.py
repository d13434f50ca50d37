"""Limits on the work of a run, and the clock that measures it."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from .model import Status


def check_time_limit(seconds: float | None) -> None:
    """Raise ValueError unless a time limit is a number of seconds or None."""
    if seconds is not None and not seconds > 0:
        raise ValueError(f"time_limit must be a number of seconds above 0, or None, not {seconds!r}")


class Deadline:
    """A point in time, so many seconds from now; None means never."""

    def __init__(self, seconds: float | None = None) -> None:
        self.end = float("inf") if seconds is None else perf_counter() + seconds

    @property
    def left(self) -> float | None:
        """The seconds that remain, always above 0; None without a deadline."""
        return None if self.end == float("inf") else max(self.end - perf_counter(), 1e-9)

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return perf_counter() >= self.end


@dataclass(frozen=True)
class Limits:
    """The most work a run may do: `max_iter` iterations (-1: no limit) and `time_limit` seconds (None: no limit)."""

    max_iter: int = -1
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)

    @property
    def iterations(self) -> float:
        """The most iterations, infinity without a limit."""
        return float("inf") if self.max_iter < 0 else self.max_iter

    def start(self) -> Effort:
        """Return the effort of a run that begins now."""
        return Effort(self)


class Effort:
    """The work that a run has done so far: the run counts its iterations in `spent`, the clock counts the seconds."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.deadline = limits, Deadline(limits.time_limit)
        self.spent = 0

    @property
    def left(self) -> float:
        """The number of iterations that remain."""
        return self.limits.iterations - self.spent

    @property
    def share(self) -> float:
        """The share of the iterations or of the time that is used up, whichever is larger."""
        seconds = self.deadline.left
        time_share = 0.0 if seconds is None else 1 - seconds / (self.limits.time_limit or 1.0)
        return max(self.spent / max(self.limits.iterations, 1), time_share)

    def reached(self) -> Status | None:
        """Return the limit that has been reached, or None."""
        if self.left <= 0:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if self.deadline.over else None
