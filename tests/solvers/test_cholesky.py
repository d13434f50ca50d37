"""The growing factor against numpy's factor of the whole matrix."""

import numpy as np
import pytest

from slimsvm.solvers.cholesky import GrowingCholesky


def gram_matrix(n=20, rank=25, seed=0):
    V = np.random.default_rng(seed).normal(size=(n, rank))
    return V @ V.T


def grown(A, threshold=1e-10):
    """A factor of the rows of A that it accepts, and their numbers."""
    cholesky, taken = GrowingCholesky(threshold), []
    for i in range(A.shape[0]):
        if cholesky.add(A[taken, i], A[i, i]):
            taken.append(i)
    return cholesky, taken


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40])
def test_the_factor_is_that_of_the_whole_matrix(n):
    A = gram_matrix(n, 45)
    cholesky, taken = grown(A)
    assert taken == list(range(n))
    assert cholesky.size == n
    np.testing.assert_allclose(cholesky.factor, np.linalg.cholesky(A), atol=1e-10)


@pytest.mark.parametrize("columns", [(), (3,)], ids=["vector", "matrix"])
def test_solutions_are_those_of_the_whole_matrix(columns):
    A = gram_matrix()
    cholesky, _ = grown(A)
    B, L = np.random.default_rng(1).normal(size=(20, *columns)), np.linalg.cholesky(A)
    np.testing.assert_allclose(cholesky.forward(B), np.linalg.solve(L, B), atol=1e-9)
    np.testing.assert_allclose(cholesky.backward(B), np.linalg.solve(L.T, B), atol=1e-9)
    np.testing.assert_allclose(cholesky.solve(B), np.linalg.solve(A, B), atol=1e-8)


def test_dependent_points_are_refused_and_change_nothing():
    A = gram_matrix(12, rank=5)
    cholesky, taken = grown(A)
    assert taken == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(cholesky.factor, np.linalg.cholesky(A[:5, :5]), atol=1e-10)


def test_the_threshold_is_a_share_of_the_squared_length():
    """The second point is at a distance of 1e-3 from the first one, both of any length."""
    for length in (1e-6, 1.0, 1e6):
        A = length * np.array([[1.0, 1.0], [1.0, 1.0 + 1e-6]])
        assert grown(A, 0.9e-6)[1] == [0, 1]
        assert grown(A, 1.1e-6)[1] == [0]


@pytest.mark.parametrize("own", [0.0, -1.0, np.nan])
def test_points_without_a_positive_length_are_refused(own):
    cholesky, _ = grown(np.eye(2))
    assert not cholesky.add(np.zeros(2), own)
    assert not GrowingCholesky(1e-10).add(np.zeros(0), own)


def test_candidates_are_measured_together_as_one_by_one():
    A = gram_matrix(20, rank=12)
    cholesky, taken = grown(A[:10, :10])
    halves, pivots = cholesky.eliminate(A[:10, 10:], np.diag(A)[10:])
    expected = np.diag(A)[10:] - np.einsum("ij,ij->j", A[:10, 10:], np.linalg.solve(A[:10, :10], A[:10, 10:]))
    np.testing.assert_allclose(pivots, expected, atol=1e-9)
    assert cholesky.independent(pivots, np.diag(A)[10:]).all()
    cholesky.append(halves[:, 3], pivots[3])
    index = [*taken, 13]
    np.testing.assert_allclose(cholesky.factor, np.linalg.cholesky(A[np.ix_(index, index)]), atol=1e-10)


def test_points_that_are_dropped_can_be_replaced():
    A = gram_matrix()
    cholesky, _ = grown(A[:10, :10])
    cholesky.keep(4)
    assert cholesky.add(A[:4, 12], A[12, 12])
    index = [0, 1, 2, 3, 12]
    np.testing.assert_allclose(cholesky.factor, np.linalg.cholesky(A[np.ix_(index, index)]), atol=1e-10)


def test_an_empty_factor_solves_nothing():
    cholesky = GrowingCholesky(1e-10)
    assert cholesky.solve(np.zeros((0, 3))).shape == (0, 3)
    halves, pivots = cholesky.eliminate(np.zeros((0, 2)), np.array([3.0, 4.0]))
    assert halves.shape == (0, 2)
    np.testing.assert_array_equal(pivots, [3.0, 4.0])
