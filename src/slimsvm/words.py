"""Texts as rows: the weights of words and of runs of words, as scikit-learn's vectorizers make them. Needs NumPy only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .text import short

Array = np.ndarray

#: the settings of a vectorizer that have one possible value
FIXED = {"input": "content", "analyzer": "word", "tokenizer": None, "preprocessor": None, "strip_accents": None}
_PUNCTUATION = r"\\[^\w\s]"
_CONTROL = r"\x00-\x1f\u2028\u2029"
#: one character, class or place in a pattern of tokens
ATOM = (
    rf"\\[bBwWdDsS]|{_PUNCTUATION}|\[\^?(?:\\[wds]|{_PUNCTUATION}|[^\\\[\]{_CONTROL}])+\]|[^\\\[\](){{}}.^$*+?|{_CONTROL}]"
)
#: patterns without groups, which can be said in JavaScript too and never take exponential time
PLAIN = re.compile(rf"(?:\(\?u\))?(?:(?:{ATOM})(?:[*+?]|\{{\d+(?:,\d*)?\}})?\??|\|)+")
WAY_OUT = (
    "Plain words can be shipped: a token_pattern of characters and classes without groups, lowercase, ngram_range, "
    "stop_words, binary and tf-idf weights. Change the vectorizer and train again, or keep it in your program and ship the "
    "steps after it, pipeline[1:], which take its rows"
)


@dataclass(frozen=True)
class Words:
    """From a text to a row with a number for each word of a vocabulary, or run of words with spaces between them."""

    vocabulary: tuple[str, ...]  # in the order of the features
    pattern: str  # of a word
    lowercase: bool
    runs: tuple[int, int]  # of how many words: at least, at most
    stop_words: frozenset[str]  # left out before runs are made
    binary: bool
    sublinear: bool = False  # 1 + log(count) in the place of count
    idf: Array | None = None  # a factor for each feature
    norm: str | None = None  # what a row is divided by: l1, l2 or None

    @classmethod
    def of(cls, counter: Any, vocabulary: Iterable[str], weights: Any = None) -> Words:
        """Return what an object with the settings of a CountVectorizer does, and one with those of a TfidfTransformer."""
        for name, value in FIXED.items():
            if getattr(counter, name) != value:
                raise ValueError(f"cannot ship a vectorizer with {name}={short(getattr(counter, name))}. {WAY_OUT}")
        runs, stop_words = tuple(counter.ngram_range), counter.stop_words
        if isinstance(stop_words, str) and stop_words == "english":
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

            stop_words = ENGLISH_STOP_WORDS
        words = cls(
            tuple(vocabulary),
            counter.token_pattern,
            bool(counter.lowercase),
            runs,
            frozenset(() if stop_words is None else stop_words),
            bool(counter.binary),
        )
        if runs[-1:] == (1,):  # others are in no run
            words = replace(words, stop_words=words.stop_words & words.features.keys())
        if weights is not None:
            idf = np.asarray(weights.idf_, dtype=np.float64) if weights.use_idf else None
            words = replace(words, sublinear=bool(weights.sublinear_tf), idf=idf, norm=weights.norm)
        words.check()
        return words

    def check(self) -> None:
        """Raise ValueError unless all parts fit together."""
        if not isinstance(self.pattern, str) or not PLAIN.fullmatch(self.pattern):
            raise ValueError(f"cannot ship a vectorizer with token_pattern={short(self.pattern)}. {WAY_OUT}")
        try:
            re.compile(self.pattern)
        except (re.error, OverflowError) as error:
            raise ValueError(f"the token_pattern {short(self.pattern)} is no regular expression: {error}") from error
        texts = [*self.vocabulary, *self.stop_words]
        if not all(isinstance(text, str) for text in texts) or len(self.features) < len(self.vocabulary) or not texts:
            raise ValueError("the vocabulary and the stop words of a vectorizer are different texts")
        whole_numbers = len(self.runs) == 2 and all(type(size) is int for size in self.runs)
        if not whole_numbers or not 1 <= self.runs[0] <= self.runs[1]:
            raise ValueError(f"the ngram_range of a vectorizer is {short(self.runs)}")
        if self.idf is not None and (self.idf.shape != (len(self.vocabulary),) or not np.isfinite(self.idf).all()):
            raise ValueError("the idf of a vectorizer is not a finite number for each word")
        if self.norm not in (None, "l1", "l2"):
            raise ValueError(f"the norm of a vectorizer is {short(self.norm)}; there are 'l1', 'l2' and None")

    @cached_property
    def features(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.vocabulary)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def __call__(self, texts: Iterable[str]) -> tuple[Array, Array, Array]:
        """Return rows as the pieces of a CSR array: starts, columns and values."""
        rows = [self._row(text) for text in texts]
        starts = np.cumsum([0, *(columns.size for columns, _ in rows)])
        columns, values = (np.concatenate([row[part] for row in rows] or [np.zeros(0)]) for part in (0, 1))
        return starts, columns.astype(np.intp), values

    def _row(self, text: str) -> tuple[Array, Array]:
        """Return the features in a text, in increasing order, and their values."""
        if not isinstance(text, str):
            raise TypeError(f"this model takes a text or a list of texts, and was given {short(text)}")
        counts = Counter(map(self.features.get, self._runs(text)))
        del counts[None]
        columns = np.array(sorted(counts), dtype=np.intp)  # type: ignore[type-var]
        values = np.array([1.0 if self.binary else counts[column] for column in columns.tolist()])
        values = 1 + np.log(values) if self.sublinear else values
        values = values if self.idf is None else values * self.idf[columns]
        size = {None: 1.0, "l1": np.abs(values).sum(), "l2": np.sqrt(values @ values)}[self.norm]
        return columns, values / size if size else values

    def _runs(self, text: str) -> Iterator[str]:
        """Yield the words of a text, and runs of words."""
        found = self._pattern.findall(text.lower() if self.lowercase else text)
        words = [word for word in found if word not in self.stop_words]
        for size in range(self.runs[0], self.runs[1] + 1):
            for first in range(len(words) - size + 1):
                yield " ".join(words[first : first + size])
