"""Initial points and projections: k-means centres of groups of rows, and directions that separate the groups."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.sparse import issparse

from ..kernels import Array, Matrix

#: rounds and rows of k-means, and a ridge on the variance within classes, as a share of its mean
ROUNDS, MEANS_ROWS, RIDGE = 6, 20_000, 1e-2


def spread(X: Matrix) -> Array:
    """Return the standard deviation of each feature; exactly 0 where all rows have the same value."""
    if not issparse(X):
        return np.where(np.ptp(X, axis=0) > 0, X.std(axis=0, dtype=np.float64), 0.0)
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    squares = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
    varying = X.max(axis=0).toarray().ravel() != X.min(axis=0).toarray().ravel()
    return np.where(varying, np.sqrt(np.maximum(squares - mean**2, 0.0)), 0.0)


def directions(A: Array, groups: Array, rank: int) -> Array:
    """Return Fisher's directions of the groups, for half of the rank at most, and principal axes, (features, rank)."""
    d, names = A.shape[1], np.unique(groups)
    A = A - A.mean(axis=0)
    S = A.T @ A / A.shape[0]
    mean = max(float(np.trace(S)) / d, 1e-30)
    axes = eigh(S)[1][:, ::-1]
    count = min(names.size - 1, (rank + 1) // 2)
    if not count:
        return axes[:, :rank]
    means, shares = (
        np.array(part) for part in zip(*((A[groups == k].mean(axis=0), np.mean(groups == k)) for k in names), strict=True)
    )
    L = cholesky(S + RIDGE * mean * np.eye(d), lower=True)
    between = solve_triangular(L, (means * np.sqrt(shares)[:, None]).T, lower=True)
    fisher = solve_triangular(L, eigh(between @ between.T)[1][:, ::-1][:, :count], lower=True, trans="T")
    fisher *= np.sqrt(mean) / np.maximum((A @ fisher).std(axis=0), 1e-30)
    return np.hstack([fisher, axes[:, : rank - count]])


def grouped_means(rows: Array, groups: Array, count: int, rng: np.random.Generator) -> Array:
    """Return k-means centres, in equal number from each group."""
    names = rng.permutation(np.unique(groups))
    found = []
    for place, name in enumerate(names):
        share = count // names.size + (place < count % names.size)
        own = rows[groups == name][:MEANS_ROWS]
        if share:
            found.append(means(own, share, rng))
    return np.vstack(found)


def means(rows: Array, count: int, rng: np.random.Generator) -> Array:
    """Return the centres of k-means; rows are repeated where there are fewer of them."""
    centres = rows[rng.permutation(rows.shape[0])[np.arange(count) % rows.shape[0]]]
    for _ in range(ROUNDS):
        nearest = ((centres * centres).sum(axis=1) - 2 * rows @ centres.T).argmin(axis=1)
        totals = np.bincount(nearest, minlength=count)
        sums = np.column_stack([np.bincount(nearest, column, count) for column in rows.T])
        centres = np.where(totals[:, None] > 0, sums / np.maximum(totals, 1)[:, None], centres).astype(np.float32)
    return centres
