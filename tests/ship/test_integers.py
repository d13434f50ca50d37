"""Models in integers: C without floating point and Python agree in every integer, and stay close to the float model."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from shipped import LAYOUTS, ROWS, WORDS, model_of
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC, compress, export, runtime, save
from slimsvm.calibration import Isotonic, Sigmoid, Temperature
from slimsvm.metric import Metric
from slimsvm.ship.integers import OCTAVES, Integers, Rate, power_of_half
from slimsvm.ship.source import artefact_of
from tools.targets import missing, run_c_integers

PROJECTION = np.random.default_rng(5).normal(size=(7, 3))
#: rows within the range of ROWS and, by a fifth of it, beyond
ROWS_TO_PREDICT = (np.random.default_rng(3).random((2000, 7)) * 1.4 - 0.2) * [1, 2, 3, 1, 1, 0.5, 1]
#: each kernel, goal, scaler and precision at least once: (kernel, layout, scaler, projected, precision)
CASES = [
    ("rbf", "rest", "none", False, "int8"),
    ("rbf", "two", "standard", True, "int4"),
    ("rbf", "dag", "range", False, "int16"),
    ("rbf", "novelty", "none", True, "int8"),
    ("laplacian", "words", "standard", False, "int8"),
    ("laplacian", "parted", "none", False, "int4"),
    ("linear", "rest", "standard", True, "int16"),
    ("linear", "regression", "none", False, "int8"),
    ("rbf", "regression", "none", False, "int8"),
    ("laplacian", "two", "two", False, "int8"),
    ("poly", "votes", "range", False, "int8"),
    ("poly", "rest", "none", False, "int4"),
    ("sigmoid", "pairs", "two", False, "int16"),
    ("sigmoid", "regression", "none", True, "int8"),
]


def made(kernel, layout, scaler="none", projected=False, widths=True):
    metric = Metric(widths=np.geomspace(0.5, 3, 9)) if widths and kernel in ("rbf", "laplacian") else None
    artefact = artefact_of(model_of(kernel, layout, scaler, metric=metric))
    return replace(artefact, projection=PROJECTION, points=artefact.table @ PROJECTION) if projected else artefact


@pytest.mark.skipif(bool(missing("gcc")), reason="gcc is not installed")
@pytest.mark.parametrize(("kernel", "layout", "scaler", "projected", "precision"), CASES)
def test_c_computes_the_integers_of_python(kernel, layout, scaler, projected, precision, tmp_path):
    artefact = made(kernel, layout, scaler, projected, widths=layout != "two")
    export(artefact, tmp_path / "m.c", integers=True, precision=precision, rows=ROWS)
    source = (tmp_path / "m.c").read_text()
    assert not re.search(r"\b(float|double|math\.h)\b", re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL))
    held = Integers.of(artefact, precision, ROWS)
    outcome = run_c_integers(tmp_path / "m.c", held, ROWS_TO_PREDICT)
    rows = held.quantise(ROWS_TO_PREDICT)
    np.testing.assert_array_equal(outcome.labels, held.predict(rows))
    if outcome.scores is not None:
        np.testing.assert_array_equal(outcome.scores, held.scores(rows))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kernel", "precision"), [("rbf", "int8"), ("laplacian", "int16"), ("poly", "int8")])
def test_predictions_are_close_to_those_of_floats(kernel, precision, layout):
    artefact = made(kernel, layout, "standard")
    expected = runtime(artefact)(ROWS)
    found = runtime(artefact, integers=True, precision=precision, rows=ROWS)(ROWS)
    if layout == "regression":
        assert np.abs(found - expected).max() < 0.03 * np.ptp(expected)
    else:
        assert (found == expected).mean() > 0.95


def test_two_to_the_minus_t_has_a_bound():
    for half_bits, bound in ((4, 0.0014), (5, 0.0004)):
        rate = Rate.of(np.array([0.37]), half_bits)
        s = np.arange(4000)
        exact = 2.0 ** -(0.37 * s / (1 << 2 * half_bits))
        found = power_of_half(np.minimum(rate(s), OCTAVES << 2 * half_bits), half_bits) / 2**15
        assert (np.abs(found - exact) <= bound * exact + 2.0**-14).all()


MAPS = [
    Sigmoid(np.array([-2.0]), np.array([0.4])),
    Temperature(0.5),
    Isotonic(np.array([-1.0, 0.2, 0.9]), np.array([0.1, 0.4, 0.9]), np.array([0, 3])),
]


@pytest.mark.parametrize("map_", MAPS, ids=[map_.name for map_ in MAPS])
def test_the_most_probable_class_is_predicted(map_):
    artefact = replace(made("rbf", "two"), calibration=map_)
    assert (runtime(artefact, integers=True, rows=ROWS)(ROWS) == runtime(artefact)(ROWS)).mean() > 0.95


def test_a_row_alone_and_rows_beyond_the_range():
    run = runtime(made("rbf", "rest"), integers=True, rows=ROWS)
    assert run(ROWS[5]) == run(ROWS)[5]
    np.testing.assert_array_equal(run.scores(ROWS[5]), run.scores(ROWS)[5])
    end = run.held.row_end
    assert np.abs(run.quantise(np.full(7, 1e30))).max() == end
    assert (run.quantise(np.full((1, 7), np.nan)) == -end).all()
    with pytest.raises(ValueError, match=r"has .3.* features, and the model takes 7"):
        run(ROWS[:, :3])


def test_the_ranges_of_training_are_kept_and_hold_without_rows(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4)) * [1, 10, 0.1, 3] + [0, 5, 0, -2]
    y = (X[:, 0] + np.sin(X[:, 3])) > 0
    pipeline = make_pipeline(StandardScaler(), SlimSVC(8, random_state=0)).fit(X, y)
    ranges = np.stack([X.min(axis=0), X.max(axis=0)])
    np.testing.assert_allclose(artefact_of(pipeline).ranges, ranges)
    save(pipeline, tmp_path / "m.slim")
    runs = [runtime(model, integers=True, precision="int16") for model in (pipeline, tmp_path / "m.slim")]
    for run in runs:
        assert np.abs((X - run.held.rows.centre) * run.held.rows.scale).max() <= run.held.row_end + 0.5
        np.testing.assert_array_equal(run.scores(X), runs[0].scores(X))
    assert (runs[0](X) == pipeline.predict(X)).mean() > 0.99
    svc = SlimSVC(8, trainer="rbp", random_state=0).partial_fit(X[:100], y[:100], classes=[False, True])
    np.testing.assert_array_equal(svc.partial_fit(X[100:], y[100:]).feature_range_, ranges)
    np.testing.assert_array_equal(compress(svc, X[:50], y[:50], budget=4).feature_range_[0], X[:50].min(axis=0))
    assert not hasattr(svc.fit(csr_array(X), y), "feature_range_")


def test_projections_need_no_rows_where_ranges_are_known():
    artefact = made("rbf", "rest", "standard", projected=True)
    known = replace(artefact, ranges=np.stack([ROWS.min(axis=0), ROWS.max(axis=0)]))
    assert (runtime(known, integers=True)(ROWS) == runtime(artefact)(ROWS)).mean() > 0.9


def test_rows_have_16_bits_where_8_would_change_predictions():
    rows = np.random.default_rng(2).random((400, 2)) * [20, 1]
    model = SVC(gamma=5.0, C=10.0).fit(rows, np.sin(9 * rows[:, 1]) + np.sin(3 * rows[:, 0]) > 0)
    run = runtime(model, integers=True, rows=rows)
    assert (run.held.row_bits, np.abs(run.held.points).max()) == (16, 127)
    assert (run(rows) == model.predict(rows)).mean() > 0.95


REFUSED = {
    "chi2 kernel.*they hold": lambda: made("chi2", "two"),
    "clips features": lambda: made("rbf", "two", "clipped"),
    "range of the features is not known": lambda: made("rbf", "two", projected=True),
    "isotonic probabilities of 4": lambda: replace(
        made("rbf", "rest"), calibration=Isotonic(np.arange(4.0), np.full(4, 0.5), np.arange(5))
    ),
    "takes numbers": lambda: artefact_of(
        make_pipeline(TfidfVectorizer(), SlimSVC(2, random_state=0)).fit(["a bee", "sea dee", *WORDS], [0, 1, 0, 1, 0, 1])
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_integers_cannot_hold_is_named(words, tmp_path):
    artefact = REFUSED[words]()
    for ship in (lambda: export(artefact, tmp_path / "m.c", integers=True), lambda: runtime(artefact, integers=True)):
        with pytest.raises(ValueError, match=words):
            ship()
