"""Newton's method for one-sided least squares: the best coefficients for given points.

For each output, with K the kernel between rows and points, y the targets, h the margin targets and w the weights,

    minimise  sum_i w_i max(0, h_i - y_i (b + K_i beta))^2 + theta' R theta        over theta = (b, beta)

The loss is one-sided: a row that reaches its margin target, or has none (h = -inf), costs nothing. It is a least-squares
problem on the rows that fall short, so Newton's method solves it in a few steps. With h = 1 it is the squared hinge loss of
an SVM in the primal (Keerthi & DeCoste 2005; Chapelle 2007).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

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
    """Biases and coefficients theta (m + 1, q), the shortfall h - y f of each row and output, and the objective."""

    theta: Array
    shortfall: Array
    loss: float

    @property
    def bias(self) -> Array:
        """The bias of each output."""
        return self.theta[0]

    @property
    def coef(self) -> Array:
        """The coefficients, a row for each point."""
        return self.theta[1:]


class OneSidedSquares:
    """The problem of all outputs on the same rows. Its data stay; points and regulariser come with each call."""

    def __init__(self, targets: Array, margin_targets: Array, weights: Array) -> None:
        self.targets, self.margin_targets, self.weights = targets, margin_targets, weights[:, None]

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
        theta = np.zeros((R.shape[0], self.targets.shape[1])) if start is None else start.copy()
        with one_blas_thread():  # many small products
            if outputs is None:
                outputs = against.times(theta[1:]) + theta[0]
            return self._descend(against, R, settings, theta, outputs, curvatures)

    def objective(self, shortfall: Array, theta: Array, R: Array) -> Array:
        """Return the objective of each output."""
        squares = np.square(np.maximum(shortfall, 0.0))
        return (self.weights * squares).sum(axis=0) + (theta * (R @ theta)).sum(axis=0)

    def slopes(self, shortfall: Array) -> Array:
        """Return the derivative of the loss by each row's outputs, (n, q)."""
        return -2 * self.weights * self.targets * np.maximum(shortfall, 0.0)

    def _descend(
        self,
        against: Against,
        R: Array,
        settings: NewtonSettings,
        theta: Array,
        outputs: Array,
        curvatures: list[RunningCurvature] | None,
    ) -> Fitted:
        shortfall = self.margin_targets - self.targets * outputs
        losses = self.objective(shortfall, theta, R)
        curvatures = curvatures or [RunningCurvature() for _ in losses]
        going = np.arange(losses.size)  # outputs that still gain
        for _ in range(settings.steps):
            some = slice(None) if going.size == losses.size else going  # a slice copies nothing
            step = self._steps(against, R, theta, shortfall, curvatures, going)
            change = self.targets[:, some] * (against.times(step[1:]) + step[0])
            lengths = self._lengths(shortfall[:, some], change, theta[:, some], step, R, settings.line_precision)
            theta[:, some] += lengths * step
            shortfall[:, some] -= lengths * change
            before = losses[some].copy()
            losses[some] = self.objective(shortfall[:, some], theta[:, some], R)
            share = losses.mean() if settings.shared else losses[some]
            going = going[before - losses[some] > settings.precision * share]
            if not going.size:
                break
        return Fitted(theta, shortfall, float(losses.sum()))

    def _steps(
        self,
        against: Against,
        R: Array,
        theta: Array,
        shortfall: Array,
        curvatures: list[RunningCurvature],
        going: Array,
    ) -> Array:
        """Return the Newton step of each of some outputs."""
        pull = R @ theta
        steps = np.empty((pull.shape[0], going.size))
        for number, column in enumerate(going):
            active = shortfall[:, column] > 0
            rows = np.flatnonzero(active)
            residual = self.weights[rows, 0] * self.targets[rows, column] * shortfall[rows, column]
            H = curvatures[column].at(against, active, rows, self.weights[:, 0]) + R
            gradient = np.concatenate([[residual.sum()], against.back(residual[:, None], rows)[:, 0]])
            steps[:, number] = solve_definite(H, gradient - pull[:, column])
        return steps

    def _lengths(self, shortfall: Array, change: Array, theta: Array, step: Array, R: Array, precision: float) -> Array:
        """Return how far each output goes along its step: to the least loss."""
        root = np.sqrt(self.weights[:, 0])
        pull = R @ step
        linear, quadratic = (theta * pull).sum(axis=0), (step * pull).sum(axis=0)
        pairs = ((root * shortfall[:, c], root * change[:, c]) for c in range(step.shape[1]))
        return np.array(
            [line_minimum(*pair, linear[c], quadratic[c], start=1.0, precision=precision) for c, pair in enumerate(pairs)]
        )


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


def line_minimum(
    slack: Array, change: Array, linear: float, quadratic: float, start: float = 0.0, precision: float = 1e-9
) -> float:
    """Return the t with the least  quadratic t^2 + 2 linear t + sum_i max(0, slack_i - t change_i)^2.

    Its derivative is piecewise linear and grows, so Newton's method ends at the root after a few pieces; it is kept to
    the interval that the signs seen so far leave.
    """
    low, high, t = -np.inf, np.inf, start
    squares, rest = np.square(change), np.empty_like(change)
    for _ in range(LINE_STEPS):
        np.multiply(change, -t, out=rest)
        rest += slack
        np.maximum(rest, 0.0, out=rest)
        slope = quadratic * t + linear - change @ rest
        curvature = quadratic + squares @ (rest > 0)
        low, high = (low, t) if slope > 0 else (t, high)
        if not curvature > 0 or abs(slope) <= 1e-12 * curvature * abs(t):
            break
        new = t - slope / curvature
        t, before = float(new if low < new < high else (low + high) / 2), t
        if abs(t - before) <= precision * abs(t):
            break
    return t


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
