"""The reduced set against the plain kernel matrix: the distance in feature space, its gradients, and what ends it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons

from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Laplacian, Linear, Poly, Sigmoid
from slimsvm.model import Expansion, Status
from slimsvm.papers.reduced_set import ReducedSet, TargetVector
from slimsvm.trainers import SMO

SMOOTH = [RBF(0.7), Poly(0.5, 1.0, 3), Linear()]
PAPER = ReducedSet(refit=False)


def full_model(kernel, q=1, seed=0, m=40, d=3):
    """Random points and coefficients: a w of q outputs."""
    rng = np.random.default_rng(seed)
    return Expansion(kernel, rng.normal(size=(m, d)), rng.normal(size=(m, q)), rng.normal(size=q))


def squared_distance(full, small):
    """|w - w~|^2, summed over outputs, from the kernel matrix of all points."""
    points = np.vstack([full.points, small.points])
    coef = np.vstack([full.coef, -small.coef])
    return float((coef * (full.kernel(points, points) @ coef)).sum())


@pytest.fixture
def task_of(make_task):
    """A task with the full model's points as rows."""

    def make(full, seed=0):
        y = np.where(np.arange(full.points.shape[0])[:, None] % 2, 1.0, -1.0) * np.ones_like(full.bias)
        return replace(make_task(full.kernel, full.points, y), rng=np.random.default_rng(seed))

    return make


@pytest.mark.parametrize("kernel", [RBF(0.7), Poly(0.5, 1.0, 3), Laplacian(0.5)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("polish", [True, False])
def test_the_distance_falls_with_every_point(kernel, q, polish, task_of):
    full = full_model(kernel, q)
    path = ReducedSet(polish=polish, refit=False).path(task_of(full), range(1, 16), full)
    whole = squared_distance(full, replace(full, coef=0 * full.coef))
    distances = [squared_distance(full, model) for model in path.models]
    assert path.sizes == list(range(1, len(path) + 1))
    assert len(path) == 15 or distances[-1] < 1e-7 * whole  # a polynomial's feature space has few dimensions
    assert distances[0] < whole
    assert (np.diff(distances) < 1e-7 * whole).all()
    assert distances[-1] < 0.5 * whole
    for step, exact in zip(path, distances, strict=True):
        assert float(step.settings.split()[4]) == pytest.approx(np.sqrt(exact / whole), rel=1e-2, abs=1e-4)
        np.testing.assert_array_equal(step.model.bias, full.bias)


@pytest.mark.parametrize("kernel", SMOOTH, ids=lambda kernel: kernel.name)
def test_the_coefficients_are_the_best_for_the_points(kernel, task_of):
    full = full_model(kernel, 2)
    Z = np.random.default_rng(2).normal(size=(3, 3))
    beta, left = TargetVector(task_of(full), full).nearest(Z)
    best = np.linalg.solve(kernel(Z, Z), kernel(Z, full.points) @ full.coef)
    np.testing.assert_allclose(beta, best, rtol=1e-4)
    whole = squared_distance(full, replace(full, coef=0 * full.coef))
    assert left == pytest.approx(squared_distance(full, Expansion(kernel, Z, beta, full.bias)) / whole, rel=1e-6)


@pytest.mark.parametrize("kernel", [RBF(0.7), Poly(0.5, 1.0, 3)], ids=lambda kernel: kernel.name)
def test_a_new_point_is_better_than_every_support_vector(kernel, task_of):
    full = full_model(kernel, 2)
    task = task_of(full)
    w = TargetVector(task, full)
    point = ReducedSet(restarts=40).new_point(w.vector, task.rng)
    assert w.nearest(point)[1] < min(w.nearest(x[None])[1] for x in full.points)


def test_points_without_coefficients_have_no_part(task_of):
    full = full_model(RBF(0.7))
    padded = replace(full, points=np.vstack([full.points, np.ones((5, 3))]), coef=np.vstack([full.coef, np.zeros((5, 1))]))
    one, two = (PAPER.path(task_of(full), [3], model).models[0] for model in (full, padded))
    np.testing.assert_array_equal(one.points, two.points)


def test_a_vector_that_few_points_span_is_found(task_of):
    few = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    places = np.repeat(np.arange(3), 5)
    coef = np.array([1.0, -2.0, 0.5])[places, None] / 5
    full = Expansion(RBF(0.5), few[places], coef, np.zeros(1))
    path = PAPER.path(task_of(full), [1, 2, 3, 8], full)
    assert path.sizes[-1] == 3
    assert path.status is Status.EXHAUSTED
    np.testing.assert_allclose(path.models[-1](few), full(few), atol=1e-4)


def test_one_point_is_all_that_a_linear_model_needs(task_of):
    full = full_model(Linear())
    path = PAPER.path(task_of(full), [1, 5], full)
    assert path.sizes == [1]
    X = np.random.default_rng(5).normal(size=(9, 3))
    np.testing.assert_allclose(path.models[0](X), full(X), rtol=1e-3)


def test_as_many_points_as_the_full_model_has_are_its_own(task_of):
    full = full_model(RBF(0.7), m=5)
    path = PAPER.path(task_of(full), [2, 4, 8], full)
    assert path.sizes == [2, 4, 5]
    assert path.models[-1] is full


def test_a_model_of_one_point_and_one_of_nothing(task_of):
    full = full_model(RBF(0.7), m=1)
    assert PAPER.path(task_of(full), [1, 3], full).models == [full]
    nothing = replace(full_model(RBF(0.7)), coef=np.zeros((40, 1)))
    for model in PAPER.path(task_of(nothing), [1, 3], nothing).models:
        np.testing.assert_array_equal(model.coef, 0.0)


@pytest.mark.parametrize("q", [1, 3])
def test_sparse_points_give_the_models_of_dense_ones(q, task_of):
    full = full_model(RBF(0.7), q)
    full = replace(full, points=full.points * (np.abs(full.points) > 1.0))
    dense = PAPER.path(task_of(full), [1, 4], full)
    sparse = replace(full, points=csr_array(full.points))
    for one, two in zip(dense, PAPER.path(task_of(sparse), [1, 4], sparse), strict=True):
        np.testing.assert_allclose(one.model(full.points), two.model(full.points), atol=1e-5)


def test_a_seed_gives_the_same_models(task_of):
    full = full_model(RBF(0.7), 2)
    one, two = (ReducedSet().path(task_of(full, seed=3), [2, 5], full) for _ in range(2))
    for a, b in zip(one.models, two.models, strict=True):
        np.testing.assert_array_equal(a.points, b.points)
        np.testing.assert_array_equal(a.coef, b.coef)


def test_refitted_models_have_the_same_points_and_fewer_unmet_demands(make_task):
    X, labels = make_moons(200, noise=0.2, random_state=0)
    task = make_task(RBF(1.0), X, OneVsRest(2).encode(labels))
    full = SMO(1.0).fit(task).model
    fresh = (replace(task, rng=np.random.default_rng(0)) for _ in range(2))
    plain, fitted = (
        ReducedSet(refit=refit).path(same, [3], full).models[0] for refit, same in zip((False, True), fresh, strict=True)
    )
    np.testing.assert_array_equal(plain.points, fitted.points)
    margins = task.targets * full(X)
    margin_targets = np.minimum(margins, 1)[margins > 0]

    def unmet(model):
        return np.square(np.maximum(0, margin_targets - (task.targets * model(X))[margins > 0])).sum()

    assert unmet(fitted) < unmet(plain)


def test_six_points_shared_by_three_classes_are_as_good_as_the_full_model(make_task):
    X, labels = load_iris(return_X_y=True)
    task = make_task(RBF(0.5), X, OneVsRest(3).encode(labels), holdout=(X, labels))
    full = SMO(1.0).fit(task).model
    path = ReducedSet().path(task, [1, 2, 6], full)
    assert path.models[-1].coef.shape == (6, 3)
    assert path.errors[-1] <= task.judge(full).error
    assert path.errors[-1] < path.errors[0]


def test_a_time_limit_ends_the_path_with_what_was_found(task_of):
    full = full_model(RBF(0.7))
    path = ReducedSet(refit=False, time_limit=1e-9).path(task_of(full), [4, 8], full)
    assert path.sizes == [1]
    assert path.status is Status.TIME_LIMIT


def test_kernels_without_gradients_or_feature_space_are_not_taken(kernel_name, make_case):
    assert ReducedSet.takes(make_case(kernel_name, n=3).kernel) == (
        kernel_name in ("linear", "rbf", "poly", "laplacian", "chi2")
    )
    assert not ReducedSet.takes(Poly(1.0, -1.0, 2))
    assert not ReducedSet.takes(Sigmoid())


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"restarts": 0}, "restarts"), ({"max_steps": -1}, "max_steps"), ({"polish_steps": 0}, "polish")],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        ReducedSet(**settings)
