"""Losses of points alone, with the best coefficients for each set of points: variable projection (Golub & Pereyra 1973).

    L(Z) = min over coef, bias of  sum_ic w_i max(0, h_ic - y_ic f_c(x_i))^2 + theta' R(Z) theta

with f_c(x) = sum_j k(x, z_j) coef_jc + bias_c, theta = (bias, coef), and R(Z) the regulariser: `decay` times |f|^2 in
feature space, and a ridge that settles ties. The minimum is found by Newton's method, which solves a linear system of as
many unknowns as points. At the minimum the derivative with respect to coefficients is 0, so the gradient of L is the plain
derivative with respect to points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import issparse

from ..kernels import Array, Matrix
from ..rows.protocol import Rows
from ..rows.threads import blocks
from .coefficients import RIDGE, line_minimum, solved
from .moving import MovingRows, kernel_values

#: numbers up to which sparse rows are written out
DENSE_VALUES = 1 << 25
#: numbers in rows and kernel values that are multiplied at a time, and parts of the rows with sums of their own
BLOCK_VALUES, PARTS = 1 << 18, 8
#: work, as so many numbers to read, below which one thread is faster than several
SMALL_WORK = 1 << 21
#: the share of rows with unmet demands below which the others are left out of a gradient
FEW = 0.5
#: rows with unmet demands below which it is quicker to sum anew than to look for those that came and went
FEW_ROWS = 512
#: a step of Newton's that gains a smaller share of the loss is the last one
PRECISION = 1e-4


class ProjectedLoss:
    """L on the rows of a Rows, with its gradient; the coefficients of one call are where the next one begins."""

    def __init__(self, gram: Rows, targets: Array, demands: Array, weights: Array, decay: float) -> None:
        self.rows = MovingRows(gram)
        self.targets, self.demands, self.weights = targets, demands, weights[:, None]
        self.decay, self.ridge = decay, RIDGE * float(weights.sum())
        self.alike = bool(np.ptp(weights) == 0)
        self.features = self._features()
        self.memory = np.empty(0)
        self.theta = np.zeros((1, targets.shape[1]))  # biases, then coefficients

    def __call__(self, points: Array, newton_steps: int = 8) -> tuple[float, Array]:
        """L and its gradient (m, d)."""
        K, Kz, unmet, loss = self._solved(points, newton_steps)
        slopes = -2 * self.weights * self.targets * np.maximum(unmet, 0.0)
        gradient = self._pulled_back(points, K, slopes)
        if self.rows.kernel.definite:
            coef = self.theta[1:]
            # each point has two places in |f|^2, of which the pullback sees one
            gradient += self.rows.kernel.pullback(points, points, Kz, 2 * self.decay * (coef @ coef.T))
        return loss, gradient

    def settle(self, points: Array) -> tuple[Array, float, Array]:
        """The best coefficients, under the biases (m + 1, q), L, and the demands that are unmet with them (n, q)."""
        _, _, unmet, loss = self._solved(points, 20)
        return self.theta, loss, unmet

    def _solved(self, points: Array, newton_steps: int) -> tuple[Array, Array, Array, float]:
        self.theta = _resized(self.theta, points.shape[0] + 1)
        K, outputs = self._outputs(points)
        Kz = self.rows.kernel(points, points)
        unmet, loss = self._newton(K, outputs, self._regulariser(Kz), newton_steps)
        return K, Kz, unmet, loss

    def _features(self) -> Matrix:
        """The rows for gradients: written out where that is affordable, since sparse products with many points are slow."""
        values = self.rows.rows.values
        return values.toarray() if issparse(values) and values.shape[0] * values.shape[1] <= DENSE_VALUES else values

    def _outputs(self, points: Array) -> tuple[Array, Array]:
        """Kernel values between rows and points, and f at each row."""
        n, m = self.rows.count, points.shape[0]
        tiles = self.rows.tiles(points)
        if self.memory.size < n * m or self.memory.dtype != tiles.dtype:
            self.memory = np.empty(n * m, tiles.dtype)
        K = self.memory[: n * m].reshape(n, m)
        outputs = np.empty((n, self.theta.shape[1]))
        coef, bias = self.theta[1:].astype(tiles.dtype), self.theta[0]

        def work(rows: slice) -> None:
            outputs[rows] = kernel_values(tiles, rows, K[rows]) @ coef
            outputs[rows] += bias

        self.rows.gram.meter.add(n * m)
        self._run(work, n, m * (8 + points.shape[1] // 4), self.rows.strip(points))
        return K, outputs

    def _regulariser(self, Kz: Array) -> Array:
        R = np.zeros((Kz.shape[0] + 1, Kz.shape[0] + 1))
        # without a feature space there is no |f|, and coefficients are kept small instead
        R[1:, 1:] = self.decay * (Kz if self.rows.kernel.definite else np.eye(Kz.shape[0]))
        R[np.diag_indices_from(R)] += self.ridge
        return R

    def _newton(self, K: Array, outputs: Array, R: Array, steps: int) -> tuple[Array, float]:
        """Newton's method from the present coefficients on; the unmet demands at its end, and the loss."""
        unmet = self.demands - self.targets * outputs
        losses = self._losses(unmet, self.theta, R)
        curvatures = [_RunningSum() for _ in losses]
        going = np.arange(losses.size)  # outputs that still gain
        for _ in range(steps):
            some = slice(None) if going.size == losses.size else going  # a slice copies nothing
            step = self._step(K, unmet, R, curvatures, going)
            change = self.targets[:, some] * self._changes(K, step)
            lengths = self._lengths(unmet[:, some], change, self.theta[:, some], step, R)
            self.theta[:, some] += lengths * step
            unmet[:, some] -= lengths * change
            before = losses[some].copy()
            losses[some] = self._losses(unmet[:, some], self.theta[:, some], R)
            going = going[before - losses[some] > PRECISION * losses.mean()]
            if not going.size:
                break
        return unmet, float(losses.sum())

    def _losses(self, unmet: Array, theta: Array, R: Array) -> Array:
        """The part of each output in L."""
        return (self.weights * np.square(np.maximum(unmet, 0.0))).sum(axis=0) + (theta * (R @ theta)).sum(axis=0)

    def _step(self, K: Array, unmet: Array, R: Array, curvatures: list[_RunningSum], going: Array) -> Array:
        """The Newton step of some outputs."""
        pull = R @ self.theta
        steps = np.empty((pull.shape[0], going.size))
        for number, column in enumerate(going):
            active = unmet[:, column] > 0
            rows = np.flatnonzero(active)
            residual = self.weights[rows, 0] * self.targets[rows, column] * unmet[rows, column]
            H = curvatures[column].at(active, rows, lambda some: self._curvature(K, some)) + R
            steps[:, number] = solved(H, self._back(K, rows, residual) - pull[:, column])
        return steps

    def _curvature(self, K: Array, rows: Array) -> Array:
        """The sum of w (1, k)(1, k)' over some rows."""
        m = K.shape[1]
        roots = np.sqrt(self.weights).astype(K.dtype)

        def sums(some: slice) -> Array:
            part = rows[some]
            A = np.empty((part.size, m + 1), K.dtype)
            A[:, 0], A[:, 1:] = 1.0, K[part]
            if not self.alike:
                A *= roots[part]
            return A.T @ A

        total = self._summed(rows.size, m, sums, (m + 1, m + 1), cost=m * (2 + m // 16))
        return total * self.weights[0] if self.alike else total

    def _back(self, K: Array, rows: Array, residual: Array) -> Array:
        """The sum of (1, k) times the residual over some rows."""
        thin = residual.astype(K.dtype)
        found = self._summed(
            rows.size, K.shape[1], lambda some: thin[some] @ K[rows[some]], (K.shape[1],), cost=2 * K.shape[1]
        )
        return np.concatenate([[residual.sum()], found])

    def _changes(self, K: Array, step: Array) -> Array:
        """What a step changes in f at each row."""
        changes = np.empty((K.shape[0], step.shape[1]))
        coef = step[1:].astype(K.dtype)

        def work(rows: slice) -> None:
            changes[rows] = K[rows] @ coef
            changes[rows] += step[0]

        self._run(work, K.shape[0], K.shape[1], 1 << 14)
        return changes

    def _lengths(self, unmet: Array, change: Array, theta: Array, step: Array, R: Array) -> Array:
        """How far each output goes along its step: to the least loss."""
        root = np.sqrt(self.weights[:, 0])
        pull = R @ step
        linear, quadratic = (theta * pull).sum(axis=0), (step * pull).sum(axis=0)
        pairs = ((root * unmet[:, c], root * change[:, c]) for c in range(step.shape[1]))
        return np.array(
            [line_minimum(*pair, linear[c], quadratic[c], start=1.0, precision=0.01) for c, pair in enumerate(pairs)]
        )

    def _pulled_back(self, points: Array, K: Array, slopes: Array) -> Array:
        """The derivative with respect to points, from the rows with unmet demands."""
        active = np.flatnonzero(slopes.any(axis=1))
        rows = active if active.size < FEW * K.shape[0] else np.arange(K.shape[0])
        coef, placed = self.theta[1:].T.astype(K.dtype), points.astype(K.dtype)

        def sums(some: slice) -> Array:
            part = rows[some] if rows is active else some  # a slice copies nothing
            W = slopes[part].astype(K.dtype)
            W = W * coef if coef.shape[0] == 1 else W @ coef  # BLAS is slow at the product of two vectors
            return self.rows.kernel.pullback(self.features[part], placed, K[part], W)

        return self._summed(
            rows.size, sum(points.shape), sums, points.shape, cost=points.shape[0] * (4 + points.shape[1] // 4)
        )

    def _summed(self, count: int, width: int, sums: Callable[[slice], Array], shape: tuple[int, ...], cost: int) -> Array:
        """The total of sums over blocks of range(count), in the same order for any number of threads.

        An item is `width` numbers to hold at a time and about as long a work as reading `cost` of them.
        """
        block = max(BLOCK_VALUES // (width + 1), 256)
        if count <= block:
            return sums(slice(0, count)).astype(np.float64)
        parts = max(min(PARTS, 2 * count // block), 1)
        totals = np.zeros((parts, *shape))
        size = -(-count // parts)

        def add(numbers: slice) -> None:
            for number in range(numbers.start, numbers.stop):
                first, last = number * size, min((number + 1) * size, count)
                for some in blocks(max(last - first, 0), block):
                    totals[number] += sums(slice(first + some.start, first + some.stop))

        self._run(add, parts, size * cost, 1)
        return totals.sum(axis=0)

    def _run(self, work: Callable[[slice], None], count: int, cost: int, strip: int) -> None:
        """Call work(strip) for all of range(count), in threads where that much of it is worth the trouble."""
        if count * cost < SMALL_WORK:
            work(slice(0, count))
        else:
            self.rows.gram.crew.run(work, count, strip)


class _RunningSum:
    """A sum over the rows with unmet demands, of which few come and go from one Newton step to the next."""

    def __init__(self) -> None:
        self.active: Array | None = None
        self.values = np.zeros((0, 0))

    def at(self, active: Array, rows: Array, over: Callable[[Array], Array]) -> Array:
        """The sum over the active rows, whose numbers are `rows`; `over` sums over any rows."""
        changed = rows if self.active is None or rows.size < FEW_ROWS else np.flatnonzero(active != self.active)
        if 2 * changed.size >= rows.size:
            self.values = over(rows)
        else:
            self.values = self.values + over(changed[active[changed]]) - over(changed[~active[changed]])
        self.active = active
        return self.values


def _resized(theta: Array, size: int) -> Array:
    """A copy of the coefficients with so many rows: new points begin at 0."""
    return np.vstack([theta[:size], np.zeros((max(size - theta.shape[0], 0), theta.shape[1]))])
