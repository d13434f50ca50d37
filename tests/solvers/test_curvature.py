"""Cholesky factors, new and kept, and the line search of Newton's method, each against its plain definition."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from slimsvm.solvers.curvature import MANY, KeptFactors, factor_definite, solve_factored
from slimsvm.solvers.newton import Line


def definite_matrices(count, size, seed=0):
    A = np.random.default_rng(seed).normal(size=(count, size, 2 * size))
    return A @ A.transpose(0, 2, 1)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_factors_solve_their_systems(size):
    H, right = definite_matrices(3, size), np.random.default_rng(1).normal(size=(3, size))
    factors = factor_definite(np.tril(H))  # the upper triangles are not read
    np.testing.assert_allclose(factors @ factors.transpose(0, 2, 1), H, rtol=1e-10, atol=1e-10)
    found = solve_factored(factors, right)
    np.testing.assert_allclose(found, np.linalg.solve(H, right[..., None])[..., 0], rtol=1e-6)


def test_a_singular_matrix_among_others_has_a_ridge_of_its_own():
    H = definite_matrices(3, 4)
    line = np.array([1.0, 2.0, 3.0, 1e8])
    H[1] = np.outer(line, line) - 1e-3 * np.eye(4)  # rounding may leave a matrix with eigenvalues a little below 0
    factors = factor_definite(H)
    np.testing.assert_allclose(factors[[0, 2]], np.linalg.cholesky(H[[0, 2]]), rtol=1e-8)
    np.testing.assert_allclose(factors[1] @ factors[1].T, H[1], rtol=1e-6, atol=1e-9 * H[1].max())


def test_a_matrix_of_zeros_has_a_factor():
    assert (np.diagonal(factor_definite(np.zeros((1, 3, 3)))[0]) > 0).all()


def test_no_systems_have_no_solutions():
    assert solve_factored(np.empty((0, 3, 3)), np.empty((0, 3))).shape == (0, 3)


def test_only_large_factors_are_kept_for_first_steps_of_the_same_size():
    kept = KeptFactors()
    kept.keep(0, np.eye(MANY - 1))
    kept.keep(1, np.eye(MANY))
    assert kept.get(0, MANY - 1, 0) is None
    assert kept.get(1, MANY, 0) is not None
    assert kept.get(1, MANY + 1, 0) is None
    assert kept.get(1, MANY, 5) is None


@pytest.mark.parametrize("seed", range(8))
def test_a_line_search_ends_at_the_least_value(seed):
    rng = np.random.default_rng(seed)
    low, change = rng.normal(size=(2, 30))
    high = low + np.where(rng.random(30) < 0.5, np.inf, rng.random(30))
    line = Line(low, high, np.zeros(30), change, np.ones(30), rng.normal(), rng.uniform(0.1, 2.0))

    def value(t):
        distance = np.clip(t * change, low, high) - t * change
        return line.quadratic * t**2 + 2 * line.linear * t + distance @ distance

    best = minimize_scalar(value, tol=1e-12)
    for start in (0.0, 1.0, -50.0):
        t = line.minimum(start)
        assert t == pytest.approx(best.x, abs=1e-6)
        assert value(t) <= best.fun + 1e-12 * abs(best.fun)
        assert line.gain(t) == pytest.approx(value(0.0) - value(t))
