"""Pegasos, dual coordinate ascent and the perceptron, which learn from one row at a time.

    Pegasos     min  lambda/2 |w|^2 + sum_i p_i max(0, 1 - y_i <w, phi(x_i)>)     lambda = 1 / (C sum w),  p_i = w_i / sum w
    SDCA        max  sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j K_ij                  0 <= a_i <= C w_i
    Perceptron  no objective: a misclassified row is added with its label

Divided by lambda the first is 1/2 |w|^2 + C sum_i w_i max(0, 1 - y_i <w, phi(x_i)>), the C-SVM without a bias; the second
is its dual. The box is the only constraint, so each coordinate can move alone.

These methods take one row, compute the change of its coefficient from its margin y_i f(x_i), and go on to the next row.
Here the rows of the next steps are drawn together, as a block. The responses of all rows are up to date at the start of a
block. Within it, each step updates the margins of the later rows from the small kernel matrix of the block. At its end the
rows that moved are added to all responses in one product. The result is that of the plain loop, step by step, even if rows
repeat within a block. It costs n kernel evaluations for each row that moved, and the square of the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Limits, check_time_limit
from ..model import Status
from ..rows.responses import Responses
from ..rows.threads import blocks
from ..run import GapProgress
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution

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
        self.problem.run.report(1.0)
        return status

    def make_passes(self, passes: int, limits: Limits, goal: float) -> Status:
        """Make the passes of `run`; the limits are checked before each block."""
        n, effort, progress = self.rows.n, limits.start(self.problem.run.deadline), GapProgress(goal)
        last_step = int(min(passes * n, limits.iterations))
        while True:
            gap = self.gap()
            self.problem.run.record(gap=gap)
            progress.update(gap)
            if gap <= goal:
                return Status.CONVERGED
            if self.steps >= passes * n:
                return Status.PASSED
            order = self.order()
            for some in blocks(n, block_size(n)):
                self.problem.run.report(max(progress.share, self.steps / max(last_step, 1)))
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


@dataclass(frozen=True)
class Pegasos(BinaryTrainer):
    """Kernel Pegasos (Shalev-Shwartz et al. 2011): a violated margin adds its row, and the weights shrink by 1 - 1/t.

    w_(t+1) = (1 - 1/t) w_t + 1/(lambda t) [y_i <w_t, phi_i> < 1] y_i phi_i, so the coefficient of a row in w is the number
    of its violations divided by lambda t. The paper draws each row from all rows and returns the last weights:
    `replace=True, averaged=False`. The defaults differ in two ways. First, each pass takes the rows in a new order. This
    is mostly more accurate after the same number of steps, and makes the last weights of a pass feasible in the dual, so
    the responses give the duality gap without more kernel evaluations. Second, the weights are averaged, those after step t
    with weight t (Lacoste-Julien, Schmidt & Bach 2012), which makes the first passes steadier.

    The run ends when the relative duality gap, (primal - dual) / primal, is at most `gap` at the end of a pass (with
    `replace` the gap is mostly unknown, since the weights are not feasible in the dual); after `passes` (the same accuracy
    needs about C times as many); after `max_iter` steps; or after `time_limit` seconds for each output. With `replace`,
    rows are drawn in proportion to their weights; without, their violations count in proportion to them.

    A warm start goes on from the last model, within the box of the dual, with the steps that belong to the rows it was
    learned from; those of another method count as one pass.
    """

    starts_warm: ClassVar[bool] = True

    C: float = 1.0
    max_iter: int = -1
    passes: int = 50
    gap: float = 0.01
    averaged: bool = True
    replace: bool = False
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_passes(self.passes)
        check_time_limit(self.time_limit)
        if not self.gap >= 0:
            raise ValueError(f"gap must be 0 or a share of the primal objective above it, such as 0.01, not {self.gap!r}")

    def solve(self, problem: Binary) -> Solution:
        """Make passes over the rows of one output."""
        run = Violations(problem, self)
        if problem.start is not None and problem.start.any():
            run.begin_from_model(problem.start, problem.draws or run.rows.n)
        status = run.run(self.passes, Limits(self.max_iter, self.time_limit), self.gap)
        return Solution(run.model()[0] * problem.y, 0.0, run.steps, run.gap(), status, run.taken)


class Violations(SequentialRun):
    """Counts of the margin violations of each row; the weights are these counts divided by lambda t."""

    def __init__(self, problem: Binary, settings: Pegasos) -> None:
        super().__init__(problem, summed=settings.averaged)
        self.settings = settings
        self.cap = settings.C * problem.weights
        self.total = float(self.cap.sum())  # 1 / lambda
        self.share = problem.weights / problem.weights.sum()
        # without replacement every row comes once a pass, so its weight goes into the count
        self.count = np.ones(self.rows.n) if settings.replace else self.rows.n * self.share

    def begin_from_model(self, signed: Array, before: int) -> None:
        """Start with the weights of a model, and their sum, as if each of the steps `before` had left these weights.

        The coefficients are clipped to the box of the dual, and scaled down to its optimum along the line to 0.
        """
        alpha = np.clip(signed * self.y, 0.0, self.cap)[:, None]
        self.begin_from(alpha * [before / self.total, before * (before + 1) / (2 * self.total)], before)
        alpha, margins = self.last()
        if (excess := alpha @ margins / max(alpha.sum(), 1e-300)) > 1:
            self.alpha /= excess
            self.responses.values /= excess

    def order(self) -> Array:
        """Return all rows in random order, or n draws with replacement."""
        n = self.rows.n
        return self.problem.rng.choice(n, n, p=self.share) if self.settings.replace else super().order()

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:
        """Count a margin below 1. The margin of w_t is that of the counts divided by lambda (t - 1), and w_1 = 0."""
        return alpha + self.count[row] if step == 0 or margin * self.total < step else alpha

    def last(self) -> tuple[Array, Array]:
        """Return the alpha of the last weights, and their margins on all rows."""
        scale = self.total / max(self.taken, 1)
        return scale * self.alpha[:, 0], scale * self.margins()

    def model(self) -> tuple[Array, Array]:
        """Return alpha and margins of the model: the last weights, or the average (sum_t t w_(t+1)) / (sum_t t)."""
        if not self.settings.averaged:
            return self.last()
        t = max(self.taken, 1)
        scale = 2 * self.total / (t * (t + 1))  # t w_(t+1) = s_t / lambda
        return scale * self.alpha[:, 1], scale * self.margins(1)

    def gap(self) -> float:
        """Return (primal - dual) / primal of the model and of the last weights; infinity if these are not feasible."""
        alpha, margins = self.last()
        if (alpha > self.cap * (1 + 1e-9)).any():
            return np.inf
        dual = alpha.sum() - 0.5 * alpha @ margins
        alpha, margins = self.model()
        primal = 0.5 * alpha @ margins + self.cap @ np.maximum(1.0 - margins, 0.0)
        return float((primal - dual) / primal)


#: gradients up to this size count as 0, as in LIBLINEAR; a larger one saves updates of the responses and loses accuracy
ROUNDING = 1e-12
#: least value for K_ii, as in LIBSVM: a step with K_ii <= 0 goes to the end of its interval
TINY = 1e-12


@dataclass(frozen=True)
class SDCA(BinaryTrainer):
    """Dual coordinate ascent (Hsieh et al. 2008): one coordinate at a time moves to its optimum with the others fixed.

    The run ends when no row violates the optimality conditions by more than `tol` (the largest projected gradient) at the
    end of a pass; after `passes`; after `max_iter` steps; or after `time_limit` seconds for each output. Each pass takes
    the rows in a new order, as Hsieh et al. advise. With `replace`, each step draws from all rows, as in the comparison of
    Cotter, Shalev-Shwartz & Srebro (2012). Shrinking is left out: the responses of all rows are known, so a row that stays
    at its bound needs no kernel evaluations except those of its block.
    """

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    passes: int = 1000
    replace: bool = False
    time_limit: float | None = None
    starts_warm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_passes(self.passes)
        check_time_limit(self.time_limit)

    def solve(self, problem: Binary) -> Solution:
        """Make passes over the rows of one output, from the given start if there is one."""
        run = Ascent(problem, self.C * problem.weights, replace=self.replace)
        if problem.start is not None:
            run.begin_from(np.clip(problem.start * problem.y, 0.0, run.cap)[:, None])
        status = run.run(self.passes, Limits(self.max_iter, self.time_limit), self.tol)
        return Solution(run.alpha[:, 0] * problem.y, 0.0, run.steps, run.gap(), status)


class Ascent(SequentialRun):
    """Coordinate ascent on a feasible point of the dual."""

    def __init__(self, problem: Binary, cap: Array, *, replace: bool) -> None:
        super().__init__(problem)
        self.cap, self.replace = cap, replace

    def order(self) -> Array:
        """Return all rows in random order, or n draws with replacement."""
        n = self.rows.n
        return self.problem.rng.integers(n, size=n) if self.replace else super().order()

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:
        """Return the optimum of one coordinate (Hsieh et al., eq. 9)."""
        if abs(1.0 - margin) <= ROUNDING:
            return alpha
        return min(max(alpha + (1.0 - margin) / max(K_ii, TINY), 0.0), self.cap[row])

    def gap(self) -> float:
        """Return the largest projected gradient of the dual (eq. 8)."""
        gradient, alpha = 1.0 - self.margins(), self.alpha[:, 0]
        gain = np.where(alpha < self.cap, gradient, 0.0)
        loss = np.where(alpha > 0, -gradient, 0.0)
        return float(np.maximum(gain, loss).max(initial=0.0))


@dataclass(frozen=True)
class Perceptron(BinaryTrainer):
    """The perceptron (Rosenblatt 1958): each misclassified row is added with its label.

    There is no objective, no C and no bias. On separable rows it makes at most (R / margin)^2 mistakes (Novikoff 1962).
    With `averaged`, the model is the mean of the weights after every step (Freund & Schapire 1999), else the last weights.
    The guarantees for new rows hold for one pass; more passes may overfit if classes overlap. The run ends after `passes`,
    after `max_iter` steps, after `time_limit` seconds for each output, or at the end of a pass if the last weights classify
    every row correctly. Without `shuffle` the rows keep the order given. A warm start makes more passes from the weights of
    the last model, which then counts in the average as the rows do that it was learned from.
    """

    weighted: ClassVar[bool] = False
    starts_warm: ClassVar[bool] = True

    passes: int = 1
    averaged: bool = True
    shuffle: bool = True
    max_iter: int = -1
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        check_passes(self.passes)

    def solve(self, problem: Binary) -> Solution:
        """Make passes over the rows of one output."""
        run = Mistakes(problem, shuffle=self.shuffle)
        if problem.start is not None and problem.start.any():
            before = problem.draws or run.rows.n
            run.begin_from(np.outer(np.maximum(problem.start * problem.y, 0.0), [1.0, before]), before)
        status = run.run(self.passes, Limits(self.max_iter, self.time_limit), 0.0)
        alpha = run.alpha[:, 1] / max(run.taken, 1) if self.averaged else run.alpha[:, 0]
        return Solution(alpha * problem.y, 0.0, run.steps, run.gap(), status, run.taken)


class Mistakes(SequentialRun):
    """Counts of the mistakes on each row."""

    def __init__(self, problem: Binary, *, shuffle: bool) -> None:
        super().__init__(problem)
        self.shuffle = shuffle

    def order(self) -> Array:
        """Return the rows in random order, or in the order given."""
        return super().order() if self.shuffle else np.arange(self.rows.n)

    def rule(self, step: int, row: int, margin: float, alpha: float, K_ii: float) -> float:
        """Count a mistake."""
        return alpha + 1.0 if margin <= 0 else alpha

    def gap(self) -> float:
        """Return the share of rows that the last weights misclassify."""
        return float(np.mean(self.margins() <= 0))
