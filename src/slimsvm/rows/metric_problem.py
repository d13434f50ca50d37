"""The loss of a model with a learned metric as plain arrays and numbers, for homes that compute all of it themselves.

`slim.learned_metric` has the formula. The loss is a function of a vector x: the model is origin + units * x, with
points, biases, coefficients, log factors and log widths in this order. A home on a device keeps the vector there. So a
step of a descent by mini-batches copies nothing to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..kernels import Array


@dataclass(frozen=True)
class MetricProblem:
    """All that the loss depends on besides the rows."""

    sizes: tuple[int, int, int]  # points, features, outputs
    origin: Array
    units: Array  # 0 for numbers that are not learned
    loss: str  # the name of the rows' loss (`goals.demands`)
    sides: tuple[Array, ...]  # (n, q) each: the arrays that it depends on
    weights: Array  # (n,)
    total: float  # the sum of weights
    outputs: float  # the unit of outputs
    decay: float
    pull: float
    limit: float  # on the absolute value of a logarithm


class MetricLosses(Protocol):
    """The loss with its vector in the home of the rows."""

    #: mini-batches with fewer rows would take no less time
    least_batch: int

    def sent(self, x: Array) -> Any:
        """Return a host vector in the home; the initial model is x = 0."""

    def shuffled(self, rng: np.random.Generator) -> Any:
        """Return the numbers of all rows in random order."""

    def on_batch(self, x: Any, batch: Any) -> Any:
        """Return an estimate of the gradient from some of the rows."""

    def keep_within(self, x: Any) -> None:
        """Clip the logarithms in a vector to their bounds, in place."""

    def recorded(self, work: Callable[[], None], changed: list[Any]) -> Callable[[], None] | None:
        """Return a function that repeats some work on vectors in the home in less time; None if there is none.

        `changed` are the vectors that the work changes.
        """

    def fetched(self, x: Any) -> Array:
        """Return a vector on the host."""

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the loss and its gradient on all rows; x and the gradient are on the host."""


@runtime_checkable
class HasMetricLosses(Protocol):
    """A home that computes such losses itself."""

    def metric_losses(self, problem: MetricProblem) -> MetricLosses | None:
        """Return the loss of a problem on these rows; None for kernels that only `backpropagate` supports."""


@runtime_checkable
class HasCoarseRows(Protocol):
    """A home that can give its rows in float32 if its own precision is higher."""

    def coarse(self, partners: int) -> Any:
        """Return the rows in float32 if kernel values with `partners` points are large work, or these rows.

        It is for searches whose sampling noise exceeds float32's rounding.
        """
