"""Exports of sparse points: tables of nonzeros that give Python's scores, on rows with all features and on sparse rows."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from shipped import LAYOUTS, ROWS, TARGETS, WORDS, assert_agrees, clear_rows, exported, model_of, shipped
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC, export, load, runtime, save
from slimsvm.c_bytes import Shape
from slimsvm.calibration import Isotonic, Sigmoid, Temperature
from slimsvm.estimators import machine_of
from slimsvm.goals import OneVsRest
from slimsvm.importers.models import Imported
from slimsvm.kernels import RBF, make_kernel
from slimsvm.kernels.spec import SPECS
from slimsvm.metric import Metric
from slimsvm.model import Expansion
from slimsvm.ship.artefact import Artefact
from slimsvm.ship.c import CExporter
from slimsvm.ship.c_source import SparseCSource
from slimsvm.ship.json import read_json
from slimsvm.ship.libsvm import LIBSVM_KERNELS
from slimsvm.ship.runtime import Runtime
from slimsvm.ship.slim import read_slim
from slimsvm.ship.source import artefact_of
from slimsvm.ship.sparse import SparsePoints, SparseRows, layout_of
from tools.targets import STRICT, missing, run_c, run_c_sparse, run_js_on

SPARSE_ROWS = ROWS * (np.random.default_rng(2).random(ROWS.shape) < 0.6)
#: the targets that take rows by their nonzeros
TAKES_ENTRIES = ["c", "js", "runtime"]


def sparse_model(kernel="rbf", layout="rest", metric=None, scaler="none", size=9):
    """The model of `model_of` with most numbers of its points 0, as CSR."""
    model = model_of(kernel, layout, scaler, size, metric)
    machine = model[-1] if hasattr(model, "steps") else model
    kept = np.random.default_rng(3).random(machine.model_.points.shape) < 0.4
    machine.model_ = replace(machine.model_, points=csr_array(machine.model_.points * kept))
    return model


def entries(X):
    return [(np.flatnonzero(row).tolist(), row[np.flatnonzero(row)].tolist()) for row in X]


def on_entries(model, target, folder, X):
    """Run an exported model on the nonzeros of rows; labels of C are numbers of classes."""
    if target == "runtime":
        run = runtime(model)
        return run(csr_array(X)), run.scores(csr_array(X)).reshape(len(X), -1)
    if reason := missing({"c": "gcc", "js": "node"}[target]):
        pytest.skip(reason)
    path = exported(model, target, folder)
    if target == "js":
        found = run_js_on(path, [{"indices": index, "values": values} for index, values in entries(X)])
        return found.labels, found.scores
    found = run_c_sparse(path, artefact_of(model), entries(X))
    labelled = model.classes_[found.labels] if hasattr(model, "classes_") else found.labels
    return labelled, found.scores


def sparse_source(model, precision, folder):
    """Write the C source with tables of nonzeros, whatever the bytes of other tables; skip without a compiler."""
    if reason := missing("gcc"):
        pytest.skip(reason)
    source = SparseCSource.of(artefact_of(model), "made", precision)
    (folder / "made.c").write_text(source.text())
    (folder / "made.h").write_text(source.header())
    return folder / "made.c"


def decision(model, X):
    return (model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)).reshape(len(X), -1)


@pytest.mark.parametrize("kernel", SPECS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_gives_the_scores_of_python(target, kernel, tmp_path, excused):
    if target == "libsvm" and kernel not in LIBSVM_KERNELS:
        excused("LIBSVM has no such kernel")
        return
    model = sparse_model(kernel)
    assert isinstance(artefact_of(model).points, SparsePoints)
    assert_agrees(model, shipped(model, target, tmp_path, SPARSE_ROWS), SPARSE_ROWS)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("target", [target for target in TARGETS if target != "libsvm"])
def test_every_layout_gives_the_scores_of_python(target, layout, tmp_path):
    model = sparse_model(layout=layout)
    assert_agrees(model, shipped(model, target, tmp_path, SPARSE_ROWS), SPARSE_ROWS)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("target", TAKES_ENTRIES)
def test_rows_by_their_nonzeros_give_the_scores_of_python(target, layout, tmp_path):
    model, expected = sparse_model(layout=layout), None
    labels, scores = on_entries(model, target, tmp_path, SPARSE_ROWS)
    expected = decision(model, SPARSE_ROWS)
    found = labels.reshape(expected.shape) if scores is None else scores
    clear = clear_rows(model, SPARSE_ROWS, 1e-5)
    np.testing.assert_allclose(found[clear], expected[clear], rtol=0, atol=1e-5 * np.abs(expected).max())
    if layout != "regression":
        np.testing.assert_array_equal(labels[clear], model.predict(SPARSE_ROWS)[clear])


@pytest.mark.parametrize("kernel", SPECS)
@pytest.mark.parametrize("target", TAKES_ENTRIES)
def test_rows_by_their_nonzeros_and_every_kernel(target, kernel, tmp_path):
    model = sparse_model(kernel, "novelty")
    _, scores = on_entries(model, target, tmp_path, SPARSE_ROWS)
    expected = decision(model, SPARSE_ROWS)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
@pytest.mark.parametrize("target", [target for target in TARGETS if target != "libsvm"])
def test_scales_of_features_travel_along(target, kernel, tmp_path):
    svc = sparse_model(kernel)
    model = make_pipeline(MaxAbsScaler().fit(ROWS), svc)
    assert isinstance(artefact_of(model).points, SparsePoints)
    assert_agrees(model, shipped(model, target, tmp_path, SPARSE_ROWS), SPARSE_ROWS)
    if target == "c":
        found = run_c_sparse(tmp_path / "made.c", artefact_of(model), entries(SPARSE_ROWS))
        np.testing.assert_allclose(found.scores, decision(model, SPARSE_ROWS), atol=1e-4)


def test_a_scaler_that_fills_zeros_leaves_dense_points():
    model = make_pipeline(StandardScaler().fit(ROWS), sparse_model())
    artefact = artefact_of(model)
    assert isinstance(artefact.points, np.ndarray)
    np.testing.assert_allclose(Runtime(artefact).scores(ROWS), model.decision_function(ROWS), atol=1e-9)


@pytest.mark.parametrize("target", ["c", "js", "onnx", "json"])
def test_learned_metrics_travel_along(target, tmp_path):
    rng = np.random.default_rng(0)
    model = sparse_model(metric=Metric(0.5 + rng.random(7), 0.5 + rng.random(9)))
    assert_agrees(model, shipped(model, target, tmp_path, SPARSE_ROWS), SPARSE_ROWS)


MAPS = {
    "sigmoid": Sigmoid(np.full(4, 2.0), np.full(4, 0.1)),
    "isotonic": Isotonic(np.tile([-1.0, 1.0], 4), np.tile([0.1, 0.8], 4), np.arange(0, 9, 2)),
    "temperature": Temperature(0.7),
}


@pytest.mark.parametrize("name", MAPS)
def test_probabilities_travel_along(name, tmp_path):
    model = sparse_model()
    model.calibration_, model.calibration = MAPS[name], name
    expected = model.predict_proba(SPARSE_ROWS)
    np.testing.assert_allclose(runtime(model).proba(csr_array(SPARSE_ROWS)), expected, atol=1e-9)
    source = exported(model, "c", tmp_path).read_text()
    assert "int made_proba_sparse(" in source
    found = run_c_sparse(tmp_path / "made.c", artefact_of(model), entries(SPARSE_ROWS))
    assert np.mean(found.labels == expected.argmax(axis=1)) > 0.97
    module = run_js_on(exported(model, "js", tmp_path), SPARSE_ROWS.tolist())
    np.testing.assert_array_equal(module.labels, model.classes_[expected.argmax(axis=1)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [0, 5])
def test_points_of_zeros_are_a_constant_or_follow_the_length_of_the_row(target, size, tmp_path):
    model = sparse_model(size=size)
    bias = np.array([0.5, -1.0, 0.25, 2.0])
    model.model_ = replace(model.model_, points=csr_array((size, 7)), bias=bias)
    assert_agrees(model, shipped(model, target, tmp_path, SPARSE_ROWS), SPARSE_ROWS)


# Sparse rows that are not what they should be.

WRONG = {
    "unsorted": ([3, 1], [1.0, 2.0]),
    "repeated": ([1, 1], [1.0, 2.0]),
    "beyond": ([2, 7], [1.0, 2.0]),
    "far beyond": ([2**32 - 1], [1.0]),
}


@pytest.mark.parametrize("layout", ["two", "rest", "dag", "regression", "novelty"])
def test_c_refuses_sparse_rows_that_are_not_in_order_or_beyond_the_features(layout, tmp_path):
    if reason := missing("gcc"):
        pytest.skip(reason)
    model = sparse_model(layout=layout)
    rows = [*WRONG.values(), ([], []), ([6], [0.5])]
    found = run_c_sparse(exported(model, "c", tmp_path), artefact_of(model), rows)
    wrong, right = slice(0, len(WRONG)), slice(len(WRONG), None)
    expected = decision(model, np.array([[0.0] * 7, [0.0] * 6 + [0.5]]))
    if layout == "regression":
        assert np.isnan(found.labels[wrong]).all()
        np.testing.assert_allclose(found.labels[right, None], expected, atol=1e-5)
        return
    assert (found.labels[wrong] == (0 if layout == "novelty" else -1)).all()
    assert np.isnan(found.scores[wrong]).all()
    np.testing.assert_allclose(found.scores[right], expected, atol=1e-5)


def test_javascript_takes_maps_and_any_order(tmp_path):
    if reason := missing("node"):
        pytest.skip(reason)
    model = sparse_model()
    path = exported(model, "js", tmp_path)
    rows = [{"pairs": [[5, 0.3], [1, 2.0]]}, {"indices": [5, 1], "values": [0.3, 2.0]}, {"indices": [], "values": []}]
    whole = np.array([[0, 2.0, 0, 0, 0, 0.3, 0]] * 2 + [[0.0] * 7])
    np.testing.assert_allclose(run_js_on(path, rows).scores, model.decision_function(whole), atol=1e-6)


# Tables.


@pytest.mark.parametrize(
    ("shape", "density", "listed", "ragged"),
    [
        ((20, 5000), 0.001, True, True),
        ((20, 300), 0.1, False, True),
        ((20, 30), 1.0, False, False),
        ((20, 3000), None, True, False),
    ],
)
def test_the_smallest_of_four_layouts_is_chosen(shape, density, listed, ragged, tmp_path):
    """Few columns are listed, and columns of few nonzeros list the points; each layout computes the same."""
    rng = np.random.default_rng(0)
    points = np.zeros(shape)
    if density is None:
        points[:, ::100] = rng.random((shape[0], 30))
    else:
        points = random_array(shape, density=density, rng=rng).toarray()
    classes, goal = np.array([0, 1]), OneVsRest(2)
    model = Expansion(RBF(0.1), csr_array(points), rng.normal(size=(shape[0], 1)), np.zeros(1))
    svc = machine_of(Imported(model, goal, classes, shape[1], {"kernel": "rbf", "gamma": 0.1}))
    artefact = artefact_of(svc)
    layout = layout_of(artefact.points.by_column(), np.float32)
    assert (layout.listed, layout.ragged) == (listed, ragged)
    X = np.vstack([points[:5] * 1.5, random_array((20, shape[1]), density=0.1, rng=rng).toarray()])
    expected = svc.decision_function(X).reshape(-1, 1)
    for precision, within in (("float32", 1e-5), ("int16", 1e-3), ("int8", 0.1)):
        outcome = run_c(sparse_source(svc, precision, tmp_path), artefact, X)
        np.testing.assert_allclose(outcome.scores, expected, rtol=0, atol=within * np.abs(expected).max())
        again = run_c_sparse(tmp_path / "made.c", artefact, entries(X.astype(np.float32)))
        np.testing.assert_array_equal(again.scores, outcome.scores)


@pytest.mark.parametrize("kernel", SPECS)
@pytest.mark.parametrize("precision", ["int16", "int8"])
def test_integers_are_multiples_of_a_step_for_each_point(kernel, precision, tmp_path):
    """C computes what points rounded to 127 or 32,767 steps of their own would give."""
    model = sparse_model(kernel)
    points, most = model.model_.points.toarray(), {"int8": 127, "int16": 32767}[precision]
    steps = np.abs(points).max(axis=1, keepdims=True) / most
    if kernel == "linear":  # the points are the weights of the outputs
        points, coef = model.model_.coef.T @ points, np.eye(4)
        steps = np.abs(points).max(axis=1, keepdims=True) / most
    else:
        coef = model.model_.coef
    steps[steps == 0] = 1.0
    rounded = make_kernel(kernel=kernel, gamma=0.3, degree=3, coef0=0.5)(SPARSE_ROWS, np.rint(points / steps) * steps)
    rounded = rounded @ coef + model.model_.bias
    outcome = run_c(sparse_source(model, precision, tmp_path), artefact_of(model), SPARSE_ROWS)
    np.testing.assert_allclose(outcome.scores, rounded, rtol=0, atol=1e-5 * np.abs(rounded).max())


def test_large_exponents_are_summed_in_double(tmp_path):
    """|x|^2 + |z|^2 - 2 <x, z> of rows far from 0 loses all digits of a small distance in float32."""
    model = sparse_model()
    far = model.model_.points.copy()
    far.data += 1000.0
    model.model_ = replace(model.model_, points=far)
    assert "double s[POINTS]" in exported(model, "c", tmp_path).read_text()
    X = far.toarray() + (far.toarray() != 0) * np.random.default_rng(0).normal(size=far.shape)
    X = X.astype(np.float32).astype(np.float64)
    expected = model.decision_function(X)
    found = run_c_sparse(tmp_path / "made.c", artefact_of(model), entries(X))
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_costs_are_those_of_the_tables():
    model = sparse_model("rbf", "two")
    artefact, sizes = artefact_of(model), {"float": 4, "int8_t": 1, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4}
    for precision in ("float32", "int8"):
        made = SparseCSource.of(artefact, "made", precision)
        source, cost = made.text(), made.cost
        tables = re.findall(r"static const (?:FLASH )?(\w+) \w+\[(\d+)\]", source)
        assert cost.flash == sum(sizes[kind] * int(count) for kind, count in tables)
        assert f"flash  {cost.flash:,} bytes" in source
        assert cost.multiply_adds <= artefact.points.nonzeros + 7 + 9


def test_a_million_features_take_little_space(tmp_path):
    rng = np.random.default_rng(0)
    points = random_array((64, 1_000_000), density=2e-4, rng=rng, format="csr")
    model = Expansion(RBF(0.5), points, rng.normal(size=(64, 1)), np.zeros(1))
    svc = machine_of(Imported(model, OneVsRest(2), np.array([0, 1]), 10**6, {"kernel": "rbf", "gamma": 0.5}))
    X = points[:8]
    expected = svc.decision_function(X)
    for target in ("c", "js", "json", "libsvm"):
        path = exported(svc, target, tmp_path)
        assert path.stat().st_size < 60 * points.nnz
    np.testing.assert_allclose(runtime(tmp_path / "made.json").scores(X).ravel(), expected, atol=1e-9)
    if not missing("gcc"):
        rows = [(row.indices.tolist(), row.data.tolist()) for row in (points[[i]] for i in range(8))]
        found = run_c_sparse(tmp_path / "made.c", artefact_of(svc), rows)
        np.testing.assert_allclose(found.scores.ravel(), expected, atol=1e-4)


def test_onnx_files_hold_the_nonzeros_only(tmp_path):
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    points = random_array((64, 2000), density=0.01, rng=rng, format="csr")
    model = Expansion(RBF(0.5), points, rng.normal(size=(64, 1)), np.zeros(1))
    svc = machine_of(Imported(model, OneVsRest(2), np.array([0, 1]), 2000, {"kernel": "rbf", "gamma": 0.5}))
    X = random_array((40, 2000), density=0.05, rng=rng).toarray()
    outcome = shipped(svc, "onnx", tmp_path, X)
    np.testing.assert_allclose(outcome.scores.ravel(), svc.decision_function(X), atol=1e-4)
    assert (tmp_path / "made.onnx").stat().st_size < 4 * 64 * 2000 / 20


def test_skl2onnx_converts_sparse_points():
    skl2onnx = pytest.importorskip("skl2onnx")
    from slimsvm.ship.converter import register
    from tools.targets import onnx_session

    register()
    model = sparse_model()
    converted = skl2onnx.to_onnx(model, SPARSE_ROWS[:1].astype(np.float32), options={"zipmap": False})
    X = SPARSE_ROWS.astype(np.float32)
    _, scores = onnx_session(converted.SerializeToString()).run(None, {"X": X})
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-4)


# Points and rows.


def test_sparse_points_sum_repeated_entries_and_drop_zeros():
    points = SparsePoints.of(np.array([0, 3, 3, 5]), np.array([4, 1, 4, 0, 2]), np.array([1.0, 2.0, 3.0, 0.0, 5.0]), 6)
    dense = np.array([[0, 2, 0, 0, 4, 0], [0] * 6, [0, 0, 5, 0, 0, 0]])
    np.testing.assert_array_equal(points.dense(), dense)
    np.testing.assert_array_equal(points.starts, [0, 2, 2, 3])
    coef = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(points.weighted(coef).dense(), coef.T @ dense)
    table = points.by_column()
    np.testing.assert_array_equal(table.columns, [1, 2, 4])
    np.testing.assert_array_equal(table.narrow(), dense[:, [1, 2, 4]])
    np.testing.assert_array_equal(table.everywhere().narrow(), dense)


def test_sparse_rows_of_a_dense_model_are_taken():
    model = model_of()
    np.testing.assert_allclose(runtime(model).scores(csr_array(SPARSE_ROWS)), model.decision_function(SPARSE_ROWS))
    assert SparseRows.of_csr(csr_array(SPARSE_ROWS[0])).ndim == 1
    assert runtime(model)(csr_array(SPARSE_ROWS[0])) == model.predict(SPARSE_ROWS[:1])[0]


def test_many_rows_are_taken_in_parts():
    rng = np.random.default_rng(0)
    points = random_array((50, 400), density=0.5, rng=rng, format="csr")
    model = Expansion(RBF(0.05), points, rng.normal(size=(50, 1)), np.zeros(1))
    svc = machine_of(Imported(model, OneVsRest(2), np.array([0, 1]), 400, {"kernel": "rbf", "gamma": 0.05}))
    X = random_array((3000, 400), density=0.1, rng=rng, format="csr")
    np.testing.assert_allclose(runtime(svc).scores(X).ravel(), svc.decision_function(X), atol=1e-6)


def test_a_model_trained_on_sparse_rows_ships(tmp_path):
    rng = np.random.default_rng(0)
    X = random_array((120, 500), density=0.05, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel() > np.median(np.asarray(X.sum(axis=1)))
    svc = SVC(gamma=0.5).fit(X, y)
    for target in TARGETS:
        outcome = shipped(svc, target, tmp_path, X.toarray())
        np.testing.assert_array_equal(outcome.labels, svc.predict(X))


# Files.


def test_json_reads_back(tmp_path):
    artefact = artefact_of(sparse_model(metric=Metric(None, np.arange(1.0, 10.0))))
    path = exported(sparse_model(metric=Metric(None, np.arange(1.0, 10.0))), "json", tmp_path)
    again = read_json(path)
    assert json.loads(path.read_text())["version"] == 4
    for name in ("starts", "columns", "values"):
        np.testing.assert_array_equal(getattr(again.points, name), getattr(artefact.points, name))
    assert isinstance(again, Artefact)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": -1}, "features"),
        ({"features": 2}, "columns from"),
        ({"features": 2**70}, "features"),
        ({"features": "7"}, "'features'"),
        ({"starts": [0, 1]}, "starts"),
        ({"starts": []}, "starts"),
        ({"starts": [0.5] * 10}, "starts"),
        ({"columns": [10**30]}, "columns"),
        ({"columns": None}, "'columns'"),
        ({"values": ["x"]}, "numbers"),
        ({"values": [1e999]}, "non-finite|Infinity|fit"),
    ],
    ids=str,
)
def test_a_json_file_that_does_not_fit_together_is_refused(change, words, tmp_path):
    path = exported(sparse_model(), "json", tmp_path)
    document = json.loads(path.read_text())
    document["points"] |= change
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=words):
        read_json(path)


def test_a_slim_file_is_read_without_scipy(tmp_path):
    model = sparse_model()
    save(model, tmp_path / "made.slim")
    artefact = read_slim(tmp_path / "made.slim")
    assert isinstance(artefact.points, SparsePoints)
    np.testing.assert_allclose(
        Runtime(artefact).scores(SPARSE_ROWS), load(tmp_path / "made.slim").decision_function(SPARSE_ROWS)
    )
    program = (
        "import sys\nfrom slimsvm.ship.runtime import runtime\n"
        f"runtime({str(tmp_path / 'made.slim')!r})([0.5] * 7)\n"
        "assert not {'scipy', 'sklearn'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def wide_model(density, m=20, d=300):
    rng = np.random.default_rng(0)
    points = random_array((m, d), density=density, rng=rng, format="csr")
    model = Expansion(RBF(0.1), points, rng.normal(size=(m, 1)), np.zeros(1))
    return machine_of(Imported(model, OneVsRest(2), np.array([0, 1]), d, {"kernel": "rbf", "gamma": 0.1}))


def test_a_limit_is_for_dense_points(tmp_path):
    with pytest.raises(ValueError, match="Leave the limit out"):
        export(wide_model(0.1), tmp_path / "made.c", precision="int8", limit=1.0)
    export(wide_model(0.9), tmp_path / "made.c", precision="int8", limit=1.0)


@pytest.mark.parametrize("precision", ["float32", "int16", "int8"])
@pytest.mark.parametrize("density", [0.02, 0.1, 0.3, 0.5, 0.7, 1.0])
def test_tables_take_no_more_bytes_than_those_of_all_features(density, precision):
    """What a budget in bytes counts on."""
    svc = wide_model(density)
    artefact, exporter = artefact_of(svc), CExporter(precision)
    dense = exporter.cost(replace(artefact, points=artefact.table))
    cost, shape = exporter.cost(artefact), Shape.of("rbf", artefact.features, svc.goal_).of_model(svc.model_)
    assert cost.flash <= dense.flash
    assert cost.bytes <= shape.bytes(svc.model_.size, precision) <= cost.bytes + 300  # numbers that round to 0 go
    same = exporter.predicted_alike(artefact, csr_array(artefact.table))
    assert same >= 19


def test_names_of_files_do_not_meet_names_in_the_source(tmp_path):
    for stem in ("row", "Row", "sums", "values"):
        export(sparse_model(layout="words"), tmp_path / f"{stem}.c")
        if not missing("gcc"):
            subprocess.run(["gcc", "-std=c99", "-c", tmp_path / f"{stem}.c", "-o", tmp_path / "x.o"], check=True)
    assert WORDS.size == 4


def test_slim_of_sparse_rows_ships(tmp_path):
    rng = np.random.default_rng(0)
    X = random_array((200, 6000), density=0.005, rng=rng, format="csr")
    y = np.asarray(X[:, :3000].sum(axis=1)).ravel() > np.asarray(X[:, 3000:].sum(axis=1)).ravel()
    model = SlimSVC(4, trainer=None, random_state=0).fit(X, y)
    expected = model.decision_function(X)
    _, scores = on_entries(model, "c", tmp_path, X.toarray())
    np.testing.assert_allclose(scores.ravel(), expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("compiler", [("clang",), ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb")], ids=lambda c: c[0])
@pytest.mark.parametrize("far", [0.0, 1000.0], ids=["float", "double"])
def test_other_compilers_have_no_warnings(compiler, far, tmp_path):
    if reason := missing(compiler[0]):
        pytest.skip(reason)
    for layout in ("rest", "dag", "regression"):
        model = sparse_model(layout=layout)
        model.model_.points.data += far
        for precision in ("float32", "int8"):
            source = sparse_source(model, precision, tmp_path)
            subprocess.run([*compiler, *STRICT, "-c", source, "-o", tmp_path / "made.o"], check=True)
