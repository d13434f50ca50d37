"""Cutting planes against scikit-learn's solver for the same problem, and their parts against plain ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from slimsvm.limits import Deadline
from slimsvm.papers.cutting_planes import CuttingPlanes, line_search, simplex_qp


class Matrix:
    """Features in memory, a row for each coordinate of v; products in their precision."""

    def __init__(self, values):
        self.values = values

    def outputs(self, v):
        return (v.astype(self.values.dtype) @ self.values).astype(np.float64)

    def sums(self, pull):
        return (self.values @ pull.astype(self.values.dtype)).astype(np.float64)


def problem(seed, n=120, d=5):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(d, n))
    y = np.where(features[0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return features, y, rng.uniform(0.1, 3.0, n)


def opened(features, y, caps):
    planes = CuttingPlanes(y, caps)
    for feature in features:
        planes.widen(feature)
    return planes


def objective(v, features, y, caps):
    return v @ v / 2 + caps @ np.maximum(1 - y * (v @ features), 0)


def best_objective(features, y, caps):
    """By scikit-learn's coordinate descent."""
    svc = LinearSVC(loss="hinge", C=1.0, tol=1e-9, max_iter=10**6, fit_intercept=False, random_state=0)
    return objective(svc.fit(features.T, y, sample_weight=caps).coef_.ravel(), features, y, caps)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gap", [1.0, 1e-3, 1e-7])
def test_the_optimum_lies_between_dual_and_primal_and_these_are_close(seed, gap):
    features, y, caps = problem(seed)
    planes = opened(features, y, caps)
    left = planes.solve(Matrix(features), gap, 10**4, Deadline())
    optimum = best_objective(features, y, caps)
    assert left == planes.primal() - planes.dual() <= gap
    assert planes.dual() - 1e-9 <= optimum <= planes.primal() + 1e-6 * optimum
    assert planes.primal() == pytest.approx(objective(planes.best, features, y, caps), rel=1e-12)


def test_every_plane_bounds_the_losses_from_below():
    features, y, caps = problem(5)
    planes = opened(features, y, caps)
    planes.solve(Matrix(features), 1e-6, 100, Deadline())
    for v in np.random.default_rng(0).normal(size=(50, 5)):
        losses = caps @ np.maximum(1 - y * (v @ features), 0)
        assert (planes.offsets - planes.normals @ v).max() <= losses + 1e-9


def test_a_feature_that_joins_later_is_as_good_as_one_from_the_start():
    features, y, caps = problem(6)
    planes = opened(features[:3], y, caps)
    planes.solve(Matrix(features[:3]), 1e-6, 10**4, Deadline())
    before = planes.primal()
    for feature in features[3:]:
        planes.widen(feature)
    expected = (planes.masks * caps * y) @ features.T
    np.testing.assert_allclose(planes.normals, expected, atol=1e-9)
    assert planes.primal() == before
    planes.solve(Matrix(features), 1e-6, 10**4, Deadline())
    assert planes.primal() == pytest.approx(best_objective(features, y, caps), rel=1e-6)


def test_the_best_never_gets_worse_and_planes_without_weight_are_dropped():
    features, y, caps = problem(7, n=400, d=12)
    planes = opened(features, y, 20 * caps)
    values = []
    for _ in range(200):
        planes.solve(Matrix(features), 0.0, 1, Deadline())
        values.append(planes.primal())
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    assert planes.weights.size < 120
    assert planes.weights.sum() == pytest.approx(1.0)


def test_pulls_are_the_coefficients_of_rows_in_the_solution():
    features, y, caps = problem(8)
    planes = opened(features, y, caps)
    planes.solve(Matrix(features), 1e-8, 10**4, Deadline())
    np.testing.assert_allclose(features @ planes.pull(), planes.best, atol=1e-3)
    assert set(np.unique(planes.newest_pull() / (caps * y)).round(12)) <= {0.0, 1.0}


@pytest.mark.parametrize("positive", [600, 666])
def test_margins_stay_those_of_the_best_vector_in_float32(positive):
    """The bias alone: its steps get so short that a difference of two float32 outputs would be all rounding."""
    y = np.where(np.arange(2000) < positive, 1.0, -1.0)
    features = np.full((1, 2000), 10.0, np.float32)
    planes = opened(features, y, np.full(2000, 10.0))
    planes.solve(Matrix(features), 20.0, 1000, Deadline())
    np.testing.assert_allclose(planes.margins, y * (planes.best @ features), atol=1e-6)
    assert planes.primal() == pytest.approx(20 * positive, rel=1e-3)


def test_a_deadline_ends_the_rounds():
    features, y, caps = problem(9)
    planes = opened(features, y, caps)
    assert planes.solve(Matrix(features), 0.0, 10**9, Deadline(1e-9)) > 0


@given(
    n=st.integers(1, 30),
    seed=st.integers(0, 10**6),
    ties=st.booleans(),
    start=st.sampled_from([-3.0, 0.0, 3.0]),
)
@settings(max_examples=100)
def test_the_line_search_finds_the_least_value(n, seed, ties, start):
    rng = np.random.default_rng(seed)
    margins, change, caps = rng.normal(size=n), rng.normal(size=n), rng.random(n)
    if ties:
        margins, change = np.round(margins), np.round(change)
    curvature = rng.uniform(0.1, 2.0)

    def value(t):
        return start * t + curvature * t**2 / 2 + np.maximum(1 - margins - np.multiply.outer(t, change), 0) @ caps

    t = line_search(start, curvature, margins, change, caps)
    grid = np.linspace(0, 2 * t + 20, 4001)
    assert t >= 0
    assert value(t) <= value(grid).min() + 1e-9


@given(
    m=st.integers(1, 25),
    rank=st.integers(0, 8),
    seed=st.integers(0, 10**6),
    copies=st.booleans(),
    size=st.sampled_from([1, 1e4]),
)
@settings(max_examples=100)
def test_the_program_over_the_simplex_is_solved(m, rank, seed, copies, size):
    """Its optimality conditions: a is feasible, and the gradient is least, and equal, where a > 0."""
    rng = np.random.default_rng(seed)
    P = size * rng.normal(size=(m, rank))
    d = size * rng.random(m)
    if copies:
        P, d = np.vstack([P, P]), np.append(d, d)
    start = np.zeros(d.size)
    start[0] = 1.0
    a = simplex_qp(P @ P.T, d, start)
    gradient = P @ (P.T @ a) - d
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1.0)
    assert gradient.min() >= a @ gradient - 1e-6 * np.abs(d).max()
