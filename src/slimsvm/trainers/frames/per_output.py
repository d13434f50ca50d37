"""The frame of trainers that solve one two-class problem for each output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from ...goals import Goal, OneVsRest
from ...kernels import Array
from ...model import Expansion, Fit, Status, Task
from ...pairs import PairCoefficients, PairDual, PairTargets
from ...rows.protocol import Rows
from ...run import BY_ITSELF, Run
from ...solvers.class_pairs import OneAgainst
from ...states import Finite, State, floats, pack, unpack
from ..base import Trainer

#: several outputs are solved at once, one in each thread, if their problems have at most this many working sets of rows:
#: smaller problems leave most threads idle
WORKING_SETS = 4


@dataclass(frozen=True)
class Binary:
    """The two-class problem of one output, on the rows that take part in it."""

    rows: Rows
    y: Array  # (n,) of -1 and +1, or real targets
    weights: Array  # (n,), above 0
    rng: np.random.Generator
    start: Array | None  # signed coefficients of an earlier run to start from
    goal: Goal = field(default_factory=lambda: OneVsRest(2))
    run: Run = BY_ITSELF
    saved: State | None = None  # the state to continue from
    draws: int = 0  # the rows that `start` was learned from, repeated ones too; 0: unknown


@dataclass(frozen=True)
class Solution:
    """The result of a trainer for one output."""

    dual: Annotated[Array, floats("n")]  # signed coefficients of the problem's rows
    bias: Finite
    steps: int
    gap: float  # distance from the optimum, in the trainer's own measure
    status: Status
    draws: int = 0  # the rows learned from, repeated ones and those of the start too, where steps get shorter with them
    outputs: Annotated[Array, floats("n")] | None = None  # of the model on the problem's rows, where they are worth keeping


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a training after steps were made; `found` is what there is by then, a Solution or a Fit."""

    def __init__(self, found: Any) -> None:
        super().__init__(Status.INTERRUPTED.value)
        self.found = found


class BinaryTrainer(Trainer):
    """Base of trainers that solve one output at a time: frozen dataclasses that implement `solve`."""

    takes_pairs: ClassVar[bool] = True

    def solve(self, problem: Binary) -> Solution:
        """Train one output."""
        raise NotImplementedError

    def solve_together(self, pairs: Pairs) -> None:
        """Solve and store pairs of classes that the method can solve many at a time; none by default."""

    def fit(self, task: Task, start: Array | PairDual | None = None, draws: Array | None = None) -> Fit:
        """Train every output; `start` holds the signed coefficients (n, q) of an earlier run to start from.

        `draws` are those of the `Fit` of that run, if it was one of the same method.
        """
        outputs: Pairs | _Columns = Pairs(task) if isinstance(task.targets, PairTargets) else _Columns(task)
        q = task.targets.shape[1]
        if isinstance(outputs, Pairs) and start is None:
            self.solve_together(outputs)
            outputs.begun = outputs.done
        unsolved = outputs.unsolved()
        rngs = task.rng.spawn(q) if unsolved.size else []

        def train(column: int) -> None:
            rows, y = outputs.problem(column)
            run = task.run.within(f"output {column}").of(outputs.done, q)
            saved = run.checkpoint.saved()
            if isinstance(saved, dict) and "dual" in saved:
                outputs.store(column, unpack(Solution, saved, n=rows.size))
                return
            problem = Binary(
                task.rows if rows.size == task.rows.n else task.rows.subset(rows),
                y,
                task.weights[rows],
                rngs[column],
                None if start is None else start[rows, column],
                task.goal,
                run.share(1 / max(q - outputs.begun, 1)),
                saved,
                0 if start is None or draws is None else int(draws[column]),
            )
            outputs.begun += 1
            try:
                solution = self.solve(problem)
            except TrainingInterrupted as stop:
                if q > 1:
                    raise KeyboardInterrupt from None  # other outputs have nothing yet
                outputs.store(column, stop.found)
                raise TrainingInterrupted(outputs.fit()) from None
            if solution.status is not Status.TIME_LIMIT:  # a later run with more time continues
                run.checkpoint.keep(pack(solution))
            outputs.store(column, solution)

        few_rows = WORKING_SETS * (getattr(self, "working_set", None) or task.rows.working_set)
        if q > 1 and outputs.largest() <= min(few_rows, task.rows.n - 1):
            task.rows.share_out(lambda number: train(int(unsolved[number])), unsolved.size)
        else:
            for column in unsolved.tolist():
                train(column)
        return outputs.fit()


class _Outputs:
    """The problems of all outputs and their results: biases, steps, the largest gap and the worst status."""

    def __init__(self, task: Task) -> None:
        q = task.targets.shape[1]
        self.task, self.bias, self.gap = task, np.zeros(q), np.zeros(q)
        self.steps, self.draws = np.zeros((2, q), dtype=np.int64)
        self.status: list[Status | None] = [None] * q
        self.outputs: Array | None = None  # of the output stored last
        self.done = self.begun = 0

    def problem(self, column: int) -> tuple[Array, Array]:
        """Return the rows that take part in an output, and their targets."""
        raise NotImplementedError

    def keep(self, column: int, dual: Array) -> None:
        """Store the coefficients of an output."""
        raise NotImplementedError

    def model(self) -> tuple[Expansion, Any, Array]:
        """Return one expansion for all outputs, the coefficients of all rows, and the rows that are points, by class."""
        raise NotImplementedError

    def store(self, column: int, solution: Solution) -> None:
        """Store the solution of an output; several threads store different outputs."""
        self.keep(column, solution.dual)
        self.bias[column], self.steps[column], self.gap[column] = solution.bias, solution.steps, solution.gap
        self.status[column], self.draws[column] = solution.status, solution.draws
        self.outputs = solution.outputs
        self.done += 1

    def unsolved(self) -> Array:
        """Return the outputs that have no solution yet."""
        return np.array([column for column, status in enumerate(self.status) if status is None], dtype=np.intp)

    def fit(self) -> Fit:
        """Return the result of all outputs."""
        model, dual, support = self.model()
        status = Status.worst({status for status in self.status if status is not None})
        known = self.outputs[:, None] if self.outputs is not None and self.bias.size == 1 else None
        more = {"support": support, "draws": self.draws, "outputs": known}
        return Fit(model, status, int(self.steps.sum()), dual, float(self.gap.max()), **more)


class _Columns(_Outputs):
    """Outputs whose targets are written out, (n, q)."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.dual: Array = np.zeros(task.targets.shape)
        everyone = np.arange(task.rows.n)
        self.members = [everyone if task.goal.real else np.flatnonzero(targets) for targets in task.targets.T]

    def largest(self) -> int:
        """Return the number of rows of the largest problem."""
        return max(rows.size for rows in self.members)

    def problem(self, column: int) -> tuple[Array, Array]:
        """Return the rows whose target is not 0."""
        rows = self.members[column]
        return rows, self.task.targets[rows, column]

    def keep(self, column: int, dual: Array) -> None:
        self.dual[self.members[column], column] = dual

    def model(self) -> tuple[Expansion, Any, Array]:
        """Return the expansion on the rows that any output uses."""
        support = np.flatnonzero(self.dual.any(axis=1))
        if self.dual.shape[1] == 1 and not self.task.goal.real:  # two classes; the order is SVC's
            support = support[np.argsort(self.dual[support, 0] > 0, kind="stable")]
        return self.task.expansion(support, self.dual[support], self.bias), self.dual, support


class Pairs(_Outputs):
    """An output for each pair of classes; coefficients are kept against the other classes, (n, k - 1)."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.targets: PairTargets = task.targets  # type: ignore[assignment]
        self.against = np.zeros((task.rows.n, self.targets.n_classes - 1))

    def largest(self) -> int:
        """Return the number of rows of the largest problem."""
        return sum(sorted(group.size for group in self.targets.groups)[-2:])

    def problem(self, column: int) -> tuple[Array, Array]:
        """Return the rows of the two classes."""
        return self.targets.column(column)

    def keep(self, column: int, dual: Array) -> None:
        """Store the coefficients of the first class against the second, and of the second against the first."""
        first, second = (int(side[column]) for side in self.targets.pairs)
        rows = self.targets.groups[first]
        self.against[rows, second - 1] = dual[: rows.size]
        self.against[self.targets.groups[second], first] = dual[rows.size :]

    def store_class(self, first: int, found: OneAgainst, tol: float) -> None:
        """Store the solutions of a class against others that are within `tol`."""
        k, groups = self.targets.n_classes, self.targets.groups
        columns = first * k - first * (first + 1) // 2 + found.others - first - 1
        solved = found.gap <= tol
        self.bias[columns], self.steps[columns], self.gap[columns] = found.bias, found.steps, found.gap
        self.against[np.ix_(groups[first], found.others - 1)] = found.dual.T
        self.against[np.concatenate([groups[other] for other in found.others]), first] = found.other_dual
        for column in columns[solved].tolist():
            self.status[column] = Status.CONVERGED
        self.done += int(solved.sum())
        self.task.run.report(self.done / self.bias.size)

    def model(self) -> tuple[Expansion, Any, Array]:
        """Return the expansion, its points by class."""
        support = [rows[self.against[rows].any(axis=1)] for rows in self.targets.groups]
        index = np.concatenate(support)
        coef = PairCoefficients(self.against[index], np.array([rows.size for rows in support]))
        dual = PairDual(self.against, self.targets)
        return self.task.expansion(index, coef, self.bias), dual, index  # type: ignore[arg-type]
