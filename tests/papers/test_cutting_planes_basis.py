"""Bases that grow: the choice among rows by brute force, and what both ways of growing must keep to."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm.kernels import RBF, Poly
from slimsvm.papers.cutting_planes import PreimageBasis, RowBasis, SpanCoordinates
from slimsvm.rows.host import HostRows

KERNEL = RBF(0.5)


def empty(kind, X, kernel=KERNEL, candidates=10**6):
    rows = HostRows(kernel, X)
    return kind(rows, SpanCoordinates(rows, 1.0), candidates, *((1, 20) if kind is PreimageBasis else ()))


def squared_residual(X, pull, points, kernel=KERNEL):
    """|g - its projection on the span of the points|^2, summed over outputs."""
    inner = kernel(points, X) @ pull
    projected = inner.T @ np.linalg.solve(kernel(points, points), inner)
    return np.trace(pull.T @ kernel(X, X) @ pull - projected)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 2)), rng.normal(size=(30, 2))


def test_the_row_that_leaves_the_least_residual_is_added(data):
    X, pull = data
    basis = empty(RowBasis, X)
    for _ in range(5):
        before = basis.index
        assert basis.grow(pull, np.random.default_rng(0))
        left = {row: squared_residual(X, pull, X[np.append(before, row)]) for row in set(range(30)) - set(before)}
        assert basis.index[-1] == min(left, key=left.get)


@pytest.mark.parametrize("kernel", [KERNEL, Poly(0.3, 1.0, 2)], ids=lambda kernel: kernel.name)
def test_the_first_point_that_is_made_leaves_less_residual_than_any_row(data, kernel):
    X, pull = data
    made = empty(PreimageBasis, X, kernel)
    assert made.grow(pull, np.random.default_rng(0))
    rows = min(squared_residual(X, pull, X[[row]], kernel) for row in range(30))
    assert squared_residual(X, pull, made.points, kernel) <= rows * (1 + 1e-9)


@pytest.mark.parametrize("kind", [RowBasis, PreimageBasis], ids=["rows", "preimages"])
def test_coordinates_are_those_of_the_points(data, kind):
    X, pull = data
    basis = empty(kind, X)
    for _ in range(6):
        basis.grow(pull, np.random.default_rng(1))
    K = KERNEL(X, basis.points)
    projected = K @ np.linalg.solve(KERNEL(basis.points, basis.points), K.T)
    coordinates = np.column_stack([basis.span.outputs(unit) for unit in np.eye(7)[1:]])
    np.testing.assert_allclose(coordinates @ coordinates.T, projected, atol=1e-7)


@pytest.mark.parametrize("kind", [RowBasis, PreimageBasis], ids=["rows", "preimages"])
def test_a_basis_grows_until_it_holds_every_row_and_no_further(kind):
    """Six places, each of which five rows share."""
    X = np.repeat(np.random.default_rng(2).normal(size=(6, 2)), 5, axis=0)
    basis = empty(kind, X)
    pull = np.ones((30, 1))
    while basis.grow(pull, np.random.default_rng(3)):
        pass
    assert 6 <= basis.span.size < 40 if kind is PreimageBasis else basis.span.size == 6
    assert basis.span.outside().size == 0
    assert basis.points.shape[0] == basis.span.size


@pytest.mark.parametrize("kind", [RowBasis, PreimageBasis], ids=["rows", "preimages"])
def test_without_anything_to_follow_rows_are_added_all_the_same(data, kind):
    X, pull = data
    basis = empty(kind, X)
    assert all(basis.grow(0 * pull, np.random.default_rng(4)) for _ in range(3))


def test_candidates_are_rows_that_are_part_of_the_vector(data):
    X, pull = data
    pull[3:] = 0
    basis = empty(RowBasis, X, candidates=2)
    for _ in range(3):
        basis.grow(pull, np.random.default_rng(5))
    assert set(basis.index) == {0, 1, 2}


def test_sparse_rows_stay_sparse_where_they_are_chosen_and_points_made_of_them_are_dense(data):
    X, pull = data
    points = [empty(kind, csr_array(X)) for kind in (RowBasis, PreimageBasis)]
    for basis in points:
        basis.grow(pull, np.random.default_rng(6))
    assert isinstance(points[0].points, csr_array)
    assert isinstance(points[1].points, np.ndarray)


def test_more_initial_points_find_a_better_point():
    """The gain has several maxima; every row as an initial point finds the best of those that single ones find."""
    rng = np.random.default_rng(7)
    X, pull = 3 * rng.normal(size=(30, 2)), rng.normal(size=(30, 1))

    def left(starts):
        rows = HostRows(KERNEL, X)
        basis = PreimageBasis(rows, SpanCoordinates(rows, 1.0), 30, starts, 50)
        basis.grow(pull, np.random.default_rng(0))
        return squared_residual(X, pull, basis.points)

    assert left(30) < left(1)
