"""Rows made near given ones: each column comes from a row, from one of its neighbours, or from between the two."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing

from ..kernels import Array

#: nearest rows of which one is the partner; more: made rows lie farther from given ones
NEIGHBOURS = 5
#: rows among which neighbours are looked for; more: nearer ones, and more time
SEARCHED = 20_000


def rows_near(X: Any, prepared: Array, count: int, rng: np.random.Generator) -> Any:
    """Return made rows in the form of X; distances are those of prepared rows. None for forms that cannot be made."""
    searched = rng.permutation(prepared.shape[0])[:SEARCHED]
    first = rng.choice(searched, size=count)
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, searched.size)).fit(prepared[searched])
    neighbours = near.kneighbors(prepared[first], return_distance=False)
    partner = rng.integers(
        min(1, neighbours.shape[1] - 1), neighbours.shape[1], size=count
    )  # the nearest row is the row itself
    second = searched[neighbours[np.arange(count), partner]]
    one, other = (_safe_indexing(X, rows) for rows in (first, second))
    if isinstance(one, np.ndarray) and one.dtype.kind == "f":
        return one + rng.uniform(size=one.shape) * (other - one)
    if issparse(one) or not (isinstance(one, np.ndarray) or hasattr(one, "iloc")):
        return None
    return _mixed_array(one, other, rng) if isinstance(one, np.ndarray) else _mixed_frame(one, other, rng)


def _mixed_array(one: Any, other: Any, rng: np.random.Generator) -> Any:
    return np.where(rng.uniform(size=one.shape) < 0.5, one, other)


def _mixed_frame(one: Any, other: Any, rng: np.random.Generator) -> Any:
    """Return a data frame of both: floats between the two, other cells of one of them."""
    made, other = one.reset_index(drop=True), other.reset_index(drop=True)
    for name in list(made.columns):
        share = rng.uniform(size=len(made))
        if made[name].dtype.kind == "f":
            made[name] += share * (other[name] - made[name])
        else:
            made[name] = made[name].where(share < 0.5, other[name])
    return made
