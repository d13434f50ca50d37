"""Sparse large margin classifiers: W(Z) against independent solvers, its gradient, and its descent."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC

from slimsvm import SlimSVC
from slimsvm.goals import OneVsOne, OneVsRest
from slimsvm.kernels import RBF, Laplacian, Linear, Poly, Precomputed, Sigmoid
from slimsvm.limits import Deadline
from slimsvm.model import Status, Task
from slimsvm.papers.slmc import OBJECTIVES, SLMC, ridged
from slimsvm.rows.host import HostRows
from slimsvm.solvers.descent import DescentSettings, descend

KERNELS = [RBF(0.7), Poly(0.5, 1.0, 3), Laplacian(0.3), Linear()]


def problem(kernel=RBF(0.7), coding=OneVsRest, n=80, form=np.asarray):  # noqa: B008
    X, labels = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)[:n]
    X, labels = X[rows] - X.mean(axis=0), labels[rows]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, n)
    return Task(HostRows(kernel, form(X)), coding(3).encode(labels), weights, np.random.default_rng(0))


def start(task, count):
    """Points next to rows, with no two features equal, where the Laplacian kernel has kinks."""
    return np.asarray(task.rows.given.rows()[:count]) + 0.05 * np.random.default_rng(2).normal(size=(count, task.rows.d))


class Span:
    """W(Z) in the coordinates of an expansion, and the optimum of the last Z."""

    def __init__(self, task, loss, C=2.0):
        self.rows, self.objective = task.rows, OBJECTIVES[loss](task, C, 1e-9)

    def __call__(self, Z):
        placed = self.rows.to_coordinates(Z)
        self.best = self.objective.optimum(placed)
        return self.objective(placed)


span = Span


def primal(theta, K, K_zz, y, weights, C, power):
    slack = np.maximum(0, 1 - y * (K @ theta[1:] + theta[0]))
    return 0.5 * theta[1:] @ K_zz @ theta[1:] + C / power * weights @ slack**power


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("coding", [OneVsRest, OneVsOne])
def test_with_the_squared_hinge_no_other_coefficients_are_better(kernel, coding):
    task = problem(kernel, coding)
    Z = start(task, 4)
    ours = span(task, "squared_hinge")
    value, _ = ours(Z)
    K, K_zz, total = kernel(task.rows.given.rows(), Z), kernel(Z, Z), 0.0
    for column in range(3):
        rows = task.targets[:, column] != 0
        given = K[rows], K_zz, task.targets[rows, column], task.weights[rows], 2.0, 2
        theta = np.append(ours.best.bias[column], ours.best.coef[:, column])
        best = minimize(primal, theta, given, tol=1e-10).fun
        assert primal(theta, *given) <= best * (1 + 1e-7)
        total += best
    assert value == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("coding", [OneVsRest, OneVsOne])
def test_with_the_hinge_it_is_the_svm_with_the_kernel_of_the_span(kernel, coding):
    """The dual with K_xz K_zz^-1 K_zx, by scikit-learn: the paper's own definition of W."""
    task = problem(kernel, coding)
    Z = start(task, 4)
    ours = span(task, "hinge")
    value, _ = ours(Z)
    K = kernel(task.rows.given.rows(), Z)
    inner, total = K @ np.linalg.solve(ridged(kernel(Z, Z)), K.T), 0.0
    for column in range(3):
        rows = np.flatnonzero(task.targets[:, column])
        y, block = task.targets[rows, column], inner[np.ix_(rows, rows)]
        theirs = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(block, y, sample_weight=task.weights[rows])
        dual = np.zeros(rows.size)
        dual[theirs.support_] = theirs.dual_coef_[0]
        total += np.abs(dual).sum() - 0.5 * dual @ block @ dual
        outputs = K[rows] @ ours.best.coef[:, column] + ours.best.bias[column]
        np.testing.assert_allclose(outputs, theirs.decision_function(block), atol=1e-3)
    assert value == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("loss", OBJECTIVES)
@pytest.mark.parametrize("coding", [OneVsRest, OneVsOne])
def test_the_gradient_is_that_of_differences(kernel, loss, coding):
    task = problem(kernel, coding)
    Z = start(task, 3)
    _, gradient = span(task, loss)(Z)
    for position in [(0, 0), (1, 2), (2, 3)]:
        step = np.zeros_like(Z)
        step[position] = 1e-5
        difference = (span(task, loss)(Z + step)[0] - span(task, loss)(Z - step)[0]) / 2e-5
        assert gradient[position] == pytest.approx(difference, rel=2e-4, abs=1e-4 * np.abs(gradient).max())


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_the_value_falls_with_every_step(loss):
    task = problem()
    Z, values = task.rows.to_coordinates(start(task, 4)), []
    for steps in range(8):
        objective = OBJECTIVES[loss](task, 2.0, 1e-9)
        end = descend(objective, Z, DescentSettings(steps), Deadline()).x if steps else Z
        values.append(objective.optimum(end).value)
    assert (np.diff(values) < 0).all()


def objective_of(model, task, loss):
    """1/2 |f|^2 + C sum w loss with C = 2, the factor of slmc's form included."""
    slack = np.maximum(0, 1 - task.targets * model(task.rows.given.rows()))
    norm = 0.5 * np.trace(model.coef.T @ RBF(0.7)(model.points, model.points) @ model.coef)
    return norm + (task.weights @ (slack**2 if loss == "squared_hinge" else 2 * slack)).sum()


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_a_path_is_better_the_more_points_it_has(loss):
    task = problem()
    path = SLMC(C=2.0, loss=loss, max_steps=5).path(task, [1, 2, 4])
    assert path.sizes == [1, 2, 4]
    assert path.status is Status.BUDGET
    losses = [objective_of(model, task, loss) for model in path.models]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_each_longer_descent_of_the_points_has_a_lower_objective(loss):
    models = [SLMC(C=2.0, loss=loss, max_steps=steps).path(problem(), [3]).models[0] for steps in (0, 3, 30)]
    losses = [objective_of(model, problem(), loss) for model in models]
    assert losses[0] > losses[1] > losses[2]


def test_sparse_rows_and_equal_seeds_give_the_same_path():
    dense, sparse = (problem(form=form) for form in (np.asarray, csr_array))
    again = problem()
    paths = [SLMC(max_steps=5).path(task, [2, 4]) for task in (dense, sparse, again)]
    for one, two, three in zip(*(path.models for path in paths), strict=True):
        np.testing.assert_allclose(one(dense.rows.given.rows()), two(dense.rows.given.rows()), atol=1e-3)
        np.testing.assert_array_equal(one.points, three.points)


def test_weights_are_repetitions():
    task = problem()
    times = np.random.default_rng(3).integers(1, 4, task.rows.n)
    weighted = replace(task, weights=times.astype(float))
    rows = np.repeat(np.arange(task.rows.n), times)
    repeated = Task(HostRows(RBF(0.7), task.rows.given.rows()[rows]), task.targets[rows], np.ones(rows.size))
    Z = start(task, 3)
    for loss in OBJECTIVES:
        one, often = span(weighted, loss)(Z), span(repeated, loss)(Z)
        assert one[0] == pytest.approx(often[0], rel=1e-6)
        np.testing.assert_allclose(one[1], often[1], atol=1e-3)


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_rows_of_one_side_and_equal_rows_are_no_trouble(loss):
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 5, axis=0)
    for targets in (np.ones(20), np.where(np.arange(20) < 10, 1.0, -1.0)):
        task = Task(HostRows(RBF(1.0), X), targets[:, None], np.ones(20), np.random.default_rng(0))
        path = SLMC(loss=loss, max_steps=5).path(task, [1, 6, 30])
        assert path.sizes == [1, 6, 20]
        assert path.status is Status.EXHAUSTED
        assert all(np.isfinite(model.coef).all() for model in path.models)
        assert (np.sign(path.models[-1](X).ravel()) == targets).all()


def test_a_time_limit_leaves_a_model():
    path = SLMC(time_limit=1e-9).path(problem(), [1, 2, 4])
    assert path.status is Status.TIME_LIMIT
    assert path.sizes == [1]


def test_it_is_for_kernels_with_gradients_that_are_inner_products():
    assert all(SLMC.takes(kernel) for kernel in KERNELS)
    assert not any(SLMC.takes(kernel) for kernel in (Sigmoid(), Precomputed()))


def test_a_few_points_do_what_the_full_model_does():
    X, y = make_moons(400, noise=0.2, random_state=0)
    slim = SlimSVC(6, reducer="slmc", gamma=1.0, random_state=0).fit(X[:200], y[:200])
    full = SlimSVC(gamma=1.0).fit(X[:200], y[:200])
    assert slim.model_.size <= 6
    assert slim.score(X[200:], y[200:]) > full.score(X[200:], y[200:]) - 0.03


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "log"}, "hinge.*squared_hinge"),
        ({"C": 0.0}, "C must be"),
        ({"max_steps": -1}, "max_steps must be"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        SLMC(**settings)
