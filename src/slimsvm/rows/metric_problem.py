"""The loss of a model with a learned metric as plain arrays and numbers, for homes that compute all of it themselves.

`solvers.learned_metric` has the formula. The loss is a function of a vector x: the model is origin + units * x, with
points, biases, coefficients, log factors and log widths one behind the other. A home on a device keeps that vector there.
So a step of a descent by mini-batches moves no numbers to the host and waits for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..kernels import Array


@dataclass(frozen=True)
class MetricProblem:
    """All that the loss depends on besides the rows."""

    sizes: tuple[int, int, int]  # points, features, outputs
    origin: Array
    units: Array  # 0 for numbers that stay
    low: Array  # (n, q), `Demands`
    high: Array
    weights: Array  # (n,)
    total: float  # their sum
    outputs: float  # the unit of outputs
    decay: float
    pull: float
    limit: float  # of the absolute value of a logarithm


class MetricLosses(Protocol):
    """The loss with its vector in the home of the rows."""

    #: rows of a mini-batch below which a step takes no less time
    least_batch: int

    def sent(self, x: Array) -> Any:
        """Return a vector of the host in the home; that of the start is 0."""

    def shuffled(self, rng: np.random.Generator) -> Any:
        """Return the numbers of all rows in random order."""

    def on_batch(self, x: Any, batch: Any) -> Any:
        """Return the gradient on some of the rows, which estimates that on all of them."""

    def keep_within(self, x: Any) -> None:
        """Bring the logarithms of a vector back into their bounds, in place."""

    def fetched(self, x: Any) -> Array:
        """Return a vector on the host."""

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the loss and its gradient on all rows; x and the gradient are on the host."""


@runtime_checkable
class HasMetricLosses(Protocol):
    """A home that computes such losses itself."""

    def metric_losses(self, problem: MetricProblem) -> MetricLosses | None:
        """Return the loss of a problem on these rows; None for kernels whose gradient `backpropagate` alone has."""


@runtime_checkable
class HasCoarseRows(Protocol):
    """A home whose rows can be had in float32 where its own precision is higher."""

    def coarse(self) -> Any:
        """Return the rows in float32, for a search whose noise is larger than its rounding."""
