"""One model for all pairs of classes: each output is fitted to the rows of its pair, as if there were no others."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from slimsvm.goals import OneVsOne
from slimsvm.kernels import RBF, Linear
from slimsvm.limits import Deadline
from slimsvm.model import Expansion, Task
from slimsvm.papers.compressed_vectors import CVM, Lars, OutputLoss, Support
from slimsvm.papers.condensed import CSVM
from slimsvm.papers.cutting_planes import CPSP
from slimsvm.papers.optimally_sparse import AggressiveSlant, Slant
from slimsvm.papers.random_basis import RSVM, Nystroem
from slimsvm.papers.reduced_set import ReducedSet, TargetVector
from slimsvm.papers.regression_of_outputs import OsunaGirosi, TubeSearch, ZhanShen, least_squares
from slimsvm.papers.slmc import OBJECTIVES, SLMC
from slimsvm.reducers import Prune, SpSVM
from slimsvm.reducers.prune import balanced_bias
from slimsvm.rows.host import HostRows
from slimsvm.solvers.basis import EXACT, Refit, bordered, squared_loss
from slimsvm.trainers import SMO

PAIRS = range(3)


@pytest.fixture(scope="module")
def iris():
    """The three pairs of two features of iris, which overlap, and a full model."""
    X, labels = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    task = Task(
        HostRows(RBF(1.0), X[:, 1:3]), OneVsOne(3).encode(labels), rng.uniform(0.5, 2.0, 150), rng, goal=OneVsOne(3)
    )
    return task, SMO(10.0).fit(task).model


def of_pair(task, full, pair, *, of_classes=False):
    """The problem of a pair by itself, and its full model on its own support vectors, or on those of its classes."""
    rows, used = np.flatnonzero(task.targets[:, pair]), full.coef[:, pair] != 0
    used |= of_classes & task.goal.concerned(full.coef)[:, pair]
    X = task.rows.given.rows()[rows]
    alone = Task(HostRows(full.kernel, X), task.targets[rows, pair : pair + 1], task.weights[rows], goal=OneVsOne(2))
    return alone, Expansion(full.kernel, full.points[used], full.coef[used, pair : pair + 1], full.bias[pair : pair + 1])


def output(model, pair):
    """One output of a model on all its points."""
    return replace(model, coef=model.coef[:, pair : pair + 1], bias=model.bias[pair : pair + 1])


def squared_margins(task, full):
    """The loss of a refit: squared distances of a model's outputs from the full model's margins, up to 1."""
    margin_targets = task.goal.followed(task.targets, full.on(task.rows))
    return lambda model: float(task.weights @ np.square(margin_targets.residual(model.on(task.rows))).sum(axis=1))


def same(one, other, X, tolerance=1e-6):
    np.testing.assert_allclose(one(X), other(X), atol=tolerance)


@pytest.mark.parametrize("rows", ["support", "all"])
def test_the_loss_of_cvm_is_the_sum_of_those_of_the_pairs(iris, rows):
    task, full = iris
    small = CVM(refit=False, max_steps=1).path(task, [6], full).models[0]
    support = Support.of(task, full)
    followed, weights = (task.rows, task.output_weights) if rows == "all" else (support.rows, support.members)
    joint = OutputLoss(followed, full, weights)
    total, unit = 0.0, float(np.vdot(weights, joint.goals**2))
    points, slope = joint.rows.to_coordinates(small.points), np.zeros(small.points.shape)
    for pair in PAIRS:
        alone, model = of_pair(task, full, pair)
        its_rows, its_weights = alone.rows, alone.output_weights
        if rows == "support":
            its_rows, its_weights = HostRows(model.kernel, model.points), np.ones(model.coef.shape)
        own = OutputLoss(its_rows, model, its_weights)
        own_unit = float(np.vdot(its_weights, own.goals**2))
        value, by_points, by_coef = own(its_rows.to_coordinates(small.points), small.coef[:, pair : pair + 1])
        total, slope = total + own_unit * value, slope + own_unit * by_points
        np.testing.assert_allclose(
            unit * joint(points, small.coef)[2][:, pair], own_unit * by_coef[:, 0], rtol=1e-5, atol=1e-6
        )
    np.testing.assert_allclose(unit * joint(points, small.coef)[0], total)
    np.testing.assert_allclose(unit * joint(points, small.coef)[1], slope, rtol=1e-5, atol=1e-6)


def test_the_tube_of_a_pair_is_that_of_its_own_regression(iris):
    task, full = iris
    support = HostRows(full.kernel, full.points)
    together = TubeSearch(support, full.on(support), task.goal.concerned(full.coef), 100.0, 1e-6)
    fit = together.fit(0.1, Deadline())
    refitted = together.refitted(fit)
    for pair in PAIRS:
        _, model = of_pair(task, full, pair, of_classes=True)
        own = HostRows(model.kernel, model.points)
        everyone = np.full(model.coef.shape, True)
        alone = TubeSearch(own, model.on(own), everyone, 100.0, 1e-6)
        same(output(together.expansion(fit), pair), alone.expansion(alone.fit(0.1, Deadline())), model.points, 1e-4)
        against = own.against(refitted.points)
        coef, bias = least_squares(against, model.on(own), everyone)
        same(output(refitted, pair), Expansion(full.kernel, refitted.points, coef, bias), model.points)


@pytest.mark.parametrize(
    "reducer",
    [Lars(), CVM(max_steps=5), Slant(), AggressiveSlant(), CSVM(), ReducedSet(refit=True), Prune(refit=True)],
    ids=lambda reducer: type(reducer).__name__,
)
def test_coefficients_that_follow_the_full_model_do_so_pair_by_pair(iris, reducer):
    task, full = iris
    *_, (small, _) = reducer.models(task, [6], full)
    for pair in PAIRS:
        alone, model = of_pair(task, full, pair)
        loss = squared_margins(alone, model)
        assert loss(output(small, pair)) <= 1.001 * loss(Refit.of(alone, model, 6)(output(small, pair))) + 0.1  # ties


@pytest.mark.parametrize(
    ("reducer", "bias", "scale"),
    [(RSVM(C=5.0), 0.0, 5.0), (SpSVM(C=5.0), 0.0, 5.0), (Nystroem(C=5.0), 1.0, 10.0)],
    ids=["rsvm", "spsvm", "nystroem"],
)
def test_coefficients_for_labels_are_those_of_each_pair(iris, reducer, bias, scale):
    task, full = iris
    small = reducer.path(task, [6], None).models[-1]
    K = full.kernel(small.points, small.points)
    for pair in PAIRS:
        alone, _ = of_pair(task, full, pair)
        found = squared_loss(alone).fit(alone.rows.against(small.points), bordered(K, bias) / scale, EXACT)
        again = Expansion(full.kernel, small.points, found.coef, found.bias)
        same(output(small, pair), again, alone.rows.given.rows(), 1e-4)


def test_planes_of_a_pair_cut_its_own_losses(iris):
    """CPSP: in the span of the shared points each output is the SVM of its pair, here by SMO on coordinates in the span."""
    task, full = iris
    method = CPSP(C=5.0, tol=1e-6, basis="rows")
    small = method.path(task, [6], None).models[-1]
    root = np.linalg.cholesky(full.kernel(small.points, small.points))
    for pair in PAIRS:
        alone, _ = of_pair(task, full, pair)
        X = alone.rows.given.rows()
        features = np.linalg.solve(root, full.kernel(small.points, X)).T
        features = np.column_stack([features, np.full(len(X), method.bias)])
        found = SMO(5.0, 1e-6, bias=False).fit(Task(HostRows(Linear(), features), alone.targets, alone.weights)).model
        np.testing.assert_allclose(output(small, pair)(X), found(features), atol=2e-2)


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_the_objective_of_slmc_is_the_sum_of_those_of_the_pairs(iris, loss):
    task, full = iris
    small = SLMC(C=5.0, loss=loss, tol=1e-6, max_steps=3).path(task, [5], None).models[-1]
    objective = OBJECTIVES[loss](task, 5.0, 1e-6)
    value, slope = objective(task.rows.to_coordinates(small.points))
    for pair in PAIRS:
        alone, _ = of_pair(task, full, pair)
        own, Z = OBJECTIVES[loss](alone, 5.0, 1e-6), alone.rows.to_coordinates(small.points)
        own_value, own_slope = own(Z)
        found = own.optimum(Z)
        again = Expansion(full.kernel, small.points, found.coef, found.bias)
        same(output(small, pair), again, alone.rows.given.rows(), 1e-3)
        value, slope = value - own_value, slope - own_slope
    np.testing.assert_allclose(value, 0, atol=1e-4)
    np.testing.assert_allclose(slope, 0, atol=1e-2)


def test_rows_are_left_out_of_a_pair_by_its_own_surface(iris):
    task, full = iris
    method = ZhanShen(share=0.3)
    remaining = method._remaining(task, full)
    for pair in PAIRS:
        alone, model = of_pair(task, full, pair)
        rows = np.flatnonzero(task.targets[:, pair])
        np.testing.assert_array_equal(remaining[rows, pair], method._remaining(alone, model)[:, 0])
        assert np.count_nonzero(remaining[rows, pair]) < rows.size


def test_steps_of_slant_on_a_pair_are_those_of_its_own_run(iris):
    """Each step changes one output, and a run ends when no output has a shortfall above eps."""
    task, full = iris
    small = Slant.paper(0.25, 0.25).path(task, [150], full).models[-1]
    for pair in PAIRS:
        alone, model = of_pair(task, full, pair)
        same(output(small, pair), Slant.paper(0.25, 0.25).path(alone, [100], model).models[-1], model.points)


def test_least_squares_of_lars_are_those_of_each_pair(iris):
    """At its end group LARS has the solution of (6) for the chosen points, in each output."""
    task, full = iris
    small = Lars.paper().path(task, [150], full).models[-1]
    for pair in PAIRS:
        _, model = of_pair(task, full, pair)
        K, own = full.kernel(model.points, small.points), full.kernel(small.points, small.points)
        coef = small.coef[:, pair]
        pull = K.T @ (np.sign(model.coef[:, 0]) - model.bias - K @ coef) - own @ coef
        np.testing.assert_allclose(pull, 0, atol=1e-6 * np.abs(K).sum())


def test_a_reduced_set_is_nearest_to_each_pairs_own_vector(iris):
    task, full = iris
    small = ReducedSet(refit=False).path(task, [6], full).models[-1]
    for pair in PAIRS:
        alone, model = of_pair(task, full, pair)
        np.testing.assert_allclose(
            small.coef[:, pair], TargetVector(alone, model).nearest(small.points)[0][:, 0], rtol=1e-4, atol=1e-6
        )


def test_a_balanced_bias_is_that_of_its_pair(iris):
    task, full = iris
    small = Prune().path(task, [8], full).models[0]
    together = balanced_bias(task, small, full.on(task.rows))
    for pair in PAIRS:
        alone, model = of_pair(task, full, pair)
        np.testing.assert_allclose(
            together[pair], balanced_bias(alone, output(small, pair), model.on(alone.rows)), atol=1e-6
        )


def test_the_models_of_pairs_follow_the_votes(iris):
    """The published forms, which end with what they minimised, on the rows of three classes."""
    task, full = iris
    votes = task.goal.decode(full.on(task.rows))
    for reducer in (CVM(refit=False), OsunaGirosi()):
        small = reducer.path(task, [12], full).models[-1]
        assert np.mean(task.goal.decode(small.on(task.rows)) == votes) > 0.9
