"""Tiles, threads, precision, the row cache and the meter, against whole matrices."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, issparse

from slimsvm._core import core
from slimsvm.kernels import KERNELS, RBF, Custom, InnerKernel, Linear, Poly, Sigmoid, make_kernel, squared_norms
from slimsvm.rows.base import RowCache
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import FLOAT32_ERROR, SMALL_WORK, Given, Precision, float32_error, prepare
from slimsvm.rows.prediction import kernel_product
from slimsvm.rows.protocol import Meter
from slimsvm.rows.threads import ThreadPool, blocks, thread_count
from slimsvm.rows.tiles import FEW_FEATURES, POSTED, TILE, CompiledTiles, make_tiles

INNER = [name for name in KERNELS if issubclass(KERNELS[name], InnerKernel)]
EPS = float(np.finfo(np.float32).eps)


SETTINGS = [(name, dtype) for name in KERNELS for dtype in (np.float64, np.float32) if name in INNER or dtype == np.float64]


@pytest.fixture(params=SETTINGS, ids=lambda setting: f"{setting[0]}-{setting[1].__name__}")
def setting(request):
    """A kernel and a precision that it can work in."""
    return request.param


@pytest.fixture
def kernel_name(setting):
    return setting[0]


@pytest.fixture
def precision(setting):
    """The precision that the kernel is made to work in."""
    return np.dtype(setting[1])


#: settings that lead to a precision, for work of any size
ALWAYS = {np.dtype(np.float32): Precision(small_work=0, float32_error=np.inf), np.dtype(np.float64): Precision(np.inf)}
SINGLE = {"precision": ALWAYS[np.dtype(np.float32)]}


def slack(kernel, precision, X):
    """What a kernel value may be off by: nothing much in float64, a few times the bound in float32."""
    if not isinstance(kernel, InnerKernel) or precision == np.float64:
        return 1e-12
    radius = squared_norms(X).max(initial=0.0)
    return 8 * (kernel.amplification(radius) + 2) * EPS


def made(name, n, d=5, density=1.0, seed=0):
    """A kernel, rows, and all its values by the kernel's own matrix, which test_kernels checks."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < density)
    X[0, 0] = 0.5  # rows without any entry have a test of their own
    kernel = make_kernel(name, gamma=0.3, degree=3, coef0=0.5)
    if name == "precomputed":
        X = RBF(0.3)(X, X)
        return kernel, X, X
    return kernel, X, kernel(X, X)


# What HostRows answers


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_product_is_the_kernel_matrix_times_v(kernel_name, make_case, form, precision, columns):
    case = make_case(kernel_name, density=0.7)
    V, index = np.random.default_rng(1).normal(size=(9, columns)), np.arange(9)
    home = HostRows(case.kernel, form(case.X), error=np.inf, precision=ALWAYS[precision])
    out = home.product(home.take(index), V)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, case.K[:, :9] @ V, rtol=0, atol=np.abs(V).sum() * slack(case.kernel, precision, case.X))


@pytest.mark.parametrize("keep", [True, False, None])
@pytest.mark.parametrize("columns", [1, 3])
def test_product_of_rows_is_the_kernel_matrix_times_v(kernel_name, make_case, form, precision, keep, columns):
    case = make_case(kernel_name, density=0.7)
    rng = np.random.default_rng(2)
    home = HostRows(case.kernel, form(case.X), error=np.inf, precision=ALWAYS[precision])
    for count in (9, 9, 0, 1, 23):
        index, V = rng.permutation(case.n)[:count], rng.normal(size=(count, columns))
        out = home.product_of(index, V, keep=keep)
        assert out.dtype == np.float64
        np.testing.assert_allclose(
            out, case.K[:, index] @ V, rtol=0, atol=(1 + np.abs(V).sum()) * slack(case.kernel, precision, case.X)
        )


@pytest.mark.parametrize("slots", [0, 1, 4, 22])
def test_product_of_is_right_when_rows_are_evicted(kernel_name, make_case, form, precision, slots):
    case = make_case(kernel_name)
    rng = np.random.default_rng(3)
    itemsize = precision.itemsize if isinstance(case.kernel, InnerKernel) else 8
    home = HostRows(
        case.kernel,
        form(case.X),
        error=np.inf,
        precision=ALWAYS[precision],
        cache_mb=(slots + 0.5) * case.n * itemsize / 2**20,
    )
    assert home.cache.rows.shape == (slots, case.n)
    for _ in range(25):
        index = rng.permutation(case.n)[: rng.integers(0, 8)]
        V = rng.normal(size=(index.size, 2))
        np.testing.assert_allclose(
            home.product_of(index, V, keep=True),
            case.K[:, index] @ V,
            rtol=0,
            atol=(1 + np.abs(V).sum()) * slack(case.kernel, precision, case.X),
        )


def test_block_is_the_kernel_matrix_of_the_rows(kernel_name, make_case, form, precision):
    case = make_case(kernel_name)
    home = HostRows(case.kernel, form(case.X), error=np.inf, precision=ALWAYS[precision])
    index, columns = np.array([7, 2, 20, 3]), np.array([1, 7])
    atol = slack(case.kernel, precision, case.X)
    np.testing.assert_allclose(home.block(index), case.K[np.ix_(index, index)], rtol=0, atol=atol)
    np.testing.assert_allclose(home.block(index, columns), case.K[np.ix_(index, columns)], rtol=0, atol=atol)
    assert home.block(index).dtype == home.dtype
    memory = np.empty(40, home.dtype)
    block = home.block(index, out=memory)
    assert np.shares_memory(block, memory)
    np.testing.assert_allclose(block, case.K[np.ix_(index, index)], rtol=0, atol=atol)
    assert home.block(index[:0]).shape == (0, 0)


def test_the_diagonal_is_that_of_the_matrix(kernel_name, make_case, form):
    case = make_case(kernel_name)
    np.testing.assert_allclose(HostRows(case.kernel, form(case.X)).diagonal(), np.diag(case.K), rtol=1e-12)


def test_rows_of_a_part_keep_their_numbers(kernel_name, make_case, form):
    """The numbers in the training set are what a precomputed kernel's points are."""
    case = make_case(kernel_name)
    some = np.array([4, 9, 10, 21])
    home = HostRows(case.kernel, form(case.X)[some], ids=some)
    V = np.random.default_rng(4).normal(size=(2, 1))
    expected = case.K[np.ix_(some, some[[2, 0]])]
    np.testing.assert_allclose(home.product_of(np.array([2, 0]), V), expected @ V, atol=1e-12)
    np.testing.assert_allclose(home.product(home.take(np.array([2, 0])), V), expected @ V, atol=1e-12)
    np.testing.assert_allclose(home.block(np.arange(4)), case.K[np.ix_(some, some)], atol=1e-12)
    np.testing.assert_allclose(home.diagonal(), np.diag(case.K)[some], rtol=1e-12)


@pytest.mark.parametrize("sparse", [csr_array, csr_matrix])
def test_points_may_be_dense_or_sparse_whatever_the_rows_are(kernel_name, make_case, precision, sparse):
    if kernel_name == "precomputed":
        return  # its points are numbers
    V = np.random.default_rng(5).normal(size=(6, 1))
    for density in (0.1, 1.0):
        case = make_case(kernel_name, density=density)
        atol = 6 * slack(case.kernel, precision, case.X)
        for X in (case.X, csr_array(case.X)):
            for points in (case.X[:6], sparse(case.X[:6])):
                out = HostRows(case.kernel, X, error=np.inf, precision=ALWAYS[precision]).product(points, V)
                np.testing.assert_allclose(out, case.K[:, :6] @ V, rtol=0, atol=atol)
                out = kernel_product(case.kernel, X, points, V, Meter())
                np.testing.assert_allclose(out, case.K[:, :6] @ V, rtol=0, atol=atol)


def test_no_rows_or_no_points_make_an_empty_product(kernel_name, make_case, form, precision):
    case = make_case(kernel_name)
    home = HostRows(case.kernel, form(case.X), error=np.inf, precision=ALWAYS[precision])
    none = np.arange(0)
    np.testing.assert_array_equal(home.product(home.take(none), np.zeros((0, 2))), np.zeros((case.n, 2)))
    np.testing.assert_array_equal(home.product_of(none, np.zeros((0, 2))), np.zeros((case.n, 2)))
    empty = HostRows(case.kernel, form(case.X)[none], ids=none, error=np.inf, precision=ALWAYS[precision])
    assert empty.product(home.take(np.arange(3)), np.ones((3, 2))).shape == (0, 2)
    assert empty.product_of(none, np.zeros((0, 2))).shape == (0, 2)
    assert empty.diagonal().shape == (0,)
    for keep in (True, False):
        assert empty.product_of(none, np.zeros((0, 1)), keep=keep).shape == (0, 1)


def test_a_callable_kernel_gives_what_its_function_gives(form):
    kernel, X, K = made("laplacian", 30)
    V = np.random.default_rng(6).normal(size=(30, 2))
    np.testing.assert_allclose(HostRows(Custom(kernel), form(X)).product(form(X), V), K @ V, atol=1e-12)
    np.testing.assert_allclose(HostRows(Custom(kernel), form(X)).product_of(np.arange(30), V), K @ V, atol=1e-12)


# Tiles


#: numbers of rows and points around the edges of groups of rows, panels, blocks and tiles
EDGES = [
    *((n, 2 * core.PANEL + 1) for n in (1, 5, 6, 7, 95, 96, 97, 193)),
    *((7, m) for m in (1, core.PANEL - 1, core.PANEL, core.PANEL + 1, 8 * core.PANEL, 8 * core.PANEL + 1)),
    *((n, n) for n in (1, TILE - 1, TILE, TILE + 1, POSTED + 1)),
]


@pytest.mark.parametrize("density", [1.0, 0.1], ids=["dense", "sparse"])
@pytest.mark.parametrize("columns", [1, 2])
def test_every_edge_of_a_tile_is_computed(kernel_name, precision, density, columns):
    form = csr_array if density < 1 else np.asarray
    size = max(max(pair) for pair in EDGES)
    kernel, X, K = made(kernel_name, size, d=6, density=density)
    V = np.random.default_rng(7).normal(size=(size, columns))
    for n, m in EDGES:
        home = HostRows(kernel, form(X[:n]), error=np.inf, precision=ALWAYS[precision], ids=np.arange(n))
        points, expected = kernel.points(X[:m], np.arange(m)), K[:n, :m] @ V[:m]
        atol = np.abs(V[:m]).sum() * slack(kernel, precision, X)
        np.testing.assert_allclose(home.product(points, V[:m]), expected, rtol=0, atol=atol)
        if m <= n:
            cached = home.product_of(np.arange(m), V[:m], keep=True)
            np.testing.assert_allclose(cached, expected, rtol=0, atol=atol)
            block = home.block(np.arange(n), np.arange(m))
            np.testing.assert_allclose(block, K[:n, :m], rtol=0, atol=slack(kernel, precision, X))
            if kernel_name in INNER:
                square = make_tiles(kernel, home.prepared, home.prepared, home.pool).gram()
                np.testing.assert_allclose(square, K[:n, :n], rtol=0, atol=slack(kernel, precision, X))


def test_a_strip_has_its_part_of_the_matrix_and_of_the_product(kernel_name, form, precision):
    kernel, X, K = made(kernel_name, 70, density=0.5)
    rows = prepare(kernel, Given(form(X)), 70, np.inf, precision=ALWAYS[precision])
    points = rows if kernel_name != "precomputed" else type(rows)(np.arange(70)[:, None], rows.norms, None)
    tiles, V = make_tiles(kernel, rows, points, ThreadPool(1)), np.random.default_rng(3).normal(size=(70, 3))
    part, whole, own = slice(13, 50), np.zeros((70, 3)), np.zeros((37, 3))
    values = np.zeros((37, 70), tiles.dtype)
    tiles.run(part, tiles.weights(V), whole, values)
    tiles.run(part, tiles.weights(V), own)
    np.testing.assert_allclose(values, K[part], rtol=0, atol=slack(kernel, precision, X))
    np.testing.assert_array_equal(whole[part], own)
    np.testing.assert_allclose(own, K[part] @ V, rtol=0, atol=np.abs(V).sum() * slack(kernel, precision, X))
    assert not whole[:13].any()
    assert not whole[50:].any()


@pytest.mark.parametrize("features", [8, 4096, 4097, 9000])
@pytest.mark.parametrize("dtype", ALWAYS, ids=str)
def test_sparse_rows_of_many_features_are_tiled_right(dtype, features):
    rng = np.random.default_rng(8)
    X = rng.random((130, features)) * (rng.random((130, features)) < 0.1)
    home = HostRows(Linear(), csr_array(X), error=np.inf, precision=ALWAYS[dtype])
    V = rng.normal(size=(130, 1))
    assert home.prepared.sparse
    assert home.dtype == dtype
    atol = 130 * slack(Linear(), home.dtype, X)
    np.testing.assert_allclose(home.product_of(np.arange(130), V), X @ (X.T @ V), rtol=0, atol=atol)


def test_rows_without_any_entry_have_inner_products_of_zero():
    X = np.zeros((4, 30))
    X[0, 3] = 1.0
    home = HostRows(Linear(), csr_array(X), error=np.inf, **SINGLE)
    tiles = make_tiles(home.kernel, home.prepared.take(np.array([1, 2])), home.prepared, home.pool)
    np.testing.assert_array_equal(tiles.matrix(), np.zeros((2, 4)))


def test_a_few_points_of_sparse_rows_leave_no_trace_in_the_padding():
    kernel, X, K = made("rbf", 40, d=30, density=0.1)
    home = HostRows(kernel, csr_array(X), error=np.inf, **SINGLE)
    for count in (40, 3, 1, 40):
        V = np.ones((count, 1))
        out = home.product(csr_array(X[:count]), V)
        np.testing.assert_allclose(out, K[:, :count] @ V, rtol=0, atol=count * slack(kernel, home.dtype, X))


@given(n=st.integers(0, 50), size=st.integers(1, 20))
def test_blocks_cover_the_range_once(n, size):
    parts = [range(n)[part] for part in blocks(n, size)]
    assert [i for part in parts for i in part] == list(range(n))
    assert all(1 <= len(part) <= size for part in parts)


# Precision

#: rows of 5 features from which on all their products are more than SMALL_WORK
LARGE = int(np.sqrt(SMALL_WORK / 5)) + 1


def sparse_rows(n):
    rng = np.random.default_rng(0)
    return rng.random((n, 5)) * (rng.random((n, 5)) < 0.1)


@pytest.mark.parametrize("name", INNER)
def test_small_work_is_float64_and_large_work_float32_where_the_bound_allows_it(name, form):
    X = sparse_rows(LARGE)
    kernel = made(name, 2)[0]
    assert HostRows(kernel, form(X)).dtype == np.float32
    assert HostRows(kernel, form(X[1:])).dtype == np.float64


@pytest.mark.parametrize("name", INNER)
def test_precision_falls_back_to_float64_where_float32_could_be_off_by_more_than_allowed(name, form):
    kernel, X = made(name, 2)[0], sparse_rows(LARGE)
    bound = float32_error(kernel, prepare(kernel, Given(form(X)), 1, np.inf))
    assert 0 < bound < FLOAT32_ERROR
    assert HostRows(kernel, form(X), error=1.01 * bound).dtype == np.float32
    assert HostRows(kernel, form(X), error=0.99 * bound).dtype == np.float64
    wide = 1e4 * X
    assert float32_error(kernel, prepare(kernel, Given(form(wide)), 1, np.inf)) > FLOAT32_ERROR
    assert HostRows(kernel, form(wide), error=np.inf).dtype == np.float64


def test_tiles_work_in_the_precision_of_the_setting(kernel_name, precision, form):
    kernel, X, _ = made(kernel_name, 40)
    home = HostRows(kernel, form(X), error=np.inf, precision=ALWAYS[precision])
    assert home.dtype == home.cache.rows.dtype == home.block(np.arange(3)).dtype == precision


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in INNER])
def test_kernels_of_no_inner_product_keep_float64(name):
    kernel, X, _ = made(name, 40)
    assert HostRows(kernel, X, error=np.inf, **SINGLE).dtype == np.float64


FEW, MANY = 3, 300
SOME = {
    "linear": lambda d: Linear(),  # noqa: ARG005
    "rbf": lambda d: RBF(1.0 / d),
    "narrow rbf": lambda d: RBF(30.0 / d),
    "poly": lambda d: Poly(1.0 / d, 1.0, 3),
    "sigmoid": lambda d: Sigmoid(1.0 / d, 0.1),
}
CASES = [(name, d, shift) for name in SOME for d in (FEW, MANY) for shift in (0.0, 1e4)]


def exact_values(kernel, X, Z):
    """In float64; the rbf from differences, which lose no digits far from the origin."""
    if not kernel.translation_invariant:
        return kernel(X, Z)
    distance = np.zeros((X.shape[0], Z.shape[0]))
    for x, z in zip(X.T, Z.T, strict=True):
        distance += (x[:, None] - z) ** 2
    return np.exp(-kernel.gamma * distance)


@pytest.mark.parametrize(("name", "d", "shift"), CASES)
def test_float32_values_are_within_the_promised_bound(name, d, shift):
    """Also far from the origin: kernels of differences centre their rows, the others have a larger bound there."""
    X = np.random.default_rng(9).normal(size=(1200, d)) + shift
    home = HostRows(SOME[name](d), X, error=np.inf, **SINGLE)
    assert home.dtype == np.float32
    K = home.block(np.arange(1200), np.arange(300))
    error = np.abs(K - exact_values(home.kernel, X, X[:300])).max()
    assert error <= float32_error(home.kernel, home.prepared)


def test_centring_keeps_the_promise_of_small_errors_far_from_the_origin():
    X = np.random.default_rng(10).normal(size=(200, 3))
    near, far = (float32_error(RBF(0.5), prepare(RBF(0.5), Given(rows), 200, np.inf, **SINGLE)) for rows in (X, X + 1e5))
    assert far == pytest.approx(near, rel=1e-3)


def test_precision_minds_points_that_are_longer_than_the_rows():
    rng = np.random.default_rng(11)
    X, points, V = 0.1 * rng.random((30_000, 20)), 1e5 * rng.random((30, 20)), 1e-3 * rng.normal(size=(30, 1))
    assert prepare(Linear(), Given(X), 30, FLOAT32_ERROR).values.dtype == np.float32  # the rows alone would allow it
    out = kernel_product(Linear(), X, points, V, Meter())
    assert np.abs(out - X @ (points.T @ V)).max() <= 30 * 1e-3 * FLOAT32_ERROR


# Threads


@pytest.mark.parametrize("density", [1.0, 0.1], ids=["dense", "sparse"])
def test_threads_change_nothing(kernel_name, precision, density, threads):
    kernel, X, K = made(kernel_name, 2500 if kernel_name in INNER else 1100, d=6, density=density)
    some, V = np.arange(0, X.shape[0], 9), np.random.default_rng(12).normal(size=(X.shape[0], 2))[::9]
    results = []
    for count in (1, 3):
        threads(count)
        home = HostRows(kernel, csr_array(X) if density < 1 else X, error=np.inf, precision=ALWAYS[precision])
        assert home.pool.count == count
        answers = [home.product(home.take(some), V), home.block(np.arange(X.shape[0]), some), home.block(some)]
        answers += [home.product_of(some, V, keep=keep) for keep in (True, True, False)]
        answers.append(kernel_product(kernel, csr_array(X) if density < 1 else X, home.take(some), V, Meter()))
        results.append(answers)
    atol = np.abs(V).sum() * slack(kernel, precision, X)
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(results[1][0], K[:, some] @ V, rtol=0, atol=atol)


def test_strips_are_all_worked_through_by_any_crew():
    for count in (1, 2, 3):
        seen, lock = [], threading.Lock()

        def work(strip, seen=seen, lock=lock):
            with lock:
                seen.extend(range(1000)[strip])

        ThreadPool(count).run(work, 1000, 37)
        assert sorted(seen) == list(range(1000))


def test_an_error_in_a_thread_is_raised_to_the_caller():
    def work(strip):
        raise KeyError(strip.start)

    with pytest.raises(KeyError):
        ThreadPool(2).run(work, 100, 10)


@pytest.mark.parametrize(("setting", "count"), [("1", 1), ("2", 2), ("64", 8), ("", 8), ("3,1", 3)])
def test_omp_num_threads_lowers_the_number_of_threads(monkeypatch, threads, setting, count):
    threads(8)
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert thread_count() == count


@pytest.mark.parametrize("setting", ["0", "-2", "many", "1.5"])
def test_a_number_of_threads_that_is_none_is_ignored_with_a_warning(monkeypatch, threads, setting):
    threads(8)
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    with pytest.warns(RuntimeWarning, match="not a number above 0 and is ignored"):
        assert thread_count() == 8


# The meter


def test_the_meter_counts_every_evaluation_once(kernel_name, make_case, form):
    case = make_case(kernel_name)
    meter = Meter()

    def count(question):
        before = meter.evaluations
        question()
        return meter.evaluations - before

    home = HostRows(case.kernel, form(case.X), meter)
    assert meter.evaluations == 0
    index, V = np.array([3, 1, 8]), np.ones((3, 2))
    assert count(lambda: home.product(home.take(index), V)) == 3 * case.n
    assert count(lambda: home.block(index)) == 9
    assert count(lambda: home.block(index, np.arange(5))) == 15
    assert count(home.diagonal) == case.n
    assert count(lambda: home.product_of(index, V, keep=False)) == 3 * case.n
    assert count(lambda: home.product_of(index, V, keep=True)) == 3 * case.n
    assert count(lambda: home.product_of(index, V, keep=True)) == 0
    assert count(lambda: home.product_of(np.array([8, 9]), V[:2], keep=True)) == case.n
    assert count(lambda: kernel_product(case.kernel, form(case.X), home.take(index), V, meter)) == 3 * case.n


def test_the_meter_agrees_with_a_kernel_that_counts_for_itself():
    seen = []

    def counting(A, B):
        seen.append(A.shape[0] * B.shape[0])
        return A @ B.T

    X, rng = np.random.default_rng(13).random((40, 3)), np.random.default_rng(14)
    home = HostRows(Custom(counting), X, cache_mb=10.5 * 40 * 8 / 2**20)
    for _ in range(20):
        index = rng.permutation(40)[: rng.integers(1, 15)]
        home.product_of(index, np.ones((index.size, 1)), keep=True)
    home.block(np.arange(7))
    home.diagonal()
    assert home.meter.evaluations == sum(seen)


# The row cache


@given(
    n=st.integers(1, 12),
    slots=st.integers(0, 14),
    calls=st.lists(st.lists(st.integers(0, 11), unique=True, max_size=12), max_size=25),
)
def test_the_row_cache_holds_the_last_rows_used(n, slots, calls):
    cache = RowCache(n, np.dtype(np.float64), (slots + 0.5) * n * 8 / 2**20)
    assert cache.rows.shape == (min(slots, n), n)
    last_use = {}
    for clock, call in enumerate(calls):
        index = np.array([row for row in call if row < n], dtype=np.intp)
        held_before = set(cache.held[cache.held >= 0])
        where, new = cache.seat(index)
        seated = where[where >= 0]
        assert np.unique(seated).size == seated.size
        assert seated.size == min(index.size, cache.rows.shape[0])
        np.testing.assert_array_equal(cache.held[seated], index[where >= 0])
        assert not new[where < 0].any()
        for row, slot, fresh in zip(index, where, new, strict=True):
            if slot >= 0:
                assert fresh == (row not in held_before)
                last_use[row] = clock
        held = cache.held[cache.held >= 0]
        assert np.unique(held).size == held.size
        np.testing.assert_array_equal(np.flatnonzero(cache.slot_of >= 0), np.sort(held))
        np.testing.assert_array_equal(cache.held[cache.slot_of[held]], held)
        evicted = held_before - set(held)
        assert all(last_use[gone] <= last_use[stays] for gone in evicted for stays in held)


def test_a_row_that_is_asked_for_again_is_not_evicted_first():
    cache = RowCache(10, np.dtype(np.float64), 3.5 * 10 * 8 / 2**20)
    for row in (0, 1, 2, 0):
        cache.seat(np.array([row]))
    cache.seat(np.array([5]))
    assert set(cache.held) == {0, 2, 5}


def test_a_row_cache_of_no_memory_seats_nobody():
    where, new = RowCache(10, np.dtype(np.float64), 0.0).seat(np.arange(4))
    assert (where == -1).all()
    assert not new.any()


# The forms of rows


def test_rows_of_mostly_zeros_are_worked_on_as_sparse_and_the_others_as_dense():
    rng = np.random.default_rng(15)
    for density, sparse in ((0.05, True), (0.6, False)):
        X = rng.random((60, 40)) * (rng.random((60, 40)) < density)
        for rows in (X, csr_array(X), csr_matrix(X)):
            assert prepare(RBF(1.0), Given(rows), 10, np.inf).sparse is sparse


def test_the_rows_given_are_left_unchanged(kernel_name, make_case, form, precision):
    case = make_case(kernel_name)
    X = form(case.X)
    home = HostRows(case.kernel, X, error=np.inf, precision=ALWAYS[precision])
    home.product_of(np.arange(5), np.ones((5, 1)), keep=True)
    home.product(home.take(np.arange(3)), np.ones((3, 2)))
    home.block(np.arange(4))
    np.testing.assert_array_equal(X.toarray() if issparse(X) else X, make_case(kernel_name).X)


def test_tiled_matrix_and_product_agree(kernel_name, form, precision):
    kernel, X, _ = made(kernel_name, 30)
    home = HostRows(kernel, form(X), error=np.inf, precision=ALWAYS[precision])
    tiles = make_tiles(kernel, home.prepared, home._points(np.arange(30)), home.pool)
    inner, dense = isinstance(kernel, InnerKernel), not home.prepared.sparse and not issparse(home.prepared.values)
    assert isinstance(tiles, CompiledTiles) is (inner or (dense and kernel_name != "precomputed"))
    V = np.random.default_rng(16).normal(size=(30, 3))
    np.testing.assert_allclose(tiles.product(V), tiles.matrix() @ V, rtol=0, atol=30 * slack(kernel, precision, X))


def test_an_error_in_one_thread_ends_the_work_of_all():
    started = []

    def work(strip):
        started.append(strip.start)
        if strip.start == 0:
            raise KeyboardInterrupt
        time.sleep(0.02)

    with pytest.raises(KeyboardInterrupt):
        ThreadPool(2).run(work, 1000, 1)
    seen = len(started)
    time.sleep(0.02)
    assert seen < 1000
    assert len(started) <= seen + 2


def test_a_subset_has_the_kernel_values_of_these_rows():
    X = np.random.default_rng(5).normal(size=(60, 4))
    home, index = HostRows(RBF(0.3), X), np.array([3, 1, 40])
    part = home.subset(index)
    before = home.meter.evaluations
    np.testing.assert_allclose(part.block(np.arange(3)), RBF(0.3)(X[index], X[index]))
    np.testing.assert_array_equal(part.take(np.array([2])), X[[40]])
    assert home.meter.evaluations == before + 9


def test_a_few_rows_give_what_tiles_give(kernel_name, make_case):
    case = make_case(kernel_name)
    coef = np.random.default_rng(0).normal(size=(4, 2))
    points = case.points(np.arange(4))
    meter = Meter()
    few = kernel_product(case.kernel, case.X[:3], points, coef, meter)
    assert meter.evaluations == 12
    tiles = HostRows(case.kernel, case.X[:3]).product(points, coef)
    np.testing.assert_allclose(few, tiles, rtol=1e-12)
    np.testing.assert_allclose(few, case.K[:3, :4] @ coef, rtol=1e-12)


@pytest.mark.parametrize("name", INNER)
@pytest.mark.parametrize("count", [1, 16, 17])
def test_a_few_rows_and_sparse_points_give_the_product(name, form, count):
    kernel, X, K = made(name, 40, d=30, density=0.1)
    V = np.random.default_rng(0).normal(size=(40, 2))
    out = kernel_product(kernel, form(X[:count]), csr_array(X), V, Meter())
    np.testing.assert_allclose(out, K[:count] @ V, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_very_many_features_take_memory_by_those_that_occur(dtype):
    """300,000,000 features, of which each row has a few; a dense line of points would be 71 GB."""
    rng, d = np.random.default_rng(0), 300_000_000
    features = np.concatenate([rng.integers(0, d, 40), [d - 1]])
    few = rng.normal(size=(30, features.size)) * (rng.random((30, features.size)) < 0.2)
    order = np.argsort(features)
    small = csr_array(few[:, order])
    wide = csr_array((small.data, features[order][small.indices], small.indptr), shape=(30, d))
    rows = HostRows(RBF(0.3), wide, error=np.inf if dtype == np.float32 else 0.0)
    K = RBF(0.3)(few, few)
    np.testing.assert_allclose(rows.block(np.arange(30)), K, atol=1e-6)
    np.testing.assert_allclose(rows.product(wide[:7], np.ones((7, 1))), K[:, :7].sum(axis=1, keepdims=True), atol=1e-5)
    zero = rows.product(wide[:1] * 0, np.ones((1, 1))).ravel()
    np.testing.assert_allclose(zero, np.exp(-0.3 * (few**2).sum(axis=1)), atol=1e-6)


@pytest.mark.parametrize("name", ["rbf", "chi2", "laplacian"])
def test_blocks_without_rows_are_empty(name):
    rows = HostRows(make_kernel(name, gamma=1.0, degree=1, coef0=0.0), np.random.default_rng(0).random((5, 2)))
    nothing, some = np.arange(0), np.arange(3)
    assert rows.block(nothing, some).shape == (0, 3)
    assert rows.block(some, nothing).shape == (3, 0)


@pytest.mark.parametrize(("form", "features"), [(np.asarray, 40), (csr_array, 40), (csr_array, FEW_FEATURES + 1)])
@pytest.mark.parametrize("precision", ALWAYS)
def test_a_matrix_of_rows_is_symmetric_to_the_last_bit(precision, form, features):
    """If two strips wrote the same entries, their rounding would depend on which thread is last.

    Points of many features are in panels of their own, of which a strip may begin in the middle.
    """
    rng = np.random.default_rng(0)
    X = np.zeros((1500, features))
    X[:, -40:] = rng.normal(size=(1500, 40)) * (rng.random((1500, 40)) < 0.1)
    rows = HostRows(RBF(0.1), form(X), precision=ALWAYS[precision])
    grams = [
        make_tiles(rows.kernel, rows.prepared, rows.prepared, ThreadPool(count), rows.dtype).gram() for count in (1, 3)
    ]
    np.testing.assert_array_equal(*grams)
    np.testing.assert_array_equal(grams[0], grams[0].T)
    np.testing.assert_allclose(grams[0], RBF(0.1)(X, X), atol=1e-5)
