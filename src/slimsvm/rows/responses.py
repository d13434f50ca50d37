"""Responses: the outputs of a growing expansion on every row, kept up to date.

Most methods work in rounds: they choose a few rows by their responses, solve a small problem on them, and add the solution.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array, Matrix
from .protocol import Rows


class Responses:
    """The outputs f(x_i) = sum_j k(x_i, z_j) coef_j on every row, without the bias: `values`, (n, q) in float64."""

    def __init__(self, rows: Rows, n_outputs: int) -> None:
        self.rows = rows
        self.values = np.zeros((rows.n, n_outputs))

    def add(self, points: Matrix, coef: Array) -> None:
        """Add points to the expansion, with coefficients (m, q)."""
        self.values += self.rows.product(points, coef)

    def add_rows(self, index: Array, coef: Array, *, keep: bool | None = None) -> None:
        """Add rows, by their numbers, to the expansion, with coefficients (m, q).

        `keep` caches their kernel values for later calls; None does so if a cached value is faster than a new one.
        """
        if index.size:
            self.values += self.rows.product_of(index, coef, keep=keep)


#: with more scores, a sample gives a threshold for the largest ones; and the sample takes one score of at most this many
MANY, SAMPLED = 1 << 14, 64


def largest(score: Array, count: int) -> Array:
    """Return the positions of the `count` largest finite scores, in any order."""
    every = min(SAMPLED, score.size // (4 * count + 1))
    if score.size > MANY and every > 1:
        candidates = _above_sample(score, count, every)
        if candidates.size >= count:
            return candidates[_top(score[candidates], count)]
    finite = np.flatnonzero(np.isfinite(score))  # argpartition is slow among many equal infinities
    return finite if finite.size <= count else finite[_top(score[finite], count)]


def _above_sample(score: Array, count: int, every: int) -> Array:
    """Return the positions of finite scores above a threshold, which about twice `count` scores exceed."""
    sample = score[::every]
    place = max(sample.size - 1 - 2 * count // every - 8, 0)
    threshold = np.partition(sample, place)[place]
    return np.flatnonzero((score >= threshold) & (score < np.inf)) if np.isfinite(threshold) else np.empty(0, np.intp)


def _top(score: Array, count: int) -> Array:
    return np.argpartition(score, score.size - count)[score.size - count :]
