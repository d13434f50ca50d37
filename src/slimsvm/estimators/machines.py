"""From fitted models to functions and back: any kernel machine as a function, and a function as an estimator."""

from __future__ import annotations

from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..goals import CLASSIFIERS, Novelty, Regression
from ..importers.models import NO_CLASSES, Imported, import_model
from .base import KernelMachine
from .one_class import SlimOneClassSVM
from .svc import SlimSVC
from .svr import SlimSVR

#: what `compress` and `load` return
Fitted = SlimSVC | SlimSVR | SlimOneClassSVM | Pipeline | TransformedTargetRegressor

#: the goals that a fitted estimator may have
MACHINES: dict[type[Any], tuple[type[Any], ...]] = {
    SlimSVC: tuple(CLASSIFIERS.values()),
    SlimSVR: (Regression,),
    SlimOneClassSVM: (Novelty,),
}

#: parameters of an estimator that belong to the search for a small model, and not to the function
SEARCH = (
    "budget",
    "precision",
    "tolerance",
    "reducer",
    "validation_fraction",
    "device",
    "random_state",
    "multiclass",
    "calibration",
)
#: the warning for a model with probabilities
UNCALIBRATED = (
    "calibration={name!r} is not kept, and the small model has no predict_proba; give compress calibration={name!r}, and "
    "rows that the model was not trained on, for honest probabilities"
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


def unfitted(source: Imported, **settings: Any) -> Any:
    """Return an estimator with the parameters of an imported function, and other settings."""
    kind = next(kind for kind, goals in MACHINES.items() if type(source.goal) in goals)
    return kind(**(source.params | settings))


def machine_of(source: Imported) -> Any:
    """Return a fitted estimator that computes an imported function."""
    estimator = unfitted(source)
    estimator.n_features_in_ = source.n_features
    estimator.model_, estimator.goal_, estimator.path_ = source.model, source.goal, None
    if source.goal.n_classes:
        estimator.classes_ = source.classes
    if source.calibration is not None:
        estimator.calibration, estimator.calibration_ = source.calibration.name, source.calibration
    return estimator
