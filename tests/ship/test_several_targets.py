"""Models of several targets: every export writes the values of all of them, or refuses them by name."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from shipped import ROWS, shipped
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVR, export, load, runtime, save, shapley
from slimsvm.ship.source import artefact_of
from tools.targets import missing, run_c_sparse

Y = np.column_stack([np.sin(3 * ROWS[:, 0]), 100 + 40 * ROWS[:, 1] * ROWS[:, 2], ROWS[:, 3] - ROWS[:, 4]])


def model(**settings):
    return SlimSVR(12, C=100, epsilon=0.01, trainer=None, random_state=0, **settings)


@pytest.fixture(scope="module")
def fitted():
    return make_pipeline(StandardScaler(), model()).fit(ROWS, Y)


@pytest.fixture(scope="module")
def on_targets():
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), model()), transformer=StandardScaler()).fit(ROWS, Y)


@pytest.mark.parametrize(
    ("target", "settings", "within"),
    [
        ("c", {}, 1e-4),
        ("c", {"precision": "int16"}, 2e-2),
        ("c", {"precision": "int4"}, 1.0),
        ("js", {}, 1e-4),
        ("json", {}, 1e-12),
        ("onnx", {}, 1e-4),
    ],
)
def test_exports_have_the_values_of_all_targets(fitted, target, settings, within, tmp_path):
    found = shipped(fitted, target, tmp_path, **settings)
    assert found.scores is None
    assert found.labels.shape == Y.shape
    np.testing.assert_array_less(np.abs(found.labels - fitted.predict(ROWS)) / Y.std(axis=0), within)


@pytest.mark.parametrize("target", ["c", "js", "json"])
def test_targets_are_scaled_back(on_targets, target, tmp_path):
    found = shipped(on_targets, target, tmp_path)
    np.testing.assert_allclose(found.labels, on_targets.predict(ROWS), rtol=1e-3, atol=1e-3)


def test_a_sparse_row_has_all_values(tmp_path):
    if reason := missing("gcc"):
        pytest.skip(reason)
    rows = csr_array(np.where(np.random.default_rng(0).random((150, 40)) < 0.05, 1.0, 0.0))
    svr = SlimSVR(C=1).fit(rows, Y)
    export(svr, tmp_path / "made.c")
    entries = [(row.nonzero()[0], row[row.nonzero()]) for row in rows.toarray()[:20]]
    found = run_c_sparse(tmp_path / "made.c", artefact_of(svr), entries)
    np.testing.assert_allclose(found.labels, svr.predict(rows[:20]), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(shipped(svr, "c", tmp_path, rows[:20].toarray(), force=True).labels, found.labels, rtol=1e-6)


@pytest.mark.parametrize("model_name", ["fitted", "on_targets"])
def test_files_hold_all_targets(request, model_name, tmp_path):
    given = request.getfixturevalue(model_name)
    save(given, tmp_path / "model.slim")
    np.testing.assert_allclose(load(tmp_path / "model.slim").predict(ROWS), given.predict(ROWS), rtol=1e-12)
    run = runtime(tmp_path / "model.slim")
    np.testing.assert_allclose(run(ROWS), given.predict(ROWS), rtol=1e-9)
    assert run(ROWS[0]).shape == (3,)


def test_shapley_values_have_an_output_for_each_target(fitted):
    found = shapley(fitted, ROWS[:3])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, fitted.predict(ROWS[:3]))


@pytest.mark.parametrize(("name", "settings"), [("made.libsvm", {}), ("made.bin", {}), ("made.c", {"integers": True})])
def test_exports_of_one_value_refuse_several(fitted, name, settings, tmp_path):
    with pytest.raises(ValueError, match="3 targets"):
        export(fitted, tmp_path / name, **settings)
