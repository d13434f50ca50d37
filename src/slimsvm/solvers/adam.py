"""Adam (Kingma & Ba 2015) with a cosine rate: descent by gradients that are noisy, as those of mini-batches are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ..kernels import Array
from ..limits import Deadline

#: shares of the past in the running means of the gradient and of its square, and what keeps a division by 0 away
MEAN, SQUARE, TINY = 0.9, 0.999, 1e-12


@dataclass(frozen=True)
class AdamSettings:
    """`steps` with a rate that falls from `rate` to 0 as half a cosine.

    With `seconds`, the rate follows the clock where that is ahead of the steps, so that a run cut short ends at rate 0.
    """

    steps: int
    rate: float
    seconds: float | None = None


def adam(
    gradient: Callable[[Array], Array],
    start: Array,
    settings: AdamSettings,
    deadline: Deadline,
    within: Callable[[Array], None] | None = None,
) -> Array:
    """Return where a descent from `start`, a vector, ends. `within` brings a vector back into its bounds, in place."""
    x, mean, square, work = start.copy(), np.zeros(start.size), np.zeros(start.size), np.empty(start.size)
    begun = perf_counter()
    for step in range(1, settings.steps + 1):
        share = step / settings.steps
        if settings.seconds is not None:
            share = max(share, (perf_counter() - begun) / settings.seconds)
        if share > 1 or deadline.over:
            break
        slope = gradient(x)
        # in place: fresh memory for vectors of this length would take longer than the numbers in it
        mean *= MEAN
        mean += np.multiply(1 - MEAN, slope, out=work)
        square *= SQUARE
        np.multiply(slope, slope, out=work)
        work *= 1 - SQUARE
        square += work
        np.sqrt(square, out=work)
        work += TINY
        np.divide(mean, work, out=work)
        work *= np.sqrt(1 - SQUARE**step)
        work *= settings.rate * 0.5 * (1 + np.cos(np.pi * share)) / (1 - MEAN**step)
        x -= work
        if within is not None:
            within(x)
    return x
