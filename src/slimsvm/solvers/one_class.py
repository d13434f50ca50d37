"""The one-class SVM of Schölkopf et al. (2001), by the pair steps of `smo`.

    min  1/2 a'K a     0 <= a_i <= w_i,  sum_i a_i = nu sum_i w_i

f(x) = sum_i a_i k(x_i, x) - rho is at least 0 for all but a share nu of the rows at most. This is the problem of `SmoState`
with labels of 1 and no linear term. The scale is LIBSVM's: the paper divides a and rho by nu n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import Array
from ..model import Status
from ..rows.protocol import Rows
from ..rows.threads import blocks
from ..run import BY_ITSELF, Run
from .free_rows import USUAL_RULE, NewtonRule
from .smo import Rounds, SmoState

#: most rows of a working set. The start is near the optimum, so few rows change in a round; a larger set costs more time
#: than the rounds it saves
WORKING_SET = 512
#: rows with which outlying rows are found at the start; more: a better start that takes longer
LANDMARKS = 64
#: support vectors of the start whose kernel values are added between two looks at the clock; more: a later end
START_PART = 2048
#: the boundary is moved outwards by this share of the scores; more: rows that are clearly outside count as inside
ROUNDING = 1e-12


@dataclass(frozen=True)
class OneClassRounds:
    """The tolerance and the working set of a run."""

    tol: float
    working_set: int


class OneClassState(SmoState):
    """The problem of all rows. It starts with coefficients on few rows, those least similar to others."""

    def __init__(
        self,
        rows: Rows,
        weights: Array,
        nu: float,
        settings: Rounds,
        *,
        newton: NewtonRule | None = USUAL_RULE,
        run: Run = BY_ITSELF,
    ) -> None:
        rounds = OneClassRounds(settings.tol, min(settings.working_set or WORKING_SET, WORKING_SET))
        super().__init__(rows, np.ones(rows.n), weights, rounds, linear=np.zeros(rows.n), newton=newton, run=run)
        self.total = nu * float(weights.sum())

    def begin_from(self, start: Array) -> None:
        """Start from coefficients, clipped to the box; outlying rows take the rest of the sum."""
        alpha = np.clip(start, 0.0, self.cap)
        alpha *= self.total / max(float(alpha.sum()), self.total)
        order = self._outlying_first()
        room = (self.cap - alpha)[order]
        filled = np.concatenate([[0.0], np.cumsum(room)])[:-1]
        alpha[order] += np.clip(self.total - alpha.sum() - filled, 0.0, room)
        self.alpha = alpha
        self._add_start(np.flatnonzero(alpha))

    def _add_start(self, support: Array) -> None:
        """Add the support vectors of the start to the responses; at the deadline, those added by then stand for all.

        They are a share nu of all rows at least, which can take longer than the time limit.
        """
        order = support[evenly_spaced(support.size)]
        for part in blocks(order.size, START_PART):
            self.responses.add_rows(order[part], self.alpha[order[part], None])
            if self.run.over and part.stop < order.size:
                added = np.zeros(self.rows.n)
                added[order[: part.stop]] = self.alpha[order[: part.stop]]
                scale = self.total / float(added.sum())
                self.alpha, self.responses.values = scale * added, scale * self.responses.values
                self.status = Status.TIME_LIMIT
                return

    def bias(self) -> float:
        """Return -rho, with a margin for rounding: rows on the boundary, such as free support vectors, are inside.

        Without a step, rho is the score that a share nu of the rows is below.
        """
        if self.steps or self.status is not Status.TIME_LIMIT:
            return super().bias() + ROUNDING * self.total
        v = self.v
        order = np.argsort(-v, kind="stable")
        below = int(np.searchsorted(np.cumsum(self.cap[order]), self.total))
        return float(v[order[min(below, order.size - 1)]])

    def _outlying_first(self) -> Array:
        """Return the rows by ascending mean kernel value with a few rows; it is small for support vectors."""
        landmarks = evenly_spaced(self.rows.n)[:LANDMARKS]
        likeness = self.rows.product_of(landmarks, np.ones((landmarks.size, 1)), keep=False)[:, 0]
        return np.argsort(likeness, kind="stable")


def evenly_spaced(n: int) -> Array:
    """Return 0 .. n-1 in an order whose first ones are spread evenly: that of multiples of the golden ratio modulo 1."""
    return np.argsort(np.modf(np.arange(n) * (np.sqrt(5.0) - 1) / 2)[0], kind="stable")
