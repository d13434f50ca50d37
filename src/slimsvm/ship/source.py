"""Estimators to artefacts: one of ours or of scikit-learn's SVMs, or a Pipeline of scalers and one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..estimators import MACHINES, imported
from ..estimators.base import KernelMachine
from ..goals import Goal
from ..importers.fronts import in_front
from ..importers.models import is_known
from ..kernels import Custom, Kernel
from ..model import Expansion
from ..text import short
from .artefact import NO_CLASSES, Array, Artefact

#: the most numbers that the points of an artefact may take, written out: 8 GiB
LARGEST = 1 << 30


def artefact_of(model: Any) -> Artefact:
    """Return the function of raw rows that a fitted model computes."""
    if isinstance(model, Artefact):
        return model
    *steps, svm = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    function, goal, classes = _function(svm)
    points = function.points
    # a model without points has one of zeros in generated code
    if max(points.shape[0], 1) * points.shape[1] > LARGEST:
        raise ValueError(
            f"cannot export {points.shape[0]:,} points of {points.shape[1]:,} features, which take more than "
            f"{LARGEST >> 27} GiB written out; train with fewer features or a smaller budget"
        )
    factors, widths = (None, None) if function.metric is None else (function.metric.factors, function.metric.widths)
    written = np.asarray(points.toarray() if issparse(points) else points, dtype=np.float64)
    factors = None if factors is None else np.asarray(factors, dtype=np.float64)
    written, scaling = in_front(steps, function.kernel.name, written, factors)
    artefact = Artefact(
        function.kernel.name,
        _parameters(function.kernel),
        written,
        np.asarray(function.coef, dtype=np.float64),
        np.asarray(function.bias, dtype=np.float64),
        goal,
        classes,
        scaling,
        getattr(svm, "calibration_", None),
        None if widths is None else np.asarray(widths, dtype=np.float64),
    )
    try:
        artefact.check()
    except ValueError as error:
        raise ValueError(f"cannot export this model: {error}. Train it again") from error
    return artefact


def _function(svm: Any) -> tuple[Expansion, Goal, Array]:
    """Return the function of scaled rows, the goal and the classes of a fitted SVM."""
    if isinstance(svm, KernelMachine):
        check_is_fitted(svm)
        return svm.model_, svm.goal_, getattr(svm, "classes_", NO_CLASSES)
    if not is_known(svm):
        ours = ", ".join(kind.__name__ for kind in MACHINES)
        raise ValueError(
            f"cannot export a {type(svm).__name__}; give a fitted {ours}, another kernel machine that compress takes, or a "
            "Pipeline of scalers that ends in one"
        )
    source = imported(svm)
    return source.model, source.goal, source.classes


def _parameters(kernel: Kernel) -> dict[str, float]:
    if isinstance(kernel, Custom):
        raise ValueError(
            f"cannot export a model whose kernel is a function, {short(kernel.function)}: Python code runs in Python only. "
            "Train with one of the kernels that have a name"
        )
    values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}  # type: ignore[arg-type]
    return {name: int(value) if name == "degree" else float(value) for name, value in values.items()}
