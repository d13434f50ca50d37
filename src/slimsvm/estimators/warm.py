"""warm_start: training that starts from the coefficients of the last fit."""

from __future__ import annotations

from typing import Any

from ..model import Fit
from ..selection import Selection
from ..trainers import TRAINERS


def warm_start(estimator: Any, trainer: Any, selection: Selection) -> Any:
    """Return the coefficients (n, q) of the last fit to start from; None for the first fit, or without `warm_start`."""
    if not estimator.warm_start:
        return None
    if not getattr(trainer, "starts_warm", False):
        able = sorted(name for name, kind in TRAINERS.items() if getattr(kind, "starts_warm", False))
        raise ValueError(
            f"warm_start=True starts training from earlier coefficients, but {type(trainer).__name__} cannot; the trainers "
            f"that can are {able}. Give one of them, or warm_start=False"
        )
    start = getattr(estimator, "_start", None)
    shape = selection.labels.size, selection.goal.outputs
    if start is not None and tuple(start.shape) != shape:
        raise ValueError(
            f"warm_start=True starts from the coefficients of the last fit, {start.shape[0]} rows and {start.shape[1]} "
            f"outputs, but this one has {shape[0]} rows and {shape[1]} outputs; give the same rows, or fit clone(estimator)"
        )
    return start


def keep_start(estimator: Any, fit: Fit) -> None:
    """Keep the coefficients of all rows if the next fit may start from them."""
    estimator.__dict__.pop("_start", None)
    if estimator.warm_start:
        estimator._start = fit.dual
