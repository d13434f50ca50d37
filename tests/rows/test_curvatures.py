"""Sums of curvature that follow the rows, against the plain sum; the compiled ones against those of any home."""

import numpy as np
import pytest

from slimsvm._core import core
from slimsvm.kernels import RBF
from slimsvm.rows import curvatures as module
from slimsvm.rows.curvatures import CompiledCurvatures, RunningCurvatures, ssyrk
from slimsvm.rows.host import HostRows


def plain(K, residual, weights):
    """The sum of w d d' over the rows with a residual."""
    D = np.hstack([np.ones((K.shape[0], 1)), K])[residual != 0]
    return D.T @ (weights[residual != 0, None] * D)


def some_residual(rng, shape):
    return rng.normal(size=shape) * (rng.random(shape) < 0.7)


@pytest.mark.parametrize("few", [0, 512])
def test_a_running_sum_is_the_sum_over_the_rows_that_fall_short(few, monkeypatch):
    monkeypatch.setattr(module, "FEW_ROWS", few)
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, 60)
    growing = HostRows(RBF(0.5), X).against(X[:4])
    curvatures, residual = RunningCurvatures(growing, 3), some_residual(rng, (2, 60))
    for size in (4, 4, 6, 9, 9):
        growing.append(X[growing.size : size])
        found = curvatures.at(np.array([2, 0]), residual, weights)
        expected = [plain(RBF(0.5)(X, X[:size]), line, weights) for line in residual]
        np.testing.assert_allclose(np.tril(found), np.tril(expected), rtol=1e-10)
        residual[:, rng.integers(60, size=4)] = rng.choice([0.0, 1.0], 4)


@pytest.mark.parametrize("columns", [1, 5, 17])
@pytest.mark.parametrize("line_values", [1, 64, module.LINE_VALUES])
def test_the_compiled_sums_are_the_plain_ones(columns, line_values, monkeypatch):
    monkeypatch.setattr(module, "LINE_VALUES", line_values)
    rng = np.random.default_rng(columns)
    wide = rng.random((50, columns + 3)).astype(np.float32)
    K, weights = wide[:, :columns], rng.uniform(0.5, 2.0, 50)
    curvatures, residual = CompiledCurvatures(K, 4), some_residual(rng, (4, 50))
    for changed in (0, 2, 3, 50, 1, 0):
        residual[:, rng.choice(50, changed, replace=False)] *= rng.choice([0.0, 1.0], changed)
        some = rng.permutation(4)[:3]
        found = curvatures.at(some, residual[some], weights)
        expected = [plain(K.astype(float), line, weights) for line in residual[some]]
        np.testing.assert_allclose(np.tril(found), np.tril(expected), rtol=1e-5, atol=1e-4)


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


def update_one(function, space):
    """One sum of five rows and two points, with work space for so many numbers."""
    K, work = np.ones((5, 2), np.float32), (np.zeros(5, np.intp), np.zeros(space, np.float32))
    sums = np.zeros((1, 5), np.uint8), np.zeros(1, np.uint8), np.zeros((1, 3, 3))
    core.update_curvatures(function, K, np.ones(5), np.array([0]), np.ones((1, 5)), *sums, *work)


def test_only_the_function_that_is_meant_is_called():
    from scipy.linalg import cython_blas

    assert core.knows_ssyrk(ssyrk())
    other = cython_blas.__pyx_capi__["dsyrk"]
    assert not core.knows_ssyrk(other)
    K = np.ones((5, 2), np.float32)
    state = (
        np.zeros((1, 5), np.uint8),
        np.zeros(1, np.uint8),
        np.zeros((1, 3, 3)),
        np.zeros(5, np.intp),
        np.zeros(99, np.float32),
    )
    with pytest.raises(ValueError, match="not a ssyrk"):
        core.update_curvatures(other, K, np.ones(5), np.array([0]), np.ones((1, 5)), *state)


def test_work_space_that_is_too_small_is_refused():
    K = np.ones((5, 2), np.float32)
    state = (
        np.zeros((1, 5), np.uint8),
        np.zeros(1, np.uint8),
        np.zeros((1, 3, 3)),
        np.zeros(5, np.intp),
        np.zeros(11, np.float32),
    )
    with pytest.raises(ValueError, match="work space of 11 numbers for 2 points"):
        core.update_curvatures(ssyrk(), K, np.ones(5), np.array([0]), np.ones((1, 5)), *state)


@pytest.mark.parametrize("outputs", [1, 2, 15, 16, 17, 33])
@pytest.mark.parametrize("rows", [1, 3, 4, 70])
def test_times_is_the_product(outputs, rows):
    rng = np.random.default_rng(outputs)
    K, V = rng.random((rows, 9)).astype(np.float32)[:, :7], rng.normal(size=(7, outputs))
    groups = -(-outputs // core.OUTPUT_COLUMNS)
    padded = np.zeros((7, groups * core.OUTPUT_COLUMNS), np.float32)
    padded[:, :outputs] = V
    weights = np.ascontiguousarray(padded.reshape(7, groups, -1).transpose(1, 0, 2))
    out = np.empty((outputs, rows + 5))[:, 2 : rows + 2]
    core.times(K, weights, out)
    np.testing.assert_allclose(out.T, K @ V, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_back_is_the_product(share):
    rng = np.random.default_rng(0)
    K = rng.random((300, 9)).astype(np.float32)[:, :7]
    W = (rng.normal(size=(4, 310)) * (rng.random((4, 310)) < share))[:, 5:305]
    out = np.full((4, 7), np.nan)
    core.back(K, W, np.empty(7, np.float32), out)
    np.testing.assert_allclose(out, W @ K.astype(float), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("outputs", [1, 2, 26])
@pytest.mark.parametrize("share", [0.05, 1.0])
def test_a_handle_multiplies_with_any_number_of_outputs(outputs, share):
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(900, 4)), rng.normal(size=(900, outputs)) * (rng.random((900, outputs)) < share)
    against, V = HostRows(RBF(0.5), X).against(X[:20]), rng.normal(size=(20, outputs))
    K = RBF(0.5)(X, X[:20])
    np.testing.assert_allclose(against.times(V), K @ V, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(against.back(W), K.T @ W, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("K", "V", "out"),
    [
        (np.ones((3, 2), np.float32), np.ones((1, 4, 16), np.float32), np.empty((1, 3))),
        (np.ones((3, 2), np.float32), np.ones((1, 2, 8), np.float32), np.empty((1, 3))),
        (np.ones((3, 2), np.float32), np.ones((1, 2, 16), np.float32), np.empty((17, 3))),
        (np.ones((3, 2), np.float32), np.ones((1, 2, 16), np.float32), np.empty((1, 4))),
        (np.ones((3, 2), np.float32, order="F"), np.ones((1, 2, 16), np.float32), np.empty((1, 3))),
        (np.ones((0, 2), np.float32), np.ones((1, 2, 16), np.float32), np.empty((1, 0))),
        (np.ones((3, 2), np.float32), np.ones((1, 2, 16), np.float32), np.empty((2, 3), order="F")),
    ],
)
def test_sizes_that_do_not_fit_are_refused(K, V, out):
    with pytest.raises(ValueError, match=r"\d"):
        core.times(K, V, out)
