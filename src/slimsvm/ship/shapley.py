"""Exact Shapley values of the features of a row, for kernels that are products over features and for linear functions.

The game of a row x: features in S have the row's values, and the kernel value of an absent feature is 1, so that

    v(S) = sum_i coef_i prod_{j in S} k_j(x_j, z_ij) + bias

as in the product-kernel formula (Mohammadi, Chau & Muandet 2025, arXiv 2505.16516). The Shapley value of feature j is the
integral over t from 0 to 1 of the slope of v's multilinear extension (Owen 1972):

    phi_j = sum_i coef_i (k_ij - 1) integral prod_{l != j} (1 - t + t k_il) dt

The integrand is a polynomial of degree d - 1 in t, so a Gauss-Legendre rule of (d + 1) // 2 nodes is exact. All factors are
above 0 at its nodes: nothing cancels, and a product without one factor is the whole product divided by it. A linear
function is a sum over features, whose terms are the Shapley values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..kernels.spec import EXP, IDENTITY, MANHATTAN, SQUARES
from .artefact import Array, Artefact
from .source import artefact_of

#: kernel values of single features that are held at once; more: fewer passes of NumPy, which then leave the cache
AT_ONCE = 1 << 14
#: the distance of a row and a point in one feature, for kernels that are exp of a sum of such distances
DISTANCES: dict[str, Callable[[Array], Array]] = {SQUARES.name: np.square, MANHATTAN.name: np.abs}


@dataclass(frozen=True)
class Shapley:
    """Shapley values, with the fields of a `shap.Explanation`; `values.sum(1) + base_values` are the scores."""

    values: Array  # (rows, features), or (rows, features, outputs)
    base_values: Array  # (rows,), or (rows, outputs)
    data: Array  # (rows, features)
    feature_names: list[str]


def shapley(model: Any, X: Any) -> Any:
    """Return the exact Shapley values of the features of each row.

    The game is that of the product-kernel formula: the kernel value of an absent feature is 1. It needs no background rows,
    and its time is quadratic in the features. For each row the values and the base value add up to `decision_function`, or
    `predict` of a regressor.

    Parameters
    ----------
    model : estimator
        A fitted SlimSVC, SlimSVR or SlimOneClassSVM with an rbf, laplacian or linear kernel, another model that
        `slimsvm.export` takes, or a Pipeline of scalers and one. A learned metric is included.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows to explain, as the model takes them.

    Returns
    -------
    shap.Explanation or Shapley
        An object with `values` of shape (rows, features), or (rows, features, outputs) for three classes or more,
        `base_values`, `data` and `feature_names`. If shap is installed it is a `shap.Explanation`, which shap's plots take.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SlimSVC, shapley
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SlimSVC(budget=6, random_state=0).fit(X, y)
    >>> shapley(svc, X[:2]).values.shape
    (2, 4, 3)
    """
    artefact = artefact_of(model)
    _check(artefact)
    rows = _rows(X, artefact.features)
    names = list(artefact.names) or [f"x{number}" for number in range(artefact.features)]
    scaled = rows if artefact.scaling is None else artefact.scaling(rows)
    linear = artefact.spec.value is IDENTITY
    values = _linear_values(artefact, scaled) if linear else _product_values(artefact, scaled)
    base = artefact.bias if linear else artefact.bias + artefact.coef.sum(axis=0)
    base_values = np.broadcast_to(base, (rows.shape[0], base.size)).copy()
    if artefact.outputs == 1:
        values, base_values = values[:, :, 0], base_values[:, 0]
    if find_spec("shap") is None:
        return Shapley(values, base_values, rows, names)
    from shap import Explanation

    return Explanation(values, base_values=base_values, data=rows, feature_names=names)


def _check(artefact: Artefact) -> None:
    """Raise ValueError for models whose scores are no sums of products over features."""
    product = artefact.spec.value is EXP and artefact.spec.total.name in DISTANCES
    if not product and not (artefact.spec.value is IDENTITY and artefact.spec.total.inner):
        raise ValueError(
            f"the {artefact.kernel} kernel is no product over features, so it has no exact Shapley values; train with "
            "kernel='rbf', 'laplacian' or 'linear', or use shap.PermutationExplainer(model.decision_function, X)"
        )
    if artefact.by_pairs:
        raise ValueError(
            "the scores of this model are votes of pairs of classes, which are no sums over features; train with "
            "multiclass='ovr', or compress it to a budget"
        )
    artefact.check_plain("shapley")
    artefact.check_rows("shapley")


def _rows(X: Any, features: int) -> Array:
    """Return rows as a matrix of numbers."""
    rows = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != features:
        raise ValueError(
            f"X has the shape {rows.shape}, and this model explains rows of {features} features, (n, {features})"
        )
    if not np.isfinite(rows).all():
        raise ValueError("X has values that are not finite; give complete rows")
    return rows


def _linear_values(artefact: Artefact, rows: Array) -> Array:
    """Return each feature's term of a linear function, (rows, features, outputs)."""
    weights = artefact.table.T @ artefact.coef
    return np.asarray(rows[:, :, None] * weights)


def _product_values(artefact: Artefact, rows: Array) -> Array:
    """Return the Shapley values of a product kernel, (rows, features, outputs)."""
    (size, d), points = artefact.points.shape, artefact.table
    distance = DISTANCES[artefact.spec.total.name]
    gamma = artefact.parameters["gamma"] * (1.0 if artefact.widths is None else artefact.widths)
    nodes, weights = np.polynomial.legendre.leggauss((d + 1) // 2)
    values = np.zeros((rows.shape[0], d, artefact.outputs))
    count = max(AT_ONCE // max(size * d, 1), 1)
    for start in range(0, rows.shape[0], count):
        part = slice(start, start + count)
        apart = distance(rows[part].T[:, :, None] - points.T[:, None, :])
        losses = -np.expm1(-gamma * apart)  # 1 - k_j, (features, rows, points)
        slopes = _slopes(losses, (nodes + 1) / 2, weights / 2)
        values[part] = -((losses * slopes) @ artefact.coef).transpose(1, 0, 2)
    return values


def _slopes(losses: Array, nodes: Array, weights: Array) -> Array:
    """Return the integral over t of prod_{l != j} (1 - t loss_l), by a quadrature rule on (0, 1), for each j."""
    total, factors = np.zeros_like(losses), np.empty_like(losses)
    for node, weight in zip(nodes, weights, strict=True):
        np.multiply(losses, -node, out=factors)
        factors += 1.0
        product = weight * np.multiply.reduce(factors, axis=0)
        total += np.divide(product, factors, out=factors)
    return total
