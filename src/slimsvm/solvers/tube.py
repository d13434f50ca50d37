"""Support vector regression with the epsilon-insensitive loss, by the pair steps of `smo`.

    min  1/2 |w|^2 + C sum_i max(0, |t_i - f(x_i)| - eps)
    max  sum_i t_i (a_i - a*_i) - eps sum_i (a_i + a*_i) - 1/2 (a - a*)'K(a - a*)     0 <= a, a* <= C,  sum_i a_i - a*_i = 0

With 2n variables (a, a*) of signs (+1, -1), this is the problem of `SmoState` with the linear term (t - eps, t + eps).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernels import Array
from ..model import Status
from ..rows.protocol import Dual, Rows
from ..run import BY_ITSELF, Run
from .free_rows import USUAL_RULE, NewtonRule
from .smo import Rounds, SmoState


class PairedRows:
    """Each row twice, for problems with two variables per row. Kernel values are computed once.

    Implements the part of `Rows` that `SmoState` uses.
    """

    def __init__(self, once: Rows) -> None:
        self.once, self.dtype, self.worth_caching = once, once.dtype, once.worth_caching
        self.n, self.working_set, self.worth_shrinking = 2 * once.n, once.working_set, once.worth_shrinking
        self.keeps_vectors = False

    @property
    def spent(self) -> int:
        """The work of products so far."""
        return self.once.spent

    @spent.setter
    def spent(self, work: int) -> None:
        self.once.spent = work

    def subset(self, index: Array) -> Rows:
        """Return the rows of some variables; the two variables of a row become two rows."""
        return self.once.subset(index % self.once.n)

    def block(self, index: Array, columns: Array | None = None, *, out: Array | None = None) -> Array:
        """Return the kernel values between the rows of variables."""
        n = self.once.n
        return self.once.block(index % n, None if columns is None else columns % n, out=out)

    def fetch(self, index: Array) -> Rows:
        """Return the rows of some variables on the host."""
        return self.once.fetch(index % self.once.n)

    def buffer(self, size: int) -> Array:
        """Return host memory for blocks."""
        return self.once.buffer(size)

    def share_out(self, work: Callable[[int], None], count: int) -> None:
        """Call work(k) for each k in range(count), several at once if the home has threads."""
        self.once.share_out(work, count)

    def on_demand(self) -> None:
        """Return None: the two variables of a row share its kernel values in blocks."""

    def dual_vectors(self, problem: Dual, working: Array) -> None:
        """Return None: a home keeps one variable for each row."""

    def product_of(self, index: Array, V: Array, *, keep: bool | None = None) -> Array:
        """Return K @ V for variables, after adding up the two variables of each row."""
        rows, place = np.unique(index % self.once.n, return_inverse=True)
        total = np.zeros((rows.size, V.shape[1]))
        np.add.at(total, place, V)
        return np.tile(self.once.product_of(rows, total, keep=keep), (2, 1))


class Tube:
    """The regression of one output on its targets; each run continues from the solution of the last one."""

    def __init__(
        self,
        rows: Rows,
        targets: Array,
        C: float | Array,
        settings: Rounds,
        *,
        newton: NewtonRule | None = USUAL_RULE,
        run: Run = BY_ITSELF,
    ) -> None:
        self.targets = targets
        signs, cap = np.repeat([1.0, -1.0], rows.n), np.tile(np.broadcast_to(np.float64(C), rows.n), 2)
        self.state = SmoState(PairedRows(rows), signs, cap, settings, newton=newton, run=run)  # type: ignore[arg-type]

    def begin_from(self, start: Array) -> None:
        """Start from coefficients a - a* of the rows."""
        self.state.begin_from(np.concatenate([np.maximum(start, 0.0), np.minimum(start, 0.0)]))

    def solve(self, eps: float, limit: float = np.inf) -> Status:
        """Solve for a tube of radius `eps` in at most `limit` pair steps, and return how the run ended."""
        state = self.state
        state.linear = np.concatenate([self.targets - eps, self.targets + eps])
        state.status = Status.CONVERGED
        state.solve(state.steps + limit)
        return state.status

    @property
    def coef(self) -> Array:
        """The coefficients a - a* of the rows."""
        return self.state.signed.reshape(2, -1).sum(axis=0)

    @property
    def bias(self) -> float:
        """The bias, from the rows on the boundary of the tube."""
        return self.state.bias()

    def objective(self) -> float:
        """Return the dual objective."""
        return self.state.objective()
