"""Responses: the outputs of a growing expansion on every row, kept up to date.

Most methods work in rounds: choose a few rows by their responses, solve a small problem on these, and add the solution.
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

        `keep` caches their kernel values for later calls; None does so where a cached value is cheaper than a new one.
        """
        if index.size:
            self.values += self.rows.product_of(index, coef, keep=keep)


def largest(score: Array, count: int) -> Array:
    """Return the positions of the `count` largest finite scores, in any order."""
    finite = np.flatnonzero(np.isfinite(score))  # argpartition is slow among many equal infinities
    if finite.size <= count:
        return finite
    return finite[np.argpartition(score[finite], finite.size - count)[finite.size - count :]]
