"""The frame of Pegasos, SDCA and the perceptron, which learn from one row at a time.

These methods take one row, compute the change of its coefficient from its margin y_i f(x_i), and go on to the next row.
Here the rows of the next steps are drawn together, as a block. The responses of all rows are up to date at the start of a
block. Within it, each step updates the margins of the later rows from the small kernel matrix of the block. At its end the
rows that moved are added to all responses in one product. The result is that of the plain loop, step by step, even if rows
repeat within a block. It costs n kernel evaluations for each row that moved, and the square of the block.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernels import Array
from ..limits import Limits
from ..model import Status
from ..progress import GapProgress
from ..rows.responses import Responses
from ..rows.threads import blocks
from ..trainers.frames.per_output import Binary

#: the size of a block as a share of all rows, its least and its largest size; larger: fewer updates of all responses, and
#: more kernel values within the block
SHARE, SHORTEST, LONGEST = 1 / 64, 128, 256

#: (steps before this one, row, its margin, its alpha, K_ii) -> its new alpha
Rule = Callable[[int, int, float, float, float], float]


def check_passes(passes: int) -> None:
    """Raise ValueError unless there is at least one pass."""
    if passes < 1:
        raise ValueError(f"passes must be 1 at least, not {passes!r}")


def block_size(n: int) -> int:
    """Return the number of steps between two updates of all responses."""
    return int(np.clip(n * SHARE, SHORTEST, LONGEST))


class SequentialRun:
    """The state of one run: s_t = sum_i alpha_i y_i phi(x_i) after t steps, and the sum s_1 + ... + s_t.

    Column 0 of `alpha` has the coefficients of s_t and column 1 those of the sum; an average over the steps is a multiple
    of the sum. `responses` has the values of s_t, and with `summed` those of the sum too. A method defines the rows of a
    pass (`order`), the change of a step (`rule`) and the distance from its goal (`gap`). A run that starts from an earlier
    one has made `before` steps already.
    """

    def __init__(self, problem: Binary, *, summed: bool = False) -> None:
        self.problem, self.rows, self.y = problem, problem.rows, problem.y
        self.alpha = np.zeros((problem.rows.n, 2))
        self.responses = Responses(problem.rows, 2 if summed else 1)
        self.steps = self.before = 0

    def begin_from(self, alpha: Array, before: int = 0) -> None:
        """Start with an alpha, (n, 1) or with the sum (n, 2), as after this many steps."""
        outputs, support = self.responses.values.shape[1], np.flatnonzero(alpha.any(axis=1))
        self.alpha[:, : alpha.shape[1]] = alpha
        self.responses.add_rows(support, alpha[support, :outputs] * self.y[support, None])
        self.before = before

    def order(self) -> Array:
        """Return the n rows of the next pass."""
        return self.problem.rng.permutation(self.rows.n)

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:
        """Return the new alpha of a row."""
        raise NotImplementedError

    def gap(self) -> float:
        """Return the distance from the goal, computed from the responses."""
        raise NotImplementedError

    @property
    def taken(self) -> int:
        """The number of steps, with those before this run."""
        return self.before + self.steps

    def margins(self, column: int = 0) -> Array:
        """Return y_i <s, phi(x_i)> for each row, with s that of a column of alpha."""
        return self.y * self.responses.values[:, column]

    def run(self, passes: int, limits: Limits, goal: float) -> Status:
        """Make passes over the rows until the gap is at most `goal` at the end of one, and return how the run ended."""
        status = self.make_passes(passes, limits, goal)
        self.problem.report(1.0)
        return status

    def make_passes(self, passes: int, limits: Limits, goal: float) -> Status:
        """Make the passes of `run`; the limits are checked before each block."""
        n, effort, progress = self.rows.n, limits.start(self.problem.deadline), GapProgress(goal)
        last_step = int(min(passes * n, limits.iterations))
        while True:
            gap = self.gap()
            self.problem.record(gap=gap)
            progress.update(gap)
            if gap <= goal:
                return Status.CONVERGED
            if self.steps >= passes * n:
                return Status.PASSED
            order = self.order()
            for some in blocks(n, block_size(n)):
                self.problem.report(max(progress.share, self.steps / max(last_step, 1)))
                if self.steps == last_step:
                    return Status.MAX_ITER
                if self.steps and effort.deadline.over:
                    return Status.TIME_LIMIT
                self.run_block(order[some][: last_step - self.steps])

    def run_block(self, rows: Array) -> None:
        """Make a step on each row of a block in turn, then update all responses once."""
        y = self.y[rows]
        Q = self.rows.block(rows) * np.outer(y, y)
        for sums in (self.alpha, self.responses.values):  # each step of the block adds the present s to the sum
            sums[:, 1:] += rows.size * sums[:, :1]
        changes = apply_rule(Q, y * self.responses.values[rows, 0], self.alpha[:, 0], rows, self.taken, self.rule)
        self.steps += rows.size
        self.add_changes(rows, changes)

    def add_changes(self, rows: Array, changes: Array) -> None:
        """Add the changes of one block to the responses of all rows."""
        moved = np.flatnonzero(changes)
        support, place = np.unique(rows[moved], return_inverse=True)  # a row that moved twice needs its kernel row once
        added = np.zeros((support.size, 2))
        times = np.arange(rows.size, 0, -1)  # the change of a step is part of the sum from this step on
        np.add.at(added, place, np.column_stack([changes, changes * times])[moved])
        self.alpha[support, 1] += added[:, 1]
        outputs = self.responses.values.shape[1]
        self.responses.add_rows(support, added[:, :outputs] * self.y[support, None])


def apply_rule(Q: Array, margins: Array, alpha: Array, rows: Array, first: int, rule: Rule) -> Array:
    """Apply the rule to the rows in turn, update their alpha, and return the change of alpha by each step.

    Q holds y_i y_j K_ij of the rows. A step uses it to update the margins of the later rows.
    """
    changes = np.zeros(rows.size)
    for k, row in enumerate(rows.tolist()):
        before = alpha[row]
        alpha[row] = rule(first + k, row, margins[k], before, Q[k, k])
        if alpha[row] != before:
            changes[k] = alpha[row] - before
            margins[k + 1 :] += changes[k] * Q[k, k + 1 :]
    return changes
