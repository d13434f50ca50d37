"""What a small model should reach on each row: the labels' demands, or the outputs of a full model."""

from __future__ import annotations

from ..goals.demands import Demands
from ..model import Expansion, Task


def wanted(task: Task, model: Expansion | None, *, or_labels: bool = False) -> Demands:
    """Return what the full model gives (`Goal.followed`), or without one what the labels demand.

    A classifier that is wrong on every row cannot be followed: that is an error, or with `or_labels` the labels are used.
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
