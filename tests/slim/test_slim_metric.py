"""slim with a learned metric, as a reducer: paths, targets, kernels, goals, and when auto leaves it."""

import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

from slimsvm import SlimSVC, SlimSVR, compress
from slimsvm.kernels import RBF
from slimsvm.slim.learned import KINDS
from slimsvm.slim.method import METRICS, Slim


def quick(metric="both", **settings):
    return Slim(metric=metric, **{"steps": 5} | settings)


@pytest.fixture(scope="module")
def noisy_moons():
    """Two moons in the first two of eight features."""
    X, y = make_moons(400, noise=0.15, random_state=0)
    return np.hstack([X, np.random.default_rng(0).normal(size=(400, 6))]), y


@pytest.mark.parametrize("metric", [kind for kind, learned in KINDS.items() if any(learned)])
def test_every_kind_makes_a_path(metric, noisy_moons):
    X, y = noisy_moons
    small = SlimSVC(6, trainer=None, gamma=0.5, reducer=quick(metric), random_state=0).fit(X, y)
    assert small.path_.sizes == [1, 2, 4, 6]
    assert {step.made.metric for step in small.path_} == {metric}
    scales, widths = KINDS[metric]
    assert bool(np.ptp(small.model_.factors)) == scales
    assert bool(np.ptp(small.model_.widths)) == widths
    assert small.score(X, y) > 0.8


def test_auto_is_the_default_and_fixed_has_no_metric(noisy_moons):
    X, y = noisy_moons
    assert Slim().metric == "auto"
    reducer = Slim(metric="fixed")
    assert SlimSVC(1, trainer=None, reducer=reducer, random_state=0).fit(X[:100], y[:100]).model_.metric is None


def test_a_learned_metric_beats_a_fixed_one_with_irrelevant_features(noisy_moons):
    X, y = noisy_moons
    errors = {}
    for metric in ("fixed", "both"):
        reducer = Slim(metric=metric, steps=20)
        errors[metric] = 1 - SlimSVC(8, trainer=None, gamma=0.5, C=10, reducer=reducer, random_state=0).fit(
            X[::2], y[::2]
        ).score(X[1::2], y[1::2])
    assert errors["both"] < errors["fixed"]


@pytest.mark.parametrize("target", ["auto", "slant"])
def test_an_svc_is_compressed(noisy_moons, target):
    X, y = noisy_moons
    full = make_pipeline(StandardScaler(), SVC(gamma=0.5)).fit(X, y)
    small = compress(full, X, y, budget=6, reducer=quick(target=target), random_state=0)
    assert small[-1].model_.metric is not None
    assert small.score(X, y) > 0.8
    assert {step.made.metric for step in small[-1].path_} == {"both"}
    assert {step.made.target for step in small[-1].path_} <= ({"slant"} if target == "slant" else {"label", "slant"})


def test_a_tolerance_finds_a_small_model(noisy_moons):
    X, y = noisy_moons
    small = SlimSVC(tolerance=0.05, gamma=0.5, reducer=quick(), random_state=0).fit(X, y)
    assert small.model_.metric is not None
    assert small.model_.size < 64


def test_three_classes_and_sparse_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 12)) * (rng.random((240, 12)) < 0.15)
    y = np.argmax(np.column_stack([X[:, 0], X[:, 1], np.full(240, 0.1)]), axis=1)
    small = SlimSVC(6, trainer=None, reducer=quick(), random_state=0).fit(csr_array(X), y)
    assert small.model_.coef.shape == (6, 3)
    np.testing.assert_array_equal(small.predict(csr_array(X)), small.predict(X))
    assert small.score(csr_array(X), y) > 0.8


def test_regression_and_novelty():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = 1e3 * (np.sin(2 * X[:, 0]) + 5)
    small = SlimSVR(8, trainer=None, C=1e3, gamma=0.3, reducer=quick(), random_state=0).fit(X, y)
    assert small.model_.metric is not None
    assert small.score(X, y) > 0.5
    followed = compress(SVR(C=10, gamma=0.3).fit(X, y / 1e3), X, y / 1e3, budget=8, reducer=quick(), random_state=0)
    assert followed.model_.metric is not None
    novelty = compress(OneClassSVM(nu=0.1, gamma=0.2).fit(X), X, budget=6, reducer=quick(), random_state=0)
    assert novelty.model_.metric is not None
    assert np.mean(novelty.predict(X) == OneClassSVM(nu=0.1, gamma=0.2).fit(X).predict(X)) > 0.8


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid"])
def test_kernels_without_a_width_have_scales_alone(kernel, noisy_moons):
    X, y = noisy_moons
    small = SlimSVC(3, trainer=None, kernel=kernel, gamma=0.1, reducer=quick("scales"), random_state=0).fit(X, y)
    assert small.model_.metric.widths is None
    for metric in ("widths", "both"):
        with pytest.raises(ValueError, match=f"the {kernel} kernel has no width; give metric='scales' or 'fixed'"):
            SlimSVC(3, trainer=None, kernel=kernel, reducer=quick(metric), random_state=0).fit(X, y)


def test_laplacian_has_both(noisy_moons):
    X, y = noisy_moons
    small = SlimSVC(3, trainer=None, kernel="laplacian", gamma=0.3, reducer=quick(), random_state=0).fit(X[::2], y[::2])
    assert np.ptp(small.model_.widths) > 0
    assert small.score(X, y) > 0.7


@pytest.mark.parametrize(
    "kernel", [pytest.param("precomputed", id="precomputed"), pytest.param(lambda A, B: A @ B.T, id="callable")]
)
def test_kernels_without_gradients_are_refused_with_what_works(kernel, noisy_moons):
    X, y = noisy_moons
    rows = X @ X.T if kernel == "precomputed" else X
    with pytest.raises(ValueError, match=r"Slim does not work with the \w+ kernel; the reducers that do are"):
        SlimSVC(3, trainer=None, kernel=kernel, reducer=quick(), random_state=0).fit(rows, y)


def drifting(n=1500, seed=0):
    """The class follows feature 0 at all times, and at random times feature 1 says it too, by the hour of the row."""
    rng = np.random.default_rng(seed)
    hours = np.arange(n) // 25  # neighbours share an hour
    X = np.column_stack([rng.normal(size=n), hours + 0.01 * rng.normal(size=n)])
    flips = rng.random(hours.max() + 1) < 0.5  # in half of the hours the class is the other way round
    y = (X[:, 0] + 0.3 * rng.normal(size=n) > 0) ^ flips[hours]
    X[:, 1] = (X[:, 1] - X[:, 1].mean()) / X[:, 1].std()
    return X, y.astype(int)


def test_auto_learns_where_both_kinds_of_rows_say_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 10))
    y = (np.sin(3 * X[:, 0]) > 0).astype(int)  # stripes; the other features are noise
    reducer = Slim(metric="auto", steps=10)
    small = SlimSVC(8, trainer=None, gamma=0.1, C=10, reducer=reducer, random_state=0).fit(X, y)
    assert "metric=both" in small.path_[-1].settings
    assert small.model_.factors.argmax() == 0


def test_auto_stays_fixed_where_rows_drift():
    X, y = drifting(seed=3)
    settings = {"trainer": None, "gamma": 1.0, "C": 10.0, "random_state": 0}
    auto = SlimSVC(24, reducer=Slim(steps=10), **settings).fit(X, y)
    assert all(not step.made.joint for step in auto.path_)
    fixed = SlimSVC(24, reducer=Slim(metric="fixed", steps=10), **settings).fit(X, y)
    np.testing.assert_array_equal(auto.decision_function(X), fixed.decision_function(X))


@pytest.mark.parametrize("seconds", [0.01, 1.0])
def test_auto_with_a_time_limit_makes_a_model(seconds):
    """Which metric wins may depend on the machine."""
    X, y = drifting()
    auto = Slim(metric="auto", time_limit=seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        small = SlimSVC(24, gamma=1.0, C=10.0, trainer=None, reducer=auto, random_state=0).fit(X, y)
    assert small.score(X, y) > 0.5


def test_auto_with_a_kernel_without_width_learns_scales(noisy_moons):
    X, y = noisy_moons
    small = SlimSVC(2, trainer=None, kernel="poly", gamma=0.1, reducer=quick("auto"), random_state=0).fit(X, y)
    assert {step.made.metric for step in small.path_} <= {"fixed", "scales"}


def test_a_time_limit_leaves_a_model(noisy_moons):
    X, y = noisy_moons
    reducer = Slim(metric="both", time_limit=2.0, steps=10**6)
    small = SlimSVC(4, trainer=None, reducer=reducer, random_state=0).fit(X, y)
    assert small.model_.size == 4
    assert small.model_.metric is not None


def test_a_short_time_limit_leaves_out_sizes_on_the_way_and_reaches_the_last():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    y = np.argmax(X[:, :6] ** 2, axis=1)
    reducer = Slim(metric="both", time_limit=1.5)
    small = SlimSVC(100, trainer=None, reducer=reducer, random_state=0).fit(X, y)
    assert small.path_.sizes[-1] == 100
    assert len(small.path_) < 8


def test_a_model_with_a_metric_is_followed(noisy_moons):
    X, y = noisy_moons
    large = SlimSVC(12, trainer=None, gamma=0.5, reducer=quick(), random_state=0).fit(X, y)
    small = compress(large, X, y, budget=3, reducer=Slim(target="slant", steps=10), random_state=0)
    assert 1 <= small.model_.size <= 3


def test_a_class_of_few_rows_is_learned_too():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 3)), [[4.0, 4.0, 0.0], [4.1, 4.0, 0.0], [4.0, 4.1, 0.0]]])
    y = np.repeat(["many", "few"], [300, 3])
    small = SlimSVC(6, trainer=None, reducer=quick(), class_weight="balanced", random_state=0).fit(X, y)
    assert (small.predict(X[300:]) == "few").all()
    assert np.mean(small.predict(X[:300]) == "many") > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "learned"}, f"unknown metric 'learned'; there are {list(METRICS)}"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Slim(**settings)


def test_a_path_on_any_home(noisy_moons):
    pytest.importorskip("torch")
    X, y = noisy_moons
    sizes = SlimSVC(3, trainer=None, gamma=0.5, device="torch:cpu", reducer=quick(), random_state=0).fit(X, y).path_.sizes
    assert sizes == [1, 2, 3]


def test_between_and_finished_keep_the_metric(make_task, noisy_moons):
    X, y = noisy_moons
    task = make_task(RBF(0.5), X[::2], np.where(y[::2], 1.0, -1.0), holdout=(X[1::2], y[1::2]))
    reducer = quick("widths")
    path = reducer.path(task, [2, 6])
    for made in (reducer.between(task, path[0], 4, None), reducer.finished(task, path[1], None)):
        assert np.ptp(made.widths) > 0
        assert made.metric.factors is None
    assert not reducer.used_model(path[0])


def test_auto_tries_rows_near_few_axes():
    """Blocks are left out of a sample whose principal axes are others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 6)) @ rng.normal(size=(6, 140)) + 0.02 * rng.normal(size=(700, 140))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    small = SlimSVC(8, trainer=None, reducer=Slim(steps=10), random_state=0).fit(X, y)
    assert {step.made.metric for step in small.path_} <= {"fixed", "both"}
    assert small.support_vectors_.shape == (8, 140)
