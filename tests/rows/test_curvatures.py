"""Sums of curvature that follow the rows, against the plain sum; the compiled ones against those of any home."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm._core import core
from slimsvm.kernels import RBF
from slimsvm.rows import curvatures as module
from slimsvm.rows.curvatures import CompiledCurvatures, RunningCurvatures
from slimsvm.rows.host import HostRows
from slimsvm.rows.host_matrix import GaussianSums
from slimsvm.rows.threads import ThreadPool


def plain(K, residual, weights):
    """The sum of w d d' over the rows with a residual."""
    D = np.hstack([np.ones((K.shape[0], 1)), K])[residual != 0]
    return D.T @ (weights[residual != 0, None] * D)


def some_residual(rng, shape):
    return rng.normal(size=shape) * (rng.random(shape) < 0.7)


@pytest.mark.parametrize("kept", [0, module.KEPT_VALUES])
@pytest.mark.parametrize("few", [0, 512])
def test_a_running_sum_is_the_sum_over_the_rows_that_fall_short(few, kept):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, 60)
    growing = HostRows(RBF(0.5), X).against(X[:4])
    curvatures, residual = RunningCurvatures(growing, 3, few_rows=few, kept_values=kept), some_residual(rng, (2, 60))
    for size in (4, 4, 6, 9, 9):
        growing.append(X[growing.size : size])
        found = curvatures.at(np.array([2, 0]), residual, weights)
        expected = [plain(RBF(0.5)(X, X[:size]), line, weights) for line in residual]
        np.testing.assert_allclose(np.tril(found), np.tril(expected), rtol=1e-10)
        residual[:, rng.integers(60, size=4)] = rng.choice([0.0, 1.0], 4)


@pytest.mark.parametrize("columns", [1, 5, 17, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kept", [0, module.KEPT_VALUES])
def test_the_compiled_sums_are_the_plain_ones(columns, dtype, kept):
    rng = np.random.default_rng(columns)
    n = 1500  # several parts
    K, weights = rng.random((n, columns + 3)).astype(dtype)[:, :columns], rng.uniform(0.5, 2.0, n)
    alone, several = (CompiledCurvatures(K, 4, ThreadPool(count), kept_values=kept) for count in (1, 3))
    residual = some_residual(rng, (4, n))
    for changed in (0, 2, 300, n, 1, 0):
        residual[:, rng.choice(n, changed, replace=False)] *= rng.choice([0.0, 1.0], changed)
        some = rng.permutation(4)[:3]
        found = alone.at(some, residual[some], weights)
        expected = [plain(K.astype(float), line, weights) for line in residual[some]]
        close = 1e-5 if dtype == np.float32 else 1e-11
        np.testing.assert_allclose(np.tril(found), np.tril(expected), rtol=close, atol=close)
        np.testing.assert_array_equal(np.tril(found), np.tril(several.at(some, residual[some], weights)))


def test_all_rows_may_come_or_go_at_once():
    K, weights = np.random.default_rng(0).random((9, 2)).astype(np.float32), np.ones(9)
    curvatures = CompiledCurvatures(K, 1)
    for residual in (np.zeros((1, 9)), np.ones((1, 9)), np.zeros((1, 9))):
        found = curvatures.at(np.array([0]), residual, weights)
        np.testing.assert_allclose(np.tril(found[0]), np.tril(plain(K.astype(float), residual[0], weights)), rtol=1e-6)


@pytest.mark.parametrize("outputs", [[-1], [4], [0, 9]])
def test_sums_that_there_are_not_are_refused(outputs):
    curvatures = CompiledCurvatures(np.ones((5, 2), np.float32), 4)
    with pytest.raises(ValueError, match="of 4"):
        curvatures.at(np.array(outputs), np.ones((len(outputs), 5)), np.ones(5))


def lines_of(K):
    """The kernel values as a view of wider lines."""
    return np.hstack([K, K])[:, : K.shape[1]]


TEAM = (ThreadPool(3).helpers_for(float("inf"), 2)[0], 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outputs", [1, 7, 8, 9, 17])
@pytest.mark.parametrize("rows", [1, 3, 70])
def test_times_is_the_product(dtype, outputs, rows):
    rng = np.random.default_rng(outputs)
    K, V = lines_of(rng.random((rows, 21)).astype(dtype)), rng.normal(size=(21, outputs))
    out = np.empty((2, outputs, rows))
    core.times(K, np.ascontiguousarray(V.T, dtype), out[0], 8)
    np.testing.assert_allclose(out[0].T, K @ V, rtol=1e-5, atol=1e-5)
    for columns in core.OUTPUT_COLUMNS if dtype == np.float32 else ():
        groups = -(-outputs // columns)
        full = np.zeros((21, groups * columns), np.float32)
        full[:, :outputs] = V
        core.times(K, np.ascontiguousarray(full.reshape(21, groups, -1).transpose(1, 0, 2)), out[1], 8, *TEAM)
        np.testing.assert_allclose(out[1].T, K @ V, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_back_is_the_product(share, dtype):
    rng = np.random.default_rng(0)
    K, W = lines_of(rng.random((3000, 7)).astype(dtype)), some_residual(rng, (4, 3000)) * (rng.random((4, 3000)) < share)
    alone, several = np.full((2, 4, 7), np.nan)
    core.back(K, W, alone)
    core.back(K, W, several, *TEAM)
    np.testing.assert_allclose(alone, W @ K.astype(float), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(alone, several)


@pytest.mark.parametrize("outputs", [1, 2, 26])
@pytest.mark.parametrize("share", [0.05, 1.0])
def test_a_handle_multiplies_with_any_number_of_outputs(outputs, share):
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(900, 4)), rng.normal(size=(900, outputs)) * (rng.random((900, outputs)) < share)
    against, V = HostRows(RBF(0.5), X).against(X[:20]), rng.normal(size=(20, outputs))
    K = RBF(0.5)(X, X[:20])
    np.testing.assert_allclose(against.times(V), K @ V, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(against.back(W), K.T @ W, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("q", "m", "d"), [(1, 3, 5), (3, 70, 20), (9, 20, 70)])
def test_sums_of_a_gradient_are_the_plain_ones(dtype, form, q, m, d):
    rng, n = np.random.default_rng(q), 900
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)).astype(dtype)
    K, V, squares, pulls = (rng.random(shape).astype(dtype) for shape in ((n, m), (m, q), d, m))
    W = some_residual(rng, (n, q)) * (rng.random((n, 1)) < 0.8)
    found = []
    for count in (1, 3):
        pool = ThreadPool(count)
        pool.helpers_for = lambda _, *__, plain=pool.helpers_for: plain(float("inf"), 2)
        found.append(GaussianSums(form(X), lines_of(K), W, V, squares, pulls, pool))
    A, P = X.astype(float), K * (W @ V.T)
    wanted = {"of_rows": P.T @ A, "of_norms": P.T @ (A**2 @ squares), "of_ones": P.sum(axis=0)}
    for name, plain_sum in wanted.items():
        one, other = (getattr(sums, name) for sums in found)
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose((found[0].scale * one.T).T, plain_sum, rtol=1e-4, atol=2e-3)
    np.testing.assert_allclose(found[0].spread, (A**2).T @ (P @ pulls), rtol=1e-4, atol=1e-2)


def test_factors_are_those_of_numpy():
    rng = np.random.default_rng(0)
    A, R = rng.normal(size=(3, 9, 30)), 0.1 * np.eye(9)
    H, found = A @ A.transpose(0, 2, 1), np.empty((2, 9, 9))
    assert core.factor_sums(H, np.array([2, 0]), R, 1e-14, 100.0, found, *TEAM)
    np.testing.assert_allclose(found, np.linalg.cholesky(H[[2, 0]] + R), atol=1e-9)
    H[0, 3, 3] = np.nan
    assert not core.factor_sums(H, np.array([0]), R, 1e-14, 100.0, found[:1])


def arguments(name):
    """What each function takes."""
    K, W = np.ones((5, 2), np.float32), np.ones((1, 5))
    sums = {
        "outputs": np.array([1]),
        "residual": W,
        "active": np.zeros((2, 5), np.uint8),
        "known": np.zeros(2, np.uint8),
        "values": np.zeros((2, 3, 3)),
    }
    return {
        "times": {"K": K, "V": np.ones((1, 2), np.float32), "out": np.empty((1, 5)), "strip": 2},
        "back": {"K": K, "W": W, "out": np.empty((1, 2))},
        "update_curvatures": {"K": K, "weights": np.ones(5)}
        | sums
        | {"lists": np.zeros((1, 5), np.intp), "counts": np.zeros((2, 1), np.intp)},
        "factor_sums": {
            "values": np.ones((2, 3, 3)),
            "outputs": np.array([1]),
            "R": np.eye(3),
            "share": 1e-14,
            "more": 10.0,
            "factors": np.empty((1, 3, 3)),
        },
        "solve_factored": {"factors": [np.ones((3, 3))], "right": np.ones((1, 3))},
        "backward": {
            "K": K,
            "rows": np.ones((5, 3), np.float32),
            "W": W,
            "V": None,
            "squares": np.ones(3, np.float32),
            "pulls": np.ones(core.PANEL, np.float32),
            "out": np.zeros(2 * 5 + 3),
        },
    }[name]


FUNCTIONS = ("times", "back", "update_curvatures", "factor_sums", "solve_factored", "backward")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays_that_do_not_fit_are_refused(name):
    function = getattr(core, name)
    function(**arguments(name))
    for key, value in arguments(name).items():
        if isinstance(value, np.ndarray):
            wider = np.concatenate([value, value], axis=-1)
            wrong = [None, value.astype(np.complex128), wider, value[:0], value[..., :0]]
            if (name, key) != ("factor_sums", "values"):  # further sums are not used
                wrong.append(np.concatenate([value, value]))
            for other in wrong:
                with pytest.raises((ValueError, TypeError, AttributeError)):
                    function(**arguments(name) | {key: other})


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("times", {"K": np.ones((5, 2), np.float32, order="F")}),
        ("times", {"V": np.ones((1, 2, 7), np.float32)}),
        ("times", {"V": np.ones((1, 2, 8), np.float32), "out": np.empty((9, 5))}),
        ("times", {"strip": 0}),
        ("update_curvatures", {"outputs": np.array([2])}),
        ("update_curvatures", {"outputs": np.array([-1])}),
        ("factor_sums", {"outputs": np.array([2])}),
        ("solve_factored", {"factors": [np.ones((3, 3), np.float32)]}),
        ("solve_factored", {"factors": [np.ones((3, 2))]}),
        ("backward", {"W": np.ones((1, 10))[:, ::2]}),
        ("backward", {"W": np.ones((2, 5)), "out": np.zeros(13)}),
        ("backward", {"rows": (np.ones(2, np.float32), np.zeros(2, np.int32), np.array([0, 1, 3, 2, 2, 2], np.int32))}),
    ],
)
def test_sizes_that_do_not_fit_are_refused(name, changed):
    with pytest.raises((ValueError, TypeError)):
        getattr(core, name)(**arguments(name) | changed)


def test_no_output_is_asked_for():
    none = {"outputs": np.empty(0, np.intp), "residual": np.empty((0, 5)), "lists": np.empty((0, 5), np.intp)}
    given = arguments("update_curvatures") | none | {"counts": np.empty((2, 0), np.intp)}
    given["values"][:] = 7.0
    core.update_curvatures(**given)
    assert (given["values"] == 7.0).all()
    core.solve_factored([], np.ones((0, 3)))
