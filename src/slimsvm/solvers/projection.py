"""Losses of points alone, with the best coefficients for each set of points: variable projection (Golub & Pereyra 1973).

    L(Z) = min over coef, bias of  sum_ic w_i dist(f_c(x_i), [low_ic, high_ic])^2 + theta' R(Z) theta

with f_c(x) = sum_j k(x, z_j) coef_jc + bias_c, theta = (bias, coef), and R(Z) the regulariser: `decay` times |f|^2 in
feature space, and a ridge that makes the solution unique. Newton's method finds the minimum (`newton`). There the
derivative with respect to coefficients is 0, so the gradient of L is the plain derivative with respect to points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..goals.margin_targets import MarginTargets
from ..kernels import Array
from ..kernels.metric_gradients import MetricGradient
from ..metric import Metric
from ..rows.protocol import Rows
from .newton import RIDGE, Fitted, IntervalSquares, KeptFactors, NewtonSettings

#: Newton's method between two moves of the points; from a nearly optimal start, few steps are enough
ROUGH = NewtonSettings(steps=8, precision=1e-4, line_precision=0.01, shared=True)
#: the same with several outputs; a finer precision takes longer and gives no better models
ROUGH_TOGETHER = replace(ROUGH, precision=1e-3)
#: steps for points that no longer move
SETTLED_STEPS = 20


class ProjectedLoss:
    """L and its gradient on some rows. Points are in the coordinates of the rows (`Rows.to_coordinates`).

    `theta` holds the biases and the coefficients found last. The next call starts from them.
    """

    def __init__(
        self,
        rows: Rows,
        margin_targets: MarginTargets,
        weights: Array,
        decay: float,
        newton: NewtonSettings | None = None,
        ridge: float = RIDGE,
    ) -> None:
        self.rows, self.decay, self.ridge = rows, decay, ridge
        self.newton = newton or (ROUGH if margin_targets.shape[1] == 1 else ROUGH_TOGETHER)
        self.problem = IntervalSquares(margin_targets, weights)
        self.total_weight = float(weights.sum())
        self.against = rows.moving(np.zeros((0, rows.d)))
        self.theta = np.zeros((1, margin_targets.shape[1]))
        self.factors = KeptFactors()

    def __call__(self, points: Array) -> tuple[float, Array]:
        """Return L and its gradient (m, d)."""
        fit, among = self._fit(points, self.newton, self.factors)
        gradient = self.against.pullback(self.problem.slopes(fit.outputs), fit.coef)
        if self.rows.kernel.definite:
            # each point occurs twice in |f|^2, and the pullback counts one occurrence
            gradient += self.rows.pullback_among(points, points, among, 2 * self.decay * (fit.coef @ fit.coef.T))
        return fit.loss, gradient

    def in_metric(self, points: Array, metric: Metric) -> tuple[float, MetricGradient]:
        """Return L and its gradient with respect to points and metric; here R is `decay` |coef|^2.

        With widths the kernel matrix among points is no Gram matrix, and there is no |f|.
        """
        fit = self._fit_in(points, metric, self.newton, self.factors)
        return fit.loss, self.against.metric_pullback(self.problem.slopes(fit.outputs), fit.coef, metric)

    def settled_in(self, points: Array, metric: Metric) -> Fitted:
        """Return the best coefficients for points and a metric that no longer move."""
        self.forget()
        return self._fit_in(points, metric, replace(self.newton, steps=max(self.newton.steps, SETTLED_STEPS)), None)

    def _fit_in(self, points: Array, metric: Metric, settings: NewtonSettings, factors: KeptFactors | None) -> Fitted:
        theta = _resized(self.theta, points.shape[0] + 1)
        outputs = self.against.move(points, theta[1:], metric)
        outputs += theta[0]
        R = np.eye(theta.shape[0]) * (self.decay + self.ridge * self.total_weight)
        R[0, 0] = self.ridge * self.total_weight
        fit = self.problem.fit(self.against, R, settings, start=theta, outputs=outputs, factors=factors)
        self.theta = fit.theta
        return fit

    def forget(self) -> None:
        """Forget kept curvatures and the precision of kernel values: the next results depend on points and theta only.

        A handle whose points were once far out stays in float64. A run that continues from a checkpoint has a new one.
        """
        self.factors = KeptFactors()
        self.against = self.rows.moving(np.zeros((0, self.rows.d)))

    def settle(self, points: Array) -> Fitted:
        """Return the best coefficients for points that no longer move."""
        self.forget()
        return self._fit(points, replace(self.newton, steps=max(self.newton.steps, SETTLED_STEPS)), None)[0]

    def _fit(self, points: Array, settings: NewtonSettings, factors: KeptFactors | None) -> tuple[Fitted, Array]:
        """Return the best coefficients for the points, and K(points, points)."""
        theta = _resized(self.theta, points.shape[0] + 1)
        outputs = self.against.move(points, theta[1:])
        outputs += theta[0]
        among = self.rows.among(points, placed=True)
        R = self._regulariser(among)
        fit = self.problem.fit(self.against, R, settings, start=theta, outputs=outputs, factors=factors)
        self.theta = fit.theta
        return fit, among

    def _regulariser(self, among: Array) -> Array:
        R = np.zeros((among.shape[0] + 1, among.shape[0] + 1))
        # an indefinite kernel has no |f|: coefficients are kept small instead
        R[1:, 1:] = self.decay * (among if self.rows.kernel.definite else np.eye(among.shape[0]))
        R[np.diag_indices_from(R)] += self.ridge * self.total_weight
        return R


def _resized(theta: Array, size: int) -> Array:
    """Return a copy of theta for `size` points; coefficients of new points are 0."""
    return np.vstack([theta[:size], np.zeros((max(size - theta.shape[0], 0), theta.shape[1]))])
