"""Tuning: kernel width, C and scaling of a small model, in limited time."""

from .result import TuningProgress, TuningResult
from .tune import tune

__all__ = ["TuningProgress", "TuningResult", "tune"]
