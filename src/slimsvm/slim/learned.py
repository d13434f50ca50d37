"""Descent of points together with a metric, with the best coefficients at every step (`solvers.projection`).

    L(Z, f, w) = min over coef, bias of  sum_i w_i loss_i(f(x_i)) + decay |coef|^2   +   pull (|log f|^2 + |log w|^2)

A descent is a function from a model to a model. L-BFGS moves the points in standard deviations of each feature, and the
logarithms of factors f and widths w. `pull` holds these near 0: like `PULL` rows that say so, and more where rows are few,
which a metric fits by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..goals.demands import Demands
from ..kernels import Array
from ..limits import Deadline
from ..metric import Metric
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
from ..solvers.descent import DescentSettings, descend
from ..solvers.projection import ProjectedLoss
from .learned_metric import Parameters, ParameterUnits, metric_of

#: the pull in rows, and the number of rows at which it is twice as strong. More: a metric nearer to the kernel's own
PULL, FEW_ROWS = 1.0, 2000.0
#: factors and widths are kept between 1 / BOUND and BOUND
BOUND = 1000.0
#: a descent ends when WINDOW steps together gain less than LEAST_GAIN times the loss
WINDOW, LEAST_GAIN = 10, 1e-3


@dataclass(frozen=True)
class LearnedLoss:
    """The loss on some rows, for models with a metric."""

    rows: Rows
    demands: Demands
    weights: Array
    units: ParameterUnits
    decay: float

    @property
    def pull(self) -> float:
        """The weight of the squared logarithms: it falls with the number of rows, relative to the loss of all rows."""
        return PULL * (1 + (FEW_ROWS / max(self.rows.n, 1)) ** 2) * float(self.weights.mean())

    def descended(self, start: Parameters, steps: int, deadline: Deadline, memory: int) -> tuple[Parameters, float]:
        """Return the model after some steps of L-BFGS, with the best coefficients, and its loss for each unit of weight."""
        if deadline.over:
            return start, np.inf
        loss, total = self._projected(start), max(float(self.weights.sum()), 1e-300)
        units, ends = self._units(start), np.cumsum([start.points.size, start.log_factors.size])
        origin = np.concatenate([start.points.ravel(), start.log_factors, start.log_widths])
        limit, pull = np.log(BOUND), self.pull

        def at(x: Array) -> Parameters:
            points, *logs = np.split(origin + units * x, ends)
            factors, widths = (np.clip(part, -limit, limit) for part in logs)
            return replace(start, points=points.reshape(start.points.shape), log_factors=factors, log_widths=widths)

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            model = at(x)
            value, found = loss.in_metric(model.points, metric_of(model, self.units.learned))
            logs = np.concatenate([model.log_factors, model.log_widths])
            slopes = np.concatenate([found.log_factors, found.log_widths]) + 2 * pull * logs
            gradient = units * np.concatenate([found.points.ravel(), slopes])
            return (value + pull * float(logs @ logs)) / total, gradient / total

        settings = DescentSettings(steps, memory=memory, ftol=0.0, gtol=0.0, window=WINDOW, least_gain=LEAST_GAIN)
        end = descend(value_and_gradient, np.zeros(origin.size), settings, deadline)
        return self._settled(at(end.x), loss), end.value

    def settled(self, model: Parameters) -> Parameters:
        """Return a model with the best coefficients for its points and metric."""
        return self._settled(model, self._projected(model))

    def _settled(self, model: Parameters, loss: ProjectedLoss) -> Parameters:
        with one_blas_thread():
            found = loss.settled_in(model.points, metric_of(model, self.units.learned))
        return replace(model, theta=found.theta)

    def _projected(self, start: Parameters) -> ProjectedLoss:
        loss = ProjectedLoss(self.rows, self.demands, self.weights, self.decay)
        loss.theta = start.theta
        return loss

    def _units(self, start: Parameters) -> Array:
        """Return the unit of each number that moves; 0 for parts that are not learned and for constant features."""
        scales, widths = self.units.learned
        varying, unit = self.units.spread > 0, self.units.logarithm
        points = np.broadcast_to(self.units.spread, start.points.shape).ravel()
        return np.concatenate([points, unit * (scales & varying), np.full(start.log_widths.size, unit * widths)])


def model_metric(model: Parameters, learned: tuple[bool, bool]) -> Metric | None:
    """Return the metric of a model; None where nothing is learned."""
    return metric_of(model, learned) if any(learned) else None
