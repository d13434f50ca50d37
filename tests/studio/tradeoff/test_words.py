"""Methods in words: all of them, and combinations."""

import pytest

from slimsvm.reducers import REDUCERS
from slimsvm.studio.tradeoff.methods import REDUCERS_IN_WORDS, TRAINERS_IN_WORDS, in_words
from slimsvm.trainers import TRAINERS


def test_every_method_has_words():
    assert list(REDUCERS_IN_WORDS) == list(REDUCERS)
    assert list(TRAINERS_IN_WORDS) == list(TRAINERS)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("full", "the exact SVM, with all its support vectors"),
        ("smo", "the exact SVM"),
        ("lars", "chooses support vectors of the full model by least-angle regression"),
        ("smo+rsvm", "the exact SVM; then takes random training rows and fits their coefficients"),
        ("none+rsvm", "no full model; then takes random training rows and fits their coefficients"),
        ("mine", ""),
        ("mine+rsvm", ""),
        ("lp+mine", ""),
    ],
)
def test_a_name_in_words(method, words):
    assert in_words(method) == words
