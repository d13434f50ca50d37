"""A .slim file as an artefact, without scikit-learn and scipy, whose import takes longer than many predictions.

`files.native` reads every .slim file, as an estimator. This file reads only the function.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..calibration import CALIBRATIONS, Conformal
from ..files.container import MAGIC, Entry, container_bytes, entry_of, unpack_file
from ..files.values import Reader
from ..goals import CLASSIFIERS, GOALS
from ..importers.scaler_kinds import NOTHING, SCALER_KINDS
from ..kernels.spec import SPECS
from ..learning import Learning
from ..metric import Metric
from ..scaling import Scaling
from ..tables.folding import flattened, folded
from ..words import Words
from .artefact import NO_CLASSES, Array, Artefact, raw_ranges, whole_degree
from .sparse import SparsePoints, check_csr


@dataclass(frozen=True)
class _Function:
    """The fields of an expansion in a file."""

    kernel: tuple[str, dict[str, float]]  # its name and parameters
    points: Array | SparsePoints
    coef: Array
    bias: Array
    metric: Metric | None = None
    precision: str = "float32"


def _kernel_named(name: str) -> Callable[..., tuple[str, dict[str, float]]]:
    def kernel(**parameters: float) -> tuple[str, dict[str, float]]:
        return name, whole_degree(parameters)

    return kernel


KINDS: dict[str, dict[str, Any]] = {
    "model": {"expansion": _Function},
    "metric": {"learned": Metric},
    "kernel": {name: _kernel_named(name) for name in SPECS},
    "goal": GOALS,
    "coding": CLASSIFIERS,  # the name in files of version 0.1
    "calibration": CALIBRATIONS | {"conformal": Conformal},
    "stream": {"rows": Learning},
}


def read_slim(path: str | os.PathLike[str]) -> Artefact | None:
    """Return the artefact in a .slim file, or None if only `files.native.load` can read it or explain its error.

    That is the case for pairs of many classes, kernels without an export, and damaged files.
    """
    data = container_bytes(path)
    if not data.startswith(MAGIC):
        return None
    try:
        header, arrays = unpack_file(data)
        artefact = _artefact(entry_of(header, "model", dict), Reader(arrays, KINDS, {}, _sparse))
        artefact.check()
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    return artefact


def _artefact(model: Entry, reader: Reader) -> Artefact:
    steps, targets = [model], []
    while steps[-1]["type"] in ("Pipeline", TARGETS):
        *before, last = steps
        if last["type"] == TARGETS:
            targets.append(last["transformer"])
        steps = [*before, *([last["regressor"]] if last["type"] == TARGETS else (step for _, step in last["steps"]))]
    words, steps = _words_before(steps, reader)
    *scalers, machine = steps
    parts = {name: reader.unpack(part) for name, part in machine["fitted"].items() if name in PARTS}
    function, features = parts["model_"], parts["n_features_in_"]
    goal = parts["goal_"] if "goal_" in parts else parts["coding_"]
    projection = None if function.metric is None else function.metric.projection
    if (function.points.shape[1] if projection is None else projection.shape[0]) != features:
        raise ValueError("points have as many features as rows, or as a projection has columns")
    kernel, parameters = function.kernel
    if function.metric is not None:
        function.metric.check(kernel, *function.points.shape)
    points = function.points if isinstance(function.points, SparsePoints) else _numbers(function.points)
    coef, bias = _numbers(function.coef), _numbers(function.bias)
    classes, calibration = parts.get("classes_", NO_CLASSES), parts.get("calibration_")
    metric, preparation = function.metric, None
    spread = calibration if isinstance(calibration, Conformal) else None
    calibration = None if spread is not None else calibration
    if any(entry not in NOTHING and "step" in entry for entry in scalers):
        transformers = flattened([_transformer(entry, reader) for entry in scalers])
        names = tuple(getattr(transformers[0], "feature_names_in_", ()))
        dense = points.dense() if isinstance(points, SparsePoints) else points
        points, scaling, metric, preparation = folded(transformers, kernel, dense, metric, names)
        names, ranges = names if preparation is None else preparation.names, None
    else:
        scaling, names = _scaling(scalers, reader, features), _names(steps, reader)
        ranges = raw_ranges(parts.get("feature_range_"), scaling)
    artefact = Artefact(
        kernel, parameters, points, coef, bias, goal, classes, scaling, calibration, None, names, words, preparation, spread
    )
    learning = parts.get("_learning") if not targets else None
    if learning is not None:
        learning.check(points.shape[0], bias.size, classes.size)
    artefact = replace(artefact, precision=function.precision, learning=learning, ranges=ranges)
    artefact = artefact.with_metric(metric).settled()
    for target in reversed(targets):
        scaling = _scaling([target], reader, goal.outputs)
        artefact = artefact if scaling is None else artefact.with_values(scaling)
    return artefact


def _words_before(steps: list[Any], reader: Reader) -> tuple[Words | None, list[Any]]:
    """Return what the vectorizer at the head of some steps does, with its weights, and the other steps."""
    if steps[0] in NOTHING or steps[0].get("type") not in ("CountVectorizer", "TfidfVectorizer"):
        return None, steps
    counter, *rest = steps
    weights = counter if counter["type"] == "TfidfVectorizer" else None
    if weights is None and rest[0] not in NOTHING and rest[0].get("type") == "TfidfTransformer":
        weights, *rest = rest
    settings = _attributes(counter, reader)
    if weights is not None:
        weights = settings if weights is counter else _attributes(weights, reader)
    return Words.of(settings, settings.vocabulary_, weights), rest


def _attributes(step: Entry, reader: Reader) -> SimpleNamespace:
    """Return an object with the parameters and the fitted attributes of a step."""
    return SimpleNamespace(**{name: reader.unpack(part) for name, part in (step["params"] | step["fitted"]).items()})


def _transformer(entry: Any, reader: Reader) -> Any:
    """Return a transformer of a table, or a scaler, as an object with its attributes."""
    if entry in NOTHING or "step" in entry:
        return entry if entry in NOTHING else reader.unpack(entry)
    return SimpleNamespace(type_name=entry["type"], **vars(_attributes(entry, reader)))


def _names(steps: list[Any], reader: Reader) -> tuple[str, ...]:
    """Return the names of the columns of raw rows, those that the first step knows."""
    fitted = next(step for step in steps if step not in NOTHING)["fitted"]
    return tuple(reader.unpack(fitted["feature_names_in_"])) if "feature_names_in_" in fitted else ()


#: the type of an entry with a transformer of targets around a model
TARGETS = "TransformedTargetRegressor"
#: fitted attributes that predictions need; `coding_` in files of version 0.1
PARTS = {"n_features_in_", "goal_", "coding_", "model_", "classes_", "calibration_", "feature_range_", "_learning"}


def _sparse(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> SparsePoints:
    """Return sparse points of the pieces of a CSR array."""
    check_csr(indptr, indices, data.size, shape[1])
    if indptr.size != shape[0] + 1:
        raise ValueError("there is a start for each point, and one more")
    return SparsePoints.of(indptr, indices, data, shape[1])


def _numbers(values: Any) -> Array:
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        raise ValueError("these are no dense numbers")
    return values.astype(np.float64, copy=False)


def _scaling(scalers: list[Any], reader: Reader, features: int) -> Scaling | None:
    """Return one scaling for all scalers in front of the machine, None without scalers."""
    scaling = None
    for entry in scalers:
        if entry in NOTHING:
            continue
        step = SCALER_KINDS[entry["type"]].scaling(_attributes(entry, reader), features)
        step.check(features)
        scaling = step if scaling is None else scaling.then(step)
    return scaling
