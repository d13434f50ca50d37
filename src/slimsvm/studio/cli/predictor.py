"""A model as `predict` uses it. Small work is done without scikit-learn and scipy, whose import takes a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .parse import PICKLES, as_scalers_take, read_model, read_model_and_rows
from .tasks import labels_of, task_of

#: up to this product of the rows' numbers and the support vectors, the runtime on one core takes less time than the import
#: of scikit-learn, whose estimators use all cores
LIGHT_WORK = 1 << 28


@dataclass(frozen=True)
class Predictor:
    """A model as functions of rows; None for functions that the model does not have."""

    task: str
    predict: Callable[[Any], Any]
    scores: Callable[[Any], Any] | None
    proba: Callable[[Any], Any] | None
    classes: Any


def open_predictor(path: Path, data: Path, trust: bool, label: str | None, split: str) -> tuple[Predictor, Any, Any]:
    """Return the model in a file, rows of its width, and their labels, if any."""
    from ...ship.slim import read_slim

    artefact = None if path.suffix.lower() in PICKLES else read_slim(path)
    # estimators check the rows of partial kernels, and know the columns of tables that the function does not read
    if artefact is None or artefact.spec.partial or artefact.preparation is not None:
        model, X, y = read_model_and_rows(path, data, trust, labels=False, target=label, split=split)
        return _of_estimator(model), X, y
    import numpy as np

    from ...files.columns import Wanted
    from ...files.datasets import read_table

    artefact.check_rows("the command line")
    predictor = _of_artefact(artefact)
    X, y, _ = read_table(data, Wanted(False, label, artefact.features, artefact.names or None), split)
    y = labels_of(predictor.task, y)
    if isinstance(X, np.ndarray) and X.size * artefact.size <= LIGHT_WORK:
        return predictor, X, y
    model = read_model(path, trust)
    return _of_estimator(model), as_scalers_take(model, X), y


def _of_artefact(artefact: Any) -> Predictor:
    from ...ship.runtime import Runtime

    run = Runtime(artefact)
    task = {"regression": "regress", "novelty": "novelty"}.get(artefact.goal.name, "classify")
    return Predictor(
        task,
        run,
        None if task == "regress" else run.scores,
        None if artefact.calibration is None else run.proba,
        artefact.classes,
    )


def _of_estimator(model: Any) -> Predictor:
    return Predictor(
        task_of(model),
        model.predict,
        getattr(model, "decision_function", None),
        getattr(model, "predict_proba", None),
        getattr(model, "classes_", None),
    )
