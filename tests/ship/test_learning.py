"""Learning on the device: C and Python hold the same bits after the same rows, and `partial_fit` nearly the same model."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress, export, load, runtime, save
from slimsvm.ship.source import artefact_of
from slimsvm.trainers import BSGD
from tools.targets import missing, run_c_learning

FIRST, ROWS = 60, 600
REMOVAL = BSGD(12, maintenance="removal")


def rows(n=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1, 2, 0.5]
    noise = 0.3 * rng.normal(size=n)
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + noise


def target_of(kind, X, y):
    """Labels of the kind of problem, and the numbers that C takes."""
    if kind == "two":
        return np.where(y > 0, "up", "down"), (y > 0).astype(int)
    if kind == "many":
        number = np.digitize(y, [-0.7, 0, 0.7])
        return 10 * number, number
    return (y, y) if kind == "value" else (None, np.zeros(len(X)))


CASES = {
    "bsgd two merging": ("two", lambda: SlimSVC(12, trainer="bsgd", gamma=0.5, C=2.0)),
    "bsgd many merging": ("many", lambda: SlimSVC(12, trainer="bsgd", gamma=0.5, C=5.0, class_weight={0: 2.0, 10: 1.0})),
    "bsgd two removal": ("two", lambda: SlimSVC(12, trainer=REMOVAL, kernel="poly", degree=2, coef0=1.0, gamma=0.3)),
    "bsgd many laplacian": ("many", lambda: SlimSVC(12, trainer=REMOVAL, kernel="laplacian", gamma=0.5)),
    "forgetron two": ("two", lambda: SlimSVC(12, trainer="forgetron", gamma=0.5)),
    "forgetron many": ("many", lambda: SlimSVC(12, trainer="forgetron", kernel="poly", degree=2, coef0=1.0, gamma=0.2)),
    "rbp two": ("two", lambda: SlimSVC(12, trainer="rbp", kernel="sigmoid", gamma=0.1, coef0=0.2)),
    "rbp many": ("many", lambda: SlimSVC(12, trainer="rbp", gamma=0.5)),
    "value merging": ("value", lambda: SlimSVR(12, trainer="bsgd", gamma=0.5, C=3.0, epsilon=0.1)),
    "value removal": ("value", lambda: SlimSVR(12, trainer=REMOVAL, kernel="linear", epsilon=0.1)),
    "novelty": ("none", lambda: SlimOneClassSVM(12, trainer="bsgd", gamma=0.5, nu=0.2)),
}


def stream_of(case):
    """A model of the first rows, all rows, their labels, and the numbers of the labels."""
    kind, make = CASES[case]
    X, y = rows()
    labels, numbers = target_of(kind, X, y)
    model = make().set_params(random_state=0)
    return learn(model, X[:FIRST], None if labels is None else labels[:FIRST], labels), X, labels, numbers


def learn(model, X, y, labels):
    more = {"classes": np.unique(labels)} if isinstance(model, SlimSVC) else {}
    return model.partial_fit(X, y, **more)


def updated(model, X, labels):
    run = runtime(model, update=True)
    told = [
        run.update(row, None if labels is None else label) for row, label in zip(X, labels or len(X) * [0], strict=True)
    ]
    return run, np.array(told)


@pytest.mark.parametrize("case", CASES)
def test_c_and_python_hold_the_same_bits_and_partial_fit_nearly_the_same(case, tmp_path):
    model, X, labels, numbers = stream_of(case)
    given = None if labels is None else labels[FIRST:].tolist()
    run, told = updated(model, X[FIRST:], given)
    assert 20 < told.sum() < told.size
    found = np.asarray(run.scores(X[FIRST:]), np.float32).reshape(ROWS - FIRST, -1)
    if not missing("gcc"):
        export(model, tmp_path / "m.c", update=True)
        c_told, c_scores = run_c_learning(tmp_path / "m.c", artefact_of(model), X[FIRST:], numbers[FIRST:])
        np.testing.assert_array_equal(c_told, told)
        np.testing.assert_array_equal(c_scores, found)
    learn(model, X[FIRST:], None if labels is None else labels[FIRST:], labels)
    score = model.predict if labels is not None and not hasattr(model, "decision_function") else model.decision_function
    expected = score(X[FIRST:]).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    np.testing.assert_allclose(run.points, model.support_vectors_, atol=1e-4)


@pytest.mark.skipif(bool(missing("gcc")), reason="gcc is not installed")
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 1), clip=True)])
def test_raw_rows_are_scaled_and_files_keep_the_stream(scaler, tmp_path):
    X, y = rows()
    pipeline = make_pipeline(scaler, SlimSVC(12, trainer="bsgd", random_state=0)).fit(X[:FIRST], y[:FIRST] > 0)
    save(pipeline, tmp_path / "m.slim")
    export(load(tmp_path / "m.slim"), tmp_path / "m.c", update=True)
    given = (y[FIRST:] > 0).tolist()
    run, told = updated(pipeline, X[FIRST:], given)
    again, _ = updated(tmp_path / "m.slim", X[FIRST:], given)
    c_told, c_scores = run_c_learning(tmp_path / "m.c", artefact_of(pipeline), X[FIRST:], y[FIRST:] > 0)
    np.testing.assert_array_equal(c_told, told)
    np.testing.assert_array_equal(c_scores[:, 0], run.scores(X[FIRST:]))
    np.testing.assert_array_equal(again.scores(X), run.scores(X))


def test_a_model_begins_as_it_was_fitted():
    for case in CASES:
        model, X, _, _ = stream_of(case)
        run = runtime(model, update=True)
        score = model.predict if isinstance(model, SlimSVR) else model.decision_function
        expected = score(X)
        np.testing.assert_allclose(run.scores(X), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
        if not isinstance(model, SlimSVR):
            assert (run(X) == model.predict(X)).mean() > 0.99
        assert run(X[0]) == run(X)[0]


def test_what_an_update_refuses_changes_nothing():
    model, X, _, _ = stream_of("bsgd two merging")
    run = runtime(model, update=True)
    before = run.scores(X)
    with pytest.raises(ValueError, match=r"label 'left' is not among the classes of this model, \['down', 'up'\]"):
        run.update(X[0], "left")
    with pytest.raises(ValueError, match="one row of 3 features, not an array of shape"):
        run.update(X[:2], "up")
    with pytest.raises(ValueError, match="NaN or infinity"):
        run.update([0, np.nan, 1], "up")
    np.testing.assert_array_equal(run.scores(X), before)
    model, X, _, _ = stream_of("value merging")
    for label in (None, np.nan):
        with pytest.raises(ValueError, match="its value, a finite number"):
            runtime(model, update=True).update(X[0], label)


@pytest.mark.skipif(bool(missing("gcc")), reason="gcc is not installed")
def test_c_refuses_unknown_labels_and_numbers_that_are_not_finite(tmp_path):
    model, X, _, _ = stream_of("bsgd many merging")
    export(model, tmp_path / "m.c", update=True)
    given = X[:4].copy()
    given[1, 2] = np.inf
    told, scores = run_c_learning(tmp_path / "m.c", artefact_of(model), given, np.array([-1, 0, 4, 7]))
    assert (told == -1).all()
    np.testing.assert_array_equal(scores[0], runtime(model, update=True).scores(X[0]))


def test_the_header_states_the_memory(tmp_path):
    model, _, _, _ = stream_of("bsgd many merging")
    export(model, tmp_path / "m.c", update=True)
    header = (tmp_path / "m.h").read_text()
    assert "int m_update(const float *x, int label);" in header
    # 13 seats of 3 features, 4 coefficients and an age, and the size, the rows, the updates and the unit
    assert f"#define M_RAM {4 * (13 * (3 + 4 + 1) + 4)}\n" in header


def others():
    X, y = rows()
    big = SlimSVC(40, trainer="bsgd", random_state=0).fit(X, y > 0)
    yield "of another trainer, was shrunk", SlimSVC(12, random_state=0).fit(X, y > 0)
    yield "of another trainer, was shrunk", compress(big, X, y > 0, budget=8, random_state=0)
    yield "maintenance='projection', which inverts", SlimSVC(12, trainer="bsgd", kernel="linear").fit(X, y > 0)
    yield "no probabilities", SlimSVC(12, trainer="bsgd", calibration="sigmoid", random_state=0).fit(X, y > 0)


@pytest.mark.parametrize("number", range(4))
def test_what_cannot_learn_is_told_what_can(number, tmp_path):
    words, model = list(others())[number]
    for ship in (lambda: runtime(model, update=True), lambda: export(model, tmp_path / "m.c", update=True)):
        with pytest.raises(ValueError, match=words):
            ship()


def test_settings_that_do_not_go_with_updates(tmp_path):
    model = stream_of("rbp two")[0]
    for more in ({"integers": True}, {"precision": "int8"}):
        with pytest.raises(ValueError, match="update=True learns in float32"):
            export(model, tmp_path / "m.c", update=True, **more)
        with pytest.raises(ValueError, match="update=True learns in float32"):
            runtime(model, update=True, **more)
    export(model, tmp_path / "m.bin")
    with pytest.raises(ValueError, match="a file without its stream"):
        runtime(tmp_path / "m.bin", update=True)
