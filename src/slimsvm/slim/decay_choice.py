"""The choice of a decay by validation: a walk from the usual one, up or down by a factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..clock import Deadline
from ..model import CLEARLY, Judgement


def best_power(judged: Callable[[int], Judgement], most: int, margin: float, deadline: Deadline) -> int:
    """Return the power of a factor, from -most to most, at which a model is judged best; 0 is the usual one.

    The walk goes up from 0, or else down, as long as each step is better by more than `margin` standard errors of the
    difference. Smaller differences may be chance, and leave the decay as it is. The walk ends at the deadline.
    """
    usual = judged(0)
    for step in (1, -1):
        best, lowest = 0, usual
        while abs(best) < most and not deadline.over:
            other = judged(best + step)
            if not lowest.worse_than(other, margin):
                break
            best, lowest = best + step, other
        if best:
            return best
    return 0


def harmless_power(power: int, judged: Callable[[int], Sequence[Judgement]]) -> int:
    """Return the power, or the last one on the way from 0 to it before a step that does harm to blocks (`is_harmless`)."""
    step, found, lowest = int(np.sign(power)), 0, judged(0)
    while found != power:
        other = judged(found + step)
        if not is_harmless(other, lowest):
            break
        found, lowest = found + step, other
    return found


def is_harmless(after: Sequence[Judgement], before: Sequence[Judgement]) -> bool:
    """Return whether a change does no more harm to blocks of neighbouring rows than to random rows, the first judgement.

    The loss on all blocks together rises by no larger share than that on random rows, if that rises at all, within a
    standard error. It is not clearly higher on any block, unless it is so on random rows.
    """
    (random, *blocks), (random_before, *blocks_before) = after, before
    pairs = list(zip(blocks, blocks_before, strict=True))
    together, together_before = (np.mean([block.error for block in each]) for each in (blocks, blocks_before))
    noise = np.sqrt(np.sum([new.noise_against(old) ** 2 for new, old in pairs])) / len(pairs)
    allowed = together_before * max(random.error / max(random_before.error, 1e-300), 1.0) + noise
    if not together <= allowed:
        return False
    return random.worse_than(random_before, CLEARLY) or not any(new.worse_than(old, CLEARLY) for new, old in pairs)
