"""Factors of definite matrices, on the host and on a device, against NumPy's solver."""

import numpy as np
import pytest

from slimsvm.kernels import RBF
from slimsvm.rows.array_matrix import DeviceCurvatures, DeviceFactor, factor_on_device
from slimsvm.rows.backends import open_strict
from slimsvm.rows.curvatures import HostFactor, RunningCurvatures, factor_definite
from slimsvm.rows.homes import open_rows
from slimsvm.rows.host import HostRows


def there(H, R):
    """The factor of H + R on a device."""
    on = open_strict("array_api_strict")
    return factor_on_device(on, on.send(H + R, np.float64))


FACTORS = [pytest.param(factor_definite, id="host"), pytest.param(there, id="device", marks=pytest.mark.strict_arrays)]


def definite_matrix(size, seed=0):
    A = np.random.default_rng(seed).normal(size=(size, 2 * size))
    return A @ A.T


@pytest.mark.parametrize("factored", FACTORS)
@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_factors_solve_their_systems(factored, size):
    H, R, right = definite_matrix(size), definite_matrix(size, 1), np.random.default_rng(2).normal(size=size)
    factor = factored(H, R)
    assert factor.size == size
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(H + R, right), rtol=1e-6)


def test_the_host_reads_lower_triangles_alone():
    H, R = definite_matrix(7), definite_matrix(7, 1)
    lower = factor_definite(np.tril(H), np.tril(R)).lower
    np.testing.assert_allclose(lower @ lower.T, H + R, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("factored", FACTORS)
def test_a_matrix_a_little_short_of_definite_has_a_ridge(factored):
    line = np.array([1.0, 2.0, 3.0, 1e8])
    H = np.outer(line, line) - 1e-3 * np.eye(4)  # rounding may leave eigenvalues a little below 0
    right = np.ones(4)
    found = factored(H, np.zeros((4, 4))).solve(right)
    assert np.isfinite(found).all()
    assert found @ right > 0  # a definite matrix


@pytest.mark.parametrize("factored", FACTORS)
def test_a_matrix_of_zeros_has_a_factor(factored):
    assert np.isfinite(factored(np.zeros((3, 3)), np.zeros((3, 3))).solve(np.ones(3))).all()


@pytest.mark.parametrize("factored", FACTORS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_is_refused_not_waited_for(factored, wrong):
    with pytest.raises(ValueError, match="scale the features"):
        factored(np.array([[1.0, wrong], [wrong, wrong]]), np.eye(2))


def test_a_factor_of_another_size_is_refused():
    with pytest.raises(ValueError, match="3"):
        HostFactor(np.eye(3)).solve(np.ones(2))
    assert HostFactor(np.empty((0, 0))).solve(np.empty(0)).shape == (0,)


@pytest.mark.strict_arrays
@pytest.mark.parametrize("large", [1, 512])
def test_systems_of_a_device_are_those_of_the_host(large):
    rng = np.random.default_rng(0)
    X, weights, right = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, 60), rng.normal(size=10)
    handles = [HostRows(RBF(0.5), X).against(X[:4]), open_rows(RBF(0.5), X, device="array_api_strict").against(X[:4])]
    there = DeviceCurvatures(handles[1], 2, large_system=large, few_rows=0)
    curvatures = [RunningCurvatures(handles[0], 2, few_rows=0), there]
    residual = rng.normal(size=(2, 60)) * (rng.random((2, 60)) < 0.7)
    for size in (4, 4, 6, 9):
        for handle in handles:
            handle.append(X[handle.size : size])
        R = 0.1 * np.eye(size + 1)
        wanted = [each.factors(np.array([1, 0]), residual, weights, R) for each in curvatures]
        for host, device in zip(*wanted, strict=True):
            assert isinstance(device, DeviceFactor if large == 1 else HostFactor)
            np.testing.assert_allclose(device.solve(right[: size + 1]), host.solve(right[: size + 1]), rtol=1e-8)
        residual[:, rng.integers(60, size=4)] = rng.choice([0.0, 1.0], 4)
