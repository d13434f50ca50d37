"""From estimators to artefacts: estimators of slimsvm, SVMs of scikit-learn, and what may be around them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ..calibration import Conformal
from ..goals import Goal
from ..importers.around import is_identity, target_scaling, unwrapped, words_before
from ..importers.models import import_model, is_known
from ..kernels import Custom, Kernel
from ..learning import Learning
from ..metric import Metric
from ..model import Expansion
from ..scaling import Scaling
from ..tables.folding import are_scalers, folded, scaling_of
from ..tables.program import Preparation
from ..text import short
from .artefact import NO_CLASSES, Array, Artefact, raw_ranges, whole_degree
from .sparse import SparsePoints, check_dense


def artefact_of(model: Any) -> Artefact:
    """Return the function of raw rows that a fitted model computes."""
    if isinstance(model, Artefact):
        return model
    steps, targets, svm = unwrapped(model)
    words, steps = words_before(steps)
    for step in steps:
        if not isinstance(step, str | None):
            check_is_fitted(step)
    function, goal, classes = _function(svm)
    names = tuple(map(str, getattr(model, "feature_names_in_", ())))
    written, scaling, metric, preparation = _points(function, steps, names)
    coef, bias = (np.asarray(part, dtype=np.float64) for part in (function.coef, function.bias))
    kernel, parameters = function.kernel.name, _parameters(function.kernel)
    calibration = getattr(svm, "calibration_", None)
    spread = calibration if isinstance(calibration, Conformal) else None
    calibration = None if spread is not None else calibration
    names = names if preparation is None else preparation.names
    artefact = Artefact(
        kernel,
        parameters,
        written,
        coef,
        bias,
        goal,
        classes,
        scaling,
        calibration,
        None,
        names,
        words,
        preparation,
        spread,
    )
    learning = _learning(svm) if all(map(is_identity, targets)) else None
    ranges = raw_ranges(getattr(svm, "feature_range_", None), scaling) if are_scalers(steps) else None
    artefact = replace(artefact, precision=getattr(function, "precision", "float32"), learning=learning, ranges=ranges)
    artefact = artefact.with_metric(metric).settled()
    for target in reversed(targets):
        artefact = artefact if is_identity(target) else artefact.with_values(target_scaling(target))
    try:
        artefact.check()
    except ValueError as error:
        raise ValueError(f"cannot export this model: {error}. Train it again") from error
    return artefact


def _points(
    function: Expansion, steps: list[Any], names: tuple[str, ...]
) -> tuple[Array | SparsePoints, Scaling | None, Metric | None, Preparation | None]:
    """Return points, scaling and metric for raw rows, or for prepared ones; sparse points stay sparse behind scalers."""
    points = function.points
    if issparse(points) and are_scalers(steps):
        csr = points.tocsr()
        sparse = SparsePoints.of(csr.indptr, csr.indices, csr.data, csr.shape[1])
        return sparse, scaling_of(steps, csr.shape[1]), function.metric, None
    check_dense(*points.shape)
    written = np.asarray(points.toarray() if issparse(points) else points, dtype=np.float64)
    return folded(steps, function.kernel.name, written, function.metric, names)


def _function(svm: Any) -> tuple[Expansion, Goal, Array]:
    """Return the function of scaled rows, the goal and the classes of a fitted SVM."""
    if hasattr(svm, "_labels_are"):  # an estimator of slimsvm, whose module imports every method
        check_is_fitted(svm)
        return svm.model_, svm.goal_, getattr(svm, "classes_", NO_CLASSES)
    if not is_known(svm):
        raise ValueError(
            f"cannot export a {type(svm).__name__}; give a fitted SlimSVC, SlimSVR or SlimOneClassSVM, another kernel "
            "machine that compress takes, or a Pipeline of scalers or TransformedTargetRegressor with one inside"
        )
    source = import_model(svm)
    return source.model, source.goal, source.classes


def _learning(svm: Any) -> Learning | None:
    """Return how an estimator of slimsvm learns on, if it learns row by row."""
    if not hasattr(svm, "_labels_are"):
        return None
    from ..estimators.streams import learning_of

    return learning_of(svm)


def _parameters(kernel: Kernel) -> dict[str, float]:
    if isinstance(kernel, Custom):
        raise ValueError(
            f"cannot export a model whose kernel is a function, {short(kernel.function)}: Python code runs in Python only. "
            "Train with one of the kernels that have a name"
        )
    return whole_degree({field.name: getattr(kernel, field.name) for field in fields(kernel)})  # type: ignore[arg-type]
