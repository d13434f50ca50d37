"""Rows for points in the span of a few directions."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm.kernels import KERNELS, RBF, InnerKernel, Laplacian, make_kernel
from slimsvm.rows.host import HostRows

INNER = [name for name in KERNELS if issubclass(KERNELS[name], InnerKernel)]


def made(n=60, d=40, density=0.1):
    rng = np.random.default_rng(0)
    return rng.random((n, d)) * (rng.random((n, d)) < density)


#: a principal span is for rows of more features than these have
NEVER = 10**9, 0.9


def spanned(kernel, X, directions=6):
    whole = HostRows(kernel, csr_array(X))
    span = whole.spanned(10, *NEVER)
    assert span is not None
    return whole, span.widened(np.random.default_rng(4).normal(size=(X.shape[0], directions)), directions)


@pytest.mark.parametrize("name", INNER)
def test_kernel_values_and_gradients_are_those_with_all_features(name):
    X = made()
    whole, rows = spanned(make_kernel(name, gamma=0.3, degree=3, coef0=0.5), X)
    Z = np.random.default_rng(1).normal(size=(5, 6))
    points = rows.from_coordinates(Z)
    assert points.shape == (5, 40)
    np.testing.assert_allclose(rows.to_coordinates(points), Z, atol=1e-12)
    V, W = np.random.default_rng(2).normal(size=(5, 2)), np.random.default_rng(3).normal(size=(60, 2))
    narrow, wide = rows.moving(Z), whole.moving(points)
    np.testing.assert_allclose(narrow.times(V), wide.times(V), atol=1e-12)
    np.testing.assert_allclose(narrow.pullback(W, V), wide.pullback(W, V) @ rows.basis, atol=1e-10)
    some = np.arange(0, 60, 7)
    np.testing.assert_allclose(rows.subset(some).moving(Z).times(V), wide.times(V)[some], atol=1e-12)


def test_the_span_has_the_sums_asked_for_and_an_orthonormal_basis():
    X = made()
    _, rows = spanned(RBF(0.3), X)
    W = np.random.default_rng(5).normal(size=(60, 3))
    wider = rows.widened(W, 3)
    np.testing.assert_allclose(wider.basis.T @ wider.basis, np.eye(9), atol=1e-12)
    np.testing.assert_array_equal(wider.basis[:, :6], rows.basis)
    np.testing.assert_allclose(wider.basis @ (wider.basis.T @ (X.T @ W)), X.T @ W, atol=1e-10)
    np.testing.assert_allclose(wider.prepared.values, X @ wider.basis, atol=1e-12)
    assert wider.widened(W, 3).d == wider.d  # they are in the span already
    assert rows.widened(W, 2).d == rows.d + 2


def test_points_are_included():
    _, rows = spanned(RBF(0.3), made())
    points = np.random.default_rng(6).normal(size=(2, 40))
    wider = rows.including(points)
    assert wider.d == rows.d + 2
    np.testing.assert_allclose(wider.from_coordinates(wider.to_coordinates(points)), points, atol=1e-12)


def test_a_span_widened_downhill_has_the_gradient():
    whole, rows = spanned(RBF(0.3), made())
    Z, V = np.random.default_rng(1).normal(size=(5, 6)), np.random.default_rng(2).normal(size=(5, 2))
    slopes = np.random.default_rng(3).normal(size=(60, 2))
    gradient = whole.moving(rows.from_coordinates(Z)).pullback(slopes, V)
    wider = rows.widened_downhill(Z, slopes, V, 5)
    np.testing.assert_allclose(gradient @ wider.basis @ wider.basis.T, gradient, atol=1e-10)


def test_only_sparse_rows_of_many_features_have_a_span_that_grows():
    assert HostRows(RBF(0.3), csr_array(made())).spanned(40, *NEVER) is None
    assert HostRows(RBF(0.3), made(density=1.0)).spanned(10, *NEVER) is None
    assert HostRows(Laplacian(0.3), csr_array(made())).spanned(10, *NEVER) is None


def flat(n=90, d=60, axes=18):
    """Rows near a plane of few axes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, axes)) @ rng.normal(size=(axes, d)) + 0.05 * rng.normal(size=(n, d)) + 1.0


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("kernel", [RBF(0.01), make_kernel("poly", gamma=0.1, degree=3, coef0=0.5)], ids=["rbf", "poly"])
def test_rows_near_few_axes_have_their_span_with_exact_kernel_values(form, kernel):
    X = flat()
    whole = HostRows(kernel, form(X))
    rows = whole.spanned(10**9, 50, 0.99)
    assert 15 <= rows.d <= 19
    np.testing.assert_allclose(rows.basis.T @ rows.basis, np.eye(rows.d), atol=1e-12)
    around = X - X.mean(axis=0)
    np.testing.assert_array_less(0.98 * np.square(around).sum(), np.square(around @ rows.basis).sum())
    Z, V = np.random.default_rng(1).normal(size=(5, rows.d)), np.random.default_rng(2).normal(size=(5, 2))
    np.testing.assert_allclose(rows.moving(Z).times(V), whole.against(rows.from_coordinates(Z)).times(V), rtol=1e-9)
    mean = X.mean(axis=0)[None]
    np.testing.assert_allclose(
        rows.from_coordinates(rows.to_coordinates(mean)), mean, atol=1e-6
    )  # points may be where the rows are


def test_fewer_rows_than_features_have_the_same_axes():
    X = flat(40, 60, 17)
    rows = HostRows(RBF(0.01), X).spanned(10**9, 50, 0.99)
    _, _, axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    span = rows.basis[:, : rows.d - 1]
    np.testing.assert_allclose(span @ span.T @ axes[:15].T, axes[:15].T, atol=1e-9)


@pytest.mark.parametrize(
    "X",
    [np.random.default_rng(0).normal(size=(600, 60)), csr_array(made(90, 60)), csr_array(made(90, 60, 0.02))],
    ids=["as wide in all directions", "sparse", "very sparse"],
)
def test_rows_that_need_most_axes_keep_all_features(X):
    assert HostRows(RBF(0.01), X).spanned(10**9, 50, 0.9) is None


def test_few_features_and_all_of_the_variance_keep_all_features():
    assert HostRows(RBF(0.01), flat()).spanned(10**9, 60, 0.9) is None
    assert HostRows(RBF(0.01), flat()).spanned(10**9, 50, 1.0) is None
    assert HostRows(Laplacian(0.01), flat()).spanned(10**9, 50, 0.9) is None
