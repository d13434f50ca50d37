"""Numbers beyond float32, files that would overwrite each other, and points beyond memory: refused with what to do."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from shipped import ROWS, assert_agrees, model_of, shipped
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from slimsvm import SlimSVC, export
from slimsvm.estimators import machine_of
from slimsvm.goals import OneVsRest
from slimsvm.importers.models import Imported
from slimsvm.kernels import RBF
from slimsvm.model import Expansion
from slimsvm.ship.c import CExporter
from slimsvm.ship.literals import as_float32, float_literal
from slimsvm.ship.onnx import ONNXExporter
from slimsvm.ship.source import artefact_of

X, y = make_classification(200, random_state=0)


@pytest.mark.parametrize("settings", [{"precision": "float32"}, {"precision": "int8"}], ids=["float32", "int8"])
@pytest.mark.parametrize("factor", [1e-20, 1e20])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_features_whose_sums_float32_does_not_hold_are_refused(kernel, factor, settings, tmp_path):
    gamma = 0.05 / factor**2
    model = SlimSVC(kernel=kernel, gamma=gamma).fit(X * factor, y)
    with pytest.raises(ValueError, match="StandardScaler"):
        export(model, tmp_path / "t.c", **settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("factor", [1e-20, 1e20])
def test_onnx_refuses_them_in_float32_and_takes_them_in_float64(factor, tmp_path):
    pytest.importorskip("onnx")
    model = SlimSVC().fit(X * factor, y)
    with pytest.raises(ValueError, match="StandardScaler"):
        export(model, tmp_path / "t.onnx")
    export(model, tmp_path / "t.onnx", precision="float64")


# MaxAbsScaler leaves features of 1e-20 as they are
@pytest.mark.parametrize(("scaler", "factor"), [(StandardScaler, 1e-20), (StandardScaler, 1e20), (MaxAbsScaler, 1e20)])
def test_with_a_scaler_they_are_exported_and_agree(scaler, factor, tmp_path):
    rows = X * factor
    model = make_pipeline(scaler(), SlimSVC()).fit(rows, y)
    assert_agrees(model, shipped(model, "c", tmp_path, rows), rows, within=1e-4)


@pytest.mark.parametrize("factor", [1e-20, 1e20])
def test_one_feature_of_any_scale_is_not_folded_into_gamma(factor, tmp_path):
    rows = X[:, [np.abs(np.corrcoef(X.T, y)[-1, :-1]).argmax()]] * factor
    model = make_pipeline(StandardScaler(), SlimSVC()).fit(rows, y)
    assert_agrees(model, shipped(model, "c", tmp_path, rows), rows, within=1e-4)


@pytest.mark.parametrize("value", [1e39, -1e39, np.inf, np.nan, 1e-39])
def test_a_constant_beyond_float32_is_refused(value):
    with pytest.raises(ValueError, match="float32"):
        float_literal(value)


def test_tables_beyond_float32_are_refused():
    assert as_float32(np.array([0.0, 1e-300, 1.0]), "points").tolist() == [0, 0, 1]
    for values, settings in (([1e39], {}), ([1e-39, 1e-40], {}), ([1.0, 1e-39], {"each": True})):
        with pytest.raises(ValueError, match="float32"):
            as_float32(np.array(values), "points", **settings)


@pytest.mark.parametrize(
    ("name", "target", "scaler"), [("model.h", "c", "none"), ("m.H", "c", "none"), ("x.range", "libsvm", "range")]
)
def test_a_name_that_belongs_to_the_second_file_is_refused(name, target, scaler, tmp_path):
    with pytest.raises(ValueError, match="name it"):
        export(model_of(scaler=scaler, layout="two"), tmp_path / name, target)
    assert not list(tmp_path.iterdir())


def test_that_name_is_free_where_there_is_no_second_file(tmp_path):
    assert export(model_of(layout="two"), tmp_path / "x.range", "libsvm") == [tmp_path / "x.range"]


@pytest.mark.parametrize("size", [0, 3])
def test_points_that_would_not_fit_into_memory_are_refused(size):
    points = csr_array((size, 2**31 - 1))
    model = Expansion(RBF(1.0), points, np.ones((size, 1)), np.zeros(1))
    svc = machine_of(Imported(model, OneVsRest(2), np.array([0, 1]), 2**31 - 1, {}))
    assert len(CExporter().render(artefact_of(svc), "made")[".c"]) < 10_000  # their nonzeros fit
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="GiB"):
        ONNXExporter(flavor="svm").render(artefact_of(svc), "made")


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7, 12])
def test_powers_in_c_are_those_of_python(degree, tmp_path):
    model = model_of("poly", "two")
    model.model_ = replace(model.model_, kernel=replace(model.model_.kernel, degree=degree))
    expected = model.decision_function(ROWS)
    outcome = shipped(model, "c", tmp_path)
    np.testing.assert_allclose(outcome.scores.ravel(), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
