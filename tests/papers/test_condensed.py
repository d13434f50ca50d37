"""Condensed support vectors: sizes, classes, the papers' coefficients, and training without a full model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons

from slimsvm.goals import OneVsOne, OneVsRest
from slimsvm.kernels import RBF
from slimsvm.model import Expansion, Status
from slimsvm.papers.condensed import CSVM, CondensedTraining, Merging, classes_of
from slimsvm.rows.host import HostRows
from slimsvm.trainers import SMO

PAPER = CSVM(pairs="nearest", refit=False)


def seeded(task, seed=0):
    return replace(task, rng=np.random.default_rng(seed))


@pytest.fixture
def moons(make_task):
    """A task of two classes, judged on its own rows, and the full model."""
    X, labels = make_moons(300, noise=0.2, random_state=0)
    task = make_task(RBF(1.0), X, OneVsRest(2).encode(labels), holdout=(X, labels))
    return task, SMO(1.0).fit(task).model


def test_the_papers_models_are_those_of_the_merges(moons):
    task, full = moons
    path = PAPER.path(task, [2, 5, 20], full)
    assert path.sizes == [2, 5, 20]
    assert path.status is Status.BUDGET
    run = Merging(task.rows, full.points, full.coef, full.coef[:, 0] > 0, np.random.default_rng(0))
    while run.size > 5:
        run.merge()
    np.testing.assert_allclose(path.models[1].points, run.points())
    np.testing.assert_allclose(path.models[1].coef, run.coef[run.places])
    np.testing.assert_array_equal(path.models[1].bias, full.bias)
    assert path.steps[1].settings == f"{full.size} support vectors merged, |w - w~| <= {run.lost:.3g}"


@pytest.mark.parametrize("pairs", ["nearest", "cheapest"])
def test_fitted_coefficients_make_good_models_of_merged_points(pairs, moons):
    task, full = moons
    path = CSVM(pairs=pairs).path(task, [5, 20], full)
    assert path.errors[-1] <= task.judge(full).error + 0.02
    assert "merged, refit" in path.steps[0].settings


@pytest.mark.parametrize("coding", [OneVsRest(3), OneVsOne(3)], ids=lambda coding: coding.name)
def test_a_support_vector_is_of_the_class_of_its_row(coding):
    targets = coding.encode(np.arange(3))
    weights = np.random.default_rng(0).uniform(0.1, 1.0, targets.shape)
    codes = np.unique(targets, axis=0)
    own = classes_of(targets * weights, targets)
    np.testing.assert_array_equal(codes[own], targets)


def test_sides_are_told_apart_where_all_rows_are_of_one_class():
    np.testing.assert_array_equal(classes_of(np.array([[2.0], [-1.0], [0.5]]), np.ones((4, 1))), [0, 1, 0])


@pytest.mark.parametrize("coding", [OneVsRest(3), OneVsOne(3)], ids=lambda coding: coding.name)
def test_one_point_of_each_of_three_classes_is_as_good_as_the_full_model(coding, make_task):
    X, labels = load_iris(return_X_y=True)
    task = make_task(RBF(0.5), X, coding.encode(labels))
    full = SMO(1.0).fit(task).model

    def error(model):
        return np.mean(coding.decode(model(X)) != labels)

    for model in (full, None):
        path = CSVM().path(seeded(task), [1, 3, 10], model)
        assert path.sizes == [1, 3, 10]
        assert max(error(path.models[1]), error(path.models[2])) <= error(full) < error(path.models[0])


def test_without_a_full_model_its_own_machine_is_merged(moons):
    path = CSVM(C=1.0, working_set=40).path(moons[0], [8, 16], None)
    assert path.sizes == [8, 16]
    assert "condensed vectors merged" in path.steps[0].settings


def test_a_working_set_with_room_for_all_is_the_exact_machine(moons):
    task, full = moons
    exact = CondensedTraining(CSVM(C=1.0, tol=1e-6, working_set=300), task, 4).run()
    X = task.rows.given.rows()
    np.testing.assert_allclose(exact(X), SMO(1.0, tol=1e-6).fit(task).model(X), atol=1e-4)
    assert full.size == pytest.approx(exact.size, abs=5)


def test_weight_and_rows_are_neither_lost_nor_made(moons):
    task, _ = moons
    run = CondensedTraining(CSVM(C=1.0, working_set=30), task, 4)
    run.run()
    assert run.numbers.size <= 45
    assert (run.numbers < 0).any()
    whole = run.numbers[run.numbers >= 0]
    assert np.intersect1d(whole, run.outside).size == 0
    assert np.unique(run.outside).size == run.outside.size
    assert run.weights.sum() + run.outside.size == pytest.approx(300)
    np.testing.assert_array_equal(run.weights[run.numbers >= 0], 1.0)


def test_all_rows_of_one_class(make_task):
    X = np.random.default_rng(0).normal(size=(30, 2))
    task = make_task(RBF(1.0), X, np.ones(30))
    for model in (None, Expansion(RBF(1.0), X, np.ones((30, 1)), np.zeros(1))):
        path = CSVM().path(seeded(task), [1, 4], model)
        assert (path.models[-1](X) > 0).all()


def test_sizes_beyond_the_support_vectors_end_with_all_of_them(make_task):
    X = np.random.default_rng(0).normal(size=(6, 2))
    task = make_task(RBF(1.0), X, [1, -1, 1, -1, 1, -1])
    full = Expansion(RBF(1.0), X, task.targets.copy(), np.zeros(1))
    path = PAPER.path(task, [2, 9], full)
    assert path.sizes == [2, 6]
    assert path.status is Status.EXHAUSTED
    one = replace(full, points=X[:1], coef=full.coef[:1])
    assert PAPER.path(task, [1, 3], one).sizes == [1]


@pytest.mark.parametrize("with_model", [True, False], ids=["with a full model", "without"])
def test_sparse_rows_give_the_models_of_dense_ones(with_model, moons):
    task, full = moons
    X = task.rows.given.rows()
    sparse = replace(seeded(task), rows=HostRows(RBF(1.0), csr_array(X)))
    model = replace(full, points=csr_array(full.points)) if with_model else None
    ours = CSVM(working_set=40).path(sparse, [3, 9], model)
    dense = CSVM(working_set=40).path(seeded(task), [3, 9], full if with_model else None)
    for one, two in zip(ours.models, dense.models, strict=True):
        np.testing.assert_allclose(one(X), two(X), atol=1e-4)


def test_a_seed_gives_the_same_models(moons):
    task, _ = moons
    one, two = (CSVM(working_set=40).path(seeded(task, 5), [3, 9]) for _ in range(2))
    for a, b in zip(one.models, two.models, strict=True):
        np.testing.assert_array_equal(a.coef, b.coef)


def test_out_of_time_the_heaviest_points_are_kept(moons):
    task, full = moons
    path = CSVM(time_limit=1e-9, refit=False).path(task, [2, 6], full)
    assert path.sizes == [6]
    heaviest = np.sort(np.abs(full.coef.ravel()))[-6:]
    np.testing.assert_allclose(np.sort(np.abs(path.models[0].coef.ravel())), heaviest)


def test_only_the_gaussian_kernel_is_taken(kernel_name, make_case):
    assert CSVM.takes(make_case(kernel_name, n=3).kernel) == (kernel_name == "rbf")


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"pairs": "far"}, "nearest.*cheapest"), ({"working_set": 1}, "working_set"), ({"max_rounds": 0}, "max_rounds")],
    ids=["pairs", "working_set", "max_rounds"],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        CSVM(**settings)
