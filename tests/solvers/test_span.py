"""Orthonormal coordinates against the kernel matrix that they stand for."""

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.solvers.span import Span

KERNEL = RBF(0.3)


def filled(X, points, dtype=np.float64, constant=2.0):
    """A span of the points over the rows X, and which of them it took."""
    span = Span(np.ones(X.shape[0]), len(points), np.dtype(dtype), constant)
    taken = []
    for z in points:
        column = KERNEL(X, z[None]).ravel().astype(dtype)
        if span.add(column, KERNEL(points[taken], z[None]).ravel(), 1.0):
            taken.append(len(taken))
    return span


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(6, 3))


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_inner_products_of_coordinates_are_those_of_projections(data, dtype, atol):
    X, points = data
    span = filled(X, points, dtype)
    K = KERNEL(X, points)
    projected = K @ np.linalg.solve(KERNEL(points, points), K.T)
    np.testing.assert_allclose(span.features[1:].T @ span.features[1:], projected, atol=atol)
    np.testing.assert_allclose(span.rest, 1 - np.diag(projected), atol=atol)
    assert (span.features[0] == 2.0).all()


def test_coefficients_give_the_same_function(data):
    X, points = data
    span = filled(X, points)
    v = np.random.default_rng(1).normal(size=(6, 2))
    np.testing.assert_allclose(KERNEL(X, points) @ span.coefficients(v), span.features[1:].T @ v, atol=1e-10)


def test_a_projection_is_the_least_squares_fit_in_the_kernel_space(data):
    X, points = data
    pull = np.random.default_rng(2).normal(size=(40, 2))
    expected = np.linalg.solve(KERNEL(points, points), KERNEL(points, X) @ pull)
    np.testing.assert_allclose(filled(X, points).projected(pull), expected, atol=1e-9)


def test_what_the_span_holds_is_not_added(data):
    X, points = data
    span = filled(X, points)
    outside = span.outside().size
    coordinates = span.features.copy()
    assert not span.add(KERNEL(X, points[:1]).ravel(), KERNEL(points, points[:1]).ravel(), 1.0)
    np.testing.assert_array_equal(span.features, coordinates)
    span.forget(span.outside()[0])
    assert span.outside().size == outside - 1


def test_a_span_of_all_rows_has_none_outside():
    X = np.random.default_rng(3).normal(size=(10, 2))
    assert filled(X, X).outside().size == 0
