"""Parts shared by reducers that choose a basis and then fit its coefficients to the labels of all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..goals.margin_targets import MarginTargets
from ..kernels import Array, Matrix
from ..model import Expansion, Task
from ..rows.kernel_matrix import KernelMatrix
from ..rows.protocol import Rows
from .newton import IntervalSquares, NewtonSettings, tie_ridge


def wanted(task: Task, model: Expansion | None, *, or_labels: bool = False) -> MarginTargets:
    """Return the margin targets of the full model's outputs (`Goal.followed`), or without a full model those of the labels.

    A classifier that gets every row wrong raises ValueError; with `or_labels` the labels are used instead.
    """
    if model is None:
        return task.margin_targets
    outputs = model.on(task.rows) if task.full_outputs is None else task.full_outputs
    try:
        return task.goal.followed(task.targets, outputs)
    except ValueError:
        if or_labels:
            return task.margin_targets
        raise


#: the most kernel values between rows and points in memory; a subsample of the rows is used if all need more
REFIT_VALUES = 1 << 24
PRECISE = NewtonSettings()


def refit_rows(task: Task, size: int, values: int = REFIT_VALUES) -> Array:
    """Return the rows for a refit of models of up to `size` points, which takes at most about `values` kernel values."""
    return task.sample(max(values // (size + 1), 1))


@dataclass(frozen=True)
class Refit:
    """Rows with their margin targets; a call returns a model's points with the best coefficients and bias for them."""

    rows: Rows
    problem: IntervalSquares

    @classmethod
    def of(
        cls, task: Task, model: Expansion | None, largest: int, *, or_labels: bool = True, values: int = REFIT_VALUES
    ) -> Refit:
        """Return a refit to a full model's margins, or to the labels, for models of up to `most` points."""
        part = task.part(refit_rows(task, largest, values))
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
            optimum = self.problem.fit(against.first(model.size), R[:size, :size], PRECISE, start=start)
            yield replace(model, coef=optimum.coef, bias=optimum.bias)


#: Newton's method until gradients are below about 1e-6
EXACT = NewtonSettings(precision=1e-12)


def check_C(C: float) -> None:  # noqa: N802
    """Raise ValueError unless C is a number above 0."""
    if not 0 < C < np.inf:
        raise ValueError(f"C must be a number above 0, not {C!r}")


def squared_loss(task: Task) -> IntervalSquares:
    """Return the problem of the labels' margin targets: the squared hinge loss, or the squared epsilon-insensitive one."""
    return IntervalSquares(task.margin_targets, task.weights)


def bordered(R: Array, bias: float) -> Array:
    """Return the regulariser of (bias, coefficients) from those of the coefficients and of the bias."""
    size = R.shape[0] + 1
    both = np.zeros((size, size))
    both[0, 0], both[1:, 1:] = bias, R
    return both


def kernel_norm(K: Array) -> Array:
    """Return |K|: the kernel among points with negative eigenvalues made positive.

    Negative eigenvalues come from rounding or from an indefinite kernel (sigmoid); scikit-learn's Nystroem does the same.
    """
    values, vectors = np.linalg.eigh((K + K.T).astype(np.float64) / 2)
    return (vectors * np.abs(values)) @ vectors.T


def proportional_rows(groups: Array, count: int, rng: np.random.Generator) -> Array:
    """Return random rows in an order whose every beginning has the groups (classes) in proportion, to within one row."""
    shuffled = rng.permutation(groups.size)
    place = np.empty(groups.size)
    for group in range(groups.max(initial=-1) + 1):
        rows = shuffled[groups[shuffled] == group]
        place[rows] = (np.arange(rows.size) + 0.5) / rows.size
    return np.argsort(place, kind="stable")[:count]


def nested_models(task: Task, points: Matrix, against: KernelMatrix, R: Array, sizes: Sequence[int]) -> Iterator[Expansion]:
    """Yield the best model on the first points for each size, until points or time run out."""
    problem, theta = squared_loss(task), np.zeros((1, task.targets.shape[1]))
    for size in sorted({min(size, points.shape[0]) for size in sizes}):
        if theta.shape[0] > 1 and task.run.over:
            return
        start = np.vstack([theta, np.zeros((size + 1 - theta.shape[0], theta.shape[1]))])
        optimum = problem.fit(against.first(size), R[: size + 1, : size + 1], EXACT, start=start)
        theta = optimum.theta
        yield Expansion(task.rows.kernel, points[:size], optimum.coef, optimum.bias)
