"""The span in which slim searches for points of rows with many features: directions from linear models.

Rows of text have tens of thousands of features, but points in the span of a few directions are as good. As in partial
least squares, each round adds the direction X'r for every output, with r the residuals of the best linear model in the span
so far, and then fits that model again. No kernel is evaluated.
"""

from __future__ import annotations

import numpy as np

from ..goals.demands import Demands
from ..kernels import Array
from ..rows.kernel_matrix import KernelMatrix
from ..rows.protocol import SpannedRows
from ..solvers.newton import RIDGE, IntervalSquares, NewtonSettings

#: Newton's method between two rounds; this precision is enough for the next directions
ROUGH = NewtonSettings(steps=8, precision=1e-3, line_precision=0.01, shared=True)


def discriminating_span(
    rows: SpannedRows, demands: Demands, weights: Array, decay: float, rounds: int, most: int
) -> SpannedRows:
    """Return the rows with up to `rounds` x outputs more directions in the span, `most` in a round.

    `decay` weighs |w|^2 of the linear models, for rows of length 1 on average.
    """
    problem, outputs = IntervalSquares(demands, weights), np.zeros(demands.shape)
    for _ in range(rounds):
        wider = rows.widened(weights[:, None] * demands.residual(outputs), most)
        if wider.d == rows.d:
            break
        rows, handle = wider, wider.coordinates()
        outputs = problem.fit(handle, _regulariser(handle, weights, decay), ROUGH).outputs
    return rows


def _regulariser(handle: KernelMatrix, weights: Array, decay: float) -> Array:
    """Return decay |w|^2 times the mean squared length of the coordinates, with a ridge that makes the solution unique."""
    lengths = np.diag(handle.curvature(np.arange(weights.size), weights))[1:].sum()
    ridge = RIDGE * float(weights.sum())
    scale = lengths / max(float(weights.sum()), np.finfo(float).tiny)
    return np.diag([ridge, *np.full(handle.size, ridge + decay * scale)])
