"""compress: shrink a fitted kernel SVM, be it ours or scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..budgets import Budgets
from ..importers.sklearn import Imported, import_svc
from ..kernels import Array, Matrix
from ..model import Status
from ..progress import silent
from ..scoring import Scoring
from ..selection import Selection
from .base import Report
from .interrupted import Interrupted, was_interrupted
from .methods import finite_cost, make_reducer
from .surroundings import Surroundings, ending_in
from .svc import SlimSVC
from .validation import check_classes, check_costs, check_settings, class_weights, seed_of, training_rows, weighted_rows

#: parameters of a SlimSVC that its compressed form keeps
KEPT = (
    "kernel",
    "gamma",
    "C",
    "degree",
    "coef0",
    "trainer",
    "tol",
    "max_iter",
    "class_weight",
    "cache_mb",
    "break_ties",
    "decision_function_shape",
)


def compress(
    model: Any,
    X: Matrix,
    y: Any,
    *,
    budget: int | float | None = None,
    tolerance: float | None = None,
    scoring: Any = None,
    budget_bytes: int | None = None,
    budget_precision: str = "float32",
    budget_us: float | None = None,
    budget_batch_size: int = 1,
    reducer: Any = "slim",
    sample_weight: Any = None,
    validation_fraction: float = 0.2,
    device: str = "cpu",
    random_state: Any = None,
) -> Any:
    """Shrink a fitted kernel SVM: an SVC, NuSVC or SlimSVC, or a Pipeline that ends in one.

    Parameters
    ----------
    model : SVC, NuSVC, SlimSVC or Pipeline
        A fitted model. It is left unchanged.
    X, y : array-like or sparse matrix of shape (n_samples, n_features), array-like of shape (n_samples,)
        Rows and labels such as the model was trained on, before the transformers of a Pipeline. For an honest `tolerance`,
        give rows that the model was not trained on.
    budget : int or float, default=None
        Support vectors at most: a count, or a fraction of the model's. None: no limit.
    tolerance : float, default=None
        Keep the smallest model whose validation error is within this much of the full one's. With neither budget nor
        tolerance the full model is returned as a SlimSVC.
    scoring : str, callable or None, default=None
        How models are compared, as in `SlimSVC`.
    budget_bytes, budget_precision, budget_us, budget_batch_size : int, str, float, int
        Limits on the bytes of C tables and on the time of `predict`, as in `SlimSVC`. Those of a Pipeline include its
        scalers.
    reducer : str or reducer, default="slim"
        A name in `slimsvm.reducers.REDUCERS`, or an instance, as in `SlimSVC`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in the loss and in the validation error. A row of weight 0 counts as absent. They are
        multiplied by the model's class_weight; "balanced" is computed from y.
    validation_fraction : float, default=0.2
        The share of the rows that models are compared on.
    device : str, default="cpu"
        Where rows are kept and kernels evaluated, as in `SlimSVC`.
    random_state : int, RandomState instance or None, default=None
        Chooses the validation rows. A number makes results repeatable.

    Returns
    -------
    SlimSVC or Pipeline
        A fitted SlimSVC, or a Pipeline of the same fitted transformers that ends in one. It has the outputs of the model:
        one column per pair of classes for an SVC of three classes or more.

    Raises
    ------
    Interrupted
        After Ctrl-C, where small models had been found: `best` is the best of them, in the form in which it would have been
        returned. It is a KeyboardInterrupt.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from slimsvm import compress
    >>> X, y = load_iris(return_X_y=True)
    >>> small = compress(SVC().fit(X, y), X, y, budget=6, random_state=0)
    >>> len(small.support_vectors_) <= 6
    True
    """
    settings = {"sample_weight": sample_weight, "validation_fraction": validation_fraction, "device": device}
    settings |= {"scoring": scoring, "budget_bytes": budget_bytes, "budget_precision": budget_precision}
    settings |= {"budget_us": budget_us, "budget_batch_size": budget_batch_size}
    return compress_reporting(model, X, y, budget, tolerance, reducer, random_state, report=silent, **settings)


def compress_reporting(
    model: Any,
    X: Matrix,
    y: Any,
    budget: Any,
    tolerance: Any,
    reducer: Any,
    random_state: Any,
    *,
    report: Report,
    sample_weight: Any = None,
    **more: Any,
) -> Any:
    """Do the work of `compress`, and call report(phase, share done) on the way."""
    settings = {"budget": budget, "tolerance": tolerance, "reducer": reducer, "random_state": random_state}
    settings |= more
    check_settings(SlimSVC(**settings))
    small = _shrunk(model, X, y, sample_weight, settings, Surroundings(report=report))
    if was_interrupted(_last(small).path_):
        raise Interrupted(small)
    return small


def _shrunk(model: Any, X: Matrix, y: Any, sample_weight: Any, settings: dict[str, Any], around: Surroundings) -> Any:
    """Return a Pipeline with its last step shrunk, or a shrunk SVM."""
    if not isinstance(model, Pipeline):
        return _small_svc(model, X, y, sample_weight, settings, around)
    check_is_fitted(model)
    rows = model[:-1].transform(X) if len(model.steps) > 1 else X
    return ending_in(model, _shrunk(model.steps[-1][1], rows, y, sample_weight, settings, around.within(model, X)))


def _last(model: Any) -> Any:
    """Return the last step of a Pipeline, of Pipelines within it too, or the model itself."""
    return _last(model.steps[-1][1]) if isinstance(model, Pipeline) else model


def _small_svc(
    model: Any, X: Matrix, y: Any, sample_weight: Any, settings: dict[str, Any], around: Surroundings
) -> SlimSVC:
    source = imported(model)
    small = SlimSVC(**settings, **source.params)
    small.n_features_in_ = source.n_features
    if hasattr(model, "feature_names_in_"):
        small.feature_names_in_ = model.feature_names_in_
    reducer = make_reducer(small)
    X, y = training_rows(small, X, y, reset=False, least=2)
    source.model.kernel.check_rows(X)
    check_labels(y, source.classes)
    X, y, weights, kept = weighted_rows(X, y, sample_weight)
    check_classes(np.unique(y))
    small.classes_, labels = source.classes, np.searchsorted(source.classes, y)
    by_class = class_weights(small.class_weight, source.classes, y)
    weights = weights * by_class[labels]
    check_costs(finite_cost(small.C), weights)
    selection = Selection(
        X,
        labels,
        weights,
        source.model.kernel,
        source.goal,
        reducer,
        seed_of(small.random_state),
        kept,
        small.validation_fraction,
        small.device,
        small.cache_mb,
        report=around.report,
        budgets=Budgets.of(small),
        scoring=Scoring.of(small.scoring),
        estimator=small,
        deployed=around.deployed,
        raw=around.raw,
        scaler_bytes=around.scaler_bytes,
    )
    small.model_, small.path_ = selection.select(source.model, small.tolerance)
    small.goal_ = source.goal
    small.class_weight_ = by_class
    small.n_kernel_evals_, small.n_iter_ = selection.meter.evaluations, 0
    small.status_ = _status_of(model) if small.path_ is None else small.path_.status
    return small


def _status_of(model: Any) -> Status:
    """Return how the training of a fitted model ended."""
    if isinstance(model, SlimSVC):
        return getattr(model, "status_", Status.CONVERGED)
    return Status.MAX_ITER if model.fit_status_ else Status.CONVERGED


def imported(model: Any) -> Imported:
    """Return the expansion inside a fitted SVM of ours or scikit-learn's."""
    if not isinstance(model, SlimSVC):
        return import_svc(model)
    check_is_fitted(model)
    params = {name: getattr(model, name) for name in KEPT}
    params["trainer"] = params["trainer"] or "smo"  # so that the small model can be fitted again
    return Imported(model.model_, model.goal_, model.classes_, model.n_features_in_, params)


def check_labels(y: Array, classes: Array) -> None:
    """Raise ValueError for labels that the model does not know."""
    strange = np.setdiff1d(y, classes)
    if strange.size:
        raise ValueError(f"y has labels {strange[:5].tolist()} that the model does not know; it knows {classes.tolist()}")
