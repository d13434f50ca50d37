"""Comparison of two methods on blocks of neighbouring rows, which are left out of training.

Rows are often in the order of time or place. A random validation row then has neighbours among the training rows, and a
model that fits these closely looks better than it is on future rows. So blocks are used for validation: the last rows of
each class, and the first rows of each class.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Holdout, Judgement, Task
from ..path import sizes_up_to
from .base import Reducer

#: the share of the rows in a block; more: less noise, fewer training rows
BLOCK = 0.2
#: the most rows that are used; more: less noise, more time
MOST_ROWS = 1 << 15


def better_on_neighbours(
    task: Task, plain: Reducer, other: Reducer, size: int, model: Expansion | None, deadline: Deadline
) -> bool:
    """Return whether another method is better than the plain one on two blocks of neighbouring rows.

    Its error is at most that of the plain one on each block, and lower on both together by more than the standard error of
    the difference. Both methods get the same share of the time until the deadline. With too few rows for a block, it is
    not better.
    """
    part = task.part(task.sample(MOST_ROWS))
    methods, blocks = (("plain", plain), ("other", other)), blocks_of_neighbours(part.groups)
    if not all(block.size for block in blocks):
        return False
    gain, variance = 0.0, 0.0
    for number, block in enumerate(blocks):
        held_out, found = without(part, block), list[Judgement]()
        for name, method in methods:
            share = deadline.share(1 / (len(methods) * (len(blocks) - number) - len(found)))
            kept = replace(held_out, keeper=task.keeper.within(f"neighbours {number}, {name}"))
            found.append(_judged(kept, method, size, model, share))
        if deadline.over or not found[1].error <= found[0].error:
            return False
        gain += found[0].error - found[1].error
        variance += found[0].noise_against(found[1]) ** 2
    return bool(gain > np.sqrt(variance))


def blocks_of_neighbours(groups: Array, share: float = BLOCK) -> list[Array]:
    """Return the numbers of the last rows and those of the first rows, the same share of every group."""
    blocks: list[list[Array]] = [[], []]
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        count = int(share * rows.size)
        blocks[0].append(rows[rows.size - count :])
        blocks[1].append(rows[:count])
    return [np.sort(np.concatenate(parts)) for parts in blocks]


def without(task: Task, block: Array) -> Task:
    """Return the task without some of its rows, which are its validation rows."""
    labels = task.targets.ravel() if task.goal.real else task.goal.decode(task.targets)
    holdout = Holdout(task.rows.subset(block), labels[block], task.weights[block], task.goal)
    rest = np.setdiff1d(np.arange(task.rows.n), block)
    return replace(task.part(rest), holdout=holdout, report=lambda *_: None)


def _judged(task: Task, method: Reducer, size: int, model: Expansion | None, deadline: Deadline) -> Judgement:
    """Return how good a method's model of that size is on the validation rows."""
    path = replace(method, time_limit=deadline.left).path(task, sizes_up_to(size, method.sizes_per_doubling), model)
    return path[-1].judgement
