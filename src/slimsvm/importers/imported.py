"""The result of every importer: the function of a fitted model, and the model's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..calibration import Calibration
from ..goals import Goal
from ..kernels import Array
from ..model import Expansion

#: for models whose predictions are values
NO_CLASSES = np.empty(0)


@dataclass(frozen=True)
class Imported:
    """A fitted model of another library: the function, its classes and its parameters."""

    model: Expansion
    goal: Goal
    classes: Array  # empty if predictions are values
    n_features: int
    params: dict[str, Any]  # of the estimator of this goal: SlimSVC, SlimSVR or SlimOneClassSVM
    lost: tuple[str, ...] = ()  # sentences: what a small model cannot keep, and what to do instead
    calibration: Calibration | None = None  # from scores to probabilities
    squared: bool = False  # whether C = params["C"] belongs to squared errors; otherwise to absolute ones, as SVR's does
