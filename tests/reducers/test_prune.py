"""Pruning: exactly the largest weights, and the bias."""

from dataclasses import replace

import numpy as np
import pytest

from slimsvm.kernels import RBF, Precomputed
from slimsvm.model import Expansion, Status
from slimsvm.reducers.prune import Prune, by_weight


@pytest.fixture(params=[1, 3], ids=["one output", "three outputs"])
def problem(request, make_task):
    """A task, and a full model of random coefficients on its rows."""
    rng = np.random.default_rng(0)
    X, q = rng.normal(size=(50, 3)), request.param
    task = make_task(RBF(0.5), X, np.sign(rng.normal(size=(50, q))), weights=rng.uniform(0.5, 2, 50))
    return task, Expansion(RBF(0.5), X[:30], rng.normal(size=(30, q)), rng.normal(size=q))


def test_exactly_the_largest_are_kept(problem):
    task, full = problem
    path = Prune().path(task, [1, 7, 29], full)
    assert path.sizes == [1, 7, 29]
    norms = np.sqrt(np.square(full.coef).sum(axis=1))
    for model in path.models:
        kept = [int(np.flatnonzero((full.points == point).all(axis=1))[0]) for point in model.points]
        assert set(kept) == set(np.argsort(norms)[-model.size :])
        np.testing.assert_array_equal(model.coef, full.coef[kept])
        np.testing.assert_array_equal(model.bias, full.bias)


def test_a_balanced_bias_gives_the_full_models_mean_output(problem):
    task, full = problem
    for model in Prune(bias="balanced").path(task, [1, 7], full).models:
        means = (np.average(f.on(task.rows), axis=0, weights=task.weights) for f in (model, full))
        np.testing.assert_allclose(*means)


def test_refitted_coefficients_are_others_on_the_same_points(problem):
    task, full = problem
    plain, fitted = (Prune(refit=refit).path(task, [7], full).models[0] for refit in (False, True))
    np.testing.assert_array_equal(plain.points, fitted.points)
    assert np.abs(plain.coef - fitted.coef).max() > 1e-3


def test_equal_weights_are_chosen_from_by_chance():
    coef = np.array([[1.0], [-1.0], [1.0], [3.0], [-1.0]])
    orders = [by_weight(coef, np.random.default_rng(seed)) for seed in range(40)]
    assert {order[0] for order in orders} == {3}
    assert {order[1] for order in orders} == {0, 1, 2, 4}
    np.testing.assert_array_equal(*(by_weight(coef, np.random.default_rng(1)) for _ in range(2)))


def test_sizes_beyond_the_support_vectors_end_with_all_of_them(problem):
    task, full = problem
    path = Prune().path(task, [10, 40, 45], full)
    assert path.sizes == [10, 30]
    assert path.status is Status.EXHAUSTED


def test_columns_of_a_precomputed_kernel_are_kept(problem, make_task):
    task, full = problem
    X = task.rows.given.rows()
    K = full.kernel(X, X)
    columns = replace(full, kernel=Precomputed(), points=np.arange(30)[:, None])
    ours = Prune(bias="balanced").path(make_task(Precomputed(), K, task.targets, task.weights), [4], columns).models[0]
    theirs = Prune(bias="balanced").path(task, [4], full).models[0]
    np.testing.assert_allclose(ours(K), theirs(X), atol=1e-9)


def test_an_unknown_bias_is_refused():
    with pytest.raises(ValueError, match=r"kept.*balanced"):
        Prune(bias="learned")
