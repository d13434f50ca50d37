"""SpSVM: the best of the candidates drawn, an objective that falls, stationary models; each against plain arithmetic."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from slimsvm import SlimSVC
from slimsvm.kernels import RBF, Linear, Sigmoid
from slimsvm.model import Status
from slimsvm.multiclass import OneVsRest
from slimsvm.reducers.spsvm import Basis, SpSVM
from slimsvm.rows.host import HostRows


@pytest.fixture
def problem(make_task):
    """The three classes of iris, with weights, and an output that some of the rows have no part in."""
    X, labels = load_iris(return_X_y=True)
    targets = OneVsRest(3).encode(labels)
    targets[::7, 2] = 0
    return make_task(RBF(0.5), X, targets, np.random.default_rng(1).uniform(0.5, 2.0, 150))


def objective(task, index, coef, bias, C):
    """1/2 beta' K_JJ beta + C/2 sum w max(0, 1 - y f)^2, summed over outputs, and the largest part of its gradient."""
    K = task.rows.kernel(task.rows.X, task.rows.X[index])
    part = C * task.weights[:, None] * (task.targets != 0)
    slack = np.maximum(0.0, 1 - task.targets * (K @ coef + bias))
    value = 0.5 * np.einsum("ic,ij,jc", coef, K[index], coef) + 0.5 * (part * slack**2).sum()
    pull = part * task.targets * slack
    gradient = np.vstack([pull.sum(axis=0), K[index] @ coef - K.T @ pull])
    return value, np.abs(gradient).max(initial=0.0)


def test_the_point_that_joins_lowers_the_objective_most(problem):
    """Against a general search on the line of every candidate and output."""
    C = 2.0
    basis = Basis(problem, C, 12)
    for _ in range(4):
        basis.grow(10)
        basis.optimise()
    rows = np.random.default_rng(2).choice(np.setdiff1d(np.arange(150), basis.index), 10, replace=False)
    before, _ = objective(problem, basis.index, basis.coef, basis.bias, C)
    plain, best_steps = np.zeros(10), np.zeros((10, 3))
    for number, row in enumerate(rows):
        index = np.append(basis.index, row)
        for column in range(3):

            def value(t, index=index, column=column):
                coef = np.vstack([basis.coef, t * np.eye(3)[column]])
                return objective(problem, index, coef, basis.bias, C)[0]

            found = minimize_scalar(value, tol=1e-10)
            plain[number] += before - found.fun
            best_steps[number, column] = found.x
    steps, gains = basis.gains(rows, problem.rows.matrix(problem.rows.X[rows]))
    np.testing.assert_allclose(gains * C / 2, plain, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(steps, best_steps, rtol=1e-4, atol=1e-5)


def test_the_best_of_the_candidates_joins_and_the_objective_falls_by_its_gain(problem):
    basis = Basis(problem, 1.0, 20)
    for _ in range(20):
        # all rows are candidates: then the draw is known
        rows = np.flatnonzero(basis.pool)
        gains = basis.gains(rows, problem.rows.matrix(problem.rows.X[rows]))[1]
        before, _ = objective(problem, basis.index, basis.coef, basis.bias, 1.0)
        assert basis.grow(150)
        assert gains[list(rows).index(basis.index[-1])] == pytest.approx(gains.max())
        after, _ = objective(problem, basis.index, basis.coef, basis.bias, 1.0)
        assert after == pytest.approx(before - gains.max() / 2, rel=1e-9)
        basis.optimise()
        optimal, gradient = objective(problem, basis.index, basis.coef, basis.bias, 1.0)
        assert optimal <= after
        assert gradient <= 1e-6


def test_unmet_demands_are_those_of_the_model_without_optimising_too(problem):
    basis = Basis(problem, 1.0, 6)
    for _ in range(6):
        basis.grow(5)
    np.testing.assert_allclose(basis.unmet, basis.fit.unmet(basis.coef, basis.bias), atol=1e-12)


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_models_on_the_path_are_stationary_and_their_objectives_fall(growth, problem):
    C = 5.0
    models = SpSVM(C, candidates=20, growth=growth).path(problem, [1, 2, 4, 8, 16, 32]).models
    values = []
    for model in models:
        index = [int(np.abs(problem.rows.X - point).sum(axis=1).argmin()) for point in model.points]
        value, gradient = objective(problem, index, model.coef, model.bias, C)
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


def test_the_factor_is_that_of_the_kernel_among_the_points(problem):
    basis = Basis(problem, 1.0, 8)
    while basis.size < 8:
        basis.grow(3)
    K = RBF(0.5)(*2 * [problem.rows.X[basis.index]])
    np.testing.assert_allclose(basis.factor @ basis.factor.T, K, atol=1e-12)
    np.testing.assert_allclose(basis.regulariser[1:, 1:], K, atol=1e-12)


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


def test_sparse_rows_give_the_same_models_and_so_does_a_seed(problem, form):
    def models(X):
        gram = HostRows(problem.rows.kernel, X)
        return SpSVM().path(dataclasses.replace(problem, rows=gram, rng=np.random.default_rng(5)), [3, 9]).models

    for one, two, again in zip(
        models(problem.rows.X), models(form(problem.rows.X)), models(form(problem.rows.X)), strict=True
    ):
        np.testing.assert_allclose(two.coef, one.coef, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(two.coef, again.coef)


@pytest.mark.usefixtures("float32_always")
def test_float32_kernel_values_will_do(problem):
    gram = HostRows(problem.rows.kernel, problem.rows.X)
    assert gram.dtype == np.float32
    path = SpSVM(10.0).path(dataclasses.replace(problem, rows=gram), [5, 25])
    assert path.sizes == [5, 25]
    assert all(np.isfinite(model.coef).all() for model in path.models)


def test_when_time_is_up_the_points_so_far_are_a_model(problem):
    path = SpSVM(time_limit=1e-9).path(problem, [50])
    assert path.status is Status.TIME_LIMIT
    assert path.sizes == [1]


def test_the_estimator_fills_in_its_cost(make_blobs):
    X, y = make_blobs()
    svm = SlimSVC(5, C=3.0, reducer="spsvm", random_state=0).fit(X, y)
    assert svm.model_.size <= 5
    assert all("C=3," in step.settings for step in svm.path_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"C": -1.0}, "C must be"), ({"candidates": 0}, "candidates must be"), ({"growth": -0.1}, "growth must be")],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        SpSVM(**settings)
