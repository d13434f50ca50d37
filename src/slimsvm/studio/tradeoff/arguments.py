"""Checks of the arguments of `tradeoff`, before the first run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import type_of_target

from ...budget import Budget, order_of
from ...checks import is_count
from ...importers.around import SCALES
from ...kernels import Array, Matrix
from ...text import short
from .tasks import CLASSIFY, TaskKind

#: settings of an estimator that the trade-off itself varies
VARIED = ("budget", "tolerance", "trainer", "reducer", "random_state")


def checked_rows(X: Any, y: Any, width: int | None = None, task: TaskKind = CLASSIFY) -> tuple[Matrix, Array]:
    """Return rows and labels in the form that all runs take; zeros in place of labels for a task without them."""
    forms: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
    if task.has_labels:
        X, y = check_X_y(X, y, **forms, y_numeric=not task.has_classes)
        check_classes(y, task)
    else:
        X = check_array(X, **forms)
        y = np.zeros(X.shape[0], dtype=np.int64)
    if width is None and X.shape[0] < 4:
        raise ValueError(
            f"a trade-off trains on some rows and tests on others; {X.shape[0]} rows are too few, give 4 or more"
        )
    if width not in (None, X.shape[1]):
        raise ValueError(f"the test rows have {X.shape[1]} features and the rows have {width}")
    return X, y


def check_classes(y: Array, task: TaskKind) -> None:
    """Raise ValueError for labels that are no classes, if the task has classes."""
    if task.has_classes and type_of_target(y) not in ("binary", "multiclass"):
        raise ValueError(
            f"the labels are no classes but {type_of_target(y)}, such as {short(y.tolist()[0])}; classes are words or "
            "whole numbers. For values, give task='regress' (--task regress)"
        )


def check_settings(settings: Mapping[str, Any], scale: str, test_size: float, task: TaskKind = CLASSIFY) -> None:
    """Raise ValueError for settings that no run could take."""
    known = sorted(set(task.estimator().get_params()) - set(VARIED))
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ValueError(f"a trade-off has no setting {', '.join(unknown)}; settings for all runs are {', '.join(known)}")
    if settings.get("kernel") == "precomputed":
        raise ValueError("a trade-off splits rows, not kernel matrices; give rows and another kernel than precomputed")
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}; there are {', '.join(SCALES)}")
    if not isinstance(test_size, Real) or not 0 < float(test_size) < 1:
        raise ValueError(f"test_size must be a share of the rows between 0 and 1, not {test_size!r}")


def check_budgets(budgets: Any) -> list[int | str]:
    """Return the budgets, ascending: numbers of support vectors, then bytes, then times."""
    given = list(budgets) if isinstance(budgets, Iterable) and not isinstance(budgets, str) else []
    limits = [Budget.of(budget) for budget in given]
    if not limits or "fraction" in {limit.amount[0] for limit in limits}:
        raise ValueError(
            "budgets must be numbers of support vectors from 1 on, such as [8, 16, 32], bytes such as '4 KB', or times "
            f"such as '20 us', not {budgets!r}"
        )
    return sorted({limit.count or str(limit) for limit in limits}, key=order_of)


def check_seeds(seeds: Any) -> list[int]:
    """Return the seeds: 0, 1, ... for a number of seeds, or the given ones."""
    numbers = list(range(int(seeds))) if is_count(seeds) else list(seeds) if isinstance(seeds, Iterable) else []
    if not numbers or not all(is_count(seed, 0) for seed in numbers):
        raise ValueError(f"seeds must be a number of seeds from 1 on, or a list of whole numbers from 0 on, not {seeds!r}")
    return [int(seed) for seed in dict.fromkeys(numbers)]
