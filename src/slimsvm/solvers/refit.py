"""New coefficients and bias for the points of a small model, fitted to the demands of the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..kernels import Array
from ..model import Expansion, Task
from ..rows.protocol import Rows
from .newton import IntervalSquares, NewtonSettings, tie_ridge
from .wanted import wanted

#: the most kernel values between rows and points in memory; a subsample of the rows is used if all need more
REFIT_VALUES = 1 << 24
PRECISE = NewtonSettings()


def refit_rows(task: Task, size: int, values: int = REFIT_VALUES) -> Array:
    """Return the rows for a refit of models of up to `size` points, which takes at most about `values` kernel values."""
    return task.sample(max(values // (size + 1), 1))


@dataclass(frozen=True)
class Refit:
    """Rows with their demands; a call returns a model's points with the best coefficients and bias for them."""

    rows: Rows
    problem: IntervalSquares

    @classmethod
    def of(
        cls, task: Task, model: Expansion | None, most: int, *, or_labels: bool = True, values: int = REFIT_VALUES
    ) -> Refit:
        """Return a refit to a full model's margins, or to the labels, for models of up to `most` points."""
        part = task.part(refit_rows(task, most, values))
        return cls(part.rows, IntervalSquares(wanted(part, model, or_labels=or_labels), part.weights))

    def __call__(self, small: Expansion) -> Expansion:
        """Return the same points with the best coefficients."""
        return next(self.nested([small]))

    def nested(self, models: Sequence[Expansion]) -> Iterator[Expansion]:
        """Yield refits of models whose points are the first points of the last model; each point is evaluated once."""
        against = self.rows.against(models[-1].points)
        R = tie_ridge(against, self.problem.weights)
        for model in models:
            size, start = model.size + 1, np.vstack([model.bias, model.coef])
            found = self.problem.fit(against.first(model.size), R[:size, :size], PRECISE, start=start)
            yield replace(model, coef=found.coef, bias=found.bias)
