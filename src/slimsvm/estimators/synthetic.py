"""Synthetic rows for a model that is shrunk without rows: its support vectors, and points between pairs of them."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..kernels import Array, Custom, Matrix, Precomputed, dense, stacked
from ..model import Expansion

#: synthetic rows at least, and for each support vector; more: a small model closer to the full one, and more time
LEAST_ROWS = 4096
ROWS_PER_POINT = 4
#: nearest support vectors with which each one may be paired; more: synthetic rows spread farther from them
NEIGHBOURS = 8
#: the share of pairs that are neighbours, which lie where rows are dense; less: more rows in the space between
NEIGHBOURING = 0.5


def synthetic_rows(model: Expansion, rng: np.random.Generator) -> Matrix:
    """Return the support vectors, and points at random places between pairs of them."""
    if isinstance(model.kernel, Precomputed | Custom):
        raise ValueError(
            f"a model with a {model.kernel.name} kernel cannot be shrunk without rows: points between its support "
            "vectors may not be valid for the kernel; give X"
        )
    if model.size < 2:
        return model.points
    count = max(LEAST_ROWS, ROWS_PER_POINT * model.size) - model.size
    first = rng.integers(model.size, size=count)
    second = rng.integers(model.size, size=count)
    close = rng.random(count) < NEIGHBOURING
    second[close] = _neighbours(model.points, first[close], rng)
    share = rng.random((count, 1))
    between = _scaled(model.points[first], share) + _scaled(model.points[second], 1 - share)
    return stacked(model.points, between)


def _neighbours(points: Matrix, chosen: Array, rng: np.random.Generator) -> Array:
    """Return for each chosen point one of its nearest neighbours."""
    count = min(NEIGHBOURS, points.shape[0] - 1)
    near = NearestNeighbors(n_neighbors=count).fit(points).kneighbors(return_distance=False)
    return near[chosen, rng.integers(count, size=chosen.size)]


def _scaled(rows: Matrix, factors: Array) -> Matrix:
    return rows.multiply(factors).tocsr() if hasattr(rows, "multiply") else dense(rows) * factors
