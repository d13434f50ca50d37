"""Warnings point at the line of the user's program, through Pipelines and searches too."""

import warnings

import pytest
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC, compress

X, y = make_moons(60, noise=0.3, random_state=0)
FULL = SlimSVC().fit(X, y)


@pytest.mark.parametrize(
    "call",
    [
        lambda: SlimSVC(max_iter=1).fit(X, y),
        lambda: SlimSVC(1, tolerance=0.0, reducer="prune", random_state=0).fit(X, y),
        lambda: make_pipeline(StandardScaler(), SlimSVC(max_iter=1)).fit(X, y),
        lambda: compress(FULL, X, y, budget=1000),
    ],
    ids=["training", "selection", "Pipeline", "compress"],
)
def test_a_warning_names_the_file_and_line_of_the_call(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert {warning.filename for warning in found} == {__file__}
    assert {warning.lineno for warning in found} == {call.__code__.co_firstlineno}
