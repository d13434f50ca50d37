"""Estimators to artefacts: a SlimSVC, SVC or NuSVC, or a Pipeline of scalers and one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC

from ..estimators import SlimSVC, imported
from ..importers.scalers import NOTHING, scaling_of
from ..kernels import Custom, Kernel
from ..text import short
from .artefact import Artefact

#: the most numbers that the points of an artefact may take, written out: 8 GiB
LARGEST = 1 << 30


def artefact_of(model: Any) -> Artefact:
    """Return the function of raw rows that a fitted model computes."""
    if isinstance(model, Artefact):
        return model
    *steps, svc = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if not isinstance(svc, SlimSVC | SVC | NuSVC):
        raise ValueError(
            f"cannot export a {type(svc).__name__}; give a fitted SlimSVC, SVC or NuSVC, or a Pipeline of scalers that "
            "ends in one"
        )
    source = imported(svc)
    if source.goal.name == "dag" and source.goal.n_classes > 2:
        raise ValueError(
            "cannot export a model with multiclass='dag': exported code decodes by votes or by the largest output. "
            "Compress or train it with multiclass='ovr' or 'ovo'"
        )
    points = source.model.points
    # a model without points has one of zeros in generated code
    if max(points.shape[0], 1) * points.shape[1] > LARGEST:
        raise ValueError(
            f"cannot export {points.shape[0]:,} points of {points.shape[1]:,} features, which take more than "
            f"{LARGEST >> 27} GiB written out; train with fewer features or a smaller budget"
        )
    artefact = Artefact(
        source.model.kernel.name,
        _parameters(source.model.kernel),
        np.asarray(points.toarray() if issparse(points) else points, dtype=np.float64),
        np.asarray(source.model.coef, dtype=np.float64),
        np.asarray(source.model.bias, dtype=np.float64),
        source.goal,
        source.classes,
        scaling_of([step for step in steps if step not in NOTHING], source.n_features),
    )
    try:
        artefact.check()
    except ValueError as error:
        raise ValueError(f"cannot export this model: {error}. Train it again") from error
    return artefact


def _parameters(kernel: Kernel) -> dict[str, float]:
    if isinstance(kernel, Custom):
        raise ValueError(
            f"cannot export a model whose kernel is a function, {short(kernel.function)}: Python code runs in Python only. "
            "Train with one of the kernels that have a name"
        )
    values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}  # type: ignore[arg-type]
    return {name: int(value) if name == "degree" else float(value) for name, value in values.items()}
