"""Compressed SVMs: LARS-SVM and gradient support vectors (Xu, Gardner, Tyree & Weinberger 2015, section 4).

The full model's bias b is kept, and the rows of the problem are its support vectors x_i with their labels y_i = +-1.

LARS-SVM chooses support vectors. With K the kernel among them, the problem (6) is

    minimise  |1 - yb - K^ alpha|^2 + alpha' K alpha        over alpha with few nonzeros,    K^_ij = y_i K_ij

which is least squares with the Gram matrix G = K^'K^ + K and the correlations K^'(1 - yb). LARS needs these correlations
and products of G with vectors; it does not need the paper's eigendecomposition (8). As y_i^2 = 1, K^'K^ = K'K and
K^'(1 - yb) = K'(y - b).

The compressed machine starts from that and moves points and coefficients together, to follow the outputs of f:

    minimise  sum_i (f~(x_i) - f(x_i))^2,    f~(x) = sum_j k(x, z_j) alpha_j + b,        over all z_j and alpha_j    (10)

For several outputs (10) is summed over them, and each output is followed on its own support vectors, as if its machine
were alone: those of all others would outweigh them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..rows.kernel_matrix import KernelMatrix
from ..rows.protocol import Rows
from ..solvers.basis import Refit
from ..solvers.cholesky import GrowingCholesky
from ..solvers.descent import DescentSettings, descend

#: a support vector is linearly dependent if at most this share of its squared length is outside the span of the chosen
#: points. With an indefinite kernel the share may be below 0, and (6) would have no minimum
INDEPENDENT = 1e-10
#: LARS ends when the correlation is this share of the first one
NOTHING = 1e-9
#: a tie within this share of the end of the way to the least-squares solution counts as the end; a double root has half
#: the digits
EXPLAINED = 1e-6
#: the most kernel values among support vectors in memory; if there are more, they are evaluated in every step
KEPT_VALUES = 1 << 27


@dataclass(frozen=True)
class Lars(Reducer):
    """LARS-SVM (Xu et al. 2015): the model of size m is the m-th step of LARS on problem (6), with the full model's bias.

    LARS moves the coefficients of the chosen points towards their least-squares solution until another support vector is as
    correlated with the residual. Its coefficients are therefore shrunken. With `refit` the coefficients and bias of each
    model are fitted to the margins of the full model on all rows, as for `slant`. `Lars.paper` is the method as printed.

    The paper has one output. For q outputs on shared points the q coefficients of a point are a group that enters at
    once, and the correlation of a group is its Euclidean length: group LARS (Yuan & Lin 2006), which is LARS for q = 1.
    The rows of an output are its own support vectors, with the sign of the coefficient as label; in regression all support
    vectors, with the full model's output as label.
    """

    refit: bool = True
    real_valued: ClassVar[bool] = True

    @classmethod
    def paper(cls) -> Lars:
        """Return LARS-SVM as printed, without the refit."""
        return cls(refit=False)

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield the models of the given sizes from one run of LARS."""
        assert model is not None
        support = Support.of(task, model)
        refit = Refit.of(task, model, sizes[-1]) if self.refit else None
        for stop in lars(support, sizes[-1]):
            if stop.index.size in sizes or stop.last or task.run.over:
                small = support.expansion(stop.index, stop.coef)
                yield (small, "LARS") if refit is None else (refit(small), "LARS, refit")
            if task.run.over:
                return


@dataclass(frozen=True)
class Support:
    """The support vectors of a full model: their kernel values, their labels in each output, and the bias to keep."""

    rows: Rows
    labels: Array  # (s, q) of -1 and +1, 0 for rows that are not support vectors of an output; or real values
    members: Array  # (s, q), 1 for the support vectors of each output and 0 for others
    bias: Array
    kept: KernelMatrix | None  # the kernel among them, if it is small enough

    @classmethod
    def of(cls, task: Task, model: Expansion, kept_values: int = KEPT_VALUES) -> Support:
        """Return the support vectors of a model; keep up to `kept_values` kernel values among them."""
        rows, places = task.support(model)
        kept = rows.against(rows.take(np.arange(rows.n)), exact=False) if rows.n**2 <= kept_values else None
        labels = model.on(rows) if task.goal.real else np.sign(model.coef[places])
        members = np.ones(labels.shape) if task.goal.real else np.abs(labels)
        return cls(rows, labels, members, model.bias, kept)

    def product(self, V: Array) -> Array:
        """Return K @ V as K' @ V, which skips zeros: a row is no support vector of most pairs of classes."""
        return self.rows.product_of(np.arange(self.rows.n), V, keep=False) if self.kept is None else self.kept.back(V)

    def expansion(self, index: Array, coef: Array) -> Expansion:
        """Return the model on some of the support vectors."""
        return Expansion(self.rows.kernel, self.rows.take(index), coef, self.bias)


@dataclass(frozen=True)
class Stop:
    """The coefficients of LARS when the next point is about to enter."""

    index: Array  # (m,), support vectors in the order of entering
    coef: Array  # (m, q)
    last: bool  # whether there is nothing left to add or to explain


def lars(support: Support, limit: int) -> Iterator[Stop]:
    """Yield the stops of group LARS on problem (6), for each number of points from 1 to `limit` or to the last."""
    rows = support.members
    correlations = support.product(support.labels - rows * support.bias)  # K^'(1 - yb), for each output
    lengths = np.linalg.norm(correlations, axis=1)
    chosen, waiting = ChosenPoints(support, rows), np.ones(lengths.size, dtype=bool)
    coef = np.zeros((0, rows.shape[1]))
    entering = _enter(chosen, waiting, -lengths)
    if entering is None:  # all kernel values are 0: the model is its bias
        yield Stop(np.zeros(1, dtype=np.intp), np.zeros((1, rows.shape[1])), last=True)
        return
    start = level = float(lengths[entering])
    while entering is not None and coef.shape[0] < limit:
        index, coef = chosen.index, np.vstack([coef, np.zeros(rows.shape[1])])
        ahead = chosen.least_squares(correlations[index])  # from here to the least-squares solution
        falls = chosen.gram_product(ahead)  # by how much that lowers the correlations
        shares = _ties(correlations, falls, level)
        entering = _enter(chosen, waiting, shares)
        share = 1.0 if entering is None else shares[entering]
        coef = coef + share * ahead
        correlations -= share * falls
        level *= 1 - share
        last = entering is None or level <= NOTHING * start
        yield Stop(index, coef, last)
        if last:
            return


def _ties(correlations: Array, falls: Array, level: float) -> Array:
    """Return the share of the way at which each point is as correlated as the chosen ones, which fall from `level` to 0.

    It is the root in [0, 1] of |c - t f|^2 = (1 - t)^2 level^2. There is exactly one: |c| is at most the level at
    t = 0, and |c - f| at least 0 at t = 1. A root of 1 becomes infinity: the chosen points explain that point too.
    """
    squared = level**2
    left = np.maximum(squared - (correlations**2).sum(axis=1), 0.0)
    half = squared - (correlations * falls).sum(axis=1)
    curve = squared - (falls**2).sum(axis=1)
    divisor = half + np.sqrt(np.maximum(half**2 - curve * left, 0.0))
    apart = left > NOTHING * squared  # copies of a chosen point would give 0 / 0
    shares = np.divide(left, divisor, out=np.zeros_like(left), where=apart)
    return np.where(shares < 1 - EXPLAINED, shares, np.inf)


def _enter(chosen: ChosenPoints, waiting: Array, order: Array) -> int | None:
    """Add the first remaining candidate that is linearly independent; drop the dependent ones before it."""
    order = np.where(waiting, order, np.inf)
    while np.isfinite(order[number := int(order.argmin())]):
        waiting[number], order[number] = False, np.inf
        if chosen.add(number):
            return number
    return None


class ChosenPoints:
    """The points chosen so far, and for each output the Cholesky factor of their block of G."""

    def __init__(self, support: Support, rows: Array) -> None:
        self.support, self.rows = support, rows
        # outputs with the same rows have the same G: K'K over these rows, plus K
        self.patterns, self.pattern_of = np.unique(rows, axis=1, return_inverse=True)
        self.factors = [GrowingCholesky(INDEPENDENT) for _ in self.patterns.T]
        self.index = np.empty(0, dtype=np.intp)
        self.against = support.rows.against(support.rows.take(self.index))  # K between support vectors and chosen points

    def add(self, number: int) -> bool:
        """Add a point unless it is linearly dependent on the chosen ones, and return whether it was added."""
        m, index = self.index.size, np.append(self.index, number)
        self.against.append(self.support.rows.take(index[m:]))
        column = self.against.column(m)
        borders = self.against.back(self.patterns * column[:, None]) + column[index][:, None]
        added = [factor.add(border[:m], border[m]) for factor, border in zip(self.factors, borders.T, strict=True)]
        if all(added):
            self.index = index
            return True
        for factor in self.factors:
            factor.keep(m)
        self.against.keep(np.arange(m))
        return False

    def least_squares(self, correlations: Array) -> Array:
        """Return the least-squares coefficients of the chosen points for their correlations, (m, q)."""
        pairs = zip(self.pattern_of, correlations.T, strict=True)
        return np.column_stack([self.factors[pattern].solve(column) for pattern, column in pairs])

    def gram_product(self, coef: Array) -> Array:
        """Return G coef for the coefficients of the chosen points, in each output, for all support vectors."""
        outputs = self.against.times(coef)
        return self.support.product(self.rows * outputs) + outputs


#: when to stop; the loss and its gradient are relative to the loss of the bias alone
OPTIMIZERS = {
    "lbfgs": DescentSettings(300, "lbfgs", memory=20, ftol=1e-6, gtol=1e-9),
    "cg": DescentSettings(300, "cg", gtol=1e-7),
}
ROWS = ("support", "all")


@dataclass(frozen=True)
class CVM(Reducer):
    """CVM (Xu et al. 2015): the points and coefficients of LARS-SVM, moved to follow the full model's outputs (10).

    `optimizer` is "lbfgs" or "cg", conjugate gradients as in the paper, which need more passes; it makes at most
    `max_steps` steps for each size. `rows` to follow the full model on are "support", its support
    vectors, as in the paper, or "all" the training rows with their weights, which is slower.

    The paper ends there, with the full model's bias. With `refit` each model is also tried with coefficients and bias that
    are fitted to the full model's margins on all rows, as for `slant` and `lars`, and the one with the lower validation
    error is kept. That helps if points are few: least squares spend them on outputs far from the decision boundary too.
    `CVM.paper` is the method as printed.
    """

    optimizer: str = "lbfgs"
    rows: str = "support"
    refit: bool = True
    max_steps: int = 300
    real_valued: ClassVar[bool] = True
    selects: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True
    sizes_per_doubling: ClassVar[int] = 1

    @classmethod
    def paper(cls, iterations: int = 2560) -> CVM:
        """Return CVM as printed: conjugate gradients on (10), as many iterations as in the paper's figure 2 at most."""
        return cls(optimizer="cg", refit=False, max_steps=iterations)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"unknown optimizer {self.optimizer!r}; there are {sorted(OPTIMIZERS)}")
        if self.rows not in ROWS:
            raise ValueError(f"unknown rows {self.rows!r}; there are {list(ROWS)}")
        if not self.max_steps >= 1:
            raise ValueError(f"max_steps must be 1 or more, not {self.max_steps!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield the models of LARS with moved points, for each size."""
        assert model is not None
        support = Support.of(task, model)
        on_all = self.rows == "all"
        loss = OutputLoss(*(task.rows, model, task.output_weights) if on_all else (support.rows, model, support.members))
        refit = Refit.of(task, model, sizes[-1]) if self.refit else None
        for stop in lars(support, sizes[-1]):
            if stop.index.size in sizes or stop.last or task.run.over:
                start = support.expansion(stop.index, stop.coef)
                settings = replace(OPTIMIZERS[self.optimizer], steps=self.max_steps)
                small, steps = moved(start, loss, settings, task.run.deadline)
                words = f"{steps} steps of {self.optimizer}"
                yield small, words
                if refit is not None:
                    yield refit(small), f"{words}, refit"
            if task.run.over:
                return


class OutputLoss:
    """sum_ic w_ic (f~_c(x_i) - f_c(x_i))^2 as a share of its value for f~ = b; points are in the home's coordinates.

    `weights` are those of each row in each output, (n, q).
    """

    def __init__(self, rows: Rows, model: Expansion, weights: Array) -> None:
        self.rows = rows
        self.goals = model.on(rows) - model.bias
        scale = float(np.vdot(weights, self.goals**2))
        self.weights = weights / (scale if scale > 0 else 1.0)
        self.against = rows.moving(np.zeros((0, rows.d)))

    def __call__(self, points: Array, coef: Array) -> tuple[float, Array, Array]:
        """Return the loss and its derivatives with respect to points (m, d) and coefficients (m, q)."""
        off = self.against.move(points, coef) - self.goals
        slopes = self.weights * off
        loss = float(np.vdot(slopes, off))
        slopes *= 2
        return loss, self.against.pullback(slopes, coef), self.against.back(slopes)


def moved(start: Expansion, loss: OutputLoss, settings: DescentSettings, deadline: Deadline) -> tuple[Expansion, int]:
    """Return the expansion with points and coefficients moved downhill, its bias kept, and the steps taken."""
    d = start.points.shape[1]

    def value_and_gradient(both: Array) -> tuple[float, Array]:
        value, *slopes = loss(both[:, :d], both[:, d:])
        return value, np.hstack(slopes)

    both = np.hstack([loss.rows.to_coordinates(start.points), start.coef])
    end = descend(value_and_gradient, both, settings, deadline)
    if not end.value <= value_and_gradient(both)[0]:  # rounding can make a line search fail
        return start, 0
    return Expansion(start.kernel, loss.rows.from_coordinates(end.x[:, :d]), end.x[:, d:], start.bias), end.steps
