"""A basis of kernel functions that grows towards what its span lacks of g = sum_i pull_i Phi(x_i), a g for each output."""

from __future__ import annotations

import numpy as np

from ..kernels import Array, Matrix, dense
from ..rows.protocol import Rows
from .residual import Residual
from .span import Span


class RowBasis:
    """Training rows: of `candidates` drawn by chance, the one that takes most from the residual."""

    def __init__(self, gram: Rows, span: Span, candidates: int) -> None:
        self.gram, self.span, self.candidates = gram, span, candidates
        self.rows = np.empty(0, dtype=np.intp)

    @property
    def points(self) -> Matrix:
        """What an expansion keeps of the basis."""
        return self.gram.points(self.rows)

    def grow(self, pull: Array, rng: np.random.Generator) -> bool:
        """Add a point for the residual of g, (n, q) by its coefficients; False where the span holds all rows."""
        while (rows := self.draw(pull, rng)).size:
            if self.add_best(rows, pull):
                return True
        return False

    def draw(self, pull: Array, rng: np.random.Generator) -> Array:
        """Rows by chance, of those that the span does not hold and that are part of g, if there are any."""
        outside = self.span.outside()
        part = outside[pull[outside].any(axis=1)]
        pool = part if part.size else outside
        return rng.choice(pool, min(self.candidates, pool.size), replace=False)

    def add_best(self, rows: Array, pull: Array) -> bool:
        """Add the best of these rows, unless rounding alone has it outside the span."""
        row = rows[int(self.gains(rows, pull).argmax())]
        column = self.gram.matrix(self.gram.points(np.array([row]))).ravel()
        if self.span.add(column, column[self.rows], float(self.span.diagonal[row])):
            self.rows = np.append(self.rows, row)
            return True
        self.span.forget(row)
        return False

    def gains(self, rows: Array, pull: Array) -> Array:
        """What each of the rows would take from the squared length of the residual."""
        active = np.flatnonzero(pull.any(axis=1))
        features = self.span.features[1:]
        projected = features[:, rows].T @ (features @ pull.astype(features.dtype))
        inner = self.gram.subset(rows).product(self.gram.points(active), pull[active]) - projected
        return np.square(inner).sum(axis=1) / self.span.rest[rows]


class PreimageBasis(RowBasis):
    """Points made for the residual: uphill from the best `starts` of the rows drawn, `max_steps` at most."""

    def __init__(self, gram: Rows, span: Span, candidates: int, starts: int, max_steps: int) -> None:
        super().__init__(gram, span, candidates)
        self.starts, self.max_steps = starts, max_steps
        self.made = np.empty((0, gram.X.shape[1]))

    @property
    def points(self) -> Array:
        """The points made so far, dense."""
        return self.made

    def add_best(self, rows: Array, pull: Array) -> bool:
        """Add what the climb finds or, where the span all but holds that, the best row."""
        active = np.flatnonzero(pull.any(axis=1))
        residual = Residual(self.gram.subset(active), pull[active], self.made, self.span.projected(pull))
        Z = dense(self.gram.X[rows]).astype(np.float64)
        order = np.argsort(-residual.gains(Z), kind="stable")
        if self.add(residual.climb(Z[order[: self.starts]], self.max_steps)) or self.add(Z[order[:1]]):
            return True
        self.span.forget(rows[order[0]])
        return False

    def add(self, point: Array) -> bool:
        """Add a point (1, d), unless the span all but holds it."""
        kernel = self.gram.kernel
        own, links = float(kernel(point, point)[0, 0]), kernel(self.made, point).ravel()
        self.gram.meter.add(1 + links.size)
        added = self.span.add(self.gram.matrix(point).ravel(), links, own)
        if added:
            self.made = np.vstack([self.made, point])
        return added
