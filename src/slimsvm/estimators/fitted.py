"""Fitted models: attributes with the names of scikit-learn's SVMs, and outputs on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from ..kernels import Array, InnerKernel, Linear, Matrix, Precomputed
from ..model import Expansion, Status
from ..rows.homes import open_backend, open_rows
from ..rows.prediction import PlacedPoints, kernel_error

#: the most coefficients that a device holds, zeros of pairs of classes included; with more, each class has its own products
MOST_PLACED = 1 << 26


@dataclass(frozen=True)
class PlacedModel:
    """A model whose points are on a device."""

    model: Expansion
    points: PlacedPoints


def outputs_on_device(estimator: Any, X: Matrix, most: int = MOST_PLACED) -> Array:
    """Return the outputs of checked rows, (n, q), by the estimator's device. The points go with the estimator.

    Models with more than `most` coefficients are not kept there.
    """
    model, on = estimator.model_, open_backend(estimator._used_device)
    error = kernel_error(model.weights)
    plain = isinstance(model.kernel, InnerKernel) and model.metric is None
    if on is None or not plain or not 0 < model.size * model.bias.size <= most:
        return model.on(open_rows(model.kernel, X, device=estimator._used_device, cache_mb=0.0, error=error))
    placed = vars(estimator).get("_placed")
    if placed is None or placed.model is not model or placed.points.on != on:
        points = PlacedPoints(on, model.kernel, model.points, np.asarray(model.coef), error)
        placed = estimator._placed = PlacedModel(model, points)
    return placed.points.product(X) + model.bias


class FittedModel:
    """The fitted attributes that follow from the model and from how training ended."""

    goal_: Any
    model_: Expansion
    status_: Status

    @property
    def support_vectors_(self) -> Matrix:
        """The points of the model."""
        return self.model_.points

    @property
    def support_(self) -> Array:
        """The row numbers of the support vectors in the training set; only if they are rows of it."""
        if isinstance(self.model_.kernel, Precomputed):
            return np.ravel(self.model_.points)
        rows = getattr(self, "_support", None)
        if rows is None:
            raise AttributeError(
                "support_ has row numbers of the training set, but these support vectors may not be rows of it: "
                "a reducer moved them, or the model was compressed, imported or learned online. support_vectors_ has "
                "the points; reducer='slant-aggressive' chooses them among the rows"
            )
        return rows

    @property
    def dual_coef_(self) -> Array:
        """The coefficients, one row per output."""
        return self.model_.coef.T

    @property
    def intercept_(self) -> Array:
        """The bias of each output."""
        return self.model_.bias

    @property
    def coef_(self) -> Array:
        """The weights of the features, one row per output; only for the linear kernel. They cannot be changed."""
        if not isinstance(self.model_.kernel, Linear):
            raise AttributeError(
                f"coef_ is for the linear kernel only; this model has the {self.model_.kernel.name} kernel"
            )
        weights = np.asarray((self.model_.points.T @ np.asarray(self.model_.coef)).T, dtype=np.float64)
        if self.model_.projection is not None:  # <x P, z> = <x, P z>
            weights = weights @ self.model_.projection.T
        elif self.model_.metric is not None:  # <f x, f z> = <x, f^2 z>
            weights = weights * self.model_.factors**2
        weights.flags.writeable = False
        return weights

    @property
    def n_support_(self) -> Array:
        """The number of support vectors, for each class if there are classes."""
        return np.bincount(self.goal_.owner(self.model_.coef), minlength=max(self.goal_.n_classes, 1)).astype(np.int32)

    @property
    def fit_status_(self) -> int:
        """0 if training ended as planned, 1 if it was cut short; `status_` says how."""
        return int(not self.status_.as_planned)


def rows_equal_to(points: Matrix, X: Matrix) -> Array | None:
    """Return for each point the number of the first row that equals it; None if a point equals no row."""
    rows = equal_rows(points, X)
    return None if (rows < 0).any() else rows


def equal_rows(points: Matrix, X: Matrix) -> Array:
    """Return for each point the number of the first row that equals it, or -1."""
    wanted, numbers = [_bytes_of(points, number) for number in range(points.shape[0])], dict[bytes, int]()
    names = set(wanted)
    for number in _candidates(points, X):
        name = _bytes_of(X, number)
        if name in names:
            numbers.setdefault(name, int(number))
    return np.array([numbers.get(name, -1) for name in wanted], dtype=np.intp)


def _candidates(points: Matrix, X: Matrix) -> Array:
    """Return the rows that agree with a point in one number, which is computed for all rows at once."""
    if issparse(X):
        return np.flatnonzero(np.isin(np.diff(X.indptr), np.diff(csr_array(points).indptr)))
    return np.flatnonzero(np.isin(X[:, 0], points[:, 0]))


def _bytes_of(rows: Matrix, number: int) -> bytes:
    """Return the contents of a row, to compare it with others."""
    if issparse(rows):
        part = slice(rows.indptr[number], rows.indptr[number + 1])
        return rows.indices[part].astype(np.int64).tobytes() + rows.data[part].astype(np.float64).tobytes()
    return np.asarray(rows[number], dtype=np.float64).tobytes()
