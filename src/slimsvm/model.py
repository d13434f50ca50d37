"""The input and output of trainers and reducers: Task, Expansion, Judgement, Fit and Status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .budget import PRECISIONS
from .c_bytes import Room
from .goals import Goal
from .goals.classes import OneVsRest
from .goals.margin_targets import MarginTargets, RowLoss
from .kernels import Array, Kernel, Matrix, Precomputed
from .metric import Metric
from .pairs import PairCoefficients
from .rows.prediction import class_outputs, kernel_product, pair_outputs
from .rows.protocol import Meter, Rows
from .run import BY_ITSELF, Run


class Status(Enum):
    """How a run ended; the value is a sentence with advice. Later members are worse."""

    CONVERGED = "converged"
    STABLE = "stopped because the validation error no longer falls"
    PASSED = "made all its passes over the rows"
    BUDGET = "stopped at the budget of support vectors"
    EXHAUSTED = "stopped because no candidate was left to add"
    CLAMPED = "stopped with a factor or a width of the learned metric at its bound; scale the features, or raise bound"
    INTERRUPTED = "stopped by Ctrl-C with what was found so far"
    TIME_LIMIT = "stopped at the time limit; raise time_limit"
    STALLED = "stopped because rounding hides further progress; scale the features, lower C, or raise tol"
    MAX_ITER = "stopped at max_iter; raise max_iter, scale the features, or lower C"

    @property
    def as_planned(self) -> bool:
        """Whether the method ended by its own rule, which needs no warning."""
        return self not in (Status.CLAMPED, Status.INTERRUPTED, Status.TIME_LIMIT, Status.STALLED, Status.MAX_ITER)

    @classmethod
    def worst(cls, ends: Iterable[Status]) -> Status:
        """Return the worst of several endings."""
        return max(ends, key=list(cls).index)


#: up to this many rows, one product with the coefficients of all pairs, zeros included, is faster than one for each class;
#: and the most coefficients that are written out for it, 8 MiB
FEW_ROWS, MOST_WRITTEN = 8, 1 << 20
#: classes from which on the outputs of all pairs come from one matrix of kernel values; more: products for each class
MANY_CLASSES = 64


@dataclass(frozen=True)
class Expansion:
    """f(x) = sum_j k(x, z_j) coef_j + bias: m points shared by q outputs.

    With a metric, the kernel gets factors * x and factors * z_j, and gamma times the width of the point. The points stay in
    the coordinates of the rows. With a projection P the kernel gets x P and z_j.
    """

    kernel: Kernel
    points: Matrix  # (m, d), or (m, rank) behind a projection
    coef: Array  # (m, q); `PairCoefficients` in a full model of three classes or more
    bias: Array  # (q,)
    metric: Metric | None = None
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(f"unknown precision {self.precision!r}; there are {', '.join(PRECISIONS)}")
        if self.metric is not None:
            self.metric.check(self.kernel.name, self.size, self.points.shape[1])

    @property
    def features(self) -> int:
        """The number of features of rows."""
        return self.points.shape[1] if self.projection is None else self.projection.shape[0]

    @property
    def factors(self) -> Array:
        """The factor of each column of points before the kernel, (d,): ones, unless factors were learned."""
        learned = None if self.metric is None else self.metric.factors
        return np.ones(self.points.shape[1]) if learned is None else learned

    @property
    def projection(self) -> Array | None:
        """The learned projection of rows to the coordinates of points, (features, rank); None without one."""
        return None if self.metric is None else self.metric.projection

    @property
    def widths(self) -> Array:
        """The factor of gamma for each point, (m,): ones, unless a metric was learned."""
        learned = None if self.metric is None else self.metric.widths
        return np.ones(self.size) if learned is None else learned

    @property
    def size(self) -> int:
        """The number of points."""
        return self.coef.shape[0]

    @property
    def weights(self) -> Array:
        """The coefficients, without the zeros of pairs of classes that a point does not belong to."""
        return self.coef.against if isinstance(self.coef, PairCoefficients) else self.coef

    @property
    def point_numbers(self) -> int:
        """How many numbers the points have; sparse points have their nonzeros."""
        return self.points.nnz if issparse(self.points) else self.size * self.points.shape[1]

    def meant_for(self, precision: str) -> Expansion:
        """Return the same expansion for tables of this precision."""
        return self if precision == self.precision else replace(self, precision=precision)

    def written_out(self) -> Expansion:
        """Return the same expansion with an array of coefficients."""
        return replace(self, coef=np.asarray(self.coef))

    def part(self, index: Array) -> Expansion:
        """Return the expansion on some of its points, with their own coefficients and widths, and the same bias."""
        metric = None if self.metric is None else self.metric.part(index)
        return replace(self, points=self.points[index], coef=self.coef[index], metric=metric)

    def __call__(self, X: Matrix, meter: Meter | None = None) -> Array:
        """Return the outputs for each row, (n, q)."""
        if not isinstance(self.kernel, Precomputed) and X.shape[1] != self.features:
            raise ValueError(f"the rows have {X.shape[1]} features, but the model's points have {self.features}")
        meter = meter or Meter()
        if not isinstance(self.coef, PairCoefficients):
            return kernel_product(self.kernel, X, self.points, self.coef, meter, self.metric) + self.bias
        if X.shape[0] <= FEW_ROWS and self.size * self.bias.size <= MOST_WRITTEN:
            return kernel_product(self.kernel, X, self.points, self.coef.written, meter, self.metric) + self.bias
        if self.coef.counts.size >= MANY_CLASSES:
            return pair_outputs(self.kernel, X, self.points, self.coef, self.bias, meter, self.metric)
        if self.metric is not None and self.metric.projection is not None:
            inside = replace(self, metric=self.metric.within)
            return inside(self.metric.projected(X), meter)
        return class_outputs(self.kernel, X, self.points, self.coef, self.bias, meter, self.metric)

    def on(self, rows: Rows) -> Array:
        """Return the outputs for rows in their home, (n, q)."""
        metric = self.metric
        if isinstance(self.coef, PairCoefficients):
            outputs = self.coef.outputs(
                lambda points, V: rows.product(self.points[points], V, metric and metric.part(points))
            )
            outputs += self.bias
            return outputs
        return rows.product(self.points, self.coef, metric) + self.bias


#: a model is clearly worse when its error is higher by more than this many standard errors of the difference; more: smaller
#: models win less often
CLEARLY = 2.0


@dataclass(frozen=True)
class Judgement:
    """A model's error on validation rows, and its standard error.

    `deviations` is a vector whose length is the standard error. Judgements on the same rows have comparable vectors: the
    standard error of the difference of two errors is the length of the difference of their vectors.
    """

    error: float
    standard_error: float
    deviations: Array | None = field(default=None, compare=False, repr=False)
    class_errors: Array | None = field(default=None, compare=False, repr=False)  # (k,), NaN for classes without rows

    @classmethod
    def of(cls, losses: Array, weights: Array, class_errors: Array | None = None) -> Judgement:
        """Return the weighted mean of the rows' losses, with its standard error."""
        total = weights.sum()
        error = float((weights * losses).sum() / total)
        deviations = weights * (losses - error) / total
        return cls(error, _length(deviations), deviations.astype(np.float32), class_errors)

    def worse_than(self, other: Judgement, standard_errors: float) -> bool:
        """Return whether the error is higher than another's by more than `standard_errors` of the difference."""
        return self.error - other.error > standard_errors * self.noise_against(other)

    def noise_against(self, other: Judgement) -> float:
        """Return the standard error of the difference of two errors.

        For judgements on other or unknown rows, the other's own standard error is used.
        """
        if self.deviations is not None and other.deviations is not None and self.deviations.size == other.deviations.size:
            return _length(self.deviations - other.deviations)
        return other.standard_error

    @classmethod
    def mean(cls, judgements: Sequence[Judgement], shares: Array) -> Judgement:
        """Return one judgement for several sets of validation rows; `shares` are their shares of all rows."""
        error = float(shares @ [judgement.error for judgement in judgements])
        parts = [judgement.deviations for judgement in judgements]
        deviations = None
        if all(part is not None for part in parts):
            deviations = np.concatenate([share * part for share, part in zip(shares, parts, strict=True)])
        length = _length(shares * [judgement.standard_error for judgement in judgements])
        return cls(error, length, deviations, _mean_of_classes([judgement.class_errors for judgement in judgements]))


def _length(vector: Array) -> float:
    """Return the Euclidean length, without BLAS: its threads would be woken for long vectors, and then wait actively."""
    return float(np.sqrt(np.square(vector, dtype=np.float64).sum()))


def _mean_of_classes(several: Sequence[Array | None]) -> Array | None:
    """Return the mean error of each class over the sets of validation rows in which it has rows."""
    if any(errors is None for errors in several):
        return None
    table = np.array(several)
    known = np.isfinite(table)
    return np.where(known.any(axis=0), np.where(known, table, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1), np.nan)


#: the judgement without validation rows
UNKNOWN = Judgement(float("nan"), 0.0)


@dataclass(frozen=True)
class Holdout:
    """The validation rows, which the reducer does not train on."""

    rows: Rows
    labels: Array  # as the goal takes them
    weights: Array
    goal: Goal
    scorer: Callable[[Expansion, Array], Judgement] | None = None  # of a model and its outputs; None: the goal's loss

    def losses(self, model: Expansion) -> Array:
        """Return the loss of each row."""
        return self.goal.losses(self.labels, model.on(self.rows))

    def judge(self, model: Expansion) -> Judgement:
        """Return the scorer's judgement, or the weighted mean loss: for a classifier the share of misclassified rows."""
        if self.scorer is not None:
            return self.scorer(model, model.on(self.rows))
        losses = self.losses(model)
        return Judgement.of(losses, self.weights, self._class_errors(losses))

    def judge_shortfall(self, model: Expansion) -> Judgement:
        """Return the mean squared distance of outputs from their margin targets, less noisy than a share of errors."""
        return self.judge_by(self.goal.margin_targets(self.goal.encode(self.labels)), model)

    def judge_by(self, loss: RowLoss, model: Expansion) -> Judgement:
        """Return the mean of a loss of the validation rows."""
        return Judgement.of(loss.measured(model.on(self.rows))[0], self.weights)

    def _class_errors(self, losses: Array) -> Array | None:
        """Return the share of misclassified rows of each class; None without classes."""
        if not self.goal.n_classes:
            return None
        rows = np.bincount(self.labels, minlength=self.goal.n_classes)
        wrong = np.bincount(self.labels, weights=losses, minlength=self.goal.n_classes)
        return np.where(rows > 0, wrong / np.maximum(rows, 1), np.nan)


@dataclass(frozen=True)
class Task:
    """Rows, their targets and everything else that a method needs besides its own settings."""

    rows: Rows
    targets: Array  # (n, q), `goal.encode` of the labels: -1, +1, or 0 where an output does not concern a row; or real
    weights: Array  # (n,), above 0
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    holdout: Holdout | None = None
    goal: Goal = field(default_factory=lambda: OneVsRest(2))  # its margin targets are those of any number of classes
    run: Run = BY_ITSELF  # whom the work on this task tells how far it is, when it must end, and where its states are saved
    room: Room | None = None  # what a limit in bytes allows small models
    full_outputs: Array | None = None  # the full model's outputs on the rows, if they are known

    @property
    def margin_targets(self) -> MarginTargets:
        """The intervals in which a model's outputs should lie, by the labels."""
        return self.goal.margin_targets(self.targets)

    @property
    def output_weights(self) -> Array:
        """The weight of each row in each output, (n, q): 0 where an output does not concern the row."""
        return np.multiply.outer(self.weights, np.ones(self.targets.shape[1])) * (self.goal.real or self.targets != 0)

    @property
    def groups(self) -> Array:
        """A group number for each row; rows of a group have the same targets."""
        return self.goal.groups(self.targets)

    def judge(self, model: Expansion) -> Judgement:
        """Return the validation error of a model; NaN without validation rows."""
        return self.holdout.judge(model) if self.holdout else UNKNOWN

    @property
    def n_validation(self) -> int:
        """The number of validation rows."""
        return self.holdout.labels.shape[0] if self.holdout else 0

    def sample(self, most: int) -> Array:
        """Return the numbers of all rows, or a sorted random subset of `most` of them."""
        return self.rows.sample(most, self.rng)

    def part(self, rows: Array) -> Task:
        """Return the task on some of its rows, with the same validation rows."""
        if rows.size == self.rows.n:
            return self
        known = None if self.full_outputs is None else self.full_outputs[rows]
        part, targets, weights = self.rows.subset(rows), self.targets[rows], self.weights[rows]
        return replace(self, rows=part, targets=targets, weights=weights, full_outputs=known)

    def support(self, model: Expansion) -> tuple[Rows, Array]:
        """Return the support vectors of a model as rows, and their places among the model's points.

        Points whose coefficients are all 0 are left out, unless all coefficients are 0. With a precomputed kernel, support
        vectors that are not among the task's rows are left out too.
        """
        nonzero = np.flatnonzero(np.abs(model.weights).sum(axis=1))
        used = nonzero if nonzero.size else np.arange(model.size)
        if isinstance(model.kernel, Precomputed):
            used = used[np.isin(np.ravel(model.points)[used], self.rows.ids)]
            if not used.size:
                raise ValueError(
                    "none of the full model's support vectors is among the given rows, and a precomputed kernel has no "
                    "values for other rows; give the rows that the model was trained on"
                )
        return self.rows.of(model.points[used], cache=True), used

    def expansion(self, index: Array, coef: Array, bias: Array) -> Expansion:
        """Return the expansion on the rows `index`."""
        return Expansion(self.rows.kernel, self.rows.take(index), coef, bias)


@dataclass(frozen=True)
class Fit:
    """A trained model, how training ended, and the coefficient of every training row, to start another run from."""

    model: Expansion
    status: Status
    n_iter: int
    dual: Any  # (n, q), signed, an array or `PairDual`; None where the points are not training rows
    gap: float  # distance from the optimum, in the trainer's own measure
    state: Any = None  # what partial_fit continues from
    support: Array | None = None  # the rows that are the model's points, if known
    draws: Array | None = None  # (q,) the rows that each output was learned from, repeated ones too, earlier runs included
    outputs: Array | None = None  # (n, q), the model's outputs on the training rows, where they take long to compute again
