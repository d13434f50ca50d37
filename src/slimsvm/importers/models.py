"""Fitted models of other libraries. A new kind is one file with two functions, and a line in `IMPORTERS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .gaussian_process import import_gaussian_process, is_gaussian_process
from .imported import Imported
from .kernel_ridge import import_kernel_ridge, is_kernel_ridge
from .lookalikes import import_lookalike, is_lookalike
from .sklearn import import_svm, is_svm

#: description -> (whether a model is of this kind, its importer); the first that matches is used
IMPORTERS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Imported]]] = {
    "an SVC, NuSVC, SVR, NuSVR or OneClassSVM of scikit-learn": (is_svm, import_svm),
    "a KernelRidge": (is_kernel_ridge, import_kernel_ridge),
    "a GaussianProcessRegressor": (is_gaussian_process, import_gaussian_process),
    "an SVM with the attributes of scikit-learn's": (is_lookalike, import_lookalike),
}


def is_known(model: Any) -> bool:
    """Return whether there is an importer for a model."""
    return any(known(model) for known, _ in IMPORTERS.values())


def import_model(model: Any) -> Imported:
    """Return the expansion inside a fitted kernel machine of another library."""
    for known, read in IMPORTERS.values():
        if known(model):
            return read(model)
    raise ValueError(
        f"cannot shrink a {type(model).__name__}; give a fitted SlimSVC, SlimSVR or SlimOneClassSVM, "
        f"{', '.join(IMPORTERS)}, or a Pipeline, search or TransformedTargetRegressor around one of them. "
        "slimsvm.distill makes a small model of any other classifier or regressor"
    )
