"""What validation rows choose: a decay, by a walk from the usual one, and blocks of neighbouring rows beside random rows.

Rows are often in the order of time or place. A random validation row then has neighbours among the training rows, and a
model that fits these closely looks better than it is on future rows. So blocks are used for validation too: the rows of
each class are cut into pieces, and some of the pieces are left out, the first and the last one among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..clock import Deadline
from ..kernels import Array
from ..model import CLEARLY, Expansion, Holdout, Judgement, Task

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


def is_better(model: Expansion, usual: Expansion, judges: Sequence[Holdout], margin: float = 1.0) -> bool:
    """Return whether a model takes the place of the usual one: it is not worse on all rows, nor clearly on some of them.

    It may be worse on all rows by so many standard errors of the difference.
    """
    weights = np.array([float(each.weights.sum()) for each in judges])
    for judged in (Holdout.judge, Holdout.judge_shortfall):
        after, before = ([judged(each, some) for each in judges] for some in (model, usual))
        together, together_before = (Judgement.mean(each, weights / weights.sum()) for each in (after, before))
        if together.worse_than(together_before, margin):
            return False
        if judged is Holdout.judge and any(new.worse_than(old, CLEARLY) for new, old in zip(after, before, strict=True)):
            return False
    return True
