"""The costs and errors of a fitted model, as the columns of a row."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from sklearn.pipeline import Pipeline

from ...clock import microseconds
from ...kernels import Array, Matrix
from ...ship.c import CExporter
from ...ship.source import artefact_of
from .tasks import CLASSIFY, TaskKind

#: the tables of a C export are made, to count their bytes, if the points have at most this many numbers
LARGEST_TABLES = 1 << 27


def machine_of(model: Any) -> Any:
    """Return the kernel machine at the end of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def measure(model: Any, X_test: Matrix, y_test: Array, task: TaskKind = CLASSIFY, full: Any = None) -> dict[str, Any]:
    """Return size, bytes, microseconds, test error and validation error of a fitted model."""
    machine = machine_of(model)
    error, se = task.error_of(model, X_test, y_test, full)
    return {
        "size": machine.model_.size,
        **table_cost(model),
        "us": microseconds_per_row(model, X_test),
        "error": error,
        "se": se,
        **_validation(machine),
        "kernel_evals": machine.n_kernel_evals_,
        "ended": machine.status_.name.lower(),
    }


def table_cost(model: Any) -> dict[str, int | None]:
    """Return the bytes and multiply-adds of the exported C; without one, the bytes of the model's numbers as float32."""
    expansion = machine_of(model).model_
    if expansion.point_numbers <= LARGEST_TABLES:
        with suppress(ValueError):  # not every kernel can be exported
            cost = CExporter(expansion.precision).cost(artefact_of(model))
            return {"bytes": cost.bytes, "multiply_adds": cost.multiply_adds}
    return {"bytes": 4 * (expansion.point_numbers + expansion.weights.size + expansion.bias.size), "multiply_adds": None}


def microseconds_per_row(model: Any, X: Matrix) -> float:
    """Return the time per row when all rows of X are predicted at once, the shortest of seven runs or of those in 0.1 s.

    Seven quick runs alone could all fall into a moment in which another program has the processor.
    """
    return microseconds(partial(model.predict, X), calls=1000, seconds=0.1, least=7) / X.shape[0]


def _validation(machine: Any) -> dict[str, Any]:
    """Return the path's columns for the chosen model; empty for models without a path."""
    if machine.path_ is None or machine.path_.kept is None:
        return {"path": ""}
    step = machine.path_[machine.path_.kept]
    return {
        "validation_error": step.error,
        "validation_se": step.standard_error,
        "n_validation": machine.path_.n_validation,
        "path": " ".join(f"{step.size}:{step.error:.6g}" for step in machine.path_),
    }
