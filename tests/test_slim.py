"""slim: losses that fall, targets, starts, growth and finish."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from slimsvm import SlimSVC, compress
from slimsvm.deadline import Deadline
from slimsvm.kernels import RBF
from slimsvm.model import Status
from slimsvm.path import Step
from slimsvm.reducers import slim
from slimsvm.reducers.demands import demands
from slimsvm.reducers.slim import Slim
from slimsvm.trainers import SMO

SIZES = [1, 2, 4, 8]


@pytest.fixture
def moons(make_task):
    """A task of 200 rows, and its full model."""
    X, labels = make_moons(200, noise=0.25, random_state=0)
    task = make_task(RBF(1.0), X, np.where(labels, 1.0, -1.0))
    return task, SMO(10.0).fit(task).model


def one_sided_loss(task, model, wanted, decay):
    """What slim makes small, written out."""
    kernel = task.gram.kernel
    outputs = kernel(task.gram.X, model.points) @ model.coef + model.bias
    unmet = np.maximum(0, wanted - task.targets * outputs)
    size = np.trace(model.coef.T @ kernel(model.points, model.points) @ model.coef)
    return (task.weights[:, None] * unmet**2).sum() + decay * size


@pytest.mark.parametrize("target", ["slant", "label"])
def test_loss_falls_with_every_size(moons, target):
    task, full = moons
    path = Slim(target=target, C=10.0).path(task, SIZES, full)
    wanted = demands(task, full if target == "slant" else None)
    losses = [one_sided_loss(task, model, wanted, slim.DECAYS[target] / 10.0) for model in path.models]
    assert path.sizes == SIZES
    assert all(later < earlier for earlier, later in pairwise(losses))


def test_points_are_where_the_loss_has_no_slope(moons):
    task, full = moons
    growth = slim._Growth(task, demands(task, full), "slant", 10.0, Deadline())
    growth.grow(3, 2000)
    growth.loss.theta = growth.theta
    value, gradient = growth.loss(growth.points, 20)
    assert np.abs(gradient).max() < 1e-2 * value


def test_from_labels_alone_it_is_the_label_target(moons):
    task, _ = moons
    path = Slim().path(task, SIZES)
    assert {step.settings for step in path} == {"label"}


@pytest.mark.parametrize(("small", "names"), [(2, 5), (64, 5)])
def test_both_targets_are_tried_at_one_size_and_the_better_one_goes_on(small, names, moons, monkeypatch):
    monkeypatch.setattr(slim, "SMALL", small)
    task, full = moons
    found = [(model.size, name) for model, name in Slim().models(task, [1, 2, 4, 8], full, Deadline())]
    both = 2 if small == 2 else 8
    assert [name for size, name in found if size == both] == ["slant", "label"]
    assert len({name for size, name in found if size > both}) <= 1
    assert len(found) == names


def test_the_other_target_has_a_second_chance_where_points_are_many(moons, monkeypatch):
    monkeypatch.setattr(slim, "MANY", 6)
    task, full = moons
    found = [(model.size, name) for model, name in Slim(steps=10).models(task, [4, 8], full, Deadline())]
    assert {name for size, name in found if size == 8} == {"label", "slant"}
    assert len(found) == 4


@pytest.mark.parametrize(("slant", "chosen"), [(0.10, "label"), (0.02, "slant")])
def test_where_points_are_many_labels_are_chosen_unless_clearly_worse(slant, chosen, moons, monkeypatch):
    monkeypatch.setattr(slim, "MANY", 3)
    model = moons[1]
    large = [Step(model, slant, "slant"), Step(model, 0.11, "label")]
    path = Slim().collected(large, Status.BUDGET, judges=100)
    assert [step.settings for step in path] == [chosen]
    monkeypatch.setattr(slim, "MANY", model.size)
    assert Slim().collected(large, Status.BUDGET, judges=100).steps[0].settings == "slant"


def test_same_seed_same_model(moons):
    task, full = moons
    points = [
        Slim().path(replace(task, rng=np.random.default_rng(seed)), [4, 8], full).models[-1].points for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(points[0], points[1])
    assert not np.array_equal(points[0], points[2])


def test_few_rows_are_looked_at_and_nothing_is_lost(moons, monkeypatch):
    task, full = moons
    wanted = demands(task, full)
    losses = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(slim, "MOST", 1.0 - share)
        monkeypatch.setattr(slim, "BESIDE", 20)
        model = Slim(target="slant", C=10.0).path(task, [4], full).models[0]
        losses.append(one_sided_loss(task, model, wanted, 0.01))
    assert losses[0] == pytest.approx(losses[1], rel=0.1)


def test_many_rows_are_sampled(moons, monkeypatch):
    task, full = moons
    monkeypatch.setattr(slim, "MOST_VALUES", 8 * 100)
    part = slim._affordable(task, 8)
    assert part.gram.n == part.targets.shape[0] == part.weights.size == 100
    assert slim._affordable(task, 4) is task
    assert Slim().path(task, SIZES, full).sizes == SIZES


def test_finished_model_fits_all_rows_better(moons, make_task):
    task, full = moons
    half = make_task(RBF(1.0), task.gram.X[::2], task.targets[::2])
    step = Slim(C=10.0, target="slant").path(half, [4], full).steps[0]
    small = Slim(C=10.0).finished(task, step, full)
    wanted = demands(task, full)
    assert one_sided_loss(task, small, wanted, 0.01) < one_sided_loss(task, step.model, wanted, 0.01)
    assert small.size == step.size


def test_ctrl_c_while_finishing_keeps_the_model_of_the_path(moons, monkeypatch):
    task, _ = moons

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Slim, "finished", interrupted)
    model = SlimSVC(4, gamma=1.0, random_state=0).fit(task.gram.X, task.targets.ravel())
    assert model.model_ is model.path_.best(4).model


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
    with pytest.raises(ValueError, match=r"unknown target .margin.*slant.*label.*auto"):
        Slim(target="margin")
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


def test_step_names_its_target_for_the_finish(moons):
    task, full = moons
    step = Slim().path(task, [2], full).steps[0]
    assert step.settings in slim.DECAYS
