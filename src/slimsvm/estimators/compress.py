"""compress: shrink a fitted kernel machine of slimsvm or of another library."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..goals import CLASSIFIERS
from ..importers.around import unwrapped
from ..kernels import Array, Matrix
from ..run import History, Printed, Run, silent
from .machines import Fitted
from .resume import Interrupted, was_interrupted
from .shrink import Shrinking, Surroundings, ending_in


def compress(
    model: Any,
    X: Matrix | None = None,
    y: Any = None,
    *,
    budget: Any = None,
    tolerance: float | None = None,
    X_val: Matrix | None = None,
    y_val: Any = None,
    scoring: Any = None,
    precision: str = "auto",
    reducer: Any = "slim",
    multiclass: str | None = None,
    sample_weight: Any = None,
    validation_fraction: float = 0.2,
    calibration: str | None = None,
    time_limit: float | None = None,
    device: str = "cpu",
    verbose: bool = False,
    random_state: Any = None,
) -> Fitted:
    """Shrink a fitted kernel machine: a classifier, a regressor or a novelty detector.

    Parameters
    ----------
    model : estimator
        A fitted SlimSVC, SlimSVR or SlimOneClassSVM; an SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge or
        GaussianProcessRegressor (its mean; rbf, with a constant or not) of scikit-learn; a MultiOutputRegressor of them; an
        SVM of scikit-learn-intelex or cuML; a LIBSVM file read by `slimsvm.load`; or a Pipeline,
        TransformedTargetRegressor, GridSearchCV or other search with one of them in it. It is not changed.
    X : array-like or sparse matrix of shape (n_samples, n_features), default=None
        Rows like those of the model's training, before the transformers of a Pipeline; best the same rows. Without rows,
        the support vectors and random points between pairs of them are used instead. These lie near the boundary of a
        classifier and not where rows are dense, and have no true labels. So the small model is good near them only, and its
        validation errors are differences to the full model there.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        Labels or target values of the rows. Without them a small model learns the predictions of the full one, with its
        mistakes. Novelty detectors take none.
    budget : int, float, str or tuple of them, default=None
        What the small model may cost, as in `SlimSVC`: 64 support vectors, 0.1 of the model's, "4 KB" of exported C or
        "20 us" for a prediction; those of a Pipeline include its scalers. None: no limit.
    tolerance : float, default=None
        Keep the smallest model whose validation error is within this much of the full one's, less a standard error
        of the difference. The full one is judged by rows that it has not seen: by `X_val` and `y_val`; or, where X is what
        it was trained on, by models that are trained like it without the validation rows (a model that does not say how
        it was trained, such as a LIBSVM file, then needs `X_val`); or by a part of X. Without y, predictions
        of the full model are the labels. `path_` tells which it was, the full model's error and the limit. With
        neither budget nor tolerance the full model is returned as an estimator of slimsvm.
    X_val, y_val : array-like, default=None
        Validation rows and their labels, which the model has not seen, in place of a part of X. At least a few hundred.
    scoring : str, callable or None, default=None
        How models are compared, as in `SlimSVC`.
    precision : {"auto", "float32", "int16", "int8", "int4"}, default="auto"
        The tables that exports write, as in `SlimSVC`.
    reducer : str or reducer, default="slim"
        A name in `slimsvm.reducers.REDUCERS`, or an instance, as in `SlimSVC`.
    multiclass : {"ovr", "ovo", "dag"}, default=None
        The outputs of a small classifier of three classes or more: one for each class, fitted to the labels ("ovr"), or one
        for each pair of classes, decoded by votes ("ovo") or by a decision DAG ("dag", k - 1 pairs for k classes). None is
        "ovr" for reducers that need no full model, such as "slim", and the model's own outputs for others. A full model
        that is returned keeps its own.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in the loss and in the validation error. A row of weight 0 counts as absent. They are
        multiplied by the model's class_weight; "balanced" is computed from y.
    validation_fraction : float, default=0.2
        The share of the rows that are used as validation rows.
    calibration : {"sigmoid", "isotonic", "temperature"} or None, default=None
        How the scores of a small classifier become probabilities, as in `SlimSVC`. For honest ones, give rows that the
        model was not trained on.
    time_limit : float, default=None
        Seconds after which the best model so far is returned, with a warning. None: no limit.
    device : str, default="cpu"
        Where rows are kept and kernels evaluated, as in `SlimSVC`.
    verbose : bool, default=False
        Print how far the work has come.
    random_state : int, RandomState instance or None, default=None
        Chooses the validation rows. A number makes results repeatable.

    Returns
    -------
    SlimSVC, SlimSVR, SlimOneClassSVM, Pipeline or TransformedTargetRegressor
        A fitted estimator of the model's kind; or a Pipeline or TransformedTargetRegressor with it and the same fitted
        transformers. For a search, its best estimator is shrunk and returned.

    Raises
    ------
    Interrupted
        After Ctrl-C, if small models had been found: `best` is what the call would have returned with the best of them. It
        is a KeyboardInterrupt.

    Warns
    -----
    UserWarning
        For settings that the small model cannot keep, such as probability=True.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from slimsvm import compress
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SVC().fit(X, y)
    >>> small = compress(svc, X, y, budget=6, random_state=0)
    >>> len(small.support_vectors_) <= 6
    True
    >>> small = compress(svc, budget=6, random_state=0)  # from its support vectors only
    >>> len(small.support_vectors_) <= 6
    True
    """
    settings = {"sample_weight": sample_weight, "validation_fraction": validation_fraction, "device": device}
    settings["time_limit"] = time_limit
    settings |= {"multiclass": multiclass, "calibration": calibration}
    settings |= {"scoring": scoring, "precision": precision, "X_val": X_val, "y_val": y_val}
    history = History()
    report = Printed("compress", history) if verbose else silent
    return compress_within(Run(report, history.record), model, X, y, budget, tolerance, reducer, random_state, **settings)


def compress_within(
    run: Run,
    model: Any,
    X: Matrix | None,
    y: Any,
    budget: Any = None,
    tolerance: Any = None,
    reducer: Any = "slim",
    random_state: Any = None,
    *,
    X_val: Matrix | None = None,
    y_val: Any = None,
    multiclass: str | None = None,
    sample_weight: Any = None,
    calibration: str | None = None,
    **more: Any,
) -> Any:
    """Do the work of `compress` within a run."""
    if X is None and (y is not None or sample_weight is not None):
        raise ValueError("y and sample_weight belong to rows, but X is None; give X too, or only the model")
    if (X_val is None) != (y_val is None) or (X_val is not None and X is None):
        raise ValueError("X_val and y_val belong together, and to rows X; give all of them, or neither X_val nor y_val")
    if multiclass not in (None, *CLASSIFIERS):
        raise ValueError(f"unknown multiclass {multiclass!r}; there are {sorted(CLASSIFIERS)}, or None")
    settings = {"budget": budget, "tolerance": tolerance, "reducer": reducer, "random_state": random_state}
    settings |= more if calibration is None else {**more, "calibration": calibration}
    held_out = None if X_val is None else (X_val, y_val)
    small = _shrunk(model, X, y, Shrinking(settings, multiclass, sample_weight, Surroundings(run), held_out))
    if was_interrupted(unwrapped(small)[-1].path_):
        raise Interrupted(small)
    return small


def _shrunk(model: Any, X: Matrix | None, y: Any, machine: Shrinking) -> Any:
    """Return a model whose kernel machine is shrunk, in the wrappers of the large one."""
    if isinstance(model, BaseSearchCV):
        return _shrunk(_best_of(model), X, y, machine)
    if isinstance(model, Pipeline):
        return _shrunk_pipeline(model, X, y, machine)
    if isinstance(model, TransformedTargetRegressor):
        return _shrunk_on_transformed_targets(model, X, y, machine)
    return machine.shrunk(model, X, y)


def _best_of(search: Any) -> Any:
    """Return the best estimator of a search; it exists only with refit=True."""
    check_is_fitted(search)
    if not hasattr(search, "best_estimator_"):
        raise ValueError(
            f"this {type(search).__name__} has refit=False and no best_estimator_; fit it with refit=True, or give an "
            "estimator that is fitted with its best_params_"
        )
    return search.best_estimator_


def _shrunk_pipeline(model: Pipeline, X: Matrix | None, y: Any, machine: Shrinking) -> Pipeline:
    """Return a Pipeline with its last step shrunk; it shares the fitted transformers."""
    check_is_fitted(model)
    rows = model[:-1].transform(X) if X is not None and len(model.steps) > 1 else X
    around = machine.around if X is None else machine.around.within(model, X)
    held_out = machine.held_out
    if held_out is not None and len(model.steps) > 1:
        held_out = model[:-1].transform(held_out[0]), held_out[1]
    return ending_in(model, _shrunk(model.steps[-1][1], rows, y, replace(machine, around=around, held_out=held_out)))


def _shrunk_on_transformed_targets(model: Any, X: Matrix | None, y: Any, machine: Shrinking) -> Any:
    """Return the model with its regressor shrunk on transformed targets; the transformer is shared."""
    check_is_fitted(model, "regressor_")
    if y is not None:
        y = _transformed(model, y)
    if machine.held_out is not None:
        machine = replace(machine, held_out=(machine.held_out[0], _transformed(model, machine.held_out[1])))
    changed = copy.copy(model)
    changed.regressor = changed.regressor_ = _shrunk(model.regressor_, X, y, machine)
    return changed


def _transformed(model: TransformedTargetRegressor, y: Any) -> Array:
    """Return targets as the regressor inside sees them."""
    given = np.asarray(y)
    if given.ndim == 2 and given.shape[1] > 1:
        return np.asarray(model.transformer_.transform(given))
    return np.asarray(model.transformer_.transform(column_or_1d(y, warn=True).reshape(-1, 1))).ravel()
