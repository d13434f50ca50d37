"""Regression on the full model's outputs: the tube is kept, and is the one that the size asks for."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVR

from slimsvm import SlimSVC
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Linear, Precomputed
from slimsvm.limits import Deadline
from slimsvm.model import Expansion, Status, Task
from slimsvm.papers.regression_of_outputs import OsunaGirosi, TubeFit, TubeSearch, least_squares
from slimsvm.rows.host import HostRows
from slimsvm.trainers import SMO


def problem(q=1, gamma=1.0):
    X, labels = make_moons(300, noise=0.25, random_state=0) if q == 1 else load_iris(return_X_y=True)
    task = Task(
        HostRows(RBF(gamma), X), OneVsRest(max(q, 2)).encode(labels), np.ones(labels.size), np.random.default_rng(0)
    )
    return task, SMO(10.0).fit(task).model


def radius(step):
    return float(step.settings.split("eps=")[1].split(",")[0])


def test_the_tube_holds_the_outputs_of_the_full_model():
    task, full = problem()
    for step in OsunaGirosi(refit=False).path(task, [4, 8, 16, 32], full):
        off = np.abs(step.model(full.points) - full(full.points)).max()
        assert off <= radius(step) * (1 + 1e-3) + 2e-3


def test_a_model_is_scikit_learns_regression_with_its_radius():
    task, full = problem()
    goal = full(full.points).ravel()
    for step in OsunaGirosi(cost=50.0, tol=1e-6, refit=False).path(task, [5, 20], full):
        theirs = SVR(C=50.0, epsilon=radius(step), gamma=1.0, tol=1e-6).fit(full.points, goal)
        np.testing.assert_allclose(step.model.on(task.rows).ravel(), theirs.predict(task.rows.given.rows()), atol=2e-3)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("refit", [False, True])
def test_sizes_are_met_or_next_to_it(q, refit):
    task, full = problem(q)
    sizes = [1, 2, 5, 10, 15]
    path = OsunaGirosi(refit=refit).path(task, sizes, full)
    if refit:
        assert path.sizes == sizes
        assert path.status is Status.BUDGET
    else:
        assert all(any(size - 3 <= got <= size for got in path.sizes) for size in sizes[1:])
    for step in path:
        assert step.model.coef.shape == (step.size, q)
        assert all((full.points == point).all(axis=1).any() for point in step.model.points)


@pytest.mark.parametrize("size", [1, 2, 6, 12])
def test_the_tube_of_a_size_is_the_narrowest_up_to_it(size):
    """On a fine grid of radii no wider tube has more support vectors; for a size of 1, the next narrower tube is near."""
    _, full = problem()
    rows = HostRows(full.kernel, full.points)
    best, narrower = TubeSearch(rows, full(full.points), np.full((rows.n, 1), True), 100.0, 1e-4).around(size, Deadline())
    assert best.size <= size
    assert (best.size == size) == (size != 1)  # coefficients sum to 0: no tube has one support vector
    others = TubeSearch(rows, full(full.points), np.full((rows.n, 1), True), 100.0, 1e-4)
    for eps in np.geomspace(best.eps * 1.01, others.tried[0].eps, 30)[:-1]:
        assert others.fit(eps, Deadline()).size <= size
    if size == 1:
        assert narrower.size == 2
        assert 0.99 * best.eps < narrower.eps < best.eps
        assert others.fit(0.99 * best.eps, Deadline()).size >= 2


def test_the_refit_is_closer_to_the_full_model():
    task, full = problem()
    plain, refitted = (OsunaGirosi(refit=refit).path(task, [16], full).models[-1] for refit in (False, True))
    off = [np.square(model(full.points) - full(full.points)).sum() for model in (plain, refitted)]
    assert off[1] < off[0]


def test_least_squares_are_those_of_numpy():
    rng = np.random.default_rng(0)
    X, Z, goals = rng.random((50, 6)), np.eye(6), rng.normal(size=(50, 2))
    coef, bias = least_squares(HostRows(Linear(), X).against(Z), goals, np.full(goals.shape, True))  # K = X
    expected = np.linalg.lstsq(np.hstack([np.ones((50, 1)), X]), goals, rcond=None)[0]
    np.testing.assert_allclose(np.vstack([bias, coef]), expected, atol=1e-5)


def test_pruning_keeps_the_largest_coefficients_in_order():
    coef = np.array([[1.0, 0.0], [0.0, -3.0], [2.0, 2.0], [0.1, 0.1]])
    kept = TubeFit(0.5, np.array([2, 4, 6, 8]), coef, np.zeros(2)).pruned(2)
    np.testing.assert_array_equal(kept.rows, [4, 6])
    np.testing.assert_array_equal(kept.coef, coef[1:3])


def test_more_points_follow_the_full_model_more_closely():
    task, full = problem()
    path = OsunaGirosi().path(task, [4, 16, 64], full)
    off = [np.square(model(full.points) - full(full.points)).mean() for model in path.models]
    assert off == sorted(off, reverse=True)
    assert off[-1] < 0.01


def test_sparse_rows_and_a_precomputed_kernel_give_the_same_models():
    task, full = problem(3)
    X = task.rows.given.rows()
    K = RBF(1.0)(X, X)
    sparse = Task(HostRows(RBF(1.0), csr_array(X)), task.targets, task.weights)
    index = [int(np.abs(X - point).sum(axis=1).argmin()) for point in full.points]
    order = np.argsort(index)
    in_sparse = Expansion(RBF(1.0), csr_array(full.points), full.coef, full.bias)
    matrix = Task(HostRows(Precomputed(), K), task.targets, task.weights)
    in_matrix = Expansion(Precomputed(), np.array(index)[order, None], full.coef[order], full.bias)
    for given in ((sparse, in_sparse), (matrix, in_matrix)):
        path = OsunaGirosi().path(given[0], [3, 12], given[1])
        plain = OsunaGirosi().path(task, [3, 12], full)
        for ours, theirs in zip(path.models, plain.models, strict=True):
            np.testing.assert_allclose(ours.on(given[0].rows), theirs(X), atol=1e-4)


def test_of_a_precomputed_kernel_only_rows_of_the_task_are_points():
    X, y = make_moons(200, noise=0.25, random_state=0)
    K = RBF(1.0)(X, X)
    slim = SlimSVC(30, C=10.0, kernel="precomputed", reducer="osuna-girosi", random_state=0).fit(K, y)
    plain = SlimSVC(30, C=10.0, gamma=1.0, reducer="osuna-girosi", random_state=0).fit(X, y)
    assert slim.model_.size <= 30
    assert abs(slim.score(K, y) - plain.score(X, y)) < 0.05


def test_the_full_model_itself_where_that_fits():
    task, full = problem()
    path = OsunaGirosi().path(task, [8, full.size + 5], full)
    assert path.status is Status.EXHAUSTED
    assert path.models[-1] is full
    alone = OsunaGirosi().path(task, [full.size], full)
    assert alone.models == [full]


def test_a_constant_needs_no_points():
    task, full = problem()
    flat = Expansion(full.kernel, full.points, np.zeros_like(full.coef), np.array([0.7]))
    path = OsunaGirosi().path(task, [1, 4], flat)
    assert path.sizes == [0]
    assert path.models[0].bias == pytest.approx([0.7])


def test_rows_that_repeat_are_one_point():
    task, full = problem()
    double = Expansion(full.kernel, np.repeat(full.points, 2, axis=0), np.repeat(full.coef / 2, 2, axis=0), full.bias)
    path = OsunaGirosi().path(task, [4, 16], double)
    assert path.sizes == [4, 16]
    assert all(np.isfinite(model.coef).all() for model in path.models)


def test_a_time_limit_leaves_a_model():
    task, full = problem()
    path = OsunaGirosi(time_limit=1e-9).path(task, [4, 16, 64], full)
    assert path.status is Status.TIME_LIMIT
    assert path.sizes == [4]


@pytest.mark.parametrize("cost", [0.0, -1.0, float("nan")])
def test_costs_without_a_meaning_are_refused(cost):
    with pytest.raises(ValueError, match="cost must be a number above 0"):
        OsunaGirosi(cost=cost)


def test_points_without_a_coefficient_are_not_regressed_on():
    task, full = problem()
    padded = Expansion(full.kernel, np.vstack([full.points, [[9.0, 9.0]]]), np.vstack([full.coef, [[0.0]]]), full.bias)
    for ours, theirs in zip(*(OsunaGirosi().path(task, [3, 9], model).models for model in (padded, full)), strict=True):
        np.testing.assert_allclose(ours.on(task.rows), theirs.on(task.rows), atol=1e-9)


def test_a_kernel_matrix_without_the_support_vectors_is_refused():
    task, _ = problem()
    X = task.rows.given.rows()
    matrix = Task(HostRows(Precomputed(), RBF(1.0)(X, X)), task.targets, task.weights)
    elsewhere = Expansion(Precomputed(), np.arange(300, 310)[:, None], np.ones((10, 1)), np.zeros(1))
    with pytest.raises(ValueError, match="none of the full model's support vectors is among the given rows"):
        OsunaGirosi().path(matrix, [4], elsewhere)
