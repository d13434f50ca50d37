"""LARS-SVM: support vectors chosen by least-angle regression (Xu, Gardner, Tyree & Weinberger 2015, section 4).

The full model's bias b is kept, and the rows of the problem are its support vectors x_i with their labels y_i = +-1. With K
the kernel among them, the problem (6) is

    minimise  |1 - yb - K^ alpha|^2 + alpha' K alpha        over alpha with few nonzeros,    K^_ij = y_i K_ij

which is least squares with the Gram matrix G = K^'K^ + K and the correlations K^'(1 - yb). LARS needs these correlations
and products of G with vectors; it does not need the paper's eigendecomposition (8). As y_i^2 = 1, K^'K^ = K'K and
K^'(1 - yb) = K'(y - b).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..rows.protocol import Against, Rows
from ..solvers.cholesky import GrowingCholesky
from ..solvers.refit import Refit

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
    model are fitted to the margins of the full model on all rows, as for `slant`. `refit=False` is the paper's method.

    The paper has one output. For q outputs on shared points the q coefficients of a point are a group that enters at
    once, and the correlation of a group is its Euclidean length: group LARS (Yuan & Lin 2006), which is LARS for q = 1.
    The rows of an output are its own support vectors, with the sign of the coefficient as label; in regression the label is
    the full model's output without its bias.
    """

    refit: bool = True
    real_valued: ClassVar[bool] = True

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Yield the models of the given sizes from one run of LARS."""
        assert model is not None
        support = Support.of(task, model)
        refit = Refit.of(task, model, sizes[-1]) if self.refit else None
        for stop in lars(support, sizes[-1]):
            if stop.index.size in sizes or stop.last or deadline.over:
                small = support.expansion(stop.index, stop.coef)
                yield (small, "LARS") if refit is None else (refit(small), "LARS, refit")
            if deadline.over:
                return


@dataclass(frozen=True)
class Support:
    """The support vectors of a full model: their kernel values, their labels in each output, and the bias to keep."""

    rows: Rows
    labels: Array  # (s, q) of -1 and +1, 0 for rows that are not support vectors of an output; or real values
    bias: Array
    kept: Against | None  # the kernel among them, if it is small enough

    @classmethod
    def of(cls, task: Task, model: Expansion, kept_values: int = KEPT_VALUES) -> Support:
        """Return the support vectors of a model; keep up to `kept_values` kernel values among them."""
        rows, places = task.support(model)
        kept = rows.against(rows.take(np.arange(rows.n)), exact=False) if rows.n**2 <= kept_values else None
        labels = model.on(rows) - model.bias if task.goal.real else np.sign(model.coef[places])
        return cls(rows, labels, model.bias, kept)

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
    rows = np.abs(support.labels)  # 1 for the rows of each output
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
