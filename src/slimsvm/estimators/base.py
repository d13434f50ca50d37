"""The base of all estimators: the one recipe of `fit`, and outputs of rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..budget import Budget
from ..goals import Goal, OneVsOne
from ..kernels import Array, Kernel, Matrix, make_kernel, resolve_gamma
from ..model import Expansion, Fit, Status
from ..parameters import estimator, parameter
from ..reducers import REDUCERS
from ..rows.array import OnDevice
from ..rows.homes import faster_device, has_torch_device, resolve_device
from ..rows.memory import is_mapped
from ..rows.threads import blocks
from ..run import History, Run
from ..selection.folds import CUT_SHORT, Splits
from ..selection.judge import Baseline
from ..selection.limits import ALONE, Around
from ..selection.problem import Home, Problem
from ..selection.search import Selection
from ..text import warn_user
from ..trainers import TRAINERS
from ..trainers.frames.per_output import TrainingInterrupted
from .calibrating import calibration_models, keep_calibration
from .callbacks import CallbackSupportMixin, watched
from .fitted import FittedModel, outputs_on_device, rows_equal_to
from .methods import (
    NestedSettings,
    check_methods,
    check_soft_targets,
    finite_cost,
    is_reduced,
    keeps_budget,
    make_reducer,
    make_trainer,
)
from .resume import (
    CheckpointFile,
    Interrupted,
    check_checkpoint,
    check_warm_start,
    identity_of,
    keep_start,
    warm_start,
    was_interrupted,
)
from .streams import keep_stream
from .validation import (
    check_costs,
    check_settings,
    class_probabilities,
    keep_range,
    prediction_rows,
    seed_of,
    training_rows,
    weighted_rows,
)

#: outputs in memory at a time; 1,000 classes have half a million pairs for each row
MOST_OUTPUTS = 1 << 24
#: rows of a memory-mapped file that are predicted at a time; more: more memory
MAPPED_ROWS = 1 << 17

Report = Callable[[str, float], None]


@dataclass(frozen=True)
class Labelled:
    """An estimator's form of y: the goal, labels as the goal takes them, and the rows' weights in the loss."""

    goal: Goal
    labels: Array
    weights: Array


@dataclass(frozen=True)
class Given:
    """The data of a call of fit, as given."""

    X: Any
    y: Any
    sample_weight: Any = None
    probabilities: Any = None


@estimator
class KernelMachine(FittedModel, CallbackSupportMixin, NestedSettings):
    """Base of the estimators; each adds its own parameters, its labels and its predictions."""

    budget: Any = parameter("budget")
    _: KW_ONLY
    precision: str = parameter("precision")
    tolerance: float | None = parameter("tolerance")
    scoring: str | Callable[..., float] | None = parameter("scoring")
    kernel: str | Callable[..., Array] = parameter("kernel")
    gamma: str | float = parameter("gamma")
    degree: int = parameter("degree")
    coef0: float = parameter("coef0")
    trainer: Any = parameter("trainer")
    reducer: Any = parameter("reducer")
    tol: float = parameter("tol")
    max_iter: int = parameter("max_iter")
    time_limit: float | None = parameter("time_limit")
    warm_start: bool = parameter("warm_start")
    checkpoint: Any = parameter("checkpoint")
    cache_mb: float = parameter("cache_mb")
    validation_fraction: float = parameter("validation_fraction")
    device: str = parameter("device")
    verbose: bool = parameter("verbose")
    random_state: Any = parameter("random_state")

    #: what y is: "classes", "values" or "none"
    _labels_are = "classes"
    #: whether y may have several columns
    _several_targets: ClassVar[bool] = False
    #: parameters of scikit-learn's estimators that are others here, and what to give instead
    _other_parameters = MappingProxyType(
        {
            "cache_size": "give cache_mb, in MiB",
            "probability": "for probabilities of classes give calibration='sigmoid', 'isotonic' or 'temperature'",
            "shrinking": "leave it out: it changes the time of training only",
        }
    )
    #: the names that `calibration` may have; empty: those of classes
    _calibrations: ClassVar[tuple[str, ...]] = ()
    #: the home of rows in place of `device`
    _home: ClassVar[str | None] = None

    def __new__(cls, *_: Any, **settings: Any) -> Any:
        """Return a new estimator; parameters of scikit-learn's that are others here are named with what to give instead."""
        for name in settings.keys() & cls._other_parameters.keys():
            raise TypeError(f"{cls.__name__} has no parameter {name!r}; {cls._other_parameters[name]}")
        return super().__new__(cls)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse rows are allowed; the kernel decides on pairwise and negative input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags

    def _data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Array, Array, Array]:
        """Return all rows, those of positive weight, and their labels, weights and numbers; set width and names."""
        given, y = training_rows(self, X, y, least=2)
        self.shape_fit_ = given.shape
        keep_range(self, given)
        return given, *weighted_rows(given, y, sample_weight)

    def _width(self, X: Any, weights: Array | None) -> float:
        return resolve_gamma(self.gamma, X, weights)

    def _check_rows(self, kernel: Kernel, X: Any) -> None:
        kernel.check_rows(X)

    def _labelled(self, y: Array, weights: Array, *, whole: bool) -> Labelled:
        """Return the goal and the labels for y; `whole` if the full model is not shrunk."""
        raise NotImplementedError

    def _outputs(self, X: Matrix) -> Array:
        return self._read(X, lambda outputs: outputs)

    def _read(self, X: Matrix, read: Callable[[Array], Array]) -> Array:
        """Return read(outputs) for all rows; with many outputs, for some rows at a time."""
        X = prediction_rows(self, X)
        count = max(MOST_OUTPUTS // self.model_.bias.size, 1)
        if X.shape[0] > MAPPED_ROWS and is_mapped(X):
            count = min(count, MAPPED_ROWS)
        if X.shape[0] <= count:
            return read(self._outputs_of(X))
        return np.concatenate([read(self._outputs_of(X[block])) for block in blocks(X.shape[0], count)])

    @property
    def _used_device(self) -> str:
        """The device of predictions: the one of fit, if "auto" chose it and it is here."""
        found = getattr(self, "device_", "")
        if self.device != "auto" or not (found == "cpu" or has_torch_device(found)):
            return resolve_device(self.device)
        return found

    def _outputs_of(self, X: Matrix) -> Array:
        if self.device == "cpu" or self._used_device == "cpu":  # the first alone is quick, for a single row
            return self.model_(X)
        return outputs_on_device(self, X)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the points on a device: they belong to this object and to this process."""
        return {name: value for name, value in super().__getstate__().items() if name != "_placed"}

    def _with_model(self, model: Expansion, goal: Goal) -> Any:
        """Return a copy of this estimator with another model; a calibration belongs to its own model, and is left out."""
        other: Any = copy.copy(self)
        other.model_, other.goal_, other.path_ = model, goal, None
        if hasattr(other, "calibration"):
            other.calibration = other.calibration_ = None
        return other

    def at(self, size: int) -> Self:
        """Return a fitted estimator with the model of another size on `path_`.

        It can be saved, exported and used like any other. The models of the path were fitted to the training rows only,
        without the validation rows. A calibration belongs to the model that was kept, so others have no probabilities.

        Parameters
        ----------
        size : int
            The number of support vectors, one of `path_.sizes`.

        Returns
        -------
        estimator
            A copy of this estimator with budget=size.
        """
        check_is_fitted(self)
        if size == self.model_.size:
            return copy.copy(self)
        if self.path_ is None:
            raise ValueError(f"there is no path: the only model has {self.model_.size} support vectors, not {size}")
        step = self.path_.at(size)
        other = self._with_model(step.model, self.goal_)
        other.path_, other._support = self.path_.keep(step), None
        return other.set_params(budget=int(size), tolerance=None)


def fit_reporting(
    estimator: Any,
    X: Matrix,
    y: Any = None,
    sample_weight: Any = None,
    *,
    probabilities: Any = None,
    report: Report | None = None,
    when_trained: Callable[[Any], None] | None = None,
    finish: Callable[[], None] = lambda: None,
    around: Around = ALONE,
) -> Any:
    """Fit an estimator, and call report(phase, share done) meanwhile; by default, report to its callbacks and by `verbose`.

    `when_trained` is called with an estimator that holds the full model, before it is shrunk. `finish` is called before a
    checkpoint is deleted, and may save the model. `probabilities` of classes are what a small model is fitted to. `around`
    are the steps of a Pipeline before the estimator, which count in its budget.
    """
    given = Given(X, y, sample_weight, probabilities)
    with _attempt(estimator, given, report, finish, around) as (fitted, selection, trainer):
        limited = selection.problem.run.limited(fitted.time_limit)
        selection = selection.on(limited.share(1 / (1 + calibration_models(fitted, selection))))
        error = np.inf if trainer is None else allowed_error(trainer, fitted, selection)
        if trainer is None:
            fit = _fit_to_labels(fitted, selection)
        else:
            training, start, baseline = _begin_training(fitted, selection, trainer, error)
            try:
                # holds the rows only while it trains
                fit = trainer.fit(training.full_problem.training(trainer, error), *start)
            except TrainingInterrupted as stop:
                fit = _found(fitted, trainer, stop)
            keep_start(fitted, trainer, selection.full_problem, fit)
            if when_trained is not None:
                when_trained(fitted._with_model(fit.model, selection.full_problem.goal))
            if keeps_budget(trainer, fitted.budget) and fit.model.size <= trainer.budget:
                selection = replace(selection, limits=selection.limits.without_count())
            fitted.model_, fitted.path_ = selection.select(fit.model, fitted.tolerance, baseline, fit.outputs)
            if not fit.status.as_planned and fit.status is not Status.INTERRUPTED:
                gap = f" (gap {fit.gap:.2g})" if np.isfinite(fit.gap) else ""  # some methods have none, or none so early
                warn_user(f"{type(trainer).__name__} {fit.status.value}{gap}", ConvergenceWarning)
        fitted.goal_ = selection.goal_of(fitted.model_, fit.model)
        fitted._support = _support(fitted, fit, selection)
        keep_calibration(fitted, selection.on(limited).aimed_at(fitted.goal_), trainer, error)
        fitted.n_kernel_evals_, fitted.n_iter_ = selection.problem.home.meter.evaluations, fit.n_iter
        fitted.status_ = Status.INTERRUPTED if was_interrupted(fitted.path_) else fit.status
        keep_stream(fitted, trainer, selection.problem.kernel, fit.state)
    return estimator


@contextmanager
def _attempt(
    estimator: Any, given: Given, report: Report | None, finish: Callable[[], None], around: Around
) -> Iterator[tuple[Any, Selection, Any]]:
    """Yield a copy of the estimator to fit, its selection and its trainer, after checks of settings and data.

    The estimator gets the copy's attributes at the end of the `with` block. It does not change if the block fails.
    """
    history = History()
    with watched(estimator, given.X, given.y, given.sample_weight, history, report) as heard:
        check_settings(estimator)
        fitted = copy.copy(estimator)
        reducer, trainer = make_reducer(estimator), make_trainer(estimator)
        selection = _selection(fitted, given, trainer, reducer, Run(heard, history.record), around)
        file = _checkpoint(fitted, selection.problem)
        if file is None:
            yield fitted, selection, within_spread(trainer, selection.problem.goal)
        else:
            with file.kept():
                problem = selection.problem
                problem = replace(problem, seed=file.seed, run=problem.run.saved_by(file.checkpoint))
                yield fitted, replace(selection, problem=problem), within_spread(trainer, problem.goal)
        fitted.history_ = history.entries
        estimator.__dict__ = fitted.__dict__
        if estimator.status_ is Status.INTERRUPTED:
            raise Interrupted(estimator)
        finish()
        if file is not None and _complete(estimator):
            file.remove()


def _checkpoint(estimator: Any, problem: Problem) -> CheckpointFile | None:
    """Return the checkpoint of a fit, if it has one."""
    if estimator.checkpoint is None:
        return None
    fitted_to = problem.labels if problem.probabilities is None else problem.probabilities
    identity = identity_of(estimator, problem.X, fitted_to, problem.weights)
    return CheckpointFile.opened(estimator.checkpoint, identity, problem.seed)


def _complete(estimator: Any) -> bool:
    path = estimator.path_
    return estimator.status_ not in CUT_SHORT and (path is None or path.status not in CUT_SHORT)


def _fit_to_labels(fitted: Any, selection: Selection) -> Fit:
    """Set model and path of an estimator without a trainer, and return how that ended."""
    fitted.model_, fitted.path_ = selection.from_labels()
    return Fit(fitted.model_, fitted.path_.status, n_iter=0, dual=None, gap=0.0)


def allowed_error(trainer: Any, estimator: Any, selection: Selection) -> float:
    """Return the allowed error of kernel values for a solution to the trainer's `tol`."""
    C, tol = getattr(trainer, "C", finite_cost(estimator.C)), getattr(trainer, "tol", estimator.tol)
    return tol / (C * float(selection.problem.weights.max()))


def _begin_training(
    estimator: Any, selection: Selection, trainer: Any, error: float
) -> tuple[Selection, tuple[Any, ...], Baseline | None]:
    """Return the selection for training, more arguments of `fit`, and under a tolerance the full models of the folds."""
    if shrinks(estimator, trainer):
        selection = selection.on(selection.problem.run.share(0.5))
    baseline, start = None, warm_start(estimator, trainer, selection.full_problem)
    if estimator.tolerance is not None:
        baseline, coefficients = selection.baseline(trainer, error)
        start = start or (() if coefficients is None else (coefficients,))
    return selection, start, baseline


def _found(estimator: Any, trainer: Any, stop: TrainingInterrupted) -> Fit:
    """Return the model that Ctrl-C left; raise the interrupt again if a full model was to be shrunk or calibrated."""
    if shrinks(estimator, trainer) or getattr(estimator, "calibration", None) is not None:
        raise stop
    return stop.found


def within_spread(trainer: Any, goal: Any) -> Any:
    """Return the trainer, if any, with tol multiplied by the standard deviation of the targets, if that is below 1.

    tol is in units of the targets. If it were large compared with their spread, any solution would meet it.
    """
    if not goal.real or not goal.labelled or not hasattr(trainer, "tol"):
        return trainer
    return replace(trainer, tol=trainer.tol * min(1.0, float(np.sqrt(np.min(goal.variance)))))


def shrinks(estimator: Any, trainer: Any) -> bool:
    """Return whether a full model is shrunk after training."""
    return is_reduced(trainer, estimator.budget) or estimator.tolerance is not None


def _support(estimator: Any, fit: Fit, selection: Selection) -> Array | None:
    """Return the row numbers of the support vectors in the training set; None if they are not rows."""
    if estimator.model_.points is fit.model.points and fit.support is not None:
        return selection.problem.ids[fit.support]
    if (estimator.path_ is not None and not selection.reducer.selects) or estimator._home is not None:
        return None
    rows = rows_equal_to(estimator.model_.points, selection.problem.X)
    return None if rows is None else selection.problem.ids[rows]


def _device_for(estimator: Any, X: Any, labelled: Labelled, *, pairs: bool) -> str:
    """Return the device of a fit; "auto" decides by its largest problem, which may be a pair of classes."""
    if isinstance(X, OnDevice):  # where its rows are already
        return resolve_device(estimator.device)
    n, d = X.shape
    if pairs and isinstance(labelled.goal, OneVsOne):
        n = int(np.sort(np.bincount(labelled.labels))[-2:].sum())
    return faster_device(estimator.device, n, X.nnz // max(X.shape[0], 1) if issparse(X) else d)


def _selection(estimator: Any, given: Given, trainer: Any, reducer: Any, run: Run, around: Around) -> Selection:
    """Return the checked rows, labels and settings; set the estimator's classes, width and feature names."""
    everything, X, y, weights, kept = estimator._data(given.X, given.y, given.sample_weight)
    gamma = estimator._width(X, None if given.sample_weight is None else weights)
    kernel = make_kernel(estimator.kernel, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0)
    estimator._check_rows(kernel, everything)
    # a full model has one output per pair of classes, like SVC; models whose outputs share points have one per class
    is_full = (
        not Budget.of(estimator.budget).given and estimator.tolerance is None and trainer is not None and not trainer.shared
    )
    labelled, full_goal = estimator._labelled(y, weights, whole=is_full), None
    if estimator.tolerance is not None and not (trainer is None or trainer.shared or reducer.requires_model):
        full_goal = estimator._labelled(y, weights, whole=True).goal  # the model that a small one is compared with
    check_methods(estimator, trainer, reducer, kernel, labelled.goal, labelled.weights)
    check_warm_start(estimator, trainer)
    methods: list[tuple[str, Any, dict[str, Any]]] = [("trainer", trainer, TRAINERS)] if trainer is not None else []
    methods += [("reducer", reducer, REDUCERS)] if trainer is None or shrinks(estimator, trainer) else []
    check_checkpoint(estimator, methods)
    given_cost = finite_cost(estimator.C)
    for C in {given_cost, *(getattr(method, "C", given_cost) for method in (trainer, reducer))}:
        check_costs(C, labelled.weights)
    estimator.device_ = _device_for(estimator, X, labelled, pairs=is_full)
    home = Home(estimator._home or estimator.device_, estimator.cache_mb)
    problem = Problem(
        X,
        labelled.labels,
        labelled.weights,
        kernel,
        labelled.goal,
        seed_of(estimator.random_state),
        kept,
        Splits(estimator.validation_fraction),
        home=home,
        run=run,
    )
    if given.probabilities is not None:
        check_soft_targets(trainer, reducer, labelled.goal)
        shares = class_probabilities(given.probabilities, everything.shape[0], labelled.goal.n_classes)
        problem = replace(problem, probabilities=shares[kept])
    return Selection.of(estimator, problem, reducer, around, full_goal=full_goal)
