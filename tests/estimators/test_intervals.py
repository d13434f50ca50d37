"""Intervals of a regressor: coverage, files and exports."""

import ctypes
import json
import subprocess

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC, SlimSVR, export, load, runtime, save
from slimsvm.calibration import Conformal
from tools.targets import STRICT, missing


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(scale=0.3, size=n)


@pytest.fixture(scope="module")
def model():
    return SlimSVR(12, calibration="conformal", trainer=None, random_state=0).fit(*rows(500))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_intervals_cover_the_share_that_was_asked_for(model, coverage):
    X, y = rows(4000, 1)
    low, high = model.predict_interval(X, coverage=coverage).T
    assert abs(np.mean((low <= y) & (y <= high)) - coverage) < 0.05
    np.testing.assert_allclose((low + high) / 2, model.predict(X))


def test_the_reach_is_the_order_statistic_of_split_conformal():
    errors = np.random.default_rng(0).uniform(size=19)
    assert Conformal.of(errors).half_width(0.8) == np.sort(errors)[15]
    assert Conformal.of(errors).half_width(0.95) == errors.max()
    many = np.random.default_rng(0).uniform(size=5001)
    np.testing.assert_allclose(Conformal.of(many).half_width(0.9), np.quantile(many, 0.9), atol=2e-3)
    with pytest.raises(ValueError, match="takes more than 19 rows"):
        Conformal.of(errors).half_width(0.96)


def test_files_and_exports_have_both_ends(model, tmp_path):
    X, _ = rows(20, 1)
    wanted = model.predict_interval(X)
    save(model, tmp_path / "model.slim")
    export(model, tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.slim").predict_interval(X), wanted)
    for given in (model, tmp_path / "model.slim", tmp_path / "model.json"):
        np.testing.assert_allclose(runtime(given).interval(X), wanted)
    if not missing("node"):
        export(model, tmp_path / "model.mjs", coverage=0.8)
        program = """import { interval } from "./model.mjs";
            console.log(JSON.stringify(JSON.parse(process.argv[2]).map(interval)));"""
        (tmp_path / "run.mjs").write_text(program)
        ran = subprocess.run(["node", tmp_path / "run.mjs", json.dumps(X.tolist())], check=True, capture_output=True)
        np.testing.assert_allclose(json.loads(ran.stdout), wanted, atol=1e-5)
    if not missing("gcc"):
        export(model, tmp_path / "model.c", coverage=0.8)
        subprocess.run(
            ["gcc", *STRICT, "-shared", "-fPIC", tmp_path / "model.c", "-o", tmp_path / "m.so", "-lm"], check=True
        )
        library, found = ctypes.CDLL(str(tmp_path / "m.so")), (ctypes.c_float * 2)()
        for row, ends in zip(X.tolist(), wanted, strict=True):
            library.model_interval((ctypes.c_float * 2)(*row), found)
            np.testing.assert_allclose(list(found), ends, atol=1e-5)


def test_intervals_of_scaled_targets_are_exported_in_the_units_of_the_targets(model):
    X, y = rows(300)
    scaled = TransformedTargetRegressor(
        SlimSVR(12, calibration="conformal", trainer=None, random_state=0), transformer=StandardScaler()
    ).fit(X, 100 * y)
    width = np.ptp(runtime(scaled).interval(X[0]))
    np.testing.assert_allclose(width, 100 * np.ptp(runtime(model).interval(X[0])), rtol=0.2)


def test_what_has_no_intervals_says_so(model):
    X, y = rows(60)
    plain = SlimSVR(4, trainer=None).fit(X, y)
    assert not hasattr(plain, "predict_interval")
    with pytest.raises(ValueError, match="coverage= is for a regressor with intervals"):
        export(plain, "model.c", coverage=0.8)
    with pytest.raises(ValueError, match="unknown calibration 'sigmoid'"):
        SlimSVR(4, calibration="sigmoid").fit(X, y)
    with pytest.raises(ValueError, match="unknown calibration 'conformal'"):
        SlimSVC(4, calibration="conformal").fit(X, y > 0)
    with pytest.raises(ValueError, match="coverage must be a share"):
        model.predict_interval(X, coverage=80)
    with pytest.raises(ValueError, match="takes 10 rows at least"):
        SlimSVR(2, calibration="conformal").fit(X[:6], y[:6])


def test_mapie_makes_the_same_intervals_of_the_same_errors():
    mapie = pytest.importorskip("mapie.regression")
    X, y = rows(400)
    held_X, held_y = rows(250, 1)
    new, _ = rows(50, 2)
    svr = SlimSVR(12, trainer=None, random_state=0).fit(X, y)
    judge = mapie.SplitConformalRegressor(svr, confidence_level=0.8, prefit=True).conformalize(held_X, held_y)
    _, wanted = judge.predict_interval(new)
    reach = Conformal.of(np.abs(held_y - svr.predict(held_X))).half_width(0.8)
    np.testing.assert_allclose(wanted[:, :, 0], svr.predict(new)[:, None] + [-reach, reach], atol=1e-9)


def test_mapie_makes_sets_of_classes_of_a_calibrated_classifier():
    mapie = pytest.importorskip("mapie.classification")
    X, y = rows(400)
    svc = SlimSVC(12, calibration="sigmoid", random_state=0).fit(X, np.digitize(y, [-1, 1]))
    held_X, held_y = rows(400, 1)
    judge = mapie.SplitConformalClassifier(svc, confidence_level=0.9, prefit=True)
    new, truth = rows(2000, 2)
    _, sets = judge.conformalize(held_X, np.digitize(held_y, [-1, 1])).predict_set(new)
    covered = sets[np.arange(2000), np.digitize(truth, [-1, 1]), 0]
    assert abs(covered.mean() - 0.9) < 0.04
