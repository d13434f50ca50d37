"""The best coefficients for given points: a convex problem of as many unknowns as points, by Newton's method.

For each output, with K the kernel between rows and points, y the targets, h the demands and w the weights,

    minimise  sum_i w_i max(0, h_i - y_i (b + K_i beta))^2 + theta' R theta        over theta = (b, beta)

The loss is one-sided: a row that has what it demands, or demands nothing (h = -inf), costs nothing. It is a least-squares
problem on the rows with unmet demands, so Newton's method solves it in a few steps. With h = 1 it is the squared hinge
loss of an SVM in the primal (Keerthi & DeCoste 2005; Chapelle 2007).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg.lapack import dposv

from ..kernels import Array
from ..rows.threads import blocks, one_blas_thread

#: ridge over the sum of weights times the largest squared kernel value: it settles ties and no more
RIDGE = 1e-7
MAX_STEPS = 30
#: kernel values between rows and points that a refit may hold
REFIT_VALUES = 1 << 24
#: a step that gains a smaller share of the loss is the last one
PRECISION = 1e-6
#: kernel values that are held in float64 at a time
BLOCK = 1 << 19
#: curvatures of all outputs that are kept from one `solve` to the next
KEPT_CURVATURES = 1 << 25


class CoefficientFit:
    """The problem for points and for any first few of them, which share its matrix.

    `regulariser` is R, for the bias and the points in this order; of the first few points it is the leading part. None
    stands for a ridge that settles ties. K and R are read where they are, so points may be written into them between
    two calls of `solve`.
    """

    def __init__(
        self,
        K: Array,
        targets: Array,
        demands: Array,
        weights: Array,
        regulariser: Array | None = None,
        precision: float = PRECISION,
    ) -> None:
        self.K, self.regulariser, self.precision = K, regulariser, precision
        root = np.sqrt(weights)[:, None]  # w max(0, h - y f)^2 = max(0, r h - r y f)^2 with r^2 = w
        self.root, self.signs, self.demands = root, root * targets, root * demands
        self.ridge = 0.0 if regulariser is not None else RIDGE * float(weights.sum()) * _largest_square(K)
        self.curvatures = [_Curvature(K, root) for _ in range(targets.shape[1])]

    def solve(self, coef: Array, bias: Array) -> tuple[Array, Array]:
        """The best coefficients (m, q) and biases (q,) of the first m points, from those given on."""
        coef, bias, _ = self.descend(coef, bias, self.unmet(coef, bias), self.precision)
        return coef, bias

    def descend(self, coef: Array, bias: Array, unmet: Array, precision: float) -> tuple[Array, Array, Array]:
        """Coefficients, biases and unmet demands after Newton steps, until one gains no more than a share of the loss."""
        theta, unmet = np.vstack([bias, coef]), unmet.copy()
        R = self._regulariser(theta.shape[0])
        loss = _losses(unmet, theta, R)
        going = np.arange(theta.shape[1])  # outputs that still gain
        with one_blas_thread():  # many small products
            for _ in range(MAX_STEPS):
                step = self._steps(theta[:, going], unmet[:, going], going, R)
                change = self.signs[:, going] * _outputs(self.K, step)
                step, change = _shortened(step, change, theta[:, going], unmet[:, going], R)
                new = _losses(unmet[:, going] - change, theta[:, going] + step, R)
                better, gained = new < loss[going], loss[going] - new > precision * new
                theta[:, going[better]] += step[:, better]
                unmet[:, going[better]] -= change[:, better]
                loss[going[better]] = new[better]
                going = going[gained]
                if not going.size:
                    break
        if len(self.curvatures) * theta.shape[0] ** 2 > KEPT_CURVATURES:
            self.curvatures = [_Curvature(self.K, self.root) for _ in self.curvatures]
        return theta[1:], theta[0], unmet

    def unmet(self, coef: Array, bias: Array) -> Array:
        """sqrt(w) (h - y f), for each row and output: -inf where nothing is demanded."""
        return self.demands - self.signs * _outputs(self.K, np.vstack([bias, coef]))

    def objective(self, coef: Array, bias: Array) -> float:
        """What `solve` minimises, summed over the outputs."""
        theta = np.vstack([bias, coef])
        return float(_losses(self.unmet(coef, bias), theta, self._regulariser(theta.shape[0])).sum())

    def _regulariser(self, size: int) -> Array:
        return self.ridge * np.eye(size) if self.regulariser is None else self.regulariser[:size, :size]

    def _steps(self, theta: Array, unmet: Array, outputs: Array, R: Array) -> Array:
        """The Newton step of each of the outputs."""
        gradient = R @ theta - _back(self.K, theta.shape[0] - 1, self.signs[:, outputs] * np.maximum(unmet, 0.0))
        return np.column_stack(
            [
                -solved(self.curvatures[output].of(unmet[:, column] > 0, theta.shape[0]) + R, gradient[:, column])
                for column, output in enumerate(outputs)
            ]
        )


class _Curvature:
    """sum of w d d' over the rows with unmet demands, d = (1, k): kept up to date, as few rows come and go in a step."""

    def __init__(self, K: Array, root: Array) -> None:
        self.K, self.root = K, root
        self.active = np.zeros(K.shape[0], dtype=bool)
        self.values = np.zeros((0, 0))

    def of(self, active: Array, size: int) -> Array:
        """The curvature where these rows are active, of the bias and the first size - 1 points."""
        changed = active != self.active
        if changed.sum() >= active.sum():
            self.values = self._sum(active, size)
        else:
            self._resize(size)
            self.values += self._sum(active & changed, size) - self._sum(self.active & changed, size)
        self.active = active
        return self.values

    def _resize(self, size: int) -> None:
        old = self.values.shape[0]
        if size <= old:
            self.values = self.values[:size, :size].copy()
            return
        border = np.zeros((size, size - old))
        for design in self._designs(self.active, size):
            border += design.T @ design[:, old:]
        self.values = np.block([[self.values, border[:old]], [border.T]])

    def _sum(self, rows: Array, size: int) -> Array:
        total = np.zeros((size, size))
        for design in self._designs(rows, size):
            total += design.T @ design
        return total

    def _designs(self, rows: Array, size: int) -> Iterator[Array]:
        """The vectors sqrt(w) (1, k) of the rows, a block at a time."""
        index = np.flatnonzero(rows)
        for some in blocks(index.size, max(BLOCK // size, 1)):
            part = index[some]
            design = np.empty((part.size, size))
            design[:, :1] = self.root[part]
            np.multiply(self.root[part], self.K[part, : size - 1], out=design[:, 1:])
            yield design


def line_minimum(
    slack: Array, change: Array, linear: float, quadratic: float, start: float = 0.0, precision: float = 1e-9
) -> float:
    """The t with the least  quadratic t^2 + 2 linear t + sum_i max(0, slack_i - t change_i)^2.

    Its derivative is piecewise linear and grows, so Newton's method ends at the root after a few pieces; it is kept to
    the interval that the signs seen so far leave.
    """
    low, high, t = -np.inf, np.inf, start
    squares, rest = np.square(change), np.empty_like(change)
    for _ in range(MAX_STEPS):
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


def _shortened(step: Array, change: Array, theta: Array, unmet: Array, R: Array) -> tuple[Array, Array]:
    """Each column of the steps, and of what they change, times the length with the least loss."""
    pull = R @ step
    linear, quadratic = (theta * pull).sum(axis=0), (step * pull).sum(axis=0)
    lengths = np.array(
        [
            line_minimum(unmet[:, column], change[:, column], linear[column], quadratic[column], start=1.0)
            for column in range(step.shape[1])
        ]
    )
    return lengths * step, lengths * change


def _losses(unmet: Array, theta: Array, R: Array) -> Array:
    """The objective of each output."""
    return np.square(np.maximum(unmet, 0.0)).sum(axis=0) + (theta * (R @ theta)).sum(axis=0)


def solved(H: Array, gradient: Array) -> Array:
    """H^-1 gradient for a symmetric H without negative eigenvalues; the least that makes it definite is added."""
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


def _outputs(K: Array, theta: Array) -> Array:
    """f = b + K beta in float64 for each row, (n, q), without a float64 copy of K."""
    size = theta.shape[0] - 1
    out = np.empty((K.shape[0], theta.shape[1]))
    for rows in blocks(K.shape[0], max(BLOCK // (size + 1), 1)):
        np.matmul(K[rows, :size], theta[1:], out=out[rows])
    out += theta[0]
    return out


def _back(K: Array, size: int, V: Array) -> Array:
    """(1, K)' V for the first columns of K: what `_outputs` carries to rows, carried back."""
    out = np.zeros((size + 1, V.shape[1]))
    out[0] = V.sum(axis=0)
    for rows in blocks(K.shape[0], max(BLOCK // (size + 1), 1)):
        out[1:] += K[rows, :size].T @ V[rows]
    return out


def _largest_square(K: Array) -> float:
    return max((float(np.square(K[rows]).max(initial=1e-300)) for rows in blocks(K.shape[0], 4096)), default=1e-300)
