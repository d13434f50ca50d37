"""What the basis methods share: rows in proportion, a kernel as a norm, models on the first few points."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from slimsvm.kernels import RBF
from slimsvm.limits import Deadline
from slimsvm.rows.base import means
from slimsvm.run import Run
from slimsvm.solvers.basis import bordered, check_C, kernel_norm, nested_models, proportional_rows


def test_any_first_few_rows_have_the_classes_in_proportion():
    classes = np.repeat([0, 1, 2], [60, 30, 10])
    rows = proportional_rows(classes, 100, np.random.default_rng(0))
    assert sorted(rows) == list(range(100))
    for count in range(1, 101):
        had = np.bincount(classes[rows[:count]], minlength=3)
        assert np.abs(had - count * np.array([0.6, 0.3, 0.1])).max() <= 1


def test_rows_are_drawn_by_chance_and_the_same_for_a_seed():
    groups = np.zeros(50, dtype=int)
    first, again, other = (proportional_rows(groups, 10, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)


def test_the_norm_of_a_positive_kernel_is_the_kernel():
    K = RBF(0.5)(*2 * [np.random.default_rng(0).normal(size=(8, 2))])
    np.testing.assert_allclose(kernel_norm(K), K, atol=1e-12)


def test_the_norm_of_any_symmetric_matrix_is_its_absolute_value():
    A = np.random.default_rng(0).normal(size=(6, 6))
    norm = kernel_norm(A + A.T)
    assert np.linalg.eigvalsh(norm).min() >= 0
    np.testing.assert_allclose(norm @ norm, (A + A.T) @ (A + A.T), atol=1e-10)


def test_the_bias_comes_first():
    np.testing.assert_array_equal(bordered(np.array([[2.0, 1.0], [1.0, 3.0]]), 5.0), [[5, 0, 0], [0, 2, 1], [0, 1, 3]])


@pytest.mark.parametrize("C", [0.0, -1.0, float("nan"), float("inf")])
def test_a_cost_is_a_number_above_0(C):
    with pytest.raises(ValueError, match="C must be a number above 0"):
        check_C(C)


def test_sizes_end_with_the_points(make_blobs, make_task):
    X, y = make_blobs(30)
    task = make_task(RBF(0.5), X, y)
    models = nested_models(task, X[:5], task.rows.against(X[:5]), np.eye(6), [1, 3, 8, 20])
    assert [model.size for model in models] == [1, 3, 5]


def test_when_time_is_up_there_is_one_model(make_blobs, make_task):
    X, y = make_blobs(30)
    task = make_task(RBF(0.5), X, y)
    task = replace(task, run=Run(deadline=Deadline(1e-9)))
    models = nested_models(task, X[:5], task.rows.against(X[:5]), np.eye(6), [2, 3, 5])
    assert [model.size for model in models] == [2]


@pytest.mark.parametrize("most", [0, 1000])
def test_sparse_rows_of_long_indices_have_the_means_of_dense_ones(most, make_blobs):
    X = make_blobs(n=60, distance=8)[0]
    sparse = csr_array(X)
    long = csr_array((sparse.data, sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)), sparse.shape)
    one, two = (means(rows, 2, 50, np.random.default_rng(0), written_out=most) for rows in (X, long))
    np.testing.assert_allclose(one[one[:, 0].argsort()], two[two[:, 0].argsort()], atol=1e-6)


def test_means_are_the_same_for_any_number_of_threads(make_blobs):
    X = make_blobs(n=2000)[0]
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(means(X, 8, 20, np.random.default_rng(0)))
    np.testing.assert_array_equal(*found)
