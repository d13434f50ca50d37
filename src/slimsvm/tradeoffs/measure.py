"""The costs and errors of a fitted model, as the columns of a row."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..costs import microseconds
from ..estimators import SlimSVC
from ..kernels import Array, Matrix
from ..ship.c import CExporter
from ..ship.source import artefact_of

#: the tables of a C export are made, to count their bytes, if the points have at most this many numbers
LARGEST_TABLES = 1 << 27


def svc_of(model: Any) -> SlimSVC:
    """Return the classifier at the end of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def measure(model: Any, X_test: Matrix, y_test: Array) -> dict[str, Any]:
    """Return size, bytes, microseconds, test error and validation error of a fitted model."""
    svc = svc_of(model)
    error, se = error_rate(model, X_test, y_test)
    return {
        "size": svc.model_.size,
        **table_cost(model),
        "us": microseconds_per_row(model, X_test),
        "error": error,
        "se": se,
        **_validation(svc),
        "kernel_evals": svc.n_kernel_evals_,
        "ended": svc.status_.name.lower(),
    }


def error_rate(model: Any, X: Matrix, y: Array) -> tuple[float, float]:
    """Return the share of misclassified rows, and its standard error."""
    error = float(np.mean(model.predict(X) != y))
    return error, float(np.sqrt(error * (1 - error) / y.size))


def table_cost(model: Any) -> dict[str, int | None]:
    """Return the bytes and multiply-adds of a float32 C export; without one, the bytes of float32 tables."""
    expansion = svc_of(model).model_
    if expansion.size * expansion.points.shape[1] <= LARGEST_TABLES:
        with suppress(ValueError):  # not every kernel can be exported
            cost = CExporter("float32").cost(artefact_of(model))
            return {"bytes": cost.flash, "multiply_adds": cost.multiply_adds}
    return {"bytes": expansion.nbytes, "multiply_adds": None}


def microseconds_per_row(model: Any, X: Matrix) -> float:
    """Return the time per row when all rows of X are predicted at once, the shortest of seven runs."""
    return microseconds(partial(model.predict, X), calls=7, seconds=np.inf) / X.shape[0]


def _validation(svc: SlimSVC) -> dict[str, Any]:
    """Return the path's columns for the chosen model; empty for models without a path."""
    if svc.path_ is None or svc.budget is None:
        return {"path": ""}
    step = svc.path_.best(int(svc.budget))
    return {
        "validation_error": step.error,
        "validation_se": step.standard_error,
        "n_validation": svc.path_.n_validation,
        "path": " ".join(f"{step.size}:{step.error:.6g}" for step in svc.path_),
    }
