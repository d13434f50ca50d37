"""Support vector regression with the epsilon-insensitive loss, by the pair steps of `smo`.

    min  1/2 |w|^2 + C sum_i max(0, |t_i - f(x_i)| - eps)
    max  sum_i t_i (a_i - a*_i) - eps sum_i (a_i + a*_i) - 1/2 (a - a*)'K(a - a*)     0 <= a, a* <= C,  sum_i a_i - a*_i = 0

Written for the 2n variables (a, a*) with the signs s = (+1, -1), this is the dual of classification but for its linear
part: where that has y - f, to be equal for all rows between their bounds, this has (t - eps, t + eps) - f.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Array
from ..model import Status, no_progress
from ..rows.protocol import Rows
from .smo import Rounds, SmoState


class PairedRows:
    """Rows two times over, for problems of two variables a row; no kernel value is computed twice.

    It offers the part of `Rows` that `SmoState` needs.
    """

    def __init__(self, once: Rows) -> None:
        self.once, self.dtype, self.worth_caching = once, once.dtype, once.worth_caching
        self.n = 2 * once.n

    def subset(self, index: Array) -> Rows:
        """Return the rows of some variables, in which the two of a row are two rows."""
        return self.once.subset(index % self.once.n)

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """Return K between the rows of variables."""
        n = self.once.n
        return self.once.block(index % n, None if columns is None else columns % n, out=out)

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:
        """Return K @ V for variables, the two of a row added up first."""
        rows, place = np.unique(index % self.once.n, return_inverse=True)
        total = np.zeros((rows.size, V.shape[1]))
        np.add.at(total, place, V)
        return np.tile(self.once.product_of(rows, total, keep=keep), (2, 1))


class Tube:
    """The regression of one output on its targets; each run goes on from where the last one ended."""

    def __init__(self, rows: Rows, targets: Array, C: float, settings: Rounds) -> None:
        self.targets = targets
        signs, cap = np.repeat([1.0, -1.0], rows.n), np.full(2 * rows.n, float(C))
        self.state = SmoState(PairedRows(rows), signs, cap, settings)  # type: ignore[arg-type]

    def solve(self, eps: float, limit: float = np.inf) -> Status:
        """Find the optimum for a tube of that radius, or as near to it as `limit` pair steps get; return how that ended."""
        state = self.state
        state.linear = np.concatenate([self.targets - eps, self.targets + eps])
        state.status = Status.CONVERGED
        state.solve(state.steps + limit, no_progress)
        return state.status

    @property
    def coef(self) -> Array:
        """The coefficient of each row, a - a*."""
        return self.state.signed.reshape(2, -1).sum(axis=0)

    @property
    def bias(self) -> float:
        """The bias, from the rows on the surface of the tube."""
        return self.state.bias()

    def objective(self) -> float:
        """Return the value of the dual."""
        return self.state.objective()
