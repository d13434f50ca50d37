"""Between estimators and the functions inside them: any fitted kernel machine as a function, a function as an estimator."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..importers.imported import NO_CLASSES, Imported
from ..importers.models import import_model
from .base import KernelMachine
from .one_class import SlimOneClassSVM
from .svc import SlimSVC, classifier_of
from .svr import SlimSVR

#: goal -> the estimator for it; goals of classes have a SlimSVC
ESTIMATORS: dict[str, Any] = {"regression": SlimSVR, "novelty": SlimOneClassSVM}
#: parameters of an estimator of ours that are those of the search for a small model, and not of the function
SEARCH = ("budget", "tolerance", "reducer", "validation_fraction", "device", "random_state", "multiclass", "calibration")
#: what is said of a model with probabilities
UNCALIBRATED = (
    "calibration={name!r} is not kept, and the small model has no predict_proba; put it into CalibratedClassifierCV, or "
    "fit a SlimSVC with a budget and calibration"
)


def imported(model: Any) -> Imported:
    """Return the function inside a fitted kernel machine of ours or of another library."""
    if not isinstance(model, KernelMachine):
        return import_model(model)
    check_is_fitted(model)
    params = {name: value for name, value in model.get_params(deep=False).items() if name not in SEARCH}
    params["trainer"] = params["trainer"] or "smo"  # so that the small model can be fitted again
    classes = getattr(model, "classes_", NO_CLASSES)
    calibrated = getattr(model, "calibration", None)
    lost = (UNCALIBRATED.format(name=calibrated),) if calibrated else ()
    return Imported(model.model_, model.goal_, classes, model.n_features_in_, params, lost)


def unfitted(source: Imported, **settings: Any) -> Any:
    """Return an estimator with the parameters of an imported function, and other settings."""
    return ESTIMATORS.get(source.goal.name, SlimSVC)(**(source.params | settings))


def estimator_of(source: Imported) -> Any:
    """Return a fitted estimator that computes an imported function."""
    if source.goal.n_classes:
        return classifier_of(source)
    estimator = unfitted(source)
    estimator.n_features_in_ = source.n_features
    estimator.model_, estimator.goal_, estimator.path_ = source.model, source.goal, None
    return estimator
