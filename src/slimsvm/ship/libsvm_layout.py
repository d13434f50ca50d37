"""LIBSVM's layout: each point belongs to a class and has a coefficient against every other class.

The output of a pair of classes i < j sums over the points of i, with their coefficients against j, and over the points of
j, with theirs against i. A point whose pairs have no class in common is written several times, under a few classes that
cover the pairs. `pairs.PairCoefficients` reads this layout. A model without classes has each point once, with one
coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..goals import OneVsOne
from .artefact import Array, Artefact


@dataclass(frozen=True)
class Layout:
    """Points sorted by class, in the order of `order`; a positive output is for the first class of its pair."""

    order: Array  # class numbers in the file's order
    index: Array  # the artefact's point of each entry
    counts: Array  # entries of each class
    coef: Array  # (k - 1, entries), or (1, entries) without classes
    bias: Array  # one per pair, or one


def layout_of(a: Artefact) -> Layout:
    """Return an artefact's points and coefficients in that layout."""
    if not a.classes.size:
        return Layout(a.classes, np.arange(a.size), a.classes, a.coef.T, a.bias)
    if a.classes.size == 2:
        # an output above 0 is for class 1, which comes first
        sides = [np.flatnonzero(a.coef[:, 0] > 0), np.flatnonzero(a.coef[:, 0] <= 0)]
        return _grouped(np.array([1, 0]), [(place, mine, a.coef[mine]) for place, mine in enumerate(sides)], a.bias)
    signs = OneVsOne(a.classes.size).signs
    if a.by_pairs:
        return _grouped(np.arange(a.classes.size), _covered(a.coef, signs), a.bias)
    # f_i - f_j as the output of a pair: the class with the largest f wins all of its pairs
    used = [(c, np.flatnonzero(a.coef[:, c])) for c in range(a.classes.size)]
    entries = [(c, mine, a.coef[mine, c, None] * signs[c]) for c, mine in used]
    return _grouped(np.arange(a.classes.size), entries, a.bias @ signs)


def _covered(coef: Array, signs: Array) -> list[tuple[int, Array, Array]]:
    """Return (class, points, their coefficients by pair), every coefficient once.

    A point is written under the class with the most of its remaining coefficients, until none remains.
    """
    left, entries = coef.copy(), []
    for _ in range(signs.shape[0]):
        # ties go to the class that the point's coefficients favour
        count = (left != 0) @ np.abs(signs).T + 0.25 * np.sign(left @ signs.T)
        owner = np.where((left != 0).any(axis=1), count.argmax(axis=1), -1)
        for c in range(signs.shape[0]):
            mine = np.flatnonzero(owner == c)
            entries.append((c, mine, np.where(signs[c] != 0, left[mine], 0.0)))
            left[mine] = np.where(signs[c] == 0, left[mine], 0.0)
    return entries


def _grouped(order: Array, entries: list[tuple[int, Array, Array]], bias: Array) -> Layout:
    """Return the layout of entries (place of the class in the order, points, their coefficients by pair)."""
    n_classes = order.size
    owner = np.concatenate([np.full(mine.size, c) for c, mine, _ in entries])
    index = np.concatenate([mine for _, mine, _ in entries]).astype(np.intp)
    by_pair = np.concatenate([coef for _, _, coef in entries])
    sequence = np.lexsort((index, owner))
    owner, index, by_pair = owner[sequence], index[sequence], by_pair[sequence]
    coef = np.zeros((n_classes - 1, index.size))
    for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
        coef[j - 1, owner == i] = by_pair[owner == i, pair]
        coef[i, owner == j] = by_pair[owner == j, pair]
    return Layout(order, index, np.bincount(owner, minlength=n_classes), coef, np.asarray(bias))
