"""The tasks of `--task`: the estimator, its labels, its own options, and the measure of how good a model is.

Nothing here imports NumPy or scikit-learn until it is needed, so that help and version are printed at once.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from typing import Any

from ...text import strict_number
from .arguments import ParameterError

#: labels with more distinct values than this, and fewer rows for each than that, are probably values and not classes
MANY_CLASSES, FEW_ROWS = 20, 10

#: predictions of models without classes
PREDICTIONS = {"regress": "values", "novelty": "1 for rows like the training rows, -1 for novel ones"}
#: settings that only some tasks have: option and tasks
OPTIONS = {
    "C": ("-C", ("classify", "regress")),
    "class_weight": ("--balanced", ("classify",)),
    "epsilon": ("--epsilon", ("regress",)),
    "nu": ("--nu", ("novelty",)),
    "calibration": ("--calibration", ("classify",)),
    "multiclass": ("--multiclass", ("classify",)),
}


def own_settings(task: str, **settings: Any) -> dict[str, Any]:
    """Return the settings, and refuse those that the task has no use for."""
    for name in settings:
        option, tasks = OPTIONS.get(name, ("", (task,)))
        if task not in tasks:
            raise ParameterError(f"{option} is for --task {' or '.join(tasks)}, and this is {task}", param_hint=option)
    return settings


def make_estimator(task: str, **settings: Any) -> Any:
    """Return the estimator of a task."""
    from ...estimators import SlimOneClassSVM, SlimSVC, SlimSVR

    kinds = {"classify": SlimSVC, "regress": SlimSVR, "novelty": SlimOneClassSVM}
    return kinds[task](**settings)


def check_methods(task: str, svm: Any) -> None:
    """Refuse a task, trainer, reducer, kernel and budget that do not go together, before any data is read."""
    import numpy as np

    from ...estimators.methods import check_methods, make_reducer, make_trainer
    from ...goals import Novelty, OneVsRest, Regression
    from ...kernels import make_kernel

    goals: dict[str, Any] = {"classify": OneVsRest(2), "regress": Regression(), "novelty": Novelty()}
    kernel = make_kernel(svm.kernel, gamma=1.0, degree=svm.degree, coef0=svm.coef0)
    try:
        check_methods(svm, make_trainer(svm), make_reducer(svm), kernel, goals[task], np.ones(1))
    except ValueError as error:
        raise ParameterError(str(error)) from error


def task_of(model: Any) -> str:
    """Return the task of a fitted model, ours or scikit-learn's."""
    from sklearn.base import is_outlier_detector, is_regressor

    return "novelty" if is_outlier_detector(model) else "regress" if is_regressor(model) else "classify"


def labels_of(task: str, y: Any) -> Any:
    """Return labels as the task takes them: numbers for regression, none for novelty detection."""
    if task == "novelty" or y is None:
        return None
    if task == "classify" or y.dtype.kind in "biuf":
        return y
    import numpy as np

    numbers = [strict_number(text) for text in y.tolist()]  # a file with numbers beyond 2^53 has them as text
    if None in numbers:
        raise ParameterError(
            f"the target {str(y[numbers.index(None)])!r} is not a number; regression needs numbers: name their column by "
            "--label, or classify",
            param_hint="DATA",
        )
    return np.array(numbers, dtype=np.float64)


def check_classes(y: Any, columns: Sequence[Any] = ()) -> None:
    """Refuse numbers with fractions for classes, and warn of many classes with few rows: often the wrong column.

    `columns` are others that have words only, and may be the labels.
    """
    import numpy as np

    words = [f"--label {shlex.quote(str(name))}" for name in columns]
    known = f" ({' or '.join(words)} has words)" if words else ""
    where = f"name the column of the labels by --label{known}, or give --task regress if they are values"
    if y.dtype.kind == "f" and (y != np.rint(y)).any():
        value = float(y[y != np.rint(y)][0])
        raise ParameterError(
            f"{value:g} is no class: classes are words or whole numbers. In a CSV file, {where}", param_hint="DATA"
        )
    count = np.unique(y).size
    if count > MANY_CLASSES and y.size < FEW_ROWS * count:
        warnings.warn(f"{count} classes in {y.size} rows; if these labels are not classes, {where}", stacklevel=2)
        warnings.filterwarnings("ignore", message="The number of unique classes")  # scikit-learn says the same


def check_multiclass(multiclass: str | None, y: Any) -> None:
    """Refuse a choice of outputs for two classes, which have one output."""
    import numpy as np

    if multiclass is not None and np.unique(y).size < 3:
        raise ParameterError("it would do nothing here: these are two classes, which have one output", "--multiclass")


def quality(task: str, predicted: Any, y: Any) -> tuple[str, str] | None:
    """Return what is measured and the figure: accuracy, R^2, or the share of rows called novel; None without labels."""
    if task == "novelty":
        return "novel", _share(int((predicted < 0).sum()), len(predicted))
    if y is None:
        return None
    if task == "classify":
        return "accuracy", _share(int((predicted == y).sum()), len(y))
    import numpy as np

    y = np.asarray(y, dtype=np.float64)
    error, spread = float(np.mean((predicted - y) ** 2)), float(np.var(y))
    rms = f"root mean squared error {np.sqrt(error):.4g}"
    return "R^2", f"{1 - error / spread:.4f} ({rms})" if spread else f"undefined, all targets are equal ({rms})"


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.2f} % ({count:,} of {total:,})"
