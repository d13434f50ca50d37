"""Tuning: kernel width, C and scaling of a small model, in limited time."""

from .progress import TuningProgress
from .result import TuningResult
from .tune import tune

__all__ = ["TuningProgress", "TuningResult", "tune"]
