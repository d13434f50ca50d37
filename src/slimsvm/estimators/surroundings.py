"""The surroundings of a model that is shrunk: the Pipeline of which it is the last step."""

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
    """The progress report, and the transformers before the model, which count in budgets of bytes and time."""

    report: Report
    deployed: Callable[[Any], Any] = itself  # from the model to a Pipeline that predicts raw rows
    raw: Any = None  # rows before the transformers; None without any
    scaler_bytes: int = 0  # of the C tables of the transformers

    def within(self, pipeline: Pipeline, X: Any) -> Surroundings:
        """Return the surroundings of the last step of a Pipeline."""
        raw = X if self.raw is None else self.raw
        size = self.scaler_bytes + scaler_bytes([step for _, step in pipeline.steps[:-1]])
        return Surroundings(self.report, lambda last: self.deployed(ending_in(pipeline, last)), raw, size)


def ending_in(pipeline: Pipeline, last: Any) -> Pipeline:
    """Return the Pipeline with another last step; it shares the fitted transformers."""
    changed = copy.copy(pipeline)
    changed.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], last)]
    return changed


def scaler_bytes(transformers: list[Any]) -> int:
    """Return the most bytes of scalers in C: a centre, a scale and, for clipping, two limits for each feature."""
    features = max((getattr(each, "n_features_in_", 0) for each in transformers), default=0)
    clips = any(getattr(each, "clip", False) for each in transformers)
    return 4 * features * (4 if clips else 2)
