"""Tables of codes: C, JavaScript and Python hold the same numbers and predict the same, label for label."""

from dataclasses import replace

import numpy as np
import pytest
from shipped import ROWS, exported, model_of

from slimsvm import export, runtime
from slimsvm.metric import Metric
from slimsvm.rounding import rounded
from slimsvm.ship.coded import Coded, exponential, tangent
from slimsvm.ship.source import artefact_of
from tools.targets import missing, run_c, run_js

PROJECTION = np.random.default_rng(5).normal(size=(7, 3))
ROWS_TO_PREDICT = np.random.default_rng(3).random((2000, 7)) * [1, 2, 3, 1, 1, 0.5, 1]
#: each kernel, goal and preparation of rows at least once: (kernel, layout, scaler, projected, precision)
CASES = [
    ("rbf", "rest", "none", False, "int4"),
    ("rbf", "two", "standard", True, "int4"),
    ("rbf", "novelty", "clipped", True, "int8"),
    ("laplacian", "dag", "clipped", False, "int4"),
    ("laplacian", "words", "none", True, "int16"),
    ("linear", "rest", "standard", False, "int4"),
    ("linear", "regression", "none", True, "int4"),
    ("poly", "votes", "range", False, "int4"),
    ("poly", "parted", "none", True, "int8"),
    ("sigmoid", "pairs", "two", False, "int4"),
    ("chi2", "rest", "none", False, "int4"),
]


def made(kernel, layout, scaler, projected):
    metric = Metric(widths=np.geomspace(0.5, 3, 9)) if kernel in ("rbf", "laplacian") else None
    artefact = artefact_of(model_of(kernel, layout, scaler, metric=metric))
    return replace(artefact, projection=PROJECTION, points=artefact.table @ PROJECTION) if projected else artefact


def scores_of(artefact, outputs):
    if not artefact.classes.size and artefact.goal.name == "regression":
        return None
    return artefact.goal.scores(outputs.astype(float)).reshape(len(outputs), -1)


@pytest.mark.parametrize("target", ["c", "js"])
@pytest.mark.parametrize(("kernel", "layout", "scaler", "projected", "precision"), CASES)
def test_exports_compute_what_python_computes(kernel, layout, scaler, projected, precision, target, tmp_path):
    if reason := missing({"c": "gcc", "js": "node"}[target]):
        pytest.skip(reason)
    if target == "js" and precision != "int4":
        pytest.skip("JavaScript has no tables of 8 and 16 bits")
    artefact = made(kernel, layout, scaler, projected)
    path = exported(artefact, target, tmp_path, precision=precision)
    outcome = {"c": run_c, "js": run_js}[target](path, artefact, ROWS_TO_PREDICT)
    outputs = Coded.of(artefact, precision).outputs(ROWS_TO_PREDICT)
    labels = artefact.goal.decode(outputs.astype(float))
    np.testing.assert_array_equal(outcome.labels, artefact.classes[labels] if artefact.classes.size else labels)
    if outcome.scores is not None and not artefact.by_pairs:
        np.testing.assert_array_equal(outcome.scores, scores_of(artefact, outputs))


def test_a_model_for_four_bits_is_exported_and_run_as_one(tmp_path):
    artefact = replace(made("rbf", "rest", "none", projected=True), precision="int4")
    paths = export(artefact, tmp_path / "m.c")
    assert "int4 tables" in paths[0].read_text()
    run = runtime(artefact)
    np.testing.assert_array_equal(run.scores(ROWS), Coded.of(artefact, "int4").outputs(ROWS))
    assert run(ROWS[3]) == run(ROWS)[3]
    assert "BITS = 4" in export(artefact, tmp_path / "m.mjs")[0].read_text()


def test_a_rounded_model_keeps_its_numbers():
    held = Coded.of(made("rbf", "rest", "none", projected=True), "int4").a
    again = Coded.of(held, "int4").a
    for name in ("points", "coef", "projection", "bias"):
        np.testing.assert_array_equal(getattr(again, name), getattr(held, name))
    np.testing.assert_allclose(again.widths, held.widths, rtol=1e-6)
    np.testing.assert_array_equal(held.coef, rounded(held.coef, 4))


def test_outputs_are_those_of_the_rounded_model():
    coded = Coded.of(made("rbf", "rest", "standard", projected=False), "int4")
    plain = runtime(replace(coded.a, precision="float32")).scores(ROWS)
    np.testing.assert_allclose(coded.outputs(ROWS), plain, atol=1e-5)


def test_the_exponential_is_exact_to_float32():
    x = np.linspace(-80, 80, 100_001).astype(np.float32)
    np.testing.assert_allclose(exponential(x), np.exp(x.astype(np.float64)), rtol=3e-7)
    np.testing.assert_allclose(tangent(x), np.tanh(x.astype(np.float64)), atol=2e-7)


@pytest.mark.parametrize("target", ["json", "onnx"])
def test_other_formats_hold_projections(target, tmp_path):
    artefact = made("rbf", "rest", "standard", projected=True)
    if target == "onnx":
        pytest.importorskip("onnxruntime")
        from tools.targets import run_onnx

        outcome = run_onnx(exported(artefact, "onnx", tmp_path), artefact, ROWS)
        np.testing.assert_allclose(outcome.scores, runtime(artefact).scores(ROWS), atol=1e-4)
        return
    export(artefact, tmp_path / "m.json")
    np.testing.assert_allclose(runtime(tmp_path / "m.json").scores(ROWS), runtime(artefact).scores(ROWS))


def test_formats_without_a_matrix_say_so(tmp_path):
    artefact = replace(made("rbf", "two", "none", projected=True), widths=None)
    with pytest.raises(ValueError, match=r"LIBSVM file has no projection.*metric='both'"):
        export(artefact, tmp_path / "m.libsvm")
