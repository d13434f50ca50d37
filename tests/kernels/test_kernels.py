"""Each kernel against its formula in a double loop, and what each refuses."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.svm import SVC

from slimsvm.kernels import (
    KERNELS,
    RBF,
    Custom,
    InnerKernel,
    Linear,
    Poly,
    Precomputed,
    inner_products,
    make_kernel,
    resolve_gamma,
    squared_norms,
)
from slimsvm.model import Expansion


def test_a_kernel_equals_its_formula(kernel_name, make_case):
    case = make_case(kernel_name)
    rows, columns = np.arange(15), np.array([3, 0, 7, 22])
    K = case.kernel(case.X[rows], case.points(columns))
    assert K.shape == (15, 4)
    np.testing.assert_allclose(K, case.K[np.ix_(rows, columns)], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sparse", [csr_array, csr_matrix])
@pytest.mark.parametrize("density", [1.0, 0.15, 0.0])
def test_sparse_and_dense_rows_have_the_same_values(kernel_name, make_case, sparse, density):
    case = make_case(kernel_name, density=density)
    points = case.points(np.arange(4))
    K = case.kernel(case.X, points)
    held = points if kernel_name == "precomputed" else sparse(points)
    for A, B in ((sparse(case.X), held), (sparse(case.X), points), (case.X, held)):
        values = case.kernel(A, B)
        assert type(values) is np.ndarray
        np.testing.assert_allclose(values, K, rtol=1e-12, atol=1e-12)


def test_float32_rows_have_the_same_values_to_their_precision(kernel_name, make_case):
    case = make_case(kernel_name)
    points = case.points(np.arange(4))
    held = points if kernel_name == "precomputed" else points.astype(np.float32)
    np.testing.assert_allclose(case.kernel(case.X.astype(np.float32), held), case.K[:, :4], rtol=1e-5, atol=1e-5)


def test_the_rows_given_are_left_unchanged(kernel_name, make_case, form):
    case = make_case(kernel_name)
    X = form(case.X)
    case.kernel(X, case.points(np.arange(4)))
    case.kernel.diagonal(X, np.arange(case.n))
    np.testing.assert_array_equal(X.toarray() if form is csr_array else X, make_case(kernel_name).X)


def test_the_diagonal_is_the_value_of_each_row_with_itself(kernel_name, make_case, form):
    case = make_case(kernel_name)
    some = np.array([4, 1, 20])
    np.testing.assert_allclose(case.kernel.diagonal(form(case.X), np.arange(case.n)), np.diag(case.K), rtol=1e-12)
    np.testing.assert_allclose(case.kernel.diagonal(form(case.X)[some], some), np.diag(case.K)[some], rtol=1e-12)


def test_translation_invariant_kernels_are_that(kernel_name, make_case):
    case = make_case(kernel_name)
    if kernel_name == "precomputed":
        assert not case.kernel.translation_invariant
        return
    moved = case.kernel(case.X + 0.5, case.X + 0.5)
    assert np.allclose(moved, case.K) == case.kernel.translation_invariant


def test_amplification_bounds_the_slope_in_the_inner_product(kernel_name, make_case):
    """An inner product that is off by e times the largest one moves the value by e times the amplification at most."""
    case = make_case(kernel_name)
    if not isinstance(case.kernel, InnerKernel):
        return
    a = squared_norms(case.X)
    G, e = case.X @ case.X.T, 1e-7
    for sign in (-1, 1):
        moved = case.kernel.tail(G + sign * e * a.max(), a, a)
        assert np.abs(moved - case.K).max() <= e * case.kernel.amplification(a.max()) * (1 + 1e-3)


@pytest.mark.parametrize("degree", [*range(6), 7, 12, 31])
def test_poly_of_any_degree_is_a_power(degree):
    A = np.random.default_rng(1).normal(size=(7, 4))
    kernel = Poly(0.7, -0.2, degree)
    np.testing.assert_allclose(kernel(A, A), (0.7 * A @ A.T - 0.2) ** degree, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(A, np.arange(7)), np.diag(kernel(A, A)), rtol=1e-12, atol=1e-14)


def test_rbf_never_exceeds_one_by_rounding():
    A = np.random.default_rng(2).normal(size=(50, 3)) + 1e6
    assert RBF(10.0)(A, A).max() <= 1.0


def test_chi2_of_features_that_are_both_zero_is_one():
    zeros = np.zeros((2, 3))
    np.testing.assert_array_equal(make_kernel("chi2", gamma=1.0, degree=3, coef0=0.0)(zeros, zeros), np.ones((2, 2)))


def test_inner_products_and_norms_are_the_plain_ones(form):
    A = np.random.default_rng(3).normal(size=(6, 4))
    np.testing.assert_allclose(inner_products(form(A), form(A)), A @ A.T)
    np.testing.assert_allclose(squared_norms(form(A)), (A**2).sum(axis=1))


@pytest.mark.parametrize(
    "form",
    [np.asarray, csr_array],
)
def test_squared_norms_of_float32_rows_are_summed_in_float64(form):
    A = np.random.default_rng(4).random((5, 4000)).astype(np.float32)
    exact = (A.astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(squared_norms(form(A)), exact, rtol=1e-12)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.25])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_gamma_is_scikit_learns(gamma, load, form):
    X = form(load().data[:60])
    svc = SVC(gamma=gamma).fit(X, np.arange(60) % 2)
    assert resolve_gamma(gamma, X) == (pytest.approx(svc._gamma, rel=1e-9) if issparse(X) else svc._gamma)


def test_gamma_scale_of_constant_rows_is_one(form):
    X = np.full((5, 2), 3.0)
    assert resolve_gamma("scale", form(X)) == SVC().fit(X, [0, 1, 0, 1, 0])._gamma == 1.0


@given(weights=st.lists(st.integers(0, 5), min_size=4, max_size=12).filter(any), sparse=st.booleans())
def test_weighted_gamma_is_that_of_repeated_rows(weights, sparse):
    X = np.random.default_rng(5).normal(size=(len(weights), 3)) + 2.0
    form = csr_array if sparse else np.asarray
    repeated = np.repeat(X, weights, axis=0)
    weighted = resolve_gamma("scale", form(X), np.array(weights, dtype=float))
    assert weighted == pytest.approx(resolve_gamma("scale", form(repeated)), rel=1e-9)


def test_gamma_keeps_its_digits_far_from_the_origin():
    X = np.random.default_rng(6).normal(size=(200, 1))
    assert resolve_gamma("scale", X + 1e7) == pytest.approx(resolve_gamma("scale", X), rel=1e-6)


@pytest.mark.parametrize("gamma", [0, 0.0, -1.0, np.nan, np.inf, "wide"])
def test_a_gamma_that_is_no_width_is_refused(gamma):
    with pytest.raises(ValueError, match=r"'scale', 'auto' or a number above 0"):
        resolve_gamma(gamma, np.ones((2, 2)))


def test_an_unknown_kernel_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="unknown kernel 'rbg'") as caught:
        make_kernel("rbg", gamma=1.0, degree=3, coef0=0.0)
    assert all(name in str(caught.value) for name in KERNELS)


def test_make_kernel_passes_on_the_parameters_that_a_kernel_has(kernel_name):
    kernel = make_kernel(kernel_name, gamma=0.1, degree=4, coef0=2.0)
    assert type(kernel) is KERNELS[kernel_name]
    assert kernel.name == kernel_name
    for name, value in {"gamma": 0.1, "degree": 4, "coef0": 2.0}.items():
        assert getattr(kernel, name, value) == value


def test_chi2_refuses_negative_features_and_names_the_smallest(form):
    kernel = make_kernel("chi2", gamma=1.0, degree=3, coef0=0.0)
    kernel.check_rows(form(np.eye(3)))
    with pytest.raises(ValueError, match=r"smallest is -2\.5"):
        kernel.check_rows(form(np.array([[1.0, -2.5]])))


def test_a_function_of_rows_is_a_kernel(form):
    X = form(np.random.default_rng(7).normal(size=(5, 2)))
    kernel = make_kernel(inner_products, gamma=1.0, degree=3, coef0=0.0)
    assert isinstance(kernel, Custom)
    np.testing.assert_allclose(kernel(X, X[:2]), Linear()(X, X[:2]))
    np.testing.assert_allclose(kernel.diagonal(X, np.arange(5)), Linear().diagonal(X, np.arange(5)))


@pytest.mark.parametrize("wrong", [lambda A, B: A @ B.T[:, :1], lambda A, B: (A @ B.T).ravel(), lambda A, B: 1.0])  # noqa: ARG005
def test_a_function_with_values_of_another_shape_is_refused(wrong):
    with pytest.raises(ValueError, match=r"it must return \(4, 3\)"):
        Custom(wrong)(np.ones((4, 2)), np.ones((3, 2)))


def test_a_precomputed_matrix_must_be_square(form):
    Precomputed().check_rows(form(np.eye(3)))
    with pytest.raises(ValueError, match=r"3 x 2"):
        Precomputed().check_rows(form(np.ones((3, 2))))


def test_precomputed_points_are_column_numbers():
    points = Precomputed().points(np.ones((2, 9)), np.array([7, 3]))
    np.testing.assert_array_equal(points, [[7], [3]])
    S = np.random.default_rng(8).random((4, 9))
    np.testing.assert_array_equal(Precomputed()(S, points), S[:, [7, 3]])


@pytest.mark.parametrize("degree", [2**62, 2**62 + 1])
def test_poly_of_an_endless_degree_ends(degree):
    G = np.array([[1.0, -1.0, 0.5]])
    np.testing.assert_array_equal(Poly(1.0, 0.0, degree).tail(G.copy(), G, G), [[1.0, (-1.0) ** (degree % 2), 0.0]])


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_poly_of_a_small_degree_has_the_bits_of_repeated_products(degree):
    G = np.random.default_rng(0).normal(size=(40, 30))
    expected = np.ones_like(G)
    for _ in range(degree):
        expected = expected * G
    np.testing.assert_array_equal(Poly(1.0, 0.0, degree).tail(G.copy(), G, G), expected)


@pytest.mark.parametrize("degree", [40, 2**62])
def test_amplification_beyond_float64_is_infinite(degree):
    assert Poly(1.0, 0.0, degree).amplification(1e8) == np.inf


@pytest.mark.parametrize("n", [1, 4000], ids=["small batch", "large batch"])
def test_chi2_refuses_negative_rows_in_batches_of_every_size(n):
    X = np.random.default_rng(0).random((n, 9))
    model = Expansion(KERNELS["chi2"](1.0), np.ones((200, 9)), np.ones((200, 1)), np.zeros(1))
    model(X)
    X[-1, -1] = -0.1
    with pytest.raises(ValueError, match=r"[Nn]egative values"):
        model(X)


def test_sums_over_sparse_rows_take_no_memory_for_columns_without_entries():
    X = csr_array((np.array([3.0, 4.0, 1.0], np.float32), ([0, 0, 2], [1, 2**31 - 2, 5])), shape=(3, 2**31 - 1))
    tracemalloc.start()
    norms, gamma = squared_norms(X), resolve_gamma("scale", X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert norms.tolist() == [25.0, 0.0, 1.0]
    assert gamma == pytest.approx(3 / 26, rel=1e-6)
    assert peak < 1 << 20
