"""Losses of points alone: the least loss over coefficients, and its gradient, against plain formulas."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array

from slimsvm.goals.margin_targets import MarginTargets
from slimsvm.kernels import KERNELS, make_kernel
from slimsvm.rows.host import HostRows
from slimsvm.rows.host_matrix import BLOCK_VALUES
from slimsvm.rows.threads import ThreadPool
from slimsvm.solvers import projection
from slimsvm.solvers.newton import RIDGE, NewtonSettings
from slimsvm.solvers.projection import ProjectedLoss

SMOOTH = [name for name, kind in KERNELS.items() if kind.differentiable]


#: Newton's method until nothing is gained
TO_ROUNDING = NewtonSettings(steps=40, precision=0.0)


class Problem:
    """Rows, targets, margin_targets (some of them none), weights and points."""

    def __init__(self, kernel="rbf", n=60, m=4, q=2, weighted=True, seed=0):
        rng = np.random.default_rng(seed)
        self.kernel = make_kernel(kernel, gamma=0.3, degree=2, coef0=0.5)
        self.X = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.6)
        self.targets = np.where(rng.random((n, q)) < 0.5, -1.0, 1.0)
        self.margin_targets = np.where(rng.random((n, q)) < 0.2, -np.inf, rng.uniform(0.3, 1.0, (n, q)))
        self.weights = rng.uniform(0.5, 2.0, n) if weighted else np.full(n, 1.5)
        self.points = rng.normal(size=(m, 3))
        if kernel == "chi2":  # for histograms
            self.X, self.points = np.abs(self.X), np.abs(self.points)

    @property
    def ridge(self):
        return RIDGE * self.weights.sum()

    def loss(self, form=np.asarray, newton=TO_ROUNDING, **settings):
        rows = HostRows(self.kernel, form(self.X), **settings)
        return ProjectedLoss(rows, MarginTargets.beyond(self.targets, self.margin_targets), self.weights, 0.7, newton)

    def value(self, theta, points, ridge):
        """The sum that coefficients are to make least, written out."""
        theta = theta.reshape(points.shape[0] + 1, -1)
        outputs = self.kernel(self.X, points) @ theta[1:] + theta[0]
        unmet = np.maximum(0, self.margin_targets - self.targets * outputs)
        Kz = self.kernel(points, points) if self.kernel.definite else np.eye(points.shape[0])
        size = np.trace(theta[1:].T @ Kz @ theta[1:])
        return (self.weights[:, None] * unmet**2).sum() + 0.7 * size + ridge * (theta**2).sum()


def exact(loss, points):
    """L with coefficients that are found to rounding, from 0 on."""
    loss.theta = loss.theta[:1] * 0
    return loss.settle(loss.rows.to_coordinates(points)).loss


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_coefficients_are_the_best_ones(kernel, weighted):
    problem = Problem(kernel, weighted=weighted)
    loss = problem.loss()
    value = exact(loss, problem.points)
    assert value == pytest.approx(problem.value(loss.theta, problem.points, problem.ridge), rel=1e-9)
    other = minimize(problem.value, np.zeros(loss.theta.size), (problem.points, problem.ridge), tol=1e-12)
    assert value == pytest.approx(other.fun, rel=1e-6)


@pytest.mark.parametrize("kernel", SMOOTH)
@pytest.mark.parametrize("q", [1, 3])
def test_gradient_is_that_of_finite_differences(kernel, q):
    problem = Problem(kernel, q=q, m=2)  # fewer than features: the linear kernel has all its span otherwise
    loss = problem.loss()
    exact(loss, problem.points)
    _, gradient = loss(loss.rows.to_coordinates(problem.points))
    slow = approx_fprime(problem.points.ravel(), lambda x: exact(problem.loss(), x.reshape(2, 3)), 1e-6)
    np.testing.assert_allclose(gradient.ravel(), slow, rtol=1e-3, atol=2e-3 * np.abs(slow).max())


def test_sparse_rows_give_what_dense_rows_give():
    problem = Problem()
    dense, sparse = problem.loss(), problem.loss(csr_array)
    value, gradient = dense(dense.rows.to_coordinates(problem.points))
    value_too, gradient_too = sparse(sparse.rows.to_coordinates(problem.points))
    assert value == pytest.approx(value_too, rel=1e-9)
    np.testing.assert_allclose(gradient, gradient_too, atol=1e-8)


def test_threads_change_nothing():
    problem = Problem(n=4 * BLOCK_VALUES // 5)  # several blocks of rows
    found = []
    for threads in (1, 3):
        loss = problem.loss()
        loss.rows.pool = ThreadPool(threads)
        found.append(loss(loss.rows.to_coordinates(problem.points)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-14)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)


def test_float32_is_as_good_as_it_can_be(float32_always):
    problem = Problem(n=400)
    loss = problem.loss(precision=float32_always)
    assert loss.rows.dtype == np.float32
    points = loss.rows.to_coordinates(problem.points)
    value, gradient = loss(points)
    plain = problem.loss(error=0.0)
    assert plain.rows.dtype == np.float64
    exactly, slope = plain(plain.rows.to_coordinates(problem.points))
    assert value == pytest.approx(exactly, rel=1e-5)
    np.testing.assert_allclose(gradient, slope, atol=1e-3 * np.abs(slope).max())


def test_new_points_begin_with_coefficients_of_zero_and_kept_ones_go_on():
    problem = Problem()
    loss = problem.loss()
    loss.settle(loss.rows.to_coordinates(problem.points[:2]))
    before = loss.theta.copy()
    grown = projection._resized(before, 5)
    np.testing.assert_array_equal(grown[:3], before)
    assert not grown[3:].any()


def test_every_evaluation_is_counted():
    """Kernel values of rows and points, those among the points, and the gradients of both."""
    problem = Problem()
    problem.margin_targets[:] = 2.0  # all rows fall short, and all have a part in the gradient
    loss = problem.loss()
    loss(loss.rows.to_coordinates(problem.points))
    assert loss.rows.meter.evaluations == 2 * (60 * 4 + 4 * 4)
