"""Rivals at equal bytes: within the bytes, and the compiled C predicts what Python predicts."""

import shutil

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

from benchmarks.contenders import CONTENDERS
from benchmarks.contenders.base import Data, TooFewBytesError, c_bytes
from benchmarks.contenders.descent import codes_of, rounded
from benchmarks.equal_bytes import run

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("size") is None, reason="gcc is not here")

RIVALS = {
    "hist-gradient-boosting": {"leaves": 4, "rate": 0.3, "bins": 16, "least": 5, "share": 1.0},
    "mlp": {"bits": 4, "hidden": 2, "rate": 5e-3, "decay": 1e-2, "share": 1.0},
    "protonn": {"rank": 3, "density": 0.5, "bits": 4, "rate": 1e-2, "width": 8.0},
    "bonsai": {"rank": 3, "depth": 1, "density": 1.0, "bits": 8, "rate": 1e-2},
}


def problems():
    flowers, (X, y) = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
    two = flowers[0].astype(np.float32), (flowers[1] > 1).astype(int)
    return {
        "classes": Data("iris", flowers[0].astype(np.float32), flowers[1], *flowers, StandardScaler()),
        "two": Data("two", *two, *two, None),
        "values": Data("diabetes", X.astype(np.float32), y.astype(np.float64), X, y, StandardScaler()),
    }


@pytest.mark.parametrize("kind", problems())
@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_is_within_its_bytes_and_its_c_predicts_as_python_does(name, kind):
    data = problems()[kind]
    shipped = CONTENDERS[name].fit(data, 2048, RIVALS[name], 0.2)
    assert c_bytes(shipped.source) <= 2048
    found, wanted = run(data, shipped, data.X).found, shipped.predict(data.X)
    if data.real:
        np.testing.assert_allclose(found, wanted, rtol=1e-3)
    else:
        assert np.mean(found != wanted) <= 0.01
    chance = data.y.std() if data.real else np.mean(data.y != np.bincount(data.y).argmax())
    assert (np.sqrt(np.mean((found - data.y) ** 2)) if data.real else np.mean(found != data.y)) < chance


@pytest.mark.parametrize("name", RIVALS)
def test_too_few_bytes_are_refused(name):
    with pytest.raises(TooFewBytesError, match="bytes, of 60"):
        CONTENDERS[name].fit(problems()["classes"], 60, RIVALS[name], 0.1)


@pytest.mark.parametrize("bits", [4, 8])
def test_rounding_is_to_the_nearest_code_and_changes_a_rounded_table_no_more(bits):
    W = np.random.default_rng(0).normal(size=(30, 3))
    codes, step = codes_of(W, bits)
    assert np.abs(codes).max() == 2 ** (bits - 1) - 1
    assert (np.abs(rounded(W, bits) - W) <= step / 2 + 1e-6).all()
    np.testing.assert_array_equal(codes_of(rounded(W, bits), bits)[0], codes)
