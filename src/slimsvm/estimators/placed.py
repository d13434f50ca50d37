"""Outputs on a device: the points of a fitted model stay there from one prediction to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import Array, InnerKernel, Matrix
from ..model import Expansion
from ..rows.array_prediction import PlacedPoints
from ..rows.homes import open_backend, open_rows
from ..rows.prediction import kernel_error

#: the most coefficients that a device holds, zeros of pairs of classes included; with more, each class has its own products
MOST_PLACED = 1 << 26


@dataclass(frozen=True)
class PlacedModel:
    """A model whose points are on a device."""

    model: Expansion
    points: PlacedPoints


def outputs_there(estimator: Any, X: Matrix, most: int = MOST_PLACED) -> Array:
    """Return the outputs of checked rows, (n, q), by the estimator's device. The points go with the estimator.

    Models with more than `most` coefficients are not kept there.
    """
    model, on = estimator.model_, open_backend(estimator.device)
    error = kernel_error(model.weights)
    plain = isinstance(model.kernel, InnerKernel) and model.metric is None
    if on is None or not plain or not 0 < model.size * model.bias.size <= most:
        return model.on(open_rows(model.kernel, X, device=estimator.device, cache_mb=0.0, error=error))
    placed = vars(estimator).get("_placed")
    if placed is None or placed.model is not model or placed.points.on != on:
        points = PlacedPoints(on, model.kernel, model.points, np.asarray(model.coef), error)
        placed = estimator._placed = PlacedModel(model, points)
    return placed.points.product(X) + model.bias
