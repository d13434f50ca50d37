"""Online learning of a kernel expansion with a budget of points, one row after the other.

A learner keeps f(x) = sum_j k(x, z_j) c_j, with one coefficient c_j in R^q per point and no bias. A row x causes an update
if the margin of its class over the strongest rival is too small. The update adds k(x, .) t to f: with one output
t = y = +1 or -1, with an output per class t = e_class - e_rival (Crammer & Singer 2001). In the space of the kernel
k(x, z) <s, t> an update adds one vector, so the proofs for two classes hold for many. If the budget of points is used up,
each learner removes or replaces a point in its own way.

Rows of any home are fetched to the host in blocks. One product gives the kernel values of a block against the
points and itself, and an update is then a few operations on arrays. The updates are those of the row-by-row method, and do
not depend on how a stream is cut into batches. Kernel values are float64, since rounding could change which rows cause an
update.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from ..kernels import Array, Kernel, Matrix, stacked
from ..model import Expansion
from ..rows.protocol import Rows
from ..rows.threads import blocks, one_blas_thread
from ..run import Run

#: least and most rows of a block; in between, a block has as many rows as there are points. Larger blocks need fewer
#: products and more kernel values within the block
BLOCKS = (32, 128)


@dataclass(frozen=True)
class State:
    """The state of a learner between two rows; learning makes a new one and does not change it."""

    points: Matrix  # (m, d), in the order of the seats
    coef: Array  # (m, q)
    among: Array  # (m, m) kernel values among the points; (0, 0) if the learner does not need them
    born: Array  # (m,) the number of the update that added each point
    rng: np.random.Generator  # copied before it is used
    seen: int = 0  # rows
    moves: int = 0  # updates

    def expansion(self, kernel: Kernel) -> Expansion:
        """Return the function learned so far."""
        return Expansion(kernel, self.points, self.coef, np.zeros(self.coef.shape[1]))


class Contest:
    """The margins between classes, for one output of two classes or for one output per class."""

    def __init__(self, outputs: int) -> None:
        #: (k, q): the score of a class is <codes[class], f(x)>; the scores of two classes are -f/2 and +f/2
        self.codes = np.array([[-0.5], [0.5]]) if outputs == 1 else np.eye(outputs)

    def classes(self, targets: Array) -> Array:
        """Return the class numbers of rows with targets (n, q) of -1 and +1."""
        return (targets @ self.codes.T).argmax(axis=1)

    def margins(self, outputs: Array, own: Array) -> tuple[Array, Array]:
        """Return the margin of each row's class over its strongest rival, and that rival, from outputs (q, n)."""
        scores, rows = self.codes @ outputs, np.arange(own.size)
        mine = scores[own, rows]
        scores[own, rows] = -np.inf
        rivals = scores.argmax(axis=0)
        return mine - scores[rivals, rows], rivals


class Learner:
    """A running learner: the points in their seats, a block of rows, and the outputs of these rows, kept up to date.

    A learner implements `update`, and `required_margins` if these are not 0.
    """

    #: whether the learner needs the kernel values among its points
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
        self.against = np.empty((room, 0))  # K(points, block)
        self.within = np.empty((0, 0))  # K(block, block)
        self.outputs = np.empty((outputs, 0))  # (q, rows of the block)
        self.parts: list[dict[int, float]] = []  # each point as a mixture of rows of the pool
        self.wrong = 0  # rows of this run that were predicted wrongly, each before its block was learned from

    def state(self, **more: Any) -> Any:
        """Return the state now, with more fields that a kind of learner has."""
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

    def labels(self, targets: Array) -> Array:
        """Return the class numbers of rows with targets (n, q) of -1 and +1."""
        return self.contest.classes(targets)

    def required_margins(self, before: Array) -> Array:
        """Return the margins up to which a row causes an update, with `before` rows seen before each row."""
        return np.zeros(before.size)

    def update(self, row: int, move: Array) -> None:
        """Update f by a row of the block: in its paper's form, f + k(x, .) move."""
        raise NotImplementedError

    def learn(self, rows: Rows, order: Array, own: Array, weights: Array, run: Run) -> None:
        """Learn from rows in this order, a block at a time, to the deadline.

        `own` and `weights` are the classes and weights of all rows.
        """
        with one_blas_thread():  # the products of a block are too small for several threads
            for some in blocks(order.size, int(np.clip(self.settings.budget, *BLOCKS))):
                run.report(some.start / order.size)
                index = order[some]
                self.read_block(rows.fetch(index), own[index], weights[index])
                run.record(online_error=self.wrong / (self.seen - self.start.seen))
                if run.over:
                    return
        run.report(1.0)

    def read_block(self, block: Rows, own: Array, weights: Array) -> None:
        """Learn from the rows of a block with these classes, one row after the other."""
        pool = stacked(self.points, block.take(np.arange(block.n)))
        self.evaluate(block, pool)
        self.wrong += int((self.contest.margins(self.outputs, own)[0] <= 0).sum())
        required = self.required_margins(self.seen + np.arange(block.n))
        row = 0
        while row < block.n:
            margins, rivals = self.contest.margins(self.outputs[:, row:], own[row:])
            due = margins <= required[row:]
            ahead = int(due.argmax())
            if not due[ahead]:
                break
            row += ahead
            self.moves += 1
            codes = self.contest.codes
            self.update(row, weights[row] * (codes[own[row]] - codes[rivals[ahead]]))
            row += 1
        self.seen += block.n
        self.points = mixed(self.parts, pool)

    def evaluate(self, block: Rows, pool: Matrix) -> None:
        """Compute the kernel values of a block against `pool`, the points and the block, and the outputs of its rows."""
        m = self.size
        K = block.among(pool[m:], pool)
        self.against = np.empty((self.coef.shape[0], block.n))
        self.against[:m] = K[:, :m].T
        self.within = np.ascontiguousarray(K[:, m:])
        self.outputs = self.coef[:m].T @ self.against[:m]
        self.parts = [{seat: 1.0} for seat in range(m)]

    def seat(self, seat: int, row: int, coef: Array) -> None:
        """Put a row of the block into the next free seat, or into that of a point, which is removed."""
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
        """Remove a point; the last point moves to its seat."""
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
    """Return one row per dict {row of the pool: share}: the sum of these rows times their shares."""
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.intp)])
    columns = np.array([row for part in parts for row in part], dtype=np.intp)
    shares = np.array([share for part in parts for share in part.values()])
    rows = csr_array((shares, columns, starts), shape=(len(parts), pool.shape[0])) @ pool
    if issparse(rows):
        rows.sort_indices()
    return rows.astype(pool.dtype, copy=False)


def unit_step(move: Array, square: float) -> Array:
    """Return the coefficient with which an update has norm 1 in feature space, for a row with k(x, x) = `square`.

    The papers on budget perceptrons assume rows of norm 1. Scaling makes it so without loss, since the norm of a row has no
    influence on whether it is a mistake. A kernel with k(x, x) <= 0 leaves the row unscaled.
    """
    return move / np.sqrt(move @ move * (square if square > 0 else 1.0))
