"""The estimators and their goals, for readers and writers of fitted models."""

from __future__ import annotations

from typing import Any

from ..goals import CLASSIFIERS, Novelty, Regression
from ..importers.imported import Imported
from .one_class import SlimOneClassSVM
from .svc import SlimSVC
from .svr import SlimSVR

#: the goals that a fitted estimator may have
MACHINES: dict[type[Any], tuple[type[Any], ...]] = {
    SlimSVC: tuple(CLASSIFIERS.values()),
    SlimSVR: (Regression,),
    SlimOneClassSVM: (Novelty,),
}


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
