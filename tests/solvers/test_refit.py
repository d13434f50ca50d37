"""Refits: margin targets of a full model or of the labels, and rows drawn where there are too many."""

from dataclasses import replace

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.model import Expansion
from slimsvm.solvers.basis import Refit, refit_rows
from slimsvm.solvers.newton import IntervalSquares, NewtonSettings, tie_ridge


@pytest.fixture
def problem(make_task):
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=(60, 2)), rng.choice([-1.0, 0.0, 1.0], (60, 2))
    task = make_task(RBF(0.5), X, targets, weights=rng.uniform(0.5, 2, 60))
    return task, Expansion(RBF(0.5), X[:20], rng.normal(size=(20, 2)), rng.normal(size=2))


def demanded(task, refit):
    """The h of margin targets y f >= h."""
    return np.where(task.targets > 0, refit.problem.margin_targets.low, -refit.problem.margin_targets.high)


def test_rows_demand_what_the_full_model_gives_them_where_it_is_right(problem):
    task, full = problem
    margins = task.targets * full(task.rows.given.rows())
    expected = np.where(margins > 0, np.minimum(margins, 1), -np.inf)
    np.testing.assert_allclose(demanded(task, Refit.of(task, full, 5)), expected)


def test_labels_demand_1_without_a_full_model_or_one_that_is_right(problem):
    task, full = problem
    labels = np.where(task.targets != 0, 1.0, -np.inf)
    np.testing.assert_array_equal(demanded(task, Refit.of(task, None, 5)), labels)
    wrong = replace(task, targets=-np.sign(full(task.rows.given.rows())))
    np.testing.assert_array_equal(demanded(wrong, Refit.of(wrong, full, 5)), 1.0)


def test_a_refit_has_the_best_coefficients_for_the_models_points(problem):
    task, full = problem
    small = replace(full, points=full.points[:4], coef=full.coef[:4])
    refit = Refit.of(task, full, 4)
    fitted, against = refit(small), task.rows.against(small.points)
    plain = IntervalSquares(refit.problem.margin_targets, task.weights)
    best = plain.fit(against, tie_ridge(against, task.weights), NewtonSettings(steps=100, precision=1e-14))
    np.testing.assert_allclose(np.vstack([fitted.bias, fitted.coef]), best.theta, rtol=1e-3)


def test_nested_models_share_kernel_values(problem):
    task, full = problem
    models = [replace(full, points=full.points[:size], coef=full.coef[:size]) for size in (2, 4, 6)]
    refit = Refit.of(task, full, 6)
    before = task.rows.meter.evaluations
    together = list(refit.nested(models))
    assert task.rows.meter.evaluations - before == 60 * 6
    for model, one in zip(models, together, strict=True):
        alone = refit(model)
        np.testing.assert_allclose(alone(full.points), one(full.points), atol=1e-3)


def test_too_many_rows_are_subsampled(problem):
    task, full = problem
    few = Refit.of(task, full, 4, values=100)
    assert few.rows.n == few.problem.margin_targets.shape[0] == few.problem.weights.size == 20
    assert np.isfinite(few(replace(full, points=full.points[:4], coef=full.coef[:4])).coef).all()


@pytest.mark.parametrize(("values", "count"), [(0, 1), (5, 1), (14, 2), (10**6, 60)])
def test_a_refit_has_as_many_rows_as_the_kernel_values_allow(problem, values, count):
    assert refit_rows(problem[0], 4, values).size == count
