"""Leaving out support vectors where the surface is curved: curvatures that are known, and the steps one by one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_moons

from slimsvm import SlimSVC
from slimsvm.goals import OneVsRest
from slimsvm.kernels import RBF, Linear, Poly, Precomputed, Sigmoid
from slimsvm.limits import Deadline
from slimsvm.model import Expansion, Status, Task
from slimsvm.papers.regression_of_outputs import (
    DecisionSurface,
    OsunaGirosi,
    ZhanShen,
    curvature_at,
    curvatures,
    directions,
    most_curved,
    projected,
)
from slimsvm.rows.host import HostRows
from slimsvm.trainers import SMO


def problem(q=1, kernel=RBF(1.0), form=np.asarray):  # noqa: B008
    X, labels = make_moons(200, noise=0.25, random_state=0) if q == 1 else load_iris(return_X_y=True)
    task = Task(
        HostRows(kernel, form(X)), OneVsRest(max(q, 2)).encode(labels), np.ones(labels.size), np.random.default_rng(0)
    )
    return task, SMO(10.0).fit(task).model


def sphere(features, radius):
    """f(x) = |x|^2 - radius^2, by the squares of the features."""
    coef = np.full((features, 1), radius**-2.0)
    model = Expansion(Poly(1.0, 0.0, 2), radius * np.eye(features), coef, np.array([-(radius**2)]))
    return DecisionSurface(model, 0, HostRows(model.kernel, model.points))


@pytest.mark.parametrize("features", [2, 3, 7])
@pytest.mark.parametrize("radius", [0.5, 1.0, 4.0])
def test_the_curvature_of_a_sphere(features, radius):
    """All d - 1 principal curvatures are 1 / radius, at the projections of points on both sides of the sphere."""
    surface, rng = sphere(features, radius), np.random.default_rng(0)
    unit = rng.normal(size=(20, features))
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    P, slope = projected(surface, radius * rng.uniform(0.7, 1.5, (20, 1)) * unit)
    np.testing.assert_allclose(P, radius * unit, rtol=1e-5)
    np.testing.assert_allclose(slope, 2 * P, rtol=1e-9)
    np.testing.assert_allclose(curvature_at(surface, P, slope, np.eye(features)), np.sqrt(features - 1) / radius, rtol=1e-5)


def test_a_step_to_the_surface_is_no_longer_than_the_spread():
    """From 10 radii away all steps are cut, each to the same length."""
    surface = sphere(3, 2.0)
    P, _ = projected(surface, np.array([[20.0, 0.0, 0.0]]))
    np.testing.assert_allclose(P, [[20.0 - 3 * surface.spread, 0.0, 0.0]])
    assert surface.spread == pytest.approx(2.0 * np.sqrt(2 / 3))  # of the corners of a triangle with radius 2 on its axes


def test_a_surface_is_the_model_and_its_gradient():
    """Against differences of the model's outputs; kernel values and their gradients are counted."""
    task, full = problem(3)
    surface, P = DecisionSurface(full, 1, task.rows), task.rows.given.rows()[50:60]
    before = task.rows.meter.evaluations
    value, slope = surface(P)
    assert task.rows.meter.evaluations - before == 2 * 10 * np.count_nonzero(full.coef[:, 1])
    np.testing.assert_allclose(value, full(P)[:, 1], atol=1e-12)
    for feature, step in enumerate(1e-5 * np.eye(4)):
        difference = (full(P + step) - full(P - step))[:, 1] / 2e-5
        np.testing.assert_allclose(slope[:, feature], difference, atol=1e-7)


def test_the_curvature_of_a_plane_is_zero():
    task, full = problem(kernel=Linear())
    found = curvatures(DecisionSurface(full, 0, task.rows), task.rows, np.arange(50), np.eye(2), Deadline())
    np.testing.assert_array_equal(found, 0.0)


def hessian(P, model, column):
    """The gradient and the matrix of second derivatives of an RBF expansion at one point, term by term."""
    gradient, H = np.zeros(P.size), np.zeros((P.size, P.size))
    gamma = model.kernel.gamma
    for z, beta in zip(model.points, model.coef[:, column], strict=True):
        k = np.exp(-gamma * np.square(P - z).sum())
        gradient += -2 * gamma * beta * k * (P - z)
        H += beta * k * (4 * gamma**2 * np.outer(P - z, P - z) - 2 * gamma * np.eye(P.size))
    return gradient, H


def test_the_curvature_is_that_of_second_derivatives():
    task, full = problem(3)
    surface = DecisionSurface(full, 1, task.rows)
    P, slope = projected(surface, task.rows.given.rows()[50:60])
    found = curvature_at(surface, P, slope, np.eye(4))
    for point, ours in zip(P, found, strict=True):
        g, H = hessian(point, full, 1)
        T = np.eye(4) - np.outer(g, g) / (g @ g)
        assert ours == pytest.approx(np.linalg.norm(T @ H @ T) / np.linalg.norm(g), rel=1e-3)


def test_random_directions_are_right_on_average():
    task, full = problem(3)
    surface, rng = DecisionSurface(full, 0, task.rows), np.random.default_rng(0)
    P, slope = projected(surface, task.rows.given.rows()[50:55])
    exact = curvature_at(surface, P, slope, directions(4, 4, rng))
    estimates = [curvature_at(surface, P, slope, directions(4, 2, rng)) ** 2 for _ in range(300)]
    np.testing.assert_allclose(np.sqrt(np.mean(estimates, axis=0)), exact, rtol=0.15)


def test_projections_lie_on_the_surface():
    task, full = problem()
    near = task.rows.given.rows()[np.abs(full.on(task.rows).ravel()) < 0.8]
    P, _ = projected(DecisionSurface(full, 0, task.rows), near)
    before, after = (np.abs(full(rows).ravel()) for rows in (near, P))
    assert (after <= before).all()
    assert np.median(after) < 1e-3


def test_the_most_curved_share_of_each_side_is_left_out():
    task, full = problem()
    y, margins = task.targets[:, 0], task.targets[:, 0] * full.on(task.rows).ravel()
    support = np.flatnonzero(margins <= 1 + 1e-3)
    bent = curvatures(DecisionSurface(full, 0, task.rows), task.rows, support, np.eye(2), Deadline())
    gone = np.flatnonzero(ZhanShen(share=0.3)._remaining(task, full)[:, 0] == 0)
    assert np.isin(gone, support).all()
    for sign in (-1, 1):
        side = support[y[support] == sign]
        left = np.isin(side, gone)
        assert left.sum() == int(0.3 * side.size)
        curved = bent[y[support] == sign]
        assert curved[left].min() >= curved[~left].max()


def test_a_share_of_equals_goes_by_the_order_of_rows_and_nothing_flat_goes():
    rows = np.array([3, 5, 8, 9])
    np.testing.assert_array_equal(most_curved(rows, np.ones(4), 0.5), [3, 5])
    np.testing.assert_array_equal(most_curved(rows, np.array([0.0, 2.0, 0.0, 0.0]), 0.75), [5])
    assert most_curved(rows, np.ones(4), 0.2).size == 0


@pytest.mark.parametrize("q", [1, 3])
def test_a_path_is_the_regression_of_the_model_of_the_remaining_rows(q):
    task, full = problem(q)
    reducer = ZhanShen(share=0.2, C=10.0)
    path = reducer.path(task, [4, 12], full)
    remaining = reducer._remaining(replace(task, rng=np.random.default_rng(0)), full)
    second = SMO(10.0).fit(replace(task, targets=remaining)).model
    expected = OsunaGirosi().path(task, [4, 12], second)
    assert path.sizes == expected.sizes == [4, 12]
    for ours, theirs in zip(path.models, expected.models, strict=True):
        np.testing.assert_allclose(ours.on(task.rows), theirs.on(task.rows), atol=1e-8)


def test_nothing_left_out_is_osuna_and_girosi():
    task, full = problem()
    path = ZhanShen(share=0.0, C=10.0).path(task, [8], full)
    plain = OsunaGirosi().path(task, [8], full)
    np.testing.assert_allclose(path.models[0].on(task.rows), plain.models[0].on(task.rows), atol=1e-6)


def test_leaving_out_makes_the_second_model_smaller():
    task, full = problem()
    remaining = ZhanShen(share=0.3)._remaining(task, full)
    assert SMO(10.0).fit(replace(task, targets=remaining)).model.size < full.size


def test_sparse_rows_and_equal_seeds_leave_out_the_same_rows():
    dense, full = problem(3)
    sparse, in_sparse = problem(3, form=csr_array)
    reducer = ZhanShen(share=0.2, probes=2)
    once = reducer._remaining(dense, full)
    np.testing.assert_array_equal(reducer._remaining(replace(dense, rng=np.random.default_rng(0)), full), once)
    assert np.mean(reducer._remaining(sparse, in_sparse) != once) < 0.01


def test_blocks_of_rows_have_the_same_curvatures():
    task, full = problem()
    surface, rows = DecisionSurface(full, 0, task.rows), np.arange(60)
    whole, parts = (
        curvatures(surface, task.rows, rows, np.eye(2), Deadline(), values) for values in (1 << 22, 7 * full.size)
    )
    assert (whole > 0).all()
    np.testing.assert_allclose(parts, whole, rtol=1e-6)


def test_rows_of_one_side_are_no_trouble():
    task, full = problem()
    one = replace(task, targets=np.ones_like(task.targets))
    path = ZhanShen(C=10.0).path(one, [4], full)
    assert (path.models[-1].on(task.rows) > 0).all()


def test_an_output_that_is_a_constant_has_no_surface():
    task, full = problem(3)
    flat = replace(full, coef=full.coef * [1.0, 0.0, 1.0])
    gone = ZhanShen(share=0.3)._remaining(task, flat) == 0
    np.testing.assert_array_equal(gone.any(axis=0), [True, False, True])


def test_a_time_limit_leaves_a_model():
    task, full = problem()
    path = ZhanShen(C=10.0, time_limit=1e-9).path(task, [4, 16], full)
    assert path.status is Status.TIME_LIMIT
    assert len(path) == 1


def test_it_is_for_kernels_with_gradients():
    assert all(ZhanShen.takes(kernel) for kernel in (RBF(), Poly(), Sigmoid(), Linear()))
    assert not ZhanShen.takes(Precomputed())


def test_through_the_front_door():
    X, y = make_moons(300, noise=0.2, random_state=0)
    slim = SlimSVC(15, C=10.0, gamma=1.0, reducer="zhan-shen", random_state=0).fit(X, y)
    assert slim.model_.size <= 15
    assert slim.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"share": 1.0}, "share must be"), ({"share": -0.1}, "share must be"), ({"probes": 0}, "probes must be")],
    ids=["all", "below 0", "no probes"],
)
def test_settings_without_a_meaning_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        ZhanShen(**settings)
