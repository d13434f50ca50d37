"""Refits: demands of a full model or of the labels, and rows drawn where there are too many."""

from dataclasses import replace

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.model import Expansion
from slimsvm.solvers import refit as module
from slimsvm.solvers.coefficients import CoefficientFit
from slimsvm.solvers.refit import Refit


@pytest.fixture
def problem(make_task):
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=(60, 2)), rng.choice([-1.0, 0.0, 1.0], (60, 2))
    task = make_task(RBF(0.5), X, targets, weights=rng.uniform(0.5, 2, 60))
    return task, Expansion(RBF(0.5), X[:20], rng.normal(size=(20, 2)), rng.normal(size=2))


def test_rows_demand_what_the_full_model_gives_them_where_it_is_right(problem):
    task, full = problem
    margins = task.targets * full(task.rows.X)
    expected = np.where(margins > 0, np.minimum(margins, 1), -np.inf)
    np.testing.assert_allclose(Refit.of(task, full, 5).demands, expected)


def test_labels_demand_1_without_a_full_model_or_one_that_is_right(problem):
    task, full = problem
    labels = np.where(task.targets != 0, 1.0, -np.inf)
    np.testing.assert_array_equal(Refit.of(task, None, 5).demands, labels)
    wrong = replace(task, targets=-np.sign(full(task.rows.X)))
    np.testing.assert_array_equal(Refit.of(wrong, full, 5).demands, 1.0)


def test_a_refit_is_the_coefficient_fit_on_the_models_points(problem):
    task, full = problem
    small = replace(full, points=full.points[:4], coef=full.coef[:4])
    refit = Refit.of(task, full, 4)
    fitted = refit(small)
    K = RBF(0.5)(task.rows.X, small.points)
    coef, bias = CoefficientFit(K, task.targets, refit.demands, task.weights).solve(small.coef, small.bias)
    np.testing.assert_allclose(fitted.coef, coef, rtol=1e-5)
    np.testing.assert_allclose(fitted.bias, bias, rtol=1e-5)


def test_too_many_rows_are_drawn_from_by_chance(problem, monkeypatch):
    task, full = problem
    monkeypatch.setattr(module, "REFIT_VALUES", 100)
    few = Refit.of(task, full, 4)
    assert few.gram.n == few.targets.shape[0] == few.demands.shape[0] == few.weights.size == 20
    assert np.isfinite(few(replace(full, points=full.points[:4], coef=full.coef[:4])).coef).all()
