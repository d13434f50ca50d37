"""slim: losses that fall, targets, starts, growth and finish."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC, compress
from slimsvm.goals import OneVsRest
from slimsvm.goals.values import Novelty
from slimsvm.kernels import RBF
from slimsvm.model import Judgement, Status
from slimsvm.slim import point_search
from slimsvm.slim.method import Slim
from slimsvm.slim.point_search import Objective, PointSearch, known_objectives
from slimsvm.solvers.basis import wanted
from slimsvm.trainers import SMO

SIZES = [1, 2, 4, 8]


@pytest.fixture
def moons(make_task):
    """A task of 200 rows, and its full model."""
    X, labels = make_moons(200, noise=0.25, random_state=0)
    task = make_task(RBF(1.0), X, np.where(labels, 1.0, -1.0))
    return task, SMO(10.0).fit(task).model


def one_sided_loss(task, model, margin_targets, decay):
    """What slim makes small, written out."""
    kernel = task.rows.kernel
    outputs = kernel(task.rows.given.rows(), model.points) @ model.coef + model.bias
    unmet = np.maximum(0, np.maximum(margin_targets.low - outputs, outputs - margin_targets.high))
    size = np.trace(model.coef.T @ kernel(model.points, model.points) @ model.coef)
    return (task.weights[:, None] * unmet**2).sum() + decay * size


@pytest.mark.parametrize("target", ["slant", "label"])
def test_loss_falls_with_every_size(moons, target):
    task, full = moons
    path = Slim(target=target, decay=0.1, C=10.0).path(task, SIZES, full)
    margin_targets = wanted(task, full if target == "slant" else None)
    losses = [one_sided_loss(task, model, margin_targets, 0.1 / 10.0) for model in path.models]
    assert path.sizes == SIZES
    assert all(later < earlier for earlier, later in pairwise(losses))


def test_points_are_where_the_loss_has_no_slope(moons):
    task, full = moons
    search = PointSearch(task, Objective("slant", None, full), 1 / 10.0)
    for _ in range(40):
        search.grow(3, 2000, all_rows=True, last=True)
    search.loss.theta = search.found.theta
    value, gradient = search.loss(search.points)
    assert np.abs(gradient).max() < 1e-2 * value


def judged(task, make_task):
    """The first half of the rows, judged by the others."""
    X, targets = task.rows.given.rows(), task.targets
    return make_task(RBF(1.0), X[::2], targets[::2], holdout=(X[1::2], (targets[1::2, 0] > 0).astype(int)))


def test_from_labels_alone_it_is_the_label_target(moons):
    task, _ = moons
    path = Slim().path(task, SIZES)
    assert {step.settings for step in path} == {"target=label"}


@pytest.mark.parametrize(
    ("settings", "targets"),
    [({}, ["label", "slant"]), ({"target": "slant"}, ["slant"]), ({"target": "label", "decay": 0.0}, ["label"])],
)
def test_settings_leave_what_is_tried(settings, targets, moons):
    task, full = moons
    objectives = Slim(**settings)._objectives(task, full)
    assert [objective.target for objective in objectives] == targets
    from_labels = Slim(**settings)._objectives(task, None)
    assert [objective.target for objective in from_labels] == [t for t in targets if t == "label"]
    [novelty] = Slim(**settings)._objectives(replace(task, goal=Novelty()), full)
    assert novelty.target == "slant"


def test_regularisation_grows_with_the_points_unless_it_is_given(moons):
    label, slant, given = Objective("label", None, None), Objective("slant", None, None), Slim(decay=0.3)
    assert [label.decay_at(size, 1, real=False) for size in (1, 16, 64, 500)] == [0.1, 0.25, 1.0, 1.0]
    assert [label.decay_at(size, 3, real=False) for size in (1, 16, 64, 500)] == [0.1, 0.25, 0.3, 0.3]
    assert {slant.decay_at(size, 1, real=False) for size in (1, 16, 500)} == {0.1}
    assert {slant.decay_at(size, 1, real=True) for size in (1, 16, 500)} == {0.0}
    [objective] = given._objectives(moons[0], None)
    assert {objective.decay_at(size, 1, real=real) for size in (1, 500) for real in (True, False)} == {0.3}


def noisy(seed, n=500):
    """Labels of one feature, a third of them wrong, and six features that say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 7))
    return X, np.where(rng.random(n) < 0.3, -1.0, 1.0) * np.sign(X[:, 0])


def test_noisy_labels_get_more_decay_and_clean_ones_less(monkeypatch):
    monkeypatch.setattr(point_search, "briefer", lambda steps, _: steps)
    X, y = noisy(0)
    fixed = Slim(metric="fixed")
    strong = SlimSVC(40, trainer=None, C=1e3, gamma=0.3, reducer=fixed, random_state=0).fit(X, y)
    plain = clone(strong).set_params(reducer=replace(fixed, decay=0.625)).fit(X, y)  # the usual one of 40 points
    assert strong.path_[-1].settings == "target=label, decay x 100"
    fresh, truth = noisy(1, 4000)
    assert strong.score(fresh, truth) > plain.score(fresh, truth)
    clean = SlimSVC(40, trainer=None, C=1e-2, gamma=0.3, reducer=fixed, random_state=0).fit(X, np.sign(np.sin(2 * X[:, 0])))
    assert clean.path_[-1].settings == "target=label, decay x 0.01"


def test_a_given_decay_is_kept():
    X, y = noisy(0, 200)
    given = SlimSVC(8, trainer=None, C=1e3, reducer=Slim(decay=0.1, steps=5), random_state=0).fit(X, y)
    assert {step.settings for step in given.path_} == {"target=label"}


def test_other_decays_are_multiples_with_names_of_their_own():
    label, slant = Objective("label", None, None), Objective("slant", None, None)
    assert [each.multiple for each in label.with_other_decays] == [1.0, 0.1, 10.0, 0.01, 100.0]
    assert str(known_objectives([label, slant])[1].made) == "target=label, decay x 0.1"
    assert known_objectives([label, slant])[-1] is slant
    usual, more = (each.decay_at(10, 1, real=False) for each in (label, label.with_decay(1)))
    assert more == 10 * usual


@pytest.mark.parametrize(("sizes", "compared_at"), [([1, 2, 4, 8], [8]), ([4, 64, 70], [64]), ([8, 70], [70])])
def test_targets_are_compared_at_one_size(sizes, compared_at, moons, make_task, monkeypatch):
    seen = []

    def same(search, *_):
        seen.append(search.points.shape[0])
        return search

    monkeypatch.setattr(PointSearch, "best_objective", same)
    task, full = moons
    slim = Slim(steps=2, metric="fixed")
    path = slim.path(judged(task, make_task), sizes, full)
    assert seen == compared_at
    assert path.sizes == sizes
    seen.clear()
    slim.path(task, sizes, full)
    assert not seen  # nobody could judge


@pytest.mark.parametrize(("errors", "chosen"), [((0.1, 0.05), 0), ((0.1, 0.03), 1), ((0.1, 0.2), 0)])
def test_labels_stay_unless_the_full_model_is_clearly_better(errors, chosen, moons, make_task, monkeypatch):
    """Two standard errors of 0.03 are wanted."""
    task, full = moons
    task = judged(task, make_task)
    objectives = Slim()._objectives(task, full)
    search = PointSearch(task, objectives[0], 1.0)
    search.grow(4, 5, all_rows=True, last=False)
    found = iter(errors)
    monkeypatch.setattr(type(task), "judge", lambda *_: Judgement(next(found), 0.03))
    best = search.best_objective(objectives, 3)
    assert best.objective is objectives[chosen]
    assert (best is search) == (chosen == 0)
    assert best.model.size == 4


def test_a_full_model_is_followed_where_rows_are_few():
    """Noisy labels of few rows, and a full model that knows better."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(4000, 2))
    y = (np.linalg.norm(X, axis=1) < 1.5).astype(int)
    full = SVC(gamma=1.0, C=10.0).fit(X, y)
    few, labels = X[:150], np.where(rng.random(150) < 0.3, 1 - y[:150], y[:150])
    small = {
        target: compress(full, few, labels, budget=12, reducer=Slim(target=target, C=10.0), random_state=0)
        for target in ("slant", "label")
    }
    assert small["slant"].score(X, y) > small["label"].score(X, y)


def test_same_seed_same_model(moons):
    task, full = moons
    points = [
        Slim().path(replace(task, rng=np.random.default_rng(seed)), [4, 8], full).models[-1].points for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(points[0], points[1])
    assert not np.array_equal(points[0], points[2])


def test_finished_model_fits_all_rows_better(moons, make_task):
    task, full = moons
    half = make_task(RBF(1.0), task.rows.given.rows()[::2], task.targets[::2])
    step = Slim(C=10.0, target="slant").path(half, [4], full).steps[0]
    small = Slim(C=10.0).finished(task, step, full)
    margin_targets = wanted(task, full)
    assert one_sided_loss(task, small, margin_targets, 0.01) < one_sided_loss(task, step.model, margin_targets, 0.01)
    assert small.size == step.size


def test_ctrl_c_while_finishing_keeps_the_model_of_the_path(moons, monkeypatch):
    task, _ = moons

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Slim, "finished", interrupted)
    model = SlimSVC(4, gamma=1.0, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(task.rows.given.rows(), task.targets.ravel())
    assert model.model_ is model.path_.best(4).model
    assert model.status_ is Status.INTERRUPTED


def test_equal_rows_do_no_harm(make_task):
    X = np.repeat(np.eye(2), 20, axis=0)
    path = Slim().path(make_task(RBF(1.0), X, np.repeat([1.0, -1.0], 20)), [1, 2, 8])
    assert path.sizes == [1, 2, 8]
    assert all(np.isfinite(model.points).all() for model in path.models)


def test_more_points_than_rows_end_the_path(make_task):
    X = np.random.default_rng(0).normal(size=(6, 2))
    path = Slim().path(make_task(RBF(1.0), X, [1, -1, 1, -1, 1, -1]), [2, 4, 100])
    assert path.sizes[-1] <= 6 + 4
    assert path.status is Status.EXHAUSTED


def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"unknown target .margin.*label.*slant.*auto"):
        Slim(target="margin")
    with pytest.raises(ValueError, match="decay must be a number of at least 0, or None, not -1"):
        Slim(decay=-1)
    with pytest.raises(ValueError, match="steps must be"):
        Slim(steps=0)


def test_better_than_chosen_points():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    full = SVC(C=1.0).fit(X, y)
    scores = {
        reducer: compress(full, X, y, budget=2, reducer=reducer, random_state=0).score(X_test, y_test)
        for reducer in ("slim", "slant-aggressive")
    }
    assert scores["slim"] >= max(scores["slant-aggressive"], full.score(X_test, y_test) - 0.02)


def test_many_classes_share_points():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, random_state=0, stratify=y)
    model = SlimSVC(40, gamma=1.0, C=10.0, random_state=0, reducer=Slim(steps=40)).fit(X, y)
    assert model.support_vectors_.shape[0] <= 40
    assert model.score(X_test, y_test) > 0.95


def test_regularisation_is_in_proportion_to_the_rows(moons):
    task, _ = moons
    search = PointSearch(task, Objective("label", 1.0, None), 1 / 10.0)
    rows = np.arange(0, 200, 2)
    assert search._loss_on_subsample(rows).decay == pytest.approx(search.loss.decay / 2)
    assert search._loss_on_relevant(np.full((200, 1), -1.0)).decay == search.loss.decay


@pytest.mark.parametrize(("n", "steps"), [(100, 1), (6000, 5), (12_288, 8), (16_384, 10), (24_576, 15), (99_999, 20)])
def test_with_several_outputs_more_rows_take_more_steps(n, steps):
    slim = Slim(steps=10)
    task = SimpleNamespace(rows=SimpleNamespace(n=n, d=70), goal=OneVsRest(3))
    assert slim.last_steps(task, 32) == steps
    assert slim.last_steps(SimpleNamespace(rows=task.rows, goal=OneVsRest(2)), 32) == (1 if n == 100 else 10)


def test_with_several_outputs_few_numbers_take_more_steps():
    task = SimpleNamespace(rows=SimpleNamespace(n=1 << 14, d=10), goal=OneVsRest(3))
    assert [Slim(steps=10).last_steps(task, size) for size in (1, 50, 51, 200)] == [30, 20, 10, 10]
