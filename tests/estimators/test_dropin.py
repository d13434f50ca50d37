"""What users of scikit-learn's SVMs expect of ours: attributes, parameters, searches, frames, callbacks."""

import warnings

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils.fixes import parse_version

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress
from slimsvm.reducers import Slim
from slimsvm.trainers import SMO

pytestmark = pytest.mark.usefixtures("quick_slim")

needs_callbacks = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"), reason="scikit-learn has callbacks from 1.9 on"
)
TIGHT = 1e-6


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    return X[order], y[order]


# Attributes


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_support_vectors_are_svcs_in_svcs_order(kernel, form, iris):
    X, y = iris
    svc, slim = (kind(kernel=kernel, gamma=0.5, tol=TIGHT).fit(form(X), y) for kind in (SVC, SlimSVC))
    np.testing.assert_array_equal(slim.support_, svc.support_)
    np.testing.assert_array_equal(slim.n_support_, svc.n_support_)
    assert slim.shape_fit_ == svc.shape_fit_
    assert slim.fit_status_ == svc.fit_status_ == 0


@pytest.mark.parametrize("budget", [None, 8], ids=["full", "budget"])
def test_row_numbers_count_rows_of_weight_zero(budget, iris):
    X, y = iris
    weights = np.where(np.arange(y.size) % 7 == 0, 0.0, 1.0)
    slim = SlimSVC(budget, reducer="prune", random_state=0).fit(X, y, weights)
    np.testing.assert_array_equal(X[slim.support_], slim.support_vectors_)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(SlimSVR, SVR), (SlimOneClassSVM, OneClassSVM)], ids=["regression", "novelty"]
)
def test_support_of_real_outputs_is_scikit_learns(ours, theirs, iris):
    slim, other = (kind(kernel="linear", tol=TIGHT).fit(*iris) for kind in (ours, theirs))
    np.testing.assert_array_equal(slim.support_, other.support_)
    np.testing.assert_array_equal(slim.n_support_, other.n_support_)
    np.testing.assert_allclose(slim.coef_, other.coef_, atol=1e-4)


def test_support_of_a_small_model_names_its_rows(iris):
    X, y = iris
    slim = SlimSVC(8, reducer="slant-aggressive", random_state=0)
    for form in (np.asarray, csr_array, lambda rows: rows.astype(np.float32)):
        slim.fit(form(X), y)
        points = slim.support_vectors_
        assert abs(form(X)[slim.support_] - points).max() == 0
    K = X @ X.T
    slim.set_params(kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(slim.support_, slim.support_vectors_.ravel())


def test_support_says_why_it_has_no_row_numbers(iris):
    moved = SlimSVC(4, random_state=0).fit(*iris)
    for model in (moved, compress(SVC().fit(*iris), *iris)):
        assert not hasattr(model, "support_")
        with pytest.raises(AttributeError, match="may not be rows of it"):
            model.support_  # noqa: B018


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_linear_weights_are_svcs(form, iris):
    X, y = iris
    svc, slim = (kind(kernel="linear", tol=TIGHT).fit(form(X), y) for kind in (SVC, SlimSVC))
    theirs = svc.coef_ if isinstance(svc.coef_, np.ndarray) else svc.coef_.toarray()
    np.testing.assert_allclose(slim.coef_, theirs, atol=1e-4)
    with pytest.raises(AttributeError, match="linear kernel only; this model has the rbf kernel"):
        SlimSVC().fit(X, y).coef_  # noqa: B018


def test_class_weights_are_svcs(iris):
    X, y = iris
    for weight in (None, "balanced", {1: 3.0}):
        svc, slim = (kind(class_weight=weight).fit(X[20:], y[20:]) for kind in (SVC, SlimSVC))
        np.testing.assert_allclose(slim.class_weight_, svc.class_weight_)


# Scores


def test_scores_and_ties_are_svcs():
    X, y = make_blobs(300, centers=6, cluster_std=4.0, random_state=0)
    rows = np.random.default_rng(1).uniform(-15, 15, (2000, 2))
    for settings in ({}, {"break_ties": True}, {"decision_function_shape": "ovo"}):
        svc, slim = (kind(gamma=0.1, tol=TIGHT, **settings).fit(X, y) for kind in (SVC, SlimSVC))
        np.testing.assert_allclose(slim.decision_function(rows), svc.decision_function(rows), atol=1e-3)
        np.testing.assert_array_equal(slim.predict(rows), svc.predict(rows))


def test_pair_scores_of_a_small_model_agree_with_its_classes(iris):
    X, y = iris
    slim = SlimSVC(8, decision_function_shape="ovo", random_state=0).fit(X, y)
    pairs = slim.decision_function(X)
    assert pairs.shape == (y.size, 3)
    first, second = pairs > 0, (pairs <= 0)  # columns are (0, 1), (0, 2), (1, 2)
    votes = np.stack([first[:, :2].sum(1), second[:, 0] + 1 * first[:, 2], second[:, 1:].sum(1)], axis=1)
    np.testing.assert_array_equal(votes.argmax(axis=1), slim.predict(X))
    two = SlimSVC(decision_function_shape="ovo").fit(X, y > 0)
    assert two.decision_function(X).shape == (y.size,)


def test_a_compressed_svc_keeps_its_way_with_ties(iris):
    X, y = iris
    small = compress(SVC(break_ties=True).fit(X, y), X, y, budget=10, reducer="prune", random_state=0)
    assert small.break_ties
    np.testing.assert_array_equal(small.predict(X), small.decision_function(X).argmax(axis=1))
    pairs = compress(SVC(decision_function_shape="ovo").fit(X, y), X, y, budget=10, reducer="prune")
    assert pairs.decision_function(X).shape == (y.size, 3)


# Parameters


def test_a_hard_margin_separates_and_is_svcs():
    X, y = make_blobs(60, centers=2, random_state=3)
    svc, slim = (kind(C=np.inf, kernel="linear", tol=TIGHT).fit(X, y) for kind in (SVC, SlimSVC))
    assert slim.score(X, y) == 1.0
    np.testing.assert_allclose(slim.coef_, svc.coef_, rtol=1e-3)
    assert SlimSVC(4, C=float("inf"), random_state=0).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("kind", [SlimSVC, SlimSVR, SlimOneClassSVM])
def test_reaching_max_iter_warns_on_few_rows_too(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        model = kind(max_iter=2).fit(X, y)
    assert (model.n_iter_, model.fit_status_) == (2, 1)


def test_verbose_prints_how_far_it_is(capsys, iris):
    SlimSVC(4, reducer="slant-aggressive", verbose=True, random_state=0).fit(*iris)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[SlimSVC] train ")
    assert lines[-1].startswith("[SlimSVC] shrink 100 %")
    SlimSVR().fit(*iris)
    assert not capsys.readouterr().out


def test_settings_of_methods_are_parameters():
    slim = SlimSVC(trainer=SMO(working_set=64))
    assert slim.get_params()["trainer__working_set"] == 64
    assert "trainer__working_set" not in slim.get_params(deep=False)
    settings = slim.trainer
    slim.set_params(trainer__C=3.0, reducer__steps=7, budget=5)
    assert slim.trainer == SMO(C=3.0, working_set=64)
    assert slim.reducer.steps == 7
    assert slim.get_params()["reducer__steps"] == 7
    assert settings == SMO(working_set=64)  # settings are frozen; the estimator has others now
    assert clone(slim).reducer == slim.reducer
    slim.set_params(reducer=Slim(steps=3), reducer__decay=0.5)
    assert slim.reducer == Slim(steps=3, decay=0.5)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"reducer__stepz": 3}, "Invalid parameter reducer__stepz: Slim has no such setting. Valid .*reducer__steps"),
        ({"reducer__steps__x": 3}, "Invalid parameter reducer__steps__x"),
        ({"trainer": None, "trainer__C": 3}, "trainer=None has no settings to set"),
        ({"reducer": "shears", "reducer__steps": 3}, "reducer='shears' has no settings to set; give one of"),
        ({"wings": 3}, "Invalid parameter"),
    ],
    ids=["unknown", "too deep", "none", "unknown method", "of the estimator"],
)
def test_settings_that_methods_do_not_have_are_refused(params, words):
    with pytest.raises(ValueError, match=words):
        SlimSVC().set_params(**params)


def test_a_grid_searches_over_settings_of_methods(iris):
    X, y = iris
    grid = {"slimsvc__reducer__steps": [1, 20], "slimsvc__trainer__C": [0.01, 10.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), SlimSVC(2, random_state=0)), grid, cv=2).fit(X[:60], y[:60])
    assert search.best_params_.keys() == grid.keys()
    assert search.best_estimator_[-1].reducer.steps in (1, 20)


# Weights


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"), reason="weights do not reach a Pipeline's score there"
)
def test_sample_weights_are_routed(iris):
    X, y = iris
    weights = np.where(y == 0, 5.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        slim = SlimSVC(C=0.05).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), slim)
        routed = GridSearchCV(pipeline, {"slimsvc__C": [0.05]}, cv=2).fit(X, y, sample_weight=weights)
        score = routed.score(X, y, sample_weight=weights)
    direct = SlimSVC(C=0.05).fit(StandardScaler().fit_transform(X), y, weights)
    rows = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(routed.decision_function(X), direct.decision_function(rows))
    assert score == direct.score(rows, y, sample_weight=weights) != direct.score(rows, y)


def test_weights_count_in_compress_and_score(iris):
    X, y = iris
    full = SVC().fit(X, y)
    few = np.where(y == 2, 1e-3, 1.0)
    plain, weighted = (compress(full, X, y, budget=2, sample_weight=w, random_state=0) for w in (None, few))
    assert weighted.score(X, y, sample_weight=few) >= plain.score(X, y, sample_weight=few)
    X, y = load_diabetes(return_X_y=True)
    assert SlimSVR(C=100).fit(X, y, np.ones(y.size)).score(X, y, sample_weight=np.arange(y.size)) > 0.3


# Frames


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", [SlimSVC, SlimSVR, SlimOneClassSVM])
def test_frames_are_rows_with_names(kind, library, iris):
    frames = pytest.importorskip(library)
    X, y = iris
    names = ["a", "b", "c", "d"]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    model = kind(kernel="linear").fit(frame, frames.Series(y))
    assert model.feature_names_in_.tolist() == names
    predicted = model.predict(frame)
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_array_equal(predicted, kind(kernel="linear").fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])


def test_a_pipeline_of_frames_is_compressed_without_a_warning(iris):
    pandas = pytest.importorskip("pandas")
    X, y = iris
    frame = pandas.DataFrame(X, columns=list("abcd"))
    for scaler in (StandardScaler(), StandardScaler().set_output(transform="pandas")):
        full = make_pipeline(scaler, SVC()).fit(frame, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            small = compress(full, frame, y, budget=6, reducer="prune", random_state=0)
            small.predict(frame)
            small.decision_function(frame)


# Callbacks and representations


class Seen:
    """A callback that writes down what it is told."""

    max_propagation_depth = None

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):  # noqa: ARG002
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):  # noqa: ARG002
        if context.max_subtasks != 0:
            self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):  # noqa: ARG002
        if context.max_subtasks != 0:
            self.events.append(f"end {context.task_name}")
        if isinstance(fitted_estimator, SlimSVC | SlimSVR | SlimOneClassSVM):
            self.predictions = fitted_estimator.predict(load_iris().data)

    def teardown(self, estimator, context):  # noqa: ARG002
        self.events.append("teardown")


@needs_callbacks
@pytest.mark.parametrize("kind", [SlimSVC, SlimSVR, SlimOneClassSVM])
def test_callbacks_see_the_phases_of_fit(kind, iris):
    seen = Seen()
    model = kind(4, reducer="prune").set_callbacks(seen).fit(*iris)
    assert seen.events == [
        "setup", "begin fit", "begin train", "end train", "begin shrink", "end shrink", "end fit", "teardown"
    ]  # fmt: skip
    assert not hasattr(model, "_callback_fit_ctx")
    np.testing.assert_array_equal(seen.predictions, model.predict(load_iris().data))


@needs_callbacks
def test_callbacks_are_closed_after_an_error(iris):
    seen, model = Seen(), SlimSVC(kernel="gauss")
    with pytest.raises(ValueError, match="unknown kernel"):
        model.set_callbacks(seen).fit(*iris)
    assert seen.events[-1] == "teardown"
    assert not hasattr(model, "_callback_fit_ctx")


@needs_callbacks
def test_callbacks_of_a_pipeline_reach_the_last_step(iris):
    seen = Seen()
    make_pipeline(StandardScaler(), SlimSVC()).set_callbacks(seen).fit(*iris)
    assert "begin train" in seen.events


@needs_callbacks
def test_scikit_learns_progress_bar_runs(iris, capsys):
    from sklearn.callback import ProgressBar

    SlimSVC(4, reducer="prune").set_callbacks(ProgressBar()).fit(*iris)
    assert "SlimSVC - fit" in capsys.readouterr().out


@pytest.mark.parametrize(
    "model", [SlimSVC(8, reducer=Slim(steps=3)), SlimSVR(), SlimOneClassSVM()], ids=lambda m: type(m).__name__
)
def test_estimators_are_shown_as_html(model, iris):
    for estimator in (model, clone(model).fit(*iris), make_pipeline(StandardScaler(), model)):
        assert type(model).__name__ in estimator._repr_html_()
        assert type(model).__name__ in repr(estimator)
