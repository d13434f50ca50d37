"""K(rows, points) as a handle: every answer against plain formulas, for dense and sparse rows in both precisions."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from slimsvm.kernels import KERNELS, RBF, Precomputed
from slimsvm.rows.host import HostRows
from slimsvm.rows.host_matrix import DENSE_VALUES, FEW_POINTS, SMALL_WORK
from slimsvm.rows.precision import Precision
from slimsvm.rows.threads import ThreadPool

SMOOTH = [name for name, kind in KERNELS.items() if kind.differentiable]


def made(kernel, form=np.asarray, n=40, d=4, m=5, q=2, seed=0, **settings):
    """Rows, points among them, and weights of rows (n, q) and points (m, q)."""
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(n, d))) * (rng.random((n, d)) < (1.0 if form is np.asarray else 0.15)) + 0.1 * (
        form is np.asarray
    )
    Z = np.abs(rng.normal(size=(m, d)))
    return HostRows(kernel, form(X), **settings), X, Z, rng.normal(size=(n, q)), rng.normal(size=(m, q))


@pytest.fixture(params=[name for name in KERNELS if name != "precomputed"])
def kernel(request, make_case):
    return make_case(request.param).kernel


def test_products_with_the_kernel_matrix(kernel, form):
    rows, X, Z, W, V = made(kernel, form)
    K, some = kernel(X, Z), np.array([3, 7, 20])
    against = rows.against(Z)
    assert against.size == 5
    np.testing.assert_allclose(against.times(V), K @ V, atol=1e-10)
    np.testing.assert_allclose(against.back(W), K.T @ W, atol=1e-10)
    np.testing.assert_allclose(against.back(W[some, :1], some), K[some].T @ W[some, :1], atol=1e-10)
    np.testing.assert_allclose(against.column(2), K[:, 2], atol=1e-12)
    assert against.largest_square() == pytest.approx(np.square(K).max(), rel=1e-9)
    assert rows.meter.evaluations == 40 * 5


@pytest.mark.parametrize("alike", [True, False])
def test_curvature_is_the_sum_over_rows(form, alike):
    rows, X, Z, W, _ = made(RBF(0.3), form)
    weights = np.full(40, 1.5) if alike else np.exp(W[:, 0])
    design = np.column_stack([np.ones(40), RBF(0.3)(X, Z)])
    some = np.array([0, 5, 6, 39])
    expected = (design[some] * weights[some, None]).T @ design[some]
    against = rows.against(Z)
    np.testing.assert_allclose(against.curvature(some, weights), expected, atol=1e-12)
    np.testing.assert_allclose(against.curvature(some, weights, since=3), expected[:, 3:], atol=1e-12)
    np.testing.assert_array_equal(against.curvature(some[:0], weights), np.zeros((6, 6)))


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("share", [1.0, 0.2])
def test_pullback_is_the_gradient_of_finite_differences(name, q, share, form, make_case):
    kernel = make_case(name).kernel
    rows, X, Z, W, V = made(kernel, form, q=q)
    W *= np.random.default_rng(1).random((40, 1)) < share

    def value(flat):
        return float((W * (kernel(X, flat.reshape(Z.shape)) @ V)).sum())

    slow = approx_fprime(Z.ravel(), value, 1e-6).reshape(Z.shape)
    for against in (rows.against(Z), rows.moving(rows.to_coordinates(Z))):
        np.testing.assert_allclose(against.pullback(W, V), slow, rtol=1e-4, atol=1e-4 * np.abs(slow).max())


def test_points_that_move_are_evaluated_anew(form):
    rows, X, Z, _, V = made(RBF(0.3), form)
    moving = rows.moving(np.zeros((0, 4)))
    for points in (Z, Z[:2] + 1.0, np.vstack([Z, Z - 1.0])):
        weights = np.vstack([V, V])[: points.shape[0]]
        expected = RBF(0.3)(X, points) @ weights
        np.testing.assert_allclose(moving.move(rows.to_coordinates(points), weights), expected, atol=1e-10)
        np.testing.assert_allclose(moving.times(weights), expected, atol=1e-10)
        np.testing.assert_allclose(rows.from_coordinates(rows.to_coordinates(points)), points, atol=1e-12)


def test_points_come_and_go(form):
    rows, X, Z, _, V = made(RBF(0.3), form)
    K = RBF(0.3)(X, Z)
    growing = rows.against(Z[:0])
    for number in range(5):
        growing.append(Z[number : number + 1])
        np.testing.assert_allclose(growing.times(V[: number + 1]), K[:, : number + 1] @ V[: number + 1], atol=1e-10)
    assert rows.meter.evaluations == 40 * 5
    np.testing.assert_allclose(growing.first(2).times(V[:2]), K[:, :2] @ V[:2], atol=1e-10)
    growing.keep(np.array([4, 1]))
    np.testing.assert_allclose(growing.times(V[:2]), K[:, [4, 1]] @ V[:2], atol=1e-10)
    assert rows.meter.evaluations == 40 * 5


def test_rows_of_a_precomputed_kernel_are_points_by_their_numbers():
    K = RBF(0.3)(*2 * [np.random.default_rng(0).normal(size=(12, 3))])
    rows = HostRows(Precomputed(), K)
    points = rows.take(np.array([2, 9]))
    np.testing.assert_allclose(rows.against(points).times(np.eye(2)), K[:, [2, 9]])
    np.testing.assert_allclose(rows.among(points), K[np.ix_([2, 9], [2, 9])])
    part = rows.of(points)
    np.testing.assert_allclose(part.block(np.arange(2)), K[np.ix_([2, 9], [2, 9])])
    with pytest.raises(ValueError, match="a point is not one of them"):
        rows.subset(np.arange(5)).of(points)


def test_group_means_and_features(form):
    rows, X, Z, W, V = made(RBF(0.3), form)
    K, group, weights = RBF(0.3)(X, Z), np.arange(40) % 3, np.exp(W[:, 0])
    expected = [np.average(K[group == k], axis=0, weights=weights[group == k]) for k in range(3)]
    against = rows.against(Z)
    np.testing.assert_allclose(against.group_means(group, weights), expected, atol=1e-10)
    made_rows = against.features(V)
    np.testing.assert_allclose(made_rows.block(np.arange(4)), (K @ V)[:4] @ (K @ V)[:4].T, atol=1e-10)
    assert made_rows.meter is rows.meter


@pytest.mark.parametrize("exact", [True, False])
def test_float32_kernel_values_are_near(form, exact, float32_always):
    rows, X, Z, W, V = made(RBF(0.1), form, n=500, d=20, m=30, precision=float32_always)
    K, against = RBF(0.1)(X, Z), rows.against(Z, exact=exact)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(against.times(V), K @ V, atol=1e-4)
    np.testing.assert_allclose(against.back(W), K.T @ W, atol=1e-3)
    if exact:  # sums of the float32 values are float64
        np.testing.assert_allclose(against.times(V), against.times(np.eye(30)) @ V, atol=1e-12)


def test_a_point_far_out_is_worked_on_in_float64_from_then_on():
    rows, X, Z, _, V = made(RBF(0.1), n=500, d=20, m=30, precision=Precision(small_work=0))
    moving = rows.moving(rows.to_coordinates(Z))
    assert moving.K.dtype == np.float32
    far = Z.copy()
    far[0] += 1e4
    np.testing.assert_allclose(moving.move(rows.to_coordinates(far), V), RBF(0.1)(X, far) @ V, atol=1e-5)
    assert moving.K.dtype == np.float64
    moving.move(rows.to_coordinates(Z), V)
    assert moving.K.dtype == np.float64


@pytest.mark.parametrize("features", [4, DENSE_VALUES // 1000 + 1], ids=["written out", "too many to write out"])
def test_sparse_rows_have_the_gradient_of_dense_ones(features, float64_always):
    _, X, Z, W, V = made(RBF(0.3), csr_array, n=1000, m=FEW_POINTS + 1)
    dense = HostRows(RBF(0.3), X).against(Z).pullback(W, V)
    wide, points = csr_array(X), csr_array(Z)
    for each in (wide, points):
        each.resize((each.shape[0], features))
    found = HostRows(RBF(0.3), wide, precision=float64_always).against(points).pullback(W, V)
    np.testing.assert_allclose(found[:, :4], dense, atol=1e-10)
    assert not found[:, 4:].any()


def test_threads_change_nothing():
    found, n = [], 2 * SMALL_WORK // 30  # several blocks of rows
    for threads in (1, 3):
        rows, _, Z, W, V = made(RBF(0.3), n=n, m=30, pool=ThreadPool(threads))
        against = rows.against(Z)
        found.append(
            [against.times(V), against.back(W), against.pullback(W, V), against.curvature(np.arange(n), W[:, 0] ** 2)]
        )
    for one, many in zip(*found, strict=True):
        np.testing.assert_array_equal(one, many)


def test_gradients_are_counted():
    rows, _, Z, W, V = made(RBF(0.3))
    W[10:] = 0.0
    against = rows.against(Z)
    before = rows.meter.evaluations
    against.pullback(W, V)
    assert rows.meter.evaluations - before == 10 * 5
    K = rows.among(Z)
    rows.pullback_among(Z, Z, K, np.ones((5, 5)))
    assert rows.meter.evaluations - before == 10 * 5 + 2 * 25
