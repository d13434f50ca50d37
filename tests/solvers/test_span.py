"""Orthonormal coordinates against the kernel matrix that they stand for."""

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.papers.cutting_planes import SpanCoordinates
from slimsvm.rows.host import HostRows

KERNEL = RBF(0.3)


def filled(X, points, bias=2.0, **settings):
    """A span of those points that are linearly independent, over the rows X."""
    span = SpanCoordinates(HostRows(KERNEL, X, **settings), bias)
    taken = []
    for i, z in enumerate(points):
        if span.add(z[None], KERNEL(points[taken], z[None]).ravel(), 1.0):
            taken.append(i)
    return span


def coordinates(span):
    """The coordinates of each row, a column for each: the outputs of unit vectors."""
    return np.column_stack([span.outputs(unit) for unit in np.eye(span.size + 1)])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.normal(size=(6, 3))


def check_projections(span, X, points, atol):
    K, C = KERNEL(X, points), coordinates(span)
    projected = K @ np.linalg.solve(KERNEL(points, points), K.T)
    np.testing.assert_allclose(C[:, 1:] @ C[:, 1:].T, projected, atol=atol)
    np.testing.assert_allclose(span.rest, 1 - np.diag(projected), atol=atol)
    assert (C[:, 0] == 2.0).all()
    np.testing.assert_array_equal(span.newest, C[:, -1])


def test_inner_products_of_coordinates_are_those_of_projections(data):
    check_projections(filled(*data), *data, 1e-12)


def test_float32_kernel_values_will_do(data, float32_always):
    span = filled(*data, precision=float32_always)
    assert span.rows.dtype == np.float32
    check_projections(span, *data, 2e-5)


def test_sums_are_those_of_the_coordinates(data):
    span, pull = filled(*data), np.random.default_rng(1).normal(size=40)
    np.testing.assert_allclose(span.sums(pull), pull @ coordinates(span), atol=1e-11)


def test_outputs_are_the_function_with_these_coefficients(data):
    X, points = data
    span, v = filled(X, points), np.random.default_rng(1).normal(size=7)
    expected = KERNEL(X, points) @ span.coefficients(v[1:, None]).ravel() + 2.0 * v[0]
    np.testing.assert_allclose(span.outputs(v), expected, atol=1e-10)


def test_without_points_there_is_the_constant_alone(data):
    span = filled(data[0], data[1][:0])
    np.testing.assert_array_equal(span.outputs(np.array([3.0])), np.full(40, 6.0))
    np.testing.assert_allclose(span.sums(np.ones(40)), [80.0])
    assert span.projected(np.ones((40, 2))).shape == (0, 2)


def test_a_projection_is_the_least_squares_fit_in_the_kernel_space(data):
    X, points = data
    pull = np.random.default_rng(2).normal(size=(40, 2))
    expected = np.linalg.solve(KERNEL(points, points), KERNEL(points, X) @ pull)
    np.testing.assert_allclose(filled(X, points).projected(pull), expected, atol=1e-9)


def test_dependent_points_are_refused_without_a_kernel_evaluation(data):
    X, points = data
    span = filled(X, points)
    outside, before, evaluations = span.outside().size, coordinates(span), span.rows.meter.evaluations
    assert not span.add(points[:1], KERNEL(points, points[:1]).ravel(), 1.0)
    assert span.rows.meter.evaluations == evaluations
    np.testing.assert_array_equal(coordinates(span), before)
    span.forget(span.outside()[0])
    assert span.outside().size == outside - 1


def test_a_span_of_all_rows_has_none_outside():
    X = np.random.default_rng(3).normal(size=(10, 2))
    assert filled(X, X).outside().size == 0
