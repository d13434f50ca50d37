"""SpSVM: stationary models whose objective falls, and the input that it takes."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from conftest import primal_objective as objective
from sklearn.svm import LinearSVC

from slimsvm.kernels import RBF, Linear, Sigmoid
from slimsvm.model import Status
from slimsvm.reducers.spsvm import SpSVM
from slimsvm.rows.host import HostRows


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_models_on_the_path_are_stationary_and_their_objectives_fall(growth, weighted_iris):
    C = 5.0
    models = SpSVM(C, candidates=20, growth=growth).path(weighted_iris, [1, 2, 4, 8, 16, 32]).models
    values = []
    for model in models:
        index = [int(np.abs(weighted_iris.rows.given.rows() - point).sum(axis=1).argmin()) for point in model.points]
        value, gradient = objective(weighted_iris, index, model.coef, model.bias, C)
        values.append(value)
        assert gradient <= 1e-5
    assert [model.size for model in models] == [1, 2, 4, 8, 16, 32]
    assert all(later < earlier for earlier, later in pairwise(values))


def test_a_basis_that_spans_everything_is_the_svm_with_squared_hinge(make_blobs, make_task):
    X, y = make_blobs(60, d=3)
    path = SpSVM(C=0.5).path(make_task(Linear(), X, y), [40])
    svm = LinearSVC(C=0.25, loss="squared_hinge", intercept_scaling=1e4, dual=False, tol=1e-12, max_iter=10**5).fit(X, y)
    # the fourth point would lie in the span of three
    assert path.sizes == [3]
    assert path.status is Status.EXHAUSTED
    np.testing.assert_allclose(path.models[0](X).ravel(), svm.decision_function(X), atol=1e-4)


def test_copies_of_a_point_never_join(make_blobs, make_task):
    X, y = make_blobs(12)
    path = SpSVM(C=10.0).path(make_task(RBF(0.5), np.repeat(X, 5, axis=0), np.repeat(y, 5)), [30])
    assert path.sizes == [12]
    assert len(np.unique(path.models[0].points, axis=0)) == 12


def test_rows_of_one_side_need_a_bias_alone(make_blobs, make_task):
    X, _ = make_blobs(30)
    path = SpSVM().path(make_task(RBF(0.5), X, np.ones(30)), [1, 2, 10])
    assert path.sizes == [1]
    np.testing.assert_allclose(path.models[0](X), 1.0, atol=1e-9)


def test_a_kernel_that_is_not_positive_gives_finite_models_or_says_why_not(make_blobs, make_task):
    X, y = make_blobs(60)
    for model in SpSVM(C=10.0).path(make_task(Sigmoid(0.5, 0.1), X, y), [1, 4, 30]).models:
        assert np.isfinite(model.coef).all()
    with pytest.raises(ValueError, match=r"k\(x, x\) > 0"):
        SpSVM().path(make_task(Sigmoid(0.05, -1.0), X, y), [4])


def test_sparse_rows_give_the_same_models_and_so_does_a_seed(weighted_iris, form):
    def models(X):
        rows = HostRows(weighted_iris.rows.kernel, X)
        return SpSVM().path(dataclasses.replace(weighted_iris, rows=rows, rng=np.random.default_rng(5)), [3, 9]).models

    X = weighted_iris.rows.given.rows()
    for one, two, again in zip(models(X), models(form(X)), models(form(X)), strict=True):
        np.testing.assert_allclose(two.coef, one.coef, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(two.coef, again.coef)


def test_float32_kernel_values_will_do(weighted_iris, float32_always):
    rows = HostRows(weighted_iris.rows.kernel, weighted_iris.rows.given.rows(), precision=float32_always)
    assert rows.dtype == np.float32
    path = SpSVM(10.0).path(dataclasses.replace(weighted_iris, rows=rows), [5, 25])
    assert path.sizes == [5, 25]
    assert all(np.isfinite(model.coef).all() for model in path.models)


def test_when_time_is_up_the_points_so_far_are_a_model(weighted_iris):
    path = SpSVM(time_limit=1e-9).path(weighted_iris, [50])
    assert path.status is Status.TIME_LIMIT
    assert path.sizes == [1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"C": -1.0}, "C must be"), ({"candidates": 0}, "candidates must be"), ({"growth": -0.1}, "growth must be")],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        SpSVM(**settings)
