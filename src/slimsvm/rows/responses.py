"""Responses: the values f(x_i) of a growing expansion on every row, the one vector that all methods keep.

A trainer or reducer is a round: ask for candidates, solve a small dense problem on them, add the result. Only this object
knows where the rows are.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array, Matrix
from .protocol import Rows


class Responses:
    """f(x_i) = sum_j k(x_i, z_j) coef_j for each row, one column per output, without the bias."""

    def __init__(self, rows: Rows, outputs: int) -> None:
        self.rows = rows
        self.values = np.zeros((rows.n, outputs))

    def add(self, points: Matrix, coef: Array) -> None:
        """Add the points with their coefficients, one row of them per point."""
        self.values += self.rows.product(points, coef)

    def add_rows(self, index: Array, coef: Array, *, keep: bool | None = None) -> None:
        """Add points that are rows; `keep` holds their kernel rows for the next time (by default where that pays)."""
        if index.size:
            self.values += self.rows.product_of(index, coef, keep=keep)


def largest(score: Array, count: int) -> Array:
    """The positions of the `count` largest finite scores, in no order."""
    finite = np.flatnonzero(np.isfinite(score))  # argpartition is slow among many equal infinities
    if finite.size <= count:
        return finite
    return finite[np.argpartition(score[finite], finite.size - count)[finite.size - count :]]
