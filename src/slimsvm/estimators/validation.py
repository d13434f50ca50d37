"""Checks of users' input to estimators: settings, rows, labels and weights."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_n_features, _check_sample_weight, check_is_fitted, validate_data

from ..calibration import check_calibration
from ..checks import check_at_least, check_cost, check_positive, check_unmasked
from ..clock import check_time_limit
from ..kernels import Array, Matrix
from ..rows.array import OnDevice
from ..rows.homes import is_device_array, resolve_device, rows_on_device
from ..rows.memory import check_mapped, empty_like_rows, gathered, is_mapped
from ..rows.precision import BLOCK_ROWS
from ..rows.threads import blocks
from ..selection.limits import checked_budget
from ..selection.search import check_selection

#: the precisions that rows keep; others become float64
DTYPES = [np.float64, np.float32]
#: largest size of a feature; sums of squares of larger ones may exceed float64
LARGEST_FEATURE = 1e150
#: by how much the probabilities of a row may miss the sum 1; more: sloppier probabilities are taken for given ones
SUM_ERROR = 1e-3
#: rows of at most this many features in all have their range checked by one product; more: BLAS wakes its threads for it
FEW_FEATURES = 4096


def check_settings(estimator: Any) -> None:
    """Raise ValueError for settings that are wrong for any data."""
    check_cost(estimator.C)
    for name in ("tol", "cache_mb"):
        check_positive(name, getattr(estimator, name))
    check_at_least("max_iter", estimator.max_iter, -1)
    check_time_limit(estimator.time_limit)
    check_at_least("degree", estimator.degree, 0)
    if not isinstance(estimator.coef0, Real) or not np.isfinite(float(estimator.coef0)):
        raise ValueError(f"coef0 must be a finite number, not {estimator.coef0!r}")
    checked_budget(estimator.budget, estimator.precision, getattr(estimator, "calibration", None))
    check_selection(estimator.validation_fraction, estimator.tolerance, estimator.scoring)
    resolve_device(estimator.device)
    check_calibration(getattr(estimator, "calibration", None), estimator._calibrations)
    shape = getattr(estimator, "decision_function_shape", "ovr")
    if shape not in ("ovr", "ovo"):
        raise ValueError(f"decision_function_shape must be 'ovr' or 'ovo', not {shape!r}")


def seed_of(random_state: Any) -> int:
    """Return a seed drawn from scikit-learn's random_state."""
    return check_random_state(random_state).randint(np.iinfo(np.int32).max)


def training_rows(estimator: Any, X: Any, y: Any, *, reset: bool = True, least: int = 1) -> tuple[Matrix, Array]:
    """Return rows and labels in the form that all methods take; `reset` sets the estimator's feature count and names.

    Labels are zeros if the estimator takes none.
    """
    if is_device_array(X) and resolve_device(estimator.device) != "cpu":
        return _device_training_rows(estimator, X, y, reset=reset, least=least)
    check_unmasked("X", X)
    check_unmasked("y", y)
    X = mapped_rows(X)
    kind, settings = estimator._labels_are, {"reset": reset, "accept_sparse": "csr", "dtype": DTYPES}
    if kind == "none":
        X = checked_range(validate_data(estimator, X, ensure_min_samples=least, **settings), finite=True)
        return X, np.zeros(X.shape[0])
    y, several = _targets(estimator, y)
    settings |= {"y_numeric": kind == "values", "multi_output": several}
    X, y = validate_data(estimator, X, y, ensure_min_samples=least, **settings)
    check_labels(kind, y)
    return checked_range(X, finite=True), y


def keep_range(estimator: Any, X: Any, before: Array | None = None) -> None:
    """Set `feature_range_` to the least and the largest number of each feature of dense rows, and of earlier ones."""
    estimator.__dict__.pop("feature_range_", None)
    if isinstance(X, np.ndarray) and X.shape[0] and getattr(estimator, "kernel", None) != "precomputed":
        found = np.stack([X.min(axis=0), X.max(axis=0)]).astype(np.float64)
        if before is not None:
            found = np.stack([np.minimum(found[0], before[0]), np.maximum(found[1], before[1])])
        estimator.feature_range_ = found


def _targets(estimator: Any, y: Any) -> tuple[Any, bool]:
    """Return labels or targets, and whether there are several columns of them; raise ValueError where there is one only."""
    shape = np.shape(y) if hasattr(y, "shape") else np.shape(np.asarray(y, dtype=object))
    if len(shape) < 2:
        return y, False
    if shape[1] == 1:
        return column_or_1d(y, warn=True), False
    if len(shape) == 2 and shape[1] and estimator._several_targets:
        return y, True
    advice = "SlimSVR takes several targets" if estimator._labels_are == "values" else "fit one classifier for each column"
    raise ValueError(
        f"y should be a 1d array of a label for each row, and has the shape {shape}; {type(estimator).__name__} learns one "
        f"column. Give one of them; {advice}"
    )


def check_labels(kind: str, y: Array) -> None:
    """Raise ValueError for labels that an estimator's kind of problem does not have."""
    if kind == "classes":
        try:
            check_classification_targets(np.unique(y) if y.dtype == object else y)
        except TypeError:
            types = sorted({type(label).__name__ for label in y.tolist()})
            raise ValueError(
                f"y mixes labels of the types {types}, which have no common order; give all of them as strings, or all as "
                "numbers"
            ) from None
    elif y.dtype.kind not in "biuf":
        raise ValueError(f"y has {y.dtype} targets, but regression needs numbers; for classes there is SlimSVC")


def _device_training_rows(estimator: Any, X: Any, y: Any, *, reset: bool, least: int) -> tuple[Matrix, Array]:
    """Return rows that stay on their device, and labels on the host."""
    rows, kind = _device_rows(estimator, X, reset=reset), estimator._labels_are
    if rows.shape[0] < least:
        raise ValueError(f"X has {rows.shape[0]} rows, but at least {least} are needed")
    if kind == "none":
        return rows, np.zeros(rows.shape[0])
    y, several = _targets(estimator, np.asarray(y.cpu() if hasattr(y, "cpu") else y.get() if hasattr(y, "get") else y))
    y = y if several else column_or_1d(y)
    check_consistent_length(rows, y)
    check_labels(kind, y)
    return rows, y


def _device_rows(estimator: Any, X: Any, *, reset: bool) -> OnDevice:
    """Return an array on a device as rows, after the checks that host arrays get."""
    rows = rows_on_device(X, estimator.device)
    _check_n_features(estimator, rows, reset=reset)
    if 0 in rows.shape:
        raise ValueError(f"X has {rows.shape[0]} rows of {rows.shape[1]} features; both must be 1 at least")
    largest = rows.largest()
    if not largest <= LARGEST_FEATURE:
        raise ValueError(
            f"features must be finite and lie between -{LARGEST_FEATURE:g} and {LARGEST_FEATURE:g}; the largest has an "
            f"absolute value of {largest:g}"
        )
    return rows


def mapped_rows(X: Any) -> Any:
    """Return memory-mapped rows converted to one of DTYPES, a block at a time; other input unchanged.

    scikit-learn's checks then read the rows without a copy.
    """
    if not isinstance(X, np.ndarray) or not is_mapped(X):
        return X
    check_mapped(X)
    if X.ndim != 2 or X.dtype in DTYPES or X.dtype.kind not in "biuf":
        return X
    dtype = np.dtype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)
    values = empty_like_rows(X, X.shape, dtype)
    for block in blocks(X.shape[0], BLOCK_ROWS):
        values[block] = X[block]
    return values


def prediction_rows(estimator: Any, X: Any) -> Matrix:
    """Return rows to predict, checked against the features of fit."""
    if _is_plainly_valid(estimator, X):
        return X
    check_is_fitted(estimator)
    check_unmasked("X", X)
    if is_device_array(X) and resolve_device(estimator.device) != "cpu":
        return _device_rows(estimator, X, reset=False)
    X = validate_data(estimator, mapped_rows(X), reset=False, accept_sparse="csr", dtype=DTYPES)
    return checked_range(X, finite=True)


def checked_range(X: Matrix, *, finite: bool = False) -> Matrix:
    """Return rows in the form that all methods take; raise ValueError if the squares of features can overflow.

    `finite` says that rows were checked to be finite; float32 numbers then need no other check.
    """
    if issparse(X):
        X = without_repeats(csr_array(X))
    if not (finite and X.dtype == np.float32) and not _in_range(X):
        values = X.data if issparse(X) else X
        raise ValueError(
            f"features must lie between -{LARGEST_FEATURE:g} and {LARGEST_FEATURE:g}, so that their squares are numbers; "
            f"they lie between {values.min():g} and {values.max():g}. Scale them, e.g. with StandardScaler"
        )
    return X


def without_repeats(X: csr_array) -> csr_array:
    """Return sparse rows with each feature at most once, as scipy's `toarray` sums them; the rows given are not changed."""
    if (X.indptr[1:] < X.indptr[:-1]).any():
        raise ValueError("a sparse array whose rows end before they begin (indptr must not fall); build it again")
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _in_range(X: Matrix) -> bool:
    """Return whether all features are finite and have squares that can be summed.

    For a few dense rows, one product of the features with themselves is quicker than their largest and smallest.
    """
    values = X.data if issparse(X) else X
    if values.size <= FEW_FEATURES and float(np.vdot(values, values)) <= LARGEST_FEATURE**2:
        return True
    return not values.size or bool(float(values.max()) <= LARGEST_FEATURE and float(values.min()) >= -LARGEST_FEATURE)


def _is_plainly_valid(estimator: Any, X: Any) -> bool:
    """Return whether X obviously passes `validate_data`, which takes longer than a small model's prediction of a row."""
    state = vars(estimator)
    return (
        type(X) is np.ndarray
        and X.dtype in DTYPES
        and X.ndim == 2
        and X.shape[0] > 0
        and "model_" in state
        and "feature_names_in_" not in state
        and X.shape[1] == state["n_features_in_"]
        and not is_mapped(X)  # a file may have been cut short
        and (estimator.device != "cpu" or _in_range(X))  # a device checks the norms of rows, which takes it no time
    )


def check_classes(classes: Array) -> None:
    """Raise ValueError for fewer than two classes."""
    if classes.size < 2:
        raise ValueError(
            f"the number of classes has to be greater than one; got {classes.size} class: {classes.tolist()}. "
            "A classifier needs rows of two classes at least (rows of weight 0 do not count)"
        )


def weighted_rows(X: Matrix, y: Array, sample_weight: Any) -> tuple[Matrix, Array, Array, Array]:
    """Return rows, labels, weights and numbers of the rows of positive weight."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    _check_no_negative(weights)
    counted = np.flatnonzero(weights > 0)
    if not counted.size:
        raise ValueError(f"all {weights.size} rows have weight 0, which counts as absent; give some a weight above 0")
    if counted.size == weights.size:
        return X, y, weights, counted
    return gathered(X, counted), y[counted], weights[counted], counted


def class_probabilities(probabilities: Any, rows: int, n_classes: int) -> Array:
    """Return the probabilities of the classes for each row, checked."""
    P = check_array(probabilities, dtype=np.float64, input_name="probabilities")
    if P.shape != (rows, n_classes):
        raise ValueError(
            f"probabilities must have a column for each class of y, the shape {(rows, n_classes)}, not {P.shape}; classes "
            "that a teacher does not know have columns of 0"
        )
    sums = P.sum(axis=1)
    wrong = np.flatnonzero((P < 0).any(axis=1) | (np.abs(sums - 1) > SUM_ERROR))
    if wrong.size:
        first = wrong[0]
        raise ValueError(
            "probabilities must be 0 or more, with the sum 1 in each row; the smallest of row "
            f"{first} is {P[first].min():.6g}, and their sum {sums[first]:.6g}"
        )
    return P / sums[:, None]


def _check_no_negative(weights: Array) -> None:
    if (weights < 0).any():
        raise ValueError(f"sample weights must be 0 or more; the smallest is {weights.min():.6g}")


def check_positive_weights(weights: Array) -> None:
    """Raise ValueError unless all weights are above 0, for callers that cannot leave rows out."""
    _check_no_negative(weights)
    if (weights == 0).any():
        raise ValueError("rows of weight 0 count as absent; leave them out of X, y and sample_weight")


def class_weights(class_weight: Any, classes: Array, y: Array) -> Array:
    """Return the weight of each class, as in SVC; with "balanced", classes without rows in y have weight 1."""
    weights = np.ones(classes.size)
    if class_weight is None:
        return weights
    known = np.isin(classes, y) if isinstance(class_weight, str) else np.full(classes.size, True)
    weights[known] = compute_class_weight(class_weight, classes=classes[known], y=y)
    if (weights <= 0).any():
        raise ValueError(f"class weights must be above 0; they are {dict(zip(classes.tolist(), weights, strict=True))}")
    return weights


def check_costs(C: float, weights: Array) -> None:
    """Raise ValueError if C times a weight exceeds the range of float64."""
    with np.errstate(over="ignore", under="ignore"):
        smallest, largest = (float(np.float64(C) * weight) for weight in (weights.min(), weights.max()))
    if smallest < np.finfo(np.float64).tiny or not np.isfinite(largest):
        raise ValueError(
            f"C times the weight of a row is between {smallest:g} and {largest:g}, beyond the range of float64; C is {C:g} "
            f"and weights are between {weights.min():g} and {weights.max():g}. Scale the weights to a mean of 1"
        )
