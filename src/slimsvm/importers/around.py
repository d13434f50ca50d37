"""What stands around a kernel machine: the transformers of rows before it, and those of targets after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from ..scaling import Scaling
from .scalers import SCALERS


def unwrapped(model: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the transformers of rows and those of targets, from outside to inside, and the machine inside."""
    rows: list[Any] = []
    targets: list[Any] = []
    while isinstance(model, Pipeline | TransformedTargetRegressor):
        if isinstance(model, Pipeline):
            *steps, model = [step for _, step in model.steps]
            rows += steps
        else:
            check_is_fitted(model)
            targets.append(model.transformer_)
            model = model.regressor_
    return rows, targets, model


def with_names(model: Any, names: Sequence[str] | None) -> Any:
    """Return the model; its first step, which sees the raw rows, learns the names of the features, if they differ."""
    if names is not None and len(set(names)) == len(names):
        _name_columns(model, np.array(names, dtype=object))
    return model


def _name_columns(model: Any, names: np.ndarray) -> None:
    """Tell the names of columns to the first step of a Pipeline, and to the parts of a ColumnTransformer."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    first.feature_names_in_ = names
    for name, part, _ in first.transformers_ if isinstance(first, ColumnTransformer) else ():
        if not isinstance(part, str):
            _name_columns(part, names[first._transformer_to_input_indices[name]])


def is_identity(transformer: Any) -> bool:
    """Return whether a transformer of targets, as it is fitted, leaves them as they are."""
    return isinstance(transformer, FunctionTransformer) and transformer.func is None


def target_scaling(transformer: Any) -> Scaling:
    """Return what a scaler of targets does to them; raise ValueError for a transformer that is no multiplication."""
    if type(transformer) not in SCALERS:
        given = transformer.func if isinstance(transformer, FunctionTransformer) else transformer
        raise ValueError(
            f"cannot ship a TransformedTargetRegressor with a {getattr(given, '__name__', type(given).__name__)}: targets "
            f"may have one of {', '.join(kind.__name__ for kind in SCALERS)}, which is one multiplication. Ship the model "
            "inside, model.regressor_, and apply model.transformer_.inverse_transform to its values in your program"
        )
    return SCALERS[type(transformer)].scaling(transformer, transformer.n_features_in_)
