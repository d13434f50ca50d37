"""The frame of trainers that learn row by row on the host (`solvers.online`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import ClassVar

import numpy as np

from ...checks import check_count
from ...clock import check_time_limit
from ...kernels import Array
from ...model import Fit, Status, Task
from ...solvers.online import Learner, State
from ..base import Trainer


@dataclass(frozen=True)
class OnlineTrainer(Trainer):
    """Base of trainers that learn row by row on the host with at most `budget` points; each one names its `learner`.

    `fit` makes `passes` over the rows, each in a new random order unless `shuffle` is off. Streams use `begin` and `learn`;
    they may be larger than memory. Rows of any home are fetched to the host a block at a time. `time_limit` is in seconds;
    the rows that it leaves out are not learned from. A warm start continues from the last state and makes as many passes
    more: two fits of one pass are one fit of two.
    """

    weighted: ClassVar[bool] = False
    shared: ClassVar[bool] = True
    starts_warm: ClassVar[bool] = True
    learner: ClassVar[type[Learner]]

    budget: int | None = None
    passes: int = 1
    shuffle: bool = True
    time_limit: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        if self.budget is not None:
            check_count(self.budget)
        if not isinstance(self.passes, Integral) or self.passes < 1:
            raise ValueError(f"passes must be 1, 2, ... passes over the rows, not {self.passes!r}")

    def fit(self, task: Task, start: State | None = None) -> Fit:
        """Learn from the rows of the task, from the beginning or from the state of an earlier run."""
        state, run = start or self.begin(task), task.run.limited(self.time_limit)
        n, seen = task.targets.shape[0], state.seen
        last = seen + self.passes * n
        for number in range(-(-last // n)):
            order = task.rng.permutation(n) if self.shuffle else np.arange(n)
            remaining = order[max(seen - number * n, 0) : last - number * n]  # without the rows of earlier runs

            def whole(part: float, before: int = state.seen, rows: int = remaining.size) -> float:
                return (before - seen + part * rows) / (self.passes * n)

            if remaining.size:
                state = self.learn(state, replace(task, run=run.part(whole)), remaining)
                if run.over:
                    break
        status = Status.PASSED if state.seen == last else Status.TIME_LIMIT
        return Fit(state.expansion(task.rows.kernel), status, state.seen - seen, None, np.nan, state)

    def learner_of(self, state: State) -> type[Learner]:  # noqa: ARG002
        """Return the learner that continues from a state."""
        return self.learner

    def begin(self, task: Task) -> State:
        """Return the state before the first row, for the kernel, the form of rows and the outputs of the task."""
        return State(
            points=task.rows.take(np.arange(0)),
            coef=np.zeros((0, task.targets.shape[1])),
            among=np.zeros((0, 0)),
            born=np.zeros(0, dtype=np.int64),
            rng=task.rng.spawn(1)[0],
        )

    def learn(self, state: State, task: Task, order: Array) -> State:
        """Return the state after learning from the rows of the task in this order; the given state does not change.

        At the deadline, the rest of the rows is left out.
        """
        if self.budget is None:
            raise ValueError(f"{type(self).__name__} needs a budget: a number of support vectors, such as 100")
        room = min(self.budget + 1, state.coef.shape[0] + order.size)
        learner = self.learner_of(state)(self, state, room)
        learner.learn(task.rows, order, learner.labels(task.targets), task.weights, task.run)
        return learner.state()
