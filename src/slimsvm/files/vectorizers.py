"""Vectorizers of texts as parameters and attributes that a .slim file can hold, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from ..importers.around import VECTORIZERS, vocabulary_of, words_before
from ..text import short
from ..words import Words
from .container import SCALAR, Entry
from .values import build

#: the parameters of a TfidfVectorizer that its TfidfTransformer keeps from fit
WEIGHTS = ("norm", "use_idf", "smooth_idf", "sublinear_tf")
#: the steps that turn texts into rows
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*VECTORIZERS, TfidfTransformer)}


def parts(step: Any) -> tuple[Entry, Entry]:
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


def restored(kind: Any, params: Entry, fitted: Entry) -> Any:
    """Return the fitted step that `parts` took apart; `checked` finds what is wrong with it."""
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


def checked(steps: list[Any]) -> tuple[Words | None, list[Any]]:
    """Return what the vectorizer at the head of restored steps does, and the other steps; ValueError for what is none."""
    try:
        words, rest = words_before(steps)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"it has a vectorizer with strange settings: {error}") from error
    if any(type(step).__name__ in KINDS for step in rest):
        raise ValueError("it has a vectorizer, or its weights, that is not at the head of a Pipeline")
    return words, rest
