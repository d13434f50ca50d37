"""What is around a model that is shrunk: the Pipeline that it is the last step of."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from ..selection import itself
from .base import Report


@dataclass(frozen=True)
class Surroundings:
    """Who is told of progress, and what comes before the model, which budgets of bytes and time include."""

    report: Report
    deployed: Callable[[Any], Any] = itself  # from the model to what predicts raw rows
    raw: Any = None  # rows before the transformers; None without any
    scaler_bytes: int = 0  # of the C tables of the transformers

    def within(self, pipeline: Pipeline, X: Any) -> Surroundings:
        """Return those of the last step of a Pipeline in these surroundings."""
        raw = X if self.raw is None else self.raw
        size = self.scaler_bytes + scaler_bytes([step for _, step in pipeline.steps[:-1]])
        return Surroundings(self.report, lambda last: self.deployed(ending_in(pipeline, last)), raw, size)


def ending_in(pipeline: Pipeline, last: Any) -> Pipeline:
    """Return the Pipeline with another last step; it shares the transformers, fitted as they are."""
    changed = copy.copy(pipeline)
    changed.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], last)]
    return changed


def scaler_bytes(transformers: list[Any]) -> int:
    """Return what the C export needs at most for scalers: a centre and a scale for each feature, and limits of a clip."""
    features = max((getattr(each, "n_features_in_", 0) for each in transformers), default=0)
    clips = any(getattr(each, "clip", False) for each in transformers)
    return 4 * features * (4 if clips else 2)
