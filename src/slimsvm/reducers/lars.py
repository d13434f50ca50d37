"""LARS-SVM: support vectors chosen by least-angle regression (Xu, Gardner, Tyree & Weinberger 2015, section 4).

The full model's bias b is kept, and its support vectors x_i with their labels y_i = +-1 are all the rows there are. With K
the kernel among them, the problem (6) is

    minimise  |1 - yb - K^ alpha|^2 + alpha' K alpha        over alpha with few nonzeros,    K^_ij = y_i K_ij

which is least squares with the Gram matrix G = K^'K^ + K and the correlations K^'(1 - yb), all that LARS needs: no
eigendecomposition (8), and of G no more than products with vectors. As y_i^2 = 1, K^'K^ = K'K and K^'(1 - yb) = K'(y - b).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ..kernels import Array, Precomputed
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.host import HostRows
from ..solvers.refit import Refit
from .base import Models, Reducer

#: a support vector with less than this share of its own square left is a combination of those chosen; with a kernel that
#: is not positive definite it may be less than 0, and (6) would have no minimum
INDEPENDENT = 1e-10
#: the share of the first correlation that is left when there is nothing left to explain
NOTHING = 1e-9
#: the share of the way to the least-squares solution that is as good as none; a double root has half the digits
EXPLAINED = 1e-6


@dataclass(frozen=True)
class Lars(Reducer):
    """LARS-SVM (Xu et al. 2015): the model of size m is where LARS on problem (6) is after m steps, with the bias kept.

    LARS moves the coefficients of the points chosen towards their least-squares solution until another support vector
    is as correlated with what is left; its coefficients are therefore shrunken. With `refit` the coefficients and the
    bias of each model are fitted to what the full model is right about on all rows, as for `slant`.
    `refit=False` is the paper's method.

    The paper has one output. For q outputs on shared points the q coefficients of a point are a group that enters at
    once, and the correlation of a group is its Euclidean length: group LARS (Yuan & Lin 2006), which is LARS for q = 1.
    The rows of an output are its own support vectors, with the sign of the coefficient as label.
    """

    refit: bool = True

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """One walk of LARS, and the models of the given sizes on it."""
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
    """The support vectors of a full model: their kernel, their labels in each output, and the bias to keep."""

    gram: HostRows
    labels: Array  # (s, q) of -1, +1; 0 where a row is no support vector of that output
    bias: Array
    matrix: Array | None  # the kernel among them, where it fits the memory of the task's row cache

    @classmethod
    def of(cls, task: Task, model: Expansion) -> Support:
        """Those of a model; with a precomputed kernel, those among the task's rows, as no more kernel values are there."""
        nonzero = np.flatnonzero(np.abs(model.coef).sum(axis=1))
        used = nonzero if nonzero.size else np.arange(model.size)
        gram = task.rows
        if isinstance(model.kernel, Precomputed):
            _, rows, places = np.intersect1d(gram.ids, model.points[used], return_indices=True)
            if not rows.size:
                raise ValueError(
                    "none of the full model's support vectors is among the rows given, and a precomputed kernel has no "
                    "values for others; give the rows that the model was trained on"
                )
            used, own = used[places], gram.subset(rows)
        else:
            own = HostRows(model.kernel, model.points[used], gram.meter, 0.0, gram.error)
        fits = own.n**2 * own.dtype.itemsize <= gram.cache_mb * 2**20
        return cls(own, np.sign(model.coef[used]), model.bias, own.block(np.arange(own.n)) if fits else None)

    def column(self, number: int) -> Array:
        """The kernel between all support vectors and one of them."""
        if self.matrix is not None:
            return self.matrix[:, number].astype(np.float64)
        return self.gram.block(np.arange(self.gram.n), np.array([number])).ravel().astype(np.float64)

    def product(self, V: Array) -> Array:
        """K @ V."""
        if self.matrix is not None:
            return (self.matrix @ V.astype(self.matrix.dtype)).astype(np.float64)
        return self.gram.product_of(np.arange(self.gram.n), V, keep=False)

    def expansion(self, index: Array, coef: Array) -> Expansion:
        """The model on some of the support vectors."""
        return Expansion(self.gram.kernel, self.gram.points(index), coef, self.bias)


@dataclass(frozen=True)
class Stop:
    """Where LARS is when the next point is about to enter."""

    index: Array  # (m,), support vectors in the order of entering
    coef: Array  # (m, q)
    last: bool  # whether there is nothing left to add or to explain


def lars(support: Support, limit: int) -> Iterator[Stop]:
    """Group LARS on problem (6): a stop for each number of points from 1 to `limit`, or to the last."""
    rows = np.abs(support.labels)  # 1 for the rows of each output
    correlations = support.product(support.labels - rows * support.bias)  # K^'(1 - yb), for each output
    lengths = np.linalg.norm(correlations, axis=1)
    chosen, waiting = Chosen(support, rows, limit + 1), np.ones(lengths.size, dtype=bool)
    coef = np.zeros((0, rows.shape[1]))
    entering = _enter(chosen, waiting, -lengths)
    if entering is None:  # no kernel value among them but 0: the bias is all there is
        yield Stop(np.zeros(1, dtype=np.intp), np.zeros((1, rows.shape[1])), last=True)
        return
    start = level = float(lengths[entering])
    while entering is not None and coef.shape[0] < limit:
        index, coef = chosen.index, np.vstack([coef, np.zeros(rows.shape[1])])
        ahead = chosen.least_squares(correlations[index])  # from here to the least-squares solution
        falls = chosen.gram_product(ahead)  # what correlations lose on that way
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
    """The share of the way at which each point is as correlated as those chosen, who fall from `level` to 0 on it.

    The root in [0, 1] of |c - t f|^2 = (1 - t)^2 level^2, which is one: c is no longer than the level at t = 0, and c - f
    no shorter than 0 at t = 1. A root of 1 is no tie but the end: the points chosen explain that one too.
    """
    squared = level**2
    left = np.maximum(squared - (correlations**2).sum(axis=1), 0.0)
    half = squared - (correlations * falls).sum(axis=1)
    curve = squared - (falls**2).sum(axis=1)
    divisor = half + np.sqrt(np.maximum(half**2 - curve * left, 0.0))
    apart = left > NOTHING * squared  # copies of a chosen point are as correlated all the way: 0 / 0
    shares = np.divide(left, divisor, out=np.zeros_like(left), where=apart)
    return np.where(shares < 1 - EXPLAINED, shares, np.inf)


def _enter(chosen: Chosen, waiting: Array, order: Array) -> int | None:
    """Let the first of those waiting in that is no combination of those chosen; those before it wait no longer."""
    order = np.where(waiting, order, np.inf)
    while np.isfinite(order[number := int(order.argmin())]):
        waiting[number], order[number] = False, np.inf
        if chosen.add(number):
            return number
    return None


class Chosen:
    """The points chosen so far, and for each output the Cholesky factor of their block of G."""

    def __init__(self, support: Support, rows: Array, most: int) -> None:
        self.support, self.rows = support, rows
        # outputs with the same rows have the same G: K'K over these rows, and K
        self.patterns, self.pattern_of = np.unique(rows, axis=1, return_inverse=True)
        most = min(most, rows.shape[0])
        self.columns = np.empty((most, rows.shape[0]))  # of K, as rows here
        self.factors = np.zeros((self.patterns.shape[1], most, most))
        self.index = np.empty(0, dtype=np.intp)

    def add(self, number: int) -> bool:
        """Add a point unless it is a combination of those chosen, and tell whether it was added."""
        m = self.index.size
        self.columns[m] = column = self.support.column(number)
        borders = self.columns[: m + 1] @ (self.patterns * column[:, None])
        borders += column[np.append(self.index, number)][:, None]
        for factor, border in zip(self.factors, borders.T, strict=True):
            new = solve_triangular(factor[:m, :m], border[:m], lower=True, check_finite=False)
            square = border[m] - new @ new
            if not square > INDEPENDENT * abs(border[m]):
                return False
            factor[m, :m], factor[m, m] = new, np.sqrt(square)
        self.index = np.append(self.index, number)
        return True

    def least_squares(self, correlations: Array) -> Array:
        """The coefficients by which the chosen points explain these correlations of theirs, (m, q)."""
        m = correlations.shape[0]
        factors = (self.factors[pattern, :m, :m] for pattern in self.pattern_of)
        solved = [cho_solve((L, True), c, check_finite=False) for L, c in zip(factors, correlations.T, strict=True)]
        return np.column_stack(solved)

    def gram_product(self, coef: Array) -> Array:
        """G coef for the coefficients of the chosen points, in each output, for all support vectors."""
        outputs = self.columns[: coef.shape[0]].T @ coef
        return self.support.product(self.rows * outputs) + outputs
