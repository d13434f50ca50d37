"""Any fitted kernel machine, of slimsvm or of another library, as a function."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..importers.imported import NO_CLASSES, Imported
from ..importers.models import import_model
from .base import KernelMachine

#: parameters of an estimator that belong to the search for a small model, and not to the function
SEARCH = ("budget", "tolerance", "reducer", "validation_fraction", "device", "random_state", "multiclass", "calibration")
#: the warning for a model with probabilities
UNCALIBRATED = (
    "calibration={name!r} is not kept, and the small model has no predict_proba; put it into CalibratedClassifierCV, or "
    "fit a SlimSVC with a budget and calibration"
)


def imported(model: Any) -> Imported:
    """Return the function of a fitted kernel machine, of slimsvm or of another library."""
    if not isinstance(model, KernelMachine):
        return import_model(model)
    check_is_fitted(model)
    params = {name: value for name, value in model.get_params(deep=False).items() if name not in SEARCH}
    params["trainer"] = params["trainer"] or "smo"  # so that the small model can be fitted again
    classes = getattr(model, "classes_", NO_CLASSES)
    calibrated = getattr(model, "calibration", None)
    lost = (UNCALIBRATED.format(name=calibrated),) if calibrated else ()
    return Imported(model.model_, model.goal_, classes, model.n_features_in_, params, lost)
