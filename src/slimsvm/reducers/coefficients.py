"""The best coefficients for given points: a convex problem of as many unknowns as points, by Newton's method.

For each output, with K the kernel between rows and points, y the targets, h the demands and w the weights,

    minimise  sum_i w_i max(0, h_i - y_i (b + K_i beta))^2 + ridge |(b, beta)|^2        over beta and b

The loss is one-sided: a row that has what it demands, or demands nothing (h = -inf), costs nothing. It is a least-squares
problem on the rows with unmet demands, so Newton's method solves it in a few steps.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array

#: ridge over the sum of weights times the largest squared kernel value: it settles ties and no more
RIDGE = 1e-7
MAX_STEPS = 30


class CoefficientFit:
    """The problem for points and for any first few of them, which share its matrix."""

    def __init__(self, K: Array, targets: Array, demands: Array, weights: Array) -> None:
        root = np.sqrt(weights)[:, None]  # w max(0, h - f)^2 = max(0, r h - r f)^2 with r^2 = w
        self.design = np.empty((K.shape[0], K.shape[1] + 1))
        self.design[:, :1] = root
        np.multiply(root, K, out=self.design[:, 1:])
        self.targets, self.demands = targets, root * demands
        self.ridge = RIDGE * float(weights.sum()) * float(np.square(K).max(initial=1e-300))

    def solve(self, coef: Array, bias: Array) -> tuple[Array, Array]:
        """The best coefficients (m, q) and biases (q,) of the first m points, from those given on."""
        design = self.design[:, : coef.shape[0] + 1]
        fitted = np.vstack([bias, coef])
        for column in range(fitted.shape[1]):
            y, h = self.targets[:, column], self.demands[:, column]
            fitted[:, column] = _newton(design, y, h, self.ridge, fitted[:, column])
        return fitted[1:], fitted[0]


def _newton(design: Array, y: Array, h: Array, ridge: float, theta: Array) -> Array:
    """One output: solve the least-squares problem of the unmet rows until that gains nothing."""
    margins = y * (design @ theta)
    loss = _loss(margins, h, ridge, theta)
    for _ in range(MAX_STEPS):
        unmet = h > margins
        A = design[unmet]
        goal = np.linalg.solve(A.T @ A + ridge * np.eye(theta.size), A.T @ (y[unmet] * h[unmet]))
        step, slope, length = goal - theta, y * (design @ (goal - theta)), 1.0
        while (new := _loss(margins + length * slope, h, ridge, theta + length * step)) >= loss:
            length /= 2
            if length < 1e-3:
                return theta
        gain, loss = loss - new, new
        theta, margins = theta + length * step, margins + length * slope
        if gain <= 1e-6 * loss:
            return theta
    return theta


def _loss(margins: Array, h: Array, ridge: float, theta: Array) -> float:
    return float(np.square(np.maximum(0.0, h - margins)).sum() + ridge * theta @ theta)
