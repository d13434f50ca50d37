"""Models of equal bytes: how many points fit, and which rows settings are compared on."""

import shutil

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.contenders.base import Data, TooFewBytesError, c_bytes
from benchmarks.contenders.kernel_machines import KERNELS, _c_of, _machine, points_within
from benchmarks.equal_bytes import VALIDATION, validation_rows
from slimsvm.metric import Metric

#: bytes that may be counted more than a compiler makes (tests/test_c_bytes.py)
MOST_MORE = 170
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("size") is None, reason="gcc is not here")


def data_of(features, outputs, scaled, n=50):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, features)) * rng.uniform(0.01, 300, features) + 5
    y = np.arange(n) % max(outputs, 2)
    return Data("made", X, y, X, y, StandardScaler() if scaled else None)


@needs_gcc
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("features", "outputs", "scaled"), [(16, 26, True), (22, 1, False), (10, 1, True)])
def test_as_many_points_as_fit_are_within_the_bytes(features, outputs, scaled, learned, kernel):
    data, rng = data_of(features, outputs, scaled), np.random.default_rng(1)
    count = points_within(data, 1024, "int8", widths=learned, factors=learned, kernel=kernel)
    metric = Metric(rng.uniform(0.1, 3, features), rng.uniform(0.1, 9, count)) if learned else None
    parts = rng.normal(size=(count, features)), rng.normal(size=(count, outputs)), rng.normal(size=outputs)
    model = _machine(KERNELS[kernel](0.1 / features), *parts, False, metric)
    taken = c_bytes(_c_of(make_pipeline(StandardScaler().fit(data.X), model) if scaled else model, "int8", None))
    assert 1024 - 2 * (features + outputs + 2) - 32 - MOST_MORE <= taken <= 1024


@needs_gcc
def test_too_few_bytes_are_refused_with_what_one_point_takes():
    with pytest.raises(TooFewBytesError, match="one point of 400 features takes"):
        points_within(data_of(400, 1, scaled=True), 1024, "int8", widths=False, factors=False)


def test_settings_are_compared_on_random_rows_and_on_the_last_of_each_class():
    data = data_of(2, 1, scaled=False, n=400)
    random, last = validation_rows(data)
    np.testing.assert_array_equal(last, np.arange(360, 400))
    assert random.max() < 360
    assert random.size == last.size == VALIDATION * 400 / 2
    assert np.bincount(data.y[random]).tolist() == [20, 20]
