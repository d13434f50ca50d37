"""The point closest to a vector of the kernel's space: gradients by differences, and climbs that end on top."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from slimsvm.kernels import RBF, Laplacian, Linear, Poly, Sigmoid
from slimsvm.rows.host import HostRows
from slimsvm.solvers.residual import Residual

KERNELS = [RBF(0.4), Linear(), Poly(0.3, 1.0, 3), Sigmoid(0.1, 0.2), Laplacian(0.3)]


def residual(kernel, form=np.asarray, q=2, seed=0):
    rng = np.random.default_rng(seed)
    X, points = rng.normal(size=(50, 4)) + 1.0, rng.normal(size=(3, 4)) + 1.0
    return Residual(HostRows(kernel, form(X)), rng.normal(size=(50, q)), points, rng.normal(size=(3, q)))


def plain_gain(r, z, kernel):
    X = r.gram.X.toarray() if hasattr(r.gram.X, "toarray") else r.gram.X
    inner = r.A.T @ kernel(X, z[None]) - r.B.T @ kernel(r.points, z[None])
    return float(np.square(inner).sum() / kernel(z[None], z[None])[0, 0])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_gains_and_gradients_are_those_of_the_formula(kernel, form):
    r = residual(kernel, form)
    Z = np.random.default_rng(1).normal(size=(3, 4)) + 1.0
    np.testing.assert_allclose(r.gains(Z), [plain_gain(r, z, kernel) for z in Z], rtol=1e-9)
    for z in Z:
        slope = approx_fprime(z, plain_gain_of(r, kernel), 1e-7)
        np.testing.assert_allclose(-r._loss(z, 1.0)[1], slope, rtol=1e-4, atol=1e-4 * np.abs(slope).max())


def plain_gain_of(r, kernel):
    return lambda z: plain_gain(r, z, kernel)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_climb_ends_higher_than_it_began(kernel):
    r = residual(kernel)
    Z = np.random.default_rng(2).normal(size=(4, 4)) + 1.0
    top = r.climb(Z, 30)
    assert top.shape == (1, 4)
    assert r.gains(top)[0] > r.gains(Z).max() * (1 - 1e-12)


def test_a_long_fixed_point_iteration_ends_where_the_gradient_is_zero():
    kernel = RBF(0.4)
    r = residual(kernel)
    r.A = np.abs(r.A)  # a mean of rows with weights of one sign: the iteration is a mean shift and cannot overshoot
    r.B = np.zeros_like(r.B)
    top = r.climb(r.gram.X[:1], 500)
    for _ in range(20):
        top = r.climb(top, 500)  # each stops when a step gains little
    S, slope = r.slopes(top)
    assert np.abs(slope).max() <= 0.05 * S[0]


def test_the_best_point_for_the_linear_kernel_is_the_vector_itself():
    r = residual(Linear(), q=1)
    vector = (r.A.T @ r.gram.X - r.B.T @ r.points).ravel()
    z = r.climb(r.gram.X[:1], 200).ravel()
    cosine = z @ vector / np.linalg.norm(z) / np.linalg.norm(vector)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-4)


def test_points_far_from_all_rows_stay_finite():
    r = residual(RBF(0.4))
    assert np.isfinite(r.climb(np.full((1, 4), 1e3), 5)).all()


def test_where_an_indefinite_kernel_has_no_length_there_is_no_gain():
    r = residual(Sigmoid(0.1, -5.0))
    assert (r.gains(r.gram.X) == 0).all()
    assert np.isfinite(r.climb(r.gram.X[:2], 5)).all()


@pytest.mark.usefixtures("float32_always")
def test_sparse_rows_and_float32_climb_to_the_same_point():
    kernel = RBF(0.4)
    rng = np.random.default_rng(5)
    X = rng.random((60, 8)) * (rng.random((60, 8)) < 0.15)
    A, points, B = rng.normal(size=(60, 1)), X[:2], rng.normal(size=(2, 1))
    tops = [Residual(HostRows(kernel, form(X)), A, points, B).climb(X[5:7], 5) for form in (np.asarray, csr_array)]
    np.testing.assert_allclose(tops[0], tops[1], atol=1e-4)
