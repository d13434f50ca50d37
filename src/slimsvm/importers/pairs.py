"""Reading LIBSVM's layout, which scikit-learn shares: points by class, with a coefficient against every other class.

The output of a pair of classes i < j sums over the points of i, with their coefficients against j, and over the points of
j, with theirs against i.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

Array = np.ndarray


def pair_columns(coef: Array, counts: Array) -> Array:
    """Return the coefficients of every pair, (points, pairs), from rows of k - 1 coefficients grouped by class."""
    n_classes = counts.size
    owner = np.repeat(np.arange(n_classes), counts)
    columns = np.zeros((owner.size, n_classes * (n_classes - 1) // 2))
    for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
        columns[owner == i, pair] = coef[j - 1, owner == i]
        columns[owner == j, pair] = coef[i, owner == j]
    return columns
