"""The choice of a decay by validation: a walk from the usual one, up or down by a factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..model import CLEARLY, Judgement

#: standard errors of the difference by which another decay must be better on random validation rows. More: fewer changes
BETTER_BY = 1.0


def best_power(judged: Callable[[int], Sequence[Judgement]], most: int) -> int:
    """Return the power of a factor, from -most to most, at which a model is judged best; 0 is the usual one.

    A model has a judgement on random validation rows, and others on blocks of neighbouring rows if there are any. The walk
    goes up from 0, or else down, as long as each step is better. Small differences may be chance, and leave the decay as it
    is.
    """
    usual = judged(0)
    for step in (1, -1):
        best, lowest = 0, usual
        while abs(best) < most:
            other = judged(best + step)
            if not is_better(other, lowest):
                break
            best, lowest = best + step, other
        if best:
            return best
    return 0


def is_better(other: Sequence[Judgement], present: Sequence[Judgement]) -> bool:
    """Return whether a model is better on random rows by more than chance, and not worse on blocks.

    It is not worse on all blocks together, and clearly worse on none of them.
    """
    (after, *blocks), (before, *blocks_before) = other, present
    if not before.worse_than(after, BETTER_BY):
        return False
    if not blocks:
        return True
    clearly_worse = (new.worse_than(old, CLEARLY) for new, old in zip(blocks, blocks_before, strict=True))
    return mean_error(blocks) <= mean_error(blocks_before) and not any(clearly_worse)


def mean_error(blocks: Sequence[Judgement]) -> float:
    """Return the error on all blocks, which have as many rows each."""
    return float(np.mean([block.error for block in blocks]))


def nearer_to_zero(one: int, other: int) -> int:
    """Return the smaller of two powers in one direction; 0 if they have opposite signs."""
    return int(np.sign(one)) * min(abs(one), abs(other)) if one * other > 0 else 0
