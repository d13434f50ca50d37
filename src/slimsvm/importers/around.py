"""What stands around a kernel machine: the transformers of rows before it, and those of targets after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..kernels import Matrix
from ..rows.memory import is_mapped
from ..scaling import Scaling
from ..words import Words
from .scaler_kinds import SCALER_KINDS, Scaler

#: the names that `make_scaler` takes, after `resolve_scale`
SCALES = ("auto", "none", "standard", "minmax", "maxabs", "robust")
#: "auto" standardises features if the largest standard deviation is more than this many times the median one; more: rarely
UNEVEN = 10.0
#: rows of which the standard deviations are taken, evenly spaced; more: more time
MEASURED_ROWS = 1 << 16

#: the scalers that files hold and exporters fold in
SCALERS: dict[Any, Scaler] = {
    kind: SCALER_KINDS[kind.__name__] for kind in (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
}


def make_scaler(name: str, sparse: bool) -> Any:
    """Return a new scaler by its short name, None for "none"; zeros in sparse rows stay zero."""
    if sparse and name == "minmax":
        raise ValueError("minmax would fill sparse rows; use maxabs")
    scalers = {
        "standard": StandardScaler(with_mean=not sparse),
        "minmax": MinMaxScaler(),
        "maxabs": MaxAbsScaler(),
        "robust": RobustScaler(with_centering=not sparse),
    }
    return scalers.get(name)


def resolve_scale(scale: str, X: Matrix) -> str:
    """Return the scaling; "auto" is standard for dense rows in memory with widely differing deviations, else none."""
    if scale != "auto":
        return scale
    if issparse(X) or is_mapped(X):
        return "none"
    deviations = np.std(X[:: -(-X.shape[0] // MEASURED_ROWS)], axis=0)
    deviations = deviations[deviations > 0]
    return "standard" if deviations.size and deviations.max() > UNEVEN * np.median(deviations) else "none"


VECTORIZERS = (CountVectorizer, TfidfVectorizer)


def words_before(steps: list[Any]) -> tuple[Words | None, list[Any]]:
    """Return what the vectorizer at the head of some steps does, with a TfidfTransformer after it, and the other steps."""
    if not steps or type(steps[0]) not in VECTORIZERS:
        return None, steps
    counter, *rest = steps
    check_is_fitted(counter, "vocabulary_")
    weights = getattr(counter, "_tfidf", None)
    if weights is None and rest and type(rest[0]) is TfidfTransformer:
        weights, *rest = rest
    return Words.of(counter, vocabulary_of(counter), weights), rest


def vocabulary_of(counter: Any) -> list[str]:
    """Return the words of a vectorizer in the order of its features."""
    return sorted(counter.vocabulary_, key=counter.vocabulary_.__getitem__)


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
