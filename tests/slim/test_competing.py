"""Learned metrics: gradients, optimality, the competition with the fixed one, and resumed paths."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import SlimSVC, SlimSVR, compress
from slimsvm.goals.margin_targets import MarginTargets
from slimsvm.kernels import RBF, Laplacian, Linear
from slimsvm.limits import Deadline
from slimsvm.metric import Metric
from slimsvm.rows.homes import open_rows
from slimsvm.slim.learned import LearnedLoss, Parameters, pull_of
from slimsvm.slim.method import Slim
from slimsvm.solvers.projection import ProjectedLoss


def problem(kernel, outputs, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    targets = np.sign(np.column_stack([X[:, 0] * X[:, 1], X[:, 2] - X[:, 0]])[:, :outputs])
    loss = ProjectedLoss(open_rows(kernel, X), MarginTargets.beyond(targets, 1.0), rng.uniform(0.5, 2, 60), 0.1)
    return loss, rng.normal(size=(5, 3)), np.exp(0.3 * rng.normal(size=3)), np.exp(0.3 * rng.normal(size=5))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kernel", [RBF(0.4), Laplacian(0.4), Linear()], ids=lambda kernel: kernel.name)
def test_the_gradient_is_that_of_the_projected_loss(kernel, outputs):
    loss, points, factors, widths = problem(kernel, outputs)
    loss.newton = replace(loss.newton, steps=100, precision=0.0, line_precision=1e-12)
    widths = None if kernel.name == "linear" else widths

    def value(x):
        metric = Metric(factors * np.exp(x[15:18]), None if widths is None else widths * np.exp(x[18:]))
        found, gradient = loss.in_metric(points + x[:15].reshape(5, 3), metric)
        return found, np.concatenate([gradient.points.ravel(), gradient.log_factors, gradient.log_widths])

    rng, (_, gradient) = np.random.default_rng(1), value(np.zeros(23))
    for _ in range(3):
        way, step = rng.normal(size=23), 1e-5
        slope = (value(step * way)[0] - value(-step * way)[0]) / (2 * step)
        assert slope == pytest.approx(gradient @ way, rel=2e-3, abs=1e-3)


def test_a_descent_reaches_what_an_independent_solver_does():
    """The slow twin moves points, metric and coefficients together, by BFGS with differences."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sign(X[:, 0])[:, None]
    loss = LearnedLoss(open_rows(RBF(0.5), X), MarginTargets.beyond(y, 1.0), np.ones(40), np.ones(2), "both", decay=0.5)
    start = Parameters(loss.rows.to_coordinates(X[:2]), np.zeros((3, 1)), np.zeros(2), np.zeros(2))
    found = loss.descended(start, 500, Deadline(None), 40)

    def total(x):
        points, theta, factors, widths = x[:4].reshape(2, 2), x[4:7], x[7:9], x[9:]
        distances = np.square(np.exp(factors) * (loss.rows.to_coordinates(X)[:, None] - points)).sum(axis=2)
        outputs = np.exp(-0.5 * np.exp(widths) * distances) @ theta[1:] + theta[0]
        short = np.maximum(1 - y[:, 0] * outputs, 0)
        return short @ short + 0.5 * theta[1:] @ theta[1:] + loss.pull * (factors @ factors + widths @ widths)

    ours = np.concatenate([part.ravel() for part in (found.points, found.theta, found.log_factors, found.log_widths)])
    assert total(ours) <= 1.01 * minimize(total, ours).fun


def test_the_pull_weakens_with_rows():
    assert pull_of(100) > 10 * pull_of(1000) > 10 * pull_of(10**6)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_few_rows_are_not_fitted_by_a_metric(load):
    X, y = load(return_X_y=True)
    scores = [
        cross_val_score(
            make_pipeline(StandardScaler(), SlimSVC(8, reducer=Slim(metric=metric), random_state=0)), X, y
        ).mean()
        for metric in ("fixed", "auto")
    ]
    assert scores[1] > scores[0] - 0.02


def test_regression_learns_by_default():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2000, 4))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=2000)
    settings = {"C": 10, "gamma": 0.3, "trainer": None, "random_state": 0}
    learned, fixed = (
        SlimSVR(16, reducer=Slim(metric=kind), **settings).fit(X, y).score(X, y) for kind in ("auto", "fixed")
    )
    assert learned > fixed + 0.05


def test_a_model_of_a_libsvm_file_keeps_to_what_such_a_file_holds(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = X[:, 0] * X[:, 1] > 0
    slimsvm.export(SlimSVC().fit(X, y), tmp_path / "m.libsvm")
    small = compress(slimsvm.load(tmp_path / "m.libsvm"), X, y.astype(int), budget=8, random_state=0)
    assert small.model_.metric is None
    slimsvm.export(small, tmp_path / "small.libsvm")


def test_a_seed_repeats():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = X[:, 0] * X[:, 1] > 0
    one, other = (SlimSVC(6, random_state=3).fit(X, y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)
