"""The choice of a decay by validation: a walk from the usual one, up or down by a factor."""

from __future__ import annotations

from collections.abc import Callable

from ..clock import Deadline
from ..model import Judgement


def best_power(judged: Callable[[int], Judgement], most: int, deadline: Deadline) -> int:
    """Return the power of a factor, from -most to most, at which a model is judged best; 0 is the usual one.

    The walk goes up from 0, or else down, as long as each step is better by more than the standard error of the difference.
    Smaller differences may be chance, and leave the decay as it is. The walk ends at the deadline.
    """
    usual = judged(0)
    for step in (1, -1):
        best, lowest = 0, usual
        while abs(best) < most and not deadline.over:
            other = judged(best + step)
            if not lowest.worse_than(other, 1.0):
                break
            best, lowest = best + step, other
        if best:
            return best
    return 0
