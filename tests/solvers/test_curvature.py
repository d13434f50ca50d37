"""Cholesky factors, new and kept, and the line search of Newton's method, each against its plain definition."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from slimsvm.solvers.curvature import MANY, KeptFactors, factor_definite, solve_factored
from slimsvm.solvers.newton import Line


def definite_matrix(size, seed=0):
    A = np.random.default_rng(seed).normal(size=(size, 2 * size))
    return A @ A.T


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_factors_solve_their_systems(size):
    H, R, right = definite_matrix(size), definite_matrix(size, 1), np.random.default_rng(2).normal(size=(3, size))
    factor = factor_definite(np.tril(H), np.tril(R))  # the upper triangles are not read
    np.testing.assert_allclose(factor @ factor.T, H + R, rtol=1e-10, atol=1e-10)
    found = solve_factored([factor] * 3, right)
    np.testing.assert_allclose(found, np.linalg.solve(H + R, right.T).T, rtol=1e-6)


def test_a_matrix_a_little_short_of_definite_has_a_ridge():
    line = np.array([1.0, 2.0, 3.0, 1e8])
    H = np.outer(line, line) - 1e-3 * np.eye(4)  # rounding may leave eigenvalues a little below 0
    factor = factor_definite(H, np.zeros((4, 4)))
    np.testing.assert_allclose(factor @ factor.T, H, rtol=1e-6, atol=1e-9 * H.max())


def test_a_matrix_of_zeros_has_a_factor():
    assert (np.diagonal(factor_definite(np.zeros((3, 3)), np.zeros((3, 3)))) > 0).all()


def test_no_systems_have_no_solutions():
    assert solve_factored([], np.empty((0, 3))).shape == (0, 3)
    assert solve_factored([np.empty((0, 0))], np.empty((1, 0))).shape == (1, 0)


def test_a_factor_of_another_size_is_refused():
    with pytest.raises(ValueError, match="3"):
        solve_factored([np.eye(3)], np.ones((1, 2)))


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
