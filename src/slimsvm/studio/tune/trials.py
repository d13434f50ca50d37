"""One trial: a small model with some settings, fitted to a subsample of each fold and judged on its validation rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from ...c_bytes import NO_SCALER, Shape
from ...estimators.shrink import scaler_tables
from ...kernels import Array, Matrix
from ...limits import Deadline
from ...model import Expansion, Judgement, Status, Task
from ...reducers import Slim
from ...selection.path import Made, Step
from .space import Settings

#: up to SMALL rows, each trial has an error of FOLDS folds; beyond, of the first fold. More: less noise and longer trials
SMALL, FOLDS = 8000, 3
#: the most validation rows of a fold; more: less noise in the errors of trials, and more time
MOST_VALIDATION = 10_000


@dataclass(frozen=True)
class Fold:
    """Training rows and validation rows; the first training rows are the subsample of a trial."""

    train: Array
    validation: Array


@dataclass(frozen=True)
class FoldedRows:
    """Rows, labels and weights, and their folds."""

    X: Matrix
    y: Array
    weights: Array
    real: bool  # whether y are values, not classes
    folds: tuple[Fold, ...]

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.y.size

    @property
    def n_train(self) -> int:
        """The training rows that every fold has."""
        return min(fold.train.size for fold in self.folds)

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 for values."""
        return 0 if self.real else np.unique(self.y).size

    def losses(self, predicted: Array, rows: Array) -> Array:
        """Return the loss of each row: 1 for a wrong class; for values, the squared error as a share of the variance."""
        if self.real:
            return np.square(predicted - self.y[rows]) / (float(np.var(self.y)) or 1.0)
        return (predicted != self.y[rows]).astype(np.float64)


def make_rows(X: Matrix, y: Array, weights: Array, seed: int, *, real: bool) -> FoldedRows:
    """Return the rows with folds that are stratified by class, in an order that starts with rows of every class."""
    rng = np.random.default_rng(seed)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(np.zeros((y.size, 1)), _strata(y, real))
    folds = [
        Fold(_every_class_first(rng.permutation(train), y, real), np.sort(rng.permutation(validation)[:MOST_VALIDATION]))
        for train, validation in splits
    ]
    if y.size > SMALL:
        folds = folds[:1]
    return FoldedRows(X, y, weights, real, tuple(folds))


def _strata(y: Array, real: bool) -> Array:
    """Return the classes by which folds are made; a class with fewer rows than folds joins the largest one."""
    if real:
        return np.zeros(y.size, dtype=np.intp)
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.where(counts[codes] < FOLDS, counts.argmax(), codes)


def _every_class_first(order: Array, y: Array, real: bool) -> Array:
    """Return the rows in the same order after a row of each class, so that every subsample has all classes."""
    if real:
        return order
    first = np.unique(y[order], return_index=True)[1]
    return np.concatenate([order[np.sort(first)], np.delete(order, first)])


#: the validation_fraction of the estimator in a trial, which has one model and nothing to choose; more: fewer training rows
VALIDATION = 0.02


@dataclass(frozen=True)
class TrialEffort:
    """The work of a trial: training rows, L-BFGS steps, folds, and support vectors."""

    rows: int
    steps: int
    folds: int
    size: int

    @property
    def work(self) -> float:
        """The cost in arbitrary units, to estimate times."""
        return float(self.folds * self.rows * (self.steps + SETUP_STEPS))


#: L-BFGS steps that take as long as the initial points of a trial and their coefficients
SETUP_STEPS = 10


@dataclass(frozen=True)
class Trial:
    """The result of a trial.

    `points` are the models' points, one array for each fold, from which others may start. `fitted` is the estimator of the
    last fold, and None for a trial of an earlier run.
    """

    settings: Settings
    effort: TrialEffort
    error: float
    standard_error: float
    size: int
    nbytes: int
    seconds: float
    status: Status
    stage: str
    points: tuple[Array, ...] = ()
    fitted: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class OneSize(Slim):
    """Slim for a single size, without smaller models and without a refinement on all rows.

    With `start`, points of a model with similar settings, the search continues from there.
    """

    start: Any = None
    finishes: ClassVar[bool] = False
    thorough: ClassVar[bool] = False

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Any:
        """Yield one model."""
        if self.start is None:
            yield from super().models(task, sizes[-1:], model)
        else:
            yield self._from_start(task), "continued"

    def _from_start(self, task: Task) -> Expansion:
        outputs = task.targets.shape[1]
        coef, bias = np.zeros((self.start.shape[0], outputs)), np.zeros(outputs)
        begin = Expansion(task.rows.kernel, self.start, coef, bias)
        return self.finished(task, Step(begin, 0.0, Made(target="label")), None)


@dataclass(frozen=True)
class Trials:
    """Runs trials on the same rows."""

    template: Any
    rows: FoldedRows
    scalers: dict[str, Any]  # fitted to all rows, by name; None for no scaling
    seed: int
    shape: Shape  # what exports take bytes for, without scaler and metric
    nbytes: int | None = None  # the most bytes

    def run(
        self, settings: Settings, effort: TrialEffort, stage: str, seconds: float | None, start: tuple[Array, ...] = ()
    ) -> Trial:
        """Return the trial of some settings within this many seconds; `start` has points for each fold, or nothing."""
        began, losses, weights, points, ends = perf_counter(), [], [], [], []
        deadline = Deadline(seconds)
        for number, fold in enumerate(self.rows.folds[: effort.folds]):
            first = start[number] if number < len(start) else None
            estimator = self._fitted(settings, effort, fold.train[: effort.rows], first, deadline)
            predicted = estimator.predict(self._scaled(settings, fold.validation))
            losses.append(self.rows.losses(predicted, fold.validation))
            weights.append(self.rows.weights[fold.validation])
            points.append(estimator.model_.points)
            ends.append(estimator.path_.status)
        judgement, model = Judgement.of(np.concatenate(losses), np.concatenate(weights)), estimator.model_
        return Trial(
            settings,
            effort,
            judgement.error,
            judgement.standard_error,
            model.size,
            self.bytes_of(model, settings),
            perf_counter() - began,
            Status.worst(ends),
            stage,
            tuple(points),
            estimator,
        )

    def _fitted(self, settings: Settings, effort: TrialEffort, rows: Array, start: Array | None, deadline: Deadline) -> Any:
        """Return the estimator with these settings, fitted to some rows."""
        rows = np.sort(rows)
        reducer = OneSize(
            steps=effort.steps,
            time_limit=deadline.left,
            start=start if settings.metric == "fixed" else None,  # points without their metric are no start
            metric=settings.metric,
        )
        estimator = settings.estimator(self.template, budget_for(effort.size, self.nbytes), reducer, self.seed)
        estimator.set_params(validation_fraction=VALIDATION)
        if not self.rows.real:
            estimator.set_params(calibration=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a trial's status says so
            return estimator.fit(self._scaled(settings, rows), self.rows.y[rows], self.rows.weights[rows])

    def bytes_of(self, model: Expansion, settings: Settings) -> int:
        """Return the bytes of the exported C of a model behind its scaler."""
        scaler = self.scalers[settings.scaling]
        tables = NO_SCALER if scaler is None else scaler_tables([scaler])
        return replace(self.shape, scaler=tables).of_model(model).bytes(model.size, model.precision)

    def _scaled(self, settings: Settings, rows: Array) -> Matrix:
        X, scaler = self.rows.X[rows], self.scalers[settings.scaling]
        return X if scaler is None else scaler.transform(X)


def budget_for(size: int, nbytes: int | None) -> Any:
    """Return the budget of an estimator: with a limit in bytes, which decides on the precision of tables, too."""
    return size if nbytes is None else (size, f"{nbytes} B")
