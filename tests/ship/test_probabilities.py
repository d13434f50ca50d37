"""Calibrated models in every format: the same probabilities as in Python, and the most probable class predicted."""

import json
import subprocess
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC, export, load, runtime, save
from slimsvm.calibration import CALIBRATIONS
from slimsvm.ship.converter import register
from slimsvm.ship.source import artefact_of
from tools.targets import missing, onnx_session, run_c, run_js

pytestmark = pytest.mark.usefixtures("quick_slim")

MAIN = """
#include <stdio.h>
#include "model.h"
int main(void)
{
    float x[MODEL_FEATURES], p[CLASSES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        int label = model_predict(x);
        model_proba(x, p);
        fwrite(&label, sizeof label, 1, stdout);
        fwrite(p, sizeof p, 1, stdout);
    }
    return 0;
}
"""
CASES = [(name, classes, whole) for name in CALIBRATIONS for classes, whole in ((2, False), (3, True), (3, False))]
IDS = [f"{name}-{classes}-{'full' if whole else 'small'}" for name, classes, whole in CASES]


@cache
def fitted(name, n_classes, whole):
    """A Pipeline, with float32 rows to predict that are not near a tie."""
    X, y = make_classification(
        260, 5, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=1
    )
    svc = SlimSVC(None if whole else 6, C=3.0, reducer="spsvm", calibration=name, random_state=0)
    model = make_pipeline(StandardScaler(), svc).fit(X, y)
    rows = X[:120].astype(np.float32).astype(np.float64)
    largest = np.sort(model.predict_proba(rows), axis=1)
    return model, rows[largest[:, -1] - largest[:, -2] > 1e-3]


@pytest.fixture(params=CASES, ids=IDS)
def case(request):
    return fitted(*request.param)


def test_files_of_ours_keep_probabilities(case, tmp_path):
    model, X = case
    save(model, tmp_path / "model.slim")
    loaded = load(tmp_path / "model.slim")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    export(model, tmp_path / "model.json")
    for run in (runtime(model), runtime(tmp_path / "model.json")):
        np.testing.assert_allclose(run.proba(X), model.predict_proba(X), atol=1e-6)
        np.testing.assert_array_equal(run(X), model.predict(X))
        np.testing.assert_allclose(run.proba(X[0]), model.predict_proba(X[:1])[0], atol=1e-6)


@pytest.mark.skipif(bool(missing("gcc")), reason=missing("gcc"))
@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_c(case, precision, tmp_path):
    model, X = case
    source = tmp_path / "model.c"
    export(model, source, precision=precision)
    classes = model.classes_.size
    (tmp_path / "main.c").write_text(MAIN.replace("CLASSES", str(classes)))
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run(["gcc", *flags, source, tmp_path / "main.c", "-lm", "-o", tmp_path / "run"], check=True)
    done = subprocess.run([tmp_path / "run"], input=X.astype(np.float32).tobytes(), capture_output=True, check=True)
    found = np.frombuffer(done.stdout, dtype=[("label", np.int32), ("p", np.float32, (classes,))])
    coarse = 2e-2 if precision == "int16" else 1e-4
    np.testing.assert_allclose(found["p"], model.predict_proba(X), atol=coarse)
    np.testing.assert_array_equal(found["label"], found["p"].argmax(axis=1))
    scores = run_c(source, artefact_of(model), X).scores
    np.testing.assert_allclose(scores.squeeze(), model.decision_function(X), atol=0.1 if precision == "int16" else 1e-3)


@pytest.mark.skipif(bool(missing("node")), reason=missing("node"))
def test_javascript(case, tmp_path):
    model, X = case
    export(model, tmp_path / "model.mjs")
    np.testing.assert_array_equal(run_js(tmp_path / "model.mjs", artefact_of(model), X).labels, model.predict(X))
    module = (tmp_path / "model.mjs").as_uri()
    code = f'import {{ proba }} from "{module}"; console.log(JSON.stringify({X.tolist()}.map(proba)))'
    done = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, check=True, text=True)
    np.testing.assert_allclose(json.loads(done.stdout), model.predict_proba(X), atol=1e-4)


def test_onnx(case, tmp_path):
    pytest.importorskip("onnxruntime")
    model, X = case
    export(model, tmp_path / "model.onnx", precision="float64")
    label, _, p = onnx_session((tmp_path / "model.onnx").read_bytes()).run(None, {"X": X})
    np.testing.assert_allclose(p, model.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(label, model.predict(X))


def unused_constants(path):
    """Return the arrays of an ONNX file that no node reads; ONNX Runtime logs a warning for each."""
    graph = pytest.importorskip("onnx").load(path).graph
    return {array.name for array in graph.initializer} - {name for node in graph.node for name in node.input}


def test_onnx_has_no_unused_arrays(case, tmp_path):
    export(case[0], tmp_path / "model.onnx")
    assert not unused_constants(tmp_path / "model.onnx")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_skl2onnx(n_classes):
    skl2onnx = pytest.importorskip("skl2onnx")
    model, X = fitted("sigmoid", n_classes, whole=False)
    register()
    converted = skl2onnx.to_onnx(model, X[:1].astype(np.float32), options={"zipmap": False})
    label, p = onnx_session(converted.SerializeToString()).run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(p, model.predict_proba(X), atol=1e-4)
    np.testing.assert_array_equal(label, model.predict(X))


@pytest.mark.skipif(bool(missing("svm-predict")), reason=missing("svm-predict"))
def test_libsvm_has_the_sigmoid_of_two_classes(tmp_path):
    model, X = fitted("sigmoid", 2, whole=True)
    svc, rows = model[-1], model[:-1].transform(X)
    export(svc, tmp_path / "model.libsvm")
    dump_svmlight_file(rows, np.zeros(len(rows)), str(tmp_path / "rows"), zero_based=False)
    command = ["svm-predict", "-b", "1", tmp_path / "rows", tmp_path / "model.libsvm", tmp_path / "out"]
    subprocess.run(command, check=True, capture_output=True)
    lines = (tmp_path / "out").read_text().splitlines()
    order = [int(label) for label in lines[0].split()[1:]]
    found = np.array([line.split() for line in lines[1:]], dtype=float)
    np.testing.assert_array_equal(found[:, 0], svc.predict(rows))
    np.testing.assert_allclose(found[:, 1:][:, np.argsort(order)], svc.predict_proba(rows), atol=1e-4)


def test_a_libsvm_file_brings_its_probabilities_back(tmp_path):
    model, X = fitted("sigmoid", 2, whole=True)
    svc, rows = model[-1], model[:-1].transform(X)
    export(svc, tmp_path / "model.libsvm")
    read = load(tmp_path / "model.libsvm")
    np.testing.assert_allclose(read.predict_proba(rows), svc.predict_proba(rows), atol=1e-9)
    np.testing.assert_array_equal(read.predict(rows), svc.predict(rows))
    export(read, tmp_path / "again.libsvm")
    assert (tmp_path / "again.libsvm").read_text() == (tmp_path / "model.libsvm").read_text()


@pytest.mark.parametrize("labels", [(3, 7), (7, 3)])
def test_probabilities_in_a_file_are_those_of_the_first_label(labels, tmp_path):
    """LIBSVM's formula: p = 1 / (1 + exp(A f + B)) for the label that comes first in the file."""
    head = (
        "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel {} {}\nprobA -2\nprobB 0.3\nnr_sv 1 1"
    )
    (tmp_path / "m").write_text(head.format(*labels) + "\nSV\n1 1:1\n-1 1:-0.5\n")
    X = np.linspace(-2, 2, 9)[:, None]
    first = 1 / (1 + np.exp(-2 * (1.5 * X.ravel() - 0.5) + 0.3))
    read = load(tmp_path / "m")
    np.testing.assert_allclose(read.predict_proba(X)[:, list(read.classes_).index(labels[0])], first, rtol=1e-12)


@pytest.mark.parametrize("entry", ["probA x", "probA nan", "probA 1 2", "probA"])
def test_broken_probabilities_in_a_libsvm_file_are_refused(entry, tmp_path):
    model, _ = fitted("sigmoid", 2, whole=True)
    export(model[-1], tmp_path / "m.libsvm")
    text = (tmp_path / "m.libsvm").read_text()
    line = next(line for line in text.splitlines() if line.startswith("probA"))
    (tmp_path / "m.libsvm").write_text(text.replace(line, entry))
    with pytest.raises(ValueError, match="probA"):
        load(tmp_path / "m.libsvm")


def test_libsvm_says_what_it_leaves_out(tmp_path):
    model, _ = fitted("isotonic", 3, whole=False)
    with pytest.warns(UserWarning, match="without them"):
        export(model[-1], tmp_path / "model.libsvm")


def test_a_runtime_without_probabilities_says_so():
    X, y = make_classification(60, 4, random_state=0)
    with pytest.raises(ValueError, match="calibration='sigmoid'"):
        runtime(SlimSVC().fit(X, y)).proba(X)


def test_hostile_calibrations_in_json_are_refused(tmp_path):
    model, _ = fitted("isotonic", 2, whole=False)
    export(model, tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    wrong = [
        {"name": "magic"},
        {"name": "sigmoid", "slope": [1.0]},
        {"name": "sigmoid", "slope": [1.0, 2.0], "shift": [0.0, 0.0]},
        {"name": "temperature", "temperature": -1.0},
        {"name": "temperature", "temperature": [1.0, 2.0]},
        document["calibration"] | {"starts": [0, 10**9]},
        document["calibration"] | {"starts": [0.5, 2]},
    ]
    for entry in wrong:
        (tmp_path / "bad.json").write_text(json.dumps(document | {"calibration": entry}))
        with pytest.raises(ValueError, match="cannot read"):
            runtime(tmp_path / "bad.json")
