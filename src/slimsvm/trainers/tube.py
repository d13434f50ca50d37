"""Support vector regression with the epsilon-insensitive loss, by the pair steps of `smo`.

    min  1/2 |w|^2 + C sum_i max(0, |t_i - f(x_i)| - eps)
    max  sum_i t_i (a_i - a*_i) - eps sum_i (a_i + a*_i) - 1/2 (a - a*)'K(a - a*)     0 <= a, a* <= C,  sum_i a_i - a*_i = 0

Written for the 2n variables (a, a*) with the signs s = (+1, -1), this is the dual of classification but for its linear
part: where that has y - f, to be equal for all rows between their bounds, this has (t - eps, t + eps) - f.
"""

from __future__ import annotations

import numpy as np

from ..gram import Crew, Gram
from ..kernels import Array
from ..model import Status, unheard
from .smo import Column, Rounds


class Twice(Gram):
    """The rows of a Gram two times over, for problems of two variables a row; no kernel value is computed twice."""

    def __init__(self, once: Gram) -> None:
        vars(self).update(vars(once))
        self.once = once

    @property
    def n(self) -> int:
        """The number of variables."""
        return 2 * self.once.n

    @property
    def rows_are_dear(self) -> bool:
        """As for the rows themselves."""
        return self.once.rows_are_dear

    def subset(self, index: Array, crew: Crew | None = None) -> Gram:
        """The Gram of some variables, in which the two of a row are two rows."""
        return self.once.subset(index % self.once.n, crew)

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """K between the rows of variables."""
        n = self.once.n
        return self.once.block(index % n, None if columns is None else columns % n, out=out)

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:
        """K @ V for variables, the two of a row added up first."""
        rows, place = np.unique(index % self.once.n, return_inverse=True)
        total = np.zeros((rows.size, V.shape[1]))
        np.add.at(total, place, V)
        return np.tile(self.once.product_of(rows, total, keep=keep), (2, 1))


class Levels(Column):
    """A binary problem whose free rows have responses of `level` less the bias, in the place of y less the bias."""

    def __init__(self, gram: Gram, y: Array, level: Array, cap: Array, settings: Rounds) -> None:
        super().__init__(gram, y, cap, settings)
        self.level = level

    @property
    def v(self) -> Array:
        """Level - f: minus y times the gradient of the dual."""
        return self.level - self.responses.values.ravel()

    def objective(self) -> float:
        """The dual objective."""
        signed = self.signed
        return float(self.level @ signed - 0.5 * signed @ self.responses.values.ravel())

    def part(self, rows: Array) -> Levels:
        """The problem of some of the variables."""
        return Levels(self.gram.subset(rows), self.y[rows], self.level[rows], self.cap[rows], self.settings)


class Tube:
    """The regression of one output on the rows of a Gram; each run goes on from where the last one ended."""

    def __init__(self, gram: Gram, goal: Array, C: float, settings: Rounds) -> None:
        self.goal = goal
        signs = np.repeat([1.0, -1.0], gram.n)
        self.column = Levels(Twice(gram), signs, np.tile(goal, 2), np.full(2 * gram.n, float(C)), settings)

    def solve(self, eps: float, limit: float = np.inf) -> Status:
        """The optimum for a tube of that radius, or as near to it as `limit` pair steps get; how that ended."""
        column = self.column
        column.level = np.concatenate([self.goal - eps, self.goal + eps])
        column.status = Status.CONVERGED
        column.solve(column.steps + limit, unheard)
        return column.status

    @property
    def coef(self) -> Array:
        """The coefficient of each row, a - a*."""
        return self.column.signed.reshape(2, -1).sum(axis=0)

    @property
    def bias(self) -> float:
        """The bias, from the rows on the surface of the tube."""
        return self.column.bias()

    def objective(self) -> float:
        """The value of the dual."""
        return self.column.objective()
