"""Comparison of two methods on blocks of neighbouring rows, which are left out of training (`slim.neighbours`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..kernels import Array
from ..model import CLEARLY, Expansion, Judgement, Task
from ..reducers.base import Reducer
from ..selection.path import sizes_up_to
from .neighbours import block_numbers, without

#: the share of the time for the plain method: learned metrics take longer. More: fewer steps for the other method
PLAIN_SECONDS = 0.4
#: the most rows that are used; more: less noise, and fewer passes over the rows within a time limit
MOST_ROWS = 1 << 15


def better_on_neighbours(task: Task, plain: Reducer, other: Reducer, size: int, model: Expansion | None) -> bool:
    """Return whether another method is better than the plain one on blocks of neighbouring rows.

    Its error is clearly higher on none of the blocks, and clearly lower on all together. The random numbers of the
    task stay as they are, so that later models do not depend on this comparison.
    """
    task = replace(task, rng=task.rng.spawn(1)[0])
    part = task.part(task.sample(MOST_ROWS))
    number = block_numbers(part.groups)
    held_out, numbers = without(part, np.flatnonzero(number >= 0)), number[number >= 0]
    if not numbers.size:
        return False
    losses = list[Array]()
    for name, method, share in (("plain", plain, PLAIN_SECONDS), ("other", other, 1.0)):
        run = held_out.run.within(f"neighbours, {name}").share(share)
        losses.append(_losses(replace(held_out, run=run), method, size, model))
        if name == "plain" and task.run.over:
            return False
    weights = part.weights[number >= 0]

    def judged(some: Array | slice) -> list[Judgement]:
        return [Judgement.of(each[some], weights[some]) for each in losses]

    before, after = judged(slice(None))
    blocks = [judged(numbers == number) for number in np.unique(numbers)]
    return before.worse_than(after, CLEARLY) and not any(other.worse_than(own, CLEARLY) for own, other in blocks)


def _losses(task: Task, method: Reducer, size: int, model: Expansion | None) -> Array:
    """Return the loss of each validation row with a method's model of that size."""
    path = replace(method, time_limit=None).path(task, sizes_up_to(size, method.sizes_per_doubling), model)
    holdout = task.holdout
    return np.zeros(0) if holdout is None else holdout.losses(path[-1].model)
