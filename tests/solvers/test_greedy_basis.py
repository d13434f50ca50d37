"""A basis that grows greedily: the choice, the step and the optimum, each against plain arithmetic."""

import numpy as np
import pytest
from conftest import primal_objective as objective
from scipy.optimize import minimize_scalar

from slimsvm.kernels import RBF
from slimsvm.reducers.spsvm import GreedyBasis


def parts(basis):
    """Coefficients and bias."""
    return basis.theta[1:], basis.theta[0]


def test_the_point_that_joins_lowers_the_objective_most(weighted_iris):
    """Against a general search on the line of every candidate and output."""
    C = 2.0
    basis = GreedyBasis(weighted_iris, C)
    for _ in range(4):
        basis.grow(10)
        basis.optimise()
    rows = np.random.default_rng(2).choice(np.setdiff1d(np.arange(150), basis.index), 10, replace=False)
    before, _ = objective(weighted_iris, basis.index, *parts(basis), C)
    plain, best_steps = np.zeros(10), np.zeros((10, 3))
    for number, row in enumerate(rows):
        index = np.append(basis.index, row)
        for column in range(3):

            def value(t, index=index, column=column):
                coef = np.vstack([basis.theta[1:], t * np.eye(3)[column]])
                return objective(weighted_iris, index, coef, basis.theta[0], C)[0]

            found = minimize_scalar(value, tol=1e-10)
            plain[number] += before - found.fun
            best_steps[number, column] = found.x
    steps, gains = basis.gains(basis.measured(rows))
    np.testing.assert_allclose(gains * C / 2, plain, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(steps, best_steps, rtol=1e-4, atol=1e-5)


def test_the_best_of_the_candidates_joins_and_the_objective_falls_by_its_gain(weighted_iris):
    basis = GreedyBasis(weighted_iris, 1.0)
    for _ in range(20):
        # all rows are candidates: then the draw is known
        rows = np.flatnonzero(basis.pool)
        gains = basis.gains(basis.measured(rows))[1]
        before, _ = objective(weighted_iris, basis.index, *parts(basis), 1.0)
        assert basis.grow(150)
        assert gains[list(rows).index(basis.index[-1])] == pytest.approx(gains.max())
        after, _ = objective(weighted_iris, basis.index, *parts(basis), 1.0)
        assert after == pytest.approx(before - gains.max() / 2, rel=1e-9)
        basis.optimise()
        optimal, gradient = objective(weighted_iris, basis.index, *parts(basis), 1.0)
        assert optimal <= after
        assert gradient <= 1e-6


def test_outputs_are_those_of_the_model_without_optimising_too(weighted_iris):
    basis = GreedyBasis(weighted_iris, 1.0)
    for _ in range(6):
        basis.grow(5)
    outputs = basis.model()(weighted_iris.rows.given.rows())
    np.testing.assert_allclose(basis.outputs, outputs, atol=1e-12)


@pytest.mark.parametrize("kept", [0, 10**6], ids=["summed-anew", "kept"])
def test_curvatures_that_are_kept_change_nothing(weighted_iris, kept):
    basis = GreedyBasis(weighted_iris, 1.0, kept_curvatures=kept)
    for _ in range(10):
        basis.grow(20)
        basis.optimise()
        assert objective(weighted_iris, basis.index, *parts(basis), 1.0)[1] <= 1e-6


def test_the_factor_is_that_of_the_kernel_among_the_points(weighted_iris):
    basis = GreedyBasis(weighted_iris, 1.0)
    while basis.size < 8:
        basis.grow(3)
    K = RBF(0.5)(*2 * [weighted_iris.rows.given.rows()[basis.index]])
    np.testing.assert_allclose(basis.cholesky.factor, np.linalg.cholesky(K), atol=1e-10)
    np.testing.assert_allclose(basis.R[1:, 1:], K, atol=1e-12)
    assert not basis.R[0].any()
