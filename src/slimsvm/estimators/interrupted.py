"""Ctrl-C: the call ends with KeyboardInterrupt, and the best model found so far is kept."""

from __future__ import annotations

from typing import Any

from ..model import Status
from ..selection.path import Path


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a call after a model had been found: small models, or an unfinished exact one of a single output.

    It is a KeyboardInterrupt, so loops around the call end too.

    Attributes
    ----------
    best : SlimSVC or Pipeline
        What the call would have returned with the models found so far: the estimator of `fit`, the small model of
        `compress`. The `status_` of the SlimSVC is Status.INTERRUPTED.

    Examples
    --------
    >>> from slimsvm import Interrupted, compress
    >>> def small_model(model, X, y):
    ...     try:
    ...         return compress(model, X, y, budget=50)
    ...     except Interrupted as stop:
    ...         return stop.best
    """

    def __init__(self, best: Any = None) -> None:
        super().__init__(f"{Status.INTERRUPTED.value}, which is kept")
        self.best = best


def was_interrupted(path: Path | None) -> bool:
    """Return whether Ctrl-C ended a path, or the work on the model that was chosen from it."""
    return path is not None and path.status is Status.INTERRUPTED
