"""slim by cross-entropy: few points for many classes, metrics, refusals, and runs that continue."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, compress
from slimsvm.slim.method import Slim


def by_cross_entropy(metric="fixed", **settings):
    return Slim(loss="cross_entropy", metric=metric, **settings)


@pytest.fixture(scope="module")
def many_classes():
    """Twenty classes in eight dimensions."""
    return make_blobs(1500, 8, centers=20, cluster_std=3.0, random_state=0)


def test_few_points_for_many_classes_have_a_lower_error(many_classes):
    X, y = many_classes
    errors = {}
    for loss in ("squared", "cross_entropy"):
        reducer = Slim(loss=loss, metric="fixed")
        small = SlimSVC(5, trainer=None, C=10.0, reducer=reducer, random_state=0).fit(X[:1000], y[:1000])
        errors[loss] = 1 - small.score(X[1000:], y[1000:])
    assert errors["cross_entropy"] < errors["squared"] - 0.01


@pytest.mark.parametrize("metric", ["fixed", "scales", "both", "auto"])
def test_every_metric_goes_with_it(metric, many_classes):
    X, y = many_classes
    small = SlimSVC(8, trainer=None, C=10.0, reducer=by_cross_entropy(metric), random_state=0).fit(X, y)
    assert "loss=cross_entropy" in small.path_[-1].settings
    assert (small.model_.metric is None) == (metric == "fixed")
    assert small.score(X, y) > 0.7


def test_two_classes():
    X, y = load_digits(n_class=2, return_X_y=True)
    small = SlimSVC(2, trainer=None, reducer=by_cross_entropy(), random_state=0).fit(X / 16, y)
    assert small.score(X / 16, y) > 0.98


def test_an_svc_is_compressed(many_classes):
    X, y = many_classes
    svc = SVC(C=1.0, decision_function_shape="ovr").fit(X, y)
    small = compress(svc, X, y, budget=12, multiclass="ovr", reducer=by_cross_entropy(), random_state=0)
    assert small.path_[-1].settings.startswith("target=label")
    assert np.mean(small.predict(X) == y) > 0.8


def test_between_and_a_tolerance_keep_the_loss(many_classes):
    X, y = many_classes
    small = SlimSVC(24, C=1.0, tolerance=0.3, scoring="accuracy", reducer=by_cross_entropy(steps=20), random_state=0).fit(
        X, y
    )
    assert {"loss=cross_entropy" in step.settings for step in small.path_} == {True}
    assert small.model_.size < 24


def test_a_time_limit_leaves_a_model(many_classes):
    X, y = many_classes
    reducer = replace(by_cross_entropy(), time_limit=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the time may end before the largest size
        small = SlimSVC(20, trainer=None, reducer=reducer, random_state=0).fit(X, y)
    assert small.predict(X).shape == y.shape


def test_goals_without_one_output_a_class_are_refused(many_classes):
    X, y = many_classes
    message = "is for two classes, or for one output a class"
    with pytest.raises(ValueError, match=message):
        SlimSVC(4, trainer=None, multiclass="ovo", reducer=by_cross_entropy()).fit(X, y)
    with pytest.raises(ValueError, match=message):
        SlimSVR(4, trainer=None, reducer=by_cross_entropy()).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=message):
        SlimOneClassSVM(4, reducer=by_cross_entropy()).fit(X)


@pytest.mark.parametrize(("points", "loss"), [(10, "cross_entropy"), (11, "squared")])
def test_auto_is_cross_entropy_for_at_most_half_as_many_points_as_classes(points, loss, many_classes):
    X, y = many_classes
    small = SlimSVC(points, trainer=None, random_state=0).fit(X, y)
    assert small.path_[-1].made.loss == loss


def test_auto_is_squared_where_classes_share_no_outputs_and_for_a_followed_model(many_classes):
    X, y = (part[many_classes[1] < 9] for part in many_classes)
    pairs = SlimSVC(4, trainer=None, multiclass="ovo", reducer=Slim(steps=3), random_state=0).fit(X, y)
    followed = SlimSVC(4, multiclass="ovr", reducer=Slim(target="slant", steps=3), random_state=0).fit(X, y)
    assert {step.made.loss for small in (pairs, followed) for step in small.path_} == {"squared"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, r"unknown loss 'hinge'; there are \['squared', 'cross_entropy', 'auto'\]"),
        ({"loss": "cross_entropy", "target": "slant"}, "follows labels; give target='label'"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        Slim(**settings)
