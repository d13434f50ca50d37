"""Models with a learned metric: exported files answer as Python does, and formats that cannot hold widths say so."""

import json

import numpy as np
import pytest
from shipped import ROWS, assert_agrees, exported, model_of, no_ties, shipped
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimSVC, export, load, runtime, save
from slimsvm.c_bytes import NO_SCALER, ScalerTables, Shape, total
from slimsvm.estimators.shrink import scaler_tables
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Poly
from slimsvm.metric import Metric
from slimsvm.rounding import SmallFloats
from slimsvm.ship.artefact import Artefact
from slimsvm.ship.c import PRECISIONS, CExporter
from slimsvm.ship.quantise import quantise
from slimsvm.ship.source import artefact_of
from slimsvm.slim.method import Slim
from tools.targets import run_c

pytestmark = pytest.mark.usefixtures("quick_slim")

FACTORS = np.array([0.3, 1.0, 2.0, 0.7, 1.5, 0.1, 1.0])
WIDTHS = np.geomspace(0.2, 5.0, 9)
METRICS = {"factors": Metric(FACTORS), "widths": Metric(None, WIDTHS), "both": Metric(FACTORS, WIDTHS)}
INNER = ["linear", "poly", "sigmoid"]
CASES = [("rbf", metric) for metric in METRICS] + [("laplacian", "both")] + [(kernel, "factors") for kernel in INNER]
case = pytest.mark.parametrize(("kernel", "metric"), CASES, ids=["-".join(each) for each in CASES])


@case
@pytest.mark.parametrize("target", ["c", "js", "onnx", "json"])
@pytest.mark.parametrize("scaler", ["none", "clipped"])
def test_exported_files_answer_as_python_does(kernel, metric, target, scaler, tmp_path):
    model = model_of(kernel, "rest", scaler, metric=METRICS[metric])
    assert_agrees(model, shipped(model, target, tmp_path), within=1e-9 if target == "json" else 2e-5)


@case
@pytest.mark.parametrize("scaler", ["none", "standard", "clipped"])
def test_the_runtime_answers_as_python_does(kernel, metric, scaler, tmp_path):
    model = model_of(kernel, "two", scaler, metric=METRICS[metric])
    found = runtime(model).scores(ROWS)
    np.testing.assert_allclose(found, model.decision_function(ROWS), rtol=1e-9, atol=1e-9)
    export(model, tmp_path / "m.json")
    np.testing.assert_allclose(runtime(tmp_path / "m.json").scores(ROWS), found, rtol=1e-9, atol=1e-9)


@case
@pytest.mark.parametrize(("precision", "within"), [("int16", 2e-3), ("int8", 0.15)])
@pytest.mark.filterwarnings("ignore:int8 tables")
def test_integers_are_close(kernel, metric, precision, within, tmp_path):
    model = model_of(kernel, "two", "standard", metric=METRICS[metric])
    outcome = run_c(exported(model, "c", tmp_path, precision=precision, rows=ROWS), artefact_of(model), ROWS)
    expected = model.decision_function(ROWS)
    np.testing.assert_allclose(outcome.scores[:, 0], expected, rtol=0, atol=within * np.abs(expected).max())


@pytest.mark.parametrize("bits", [8, 16])
def test_integers_are_exactly_what_their_tables_say(bits, tmp_path):
    """A slow twin in whole numbers, as in test_c.py."""
    model = model_of("rbf", "rest", metric=METRICS["widths"])
    artefact = artefact_of(model)
    q = quantise(artefact, bits)
    step = q.grid.step / q.grid.fine
    exact = (ROWS.astype(np.float32) - q.grid.middle) / step
    units, clear = np.clip(np.rint(exact), -q.row_end, q.row_end).astype(int), no_ties(exact)
    sums = np.array([[sum((x - z) ** 2) for z in q.grid.fine * q.points.astype(int)] for x in units])
    expected = np.exp(-0.3 * step**2 * q.widths.values * sums) @ q.coef * q.coef_step + q.bias_values
    outcome = run_c(exported(model, "c", tmp_path, precision=f"int{bits}"), artefact, ROWS)
    np.testing.assert_allclose(outcome.scores[clear], expected[clear], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("span", [1.0, 3.0, 15.0, 200.0, 60_000.0])
def test_codes_of_widths_keep_their_digits(bits, span):
    widths = np.geomspace(0.01, 0.01 * span, 50)
    found = SmallFloats.of(widths, bits)
    assert found.codes.dtype == f"u{bits // 8}"
    np.testing.assert_allclose(found.values, widths, rtol=0.51 / 2**found.mantissa)
    assert found.mantissa >= bits - 4
    assert (found.mantissa == bits - 1) == (span <= 3.0)


def test_widths_beyond_all_exponents_are_the_smallest():
    found = SmallFloats.of(np.array([1e-9, 1.0]), 8)
    assert found.values[0] == pytest.approx(2.0**-16, rel=0.05)
    assert found.values[1] == pytest.approx(1.0)


@pytest.mark.parametrize("precision", PRECISIONS)
@case
@pytest.mark.filterwarnings("ignore:int8 tables")
def test_bytes_are_those_of_the_exported_tables(kernel, metric, precision):
    svc = model_of(kernel, "two", metric=METRICS[metric])
    shape = Shape.of(svc.model_.kernel.name, ROWS.shape[1], svc.goal_).of_model(svc.model_)
    spare = shape.bytes(svc.model_.size, precision) - CExporter(precision).cost(artefact_of(svc)).bytes
    # integers of inner products have a table of factors only where factors differ much
    assert 0 <= spare <= (200 if kernel in INNER and precision != "float32" and "factors" in metric else 0)


def test_factors_cost_nothing_behind_a_scaler():
    plain, learned = (model_of("rbf", "two", "standard", metric=metric) for metric in (None, METRICS["factors"]))
    flash = [CExporter().cost(artefact_of(model)).flash for model in (plain, learned)]
    assert flash[0] == flash[1]


def test_libsvm_has_no_widths(tmp_path):
    with pytest.raises(ValueError, match=r"one gamma for all support vectors.*metric='scales'"):
        export(model_of("rbf", "two", metric=METRICS["both"]), tmp_path / "m.libsvm")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kernel", ["rbf", *INNER])
def test_libsvm_answers_with_factors(kernel, tmp_path):
    """Those of distances go to a file for svm-scale, as a scaler does; those of inner products go into the points."""
    model = model_of(kernel, "two", metric=METRICS["factors"])
    assert_agrees(model, shipped(model, "libsvm", tmp_path))
    assert (tmp_path / "made.range").exists() == (kernel == "rbf")


def test_an_svm_of_onnx_has_no_widths(tmp_path):
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=r"one gamma for all points.*flavor='plain'"):
        export(model_of("rbf", "two", metric=METRICS["both"]), tmp_path / "m.onnx", flavor="svm")


def test_json_without_widths_is_of_the_version_before(tmp_path):
    for metric, version in (("factors", 2), ("widths", 3)):
        path = exported(model_of("rbf", "two", metric=METRICS[metric]), "json", tmp_path, force=True)
        assert json.loads(path.read_text())["version"] == version


def test_linear_weights_have_the_factors_in_them():
    model = model_of("linear", "two", metric=METRICS["factors"])
    np.testing.assert_allclose(ROWS @ model.coef_.T[:, 0] + model.intercept_, model.decision_function(ROWS), atol=1e-12)


def test_an_empty_model_has_no_widths():
    model = artefact_of(model_of("rbf", "two", metric=METRICS["both"]))
    empty = Artefact(
        "rbf", model.parameters, model.points[:0], model.coef[:0], model.bias, model.goal, model.classes, widths=WIDTHS[:0]
    )
    empty.check()
    assert empty.compact().widths is None
    CExporter("int8").cost(empty)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("scaler", [None, StandardScaler()], ids=["plain", "scaled"])
def test_a_budget_of_bytes_includes_the_metric(precision, scaler, tmp_path):
    """Fitted, saved and exported: as many points as the bytes allow, and no more."""
    X, y = make_classification(120, 5, random_state=0)
    reducer = Slim(metric="both", steps=5)
    svc = SlimSVC("900 B", trainer=None, precision=precision, reducer=reducer, random_state=0)
    model = svc.fit(X, y) if scaler is None else fit_pipeline(scaler, svc, X, y)
    machine = model if scaler is None else model[-1]
    assert machine.model_.metric is not None
    cost = CExporter(precision).cost(artefact_of(model))
    assert cost.bytes <= 1000
    tables = NO_SCALER if scaler is None else scaler_tables([model[0]])
    shape = Shape.of("rbf", 5, machine.goal_, scaler=tables).of_model(machine.model_)
    assert cost.bytes <= shape.bytes(machine.model_.size, precision)
    save(model, tmp_path / "m.slim")
    np.testing.assert_array_equal(load(tmp_path / "m.slim").predict(X), model.predict(X))


def test_scalers_take_four_bytes_a_feature_in_int8_where_they_can():
    X = np.random.default_rng(0).normal(size=(30, 3))
    near, far = StandardScaler().fit(X), StandardScaler().fit(X + 1e3)
    scalers = {
        "near": scaler_tables([near]),
        "far": scaler_tables([far]),
        "two": scaler_tables([near, near]),
        "clips": ScalerTables(3, clips=True, near=True),
        "nested": scaler_tables([near]).behind(scaler_tables([near])),
        "none": scaler_tables([]).behind(scaler_tables([near])),
    }
    taken = {
        name: [
            total(Shape.of(kernel, 3, OneVsRest(2), scaler=tables)._preparation(precision)[1])
            for kernel in ("rbf", "poly")
            for precision in ("float32", "int8")
        ]
        for name, tables in scalers.items()
    }
    plain, short = [24, 24, 24, 24], [24, 12, 24, 24]
    assert taken == {"near": short, "far": plain, "two": plain, "clips": [48] * 4, "nested": plain, "none": short}


def fit_pipeline(scaler, svc, X, y):
    """Return a fitted Pipeline; the SVC knows nothing of the scaler before it."""
    return make_pipeline(scaler, svc).fit(X, y)


def test_what_slim_may_learn():
    parts = {metric: Slim(metric=metric).learned(RBF(1.0)) for metric in ("fixed", "scales", "widths", "both", "auto")}
    both = {"factors", "widths"}
    assert parts == {"fixed": set(), "scales": {"factors"}, "widths": {"widths"}, "both": both, "auto": both}
    assert Slim(metric="auto").learned(Poly()) == {"factors"}
