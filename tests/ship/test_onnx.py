"""ONNX beyond what tests/test_export.py has: float64, SVMClassifier, and skl2onnx's Pipelines."""

import sys

import numpy as np
import pytest
from shipped import LAYOUTS, ROWS, SCALERS, assert_agrees, exported, model_of, shipped
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR, OneClassSVM

from slimsvm import SlimSVC, export
from slimsvm.kernels.spec import SPECS
from slimsvm.ship.onnx import SVM_KERNELS
from slimsvm.ship.source import artefact_of
from tools.targets import onnx_outcome, onnx_session

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("kernel", SPECS)
@pytest.mark.parametrize("scaler", ["none", "range"])
def test_float64_has_the_digits_of_python(kernel, scaler, tmp_path):
    model = model_of(kernel, scaler="none" if kernel == "chi2" else scaler)
    assert_agrees(model, shipped(model, "onnx", tmp_path, precision="float64"), within=1e-12)


@pytest.mark.parametrize("kernel", SVM_KERNELS)
@pytest.mark.parametrize("layout", ["two", "pairs", "votes", "parted", "regression", "novelty"])
def test_one_svm_operator_does_the_same(kernel, layout, tmp_path):
    model = model_of(kernel, layout)
    assert_agrees(model, shipped(model, "onnx", tmp_path, flavor="svm"))
    operators = [node.op_type for node in onnx.load(tmp_path / "made.onnx").graph.node]
    assert ("SVMRegressor" if layout in ("regression", "novelty") else "SVMClassifier") in operators
    assert "Gemm" not in operators or layout in ("votes", "parted")


@pytest.mark.parametrize("scaler", SCALERS)
def test_an_svm_classifier_takes_scaled_rows(scaler, tmp_path):
    model = model_of(layout="two", scaler=scaler)
    assert_agrees(model, shipped(model, "onnx", tmp_path, flavor="svm"))


def test_what_an_svm_classifier_cannot_hold_is_refused(tmp_path):
    for model, settings, words in (
        (model_of(layout="rest"), {"flavor": "svm"}, "output per class"),
        (model_of("chi2", "two"), {"flavor": "svm"}, "SVMClassifier has no 'chi2' kernel"),
        (model_of("chi2", "novelty"), {"flavor": "svm"}, "SVMRegressor has no 'chi2' kernel"),
        (model_of(layout="two"), {"flavor": "svm", "precision": "float64"}, "hold float32"),
        (model_of(), {"flavor": "sweet"}, "unknown flavor 'sweet'"),
        (model_of(), {"precision": "int8"}, "unknown precision 'int8'"),
    ):
        with pytest.raises(ValueError, match=words):
            export(model, tmp_path / "m.onnx", **settings)


def test_labels_that_are_not_whole_are_refused(tmp_path):
    model = model_of(layout="two")
    model.classes_ = np.array([0.5, 1.5])
    with pytest.raises(ValueError, match="whole numbers or strings"):
        export(model, tmp_path / "m.onnx")


def test_without_onnx_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"slimsvm\[onnx\]"):
        export(model_of(), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def converted(model, X, **options):
    skl2onnx = pytest.importorskip("skl2onnx")
    from slimsvm.ship.converter import register

    register()
    no_map = {"zipmap": False} if hasattr(model, "classes_") else None
    session = onnx_session(skl2onnx.to_onnx(model, X[:1], options=options or no_map).SerializeToString())
    return session.run(None, {"X": X})


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_skl2onnx_converts_our_estimators(layout, dtype):
    model = model_of(layout=layout, scaler="standard")
    found = converted(model, ROWS.astype(dtype))
    assert_agrees(model, onnx_outcome(artefact_of(model), found), within=1e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize(("ours", "theirs"), [("regression", SVR()), ("novelty", OneClassSVM())])
def test_results_have_the_shapes_and_types_of_skl2onnx(ours, theirs, tmp_path):
    skl2onnx, model, rows = pytest.importorskip("skl2onnx"), model_of(layout=ours), ROWS.astype(np.float32)
    theirs.fit(ROWS, ROWS[:, 0])
    expected = onnx_session(skl2onnx.to_onnx(theirs, rows[:1]).SerializeToString()).run(None, {"X": rows})
    found = onnx_session(exported(model, "onnx", tmp_path).read_bytes())
    forms = [(array.dtype, array.shape) for array in expected]
    assert [(array.dtype, array.shape) for array in found.run(None, {"X": rows})] == forms
    assert [(array.dtype, array.shape) for array in converted(model, rows)] == forms
    assert [output.name for output in found.get_outputs()] == (["value"] if ours == "regression" else ["label", "scores"])


def test_skl2onnx_converts_a_pipeline_that_export_does_not_know():
    y = (ROWS[:, 0] * ROWS[:, 1] > 0.6).astype(int)
    model = make_pipeline(PCA(3), SlimSVC(10, random_state=0)).fit(ROWS, y)
    found = converted(model, ROWS.astype(np.float32))
    np.testing.assert_array_equal(found[0], model.predict(ROWS))
    np.testing.assert_allclose(found[1][:, 1], model.decision_function(ROWS), atol=1e-4)


def test_skl2onnx_makes_its_map_of_scores():
    model = model_of(layout="words")
    labels, scores = converted(model, ROWS.astype(np.float32), zipmap=True)
    np.testing.assert_array_equal([max(row, key=row.get) for row in scores], labels)
