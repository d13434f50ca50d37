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

from ..gram import Gram, blocks
from ..kernels import Array, Matrix
from .coefficients import RIDGE, line_minimum, solved
from .moving import MovingRows, kernel_values

#: numbers up to which sparse rows are written out
DENSE_VALUES = 1 << 25
#: numbers in rows and kernel values that are multiplied at a time, and parts of the rows with sums of their own
BLOCK_VALUES, PARTS = 1 << 18, 8
#: numbers to read below which one thread is faster than several
SMALL_WORK = 1 << 17
#: the share of rows with unmet demands below which the others are left out of a gradient
FEW = 0.5
#: a step of Newton's that gains a smaller share of the loss is the last one
PRECISION = 1e-3


class ProjectedLoss:
    """L on the rows of a Gram, with its gradient; the coefficients of one call are where the next one begins."""

    def __init__(self, gram: Gram, targets: Array, demands: Array, weights: Array, decay: float) -> None:
        self.rows = MovingRows(gram)
        self.targets, self.demands, self.weights = targets, demands, weights[:, None]
        self.decay, self.ridge = decay, RIDGE * float(weights.sum())
        self.alike = bool(np.ptp(weights) == 0)
        self.features = self._features()
        self.memory = np.empty(0)
        self.theta = np.zeros((1, targets.shape[1]))  # biases, then coefficients

    def __call__(self, points: Array, newton_steps: int = 3) -> tuple[float, Array]:
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
        self._run(work, n, m * (points.shape[1] + 1), self.rows.strip(points))
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
        loss = self._loss(unmet, R)
        for _ in range(steps):
            step = self._step(K, unmet, R)
            change = self.targets * self._changes(K, step)
            lengths = self._lengths(unmet, change, step, R)
            self.theta += lengths * step
            unmet -= lengths * change
            before, loss = loss, self._loss(unmet, R)
            if before - loss <= PRECISION * loss:
                break
        return unmet, loss

    def _loss(self, unmet: Array, R: Array) -> float:
        data = float((self.weights * np.square(np.maximum(unmet, 0.0))).sum())
        return data + float((self.theta * (R @ self.theta)).sum())

    def _step(self, K: Array, unmet: Array, R: Array) -> Array:
        """The Newton step of each output."""
        pull = R @ self.theta
        steps = np.empty_like(self.theta)
        for column in range(steps.shape[1]):
            active = np.flatnonzero(unmet[:, column] > 0)
            residual = self.weights[active, 0] * self.targets[active, column] * unmet[active, column]
            curvature, back = self._curvature(K, active, residual)
            steps[:, column] = solved(curvature + R, back - pull[:, column])
        return steps

    def _curvature(self, K: Array, active: Array, residual: Array) -> tuple[Array, Array]:
        """Sums of w (1, k)(1, k)' and of (1, k) times the residual over the active rows."""
        m = K.shape[1]
        roots = np.sqrt(self.weights).astype(K.dtype)

        def sums(some: slice) -> Array:
            rows = active[some]
            A = np.empty((rows.size, m + 2), K.dtype)
            A[:, 0], A[:, 1:-1] = 1.0, K[rows]
            if not self.alike:
                A[:, :-1] *= roots[rows]
            A[:, -1] = residual[some] / roots[rows, 0]  # the last column of A'A is then the other sum
            return A[:, :-1].T @ A

        total = self._summed(active.size, m, sums, (m + 1, m + 2))
        if self.alike:
            total[:, :-1] *= self.weights[0]
            total[:, -1] *= roots[0]
        return total[:, :-1], total[:, -1]

    def _changes(self, K: Array, step: Array) -> Array:
        """What a step changes in f at each row."""
        changes = np.empty((K.shape[0], step.shape[1]))
        coef = step[1:].astype(K.dtype)

        def work(rows: slice) -> None:
            changes[rows] = K[rows] @ coef
            changes[rows] += step[0]

        self._run(work, K.shape[0], K.shape[1], 1 << 14)
        return changes

    def _lengths(self, unmet: Array, change: Array, step: Array, R: Array) -> Array:
        """How far each output goes along its step: to the least loss."""
        root = np.sqrt(self.weights[:, 0])
        pull = R @ step
        linear, quadratic = (self.theta * pull).sum(axis=0), (step * pull).sum(axis=0)
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

        return self._summed(rows.size, sum(points.shape), sums, points.shape)

    def _summed(self, count: int, width: int, sums: Callable[[slice], Array], shape: tuple[int, ...]) -> Array:
        """The total of sums over blocks of range(count), in the same order for any number of threads."""
        block = max(BLOCK_VALUES // (width + 1), 256)
        parts = max(min(PARTS, 2 * count // block), 1)
        totals = np.zeros((parts, *shape))
        size = -(-count // parts)

        def work(numbers: slice) -> None:
            for number in range(numbers.start, numbers.stop):
                first, last = number * size, min((number + 1) * size, count)
                for some in blocks(max(last - first, 0), block):
                    totals[number] += sums(slice(first + some.start, first + some.stop))

        self._run(work, parts, size * width, 1)
        return totals.sum(axis=0)

    def _run(self, work: Callable[[slice], None], count: int, width: int, strip: int) -> None:
        """Call work(strip) for all of range(count), in threads where that much of it is worth the trouble."""
        if count * width < SMALL_WORK:
            work(slice(0, count))
        else:
            self.rows.gram.crew.run(work, count, strip)


def _resized(theta: Array, size: int) -> Array:
    """A copy of the coefficients with so many rows: new points begin at 0."""
    return np.vstack([theta[:size], np.zeros((max(size - theta.shape[0], 0), theta.shape[1]))])
