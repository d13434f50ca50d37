"""The doors: SlimSVC and compress. They validate, encode, hand over to trainers and reducers, and warn."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..importers.sklearn import Imported, import_svc
from ..kernels import Array, Kernel, Matrix, make_kernel, resolve_gamma
from ..model import Expansion, Fit, Status, Task, silent
from ..multiclass import OneVsOne, OneVsRest
from ..path import Path
from ..reducers import REDUCERS
from ..rows.host import HostRows
from ..rows.protocol import Meter
from ..selection import Shrinking, check_budget, check_kernel, check_no_model
from ..trainers import TRAINERS
from .streams import check_streams, keep_stream, resumed, stream_classes

Report = Callable[[str, float], None]


def _learns_streams(estimator: SlimSVC) -> bool:
    trainer = estimator.trainer
    kind = TRAINERS.get(trainer) if isinstance(trainer, str) else type(trainer)
    if hasattr(kind, "learn"):
        return True
    able = sorted(name for name, other in TRAINERS.items() if hasattr(other, "learn"))
    raise AttributeError(f"trainer {trainer!r} needs all rows at once; those that learn from streams are {able}")


class SlimSVC(ClassifierMixin, BaseEstimator):
    """Kernel support vector classification with as few support vectors as you ask for.

    Trains the exact C-SVM, as `sklearn.svm.SVC` does but faster, and shrinks it to a budget; or, with trainer=None, finds
    the small model straight from the labels.

    Parameters
    ----------
    budget : int or float, default=None
        Support vectors at most, in all, shared by the classes: a count, or a fraction of the full model's.
        The largest model within the budget is kept whose held-out error is within a standard error of the lowest.
        None: no limit.
    tolerance : float, default=None
        Keep the smallest model whose held-out error is within this much of the full one's (0.005 is half a point).
        With `budget` too, the smallest within both. Neither: the full model.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "precomputed"} or callable, default="rbf"
        A callable takes two sets of rows and returns the matrix of kernel values. With "precomputed", X is the kernel
        matrix (n, n) in fit and (m, n) in predict, and support vectors are column numbers.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel width, as in `SVC`.
    C : float, default=1.0
        Cost of a margin violation.
    degree, coef0 : int, float
        Of the poly and sigmoid kernels, as in `SVC`.
    trainer : str, trainer or None, default="smo"
        A name in `slimsvm.trainers.TRAINERS`, or an instance with settings of its own (C, tol, max_iter stay this
        estimator's). "smo" is the exact SVM; "sbp", "pegasos", "sdca" and "perceptron" trade exactness for fewer kernel
        evaluations; "lp" and "ramp" have losses of their own that need fewer support vectors; "budget-l1", "budget-l2",
        "forgetron", "rbp" and "bsgd" keep to `budget` while they train, the last three from a stream if need be
        (`partial_fit`); "any-norm" takes a norm of the slack. Each class says what it solves and where it ends; of
        C, tol and max_iter it takes those that it has (a perceptron has no C). None trains no full model: a reducer that
        needs none then finds a model of at most `budget` support vectors, which must be a count.
    reducer : str or reducer, default="slim"
        A name in `slimsvm.reducers.REDUCERS`, or an instance such as `Slim(steps=200, time_limit=60)`. "slim" moves support
        vectors to where they are worth most, and needs a kernel with gradients (linear, rbf, poly, sigmoid, laplacian);
        "slant-aggressive", "spsvm" and others choose them among the rows. When the time limit, in seconds, or Ctrl-C ends
        its work early, the best model found so far is kept, with a warning.
    tol : float, default=1e-3
        The largest violation of the optimality conditions at which training ends, as in `SVC`; what it bounds with
        another trainer, that trainer says.
    max_iter : int, default=-1
        Steps of the trainer at most for each output of the full model (pair steps for "smo"); -1 for no limit.
    class_weight : dict or "balanced", default=None
        Multiplies C by class, as in `SVC`.
    cache_mb : float, default=512
        Memory for kernel rows, in MiB.
    random_state : int, RandomState instance or None, default=None
        Chooses the rows held out when a budget or tolerance is given. A number makes results repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        Rows of X, or points between them where the reducer moves them. SmoState numbers (n_SV, 1) for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_outputs, n_SV)
        One row for two classes. With more, one per pair of classes in the full model (as SVC trains it), and one per
        class with a budget or tolerance, since the outputs then share a few support vectors.
    intercept_ : ndarray of shape (n_outputs,)
    n_support_ : ndarray of shape (n_classes,)
        Support vectors by the class that their coefficients speak for most.
    path_ : Path
        The models on the way to the budget, with their held-out errors; None for the full model. The model kept may have
        been fitted to the held-out rows as well since.
    n_kernel_evals_ : int
        Kernel values computed by fit.
    n_iter_ : int
        Steps of training; by fit, not by compress.
    status_ : Status
        How training ended, or the path with trainer=None; by fit, not by compress.
    model_ : Expansion
        The fitted function itself.
    stream_ : Stream
        What `partial_fit` goes on from; of trainers that learn online alone.
    n_features_in_, feature_names_in_ : as in scikit-learn.
    """

    def __init__(
        self,
        budget: int | float | None = None,
        *,
        tolerance: float | None = None,
        kernel: str | Callable[..., Array] = "rbf",
        gamma: str | float = "scale",
        C: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        trainer: Any = "smo",
        reducer: Any = "slim",
        tol: float = 1e-3,
        max_iter: int = -1,
        class_weight: dict[Any, float] | str | None = None,
        cache_mb: float = 512,
        random_state: Any = None,
    ) -> None:
        self.budget = budget
        self.tolerance = tolerance
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.degree = degree
        self.coef0 = coef0
        self.trainer = trainer
        self.reducer = reducer
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.cache_mb = cache_mb
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Sparse rows always; pairs of rows or no negative entries as the kernel wants."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags

    def fit(self, X: Matrix, y: Any, sample_weight: Any = None) -> SlimSVC:
        """Train the full model on rows X with labels y, then shrink it if a budget or tolerance is set.

        With trainer=None the small model is found straight from the labels.
        `sample_weight` multiplies C by row; a row of weight 0 counts as absent.
        """
        return fit_reporting(self, X, y, sample_weight, report=silent)

    @available_if(_learns_streams)
    def partial_fit(self, X: Matrix, y: Any, classes: Any = None, sample_weight: Any = None) -> SlimSVC:
        """Learn from another batch of a stream, row by row in the order given; only for trainers that learn online.

        The first call needs `classes`, all labels that the stream will have, and fixes the settings: its rows say what
        gamma="scale" is, and the n of trainer="bsgd". After `fit` a stream goes on from where `fit` ended. A call that
        fails or is interrupted changes nothing.
        """
        return learn_batch(self, X, y, classes, sample_weight)

    def decision_function(self, X: Matrix) -> Array:
        """Scores (n,) for two classes, else (n, n_classes); the largest names the class."""
        outputs = self._outputs(X)
        return self.coding_.scores(outputs)

    def predict(self, X: Matrix) -> Array:
        """The class of each row."""
        outputs = self._outputs(X)
        return self.classes_[self.coding_.decode(outputs)]

    def predict_randomized(self, X: Matrix, random_state: Any = None) -> Array:
        """The class by the randomised rule that the slant loss speaks of (Cotter et al., section 4.1).

        Adds Z ~ Uniform[-1/2, 1/2] to each output: the expected error of this rule is the slant loss. Its authors
        advise `predict` for use.
        """
        outputs = self._outputs(X)
        rng = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        return self.classes_[self.coding_.decode(outputs + rng.uniform(-0.5, 0.5, outputs.shape))]

    def _outputs(self, X: Matrix) -> Array:
        if not _is_plainly_valid(self, X):
            check_is_fitted(self)
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=DTYPES)
        return self.model_(_rows(X))

    @property
    def support_vectors_(self) -> Matrix:
        """The points of the model."""
        return self.model_.points

    @property
    def dual_coef_(self) -> Array:
        """The coefficients, one row per output."""
        return self.model_.coef.T

    @property
    def intercept_(self) -> Array:
        """The bias of each output."""
        return self.model_.bias

    @property
    def n_support_(self) -> Array:
        """Support vectors by class."""
        return np.bincount(self.coding_.owner(self.model_.coef), minlength=self.classes_.size)


#: rows are kept in the precision they come in
DTYPES = [np.float64, np.float32]


def _is_plainly_valid(estimator: SlimSVC, X: Any) -> bool:
    """Whether X passes `validate_data` at a glance: that takes longer than a small model does for one row."""
    state = vars(estimator)
    return (
        type(X) is np.ndarray
        and X.dtype in DTYPES
        and X.ndim == 2
        and X.shape[0] > 0
        and "model_" in state
        and "feature_names_in_" not in state
        and X.shape[1] == state["n_features_in_"]
        and bool(np.isfinite(X).all())
    )


def _rows(X: Matrix) -> Matrix:
    return csr_array(X) if issparse(X) else X


def fit_reporting(estimator: SlimSVC, X: Matrix, y: Any, sample_weight: Any = None, *, report: Report = silent) -> SlimSVC:
    """`estimator.fit`, telling report(phase, share done) how it goes."""
    _check_settings(estimator)
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=DTYPES, ensure_min_samples=2)
    check_classification_targets(y)
    given = _rows(X)
    X, y, weights, kept = _weighted_rows(given, y, sample_weight)
    classes, labels = np.unique(y, return_inverse=True)
    _check_classes(classes)
    gamma = resolve_gamma(estimator.gamma, X, None if sample_weight is None else weights)
    kernel = make_kernel(estimator.kernel, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0)
    kernel.check_rows(given)
    weights = weights * _class_weights(estimator.class_weight, classes, y)[labels]
    # the full model is SVC's: pairs of classes; outputs that share few support vectors are few too
    reducer = _method(estimator.reducer, REDUCERS, "reducer", estimator)
    trainer = None if estimator.trainer is None else _method(estimator.trainer, TRAINERS, "trainer", estimator)
    _check_methods(estimator, trainer, reducer, kernel, weights)
    whole = estimator.budget is None and estimator.tolerance is None and trainer is not None and not trainer.shared
    coding = OneVsOne(classes.size, break_ties=True) if whole else OneVsRest(classes.size)
    seed = check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max)
    rows = Shrinking(X, labels, weights, kernel, coding, reducer, seed, kept, Meter(), estimator.cache_mb, report)
    fit, model, path = _train_and_shrink(estimator, rows, trainer)
    if trainer is not None and not fit.status.as_planned:
        warnings.warn(f"{type(trainer).__name__} {fit.status.value} (gap {fit.gap:.2g})", ConvergenceWarning, stacklevel=3)
    _install(estimator, model, coding, classes, path)
    estimator.n_kernel_evals_ = rows.meter.evaluations
    estimator.n_iter_, estimator.status_ = fit.n_iter, fit.status
    keep_stream(estimator, trainer, kernel, fit.state)
    return estimator


def _check_settings(estimator: SlimSVC) -> None:
    """Raise ValueError for settings that no data could make right."""
    for name in ("C", "tol", "cache_mb"):
        value = getattr(estimator, name)
        if not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise ValueError(f"{name} must be a number above 0, not {value!r}")
    for name, least in (("max_iter", -1), ("degree", 0)):
        value = getattr(estimator, name)
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if not isinstance(estimator.coef0, Real) or not np.isfinite(float(estimator.coef0)):
        raise ValueError(f"coef0 must be a finite number, not {estimator.coef0!r}")
    check_budget(estimator.budget, estimator.tolerance)


def _class_weights(class_weight: Any, classes: Array, y: Array) -> Array:
    weights = compute_class_weight(class_weight, classes=classes, y=y)
    if (weights <= 0).any():
        raise ValueError(f"class weights must be above 0; they are {dict(zip(classes.tolist(), weights, strict=True))}")
    return weights


def _check_classes(classes: Array) -> None:
    if classes.size < 2:
        raise ValueError(
            f"the number of classes has to be greater than one; got {classes.size} class: {classes.tolist()}. "
            "A classifier needs rows of two classes at least (rows of weight 0 do not count)"
        )


def _method(given: Any, table: dict[str, Any], what: str, estimator: SlimSVC) -> Any:
    """The trainer or reducer of that name, or the one given, with the estimator's C, tol and max_iter."""
    known = given in table if isinstance(given, str) else dataclasses.is_dataclass(given) and not isinstance(given, type)
    if not known:
        raise ValueError(f"unknown {what} {given!r}; there are {sorted(table)}, or give an instance of such a class")
    method = table[given]() if isinstance(given, str) else given
    settings = {f.name for f in dataclasses.fields(method)}
    filled = {name: getattr(estimator, name) for name in settings & {"C", "tol", "max_iter"}}
    if "budget" in settings and method.budget is None:
        filled["budget"] = _count(estimator.budget, given)
    return dataclasses.replace(method, **filled)


def _count(budget: Any, given: Any) -> int:
    """The budget of a trainer that keeps to one while it learns."""
    name = given if isinstance(given, str) else type(given).__name__
    if not isinstance(budget, Integral):
        raise ValueError(
            f"trainer {name!r} keeps to a budget while it learns and needs a number of support vectors; budget is "
            f"{budget!r}. Give budget=100, say"
        )
    if budget < 2:
        raise ValueError(f"trainer {name!r} needs a budget of 2 support vectors at least, not {budget!r}")
    return int(budget)


def _check_methods(estimator: SlimSVC, trainer: Any, reducer: Any, kernel: Kernel, weights: Array) -> None:
    """Raise ValueError where trainer or reducer cannot do what is asked, before either begins."""
    if trainer is None:
        check_no_model(reducer, estimator.budget, estimator.tolerance)
    else:
        _check_weights(trainer, weights)
    kept_to_it = estimator.budget is None or getattr(trainer, "budget", None) == estimator.budget
    if not kept_to_it or estimator.tolerance is not None:
        check_kernel(reducer, kernel)


def _check_weights(trainer: Any, weights: Array) -> None:
    if not trainer.weighted and np.ptp(weights) > 0:
        able = sorted(name for name, kind in TRAINERS.items() if kind.weighted)
        raise ValueError(
            f"{type(trainer).__name__} treats all rows alike: it has no sample_weight or class_weight. Those that have "
            f"are {able}"
        )


def _weighted_rows(X: Matrix, y: Array, sample_weight: Any) -> tuple[Matrix, Array, Array, Array]:
    """Rows, labels, weights and numbers of the rows of positive weight."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any():
        raise ValueError(f"sample weights must be 0 or more; the smallest is {weights.min():.6g}")
    kept = np.flatnonzero(weights > 0)
    if kept.size == weights.size:
        return X, y, weights, kept
    return X[kept], y[kept], weights[kept], kept


def _train_and_shrink(estimator: SlimSVC, rows: Shrinking, trainer: Any) -> tuple[Fit, Expansion, Path | None]:
    """The full fit, the model to keep, and the path it was chosen on; without a trainer the path is all there is."""
    if trainer is None:
        model, path = rows.best(int(estimator.budget or 0), None)
        return Fit(model, path.status, n_iter=0, dual=None, gap=0.0), model, path
    error = estimator.tol / (estimator.C * float(rows.weights.max()))
    allowed, start = None, None
    if estimator.tolerance is not None:
        # the full model's own held-out error needs a model that has not seen the judging rows; it starts the other one
        learn, _ = rows.split()
        part = trainer.fit(rows.task(learn, error=error))
        allowed = rows.error(part.model) + estimator.tolerance
        if part.dual is not None:
            start = np.zeros((rows.labels.size, rows.coding.outputs))
            start[learn] = part.dual
    fit = trainer.fit(rows.task(np.arange(rows.labels.size), error=error), start)
    kept_to_it = getattr(trainer, "budget", None) == estimator.budget and fit.model.size <= (estimator.budget or 0)
    return fit, *rows.shrink(fit.model, None if kept_to_it else estimator.budget, allowed)


def _install(estimator: SlimSVC, model: Expansion, coding: OneVsRest | OneVsOne, classes: Array, path: Path | None) -> None:
    estimator.model_, estimator.coding_, estimator.classes_, estimator.path_ = model, coding, classes, path


def learn_batch(estimator: SlimSVC, X: Matrix, y: Any, classes: Any, sample_weight: Any) -> SlimSVC:
    """`estimator.partial_fit`."""
    _check_settings(estimator)
    stream = resumed(estimator)
    after = copy.copy(estimator)  # takes the estimator's place when all has gone well
    X, y = validate_data(after, X, y, reset=stream is None, accept_sparse="csr", dtype=DTYPES)
    check_classification_targets(y)
    classes = stream_classes(None if stream is None else estimator.classes_, classes, y)
    _check_classes(classes)
    X, y, weights, _ = _weighted_rows(_rows(X), y, sample_weight)
    trainer, kernel = _learner(estimator, X) if stream is None else (stream.trainer, stream.kernel)
    check_streams(estimator, trainer, kernel)
    task = _batch(estimator, trainer, kernel, X, np.searchsorted(classes, y), weights, classes)
    state = trainer.begin(dataclasses.replace(task, rng=_rng(estimator))) if stream is None else stream.state
    state = trainer.learn(state, task, np.arange(X.shape[0]))
    _install(after, state.expansion(kernel), OneVsRest(classes.size), classes, None)
    after.n_kernel_evals_ = getattr(estimator, "n_kernel_evals_", 0) + task.rows.meter.evaluations
    after.n_iter_, after.status_ = state.seen, Status.PASSED
    keep_stream(after, trainer, kernel, state)
    estimator.__dict__.update(after.__dict__)
    return estimator


def _batch(
    estimator: SlimSVC, trainer: Any, kernel: Kernel, X: Matrix, labels: Array, weights: Array, classes: Array
) -> Task:
    """The rows of a batch as a task."""
    kernel.check_rows(X)
    weights = weights * _class_weights(estimator.class_weight, classes, classes)[labels]
    _check_weights(trainer, np.append(weights, 1.0))  # as far as this batch knows, rows of others have weight 1
    return Task(HostRows(kernel, X, cache_mb=0.0, error=0.0), OneVsRest(classes.size).encode(labels), weights)


def _rng(estimator: SlimSVC) -> np.random.Generator:
    return np.random.default_rng(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))


def _learner(estimator: SlimSVC, X: Matrix) -> tuple[Any, Kernel]:
    """The trainer and the kernel of a stream that begins with the rows X."""
    if not X.shape[0]:
        raise ValueError("all rows of the first batch have weight 0, and there is nothing to begin with")
    gamma = resolve_gamma(estimator.gamma, X)
    kernel = make_kernel(estimator.kernel, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0)
    return _method(estimator.trainer, TRAINERS, "trainer", estimator), kernel


def compress(
    model: Any,
    X: Matrix,
    y: Any,
    *,
    budget: int | float | None = None,
    tolerance: float | None = None,
    reducer: Any = "slim",
    random_state: Any = None,
) -> Any:
    """Shrink a fitted kernel SVM: an SVC, NuSVC or SlimSVC, or a Pipeline that ends in one.

    X and y are rows and labels such as the model was trained on (before the Pipeline's transformers); a part of them is
    held out to choose by. For an honest `tolerance`, give rows that the model was not trained on. Returns a fitted
    SlimSVC, or a Pipeline of the same fitted transformers and one, with the outputs of the model: one column per pair of
    classes for an SVC of three classes or more. With neither budget nor tolerance the full model is returned in that form.
    """
    return compress_reporting(model, X, y, budget, tolerance, reducer, random_state, report=silent)


def compress_reporting(
    model: Any, X: Matrix, y: Any, budget: Any, tolerance: Any, reducer: Any, random_state: Any, *, report: Report
) -> Any:
    """`compress`, telling report(phase, share done) how it goes."""
    check_budget(budget, tolerance)
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        last, final = model.steps[-1]
        rows = model[:-1].transform(X) if len(model.steps) > 1 else X
        small = compress_reporting(final, rows, y, budget, tolerance, reducer, random_state, report=report)
        shrunk = copy.copy(model)  # the transformers are shared, fitted as they are
        shrunk.steps = [*model.steps[:-1], (last, small)]
        return shrunk
    source = imported(model)
    estimator = SlimSVC(budget, tolerance=tolerance, reducer=reducer, random_state=random_state, **source.params)
    method = _method(reducer, REDUCERS, "reducer", estimator)
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=DTYPES, ensure_min_samples=2)
    _check_features(estimator, source)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    labels = _labels(y, source.classes)
    full, coding = source.model, source.coding
    full.kernel.check_rows(X)
    ids, weights = np.arange(labels.size), np.ones(labels.size)
    rows = Shrinking(_rows(X), labels, weights, full.kernel, coding, method, seed, ids, Meter(), estimator.cache_mb, report)
    allowed = None if tolerance is None else rows.error(full) + tolerance
    small, path = rows.shrink(full, budget, allowed)
    _install(estimator, small, coding, source.classes, path)
    estimator.n_kernel_evals_ = rows.meter.evaluations
    return estimator


def imported(model: Any) -> Imported:
    """The expansion inside a fitted SVM of ours or scikit-learn's."""
    if isinstance(model, SlimSVC):
        check_is_fitted(model)
        names = ("kernel", "gamma", "C", "degree", "coef0", "trainer", "tol", "max_iter", "class_weight", "cache_mb")
        params = {name: getattr(model, name) for name in names}
        params["trainer"] = params["trainer"] or "smo"  # a full model to shrink has a trainer, if only for the next fit
        return Imported(model.model_, model.coding_, model.classes_, model.n_features_in_, params)
    return import_svc(model)


def classifier_of(source: Imported) -> SlimSVC:
    """A fitted SlimSVC that computes an imported function."""
    estimator = SlimSVC(**source.params)
    estimator.n_features_in_ = source.n_features
    _install(estimator, source.model, source.coding, source.classes, None)
    return estimator


def _check_features(estimator: SlimSVC, source: Imported) -> None:
    if estimator.n_features_in_ != source.n_features:
        raise ValueError(
            f"X has {estimator.n_features_in_} features, but the model was trained on {source.n_features}; give rows in "
            "the form the model takes"
        )


def _labels(y: Array, classes: Array) -> Array:
    """Class numbers of the labels, all of which the model must know, and two of which must be there."""
    strange = np.setdiff1d(y, classes)
    if strange.size:
        raise ValueError(f"y has labels {strange[:5].tolist()} that the model does not know; it knows {classes.tolist()}")
    _check_classes(np.unique(y))
    return np.searchsorted(classes, y)
