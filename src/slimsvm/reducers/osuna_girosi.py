"""Support vector regression on the full model's own outputs (Osuna & Girosi 1998).

The outputs f(x_i) of the full model at its support vectors are approximated by regression with the same kernel and the
epsilon-insensitive loss ("Reducing the run-time complexity of support vector machines"):

    minimise  1/2 |w|^2 + cost sum_i max(0, |f(x_i) - f~(x_i)| - eps)

Its support vectors are those of the x_i that are not strictly inside the tube of radius eps around f~: the wider the tube,
the fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels import Array, Precomputed
from ..limits import Deadline
from ..model import Expansion, Status, Task
from ..rows.host import HostRows
from ..solvers.tube import Tube
from ..trainers.smo import SMO
from .base import Models, Reducer

#: the cost, where none is given, over the largest coefficient of the full model
LARGE = 10.0
#: how fast a tube narrows while it is too wide, and the ratio of two radii between which no other is tried
NARROWER, CLOSE = 0.7, 1.003
#: pair steps between two looks at the clock, and the looks after which a regression has to do as it is
STEPS_A_LOOK, LOOKS = 100_000, 100
#: rows of a round of the regression: every output has a kernel block of that many
WORKING_SET = 512
#: ridge of a refit over the sum of the squared kernel values: it settles ties and no more
RIDGE = 1e-9


@dataclass(frozen=True)
class OsunaGirosi(Reducer):
    """Epsilon-insensitive regression of the full model's outputs on its support vectors (Osuna & Girosi 1998).

    The radius eps of the tube is found by bisection for each size: the smallest tube with so many support vectors, all
    outputs with the same eps and counted together. `cost` is the regression's C; None takes a large one, ten times the
    largest coefficient of the full model, with which nearly every row ends in the tube. `tol` is the regression's.

    The paper ends there, and `refit=False` is its method; a size then has the most support vectors that do not exceed it.
    But the coefficients of a wide tube are small ones, only as large as it takes to touch it. With `refit` they and the
    bias are fitted to the same outputs anew, by least squares. And where no tube has the number of support vectors wanted
    (there are two at least, since coefficients sum to 0), those with the largest coefficients of the next narrower tube
    are kept.

    Labels and weights of rows have no part in this: it is the full model that is followed, and at all its support vectors.
    Where the kernel is a precomputed matrix, at those among the rows of the task, since others have no values there.
    """

    cost: float | None = None
    tol: float = 1e-3
    refit: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is not None and not self.cost > 0:
            raise ValueError(f"cost must be a number above 0, or None for a large one, not {self.cost!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """A tube for each size, narrower and narrower; and the full model where that is small enough."""
        assert model is not None
        smaller = [size for size in sizes if size < model.size]
        if smaller:
            yield from self._smaller(task, smaller, model, deadline)
        if len(smaller) < len(sizes) and not deadline.over:
            yield model, "the full model"

    def _smaller(
        self, task: Task, sizes: Sequence[int], model: Expansion, deadline: Deadline
    ) -> Iterator[tuple[Expansion, str]]:
        gram = support_vectors(task, model)
        search = Search(gram, gram.product(model.points, model.coef) + model.bias, self._cost(model), self.tol)
        for size in sizes:
            best, narrower = search.around(size, deadline)
            yield self._model(search, best, narrower, size)
            if deadline.over or (best.size < size and narrower is None):
                return

    def _cost(self, model: Expansion) -> float:
        return self.cost or LARGE * float(np.abs(model.coef).max(initial=0.0)) or 1.0

    def _model(self, search: Search, best: Regression, narrower: Regression | None, size: int) -> tuple[Expansion, str]:
        """The model of one size, from what the search found around it."""
        if not self.refit:
            return search.expansion(best), f"eps={best.eps:.4g}"
        if best.size == size or narrower is None:
            return search.refitted(best), f"eps={best.eps:.4g}, refit"
        return search.refitted(narrower.pruned(size)), f"eps={narrower.eps:.4g}, pruned and refit"


def support_vectors(task: Task, model: Expansion) -> HostRows:
    """The kernel among the full model's points; of a precomputed one, among those that are rows of the task, if any are."""
    if isinstance(model.kernel, Precomputed):
        known = np.isin(task.rows.ids, model.points)
        return task.rows.subset(np.flatnonzero(known)) if known.any() else task.rows
    return HostRows(model.kernel, model.points, task.rows.meter, task.rows.cache_mb, task.rows.error)


@dataclass(frozen=True)
class Regression:
    """The support vectors of the regressions of all outputs with tubes of one radius."""

    eps: float
    rows: Array
    coef: Array  # (rows, outputs)
    bias: Array

    @property
    def size(self) -> int:
        """The number of support vectors of all outputs together."""
        return self.rows.size

    def pruned(self, size: int) -> Regression:
        """The support vectors with the largest coefficients, the first of equals."""
        kept = np.sort(np.argsort(-np.square(self.coef).sum(axis=1), kind="stable")[:size])
        return Regression(self.eps, self.rows[kept], self.coef[kept], self.bias)


class Search:
    """Regressions of `goals` (n, q) with tubes of many radii, each from the solution of the one before."""

    def __init__(self, gram: HostRows, goals: Array, cost: float, tol: float) -> None:
        self.gram, self.goals = gram, goals
        self.tubes = [Tube(gram, goal, cost, SMO(tol=tol, working_set=WORKING_SET)) for goal in goals.T]
        middle, radius = (goals.max(axis=0) + goals.min(axis=0)) / 2, np.ptp(goals, axis=0).max() / 2
        # a constant is in the widest tube
        self.tried = [Regression(float(radius), np.empty(0, np.intp), np.empty((0, middle.size)), middle)]
        self.narrowest = tol * float(radius)

    def around(self, size: int, deadline: Deadline) -> tuple[Regression, Regression | None]:
        """The regression with the most support vectors up to `size`, and that of the widest tube with more.

        They are as near as bisection gets. There may be none with more: then the tube is as narrow as makes sense.
        """
        while True:
            fitting = [regression for regression in self.tried if regression.size <= size]
            best = max(fitting, key=lambda regression: (regression.size, -regression.eps))
            more = (regression for regression in self.tried if regression.size > size)
            narrower = max(more, key=lambda regression: regression.eps, default=None)
            eps = self.next_radius(narrower)
            if best.size == size or eps is None or (deadline.over and len(self.tried) > 1):
                return best, narrower
            self.tried.append(self.regression(eps, deadline))

    def next_radius(self, narrower: Regression | None) -> float | None:
        """Between a tube that is too narrow and the next wider one, or narrower than all; None if that is too near."""
        if narrower is None:
            eps = NARROWER * min(regression.eps for regression in self.tried)
            return eps if eps > self.narrowest else None
        wider = min(regression.eps for regression in self.tried if regression.eps > narrower.eps)
        return float(np.sqrt(wider * narrower.eps)) if wider > CLOSE * narrower.eps else None

    def regression(self, eps: float, deadline: Deadline) -> Regression:
        """All outputs with that radius."""
        for tube in self.tubes:
            for _ in range(LOOKS):
                if tube.solve(eps, STEPS_A_LOOK) is not Status.MAX_ITER or deadline.over:
                    break
        coef = np.stack([tube.coef for tube in self.tubes], axis=1)
        rows = np.flatnonzero(coef.any(axis=1))
        return Regression(eps, rows, coef[rows], np.array([tube.bias for tube in self.tubes]))

    def expansion(self, regression: Regression) -> Expansion:
        """The regression as a model."""
        return Expansion(self.gram.kernel, self.gram.points(regression.rows), regression.coef, regression.bias)

    def refitted(self, regression: Regression) -> Expansion:
        """The model on the same points with the least sum of squared differences to the goals."""
        points = self.gram.points(regression.rows)
        coef, bias = least_squares(self.gram.matrix(points), self.goals)
        return Expansion(self.gram.kernel, points, coef, bias)


def least_squares(K: Array, goals: Array) -> tuple[Array, Array]:
    """The coefficients (m, q) and biases (q,) with the least |K coef + bias - goals|^2."""
    design = np.hstack([np.ones((K.shape[0], 1)), K])
    normal = design.T @ design
    normal.flat[:: normal.shape[0] + 1] += RIDGE * np.trace(normal)
    fitted = np.linalg.solve(normal, design.T @ goals)
    return fitted[1:], fitted[0]
