"""Estimators to artefacts: a SlimSVC, SVC or NuSVC, or a Pipeline of scalers and one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from ..estimators import SlimSVC, imported
from ..files.container import short
from ..files.native import NOTHING
from ..kernels import Custom, Kernel
from .artefact import Array, Artefact, Scaling


def artefact_of(model: Any) -> Artefact:
    """The function of raw rows that a fitted model computes."""
    if isinstance(model, Artefact):
        return model
    *steps, svc = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if not isinstance(svc, SlimSVC | SVC | NuSVC):
        raise ValueError(
            f"cannot export a {type(svc).__name__}; give a fitted SlimSVC, SVC or NuSVC, or a Pipeline of scalers that "
            "ends in one"
        )
    source = imported(svc)
    points = source.model.points
    artefact = Artefact(
        source.model.kernel.name,
        _parameters(source.model.kernel),
        np.asarray(points.toarray() if issparse(points) else points, dtype=np.float64),
        np.asarray(source.model.coef, dtype=np.float64),
        np.asarray(source.model.bias, dtype=np.float64),
        source.coding,
        source.classes,
        _scaling([step for step in steps if step not in NOTHING], source.n_features),
    )
    _check_finite(artefact)
    return artefact


def _parameters(kernel: Kernel) -> dict[str, float]:
    if isinstance(kernel, Custom):
        raise ValueError(
            f"cannot export a model whose kernel is a function, {short(kernel.function)}: Python code runs in Python only. "
            "Train with one of the kernels that have a name"
        )
    values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}  # type: ignore[arg-type]
    return {name: int(value) if name == "degree" else float(value) for name, value in values.items()}


def _scaling(scalers: list[Any], n_features: int) -> Scaling | None:
    """One scaling for all the scalers in a row."""
    if not scalers:
        return None
    whole = Scaling.affine(np.zeros(n_features), np.ones(n_features))
    for scaler in scalers:
        if type(scaler) not in SCALINGS:
            known = ", ".join(kind.__name__ for kind in SCALINGS)
            raise ValueError(
                f"cannot export a Pipeline with a {type(scaler).__name__}; there are {known}. Transform the rows before, "
                "or convert the whole Pipeline by skl2onnx (slimsvm.io.converter.register)"
            )
        check_is_fitted(scaler)
        whole = whole.then(SCALINGS[type(scaler)](scaler, n_features))
    return whole


def _inverse(scale: Any, n_features: int) -> Array:
    return np.ones(n_features) if scale is None else 1.0 / np.asarray(scale)


def _standard(scaler: Any, n: int) -> Scaling:
    centre = np.zeros(n) if not scaler.with_mean else scaler.mean_
    return Scaling.affine(centre, _inverse(scaler.scale_, n))


def _min_max(scaler: Any, n: int) -> Scaling:
    ends = scaler.feature_range if scaler.clip else (-np.inf, np.inf)
    low, high = (np.full(n, float(end)) for end in ends)
    return Scaling(-scaler.min_ / scaler.scale_, scaler.scale_, low, high)


def _max_abs(scaler: Any, n: int) -> Scaling:
    end = np.full(n, 1.0 if getattr(scaler, "clip", False) else np.inf)
    return Scaling(np.zeros(n), _inverse(scaler.scale_, n), -end, end)


def _robust(scaler: Any, n: int) -> Scaling:
    centre = np.zeros(n) if scaler.center_ is None else scaler.center_
    return Scaling.affine(centre, _inverse(scaler.scale_, n))


SCALINGS: dict[Any, Callable[[Any, int], Scaling]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
}


def _check_finite(a: Artefact) -> None:
    parts = {"points": a.points, "coefficients": a.coef, "bias": a.bias}
    parts |= {f"kernel parameter {name}": np.asarray(value) for name, value in a.parameters.items()}
    if a.scaling is not None:
        parts |= {"scaler's centre": a.scaling.centre, "scaler's scale": a.scaling.scale}
    for name, values in parts.items():
        if not np.isfinite(values).all():
            count = int((~np.isfinite(values)).sum())
            raise ValueError(f"cannot export a model with {count} non-finite values in its {name}; train it again")
