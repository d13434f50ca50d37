"""Transformers of tables in a .slim file: their class by name, and all their attributes as plain values.

What a loaded transformer does is compared with what its attributes say it does (`check`), so a file with attributes that do
not fit together is refused.
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.utils.validation import check_is_fitted

from ..importers.around import VECTORIZERS, vocabulary_of, words_before
from ..tables.folding import flattened, preparation_of
from ..tables.program import Column, Preparation
from ..tables.recognition import ColumnsOf
from ..tables.steps.functions import name_of_function
from ..text import short
from ..words import Words
from .container import SCALAR, Entry
from .values import build

TRANSFORMERS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(ColumnTransformer, FeatureUnion, FunctionTransformer, MaxAbsScaler, MinMaxScaler, MissingIndicator, Normalizer),
        *(OneHotEncoder, OrdinalEncoder, PCA, Pipeline, PolynomialFeatures, PowerTransformer, QuantileTransformer),
        *(RobustScaler, SimpleImputer, StandardScaler, TargetEncoder, TruncatedSVD, VarianceThreshold),
    )
}
#: attributes that hold what only fit needs, or paths of the machine that saved the model
NOT_KEPT = {"memory", "random_state", "_label_encoder", "_label_binarizer"}
#: by how much a loaded transformer may differ from what its attributes say
SAME = 1e-6


def is_step(value: Any) -> bool:
    """Return whether a value is a transformer that a file can hold."""
    return type(value).__name__ in TRANSFORMERS or (isinstance(value, BaseEstimator) and hasattr(value, "get_support"))


def tagged(value: Any) -> dict[str, Any] | None:
    """Return a value that JSON does not have as an object with a tag, whose content is to be packed; None for others."""
    if type(value).__name__ == "NAType" or (isinstance(value, float | np.floating) and not math.isfinite(value)):
        return {"number": "NA" if type(value).__name__ == "NAType" else str(float(value))}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop]}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return {"dtype" if isinstance(value, np.dtype) else "number type": np.dtype(value).str}
    if isinstance(value, ColumnsOf):
        return {"columns_of": [value.kind, *map(list, (value.numeric, value.categorical, value.drop))]}
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        return {"cells": value.tolist()}
    if is_step(value):
        step = value if type(value).__name__ in TRANSFORMERS else _choice(value)
        return {"step": type(step).__name__, "attributes": _attributes(step)}
    if isinstance(value, np.ufunc | FunctionType):
        return {"function": name_of_function(value) or "none"}
    return None


def _attributes(step: Any) -> dict[str, Any]:
    """Return what a file holds of a transformer; columns are numbers, so that it takes arrays too."""
    attributes = {name: value for name, value in vars(step).items() if name not in NOT_KEPT}
    if isinstance(step, ColumnTransformer) and "transformers_" in attributes:
        places = step._transformer_to_input_indices
        attributes["transformers_"] = [
            (name, transformer, list(places[name])) for name, transformer, _ in step.transformers_
        ]
    if isinstance(step, ColumnTransformer) and isinstance(attributes.get("_remainder"), tuple):
        attributes["_remainder"] = (
            *attributes["_remainder"][:2],
            list(attributes["_remainder"][2]),
        )  # a list of its own kind
    return attributes


def _choice(selector: Any) -> Any:
    """Return the choice that a selector of features has made; one that is not fitted has made none."""
    try:
        check_is_fitted(selector)
    except NotFittedError:
        return FunctionTransformer()
    chosen = np.flatnonzero(selector.get_support()).tolist()
    choice = ColumnTransformer([("chosen", "passthrough", chosen)])
    return choice.fit(np.zeros((2, len(selector.get_support()))))


def restored(name: str, attributes: dict[str, Any]) -> Any:
    """Return the transformer of that class with these attributes, which works in the calling thread."""
    if name not in TRANSFORMERS:
        raise ValueError(f"it has a {short(name)} in the place of a transformer; there are {sorted(TRANSFORMERS)}")
    kind = TRANSFORMERS[name]
    known = inspect.signature(kind).parameters.keys() - {"n_jobs"}
    attributes = {key: value for key, value in attributes.items() if key != "n_jobs"}
    for attribute in attributes:
        if not re.fullmatch(r"[A-Za-z_]\w*", attribute) or attribute.startswith("__") or hasattr(kind, attribute):
            raise ValueError(f"it has a {name} with the attribute {short(attribute)}")
    try:
        step = kind(**{key: value for key, value in attributes.items() if key in known})
    except TypeError as error:
        raise ValueError(f"it has a {name} with too few attributes: {error}") from None
    rest = attributes.get("_remainder", ("", "", []))
    whole = isinstance(rest, tuple) and len(rest) == 3 and isinstance(rest[2], list)
    if isinstance(step, ColumnTransformer) and not whole:
        raise ValueError(f"it has a {name} with the remainder {short(rest)}")
    vars(step).update({key: value for key, value in attributes.items() if key not in known})
    return step


def check(steps: list[Any], features: int) -> None:
    """Raise ValueError unless transformers make rows of so many features, and do what their attributes say."""
    try:
        given = flattened(steps)[0].n_features_in_
        preparation = preparation_of(steps, given)
        preparation.check(features)
        # words of a column of truth values that is imputed by a word are "True" and "False"
        same = any(_same(steps, preparation, words) for words in ({}, {"True": True, "False": False}))
    except Exception as error:  # attributes of any kind can make any error
        raise ValueError(f"its transformers do not fit together: {type(error).__name__}: {error}") from error
    if not same:
        raise ValueError("its transformers do not do what their attributes say")


def _same(steps: list[Any], preparation: Preparation, words: dict[str, Any]) -> bool:
    """Return whether transformers and their preparation agree on two rows: of the first words, and of the last ones."""
    rows = np.ones((2, preparation.given), dtype=np.float64 if preparation.is_numeric else object)
    for column in preparation.columns:
        rows[:, column.position] = [_cell(column, place, words) for place in (0, -1)]
    made = rows
    with warnings.catch_warnings(action="ignore"):  # of names that arrays do not have, and of unknown words
        for step in steps:
            made = made if isinstance(step, str | None) else step.transform(made)
    made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
    wanted = preparation(rows)
    return made.shape == wanted.shape and np.allclose(made, wanted, rtol=SAME, atol=SAME, equal_nan=True)


def _cell(column: Column, place: int, words: dict[str, Any]) -> Any:
    if column.kind == "word":
        word = column.words[place] if column.words else "another word"
        return words.get(word, word)
    return 1.0 - place


#: the parameters of a TfidfVectorizer that its TfidfTransformer keeps from fit
WEIGHTS = ("norm", "use_idf", "smooth_idf", "sublinear_tf")
#: the steps that turn texts into rows
VECTORIZER_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*VECTORIZERS, TfidfTransformer)}


def vectorizer_parts(step: Any) -> tuple[Entry, Entry]:
    """Return the parameters and the fitted attributes of a vectorizer, or of a TfidfTransformer."""
    params: Entry = step.get_params(deep=False)
    fitted: Entry = {"idf_": step.idf_} if hasattr(step, "idf_") else {}
    if type(step) is TfidfTransformer:
        return params, fitted | {"n_features_in_": step.n_features_in_}
    words = np.array(vocabulary_of(step), dtype=object)
    if params["stop_words"] not in (None, "english"):
        params["stop_words"] = sorted(params["stop_words"])
    params |= {"dtype": np.dtype(params["dtype"]).str, "vocabulary": words.tolist() if step.fixed_vocabulary_ else None}
    params |= {name: getattr(step._tfidf, name) for name in WEIGHTS} if type(step) is TfidfVectorizer else {}
    return params, fitted | {"vocabulary_": words}


def restored_vectorizer(kind: Any, params: Entry, fitted: Entry) -> Any:
    """Return the fitted step that `vectorizer_parts` took apart; `words_of` finds what is wrong with it."""
    if kind is TfidfTransformer:
        step = build(kind, params)
        vars(step).update(fitted)
        return step
    number, words = params.get("dtype"), fitted.get("vocabulary_")
    if not isinstance(number, str) or not SCALAR.fullmatch(number) or not isinstance(words, np.ndarray) or words.ndim != 1:
        raise ValueError(f"it has a {kind.__name__} of numbers {short(number)} without a vocabulary")
    step = build(kind, params | {"dtype": np.dtype(number).type})
    step.vocabulary_ = {word: place for place, word in enumerate(words.tolist())}
    if len(step.vocabulary_) < words.size:
        raise ValueError(f"it has a {kind.__name__} that lists a word twice")
    step.fixed_vocabulary_ = params.get("vocabulary") is not None
    if kind is TfidfVectorizer:
        step._tfidf = TfidfTransformer(**{name: getattr(step, name) for name in WEIGHTS})
        vars(step._tfidf).update({name: fitted[name] for name in fitted.keys() & {"idf_"}} | {"n_features_in_": words.size})
    return step


def words_of(steps: list[Any]) -> tuple[Words | None, list[Any]]:
    """Return what the vectorizer at the head of restored steps does, and the other steps; ValueError for what is none."""
    try:
        words, rest = words_before(steps)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"it has a vectorizer with strange settings: {error}") from error
    if any(type(step).__name__ in VECTORIZER_KINDS for step in rest):
        raise ValueError("it has a vectorizer, or its weights, that is not at the head of a Pipeline")
    return words, rest
