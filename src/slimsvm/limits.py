"""A time limit, and whether it has passed."""

from __future__ import annotations

from time import perf_counter


def check_time_limit(seconds: float | None) -> None:
    """Raise ValueError unless a time limit is a number of seconds or None."""
    if seconds is not None and not seconds > 0:
        raise ValueError(f"time_limit must be a number of seconds above 0, or None, not {seconds!r}")


class Deadline:
    """So many seconds from now; None is never."""

    def __init__(self, seconds: float | None = None) -> None:
        self.end = float("inf") if seconds is None else perf_counter() + seconds

    @property
    def left(self) -> float | None:
        """The seconds that remain, never quite 0; None where there is no end."""
        return None if self.end == float("inf") else max(self.end - perf_counter(), 1e-9)

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return perf_counter() >= self.end
