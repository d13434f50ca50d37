"""A basis of kernel functions that grows towards vectors g = sum_i pull_i Phi(x_i), one for each output.

The part of g outside the span of the basis is its residual, from which the next basis vector is made.
"""

from __future__ import annotations

import numpy as np

from ..kernels import RBF, Array, Matrix, dense
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
from ..solvers.span import SpanCoordinates
from .preimage import FeatureVector, ascended, fixed_points

#: a pre-image has converged when a fixed-point step gains less than this share
SETTLED = 1e-3


class RowBasis:
    """Training rows: each is the one of `candidates` random rows that leaves the smallest residual of g."""

    def __init__(self, rows: Rows, span: SpanCoordinates, candidates: int) -> None:
        self.rows, self.span, self.candidates = rows, span, candidates
        self.index = np.empty(0, dtype=np.intp)

    @property
    def points(self) -> Matrix:
        """The basis as points of an expansion."""
        return self.rows.take(self.index)

    @one_blas_thread()
    def grow(self, pull: Array, rng: np.random.Generator) -> bool:
        """Add a point for the residual of g with coefficients `pull` (n, q); False if all rows are in the span."""
        while (candidates := self.draw(pull, rng)).size:
            if self.add_best(candidates, pull):
                return True
        return False

    def draw(self, pull: Array, rng: np.random.Generator) -> Array:
        """Return random rows outside the span, if possible rows with a coefficient in g."""
        outside = self.span.outside()
        part = outside[pull[outside].any(axis=1)]
        pool = part if part.size else outside
        return rng.choice(pool, min(self.candidates, pool.size), replace=False)

    def add_best(self, candidates: Array, pull: Array) -> bool:
        """Add the best of the candidates, unless it is in the span up to rounding."""
        best = candidates[[int(self.gains(candidates, pull).argmax())]]
        links = self.rows.block(self.index, best).ravel().astype(np.float64)
        if self.span.add(self.rows.take(best), links, float(self.span.diagonal[best[0]])):
            self.index = np.append(self.index, best)
            return True
        self.span.forget(best[0])
        return False

    def gains(self, candidates: Array, pull: Array) -> Array:
        """Return the decrease of the squared length of the residual by each candidate."""
        active, some = np.flatnonzero(pull.any(axis=1)), self.rows.subset(candidates)
        inner = some.product(self.rows.take(active), pull[active])
        if self.span.size:
            inner -= some.product(self.points, self.span.projected(pull))
        return np.square(inner).sum(axis=1) / self.span.rest[candidates]


class PreimageBasis(RowBasis):
    """Pre-images of the residual, searched from the best `starts` of the candidates in at most `max_steps` steps each."""

    def __init__(self, rows: Rows, span: SpanCoordinates, candidates: int, starts: int, max_steps: int) -> None:
        super().__init__(rows, span, candidates)
        self.starts, self.max_steps = starts, max_steps
        self.made = np.empty((0, rows.d))

    @property
    def points(self) -> Array:
        """The points made so far, dense."""
        return self.made

    def add_best(self, candidates: Array, pull: Array) -> bool:
        """Add the pre-image or, if that is linearly dependent on the points, the best candidate."""
        active = np.flatnonzero(pull.any(axis=1))
        residual = FeatureVector(self.rows.subset(active), pull[active], self.made, self.span.projected(pull))
        Z = dense(self.rows.take(candidates)).astype(np.float64)
        gains = residual.gains(Z)
        order = np.argsort(-gains, kind="stable")
        starts = order[: self.starts]
        if self.add(self.search(residual, Z[starts], gains[starts])) or self.add(Z[order[:1]]):
            return True
        self.span.forget(candidates[order[0]])
        return False

    def search(self, residual: FeatureVector, starts: Array, gains: Array) -> Array:
        """Return the point (1, d) with the largest gain that is found from the initial points with these gains."""
        if isinstance(self.rows.kernel, RBF):
            found, gains = fixed_points(residual, starts, self.max_steps, SETTLED, backtrack=False)
        else:
            pairs = zip(starts[:, None], gains, strict=True)
            found = np.vstack([starts, *(ascended(residual, start, gain, self.max_steps) for start, gain in pairs)])
            gains = residual.gains(found)
        return found[[int(np.nan_to_num(gains).argmax())]]

    def add(self, point: Array) -> bool:
        """Add a point (1, d), unless it is linearly dependent on the others."""
        links = self.rows.among(self.made, point).ravel() if self.made.size else np.empty(0)
        added = self.span.add(point, links, float(self.rows.among(point)[0, 0]))
        if added:
            self.made = np.vstack([self.made, point])
        return added
