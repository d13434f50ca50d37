"""The small model of one kernel machine: the search for it, the estimator that holds it, and the Pipeline around it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR
from sklearn.utils.validation import has_fit_parameter

from ..budget import Budget
from ..c_bytes import ScalerTables
from ..goals import CLASSIFIERS, Goal
from ..goals.values import Following, variance_of
from ..importers.models import Imported
from ..kernels import Array, Custom, Matrix, Precomputed, dense, stacked
from ..model import Expansion, Status
from ..reducers import REDUCERS, Slim
from ..run import Run
from ..selection.folds import Splits
from ..selection.judge import Baseline
from ..selection.limits import ALONE, Around
from ..selection.problem import Home, Problem
from ..selection.search import Selection
from ..tables.code import c_bytes_of
from ..tables.folding import ColumnScaling, are_scalers, flattened, preparation_of
from ..text import warn_user
from .base import KernelMachine, allowed_error, shrinks, within_spread
from .calibrating import calibration_models, keep_calibration
from .fitted import equal_rows
from .machines import imported, unfitted
from .methods import check_goal, check_kernel, finite_cost, make_reducer, make_trainer, names_where
from .validation import (
    check_classes,
    check_costs,
    check_settings,
    class_weights,
    keep_range,
    prediction_rows,
    seed_of,
    training_rows,
    weighted_rows,
)

#: rows that hold at least this share of the support vectors are those of the model's training. Less: rows that equal a few
#: of them by chance are taken for them
SEEN = 0.25


def was_trained_on(model: Expansion, X: Matrix) -> bool:
    """Return whether rows are those of a model's training, or a large part of them."""
    if isinstance(model.kernel, Precomputed):
        return False  # its rows have kernel values, and its points are numbers of rows
    return float(np.mean(equal_rows(model.points, X) >= 0)) >= SEEN


def baseline_of(model: Any, source: Imported, selection: Selection, weights: Array | None) -> Baseline:
    """Return the validation error of a full model on rows that it, or models like it, have not seen."""
    problem, judge = selection.full_problem, selection.judge
    if problem.splits.held_out:
        return Baseline(judge.judged(problem, source.model), "the validation rows given")
    if not was_trained_on(source.model, problem.X):
        return Baseline(judge.judged(problem, source.model), "rows that it was not trained on")
    like = _like(model, source)
    trainer = make_trainer(like) if isinstance(like, KernelMachine) else None
    if trainer is not None and not shrinks(like, trainer):  # as `fit` with a tolerance does
        trainer = within_spread(trainer, problem.goal)
        judging = selection.on(problem.run.share(0.5))  # the rest of the time is for the small models
        return cast(Baseline, judging.baseline(trainer, allowed_error(trainer, like, selection))[0])
    baseline = judge.refitted(problem, _refitted(like, source, problem, weights))
    return baseline if selection.follow else replace(baseline, models=())


def _like(model: Any, source: Imported) -> Any:
    """Return an unfitted estimator that trains models like this one; raise ValueError if there is none."""
    if isinstance(model, SVC | SVR):
        return unfitted(source)  # the same optimum, sooner
    if (isinstance(model, KernelMachine) and not hasattr(model, "status_")) or not hasattr(model, "get_params"):
        raise ValueError(
            "tolerance cannot be judged: the rows are those that trained the model, on which its error is near 0, and the "
            "model does not say how to train it again. Give rows that it has not seen as X_val and y_val (--validation "
            "FILE), or a budget instead of a tolerance"
        )
    like = clone(model)
    if isinstance(like, KernelMachine):
        like.set_params(checkpoint=None, warm_start=False)
    if isinstance(like, GaussianProcessRegressor):
        return like.set_params(kernel=model.kernel_, optimizer=None)
    width = getattr(source.model.kernel, "gamma", None)
    return like if width is None or "gamma" not in like.get_params() else like.set_params(gamma=width)


def _refitted(like: Any, source: Imported, problem: Problem, weights: Array | None) -> list[Expansion]:
    """Return the models that are fitted to the training rows of each fold."""
    folds, models, judging = problem.fold_rows(), list[Expansion](), problem.run.during("judge")
    y = source.classes[problem.labels] if source.goal.n_classes else problem.labels
    weighted = weights is not None and has_fit_parameter(like, "sample_weight")
    given = {"sample_weight": np.asarray(weights)[problem.ids]} if weighted else {}
    for number, (train, _) in enumerate(folds):
        judging.report(number / len(folds))
        if isinstance(like, KernelMachine):  # half of the time is for the small models
            like.set_params(time_limit=problem.run.deadline.share(0.5 / (len(folds) - number)).left)
        of_fold = {name: values[train] for name, values in given.items()}
        models.append(imported(like.fit(problem.X[train], y[train], **of_fold)).model.written_out())
    judging.report(1.0)
    return models


#: synthetic rows at least, and for each support vector; more: a small model closer to the full one, and more time
LEAST_ROWS = 4096
ROWS_PER_POINT = 4
#: nearest support vectors with which each one may be paired; more: synthetic rows spread farther from them
NEIGHBOURS = 8
#: the share of pairs that are neighbours, which lie where rows are dense; less: more rows in the space between
NEIGHBOURING = 0.5


def synthetic_rows(model: Expansion, rng: np.random.Generator) -> Matrix:
    """Return the support vectors, and points at random places between pairs of them."""
    if isinstance(model.kernel, Precomputed | Custom):
        raise ValueError(
            f"a model with a {model.kernel.name} kernel cannot be shrunk without rows: points between its support "
            "vectors may not be valid for the kernel; give X"
        )
    if model.size < 2:
        return model.points
    count = max(LEAST_ROWS, ROWS_PER_POINT * model.size) - model.size
    first = rng.integers(model.size, size=count)
    second = rng.integers(model.size, size=count)
    close = rng.random(count) < NEIGHBOURING
    second[close] = _neighbours(model.points, first[close], rng)
    share = rng.random((count, 1))
    between = _scaled(model.points[first], share) + _scaled(model.points[second], 1 - share)
    return stacked(model.points, between)


def _neighbours(points: Matrix, chosen: Array, rng: np.random.Generator) -> Array:
    count = min(NEIGHBOURS, points.shape[0] - 1)
    near = NearestNeighbors(n_neighbors=count).fit(points).kneighbors(return_distance=False)
    return near[chosen, rng.integers(count, size=chosen.size)]


def _scaled(rows: Matrix, factors: Array) -> Matrix:
    return rows.multiply(factors).tocsr() if hasattr(rows, "multiply") else dense(rows) * factors


#: how many standard deviations from 0 means may be to be integers of 16 bits in any model (`ship.quantise`)
NEAR = 32.0


@dataclass(frozen=True)
class Surroundings:
    """The run, and the steps of a Pipeline before the model."""

    run: Run
    steps: Around = ALONE

    def within(self, pipeline: Pipeline, X: Any) -> Surroundings:
        """Return the surroundings of the last step of a Pipeline."""
        return replace(self, steps=around_of(pipeline, X, self.steps))


@dataclass(frozen=True)
class Shrinking:
    """The settings of one call of compress."""

    settings: dict[str, Any]  # parameters of the estimator that is returned
    multiclass: str | None
    sample_weight: Any
    around: Surroundings  # progress, and the Pipeline that the model is in
    held_out: tuple[Any, Any] | None = None  # validation rows and their labels; None: a part of the rows

    def _keeps_to_libsvm(self, model: Any) -> bool:
        """Return whether the small model should be one that a LIBSVM file holds, as the large one came from such a file."""
        return getattr(model, "from_libsvm_", False) and self.settings["reducer"] == "slim"

    def shrunk(self, model: Any, X: Matrix | None, y: Any) -> Any:
        """Return the small model of a kernel machine, as an estimator of slimsvm."""
        source = imported(model)
        if "calibration" in self.settings and not source.goal.n_classes:
            raise ValueError(f"calibration makes probabilities of classes, but a {type(model).__name__} has no classes")
        libsvm_settings = {"reducer": Slim(metric="fixed")} if self._keeps_to_libsvm(model) else {}
        small = unfitted(source, **(self.settings | libsvm_settings))
        check_settings(small)
        for words in source.lost:
            warn_user(words)
        small.n_features_in_ = source.n_features
        if hasattr(model, "feature_names_in_"):
            small.feature_names_in_ = model.feature_names_in_
        if source.goal.n_classes:
            small.classes_ = source.classes
        selection = self._selection(small, source, X, y)
        limited = selection.problem.run.limited(small.time_limit)
        selection = selection.on(limited.share(1 / (1 + calibration_models(small, selection))))
        baseline = None
        if small.tolerance is not None and (y is not None or source.goal.n_classes):
            baseline = baseline_of(model, source, selection, self.sample_weight)
        small.model_, small.path_ = selection.select(source.model, small.tolerance, baseline)
        small.goal_ = selection.goal_of(small.model_, source.model) if source.goal.n_classes else source.goal
        if source.goal.n_classes:
            keep_calibration(small, selection.on(limited).aimed_at(small.goal_), None, np.inf, full=source.model)
        small.n_kernel_evals_, small.n_iter_ = selection.problem.home.meter.evaluations, 0
        small.status_ = _status_of(model) if small.path_ is None else small.path_.status
        return small

    def _selection(self, small: Any, source: Imported, X: Matrix | None, y: Any) -> Selection:
        """Return the checked rows, or points in place of rows, with labels, weights and goal."""
        seed, reducer = seed_of(small.random_state), make_reducer(small)
        check_goal(reducer, REDUCERS, source.goal)
        if X is None:
            X = synthetic_rows(source.model, np.random.default_rng(seed))
        elif y is None:
            X = prediction_rows(small, X)
            keep_range(small, X)
        else:
            X, y = training_rows(small, X, y, reset=False, least=2)
            keep_range(small, X)
        source.model.kernel.check_rows(X)
        if small.tolerance is not None or Budget.of(small.budget).given:
            check_kernel(reducer, source.model.kernel)
        labels = _labels(source, X, y)
        X, labels, weights, kept = weighted_rows(X, labels, self.sample_weight)
        X, labels, weights, kept, held_out = self._with_held_out(small, source, X, labels, weights, kept)
        goal = _coding(source.goal, reducer, self.multiclass)
        if goal.n_classes:
            check_classes(np.unique(labels))
            small.class_weight_ = class_weights(small.class_weight, source.classes, source.classes[labels])
            weights = weights * small.class_weight_[labels]
        elif goal.labelled:
            goal = _regression(goal, labels, weights, followed=y is None)
        check_costs(finite_cost(small.C), weights)
        problem = Problem(
            X,
            labels,
            weights,
            source.model.kernel,
            goal,
            seed,
            kept,
            Splits(small.validation_fraction, held_out),
            Home(small.device, small.cache_mb),
            run=self.around.run,
        )
        around = self.around.steps
        return Selection.of(small, problem, reducer, around, full_goal=source.goal, squared=source.squared)

    def _with_held_out(
        self, small: Any, source: Imported, X: Matrix, labels: Array, weights: Array, kept: Array
    ) -> tuple[Matrix, Array, Array, Array, int]:
        """Return rows, labels, weights and numbers with the validation rows given behind them, and how many these are."""
        if self.held_out is None:
            return X, labels, weights, kept, 0
        more, y = training_rows(small, *self.held_out, reset=False, least=1)
        source.model.kernel.check_rows(more)
        both = sparse_vstack([X, more], format="csr") if issparse(X) or issparse(more) else np.vstack([X, more])
        labels = np.concatenate([labels, _labels(source, more, y)])
        count = y.shape[0]
        weights = np.append(weights, np.full(count, weights.mean()))
        return both, labels, weights, np.append(kept, np.arange(-count, 0)), count


def around_of(pipeline: Pipeline, X: Any, outside: Around = ALONE) -> Around:
    """Return the steps of a Pipeline before its last one, for budgets; X are rows before them."""
    raw = X if outside.raw is None else outside.raw
    tables = scaler_tables([step for _, step in pipeline.steps[:-1]]).behind(outside.scaler)
    return Around(lambda last: outside.deployed(ending_in(pipeline, last)), raw, tables)


def ending_in(pipeline: Pipeline, last: Any) -> Pipeline:
    """Return the Pipeline with another last step; it shares the fitted transformers."""
    changed = copy.copy(pipeline)
    changed.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], last)]
    return changed


def scaler_tables(transformers: list[Any]) -> ScalerTables:
    """Return the C tables of scalers, or the bytes of the preparation of a table.

    Only the centres of one StandardScaler are known to be near 0.
    """
    if not are_scalers(transformers):
        try:
            given, names = transformers[0].n_features_in_, getattr(transformers[0], "feature_names_in_", ())
            preparation = preparation_of(flattened(transformers), given, tuple(map(str, names)))
        except (AttributeError, ValueError):  # a transformer that C does not have
            preparation = None
        if preparation is not None and ColumnScaling.of(preparation) is None:
            return ScalerTables(bytes=c_bytes_of(preparation))
    features = max((getattr(transformer, "n_features_in_", 0) for transformer in transformers), default=0)
    clips = any(getattr(transformer, "clip", False) for transformer in transformers)
    return ScalerTables(features, clips, len(transformers) == 1 and _has_centres_near_zero(transformers[0]))


def _has_centres_near_zero(scaler: Any) -> bool:
    """Return whether the means of a StandardScaler are at most `NEAR` standard deviations from 0."""
    mean, scale = getattr(scaler, "mean_", None), getattr(scaler, "scale_", None)
    return mean is not None and scale is not None and bool((np.abs(mean) <= NEAR * scale).all())


def _labels(source: Imported, X: Matrix, y: Any) -> Array:
    """Return labels in the form of the goal; without any, the full model's predictions."""
    if not source.goal.n_classes:
        goal, count = source.goal, X.shape[0]
        y = np.zeros((count, goal.outputs)) if y is None else np.asarray(y, dtype=np.float64)
        if y.size != count * goal.outputs:
            raise ValueError(f"y has the shape {y.shape}, and this model predicts {goal.outputs} targets; give all of them")
        return goal.scores(y.reshape(count, -1))
    if y is None:
        return source.goal.decode(source.model(X))
    _check_labels(y, source.classes)
    return np.searchsorted(source.classes, y)


def _check_labels(y: Array, classes: Array) -> None:
    strange = np.setdiff1d(y, classes)
    if strange.size:
        raise ValueError(f"y has labels {strange[:5].tolist()} that the model does not know; it knows {classes.tolist()}")


def _regression(goal: Any, targets: Array, weights: Array, *, followed: bool) -> Goal:
    """Return the goal with the variance of the targets, or without targets that of following the full model."""
    if followed:
        return Following(outputs=goal.outputs)
    return replace(goal, variance=variance_of(targets, weights))


def _coding(goal: Goal, reducer: Any, multiclass: str | None) -> Goal:
    """Return the goal of the small model: the full model's, or another one for three classes or more."""
    wanted = multiclass or (goal.name if reducer.requires_model else "ovr")
    if goal.n_classes < 3 or wanted == goal.name:
        return goal
    if wanted == "ovr" and reducer.requires_model:
        raise ValueError(
            f"{type(reducer).__name__} shrinks the outputs of the full model, one for each pair of classes; for "
            f"multiclass='ovr' give one of {names_where(lambda kind: not kind.needs_model)}, or leave multiclass out"
        )
    if goal.name == "ovr":
        raise ValueError(
            f"the model has one output for each class, but multiclass={wanted!r} needs one for each pair; leave multiclass "
            f"out, or train with SlimSVC(multiclass={wanted!r})"
        )
    return CLASSIFIERS[wanted](goal.n_classes)


def _status_of(model: Any) -> Status:
    if isinstance(model, KernelMachine):
        return getattr(model, "status_", Status.CONVERGED)
    return Status.MAX_ITER if getattr(model, "fit_status_", 0) else Status.CONVERGED
