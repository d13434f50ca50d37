"""The small models of a reducer as its paper makes them: from all training rows, without validation rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm import SlimSVC
from slimsvm.model import Expansion, Task
from slimsvm.reducers import Reducer
from slimsvm.rows.host import HostRows


def small_models(full: SlimSVC, X: Any, y: np.ndarray, reducer: Reducer, sizes: Sequence[int]) -> dict[int, Expansion]:
    """Return the largest model of a reducer up to each size, as far as it gets within its time limit."""
    found = {model.size: model for model in all_models(full, X, y, reducer, sizes)}
    fitting = {size: max((at for at in found if at <= size), default=None) for size in sizes}
    return {size: found[at] for size, at in fitting.items() if at is not None}


def all_models(full: SlimSVC, X: Any, y: np.ndarray, reducer: Reducer, sizes: Sequence[int]) -> Iterator[Expansion]:
    """Yield the models of one run."""
    task, model = task_of(full, X, y)
    task = replace(task, run=task.run.limited(reducer.time_limit))
    for small, _ in reducer.models(task, sorted(sizes), model):
        yield small


def task_of(full: SlimSVC, X: Any, y: np.ndarray) -> tuple[Task, Expansion]:
    """Return the task of a reducer, all rows in it, and the full model with the pairs of classes written out."""
    labels = np.searchsorted(full.classes_, y)
    targets = np.asarray(full.goal_.encode(labels))
    task = Task(HostRows(full.model_.kernel, X), targets, np.ones(y.size), np.random.default_rng(0), goal=full.goal_)
    return task, replace(full.model_, coef=np.asarray(full.model_.coef))


def predicted(full: SlimSVC, model: Expansion, X: Any) -> np.ndarray:
    """Return the classes that a small model of `full` predicts."""
    return full.classes_[full.goal_.decode(model(X))]
