"""The compiled passes against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from slimsvm._core import core
from slimsvm.kernels import RBF, squared_norms
from slimsvm.kernels.spec import SPECS
from slimsvm.rows.precision import Prepared
from slimsvm.rows.threads import ThreadPool
from slimsvm.rows.tiles import make_tiles

FLOAT_EPS = float(np.finfo(np.float32).eps)
SHAPES = [(1, 1), (3, 2), (5, 17), (16, 64), (33, 257), (0, 5), (5, 0), (0, 0)]


LN2 = float(np.log(2.0))


def kernel_pass(form, A, B, dtype, *, a=None, b=None, widths=None, narrow=False):
    """A compiled pass between arrays, and coefficients filled up to full panels."""
    A, B = (np.ascontiguousarray(X, dtype) for X in (A, B))
    panels = np.empty((-(-B.shape[0] // core.PANEL), B.shape[1], core.PANEL), dtype)
    core.panels_of(B, panels, 0, panels.shape[0])
    full = [None if x is None else filled(x, dtype) for x in (b, widths)]
    norms = None if a is None else np.asarray(a, dtype)
    return core.KernelPass(form, A, panels, B.shape[0], B.shape[1], norms, *full, narrow)


def filled(x, dtype):
    """Numbers of points, or lines of them, filled up to full panels."""
    out = np.zeros((-(-len(x) // core.PANEL) * core.PANEL, *np.shape(x)[1:]), dtype)
    out[: len(x)] = x
    return out


def values(compiled, dtype):
    out = np.full((compiled.n, compiled.count), np.nan, dtype)
    compiled.run(0, compiled.n, values=out)
    return out


def power(x, dtype=np.float32):
    """2^x by the compiled pass of the rbf kernel: one row, points of one feature, and norms of 0."""
    x = np.asarray(x)
    return values(kernel_pass((SPECS["rbf"].form, LN2, 0.0, 1), [[1.0]], x[:, None] / 2, dtype, a=[0], b=0 * x), dtype)[0]


def test_the_build_in_use_has_a_known_name():
    assert core.instruction_set() in {"base", "avx2", "avx512"}


def terms(kernel, A, B, widths):
    """Kernel values feature by feature in float64."""
    A, B = A[:, None].astype(np.float64), B[None].astype(np.float64)
    sums = {
        "linear": lambda: (A * B).sum(axis=2),
        "rbf": lambda: np.exp(-0.3 * widths * ((A - B) ** 2).sum(axis=2)),
        "poly": lambda: (0.3 * (A * B).sum(axis=2) + 0.5) ** 5,
        "sigmoid": lambda: np.tanh(0.3 * (A * B).sum(axis=2) + 0.5),
        "laplacian": lambda: np.exp(-0.3 * widths * np.abs(A - B).sum(axis=2)),
        "chi2": lambda: np.exp(-0.3 * ((A - B) ** 2 / np.where(A + B == 0, 1, A + B)).sum(axis=2)),
    }
    return sums[kernel]()


@pytest.mark.parametrize("kernel", SPECS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "m", "d"), [(1, 1, 1), (7, 130, 5), (98, 65, 3), (13, 64, 1100), (5, 0, 2), (0, 5, 2), (3, 4, 0)]
)
@pytest.mark.parametrize("outputs", [1, 2, 17])
def test_a_pass_has_the_values_of_the_formula_and_their_sums(kernel, dtype, n, m, d, outputs):
    rng = np.random.default_rng(0)
    A, B = (np.abs(rng.normal(size=(count, d))).astype(dtype) / max(d, 1) ** 0.5 for count in (n, m))
    A[n // 2 :, : d // 2] = B[m // 2 :, : d // 2] = 0
    wide = kernel in ("rbf", "laplacian")
    widths = rng.uniform(0.1, 3, size=m) if wide else np.ones(m)
    scale = 0.3 / LN2 if kernel == "rbf" else None
    a, b = (None if scale is None else scale * (X.astype(np.float64) ** 2).sum(axis=1) for X in (A, B))
    form = (SPECS[kernel].form, 0.3, 0.5, 5)
    compiled = kernel_pass(form, A, B, dtype, a=a, b=b, widths=widths if wide else None)
    K, slack = terms(kernel, A, B, widths.astype(dtype)), 30 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(values(compiled, dtype), K, rtol=slack, atol=slack)
    V, out = rng.normal(size=(m, outputs)), rng.normal(size=(n, outputs))
    lines = np.zeros((m, outputs if outputs == 1 else -(-outputs // core.OUTPUTS) * core.OUTPUTS))
    lines[:, :outputs] = V
    expected = out + K @ V.astype(dtype)
    compiled.run(0, n, filled(lines.ravel() if outputs == 1 else lines, dtype), out)
    np.testing.assert_allclose(out, expected, rtol=slack, atol=slack * (1 + np.abs(V).sum() * np.abs(K).max(initial=0)))


def test_narrow_values_are_float32_powers_of_float64_exponents():
    """Norms of 1e8 and distances of about 1: float32 inner products would have no digit right."""
    rng = np.random.default_rng(0)
    A, B = (1e4 + rng.normal(size=(size, 6)) for size in (33, 257))
    scale = 0.3 / LN2
    a, b = (scale * (X**2).sum(axis=1) for X in (A, B))
    expected = np.exp2(np.minimum(2 * scale * (A @ B.T) - a[:, None] - b, 0))
    compiled = kernel_pass((SPECS["rbf"].form, 0.3, 0.0, 1), A, B, np.float64, a=a, b=b, narrow=True)
    np.testing.assert_allclose(values(compiled, np.float32), expected, rtol=0, atol=1e-6)
    V, out = rng.normal(size=257), np.zeros((33, 1))
    compiled.run(0, 33, filled(V, np.float64), out)
    np.testing.assert_allclose(out[:, 0], expected @ V, rtol=0, atol=1e-6 * np.abs(V).sum())


def test_powers_are_accurate_to_float32_over_their_whole_range():
    x = np.concatenate([np.linspace(-126, 0, 200_001), -np.logspace(-12, 2, 5_000), -np.arange(0, 126.5, 0.5)])
    x = x.astype(np.float32)
    np.testing.assert_allclose(power(x), np.exp2(x.astype(np.float64)), rtol=3e-7)


def test_a_power_of_zero_is_one():
    np.testing.assert_array_equal(power(np.zeros(40)), np.ones(40))


@pytest.mark.parametrize("x", [-126.01, -150.0, -1e4, -1e20, -3e38])
def test_powers_of_very_negative_numbers_are_next_to_nothing(x):
    values = power(np.full(40, x))
    assert (values >= 0).all()
    assert (values <= 1.2e-38).all()


@pytest.mark.parametrize("x", [1e-6, 1.0, 1e10])
def test_distances_below_zero_by_rounding_count_as_zero(x):
    np.testing.assert_array_equal(power(np.full(20, x)), np.ones(20))


def test_double_powers_are_accurate_to_double_over_their_whole_range():
    x = np.concatenate([np.linspace(-1021.5, 0, 100_001), -np.logspace(-20, 3, 5_000), -np.arange(0, 1022, 0.5)])
    scale = LN2 * 1.4426950408889634  # 1 but for rounding
    np.testing.assert_allclose(power(x, np.float64), np.exp2(scale * x), rtol=1e-15)
    for far, value in ((-1e4, 0.0), (1e-6, 1.0), (0.0, 1.0)):
        np.testing.assert_allclose(power(np.full(9, far), np.float64), value, atol=1e-300)


@pytest.mark.parametrize("m", [0, 1, 7, 40])
@pytest.mark.parametrize("axes", [1, 3])
def test_near_box_finds_the_points_within_reach_of_a_box(m, axes):
    rng = np.random.default_rng(m)
    low, Z = rng.normal(size=axes), 2 * rng.normal(size=(m, axes))
    high, found = low + rng.random(axes), np.empty(m, np.intp)
    outside = Z - np.clip(Z, low, high)
    for reach in (0.0, 1.0, 4.0, 1e9):
        count = core.near_box(low, high, np.ascontiguousarray(Z.T), reach, np.empty(m), found)
        np.testing.assert_array_equal(found[:count], np.flatnonzero((outside**2).sum(axis=1) <= reach))


def rows_of(A):
    return A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)


@pytest.mark.parametrize("m", [1, 2, 137])
@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("points", [1, 64, 130])
def test_sparse_rows_have_the_products_of_dense_ones(m, density, dtype, points):
    """With dense points, and with sparse ones in panels, features of even number in lines and the others in postings."""
    rng = np.random.default_rng(m)
    A, B = ((rng.normal(size=(k, 19)) * (rng.random((k, 19)) < density)).astype(dtype) for k in (m + 10, points))
    linear = (SPECS["linear"].form, 1.0, 0.0, 1)
    panels = np.empty((-(-points // core.PANEL), 19, core.PANEL), dtype)
    core.panels_of(B, panels, 0, panels.shape[0])
    again = np.full_like(panels, np.nan)
    core.panels_of_sparse(*rows_of(csr_array(B)), again, 0, panels.shape[0])
    np.testing.assert_array_equal(again, panels)
    for form in (panels, [panel(B)]):
        compiled = core.KernelPass(linear, rows_of(csr_array(A)), form, points, 19)
        out = np.full((m + 10, points), np.nan, dtype)
        compiled.run(5, 5 + m, values=out)
        np.testing.assert_allclose(out[5 : 5 + m], A[5 : 5 + m] @ B.T, rtol=1e-5, atol=1e-5)
        assert np.isnan(out[:5]).all()


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 50])
@pytest.mark.parametrize("strip", [1, 700, 5000])
def test_sum_rows_adds_a_weighted_sum_of_scattered_rows(count, strip):
    rng = np.random.default_rng(count)
    rows = rng.normal(size=(60, 2100)).astype(np.float32)
    which, v = rng.permutation(60)[:count], rng.normal(size=count).astype(np.float32)
    out = rng.normal(size=2100)
    expected = out.copy()
    expected += v.astype(float) @ rows[which].astype(float)
    core.sum_rows(rows, which, v, out, strip)
    np.testing.assert_allclose(out, expected, rtol=0, atol=20 * (count + 1) * FLOAT_EPS)


def smo_problem(n, seed, dtype, ties=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if ties:
        X = np.round(X)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    cap = rng.choice([0.0, 0.5, 1.0, 10.0], size=n)
    return K.astype(dtype), y.astype(dtype), cap, X


def violation(K, y, cap, alpha):
    """The largest violation of the optimality conditions, from their definition."""
    v = y - K.astype(float) @ (alpha * y)
    up = ((y > 0) & (alpha < cap)) | ((y < 0) & (alpha > 0))
    down = ((y > 0) & (alpha > 0)) | ((y < 0) & (alpha < cap))
    return v[up].max(initial=-np.inf) - v[down].min(initial=np.inf)


def naive_smo(K, y, cap, tol, max_steps=100_000):
    """The worst pair, a step on it, everything anew: the same optimum by the plainest way there."""
    alpha = np.zeros(y.size)
    for _ in range(max_steps):
        v = y - K @ (alpha * y)
        up = np.where(((y > 0) & (alpha < cap)) | ((y < 0) & (alpha > 0)), v, -np.inf)
        down = np.where(((y > 0) & (alpha > 0)) | ((y < 0) & (alpha < cap)), v, np.inf)
        i, j = up.argmax(), down.argmin()
        if up[i] - down[j] <= tol:
            return alpha
        room = min(cap[i] - alpha[i] if y[i] > 0 else alpha[i], alpha[j] if y[j] > 0 else cap[j] - alpha[j])
        t = min((v[i] - v[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12), room)
        alpha[i] = np.clip(alpha[i] + t * y[i], 0, cap[i])
        alpha[j] = np.clip(alpha[j] - t * y[j], 0, cap[j])
    raise AssertionError("the twin did not converge")


def objective(K, y, alpha):
    return alpha.sum() - 0.5 * (alpha * y) @ K.astype(float) @ (alpha * y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 5, 64, 65, 256, 257, 600])
@pytest.mark.parametrize("ties", [False, True])
def test_smo_meets_the_optimality_conditions(dtype, n, ties):
    tol = 1e-3 if dtype == np.float32 else 1e-8
    K, y, cap, _ = smo_problem(n, n, dtype, ties)
    alpha, v = np.zeros(n), y.copy()
    steps, gap = core.smo(K, y, cap, alpha, v, tol, 1_000_000)
    assert gap <= tol
    assert steps >= 0
    assert ((alpha >= 0) & (alpha <= cap)).all()
    assert abs(alpha @ y) <= 1e-6 * (1 + alpha.sum())
    assert violation(K, y, cap, alpha) <= tol + 1e-4 * (dtype == np.float32) + 1e-9
    movable, atol = cap > 0, 1e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(v[movable], (y - K.astype(float) @ (alpha * y))[movable], rtol=0, atol=atol)
    np.testing.assert_array_equal(v[~movable], y[~movable])


@pytest.mark.parametrize("seed", range(3))
def test_smo_reaches_the_objective_of_the_plain_loop(seed):
    K, y, cap, _ = smo_problem(30, seed, np.float64)
    alpha, v = np.zeros(30), y.copy()
    core.smo(K, y, cap, alpha, v, 1e-9, 1_000_000)
    assert objective(K, y, alpha) == pytest.approx(objective(K, y, naive_smo(K, y, cap, 1e-6)), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_smo_keeps_to_max_steps_and_can_go_on(dtype):
    K, y, cap, _ = smo_problem(80, 3, dtype)
    alpha, v = np.zeros(80), y.copy()
    steps, gap = core.smo(K, y, cap, alpha, v, 1e-3, 5)
    assert steps == 5
    assert gap > 1e-3
    assert gap == pytest.approx(violation(K, y, cap, alpha), abs=1e-4)
    unchanged = alpha.copy()
    assert core.smo(K, y, cap, alpha, v, 1e-3, 0)[0] == 0
    np.testing.assert_array_equal(alpha, unchanged)
    assert core.smo(K, y, cap, alpha, v, 1e-3, 1_000_000)[1] <= 1e-3


@given(n=st.integers(1, 20), seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_smo_never_lowers_the_objective_nor_leaves_the_box(n, seed):
    K, y, cap, _ = smo_problem(n, seed, np.float64, ties=bool(seed % 2))
    alpha, v, best = np.zeros(n), y.copy(), 0.0
    for _ in range(10):
        core.smo(K, y, cap, alpha, v, 1e-6, 1)
        assert ((alpha >= 0) & (alpha <= cap)).all()
        assert objective(K, y, alpha) >= best - 1e-12
        best = objective(K, y, alpha)


def limited_problem(n, seed, dtype):
    """Rows of label +1 first."""
    K, y, cap, _ = smo_problem(n, seed, dtype)
    order = np.argsort(y < 0, kind="stable")
    return np.ascontiguousarray(K[np.ix_(order, order)]), y[order], cap[order] + 0.1


def limited_violation(K, y, cap, alpha, total):
    """The largest violation where the sum of alpha is at its limit: of pairs that keep or lower it."""
    v = y - K.astype(float) @ (alpha * y)
    up = np.where(((y > 0) & (alpha < cap)) | ((y < 0) & (alpha > 0)), v, -np.inf)
    down = np.where(((y > 0) & (alpha > 0)) | ((y < 0) & (alpha < cap)), v, np.inf)
    pairs = up[:, None] - down
    if alpha.sum() >= total - 1e-9:
        pairs[np.ix_(y > 0, y < 0)] = -np.inf  # both would rise
    return pairs.max()


def naive_limited_smo(K, y, cap, total, tol, max_steps=100_000):
    """The plain loop over all pairs that may move, each step clipped to the box and the sum."""
    alpha = np.zeros(y.size)
    for _ in range(max_steps):
        v, room = y - K @ (alpha * y), total - alpha.sum()
        rise, fall = np.where(y > 0, cap - alpha, alpha), np.where(y > 0, alpha, cap - alpha)
        most = np.minimum(rise[:, None], fall)
        most[np.ix_(y > 0, y < 0)] = np.minimum(most[np.ix_(y > 0, y < 0)], room / 2)
        pairs = np.where(most > 1e-14, v[:, None] - v, -np.inf)
        i, j = np.unravel_index(pairs.argmax(), pairs.shape)
        if pairs[i, j] <= tol:
            return alpha
        t = min(pairs[i, j] / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12), most[i, j])
        alpha[i] = np.clip(alpha[i] + t * y[i], 0, cap[i])
        alpha[j] = np.clip(alpha[j] - t * y[j], 0, cap[j])
    raise AssertionError("the twin did not converge")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 5, 64, 65, 200, 600])
@pytest.mark.parametrize("total", [0.3, 2.0, 1e6])
def test_smo_with_a_limited_sum_meets_its_optimality_conditions(dtype, n, total):
    tol = 1e-3 if dtype == np.float32 else 1e-5
    K, y, cap = limited_problem(n, n, dtype)
    alpha, v = np.zeros(n), y.copy()
    _, gap = core.smo(K, y, cap, alpha, v, tol, 1_000_000, total)
    assert gap <= tol
    assert ((alpha >= 0) & (alpha <= cap)).all()
    assert alpha.sum() <= total * (1 + 1e-12)
    assert abs(alpha @ y) <= 1e-6 * (1 + alpha.sum())
    assert limited_violation(K, y, cap, alpha, total) <= tol + 1e-4 * (dtype == np.float32) + 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("total", [0.5, 5.0, 20.0])
def test_smo_with_a_limited_sum_reaches_the_objective_of_the_plain_loop(seed, total):
    K, y, cap = limited_problem(16, seed, np.float64)
    alpha, v = np.zeros(16), y.copy()
    core.smo(K, y, cap, alpha, v, 1e-7, 1_000_000, total)
    plain = naive_limited_smo(K, y, cap, total, 1e-4)
    assert objective(K, y, alpha) == pytest.approx(objective(K, y, plain), rel=1e-4)


@given(n=st.integers(1, 20), seed=st.integers(0, 10**6), total=st.floats(0, 5))
@settings(max_examples=60)
def test_smo_with_a_limited_sum_never_lowers_the_objective_nor_passes_the_limit(n, seed, total):
    K, y, cap = limited_problem(n, seed, np.float64)
    alpha, v, best = np.zeros(n), y.copy(), 0.0
    for _ in range(10):
        core.smo(K, y, cap, alpha, v, 1e-6, 1, max(total - alpha.sum(), 0.0))
        assert ((alpha >= 0) & (alpha <= cap)).all()
        assert alpha.sum() <= total * (1 + 1e-12)
        assert objective(K, y, alpha) >= best - 1e-12
        best = objective(K, y, alpha)


def test_smo_with_a_limited_sum_wants_rows_of_label_plus_one_first():
    K, y, cap = limited_problem(6, 0, np.float64)
    with pytest.raises(ValueError, match="label \\+1 after"):
        core.smo(K, y[::-1].copy(), cap, np.zeros(6), y.copy(), 1e-3, 10, 1.0)


def test_smo_with_rows_of_one_label_has_nothing_to_do():
    K, _, cap, _ = smo_problem(6, 0, np.float64)
    alpha, y = np.zeros(6), np.ones(6)
    steps, gap = core.smo(K, y, cap, alpha, y.copy(), 1e-3, 100)
    assert steps == 0
    assert gap <= 0
    assert not alpha.any()


def test_smo_of_an_empty_block_ends_at_once():
    none = np.zeros(0)
    assert core.smo(np.zeros((0, 0)), none, none, none, none.copy(), 1e-3, 10) == (0, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("part", ["kernel values", "targets"])
def test_smo_takes_no_step_by_values_that_are_not_numbers(part, dtype):
    """Without the check on NaN the loop would go on to its last step."""
    K, y, cap, _ = smo_problem(5, 0, dtype)
    alpha, v = np.zeros(5), y.copy()
    (K if part == "kernel values" else v)[:] = np.nan
    steps, gap = core.smo(K, y, cap, alpha, v, 1e-3, 100)
    assert steps == 0
    assert not gap > 1e-3
    assert not alpha.any()


def f32(*shape):
    return np.zeros(shape, np.float32)


WRONG = {
    "near_box low": lambda: core.near_box(*map(np.zeros, (1, 2, (2, 4))), 1.0, np.zeros(4), np.zeros(4, np.intp)),
    "near_box found": lambda: core.near_box(*map(np.zeros, (2, 2, (2, 4))), 1.0, np.zeros(4), np.zeros(3, np.intp)),
    "near_box axes": lambda: core.near_box(*map(np.zeros, (0, 0, (0, 4))), 1.0, np.zeros(4), np.zeros(4, np.intp)),
    "sum_rows v": lambda: core.sum_rows(f32(2, 3), np.arange(2), f32(1), np.zeros(3), 9),
    "sum_rows out": lambda: core.sum_rows(f32(2, 3), np.arange(2), f32(2), np.zeros(2), 9),
    "sum_rows strip": lambda: core.sum_rows(f32(2, 3), np.arange(2), f32(2), np.zeros(3), 0),
    "copy_transposed out": lambda: core.copy_transposed(f32(2, 3), f32(2, 3)),
    "copy_transposed columns": lambda: core.copy_transposed(f32(2, 3), f32(2, 3).T),
    "smo K": lambda: core.smo(np.zeros((2, 3)), np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2), 1e-3, 1),
    "smo y": lambda: core.smo(np.zeros((2, 2)), np.zeros(3), np.zeros(2), np.zeros(2), np.zeros(2), 1e-3, 1),
    "smo cap": lambda: core.smo(np.zeros((2, 2)), np.zeros(2), np.zeros(1), np.zeros(2), np.zeros(2), 1e-3, 1),
    "smo alpha": lambda: core.smo(np.zeros((2, 2)), np.zeros(2), np.zeros(2), np.zeros(3), np.zeros(2), 1e-3, 1),
    "smo v": lambda: core.smo(np.zeros((2, 2)), np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(1), 1e-3, 1),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
def test_arrays_that_do_not_fit_are_refused(call):
    with pytest.raises((ValueError, TypeError)):
        call()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (16, 15), (17, 33), (40, 5)])
def test_copy_transposed_copies_the_transpose_into_part_of_a_matrix(shape, dtype):
    wide = np.random.default_rng(0).normal(size=(shape[0], shape[1] + 2)).astype(dtype)
    out = np.zeros((shape[1], shape[0] + 3), dtype)
    core.copy_transposed(wide[:, 1:-1], out[:, 2:-1])
    np.testing.assert_array_equal(out, np.pad(wide[:, 1:-1].T, ((0, 0), (2, 1))))


@pytest.mark.parametrize("row", [-1, 2])
def test_sum_rows_refuses_a_row_that_is_not_there(row):
    with pytest.raises(IndexError, match="row"):
        core.sum_rows(f32(2, 3), np.array([0, row]), f32(2), np.zeros(3), 9)


@pytest.mark.parametrize("name", SPECS)
def test_expansion_is_the_double_loop(name, make_case):
    case = make_case(name, n=9, d=5)
    rng = np.random.default_rng(0)
    coef, bias, out = rng.normal(size=(9, 3)), rng.normal(size=3), np.empty((9, 3))
    parameters = [vars(case.kernel).get(key, 1) for key in ("gamma", "coef0", "degree")]
    core.expansion(SPECS[name].form, *parameters, case.X, case.X, coef, bias, out)
    np.testing.assert_allclose(out, case.K @ coef + bias, rtol=1e-13)


def test_expansion_of_no_points_is_the_bias_and_shapes_are_checked():
    X, none, bias, out = np.ones((2, 3)), np.empty((0, 3)), np.array([0.5]), np.empty((2, 1))
    core.expansion(SPECS["rbf"].form, 1.0, 0.0, 1, X, none, np.empty((0, 1)), bias, out)
    np.testing.assert_array_equal(out, [[0.5], [0.5]])
    with pytest.raises(ValueError, match="equal lengths"):
        core.expansion(SPECS["rbf"].form, 1.0, 0.0, 1, X, np.ones((4, 2)), np.ones((4, 1)), bias, out)
    with pytest.raises(ValueError, match="equal lengths"):
        core.expansion(SPECS["rbf"].form, 1.0, 0.0, 1, X, np.ones((4, 3)), np.ones((4, 1)), bias, out, np.ones(3))
    with pytest.raises(ValueError, match="doubles are needed"):
        core.expansion(SPECS["rbf"].form, 1.0, 0.0, 1, X, np.ones((4, 3)), np.ones((4, 1)), bias, out, f32(4))


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_expansion_with_a_width_for_each_point(name, make_case):
    case, widths = make_case(name, n=9, d=5), np.linspace(0.2, 3, 9)
    coef, out = np.random.default_rng(0).normal(size=(9, 2)), np.empty((9, 2))
    core.expansion(SPECS[name].form, case.kernel.gamma, 0.0, 1, case.X, case.X, coef, np.zeros(2), out, widths)
    np.testing.assert_allclose(out, case.K**widths @ coef, rtol=1e-13)


@pytest.mark.parametrize("form", [-1, 6])
def test_expansion_refuses_a_kernel_that_is_not_there(form):
    with pytest.raises(ValueError, match="no kernel has the number"):
        core.expansion(form, 1.0, 0.0, 1, np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)), np.ones(1), np.ones((1, 1)))


def test_expansion_of_an_endless_degree_ends():
    out = np.empty((1, 1))
    one = np.ones((1, 1))
    core.expansion(SPECS["poly"].form, 1.0, 0.0, 2**62, one, one, one, np.zeros(1), out)
    assert out == 1


def panel(B):
    """Sparse points as the pass takes them, all features of even number in lines and the others in postings."""
    m, d = B.shape
    place = np.full(d, -1, np.int32)
    place[::2] = np.arange(place[::2].size)
    lines = np.zeros((-(-m // core.PANEL), place[::2].size, core.PANEL), B.dtype)
    for j in range(m):
        lines[j // core.PANEL, :, j % core.PANEL] = B[j, ::2]
    rest = B.T.copy()
    rest[::2] = 0
    rest = csr_array(rest)
    return place, lines, rest.indptr.astype(np.int32), rest.indices.astype(np.int32), rest.data


LINEAR = (SPECS["linear"].form, 1.0, 0.0, 1)
PASS_WRONG = {
    "kernel": lambda: core.KernelPass((9, 1.0, 0.0, 1), f32(2, 3), f32(1, 3, core.PANEL), 4, 3),
    "rows": lambda: core.KernelPass(LINEAR, f32(2, 4), f32(1, 3, core.PANEL), 4, 3),
    "kinds": lambda: core.KernelPass(LINEAR, np.zeros((2, 3)), f32(1, 3, core.PANEL), 4, 3),
    "panels": lambda: core.KernelPass(LINEAR, f32(2, 3), f32(2, 3, core.PANEL), 4, 3),
    "norms": lambda: core.KernelPass((1, 1.0, 0.0, 1), f32(2, 3), f32(1, 3, core.PANEL), 4, 3, f32(2), f32(4)),
    "widths": lambda: core.KernelPass(LINEAR, f32(2, 3), f32(1, 3, core.PANEL), 4, 3, widths=f32(4)),
    "narrow": lambda: core.KernelPass(LINEAR, f32(2, 3), f32(1, 3, core.PANEL), 4, 3, narrow=True),
    "starts": lambda: sparse_pass([0, 2]),
    "descending starts": lambda: sparse_pass([1, 0]),
    "starts that come back": lambda: sparse_pass([0, 10**8, 0]),
    "distances of sparse rows": lambda: sparse_pass([0, 1], SPECS["laplacian"].form),
    "strip": lambda: few().run(0, 3),
    "negative strip": lambda: few().run(-1, 1),
    "symmetric": lambda: few().run_strips(core.Strips(2, 64), values=f32(2, 4), symmetric=True),
    "strips of other rows": lambda: few().run_strips(core.Strips(3, 64), values=f32(2, 4)),
    "no strips": lambda: core.Strips(3, 0),
    "outputs": lambda: few().run(0, 2, f32(core.PANEL), np.zeros((5, 1))[:1]),
    "coefficients": lambda: few().run(0, 2, f32(4), np.zeros((2, 1))),
    "values": lambda: few().run(0, 2, values=f32(2, 5)),
    "kind of values": lambda: few().run(0, 2, values=np.zeros((2, 4))),
    "outputs together": lambda: core.run_together(
        [few()], [f32(core.PANEL)], [np.array([1])], core.Strips(2, 1), np.zeros((1, 2))
    ),
    "sparse points of dense rows": lambda: core.KernelPass(LINEAR, f32(2, 4), [panel(f32(2, 4))], 2, 4),
    "places": lambda: core.KernelPass(LINEAR, rows_of(csr_array(f32(2, 4))), [panel(f32(2, 3))], 2, 4),
}


def few():
    return core.KernelPass(LINEAR, f32(2, 3), f32(1, 3, core.PANEL), 4, 3)


def sparse_pass(starts, kind=0):
    rows = np.ones(1, np.float32), np.zeros(1, np.int32), np.array(starts, np.int32)
    return core.KernelPass((kind, 1.0, 0.0, 1), rows, f32(1, 2, core.PANEL), 4, 2)


@pytest.mark.parametrize("name", PASS_WRONG)
def test_a_pass_refuses_arrays_that_do_not_fit(name):
    with pytest.raises((ValueError, IndexError)):
        PASS_WRONG[name]()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lines_of_points_are_filled(dtype):
    X, lines = np.random.default_rng(0).normal(size=(300, 4)), np.zeros((80, 300), dtype)
    kernel, which = RBF(0.5), np.random.default_rng(1).permutation(80)[:70]
    A, B = (Prepared(part.astype(dtype), squared_norms(part), None) for part in (X, X[:70]))
    tiles = make_tiles(kernel, A, B, ThreadPool(3))
    tiles.fill(lines, which)
    np.testing.assert_array_equal(lines[which], tiles.matrix().T)
    assert not np.delete(lines, which, axis=0).any()
    for wrong in (which[:-1], np.full(70, 80), np.full(70, -1)):
        with pytest.raises((ValueError, IndexError)):
            tiles.fill(lines, wrong)
    for wrong in (lines[:, :-1], lines.astype(np.int64)):
        with pytest.raises((ValueError, TypeError, BufferError)):
            tiles.fill(wrong, which)
