"""Fitted models of other libraries. A new kind is one file with two functions, and a line in `IMPORTERS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils.validation import check_is_fitted

from ..goals import Regression
from .gaussian_process import import_gaussian_process, is_gaussian_process
from .imported import Imported
from .kernel_ridge import import_kernel_ridge, is_kernel_ridge
from .lookalikes import import_lookalike, is_lookalike
from .sklearn import import_svm, is_svm


def is_several(model: Any) -> bool:
    """Return whether this is a MultiOutputRegressor."""
    return isinstance(model, MultiOutputRegressor)


def import_several(model: Any) -> Imported:
    """Return the expansion of several targets inside a MultiOutputRegressor: the points of all its regressors."""
    check_is_fitted(model)
    parts = [import_model(each) for each in model.estimators_]
    first, kernels = parts[0], [part.model.kernel for part in parts]
    if any(part.goal.n_classes or part.squared != first.squared for part in parts) or kernels != kernels[:1] * len(parts):
        raise ValueError(
            "cannot join the regressors of a MultiOutputRegressor whose kernels differ, "
            f"{', '.join(sorted({repr(kernel) for kernel in kernels}))}; fit them with one gamma, or shrink each of them"
        )
    stacked: Any = [part.model.points for part in parts]
    if any(map(issparse, stacked)):
        points = sparse_vstack(stacked, format="csr")
        place = np.arange(points.shape[0])
    else:  # a row that several of them have is one point
        points, place = np.unique(np.vstack(stacked), axis=0, return_inverse=True)
    coef, begin = np.zeros((points.shape[0], len(parts))), 0
    for column, part in enumerate(parts):
        np.add.at(coef[:, column], place.ravel()[begin : begin + part.model.size], part.model.coef[:, 0])
        begin += part.model.size
    bias = np.concatenate([part.model.bias for part in parts])
    costs = {"C": float(np.mean([part.params["C"] for part in parts]))}
    goal = Regression(float(first.params["epsilon"]), outputs=len(parts))
    whole = replace(first.model, points=points, coef=coef, bias=bias)
    return replace(first, model=whole, goal=goal, params=first.params | costs)


#: description -> (whether a model is of this kind, its importer); the first that matches is used
IMPORTERS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Imported]]] = {
    "an SVC, NuSVC, SVR, NuSVR or OneClassSVM of scikit-learn": (is_svm, import_svm),
    "a KernelRidge": (is_kernel_ridge, import_kernel_ridge),
    "a GaussianProcessRegressor": (is_gaussian_process, import_gaussian_process),
    "a MultiOutputRegressor of them": (is_several, import_several),
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
