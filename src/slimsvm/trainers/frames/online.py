"""Learners that take one row after the other and keep to a budget of points: the frame that they share.

A learner keeps f(x) = sum_j k(x, z_j) c_j, with one coefficient c_j in R^q per point and no bias. A row x of a class is due
where its class does not beat the strongest rival by enough, and then moves f by k(x, .) t: with one output t = y = +1 or
-1, with an output per class t = e_class - e_rival (Crammer & Singer 2001). In the space of k(x, z) <s, t> this move is one
vector, so that what the papers prove for two classes holds for many. When the seats for points are taken, the learner makes
room in its own way.

Rows are read in blocks: the kernel values between a block, itself and the points come out of two products, and a step of
the learner is then a few operations on arrays. The steps are those of the row-by-row method, and a stream in pieces of any
sizes teaches the same. Kernel values are float64 whatever the work, since a mistake is a matter of a sign.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from ...checks import check_count
from ...kernels import Array, Kernel, Matrix, stacked
from ...model import Expansion, Fit, Status, Task, no_progress
from ...rows.host import HostRows
from ...rows.threads import blocks, one_blas_thread

#: rows of a block: as many as points, so that kernel values among rows cost as much as those to points, within these bounds
BLOCKS = (32, 128)


@dataclass(frozen=True)
class State:
    """What a learner knows between two rows. A value: learning more returns another one."""

    points: Matrix  # (m, d), by seat
    coef: Array  # (m, q)
    among: Array  # (m, m) kernel values among the points; (0, 0) where the learner asks for none
    born: Array  # (m,) the number of the move that made each point
    rng: np.random.Generator  # chance as it stands; copied before it is used
    seen: int = 0  # rows
    moves: int = 0  # rows that were due

    def expansion(self, kernel: Kernel) -> Expansion:
        """The function learned so far."""
        return Expansion(kernel, self.points, self.coef, np.zeros(self.coef.shape[1]))


class Contest:
    """Classes against each other: scores, margins and moves, the same for one output and for one per class."""

    def __init__(self, outputs: int) -> None:
        #: (k, q): a class scores <codes[class], f(x)>; of two classes the score is -f/2 and +f/2
        self.codes = np.array([[-0.5], [0.5]]) if outputs == 1 else np.eye(outputs)

    def classes(self, targets: Array) -> Array:
        """The class numbers of rows with targets (n, q) of -1 and +1."""
        return (targets @ self.codes.T).argmax(axis=1)

    def margins(self, outputs: Array, own: Array) -> tuple[Array, Array]:
        """By how much each row's class beats its strongest rival, and that rival, from outputs (q, n)."""
        scores, rows = self.codes @ outputs, np.arange(own.size)
        mine = scores[own, rows]
        scores[own, rows] = -np.inf
        rivals = scores.argmax(axis=0)
        return mine - scores[rivals, rows], rivals


class Learner:
    """A learner at work: points in their seats, a block of rows, and the outputs of these rows, kept up to date.

    Learners have `update`, and `bar` where a margin of 0 is not enough.
    """

    #: whether the learner asks for the kernel values among its points
    pairs: ClassVar[bool] = True

    def __init__(self, settings: Any, state: State, room: int) -> None:
        self.settings, self.start = settings, state
        self.rng = copy.deepcopy(state.rng)
        self.size, outputs = state.coef.shape
        self.seen, self.moves = state.seen, state.moves
        self.contest = Contest(outputs)
        self.points = state.points
        self.coef = np.zeros((room, outputs))
        self.coef[: self.size] = state.coef
        self.among = np.zeros((room, room) if self.pairs else (0, 0))
        self.among[: state.among.shape[0], : state.among.shape[0]] = state.among
        self.born = np.zeros(room, dtype=np.int64)
        self.born[: self.size] = state.born
        self.against = np.empty((room, 0))  # K(points, rows of the block)
        self.within = np.empty((0, 0))  # K(rows, rows) of the block
        self.outputs = np.empty((outputs, 0))  # (q, rows)
        self.parts: list[dict[int, float]] = []  # of each point: shares of the points before the block and of its rows

    def state(self, **more: Any) -> Any:
        """What is known now, and what more a learner of this kind knows."""
        m = self.size
        return replace(
            self.start,
            points=self.points,
            coef=self.coef[:m].copy(),
            among=self.among[:m, :m].copy(),
            born=self.born[:m].copy(),
            rng=copy.deepcopy(self.rng),
            seen=self.seen,
            moves=self.moves,
            **more,
        )

    def bar(self, before: Array) -> Array:
        """The margins up to which rows are due, with `before` rows seen before each."""
        return np.zeros(before.size)

    def update(self, row: int, move: Array) -> None:
        """Make the move of a row of the block that is due."""
        raise NotImplementedError

    def read(self, block: HostRows, own: Array, weights: Array) -> None:
        """Learn from the rows of a block with their classes, one after the other."""
        self.lay_out(block)
        bar = self.bar(self.seen + np.arange(block.n))
        row = 0
        while row < block.n:
            margins, rivals = self.contest.margins(self.outputs[:, row:], own[row:])
            due = margins <= bar[row:]
            ahead = int(due.argmax())
            if not due[ahead]:
                break
            row += ahead
            self.moves += 1
            codes = self.contest.codes
            self.update(row, weights[row] * (codes[own[row]] - codes[rivals[ahead]]))
            row += 1
        self.seen += block.n
        self.clear(block)

    def lay_out(self, block: HostRows) -> None:
        """The kernel values of a block, and its outputs by the function so far."""
        m = self.size
        self.against = np.empty((self.coef.shape[0], block.n))
        self.against[:m] = block.matrix(self.points).T
        self.within = block.block(np.arange(block.n))
        self.outputs = self.coef[:m].T @ self.against[:m]
        self.parts = [{seat: 1.0} for seat in range(m)]

    def clear(self, block: HostRows) -> None:
        """Take over the points that came from the block."""
        pool = stacked(self.points, block.points(np.arange(block.n)))
        self.points = mixed(self.parts, pool)

    def seat(self, seat: int, row: int, coef: Array) -> None:
        """Let a row of the block take a seat, be it the next free one or that of a point which then leaves."""
        if seat == self.size:
            self.size += 1
            self.parts.append({})
        else:
            self.outputs -= self.coef[seat][:, None] * self.against[seat]
        m, column = self.size, self.within[row]
        self.against[seat] = column
        if self.pairs:
            self.among[seat, :m] = self.among[:m, seat] = self.against[:m, row]
        self.coef[seat], self.born[seat] = coef, self.moves
        self.outputs += coef[:, None] * column
        self.parts[seat] = {self.points.shape[0] + row: 1.0}

    def leave(self, seat: int) -> None:
        """Take a point out; the last one gets its seat."""
        self.outputs -= self.coef[seat][:, None] * self.against[seat]
        last = self.size - 1
        if seat != last:
            self.coef[seat], self.born[seat], self.against[seat] = self.coef[last], self.born[last], self.against[last]
            self.among[seat], self.among[:, seat] = self.among[last], self.among[:, last]
            self.among[seat, seat] = self.among[last, last]
            self.parts[seat] = self.parts[last]
        self.parts.pop()
        self.size = last


def mixed(parts: list[dict[int, float]], pool: Matrix) -> Matrix:
    """One row per dict of {row of the pool: share}; a share of 1 alone is that row itself."""
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.intp)])
    columns = np.array([row for part in parts for row in part], dtype=np.intp)
    shares = np.array([share for part in parts for share in part.values()])
    rows = csr_array((shares, columns, starts), shape=(len(parts), pool.shape[0])) @ pool
    if issparse(rows):
        rows.sort_indices()
    return rows.astype(pool.dtype, copy=False)


@dataclass(frozen=True)
class OnlineTrainer:
    """Base of trainers that learn row by row within `budget` points; they name their `learner`.

    `fit` makes `passes` over the rows, in an order drawn anew for each unless `shuffle` is off. `begin` and `learn` are for
    streams, which may be longer than memory.
    """

    weighted: ClassVar[bool] = False
    shared: ClassVar[bool] = True
    learner: ClassVar[type[Learner]]

    budget: int | None = None
    passes: int = 1
    shuffle: bool = True

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_count(self.budget)
        if not isinstance(self.passes, Integral) or self.passes < 1:
            raise ValueError(f"passes must be 1, 2, ... passes over the rows, not {self.passes!r}")

    def fit(self, task: Task, start: Array | None = None) -> Fit:  # noqa: ARG002
        """Learn from the rows of the task; an online learner begins with nothing, whatever the start."""
        state = self.begin(task)
        n = task.targets.shape[0]
        for number in range(self.passes):
            order = task.rng.permutation(n) if self.shuffle else np.arange(n)

            def report(part: float, number: int = number) -> None:
                task.report("train", (number + part) / self.passes)

            state = self.learn(state, task, order, report)
        return Fit(state.expansion(task.rows.kernel), Status.PASSED, state.seen, None, np.nan, state)

    def begin(self, task: Task) -> State:
        """Nothing learned yet; the task tells the kernel, the form of the rows and the number of outputs."""
        return State(
            points=task.rows.points(np.arange(0)),
            coef=np.zeros((0, task.targets.shape[1])),
            among=np.zeros((0, 0)),
            born=np.zeros(0, dtype=np.int64),
            rng=task.rng.spawn(1)[0],
        )

    def learn(self, state: State, task: Task, order: Array, report: Callable[[float], None] = no_progress) -> State:
        """Learn from the rows of the task in that order; the state given stays what it is."""
        if self.budget is None:
            raise ValueError(f"{type(self).__name__} needs a budget: a number of support vectors, such as 100")
        room = min(self.budget + 1, state.coef.shape[0] + order.size)
        run, gram = self.learner(self, state, room), task.rows
        own = run.contest.classes(task.targets)
        with one_blas_thread():  # products of a block are too small to share
            for some in blocks(order.size, int(np.clip(self.budget, *BLOCKS))):
                report(some.start / order.size)
                rows = order[some]
                block = HostRows(gram.kernel, gram.X[rows], gram.meter, 0.0, 0.0, gram.ids[rows])
                run.read(block, own[rows], task.weights[rows])
        report(1.0)
        return run.state()
