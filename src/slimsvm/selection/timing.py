"""The time of a call of predict."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any


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
