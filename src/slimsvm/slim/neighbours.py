"""Blocks of neighbouring rows, which are left out of training and used for validation.

Rows are often in the order of time or place. A random validation row then has neighbours among the training rows, and a
model that fits these closely looks better than it is on future rows. So blocks are used for validation too: the rows of
each class are cut into pieces, and some of the pieces are left out, the first and the last one among them.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array
from ..model import Holdout, Task

#: the pieces of a class, and those that are left out. More pieces left out: less noise, fewer training rows
PIECES, LEFT_OUT = 15, (0, 3, 7, 11, 14)


def block_numbers(groups: Array) -> Array:
    """Return the number of the block in which each row is left out; -1 for rows that stay, as those of small groups do."""
    numbers, order = np.full(groups.size, -1), np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        if rows.size >= PIECES:
            pieces = np.array_split(rows, PIECES)
            for number, place in enumerate(LEFT_OUT):
                numbers[pieces[place]] = number
    return numbers


def validation_of(task: Task, rows: Array) -> Holdout:
    """Return some of a task's rows as validation rows."""
    targets = task.targets[rows]
    labels = task.goal.scores(targets) if task.goal.real else task.goal.decode(targets)
    return Holdout(task.rows.subset(rows), labels, task.weights[rows], task.goal)
