"""RSVM: the exact minimiser for its random basis, against a general optimiser and scikit-learn's own linear SVM."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from slimsvm import SlimSVC
from slimsvm.kernels import RBF, Linear, Sigmoid
from slimsvm.model import Status
from slimsvm.papers.rsvm import REGULARISERS, RSVM
from slimsvm.rows.host import HostRows


def theirs(model, task, C, regulariser, column):
    """The objective of the paper, or of the kernel norm, for one output; and its gradient, both from all rows."""
    design = np.column_stack([np.ones(task.rows.n), task.rows.kernel(task.rows.given.rows(), model.points)])
    norm = np.eye(design.shape[1])
    if regulariser == "kernel":
        norm = np.zeros_like(norm)
        norm[1:, 1:] = task.rows.kernel(model.points, model.points)
    y = task.targets[:, column]
    weights = C * task.weights * (y != 0)

    def value(theta):
        slack = np.maximum(0.0, 1 - y * (design @ theta))
        return 0.5 * theta @ norm @ theta + 0.5 * weights @ slack**2, norm @ theta - design.T @ (weights * y * slack)

    return value


@pytest.fixture
def problem(make_blobs, make_task):
    """Three outputs, one of them without a third of the rows, and weights."""
    X, y = make_blobs(120)
    rng = np.random.default_rng(3)
    other = np.where(X[:, 1] > 0, 1.0, -1.0)
    part = np.where(rng.random(120) < 0.3, 0.0, y)
    return make_task(RBF(0.4), X, np.column_stack([y, other, part]), rng.uniform(0.5, 2.0, 120))


@pytest.mark.parametrize("regulariser", REGULARISERS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_every_model_is_the_minimiser_for_its_basis(regulariser, C, problem):
    path = RSVM(C, regulariser).path(problem, [1, 2, 8, 20])
    assert path.sizes == [1, 2, 8, 20]
    assert path.status is Status.BUDGET
    for model in path.models:
        for column in range(3):
            objective = theirs(model, problem, C, regulariser, column)
            ours = np.append(model.bias[column], model.coef[:, column])
            value, gradient = objective(ours)
            best = minimize(objective, np.zeros_like(ours), jac=True, method="BFGS", options={"gtol": 1e-8})
            assert value <= best.fun + 1e-9 * (1 + abs(best.fun))
            assert np.abs(gradient).max() <= 1e-6 * (1 + C)


def test_with_all_rows_and_the_linear_kernel_it_is_an_svm_with_squared_hinge(make_blobs, make_task):
    """The paper's bias apart: LinearSVC has none here, nor have rows and their mirror images."""
    X, y = make_blobs(60)
    X, y = np.vstack([X, -X]), np.append(y, -y)
    model = RSVM(C=0.5).path(make_task(Linear(), X, y), [120]).models[-1]
    svm = LinearSVC(C=0.25, loss="squared_hinge", fit_intercept=False, dual=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model(X).ravel(), svm.decision_function(X), atol=1e-5)


def test_smaller_bases_are_parts_of_larger_ones(problem):
    models = RSVM().path(problem, [3, 7, 15]).models
    for small, large in pairwise(models):
        np.testing.assert_array_equal(small.points, large.points[: small.size])


def test_more_rows_asked_for_than_there_are(problem):
    path = RSVM().path(problem, [10, 500])
    assert path.sizes == [10, 120]
    assert path.status is Status.EXHAUSTED


@pytest.mark.parametrize("regulariser", REGULARISERS)
def test_equal_rows_and_one_side_and_kernels_that_are_not_positive(regulariser, make_blobs, make_task):
    X, y = make_blobs(40)
    for kernel, rows, targets in [
        (RBF(0.4), np.repeat(X[:4], 10, axis=0), y),
        (RBF(0.4), X, np.ones(40)),
        (Sigmoid(0.5, -1.0), X, y),
    ]:
        for model in RSVM(10.0, regulariser).path(make_task(kernel, rows, targets), [1, 5, 40]).models:
            assert np.isfinite(model.coef).all()
            assert np.isfinite(model.bias).all()


def test_sparse_rows_give_the_same_models_and_so_does_a_seed(problem, form):
    def models():
        home = HostRows(problem.rows.kernel, form(problem.rows.given.rows()))
        return RSVM().path(dataclasses.replace(problem, rows=home, rng=np.random.default_rng(5)), [4, 9]).models

    dense = RSVM().path(dataclasses.replace(problem, rng=np.random.default_rng(5)), [4, 9]).models
    for one, two, again in zip(dense, models(), models(), strict=True):
        np.testing.assert_allclose(two.coef, one.coef, atol=1e-8)
        np.testing.assert_array_equal(two.coef, again.coef)


def test_the_estimator_fills_in_its_cost(make_blobs):
    X, y = make_blobs()
    svm = SlimSVC(5, C=3.0, reducer="rsvm", random_state=0).fit(X, y)
    assert svm.model_.size <= 5
    assert all("C=3," in step.settings for step in svm.path_)


def test_settings_without_a_meaning_are_refused():
    with pytest.raises(ValueError, match="C must be"):
        RSVM(C=0.0)
    with pytest.raises(ValueError, match=r"unknown regulariser 'ridge'.*coefficients"):
        RSVM(regulariser="ridge")
