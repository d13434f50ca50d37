"""Margin targets: the margin that a small model should reach on each row."""

from __future__ import annotations

import numpy as np

from ..kernels import Array
from ..model import Expansion, Task


def margin_targets(task: Task, model: Expansion | None, *, or_labels: bool = False) -> Array:
    """Return h_ic = min(1, y_ic f_c(x_i)), and -inf where the full model is wrong or the row has no part in that output.

    Without a full model it is 1 wherever the row has a part. A full model that is wrong on every row is an error, or with
    `or_labels` is treated as none.
    """
    if model is None:
        return np.where(task.targets != 0, 1.0, -np.inf)
    margins = task.targets * model.on(task.rows)
    if not (margins > 0).any() and (margins < 0).any():
        if or_labels:
            return margin_targets(task, None)
        raise ValueError(
            "the full model puts no row into its class, so there is nothing to follow; check that X and y are what it was "
            "trained on, and its kernel parameters"
        )
    return np.where(margins > 0, np.minimum(margins, 1.0), -np.inf)
