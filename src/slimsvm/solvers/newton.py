"""Newton's method for squared distances to intervals: the best coefficients for given points.

For each output, with K the kernel between rows and points, [low, high] the demands of the rows and w their weights,

    minimise  sum_i w_i dist(b + K_i beta, [low_i, high_i])^2 + theta' R theta        over theta = (b, beta)

A row whose output lies in its interval costs nothing. It is a least-squares problem on the rows that fall short, so
Newton's method solves it in a few steps. With the demands of labels it is the squared hinge loss of an SVM in the primal
(Keerthi & DeCoste 2005; Chapelle 2007), or the squared epsilon-insensitive loss of regression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from .._core import core
from ..goals.demands import Demands
from ..keeping import Saved
from ..kernels import Array
from ..rows.protocol import Against
from ..rows.threads import one_blas_thread

#: ridge over the sum of weights times the largest squared kernel value: it settles ties and no more
RIDGE = 1e-7
#: rows that fall short below which a curvature is summed anew; above, only the rows that changed are added or taken away
FEW_ROWS = 512
#: steps of a line search
LINE_STEPS = 30
#: outputs from which on their gradients are one product with all rows; more: products of few rows for each output
MANY_OUTPUTS = 3
#: work of all outputs, as so many numbers to read, from which on it is shared out to threads; more: one thread for longer
WORTH_THREADS = 1 << 19
#: what rounding may leave to gain after a step to the minimum of a quadratic, as a share of what that step gained
QUADRATIC_REST = 1e-4


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

    def state(self) -> dict[str, Any]:
        """Return the fit as a keeper takes it."""
        fortran = bool(np.isfortran(self.outputs))
        return {"theta": self.theta.copy(), "outputs": self.outputs.copy(), "fortran": fortran, "loss": self.loss}

    @classmethod
    def restored(cls, saved: Saved, n: int, q: int) -> Fitted:
        """Return the fit of n rows that a keeper has; sums over outputs depend on their order in memory."""
        outputs = saved.array("outputs", n, q)
        outputs = np.asfortranarray(outputs) if saved.value("fortran", bool) else outputs
        return cls(saved.array("theta", None, q), outputs, saved.number("loss"))

    @property
    def bias(self) -> Array:
        """The bias of each output."""
        return self.theta[0]

    @property
    def coef(self) -> Array:
        """The coefficients, a row for each point."""
        return self.theta[1:]


class IntervalSquares:
    """The problem of all outputs on the same rows. Its data stay; points and regulariser come with each call.

    Outputs are fitted side by side in threads, so the numbers of each output lie together in memory (order "F").
    """

    def __init__(self, demands: Demands, weights: Array) -> None:
        self.demands = Demands(np.asfortranarray(demands.low, np.float64), np.asfortranarray(demands.high, np.float64))
        self.weights = np.ascontiguousarray(weights, np.float64)
        #: intervals of a single point make the loss quadratic, and one step ends at its minimum
        self.quadratic = np.bool_((self.demands.low == self.demands.high).all())

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
            outputs = against.times(theta[1:]) + theta[0] if outputs is None else outputs
            return self._descend(against, R, settings, theta, np.array(outputs, np.float64, order="F"), curvatures)

    def objective(self, residual: Array, theta: Array, R: Array) -> Array:
        """Return the objective of each output."""
        return self.weights @ np.square(residual) + (theta * (R @ theta)).sum(axis=0)

    def slopes(self, outputs: Array) -> Array:
        """Return the derivative of the loss by each row's outputs, (n, q)."""
        return -2 * self.weights[:, None] * self.demands.residual(outputs)

    def _descend(
        self,
        against: Against,
        R: Array,
        settings: NewtonSettings,
        theta: Array,
        outputs: Array,
        curvatures: list[RunningCurvature] | None,
    ) -> Fitted:
        residual = np.asfortranarray(self.demands.residual(outputs))
        losses = self.objective(residual, theta, R)
        curvatures = curvatures or [RunningCurvature() for _ in losses]
        going = np.arange(losses.size)  # outputs that still gain
        for _ in range(settings.steps):
            step = self._steps(against, R, theta, residual, curvatures, going)
            change = np.asfortranarray(against.times(step[1:]) + step[0])
            before = losses[going]
            switched = self._move(against, R, theta, outputs, residual, losses, going, step, change, settings)
            still = np.where((switched > 0) | ~self.quadratic, 1.0, QUADRATIC_REST) * (before - losses[going])
            going = going[still > settings.precision * (losses.mean() if settings.shared else losses[going])]
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
        missing = (self.weights * residual.T[going]).T
        together = going.size >= MANY_OUTPUTS  # then one product with all rows is faster than one with a few for each
        sums = against.back(missing) if together else np.empty((pull.shape[0] - 1, going.size))

        def solve(number: int) -> None:
            column = going[number]
            active = residual[:, column] != 0
            rows = np.flatnonzero(active)
            if not together:
                sums[:, number] = against.back(missing[rows, number : number + 1], rows)[:, 0]
            H = curvatures[column].at(against, active, rows, self.weights) + R
            gradient = np.concatenate([[missing[:, number].sum()], sums[:, number]])
            steps[:, number] = solve_definite(H, gradient - pull[:, column])

        _each(against, solve, going.size, R.shape[0] * (residual.shape[0] + R.size // 3))
        return steps

    def _move(
        self,
        against: Against,
        R: Array,
        theta: Array,
        outputs: Array,
        residual: Array,
        losses: Array,
        going: Array,
        step: Array,
        change: Array,
        settings: NewtonSettings,
    ) -> Array:
        """Take each output's step as far as the loss falls; return how many rows entered or left their interval."""
        pull = R @ step
        linear, quadratic = (theta[:, going] * pull).sum(axis=0), (step * pull).sum(axis=0)
        squared_norm = (theta[:, going] * (R @ theta[:, going])).sum(axis=0)
        low, high, switched = self.demands.low, self.demands.high, np.zeros(going.size, dtype=np.intp)

        def move(number: int) -> None:
            c, d = going[number], change[:, number]
            line = Line(low[:, c], high[:, c], outputs[:, c], d, self.weights, linear[number], quadratic[number])
            t = line.minimum(1.0, settings.line_precision)
            loss, switched[number] = core.line_move(
                low[:, c], high[:, c], d, self.weights, t, outputs[:, c], residual[:, c]
            )
            theta[:, c] += t * step[:, number]
            losses[c] = loss + squared_norm[number] + t * (2 * linear[number] + t * quadratic[number])

        _each(against, move, going.size, 16 * residual.shape[0])
        return switched


def _each(against: Against, work: Callable[[int], None], count: int, cost: int) -> None:
    """Call work(k) for each k in range(count), each about as long a work as reading `cost` numbers; in threads if long."""
    if count > 1 and count * cost >= WORTH_THREADS:
        against.rows.share_out(work, count)
    else:
        for number in range(count):
            work(number)


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

    def move(self, t: float, residual: Array) -> tuple[float, int]:
        """Move the outputs along the line and set their residual, both in place.

        Returns the sum over rows at t, and how many rows entered or left their interval.
        """
        return core.line_move(self.low, self.high, self.change, self.weights, t, self.outputs, residual)

    def gain(self, t: float) -> float:
        """Return by how much the value at t is below that at 0."""
        moved = self.outputs + t * self.change
        before, after = (np.square(np.clip(at, self.low, self.high) - at) for at in (self.outputs, moved))
        return float(self.weights @ (before - after) - t * (self.quadratic * t + 2 * self.linear))


def solve_definite(H: Array, gradient: Array) -> Array:
    """Return H^-1 gradient for a symmetric H without negative eigenvalues, with the least ridge that makes it definite."""
    diagonal = np.arange(H.shape[0])
    jitter = 1e-14 * (float(H[diagonal, diagonal].max()) or 1.0)
    while np.isfinite(jitter):
        shifted = H.copy()
        shifted[diagonal, diagonal] += jitter
        _, found, failed = dposv(shifted.T, gradient, overwrite_a=True)  # LAPACK itself: H is often small
        if not failed:
            return found
        jitter *= 100
    raise ValueError("kernel values are too large for numbers of this kind; scale the features, or lower gamma or degree")
