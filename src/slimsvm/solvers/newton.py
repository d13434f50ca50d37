"""Newton's method for squared distances to intervals: the best coefficients for given points.

For each output, with K the kernel between rows and points, [low, high] the margin targets of the rows and w their weights,

    minimise  sum_i w_i dist(b + K_i beta, [low_i, high_i])^2 + theta' R theta        over theta = (b, beta)

A row whose output lies in its interval costs nothing. The others are a least-squares problem, so Newton's
method needs few steps. With the margin targets of labels it is the squared hinge loss of an SVM in the primal
(Keerthi & DeCoste 2005; Chapelle 2007), or the squared epsilon-insensitive loss of regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._core import core
from ..goals.margin_targets import MarginTargets
from ..kernels import Array
from ..rows.curvatures import solve_all
from ..rows.kernel_matrix import KernelMatrix
from ..rows.protocol import Curvatures, Factor
from ..rows.threads import ALONE, blocks, one_blas_thread
from ..states import floats, ordered

#: factors of at least this many coefficients are kept
MANY = 96
#: a kept factor serves one step for each `PER_STEP` coefficients, and at most `KEPT_STEPS` steps
PER_STEP, KEPT_STEPS = 96, 3
#: the most numbers in all kept factors; a thousand outputs of a thousand points would take 8 GB
MOST_KEPT = 1 << 25


class KeptFactors:
    """Factors of the outputs' curvatures, kept for points that have moved a little since.

    Any definite matrix gives a descent direction, and a line search finds the step length. With many points that is worth a
    step or two: each costs two products with the kernel values, while a new curvature costs one for each point.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self.most, self.factors = most, dict[int, Factor]()

    def keep(self, output: int, factor: Factor) -> None:
        """Keep a factor if it is large enough and there is memory for it."""
        others = sum(other.size**2 for number, other in self.factors.items() if number != output)
        if factor.size >= MANY and others + factor.size**2 <= self.most:
            self.factors[output] = factor

    def get(self, output: int, size: int, number: int) -> Factor | None:
        """Return the kept factor of `size` coefficients for an output's step with this number, or None."""
        factor = self.factors.get(output) if number < min(size // PER_STEP, KEPT_STEPS) else None
        return factor if factor is not None and factor.size == size else None


#: the ridge, as a share of the sum of weights times the largest squared kernel value; it only makes solutions unique
RIDGE = 1e-7
#: the most steps of a line search, and multiply-adds that take as long as one for a row
LINE_STEPS, LINE_COST = 30, 32
#: with at least this many outputs, their gradients are one product with all rows; with fewer, products with few rows each
MANY_OUTPUTS = 3
#: numbers to read for all outputs above which threads share the work
WORTH_THREADS = 1 << 19
#: the gain that rounding may leave after a step to the minimum of a quadratic, as a share of that step's gain
SOLVER_REST = 1e-4


@dataclass(frozen=True)
class NewtonSettings:
    """When Newton's method ends: after `steps`, or at a step that gains less than `precision` as a share of the loss.

    The share is of each output's own loss, or with `shared` of the mean loss of the outputs fitted together.
    `line_precision` is the relative precision of the step lengths. With many points, a call's first steps use the
    curvatures of the call before if they are given (`KeptFactors`).
    """

    steps: int = 30
    precision: float = 1e-6
    line_precision: float = 1e-9
    shared: bool = False


@dataclass(frozen=True)
class Fitted:
    """Biases and coefficients theta (m + 1, q), the outputs f of each row (n, q), and the objective."""

    theta: Annotated[Array, floats(("m", 1), "q")]
    outputs: Annotated[Array, ordered("n", "q")]  # sums over outputs depend on the order in memory
    loss: float

    @property
    def bias(self) -> Array:
        """The bias of each output."""
        return self.theta[0]

    @property
    def coef(self) -> Array:
        """The coefficients, a row for each point."""
        return self.theta[1:]


class IntervalSquares:
    """The problem of all outputs on the same rows. Points and regulariser are arguments of each call."""

    def __init__(self, margin_targets: MarginTargets, weights: Array) -> None:
        self.margin_targets = margin_targets
        self.low, self.high = (
            np.ascontiguousarray(side.T, np.float64) for side in (margin_targets.low, margin_targets.high)
        )
        self.weights = np.ascontiguousarray(weights, np.float64)

    def fit(
        self,
        against: KernelMatrix,
        R: Array,
        settings: NewtonSettings,
        *,
        start: Array | None = None,
        outputs: Array | None = None,
        curvatures: Curvatures | None = None,
        factors: KeptFactors | None = None,
    ) -> Fitted:
        """Return the best coefficients from `start` on (0 by default), whose outputs are K @ coef + bias.

        `curvatures` keep the sums of all outputs for the next call, if points are only added. `factors` keep the factors
        of curvatures for the next call, if points move a little. Threads fit groups of outputs, which do not depend on the
        number of threads.
        """
        q = self.low.shape[0]
        theta = np.zeros((R.shape[0], q)) if start is None else start.copy()
        curvatures = curvatures or against.running_curvatures(q)
        factors = factors or KeptFactors()
        with one_blas_thread():  # many small products
            outputs = against.times(theta[1:]) + theta[0] if outputs is None else outputs
            lines = np.array(outputs.T, np.float64, order="C")
            runs = [
                _Run(self, some, against, R, theta[:, some], lines[some], curvatures, factors)
                for some in blocks(q, -(-q // -(-q // curvatures.at_once)))  # groups of equal size
            ]
            cost = q * R.shape[0] * (lines.shape[1] + R.size // 3)  # numbers to read
            if len(runs) > 1 and cost >= WORTH_THREADS:
                against.rows.share_out(lambda number: runs[number].descend(settings), len(runs))
            else:
                for run in runs:
                    run.descend(settings)
        return Fitted(theta, lines.T, float(sum(run.losses.sum() for run in runs)))

    def slopes(self, outputs: Array) -> Array:
        """Return the derivative of the loss by each row's outputs, (n, q)."""
        lines = outputs.T  # the memory order of low and high
        slopes = np.clip(lines, self.low, self.high)
        slopes -= lines
        slopes *= -2 * self.weights
        return slopes.T


class _Run:
    """A descent of some of the outputs. Arrays by rows have a line for each output, (q, n)."""

    def __init__(
        self,
        problem: IntervalSquares,
        some: slice,
        against: KernelMatrix,
        R: Array,
        theta: Array,
        outputs: Array,
        curvatures: Curvatures,
        factors: KeptFactors,
    ) -> None:
        self.first, self.factors = some.start, factors
        self.low, self.high, self.weights = problem.low[some], problem.high[some], problem.weights
        self.against, self.R, self.curvatures, self.pool = against, R, curvatures, getattr(against.rows, "pool", ALONE)
        self.theta, self.outputs = theta, outputs  # changed in place
        self.residual, self.losses = np.empty(0), np.empty(0)

    def descend(self, settings: NewtonSettings) -> None:
        """Take steps until they gain too little."""
        self.residual = np.clip(self.outputs, self.low, self.high) - self.outputs
        self.losses = np.square(self.residual) @ self.weights + self._penalty(self.theta)
        going = np.arange(self.losses.size)  # outputs that still gain
        for number in range(settings.steps):
            gain = self._move(going, self._steps(going, number), settings)
            going = going[gain > settings.precision * (self.losses.mean() if settings.shared else self.losses[going])]
            if not going.size:
                break

    def _steps(self, going: Array, number: int) -> Array:
        """Return the Newton step of each of some outputs, (m + 1, k), after `number` steps."""
        residual = self.residual if going.size == self.losses.size else self.residual[going]
        wanted, size = self.first + going, self.R.shape[0]
        factors = {c: factor for c in wanted if (factor := self.factors.get(c, size, number)) is not None}
        new = np.array([c not in factors for c in wanted])  # for the rows that fall short now; others are kept ones
        made = self.curvatures.factors(wanted[new], residual[new], self.weights, self.R)
        for c, factor in zip(wanted[new], made, strict=True):
            factors[c] = factor
            self.factors.keep(c, factor)
        missing = self.weights * residual
        gradient = np.vstack([missing.sum(axis=1), self._back(missing)]) - self.R @ self.theta[:, going]
        return solve_all([factors[c] for c in wanted], gradient.T).T

    def _back(self, missing: Array) -> Array:
        """Return the products of kernel values with the weighted residuals of some outputs, (m, k)."""
        if missing.shape[0] >= MANY_OUTPUTS:  # one product with all rows is faster than one for each output
            return self.against.back(missing.T)
        short = [np.flatnonzero(part) for part in missing]
        return np.hstack([self.against.back(part[rows, None], rows) for part, rows in zip(missing, short, strict=True)])

    def _move(self, going: Array, steps: Array, settings: NewtonSettings) -> Array:
        """Take each output's step to the lowest loss along it; return an estimate of the next step's gain.

        The estimate is this step's gain. If no row entered or left its interval and the curvature was not a kept one, the
        step has reached the minimum, and the remaining gain is rounding.
        """
        change = np.ascontiguousarray(self.against.times(steps[1:]).T)
        change += steps[0][:, None]
        pull = self.R @ steps
        before, (lengths, sums) = self.losses[going], np.empty((2, going.size))
        switched = np.empty(going.size, np.intp)
        core.line_moves(
            self.low,
            self.high,
            self.weights,
            change,
            going,
            (self.theta[:, going] * pull).sum(axis=0),
            (steps * pull).sum(axis=0),
            settings.line_precision,
            LINE_STEPS,
            self.outputs,
            self.residual,
            lengths,
            sums,
            switched,
            *self.pool.helpers_for(LINE_COST * change.size, going.size - 1),
        )
        self.theta[:, going] += lengths * steps
        self.losses[going] = sums + self._penalty(self.theta[:, going])
        exact = switched == 0 if self.theta.shape[0] < MANY else np.zeros(going.size, bool)
        return np.where(exact, SOLVER_REST, 1.0) * (before - self.losses[going])

    def _penalty(self, theta: Array) -> Array:
        """Return theta' R theta of each output."""
        return (theta * (self.R @ theta)).sum(axis=0)


def tie_ridge(against: KernelMatrix, weights: Array) -> Array:
    """Return a regulariser that only makes the solution unique, for the points of a handle and the bias."""
    return RIDGE * float(weights.sum()) * max(against.largest_square(), 1e-300) * np.eye(against.size + 1)


@dataclass(frozen=True)
class Line:
    """quadratic t^2 + 2 linear t + sum_i w_i dist(f_i + t change_i, [low_i, high_i])^2 as a function of t."""

    low: Array
    high: Array
    outputs: Array
    change: Array
    weights: Array
    linear: float
    quadratic: float

    def minimum(self, start: float = 0.0, precision: float = 1e-9) -> float:
        """Return the t with the least value, by Newton steps from `start` until one is within `precision` of t."""
        return core.line_minimum(
            self.low,
            self.high,
            self.outputs,
            self.change,
            self.weights,
            self.linear,
            self.quadratic,
            start,
            precision,
            LINE_STEPS,
        )

    def gain(self, t: float) -> float:
        """Return the value at 0 minus that at t."""
        moved = self.outputs + t * self.change
        before, after = (np.square(np.clip(at, self.low, self.high) - at) for at in (self.outputs, moved))
        return float(self.weights @ (before - after) - t * (self.quadratic * t + 2 * self.linear))
