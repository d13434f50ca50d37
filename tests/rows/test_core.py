"""The compiled passes against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from slimsvm._core import core
from slimsvm.kernels.spec import SPECS

FLOAT_EPS = float(np.finfo(np.float32).eps)
SHAPES = [(1, 1), (3, 2), (5, 17), (16, 64), (33, 257), (0, 5), (5, 0), (0, 0)]


def tile(m, n, scale):
    """Inner products in float32, and `scale` times the squared norms of rows and columns."""
    rng = np.random.default_rng(0)
    A, B = (rng.normal(size=(size, 6)) for size in (m, n))
    a, b = (scale * (X**2).sum(axis=1) for X in (A, B))
    return (A @ B.T).astype(np.float32), a.astype(np.float32), b.astype(np.float32)


def rbf(scale, G, a, b):
    """2^(2 scale G - a - b) in float64, from the same float32 numbers."""
    G, a, b = (x.astype(np.float64) for x in (G, a, b))
    return np.exp2(np.minimum(2 * scale * G - a[:, None] - b, 0))


def rounding(scale, G, a, b):
    """What float32 may lose: a few roundings of the terms of the exponent, and those of the power itself."""
    return 4 * FLOAT_EPS * (1 + np.abs(2 * scale * G).max(initial=0) + a.max(initial=0) + b.max(initial=0))


def power(x):
    """2^x by the compiled tail, one row of exponents, with norms of 0."""
    G = (np.asarray(x, np.float32) / 2)[None]
    core.rbf_tail(1.0, G, np.zeros(1, np.float32), np.zeros(G.size, np.float32))
    return G[0]


def test_the_build_in_use_has_a_known_name():
    assert core.instruction_set() in {"base", "avx2", "avx512"}


@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("scale", [0.01, 0.5, 3.0])
def test_rbf_tail_is_a_power_of_the_distance(m, n, scale):
    G, a, b = tile(m, n, scale)
    expected, slack = rbf(scale, G, a, b), rounding(scale, G, a, b)
    core.rbf_tail(scale, G, a, b)
    np.testing.assert_allclose(G, expected, rtol=0, atol=slack)


@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("scale", [0.01, 0.5, 3.0])
def test_rbf_tail_dot_adds_the_product(m, n, scale):
    G, a, b = tile(m, n, scale)
    rng = np.random.default_rng(1)
    v, out = rng.normal(size=n).astype(np.float32), rng.normal(size=m)
    expected = out + rbf(scale, G, a, b) @ v
    given_tile = G.copy()
    core.rbf_tail_dot(scale, G, a, b, v, out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=(n + 1) * rounding(scale, G, a, b))
    np.testing.assert_array_equal(G, given_tile)


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_rbf_tails_with_a_width_for_each_column(m, n):
    G, a, b = tile(m, n, 0.5)
    rng = np.random.default_rng(2)
    widths, v, out = rng.uniform(0.1, 4, size=n).astype(np.float32), rng.normal(size=n).astype(np.float32), np.zeros(m)
    expected, slack = rbf(0.5, G, a, b) ** widths, 4 * rounding(0.5, G, a, b)
    core.rbf_tail_dot(0.5, G, a, b, v, out, widths)
    np.testing.assert_allclose(out, expected @ v, rtol=0, atol=(n + 1) * slack)
    core.rbf_tail(0.5, G, a, b, widths)
    np.testing.assert_allclose(G, expected, rtol=0, atol=slack)


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
    G = (x / 2)[None]
    core.rbf_tail_double(1.0, G, np.zeros(1), np.zeros(x.size))
    np.testing.assert_allclose(G[0], np.exp2(x), rtol=1e-15)
    for far, value in ((-1e4, 0.0), (1e-6, 1.0), (0.0, 1.0)):
        G = np.full((1, 9), far / 2)
        core.rbf_tail_double(1.0, G, np.zeros(1), np.zeros(9))
        np.testing.assert_allclose(G, value, atol=1e-300)


@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("scale", [0.01, 3.0])
def test_mixed_tails_have_float32_powers_of_float64_exponents(m, n, scale):
    """Norms of 1e8 and distances of about 1: float32 inner products would have no digit right."""
    rng = np.random.default_rng(0)
    A, B = (1e4 + rng.normal(size=(size, 6)) for size in (m, n))
    a, b = (scale * (X**2).sum(axis=1) for X in (A, B))
    expected = np.exp2(np.minimum(2 * scale * (A @ B.T) - a[:, None] - b, 0))
    K, v, out = np.zeros((m, n), np.float32), rng.normal(size=n), rng.normal(size=m)
    product = out + expected @ v
    core.rbf_tail_mixed(scale, A @ B.T, a, b, K)
    np.testing.assert_allclose(K, expected, rtol=0, atol=3e-7)
    core.rbf_tail_dot_mixed(scale, A @ B.T, a, b, v, out)
    np.testing.assert_allclose(out, product, rtol=0, atol=3e-7 * (1 + np.abs(v).sum()))


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


def lines(B):
    """Points as sparse_dot wants them: transposed, one line of SPARSE_LANES values per feature."""
    out = np.zeros((B.shape[1], core.SPARSE_LANES), np.float32)
    out[:, : B.shape[0]] = B.T
    return out


@pytest.mark.parametrize("m", [1, 2, 37])
@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
def test_sparse_dot_is_the_matrix_product(m, density):
    rng = np.random.default_rng(m)
    dense = (rng.normal(size=(m + 10, 19)) * (rng.random((m + 10, 19)) < density)).astype(np.float32)
    A, B = csr_array(dense), rng.normal(size=(core.SPARSE_LANES, 19)).astype(np.float32)
    G = np.full((m, core.SPARSE_LANES), np.nan, np.float32)
    core.sparse_dot(A.data, A.indices, A.indptr[5 : 5 + m + 1], 19, lines(B), G)  # a strip from the middle
    np.testing.assert_allclose(G, dense[5 : 5 + m] @ B.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("features", [0, 4])
def test_sparse_dot_of_rows_without_entries_is_zero(features):
    A = csr_array((3, 4), dtype=np.float32)
    G = np.full((3, core.SPARSE_LANES), np.nan, np.float32)
    core.sparse_dot(A.data, A.indices, A.indptr, features, np.ones((features, core.SPARSE_LANES), np.float32), G)
    np.testing.assert_array_equal(G, np.zeros_like(G))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 50])
@pytest.mark.parametrize(("start", "stop"), [(0, 2100), (0, 0), (7, 8), (1000, 1030), (2099, 2100)])
def test_sum_rows_adds_a_weighted_sum_of_scattered_rows(count, start, stop):
    rng = np.random.default_rng(count)
    rows = rng.normal(size=(60, 2100)).astype(np.float32)
    which, v = rng.permutation(60)[:count], rng.normal(size=count).astype(np.float32)
    out = rng.normal(size=2100)
    expected = out.copy()
    expected[start:stop] += v.astype(float) @ rows[which, start:stop].astype(float)
    core.sum_rows(rows, which, v, start, stop, out)
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
    "rbf_tail rows": lambda: core.rbf_tail(1.0, f32(2, 3), f32(3), f32(3)),
    "rbf_tail columns": lambda: core.rbf_tail(1.0, f32(2, 3), f32(2), f32(2)),
    "rbf_tail type": lambda: core.rbf_tail(1.0, np.zeros((2, 3)), f32(2), f32(3)),
    "rbf_tail order": lambda: core.rbf_tail(1.0, np.asfortranarray(f32(2, 3)), f32(2), f32(3)),
    "rbf_tail_dot out": lambda: core.rbf_tail_dot(1.0, f32(2, 3), f32(2), f32(3), f32(3), np.zeros(3)),
    "rbf_tail_dot v": lambda: core.rbf_tail_dot(1.0, f32(2, 3), f32(2), f32(3), f32(2), np.zeros(2)),
    "rbf_tail_dot a": lambda: core.rbf_tail_dot(1.0, f32(2, 3), f32(1), f32(3), f32(3), np.zeros(2)),
    "rbf_tail widths": lambda: core.rbf_tail(1.0, f32(2, 3), f32(2), f32(3), f32(2)),
    "rbf_tail_dot widths": lambda: core.rbf_tail_dot(1.0, f32(2, 3), f32(2), f32(3), f32(3), np.zeros(2), f32(4)),
    "rbf_tail_double a": lambda: core.rbf_tail_double(1.0, np.zeros((2, 3)), np.zeros(3), np.zeros(3)),
    "rbf_tail_double b": lambda: core.rbf_tail_double(1.0, np.zeros((2, 3)), np.zeros(2), np.zeros(2)),
    "rbf_tail_mixed K": lambda: core.rbf_tail_mixed(1.0, np.zeros((2, 3)), np.zeros(2), np.zeros(3), f32(2, 2)),
    "rbf_tail_mixed a": lambda: core.rbf_tail_mixed(1.0, np.zeros((2, 3)), np.zeros(1), np.zeros(3), f32(2, 3)),
    "dot_mixed v": lambda: core.rbf_tail_dot_mixed(1.0, np.zeros((2, 3)), *map(np.zeros, (2, 3, 2, 2))),
    "dot_mixed out": lambda: core.rbf_tail_dot_mixed(1.0, np.zeros((2, 3)), *map(np.zeros, (2, 3, 3, 3))),
    "near_box low": lambda: core.near_box(*map(np.zeros, (1, 2, (2, 4))), 1.0, np.zeros(4), np.zeros(4, np.intp)),
    "near_box found": lambda: core.near_box(*map(np.zeros, (2, 2, (2, 4))), 1.0, np.zeros(4), np.zeros(3, np.intp)),
    "near_box axes": lambda: core.near_box(*map(np.zeros, (0, 0, (0, 4))), 1.0, np.zeros(4), np.zeros(4, np.intp)),
    "sum_rows v": lambda: core.sum_rows(f32(2, 3), np.arange(2), f32(1), 0, 3, np.zeros(3)),
    "sum_rows out": lambda: core.sum_rows(f32(2, 3), np.arange(2), f32(2), 0, 3, np.zeros(2)),
    "sum_rows stop": lambda: core.sum_rows(f32(2, 3), np.arange(2), f32(2), 0, 4, np.zeros(3)),
    "sum_rows start": lambda: core.sum_rows(f32(2, 3), np.arange(2), f32(2), -1, 3, np.zeros(3)),
    "sum_rows order": lambda: core.sum_rows(f32(2, 3), np.arange(2), f32(2), 2, 1, np.zeros(3)),
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
        core.sum_rows(f32(2, 3), np.array([0, row]), f32(2), 0, 3, np.zeros(3))


SPARSE_WRONG = {
    "starts": ([1.0], [0], [0, 1, 1], core.SPARSE_LANES),
    "lanes": ([1.0], [0], [0, 1], core.SPARSE_LANES + 1),
    "end": ([1.0], [0], [0, 2], core.SPARSE_LANES),
    "features": ([1.0, 1.0], [0], [0, 2], core.SPARSE_LANES),
    "first start": ([1.0], [0], [-1, 1], core.SPARSE_LANES),
    "descending starts": ([1.0], [0], [1, 0], core.SPARSE_LANES),
}


@pytest.mark.parametrize("name", SPARSE_WRONG)
def test_sparse_dot_refuses_arrays_that_do_not_fit(name):
    data, features, starts, lanes = SPARSE_WRONG[name]
    arrays = np.array(data, np.float32), np.array(features, np.int32), np.array(starts, np.int32)
    with pytest.raises(ValueError, match=r"elements|ascending entries"):
        core.sparse_dot(*arrays, 2, f32(2, lanes), f32(1, core.SPARSE_LANES))


def test_sparse_dot_refuses_points_of_other_features():
    arrays = np.ones(1, np.float32), np.full(1, 5, np.int32), np.array([0, 1], np.int32)
    with pytest.raises(ValueError, match="elements"):
        core.sparse_dot(*arrays, 6, f32(2, core.SPARSE_LANES), f32(1, core.SPARSE_LANES))


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


def test_sparse_dot_refuses_starts_that_leave_their_array_and_come_back():
    data, features, starts = np.ones(1, np.float32), np.zeros(1, np.int32), np.array([0, 10**8, 0], np.int32)
    with pytest.raises(ValueError, match="ascending entries"):
        core.sparse_dot(data, features, starts, 2, f32(2, core.SPARSE_LANES), f32(2, core.SPARSE_LANES))


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
    """Points as sparse_panel takes them, all features of even number in lines and the others in postings."""
    m, d = B.shape
    place = np.full(d, -1, np.int32)
    place[::2] = np.arange(place[::2].size)
    lines = np.zeros((-(-m // core.SPARSE_LANES), place[::2].size, core.SPARSE_LANES), np.float32)
    for j in range(m):
        lines[j // core.SPARSE_LANES, :, j % core.SPARSE_LANES] = B[j, ::2]
    rest = B.T.copy()
    rest[::2] = 0
    rest = csr_array(rest)
    return place, lines, rest.indptr, rest.indices, rest.data


@pytest.mark.parametrize("m", [1, 2, 37])
@pytest.mark.parametrize("points", [1, 64, 130])
@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_sparse_panel_is_the_matrix_product(m, points, density):
    rng = np.random.default_rng(m)
    A, B = ((rng.normal(size=(k, 19)) * (rng.random((k, 19)) < density)).astype(np.float32) for k in (m + 10, points))
    rows, arrays = csr_array(A), panel(B)
    G = np.full((m, arrays[1].shape[0] * core.SPARSE_LANES), np.nan, np.float32)
    core.sparse_panel(rows.data, rows.indices, rows.indptr[5 : 5 + m + 1], *arrays, G)  # a strip from the middle
    np.testing.assert_allclose(G[:, :points], A[5 : 5 + m] @ B.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(G[:, points:], 0)


PANEL_WRONG = {
    "starts": lambda args: {2: args[2][:-1]},
    "descending starts": lambda args: {2: args[2][::-1].copy()},
    "features": lambda args: {1: args[1][:-1]},
    "places": lambda args: {3: args[3][:-1]},
    "lanes": lambda args: {4: args[4][:, :, :-1].copy()},
    "postings": lambda args: {6: args[6][:-1]},
    "out": lambda args: {8: args[8][:, :-1].copy()},
}


@pytest.mark.parametrize("name", PANEL_WRONG)
def test_sparse_panel_refuses_arrays_that_do_not_fit(name):
    A = csr_array(np.arange(1, 13, dtype=np.float32).reshape(3, 4))
    args = [A.data, A.indices, A.indptr, *panel(A.toarray()), f32(3, core.SPARSE_LANES)]
    for place, array in PANEL_WRONG[name](args).items():
        args[place] = array
    with pytest.raises(ValueError, match=r"elements|ascending entries"):
        core.sparse_panel(*args)
