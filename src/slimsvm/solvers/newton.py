"""Newton's method for squared distances to intervals: the best coefficients for given points.

For each output, with K the kernel between rows and points, [low, high] the demands of the rows and w their weights,

    minimise  sum_i w_i dist(b + K_i beta, [low_i, high_i])^2 + theta' R theta        over theta = (b, beta)

A row whose output lies in its interval costs nothing. It is a least-squares problem on the rows that fall short, so
Newton's method solves it in a few steps. With the demands of labels it is the squared hinge loss of an SVM in the primal
(Keerthi & DeCoste 2005; Chapelle 2007), or the squared epsilon-insensitive loss of regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from ..goals.demands import Demands
from ..kernels import Array
from ..rows.protocol import Against
from ..rows.threads import one_blas_thread

#: ridge over the sum of weights times the largest squared kernel value: it settles ties and no more
RIDGE = 1e-7
#: rows that fall short below which a curvature is summed anew; above, only the rows that changed are added or taken away
FEW_ROWS = 512
#: steps of a line search
LINE_STEPS = 30


@dataclass(frozen=True)
class NewtonSettings:
    """When Newton's method ends: after `steps`, or at a step that gains less than `precision` as a share of the loss.

    The share is that of each output's own loss, or with `shared` that of the mean loss of all outputs. `line_precision` is
    the relative precision of the step lengths.
    """

    steps: int = 30
    precision: float = 1e-6
    line_precision: float = 1e-9
    shared: bool = False


@dataclass(frozen=True)
class Fitted:
    """Biases and coefficients theta (m + 1, q), the outputs f of each row (n, q), and the objective."""

    theta: Array
    outputs: Array
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
    """The problem of all outputs on the same rows. Its data stay; points and regulariser come with each call."""

    def __init__(self, demands: Demands, weights: Array) -> None:
        self.demands, self.weights = demands, weights[:, None]

    def fit(
        self,
        against: Against,
        R: Array,
        settings: NewtonSettings,
        *,
        start: Array | None = None,
        outputs: Array | None = None,
        curvatures: list[RunningCurvature] | None = None,
    ) -> Fitted:
        """Return the best coefficients from `start` on (0 by default), whose outputs are K @ coef + bias.

        `curvatures`, one for each output, carry their sums from one call to the next where points only grow in number.
        """
        theta = np.zeros((R.shape[0], self.demands.shape[1])) if start is None else start.copy()
        with one_blas_thread():  # many small products
            outputs = against.times(theta[1:]) + theta[0] if outputs is None else outputs.copy()
            return self._descend(against, R, settings, theta, outputs, curvatures)

    def objective(self, residual: Array, theta: Array, R: Array) -> Array:
        """Return the objective of each output."""
        return (self.weights * np.square(residual)).sum(axis=0) + (theta * (R @ theta)).sum(axis=0)

    def slopes(self, outputs: Array) -> Array:
        """Return the derivative of the loss by each row's outputs, (n, q)."""
        return -2 * self.weights * self.demands.residual(outputs)

    def _descend(
        self,
        against: Against,
        R: Array,
        settings: NewtonSettings,
        theta: Array,
        outputs: Array,
        curvatures: list[RunningCurvature] | None,
    ) -> Fitted:
        residual = self.demands.residual(outputs)
        losses = self.objective(residual, theta, R)
        curvatures = curvatures or [RunningCurvature() for _ in losses]
        going = np.arange(losses.size)  # outputs that still gain
        for _ in range(settings.steps):
            some = slice(None) if going.size == losses.size else going  # a slice copies nothing
            part = Demands(self.demands.low[:, some], self.demands.high[:, some])
            step = self._steps(against, R, theta, residual, curvatures, going)
            change = against.times(step[1:]) + step[0]
            lengths = self._lengths(part, outputs[:, some], change, theta[:, some], step, R, settings.line_precision)
            theta[:, some] += lengths * step
            outputs[:, some] += lengths * change
            residual[:, some] = part.residual(outputs[:, some])
            before = losses[some].copy()
            losses[some] = self.objective(residual[:, some], theta[:, some], R)
            share = losses.mean() if settings.shared else losses[some]
            going = going[before - losses[some] > settings.precision * share]
            if not going.size:
                break
        return Fitted(theta, outputs, float(losses.sum()))

    def _steps(
        self,
        against: Against,
        R: Array,
        theta: Array,
        residual: Array,
        curvatures: list[RunningCurvature],
        going: Array,
    ) -> Array:
        """Return the Newton step of each of some outputs."""
        pull = R @ theta
        steps = np.empty((pull.shape[0], going.size))
        for number, column in enumerate(going):
            active = residual[:, column] != 0
            rows = np.flatnonzero(active)
            missing = self.weights[rows, 0] * residual[rows, column]
            H = curvatures[column].at(against, active, rows, self.weights[:, 0]) + R
            gradient = np.concatenate([[missing.sum()], against.back(missing[:, None], rows)[:, 0]])
            steps[:, number] = solve_definite(H, gradient - pull[:, column])
        return steps

    def _lengths(
        self, demands: Demands, outputs: Array, change: Array, theta: Array, step: Array, R: Array, precision: float
    ) -> Array:
        """Return how far each output goes along its step: to the least loss."""
        root = np.sqrt(self.weights)
        pull = R @ step
        linear, quadratic = (theta * pull).sum(axis=0), (step * pull).sum(axis=0)
        low, high = root * (demands.low - outputs), root * (demands.high - outputs)
        change = root * change
        lines = [Line(low[:, c], high[:, c], change[:, c], linear[c], quadratic[c]) for c in range(linear.size)]
        return np.array([line.minimum(start=1.0, precision=precision) for line in lines])


class RunningCurvature:
    """The sum of w d d' over the rows that fall short, d = (1, k): few of them come and go in a step."""

    def __init__(self) -> None:
        self.active: Array | None = None
        self.values = np.zeros((0, 0))

    def at(self, against: Against, active: Array, rows: Array, weights: Array) -> Array:
        """Return the sum over the active rows, whose numbers are `rows`."""
        changed = rows if self.active is None or rows.size < FEW_ROWS else np.flatnonzero(active != self.active)
        if 2 * changed.size >= rows.size:
            self.values = against.curvature(rows, weights)
        else:
            self._widen(against, weights)
            came, went = changed[active[changed]], changed[~active[changed]]
            self.values = self.values + against.curvature(came, weights) - against.curvature(went, weights)
        self.active = active
        return self.values

    def _widen(self, against: Against, weights: Array) -> None:
        """Add the points that are new since the last time."""
        old, size = self.values.shape[0], against.size + 1
        if size > old and self.active is not None:
            border = against.curvature(np.flatnonzero(self.active), weights, since=old)
            self.values = np.block([[self.values, border[:old]], [border.T]])


def tie_ridge(against: Against, weights: Array) -> Array:
    """Return a regulariser that settles ties and no more, for the points of a handle and the bias."""
    return RIDGE * float(weights.sum()) * max(against.largest_square(), 1e-300) * np.eye(against.size + 1)


@dataclass(frozen=True)
class Line:
    """quadratic t^2 + 2 linear t + sum_i dist(t change_i, [low_i, high_i])^2 as a function of t."""

    low: Array
    high: Array
    change: Array
    linear: float
    quadratic: float

    def minimum(self, start: float = 0.0, precision: float = 1e-9) -> float:
        """Return the t with the least value.

        The derivative is piecewise linear and grows, so Newton's method ends at the root after a few pieces; it is kept to
        the interval that the signs seen so far leave.
        """
        lowest, highest, t = -np.inf, np.inf, start
        squares, moved, rest = np.square(self.change), np.empty_like(self.change), np.empty_like(self.change)
        for _ in range(LINE_STEPS):
            np.multiply(self.change, t, out=moved)
            np.clip(moved, self.low, self.high, out=rest)
            rest -= moved
            slope = self.quadratic * t + self.linear - self.change @ rest
            curvature = self.quadratic + squares @ (rest != 0)
            lowest, highest = (lowest, t) if slope > 0 else (t, highest)
            if not curvature > 0 or abs(slope) <= 1e-12 * curvature * abs(t):
                break
            new = t - slope / curvature
            t, before = float(new if lowest < new < highest else (lowest + highest) / 2), t
            if abs(t - before) <= precision * abs(t):
                break
        return t

    def gain(self, t: float) -> float:
        """Return by how much the value at t is below that at 0."""
        moved = t * self.change
        before, after = (np.clip(at, self.low, self.high) - at for at in (np.zeros_like(moved), moved))
        return float(before @ before - after @ after - t * (self.quadratic * t + 2 * self.linear))


def solve_definite(H: Array, gradient: Array) -> Array:
    """Return H^-1 gradient for a symmetric H without negative eigenvalues, with the least ridge that makes it definite."""
    diagonal = np.arange(H.shape[0])
    jitter = 1e-14 * (float(H[diagonal, diagonal].max()) or 1.0)
    while np.isfinite(jitter):
        shifted = H.copy()
        shifted[diagonal, diagonal] += jitter
        _, found, failed = dposv(shifted, gradient, overwrite_a=True)  # LAPACK itself: H is often small
        if not failed:
            return found
        jitter *= 100
    raise ValueError("kernel values are too large for numbers of this kind; scale the features, or lower gamma or degree")
