"""The demands on a small model: those of the labels, or of a full model's outputs."""

from __future__ import annotations

from ..goals.demands import Demands
from ..model import Expansion, Task


def wanted(task: Task, model: Expansion | None, *, or_labels: bool = False) -> Demands:
    """Return the demands of the full model's outputs (`Goal.followed`), or without a full model those of the labels.

    A classifier that gets every row wrong raises ValueError; with `or_labels` the labels are used instead.
    """
    if model is None:
        return task.demands
    outputs = model.on(task.rows)
    try:
        return task.goal.followed(task.targets, outputs)
    except ValueError:
        if or_labels:
            return task.demands
        raise
