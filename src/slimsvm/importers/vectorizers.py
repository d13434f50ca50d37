"""scikit-learn's vectorizers of texts at the head of a Pipeline, read as `Words`."""

from __future__ import annotations

from typing import Any

from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from ..words import Words

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
