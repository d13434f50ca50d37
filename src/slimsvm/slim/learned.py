"""The loss of points together with a metric, with the best coefficients at every step (`solvers.projection`).

    L(Z, f, w) = min over coef, bias of  sum_i w_i loss_i(f(x_i)) + decay |coef|^2   +   pull (|log f|^2 + |log w|^2)

A descent is a function from a model to a model. L-BFGS moves the points in standard deviations of each feature, and the
logarithms of factors f and widths w. `pull` holds these near 0: like `PULL` rows that say so, and more where rows are few,
which a metric fits by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ..goals.margin_targets import MarginTargets
from ..kernels import Array
from ..limits import Deadline
from ..metric import Metric
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
from ..solvers.descent import DescentSettings, descend
from ..solvers.projection import ProjectedLoss
from ..states import floats

#: for each kind of metric, whether factors and whether widths are learned
KINDS = {"fixed": (False, False), "scales": (True, False), "widths": (False, True), "both": (True, True)}
#: the pull in rows, and the number of rows at which it is twice as strong. More: a metric nearer to the kernel's own
PULL, FEW_ROWS = 1.0, 2000.0
#: factors and widths are kept between 1 / BOUND and BOUND
BOUND = 1000.0
#: the unit of a logarithm. More: the metric moves faster than points do
LOGARITHM = 0.5
#: a descent ends when WINDOW steps together gain less than LEAST_GAIN times the loss
WINDOW, LEAST_GAIN = 10, 1e-3


def pull_of(rows: int) -> float:
    """Return the pull for so many rows."""
    return PULL * (1 + (FEW_ROWS / max(rows, 1)) ** 2)


@dataclass(frozen=True)
class Parameters:
    """The parameters of a model: points in the home's coordinates, biases above coefficients, and logarithms."""

    points: Annotated[Array, floats("m", "d")]
    theta: Annotated[Array, floats(("m", 1), "q")]
    log_factors: Annotated[Array, floats("d")]
    log_widths: Annotated[Array, floats("m")]

    def metric(self, kind: str) -> Metric | None:
        """Return the metric; None for a part that is not learned, and where nothing is."""
        scales, widths = KINDS[kind]
        factors = np.exp(self.log_factors) if scales else None
        return Metric(factors, np.exp(self.log_widths) if widths else None) if scales or widths else None

    def grown(self, points: Array) -> Parameters:
        """Return the model with more points, without coefficients, and with the mean width of the others."""
        count, width = points.shape[0], float(self.log_widths.mean()) if self.log_widths.size else 0.0
        return replace(
            self,
            points=np.vstack([self.points, points]),
            theta=np.vstack([self.theta, np.zeros((count, self.theta.shape[1]))]),
            log_widths=np.concatenate([self.log_widths, np.full(count, width)]),
        )

    @property
    def clamped(self) -> bool:
        """Whether a logarithm is at its bound."""
        limit = np.log(BOUND) * (1 - 1e-6)
        return any(bool((np.abs(part) >= limit).any()) for part in (self.log_factors, self.log_widths))


@dataclass(frozen=True)
class LearnedLoss:
    """The loss on some rows, for models with a kind of metric; `spread` has the unit of points in each feature."""

    rows: Rows
    margin_targets: MarginTargets
    weights: Array
    spread: Array
    kind: str
    decay: float

    @property
    def pull(self) -> float:
        """The weight of the squared logarithms: it falls with the number of rows, relative to the loss of all rows."""
        return pull_of(self.rows.n) * float(self.weights.mean())

    def descended(self, start: Parameters, steps: int, deadline: Deadline, memory: int) -> Parameters:
        """Return the model after some steps of L-BFGS, with the best coefficients."""
        if deadline.over:
            return start
        loss, total = (
            ProjectedLoss(self.rows, self.margin_targets, self.weights, self.decay),
            max(float(self.weights.sum()), 1e-300),
        )
        loss.theta = start.theta
        units, ends = self._units(start), np.cumsum([start.points.size, start.log_factors.size])
        origin = np.concatenate([start.points.ravel(), start.log_factors, start.log_widths])
        limit, pull = np.log(BOUND), self.pull

        def at(x: Array) -> Parameters:
            points, *logs = np.split(origin + units * x, ends)
            factors, widths = (np.clip(part, -limit, limit) for part in logs)
            return replace(start, points=points.reshape(start.points.shape), log_factors=factors, log_widths=widths)

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            model = at(x)
            value, found = loss.in_metric(model.points, model.metric(self.kind) or Metric())
            logs = np.concatenate([model.log_factors, model.log_widths])
            slopes = np.concatenate([found.log_factors, found.log_widths]) + 2 * pull * logs
            gradient = units * np.concatenate([found.points.ravel(), slopes])
            return (value + pull * float(logs @ logs)) / total, gradient / total

        settings = DescentSettings(steps, memory=memory, ftol=0.0, gtol=0.0, window=WINDOW, least_gain=LEAST_GAIN)
        model = at(descend(value_and_gradient, np.zeros(origin.size), settings, deadline).x)
        with one_blas_thread():
            return replace(model, theta=loss.settled_in(model.points, model.metric(self.kind) or Metric()).theta)

    def _units(self, start: Parameters) -> Array:
        """Return the unit of each number that moves; 0 for parts that are not learned and for constant features."""
        scales, widths = KINDS[self.kind]
        points = np.broadcast_to(self.spread, start.points.shape).ravel()
        factors = LOGARITHM * (scales & (self.spread > 0))
        return np.concatenate([points, factors, np.full(start.log_widths.size, LOGARITHM * widths)])
