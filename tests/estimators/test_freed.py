"""Fits leave no cycles of references: rows and kernel values are freed when a fit ends, not when the collector runs."""

from __future__ import annotations

import gc
import weakref
from importlib.util import find_spec

import numpy as np
import pytest

from slimsvm import SlimSVC
from slimsvm.estimators import fit_reporting
from slimsvm.reducers import Slim
from slimsvm.rows.array_matrix import ArrayMatrix
from slimsvm.rows.backends import has_torch_device
from slimsvm.rows.base import GivenRows
from slimsvm.rows.host_matrix import HostMatrix
from slimsvm.rows.prediction import PlacedPoints
from slimsvm.solvers.smo import SmoState

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = (X[:, 0] * X[:, 1] > 0).astype(int)

DEVICES = [
    *("cpu", "array_api_strict"),
    *(["torch:cpu"] if find_spec("torch") else []),
    *(["cuda"] if has_torch_device("cuda") else []),
]
LIBRARIES = {"cpu": "numpy", "torch:cpu": "torch", "cuda": "torch"}
FITS = {
    "exact": {},
    "path": {"budget": 4, "reducer": Slim(steps=2)},
    "labels": {"budget": 4, "trainer": None, "reducer": Slim(steps=2)},
    "metric": {"budget": 2, "trainer": None, "reducer": Slim(steps=2, metric="both", time_limit=0.5)},
}


@pytest.fixture
def made(monkeypatch):
    """References to all rows, handles and runs that are made in a test, which runs without the collector."""
    found = []

    def watched(kind):
        begin = kind.__init__

        def remember(self, *arguments, **options):
            found.append(weakref.ref(self))
            begin(self, *arguments, **options)

        monkeypatch.setattr(kind, "__init__", remember)

    for kind in (GivenRows, HostMatrix, ArrayMatrix, SmoState, PlacedPoints):
        watched(kind)
    gc.collect()
    gc.disable()
    yield found
    gc.enable()


@pytest.mark.filterwarnings("ignore")  # of paths that are cut short
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("settings", FITS.values(), ids=FITS)
def test_nothing_is_left_of_a_fit(made, device, settings):
    pytest.importorskip(LIBRARIES.get(device, "array_api_strict"))
    model = SlimSVC(device=device, random_state=0, **settings).fit(X, y)
    model.predict(X)
    assert made
    left = [type(each()).__name__ for each in made if each() is not None]
    assert left in ([], ["PlacedPoints"])  # which a model keeps on its device for the next prediction
    model = None
    assert [each() for each in made if each() is not None] == []


def test_the_rows_of_training_are_freed_before_the_model_is_shrunk(made):
    left = []
    fit_reporting(SlimSVC(4, reducer="spsvm"), X, y, when_trained=lambda _: left.extend(ref() for ref in made if ref()))
    assert made
    assert left == []
