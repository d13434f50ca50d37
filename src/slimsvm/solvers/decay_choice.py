"""The choice of a decay by validation: a walk from the usual one, up or down by a factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..model import CLEARLY, Judgement


def best_power(judged: Callable[[int], Judgement], most: int, margin: float) -> int:
    """Return the power of a factor, from -most to most, at which a model is judged best; 0 is the usual one.

    The walk goes up from 0, or else down, as long as each step is better by more than `margin` standard errors of the
    difference. Smaller differences may be chance, and leave the decay as it is.
    """
    usual = judged(0)
    for step in (1, -1):
        best, lowest = 0, usual
        while abs(best) < most:
            other = judged(best + step)
            if not lowest.worse_than(other, margin):
                break
            best, lowest = best + step, other
        if best:
            return best
    return 0


def harmless_power(power: int, judged: Callable[[int], Sequence[Judgement]]) -> int:
    """Return the power, or the last one on the way from 0 to it before a step that makes a model worse on blocks."""
    step, found, lowest = int(np.sign(power)), 0, judged(0)
    while found != power:
        other = judged(found + step)
        if not is_harmless(other, lowest):
            break
        found, lowest = found + step, other
    return found


def is_harmless(blocks: Sequence[Judgement], before: Sequence[Judgement]) -> bool:
    """Return whether a model is not worse on all blocks together, and clearly worse on none of them."""
    pairs = list(zip(blocks, before, strict=True))
    together = np.mean([after.error - earlier.error for after, earlier in pairs])
    return bool(together <= 0) and not any(after.worse_than(earlier, CLEARLY) for after, earlier in pairs)
