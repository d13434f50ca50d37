"""The frame of trainers that solve one two-class problem for each output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from ...goals import Goal, OneVsRest
from ...kernels import Array
from ...model import Fit, Status, Task
from ...rows.protocol import Rows


@dataclass(frozen=True)
class Binary:
    """The two-class problem of one output, on the rows that take part in it."""

    rows: Rows
    y: Array  # (n,) of -1 and +1, or real targets
    weights: Array  # (n,), above 0
    rng: np.random.Generator
    start: Array | None  # signed coefficients of an earlier run to start from
    report: Callable[[float], None]  # takes the share done
    goal: Goal = field(default_factory=lambda: OneVsRest(2))


@dataclass(frozen=True)
class Solution:
    """The result of a trainer for one output."""

    dual: Array  # signed coefficients of the problem's rows
    bias: float
    steps: int
    gap: float  # distance from the optimum, in the trainer's own measure
    status: Status


class BinaryTrainer:
    """Base of trainers that solve one output at a time: frozen dataclasses that implement `solve`."""

    #: whether rows may have weights of their own
    weighted: ClassVar[bool] = True
    #: whether targets may be real values (regression, novelty), not only classes
    real_valued: ClassVar[bool] = False
    #: whether the method itself makes the outputs share their points; then fewer outputs are better
    shared: ClassVar[bool] = False

    def solve(self, problem: Binary) -> Solution:
        """Train one output."""
        raise NotImplementedError

    def small(self) -> int:
        """Return the most rows of a problem for which several outputs are solved at once, one in each thread."""
        return 8192

    def fit(self, task: Task, start: Array | None = None) -> Fit:
        """Train every output; `start` holds the signed coefficients (n, q) of an earlier run to start from."""
        n, q = task.targets.shape
        # the rows that take part
        members = [np.arange(n) if task.goal.real else np.flatnonzero(task.targets[:, column]) for column in range(q)]
        rngs, solved = task.rng.spawn(q), dict[int, Solution]()

        def problem(column: int) -> Binary:
            rows = members[column]
            return Binary(
                task.rows if rows.size == n else task.rows.subset(rows),
                task.targets[rows, column],
                task.weights[rows],
                rngs[column],
                None if start is None else start[rows, column],
                partial(_report, task, len(solved), q),
                task.goal,
            )

        if q > 1 and max(rows.size for rows in members) <= min(self.small(), n - 1):
            task.rows.share_out(lambda column: solved.update({column: self.solve(problem(column))}), q)
        else:
            for column in range(q):
                solved[column] = self.solve(problem(column))
        return _assembled(task, members, [solved[column] for column in range(q)])


def _assembled(task: Task, members: list[Array], solutions: list[Solution]) -> Fit:
    """Return one expansion for all outputs; its points are the rows that any output uses."""
    dual = np.zeros(task.targets.shape)
    for column, (rows, solution) in enumerate(zip(members, solutions, strict=True)):
        dual[rows, column] = solution.dual
    support = np.flatnonzero(dual.any(axis=1))
    # by class, as SVC has them, and in the order of the rows
    support = support[np.argsort(task.goal.owner(dual[support]), kind="stable")]
    model = task.expansion(support, dual[support], np.array([solution.bias for solution in solutions]))
    status = Status.worst(solution.status for solution in solutions)
    return Fit(model, status, sum(s.steps for s in solutions), dual, max(s.gap for s in solutions), support=support)


def _report(task: Task, done: int, outputs: int, part: float) -> None:
    task.report("train", (done + part) / outputs)
