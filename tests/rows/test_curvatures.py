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


@pytest.mark.parametrize("columns", [1, 5, 17])
@pytest.mark.parametrize(
    ("line_values", "kept"), [(1, module.KEPT_VALUES), (64, module.KEPT_VALUES), (module.LINE_VALUES, 0)]
)
def test_the_compiled_sums_are_the_plain_ones(columns, line_values, kept):
    rng = np.random.default_rng(columns)
    wide = rng.random((50, columns + 3)).astype(np.float32)
    K, weights = wide[:, :columns], rng.uniform(0.5, 2.0, 50)
    curvatures, residual = CompiledCurvatures(K, 4, kept_values=kept, line_values=line_values), some_residual(rng, (4, 50))
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
    with pytest.raises(ValueError, match="not a ssyrk"):
        core.update_curvatures(**curvature_arguments(ssyrk=other))


def test_work_space_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match="work space of 11 numbers for 2 points"):
        core.update_curvatures(**curvature_arguments(space=np.zeros(11, np.float32)))


@pytest.mark.parametrize("columns", core.OUTPUT_COLUMNS)
@pytest.mark.parametrize("outputs", [1, 7, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("rows", [1, 3, 8, 70])
def test_times_is_the_product(columns, outputs, rows):
    rng = np.random.default_rng(outputs)
    K, V = rng.random((rows, 9)).astype(np.float32)[:, :7], rng.normal(size=(7, outputs))
    groups = -(-outputs // columns)
    padded = np.zeros((7, groups * columns), np.float32)
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
        (np.ones((3, 2), np.float32), np.ones((1, 2, 7), np.float32), np.empty((1, 3))),
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


FLOATS = {"K": np.ones((3, 2), np.float32), "V": np.ones((1, 2, 16), np.float32), "out": np.empty((1, 3))}


@pytest.mark.parametrize("name", FLOATS)
def test_products_take_float32_kernel_values_and_nothing_else(name):
    wrong = FLOATS | {name: FLOATS[name].astype(np.int32)}
    with pytest.raises(ValueError, match="dtype mismatch"):
        core.times(**wrong)
    with pytest.raises(ValueError, match=r"\d"):
        core.times(**FLOATS | {name: None})


def test_lines_between_two_numbers_are_refused():
    """Offsets of lines are counted in whole numbers; those of a view of records need not be such."""
    records = np.zeros((4, 3), np.dtype([("number", "f8"), ("more", "i4")]))
    lines = np.lib.stride_tricks.as_strided(records["number"], (4, 1), (12, 8))[::-1]
    with pytest.raises(ValueError, match="4 outputs in 1 groups of 16, not in lines"):
        core.times(np.ones((1, 2), np.float32), np.ones((1, 2, 16), np.float32), lines)


@pytest.mark.parametrize(
    ("K", "W", "space", "out"),
    [
        (np.ones((0, 2), np.float32), np.ones((1, 0)), np.empty(2, np.float32), np.empty((1, 2))),
        (np.ones((3, 0), np.float32), np.ones((1, 3)), np.empty(0, np.float32), np.empty((1, 0))),
        (np.ones((3, 2), np.float32), np.ones((1, 4)), np.empty(2, np.float32), np.empty((1, 2))),
        (np.ones((3, 2), np.float32), np.ones((1, 3)), np.empty(1, np.float32), np.empty((1, 2))),
        (np.ones((3, 2), np.float32), np.ones((1, 3)), np.empty(2, np.float32), np.empty((2, 2))),
        (np.ones((3, 2), np.float32), np.ones((1, 3)), np.empty(2, np.float32), np.empty((1, 3))),
        (np.ones((3, 2), np.float32), np.ones((1, 6))[:, ::2], np.empty(2, np.float32), np.empty((1, 2))),
        (np.ones((2, 3), np.float32).T, np.ones((1, 3)), np.empty(2, np.float32), np.empty((1, 2))),
        (None, None, None, None),
    ],
)
def test_back_refuses_sizes_that_do_not_fit(K, W, space, out):
    with pytest.raises(ValueError, match=r"\d|lines"):
        core.back(K, W, space, out)


def curvature_arguments(**changed):
    """Two sums of five rows and two points, one of which is brought up to date."""
    given = {
        "ssyrk": ssyrk(),
        "K": np.ones((5, 2), np.float32),
        "weights": np.ones(5),
        "outputs": np.array([1]),
        "residual": np.ones((1, 5)),
        "active": np.zeros((2, 5), np.uint8),
        "known": np.zeros(2, np.uint8),
        "values": np.zeros((2, 3, 3)),
        "changed": np.zeros(5, np.intp),
        "space": np.zeros(99, np.float32),
    }
    return given | changed


@pytest.mark.parametrize(
    "changed",
    [
        {"K": np.ones((4, 2), np.float32)},
        {"K": np.ones((0, 2), np.float32), "weights": np.ones(0), "residual": np.ones((1, 0))},
        {"K": np.ones((5, 0), np.float32)},
        {"K": np.ones((5, 2), np.float32, order="F")},
        {"weights": np.ones(4)},
        {"outputs": np.array([2])},
        {"outputs": np.array([0, 1])},
        {"residual": np.ones((1, 4))},
        {"active": np.zeros((1, 5), np.uint8)},
        {"active": np.zeros((2, 4), np.uint8)},
        {"known": np.zeros(1, np.uint8)},
        {"values": np.zeros((2, 3, 2))},
        {"values": np.zeros((2, 2, 3))},
        {"changed": np.zeros(4, np.intp)},
        {"space": np.zeros(11, np.float32)},
        {"ssyrk": None},
        *(
            {name: None}
            for name in ("K", "weights", "outputs", "residual", "active", "known", "values", "changed", "space")
        ),
        *({name: np.zeros((2, 5), np.complex128)} for name in ("K", "residual", "active")),
    ],
    ids=str,
)
def test_sums_refuse_what_does_not_fit(changed):
    core.update_curvatures(**curvature_arguments())
    with pytest.raises(ValueError, match=r"."):
        core.update_curvatures(**curvature_arguments(**changed))


def test_no_sum_is_asked_for():
    values = np.full((2, 3, 3), 7.0)
    core.update_curvatures(**curvature_arguments(outputs=np.empty(0, np.intp), residual=np.empty((0, 5)), values=values))
    assert (values == 7.0).all()


@pytest.mark.parametrize(
    ("factor", "right"),
    [
        (np.ones((2, 2)), np.ones(3)),
        (np.ones((3, 2)), np.ones(3)),
        (np.ones((2, 3)), np.ones(3)),
        (np.ones((3, 3), np.float32), np.ones(3)),
        (None, np.ones(3)),
        (np.ones((3, 3)), None),
    ],
)
def test_factors_that_do_not_fit_are_refused(factor, right):
    with pytest.raises(ValueError, match=r"."):
        core.solve_factored(factor, right)


def test_a_system_of_no_size_is_solved():
    core.solve_factored(np.ones((0, 0)), np.ones(0))
