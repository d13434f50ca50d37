"""Displays: their values, the artists that they keep, and what they say without matplotlib."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress, displays, tune
from slimsvm.studio.displays.pareto import pareto_front
from slimsvm.studio.displays.support_vectors import vectors_of
from slimsvm.studio.tradeoff import tradeoff

X, Y = load_iris(return_X_y=True)
MOONS = make_moons(200, noise=0.3, random_state=0)


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def found():
    return tradeoff(X, Y, methods=["nystroem", "bsgd"], budgets=[2, 4, 8], seeds=2)


def test_without_matplotlib_the_extra_is_named(monkeypatch, found):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "slimsvm\[plots\]"'):
        displays.TradeoffDisplay.from_rows(found)


@pytest.mark.parametrize("x", ["size", "bytes", "us"])
def test_tradeoff_draws_a_line_a_method_and_the_full_model(plt, found, x):
    ax = plt.subplots()[1]
    display = displays.TradeoffDisplay.from_rows(found, x=x, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert list(display.lines_) == ["nystroem", "bsgd"]
    points = sorted((p for p in display.points if p.method == "bsgd"), key=lambda p: getattr(p, x))
    np.testing.assert_allclose(display.lines_["bsgd"].lines[0].get_xdata().astype(float), [getattr(p, x) for p in points])
    np.testing.assert_allclose(display.lines_["bsgd"].lines[0].get_ydata(), [100 * p.error for p in points])
    full = next(p for p in display.points if p.method == "full")
    np.testing.assert_allclose(display.full_line_.get_ydata(), [100 * full.error] * 2)


@pytest.mark.usefixtures("plt")
@pytest.mark.parametrize("kind", [displays.TradeoffDisplay, displays.ParetoDisplay])
def test_sizes_on_the_axis_are_plain_numbers(found, kind):
    axis = kind.from_rows(found, x="bytes").ax_.xaxis
    axis.figure.canvas.draw()
    shown = [label.get_text() for label in axis.get_ticklabels(which="both") if label.get_text()]
    assert shown
    assert all(label.replace(",", "").isdigit() for label in shown)


@pytest.mark.usefixtures("plt")
def test_tradeoff_draws_files_some_methods_and_methods_that_nobody_knows(tmp_path):
    file = tmp_path / "rows.csv"
    tradeoff(X, Y, methods=["nystroem"], budgets=[2, 4], file=file)
    file.write_text(file.read_text().replace("nystroem", "another tool's <b>"))
    assert list(displays.TradeoffDisplay.from_rows(file).lines_) == ["another tool's <b>"]
    with pytest.raises(ValueError, match="the rows have no method slim; they have full, another tool's"):
        displays.TradeoffDisplay.from_rows(file, methods=["slim"])


@pytest.mark.usefixtures("plt")
def test_one_row_is_drawn(found):
    display = displays.TradeoffDisplay.from_rows(found.rows[1:2])
    assert display.full_line_ is None
    assert len(display.lines_["nystroem"].lines[0].get_xdata()) == 1
    display.figure_.canvas.draw()


@pytest.mark.usefixtures("plt")
def test_tradeoff_draws_the_path_of_an_estimator():
    small = SlimSVC(6, reducer="nystroem", random_state=0).fit(X, Y)
    display = displays.TradeoffDisplay.from_estimator(small, X, Y, full=SlimSVC().fit(X, Y))
    np.testing.assert_array_equal(display.lines_["nystroem"].lines[0].get_xdata(), small.path_.sizes)
    last = small.classes_[small.path_[-1].model(X).argmax(axis=1)]
    assert display.lines_["nystroem"].lines[0].get_ydata()[-1] == pytest.approx(100 * np.mean(last != Y))
    assert display.full_line_ is not None
    piped = make_pipeline(StandardScaler(), SlimSVC(6, reducer="nystroem", random_state=0)).fit(X, Y)
    display = displays.TradeoffDisplay.from_estimator(piped, X, Y)
    assert display.points[-1].error == pytest.approx(1 - piped.score(X, Y))
    with pytest.raises(ValueError, match="no path of models; fit a SlimSVC with a budget"):
        displays.TradeoffDisplay.from_estimator(SlimSVC().fit(X, Y), X, Y)


@pytest.mark.parametrize("kind", ["TradeoffDisplay", "ParetoDisplay", "ConvergenceDisplay"])
def test_rows_that_cannot_be_drawn_are_refused(kind, found):
    from_rows = getattr(displays, kind).from_rows
    with pytest.raises(ValueError, match="no rows to draw"):
        from_rows([])
    with pytest.raises(ValueError, match="no run in these rows has figures"):
        from_rows([found.rows[0] | {"status": "failed", "error": None}])
    with pytest.raises(ValueError, match="unknown x 'width'; there are"):
        from_rows(found, x="width")


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.usefixtures("plt")
def test_support_vectors_are_drawn_where_they_are(scaled):
    rows, labels = MOONS[0] * [100, 1] if scaled else MOONS[0], MOONS[1]
    full = make_pipeline(*[StandardScaler()] * scaled, SlimSVC(random_state=0)).fit(rows, labels)
    small = compress(full, rows, labels, budget=6, reducer="spsvm", random_state=0)
    display = displays.SupportVectorsDisplay.from_estimator(small, rows, labels, full=full, resolution=30)
    np.testing.assert_allclose(display.vectors_.get_offsets().data, vectors_of(small))
    nearest = np.abs(display.vectors[:, None] - rows[None]).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(nearest, 0, atol=1e-9)  # spsvm chooses rows
    assert len(display.moves_) == len(display.vectors) == 6
    assert display.full_boundary_ is not None
    display.figure_.canvas.draw()


@pytest.mark.usefixtures("plt")
def test_vectors_are_joined_to_where_they_started():
    full = SlimSVC().fit(*MOONS)
    small, start = (compress(full, *MOONS, budget=5, reducer=name, random_state=0) for name in ("cvm", "lars"))
    display = displays.SupportVectorsDisplay.from_estimator(small, *MOONS, start=start, resolution=10)
    np.testing.assert_array_equal(display.moved_from, start.support_vectors_)
    assert display.full_boundary_ is None
    other = SlimSVC(3, reducer="nystroem", random_state=0).fit(*MOONS)
    with pytest.raises(ValueError, match="start has 3 support vectors and the small model has 5"):
        displays.SupportVectorsDisplay.from_estimator(small, *MOONS, start=other)


@pytest.mark.usefixtures("plt")
def test_three_classes_have_boundaries_and_four_features_none():
    small = SlimSVC(6, reducer="nystroem", random_state=0).fit(X[:, :2], Y)
    display = displays.SupportVectorsDisplay.from_estimator(small, X[:, :2], Y, resolution=20)
    assert len(display.small_boundary_.levels) == 2
    with pytest.raises(ValueError, match="only rows of two features can be drawn"):
        displays.SupportVectorsDisplay.from_estimator(small, X, Y)


@pytest.mark.usefixtures("plt")
def test_convergence_is_drawn_from_rows_and_from_clones(found):
    display = displays.ConvergenceDisplay.from_rows(found)
    assert list(display.lines_) == ["full", "nystroem", "bsgd"]
    trained = displays.ConvergenceDisplay.from_estimator(
        SlimSVC(trainer="perceptron", random_state=0), X, Y, X, Y, max_iter=[1, 100], x="seconds"
    )
    assert len(trained.lines_["perceptron"].get_xdata()) == 2
    piped = make_pipeline(StandardScaler(), SlimSVC(trainer="perceptron", random_state=0))
    drawn = displays.ConvergenceDisplay.from_estimator(piped, X, Y, X, Y, max_iter=[1, 100])
    assert len(drawn.lines_["perceptron"].get_xdata()) == 2
    assert trained.ax_.get_xlabel() == "seconds"


@pytest.mark.usefixtures("plt")
def test_the_front_is_what_no_feasible_model_beats():
    columns = ("bytes", "error", "feasible")
    rows = [(1, 0.5, True), (2, 0.3, True), (2, 0.4, True), (3, 0.35, True), (4, 0.1, False), (5, 0.2, True)]
    display = displays.ParetoDisplay.from_rows([dict(zip(columns, row, strict=True)) for row in rows], x="bytes")
    assert display.front.tolist() == [0, 1, 5]
    assert len(display.dominated_.get_offsets()) == 2
    np.testing.assert_allclose(display.infeasible_.get_offsets().data, [[4, 10]])
    with pytest.raises(ValueError, match="the rows have no column us"):
        displays.ParetoDisplay.from_rows([{"error": 0.1}], x="us")


def test_the_front_agrees_with_its_definition():
    rng = np.random.default_rng(0)
    x, errors, feasible = rng.integers(1, 9, 40), rng.integers(1, 9, 40), rng.random(40) < 0.7
    front = pareto_front(x, errors, feasible)
    for i in np.flatnonzero(feasible):
        beaten = feasible & (x <= x[i]) & (errors <= errors[i]) & ((x < x[i]) | (errors < errors[i]))
        assert any(x[i] == x[j] and errors[i] == errors[j] for j in front) == (not beaten.any())
    assert feasible[front].all()


def naive_bins(proba, classes, y, n_bins):
    rows = sorted(range(len(y)), key=lambda i: max(proba[i]))
    size, more = divmod(len(y), n_bins)
    out, at = [], 0
    for k in range(n_bins):
        part, at = rows[at : at + size + (k < more)], at + size + (k < more)
        hits = [classes[list(proba[i]).index(max(proba[i]))] == y[i] for i in part]
        out.append((sum(max(proba[i]) for i in part) / len(part), sum(hits) / len(part), len(part)))
    return out


def test_calibration_draws_right_predictions_against_their_probability(plt):
    model = SlimSVC(8, reducer="spsvm", calibration="sigmoid", random_state=0).fit(X[::2], Y[::2])
    ax = plt.subplots()[1]
    display = displays.CalibrationDisplay.from_estimator(model, X[1::2], Y[1::2], n_bins=4, ax=ax)
    predicted, right, counts = zip(*naive_bins(model.predict_proba(X[1::2]), model.classes_, Y[1::2], 4), strict=True)
    np.testing.assert_allclose(display.line_.get_xdata(), predicted)
    np.testing.assert_allclose(display.line_.get_ydata(), right)
    assert display.counts.tolist() == list(counts)
    assert display.error == pytest.approx(
        sum(c * abs(p - r) for p, r, c in zip(predicted, right, counts, strict=True)) / 75
    )
    assert display.ax_ is ax
    assert "SlimSVC" in display.line_.get_label()


@pytest.mark.usefixtures("plt")
def test_calibration_of_fewer_rows_than_bins():
    display = displays.CalibrationDisplay.from_predictions(["a", "b"], [[0.9, 0.1], [0.6, 0.4]], ["a", "b"])
    np.testing.assert_allclose(display.predicted, [0.6, 0.9])
    assert display.right.tolist() == [0.0, 1.0]


def test_calibration_needs_probabilities_of_the_right_shape():
    model = SlimSVC(4, reducer="spsvm", random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="calibration='sigmoid'"):
        displays.CalibrationDisplay.from_estimator(model, X, Y)
    with pytest.raises(ValueError, match="do not fit"):
        displays.CalibrationDisplay.from_predictions([], np.empty((0, 2)), [0, 1])
    with pytest.raises(ValueError, match="n_bins"):
        displays.CalibrationDisplay.from_predictions([0], [[0.5, 0.5]], [0, 1], n_bins=0)


@pytest.mark.usefixtures("plt")
def test_tradeoff_of_values_and_of_novelty():
    X, y = load_diabetes(return_X_y=True)
    found = tradeoff(X, y, task="regress", methods=["nystroem"], budgets=[2, 4])
    assert displays.TradeoffDisplay.from_rows(found).ax_.get_ylabel() == "unexplained variance, %"
    values = SlimSVR(4, reducer="nystroem", random_state=0).fit(X, y)
    display = displays.TradeoffDisplay.from_estimator(values, X, y)
    assert display.points[-1].error == pytest.approx(1 - values.score(X, y))
    full = SlimOneClassSVM(nu=0.1, random_state=0).fit(X)
    small = SlimOneClassSVM(4, reducer="nystroem", nu=0.1, random_state=0).fit(X)
    display = displays.TradeoffDisplay.from_estimator(small, X, full=full)
    assert display.points[-2].error == np.mean(small.predict(X) != full.predict(X))
    assert display.ax_.get_ylabel() == "disagreement, %"
    with pytest.raises(ValueError, match="is compared with the full model: give full="):
        displays.TradeoffDisplay.from_estimator(small, X)


@pytest.mark.usefixtures("plt")
@pytest.mark.filterwarnings("ignore:no model of at most")
def test_pareto_takes_a_study_of_tune_with_its_limits():
    study = tune(*MOONS, budget=8, max_error=0.13, random_state=0, time_limit=2.0)
    display = displays.ParetoDisplay.from_rows(study, x="bytes")
    assert display.errors.tolist() == [error for error in study.results_["error"] if error is not None]
    assert display.feasible.tolist() == study.results_["feasible"][: display.errors.size]
    assert displays.ParetoDisplay.from_rows(study.results_, x="bytes").front.tolist() == display.front.tolist()


@pytest.mark.usefixtures("plt")
def test_support_vectors_of_novelty_detectors_are_drawn_and_regressors_have_none():
    full = SlimOneClassSVM(nu=0.1, random_state=0).fit(MOONS[0])
    small = SlimOneClassSVM(4, nu=0.1, reducer="nystroem", random_state=0).fit(MOONS[0])
    display = displays.SupportVectorsDisplay.from_estimator(small, MOONS[0], full=full, resolution=20)
    places = np.stack(np.meshgrid(*display.grid), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(display.small.ravel(), small.decision_function(places))
    assert display.small_boundary_.levels.tolist() == [0.0]
    with pytest.raises(ValueError, match="a regressor has no boundary to draw"):
        displays.SupportVectorsDisplay.from_estimator(SlimSVR(2, random_state=0).fit(*MOONS), *MOONS)
