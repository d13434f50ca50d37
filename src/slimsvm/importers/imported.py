"""What every importer returns: the function inside a fitted model, and what the model was made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..calibration import Calibration
from ..goals import Goal
from ..kernels import Array
from ..model import Expansion

#: where predictions are values there are no classes
NO_CLASSES = np.empty(0)


@dataclass(frozen=True)
class Imported:
    """A fitted model from elsewhere: the function, its classes, and the parameters it was made with."""

    model: Expansion
    goal: Goal
    classes: Array  # empty where predictions are values
    n_features: int
    params: dict[str, Any]  # of the estimator for the goal: SlimSVC, SlimSVR or SlimOneClassSVM
    lost: tuple[str, ...] = ()  # what a small model cannot keep, and what to do instead, in sentences
    calibration: Calibration | None = None  # from scores to probabilities
    squared: bool = False  # whether C = params["C"] belongs to squared errors; otherwise to absolute ones, as SVR's does
