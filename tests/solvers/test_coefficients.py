"""The best coefficients for given points: against a plain optimiser, repeated rows and parts of the points."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from slimsvm.solvers import coefficients
from slimsvm.solvers.coefficients import RIDGE, CoefficientFit, line_minimum


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


def squared_problem(seed, n=120, m=10, q=3):
    """Squared hinge with a regulariser of bias and coefficients; of the rows some have no part in an output."""
    K, targets, _, weights = problem(seed, n, m, q)
    A = np.random.default_rng(seed).normal(size=(m + 1, m + 1))
    targets[np.random.default_rng(seed).random((n, q)) < 0.2] = 0
    return K, targets, np.where(targets != 0, 1.0, -np.inf), weights, A @ A.T / m


@pytest.mark.parametrize("seed", range(3))
def test_with_a_regulariser_the_gradient_is_zero(seed):
    K, targets, demands, weights, R = squared_problem(seed)
    fit = CoefficientFit(K, targets, demands, weights, R, precision=1e-12)
    coef, bias = fit.solve(np.zeros((10, 3)), np.zeros(3))
    design, theta = np.column_stack([np.ones(len(K)), K]), np.vstack([bias, coef])
    slack = np.maximum(0.0, np.where(targets != 0, 1 - targets * (design @ theta), 0.0))
    gradient = 2 * R @ theta - 2 * design.T @ (weights[:, None] * targets * slack)
    assert np.abs(gradient).max() <= 1e-6
    value = (weights[:, None] * slack**2).sum() + np.trace(theta.T @ R @ theta)
    assert fit.objective(coef, bias) == pytest.approx(value, rel=1e-12)


def test_columns_written_later_and_warm_starts_change_nothing():
    """Curvatures that are kept from one solve to the next are those that a new problem computes."""
    K, targets, demands, weights, R = squared_problem(4)
    growing, seen = np.full_like(K, np.nan), np.zeros_like(R)
    fit = CoefficientFit(growing, targets, demands, weights, seen, precision=1e-12)
    coef, bias = np.zeros((0, 3)), np.zeros(3)
    for size in (0, 1, 2, 5, 10, 4):
        growing[:, :size], seen[: size + 1, : size + 1] = K[:, :size], R[: size + 1, : size + 1]
        start = np.vstack([coef, np.zeros((10, 3))])[:size]
        coef, bias = fit.solve(start, bias)
        fresh = CoefficientFit(K, targets, demands, weights, R, precision=1e-12).solve(np.zeros((size, 3)), np.zeros(3))
        np.testing.assert_allclose(coef, fresh[0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(bias, fresh[1], rtol=1e-6, atol=1e-8)


def test_kernel_values_in_float32_are_taken_as_they_are_block_by_block(monkeypatch):
    K, targets, demands, weights, R = squared_problem(5)
    K = K.astype(np.float32)
    whole = CoefficientFit(K.astype(np.float64), targets, demands, weights, R).solve(np.zeros((10, 3)), np.zeros(3))
    monkeypatch.setattr(coefficients, "BLOCK", 64)
    parts = CoefficientFit(K, targets, demands, weights, R).solve(np.zeros((10, 3)), np.zeros(3))
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-9, atol=1e-12)


def test_curvatures_that_are_too_many_are_not_kept(monkeypatch):
    fit, start = CoefficientFit(*squared_problem(6)), (np.zeros((10, 3)), np.zeros(3))
    kept = fit.solve(*start)
    assert all(curvature.active.any() for curvature in fit.curvatures)
    monkeypatch.setattr(coefficients, "KEPT_CURVATURES", 0)
    np.testing.assert_allclose(fit.solve(*start)[0], kept[0], rtol=1e-9)
    assert not any(curvature.active.any() for curvature in fit.curvatures)


def test_equal_points_share_a_regulariser_without_full_rank():
    K, targets, demands, weights, _ = squared_problem(2)
    twice, norm = np.column_stack([K[:, :3], K[:, :3]]), np.diag([0.0, 1, 1, 1])
    pairs = np.vstack([np.eye(4), np.eye(4)[1:]])
    once = CoefficientFit(K[:, :3], targets, demands, weights, norm, 1e-12)
    both = CoefficientFit(twice, targets, demands, weights, pairs @ norm @ pairs.T, 1e-12)
    assert both.objective(*both.solve(np.zeros((6, 3)), np.zeros(3))) == pytest.approx(
        once.objective(*once.solve(np.zeros((3, 3)), np.zeros(3))), rel=1e-9
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_no_other_step_on_a_line_is_better(seed, start):
    rng = np.random.default_rng(seed)
    slack, change = rng.normal(size=50), rng.normal(size=50)
    slack[:5] = -np.inf
    linear, quadratic = rng.normal(), rng.exponential()

    def value(t):
        return quadratic * t**2 + 2 * linear * t + np.square(np.maximum(0, slack - t * change)).sum()

    best = minimize_scalar(value, tol=1e-12)
    t = line_minimum(slack, change, linear, quadratic, start)
    assert value(t) <= best.fun + 1e-10 * abs(best.fun)
    assert t == pytest.approx(best.x, abs=1e-5)


def test_a_line_that_changes_nothing_keeps_its_start():
    assert line_minimum(np.ones(3), np.zeros(3), 0.0, 0.0, 1.0) == 1.0


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_is_refused_not_waited_for(wrong):
    with pytest.raises(ValueError, match="scale the features"):
        coefficients.solved(np.array([[1.0, wrong], [wrong, wrong]]), np.ones(2))
