"""The best coefficients for given points: against a plain optimiser, repeated rows and parts of the points."""

import numpy as np
import pytest
from scipy.optimize import minimize

from slimsvm.reducers.coefficients import RIDGE, CoefficientFit


def problem(seed, n=80, m=6, q=2):
    rng = np.random.default_rng(seed)
    K, targets = np.exp(-np.square(rng.normal(size=(n, m)))), rng.choice([-1.0, 1.0], (n, q))
    demands = np.where(rng.random((n, q)) < 0.8, rng.random((n, q)), -np.inf)
    return K, targets, demands, rng.integers(1, 4, n).astype(float)


def loss(theta, K, y, h, w):
    unmet = np.maximum(0.0, h - y * (K @ theta[1:] + theta[0]))
    return w @ np.square(unmet) + RIDGE * w.sum() * np.square(K).max() * theta @ theta


@pytest.mark.parametrize("seed", range(5))
def test_no_other_coefficients_are_better(seed):
    K, targets, demands, weights = problem(seed)
    coef, bias = CoefficientFit(K, targets, demands, weights).solve(np.zeros((6, 2)), np.zeros(2))
    for column in range(2):
        ours = np.append(bias[column], coef[:, column])
        arguments = K, targets[:, column], demands[:, column], weights
        best = minimize(loss, ours, arguments, tol=1e-12)
        assert loss(ours, *arguments) <= best.fun * (1 + 1e-5) + 1e-9


def test_the_first_points_alone_are_fitted_as_if_there_were_no_others():
    K, targets, demands, weights = problem(7)
    all_points = CoefficientFit(K, targets, demands, weights)
    few = CoefficientFit(K[:, :3], targets, demands, weights)
    few.ridge = all_points.ridge
    for ours, theirs in zip(
        all_points.solve(np.zeros((3, 2)), np.zeros(2)), few.solve(np.zeros((3, 2)), np.zeros(2)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_weight_is_a_number_of_equal_rows():
    K, targets, demands, weights = problem(3)
    times = weights.astype(int)
    repeated = (np.repeat(part, times, axis=0) for part in (K, targets, demands))
    once = CoefficientFit(K, targets, demands, weights).solve(np.zeros((6, 2)), np.zeros(2))
    often = CoefficientFit(*repeated, np.ones(times.sum())).solve(np.zeros((6, 2)), np.zeros(2))
    np.testing.assert_allclose(once[0], often[0], rtol=1e-6)
    np.testing.assert_allclose(once[1], often[1], rtol=1e-6)


def test_met_demands_leave_the_start_as_it_is():
    K, targets, _, weights = problem(1)
    start = np.zeros((6, 2)), np.zeros(2)
    coef, bias = CoefficientFit(K, targets, np.full_like(targets, -np.inf), weights).solve(*start)
    np.testing.assert_array_equal(coef, start[0])
    np.testing.assert_array_equal(bias, start[1])
