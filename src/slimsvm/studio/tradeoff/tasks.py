"""The tasks of a trade-off: the estimator of each, what counts as its error on test rows, and the words for both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...estimators import SlimOneClassSVM, SlimSVC, SlimSVR
from ...kernels import Array, Matrix
from .rows import Row, settings_of


def wrong_classes(model: Any, X: Matrix, y: Array, full: Any) -> Array:  # noqa: ARG001
    """Return 1 for each misclassified row, else 0."""
    return (model.predict(X) != y).astype(np.float64)


def unexplained(model: Any, X: Matrix, y: Array, full: Any) -> Array:  # noqa: ARG001
    """Return the squared error of each row as a share of the variance of the targets: the mean is 1 - R^2."""
    return np.square(model.predict(X) - y) / (np.var(y) or 1.0)


def other_verdicts(model: Any, X: Matrix, y: Array, full: Any) -> Array:  # noqa: ARG001
    """Return 1 for each row that is novel to one of this and the full model alone, else 0."""
    return (model.predict(X) != full.predict(X)).astype(np.float64)


def right_rows(error: float) -> str:
    """Return the share of rows without an error."""
    return f"{100 * (1 - error):.1f} %"


def r_squared(error: float) -> str:
    """Return R^2."""
    return f"{1 - error:.3f}"


@dataclass(frozen=True)
class TaskKind:
    """A task: its estimator, its losses, and words for the command line, the page and the model card."""

    name: str
    estimator: Callable[..., Any]
    #: model, rows, labels, full model -> the loss of each row; the test error is their mean
    losses: Callable[[Any, Matrix, Array, Any], Array]
    #: the test error
    error: str
    #: what the share without an error is, as the name of a figure, and how it is written
    quality: str
    written: Callable[[float], str]
    #: a sentence about a model, with its quality in place of {}
    sentence: str
    #: whether labels are classes, and whether there are labels at all
    has_classes: bool = False
    has_labels: bool = True

    def in_words(self, error: float) -> str:
        """Return how good a model with this test error is."""
        return self.sentence.format(self.written(error))

    def spread(self, se: float) -> str:
        """Return the standard error of the quality."""
        return self.written(1 - se)

    def error_of(self, model: Any, X: Matrix, y: Array, full: Any = None) -> tuple[float, float]:
        """Return the test error of a model and its standard error; `full` is the full model, for tasks without labels."""
        losses = self.losses(model, X, y, full)
        return float(losses.mean()), float(losses.std() / np.sqrt(losses.size))


TASKS = {
    kind.name: kind
    for kind in (
        TaskKind(
            "classify",
            SlimSVC,
            wrong_classes,
            error="test error",
            quality="test accuracy",
            written=right_rows,
            sentence="{} of the test rows right",
            has_classes=True,
        ),
        TaskKind(
            "regress",
            SlimSVR,
            unexplained,
            error="unexplained variance",
            quality="R² on test rows",
            written=r_squared,
            sentence="R² of {} on the test rows",
        ),
        TaskKind(
            "novelty",
            SlimOneClassSVM,
            other_verdicts,
            error="disagreement",
            quality="agreement with the full model",
            written=right_rows,
            sentence="agreement with the full model on {} of the test rows",
            has_labels=False,
        ),
    )
}
CLASSIFY = TASKS["classify"]


def task_named(name: Any) -> TaskKind:
    """Return the task of that name."""
    if not isinstance(name, str) or name not in TASKS:
        raise ValueError(f"unknown task {name!r}; there are {', '.join(TASKS)}")
    return TASKS[name]


def task_of_row(row: Row) -> TaskKind:
    """Return the task of the study that a row belongs to; its settings name tasks other than classification."""
    return task_named(settings_of(row).get("task", CLASSIFY.name))


def task_of(estimator: Any) -> TaskKind:
    """Return the task of an estimator, or of the one at the end of a pipeline."""
    from sklearn.base import is_outlier_detector, is_regressor

    return TASKS["novelty" if is_outlier_detector(estimator) else "regress" if is_regressor(estimator) else "classify"]
