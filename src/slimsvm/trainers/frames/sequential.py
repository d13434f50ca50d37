"""One row at a time, a block of rows ahead: the frame of Pegasos, SDCA and the perceptron.

These methods look at one row, decide from its margin y_i f(x_i) how far its coefficient moves, and go on with the next.
Here the rows of the next steps are drawn together. The responses of all rows are up to date when a block begins, the
small matrix of the block brings the margins of its later rows up to date with each step, and the rows that moved are
added to all responses in one tiled product at its end. The result is that of the plain loop, step by step, whether rows
repeat within a block or not. It costs n kernel evaluations for each row that moved, and the square of the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ...kernels import Array
from ...limits import check_time_limit
from ...model import Status
from ...rows.responses import Responses
from ...rows.threads import blocks
from .per_output import Binary

#: rows of a block: a share of all rows, so that the look-ahead costs small problems little, but not below and above these
SHARE, SHORTEST, LONGEST = 1 / 64, 128, 256

#: (steps before this one, row, its margin, its alpha, K_ii) -> its new alpha
Rule = Callable[[int, int, float, float, float], float]


@dataclass(frozen=True)
class Limits:
    """Where a run ends at the latest."""

    passes: int
    max_iter: int  # steps; -1 for no limit
    time_limit: float | None = None  # seconds

    def __post_init__(self) -> None:
        if self.passes < 1:
            raise ValueError(f"passes must be 1 at least, not {self.passes!r}")
        check_time_limit(self.time_limit)

    def steps(self, n: int) -> int:
        """The steps that passes and max_iter allow on n rows."""
        return self.passes * n if self.max_iter < 0 else min(self.passes * n, self.max_iter)

    def deadline(self) -> float:
        """When the time is over, by perf_counter, for a run that begins now."""
        return perf_counter() + (np.inf if self.time_limit is None else self.time_limit)


def block_size(n: int) -> int:
    """The steps between two updates of all responses."""
    return int(np.clip(n * SHARE, SHORTEST, LONGEST))


class Walk:
    """The state of one run: s_t = sum_i alpha_i y_i phi(x_i) after t steps, and s_1 + ... + s_t.

    These are the two columns of alpha; an average over the steps is a multiple of the second. The responses are those of
    the first, and with `summed` of the second too. A method says which rows come next (`order`), what a step does
    (`rule`), and how far there is still to go (`gap`).
    """

    def __init__(self, problem: Binary, *, summed: bool = False) -> None:
        self.problem, self.gram, self.y = problem, problem.rows, problem.y
        self.alpha = np.zeros((problem.rows.n, 2))
        self.responses = Responses(problem.rows, 2 if summed else 1)
        self.steps = 0

    def order(self) -> Array:
        """The n rows of the next pass."""
        return self.problem.rng.permutation(self.gram.n)

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:
        """The new alpha of a row."""
        raise NotImplementedError

    def gap(self) -> float:
        """How far from the goal, from what the responses know."""
        raise NotImplementedError

    def margins(self, column: int = 0) -> Array:
        """y_i <s, phi(x_i)> for each row."""
        return self.y * self.responses.values[:, column]

    def run(self, limits: Limits, goal: float) -> Status:
        """Passes over the rows until the gap is at most `goal` between two of them."""
        status = self.passes(limits, goal)
        self.problem.report(1.0)
        return status

    def passes(self, limits: Limits, goal: float) -> Status:
        """Pass after pass, and how that ended."""
        n, deadline, progress = self.gram.n, limits.deadline(), Progress(goal, limits.steps(self.gram.n))
        while True:
            gap = self.gap()
            if gap <= goal:
                return Status.CONVERGED
            if self.steps >= limits.passes * n:
                return Status.PASSED
            progress.update(gap)
            rows = self.order()
            for some in blocks(n, block_size(n)):
                self.problem.report(progress.share(self.steps))
                if self.steps == progress.last_step:
                    return Status.MAX_ITER
                if self.steps and perf_counter() >= deadline:
                    return Status.TIME_LIMIT
                self.look(rows[some][: progress.last_step - self.steps])

    def look(self, rows: Array) -> None:
        """Steps on the rows of one block in turn, then one update of all responses."""
        y = self.y[rows]
        Q = self.gram.block(rows) * np.outer(y, y)
        for sums in (self.alpha, self.responses.values):  # s as it is now is part of the sum once for each step
            sums[:, 1:] += rows.size * sums[:, :1]
        changes = march(Q, y * self.responses.values[rows, 0], self.alpha[:, 0], rows, self.steps, self.rule)
        self.steps += rows.size
        self.add(rows, changes)

    def add(self, rows: Array, changes: Array) -> None:
        """Bring the sums of all rows up to date with the changes of one block."""
        moved = np.flatnonzero(changes)
        support, place = np.unique(rows[moved], return_inverse=True)  # a row that moved twice is evaluated once
        added = np.zeros((support.size, 2))
        times = np.arange(rows.size, 0, -1)  # what a step adds to s is part of the sum from this step on
        np.add.at(added, place, np.column_stack([changes, changes * times])[moved])
        self.alpha[support, 1] += added[:, 1]
        outputs = self.responses.values.shape[1]
        self.responses.add_rows(support, added[:, :outputs] * self.y[support, None])


def march(Q: Array, margins: Array, alpha: Array, rows: Array, first: int, rule: Rule) -> Array:
    """Apply the rule to the rows in turn, writing alpha; returns by how much each step changed it.

    Q holds y_i y_j K_ij of the rows, by which a step moves the margins of the rows still to come.
    """
    changes = np.zeros(rows.size)
    for k, row in enumerate(rows.tolist()):
        before = alpha[row]
        alpha[row] = rule(first + k, row, margins[k], before, Q[k, k])
        if alpha[row] != before:
            changes[k] = alpha[row] - before
            margins[k + 1 :] += changes[k] * Q[k, k + 1 :]
    return changes


class Progress:
    """The share done: of all steps, or of the way from the largest gap to the goal on a logarithmic scale."""

    def __init__(self, goal: float, last_step: int) -> None:
        self.goal, self.last_step = goal, last_step
        self.largest, self.nearer = 0.0, 0.0

    def update(self, gap: float) -> None:
        """Note the gap between two passes."""
        if 0 < self.goal < gap < np.inf:
            self.largest = max(self.largest, gap)
            self.nearer = max(self.nearer, float(np.log(self.largest / gap) / np.log(self.largest / self.goal)))

    def share(self, steps: int) -> float:
        """From 0 to 1, and never back."""
        return max(self.nearer, steps / max(self.last_step, 1))
