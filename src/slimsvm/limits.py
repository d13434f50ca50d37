"""Limits on the work of a run, and the work it has done."""

from __future__ import annotations

from dataclasses import dataclass

from .clock import Deadline, check_time_limit
from .model import Status


@dataclass(frozen=True)
class Limits:
    """The most work a run may do: `max_iter` iterations (-1: no limit) and `time_limit` seconds (None: no limit)."""

    max_iter: int = -1
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)

    @property
    def iterations(self) -> float:
        """The largest number of iterations; infinity without a limit."""
        return float("inf") if self.max_iter < 0 else self.max_iter

    def start(self, deadline: Deadline | None = None) -> Effort:
        """Return the effort of a run that begins now; it ends at the deadline if that is earlier than the time limit."""
        return Effort(self, (deadline or Deadline()).within(self.time_limit))


class Effort:
    """The work that a run has done so far: the run counts its iterations in `spent`, the clock counts the seconds."""

    def __init__(self, limits: Limits, deadline: Deadline) -> None:
        self.limits, self.deadline = limits, deadline
        self.spent = 0

    @property
    def left(self) -> float:
        """The number of iterations that remain."""
        return self.limits.iterations - self.spent

    @property
    def share(self) -> float:
        """The share of the iterations or of the time that is used up, whichever is larger."""
        return max(self.spent / max(self.limits.iterations, 1), self.deadline.used)

    def reached(self) -> Status | None:
        """Return the limit that has been reached, or None."""
        if self.left <= 0:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if self.deadline.over else None
