"""Rows on a device give what rows on the host give, and count as many kernel evaluations."""

import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from slimsvm.kernels import KERNELS, RBF, Custom, InnerKernel, Linear, Poly, dense, make_kernel
from slimsvm.rows import array as array_module
from slimsvm.rows import backends
from slimsvm.rows.backends import FLOAT32
from slimsvm.rows.homes import HOMES, open_rows, resolve_device
from slimsvm.rows.host import HostRows
from slimsvm.rows.kernel_matrix import KernelMatrix
from slimsvm.rows.precision import Given, Precision
from slimsvm.rows.protocol import Meter, Rows

N, D, M = 60, 5, 9
INNER = [name for name in KERNELS if issubclass(KERNELS[name], InnerKernel)]
SMOOTH = [name for name in KERNELS if KERNELS[name].differentiable]
SETTINGS = [(name, dtype) for name in KERNELS for dtype in ("float64", "float32") if name in INNER or dtype == "float64"]


DEVICES = ["array_api_strict", *(["torch:cpu", "cuda"] if find_spec("torch") else [])]


@pytest.fixture(params=DEVICES)
def device(request):
    """A device that there is here."""
    if request.param == "cuda" and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is no CUDA GPU")
    return request.param


@pytest.fixture(params=SETTINGS, ids=[f"{name}-{dtype}" for name, dtype in SETTINGS])
def setting(request):
    """A kernel and a precision that it can work in."""
    return request.param


#: settings that lead to a precision, for work of any size
ALWAYS = {"float32": Precision(small_work=0, float32_error=np.inf), "float64": Precision(small_work=np.inf)}


def made(name, seed=0):
    """A kernel and rows for it, a third of their entries 0."""
    rng = np.random.default_rng(seed)
    X = rng.random((N, D)) * (rng.random((N, D)) < 0.7) + 0.5 * (np.arange(D) == 0)
    kernel = make_kernel(name, gamma=0.3, degree=3, coef0=0.5)
    return kernel, RBF(0.3)(X, X) if name == "precomputed" else X


class Pair:
    """The same rows on the host and on a device; `check` compares two answers, and the meters."""

    def __init__(self, device, name, dtype="float64", form=np.asarray, **settings):
        self.kernel, self.X = made(name)
        settings = {"error": np.inf, "precision": ALWAYS[dtype]} | settings
        self.host = HostRows(self.kernel, form(self.X), **settings)
        self.there = open_rows(self.kernel, form(self.X), device=device, **settings)
        self.atol = 1e-11 if dtype == "float64" else 2e-5
        self.rng = np.random.default_rng(1)
        assert self.there.dtype == self.host.dtype == dtype

    def check(self, answer):
        """Compare what a function of rows answers in both homes."""
        self.same(answer(self.host), answer(self.there))

    def same(self, expected, found):
        assert isinstance(found, np.ndarray)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=self.atol, atol=self.atol * (1 + np.abs(expected).max(initial=0)))
        assert self.host.meter.evaluations == self.there.meter.evaluations

    def against(self, points, **settings):
        return self.host.against(points, **settings), self.there.against(points, **settings)

    def points(self, count=M, start=0):
        return self.host.take(np.arange(start, start + count))


@pytest.fixture
def pair(device, setting, form):
    return Pair(device, *setting, form)


def test_a_device_has_all_of_the_protocol(device):
    rows = open_rows(RBF(0.5), made("rbf")[1], device=device)
    for protocol, object_ in ((Rows, rows), (KernelMatrix, rows.against(rows.take(np.arange(2))))):
        names = {name for name in vars(protocol) if not name.startswith("_")} | set(protocol.__annotations__)
        assert [name for name in sorted(names) if not hasattr(object_, name)] == []


@pytest.mark.parametrize("columns", [1, 3])
def test_products(pair, columns):
    for count in (M, 1, 0):
        V = pair.rng.normal(size=(count, columns))
        pair.check(lambda rows, count=count, V=V: rows.product(pair.points(count), V))


@pytest.mark.parametrize("keep", [True, False, None], ids=["kept", "not kept", "kept where it pays"])
def test_products_of_rows(pair, keep):
    for count in (9, 9, 0, 1, 23):
        index, V = pair.rng.permutation(N)[:count], pair.rng.normal(size=(count, 2))
        pair.check(lambda rows, index=index, V=V: rows.product_of(index, V, keep=keep))


@pytest.mark.parametrize("slots", [0, 1, 4])
def test_products_of_rows_when_the_cache_is_small(device, slots):
    pair = Pair(device, "rbf", cache_mb=(slots + 0.5) * N * 8 / 2**20)
    for _ in range(10):
        index = pair.rng.permutation(N)[: pair.rng.integers(0, 8)]
        V = pair.rng.normal(size=(index.size, 2))
        pair.check(lambda rows, index=index, V=V: rows.product_of(index, V, keep=True))


@pytest.mark.parametrize("name", ["rbf", "laplacian", "precomputed"])
@pytest.mark.parametrize("cache_mb", [0.0, 1.0], ids=["no cache", "cache"])
def test_whether_a_cache_pays(device, name, cache_mb):
    pair = Pair(device, name, cache_mb=cache_mb)
    assert pair.there.worth_caching == pair.host.worth_caching
    wide = np.random.default_rng(0).random((4, 300))
    assert open_rows(Linear(), wide, device=device).worth_caching == (device != "cuda")  # a GPU computes as fast
    assert not open_rows(Linear(), wide, device=device, cache_mb=0.0).worth_caching


def test_blocks(pair):
    index, columns = np.array([7, 2, 20, 3]), np.array([1, 7])
    pair.check(lambda rows: rows.block(index))
    pair.check(lambda rows: rows.block(index, columns))
    memory = np.full(20, 7.0, pair.there.dtype)
    found = pair.there.block(index, columns, out=memory)
    pair.same(pair.host.block(index, columns), found)
    assert np.shares_memory(found, memory)
    assert (memory[8:] == 7).all()


def test_small_answers_are_the_host_s(pair):
    index = np.array([3, 1, 50])
    pair.check(lambda rows: rows.diagonal())
    pair.check(lambda rows: np.asarray(rows.among(pair.points(4), pair.points(3))))
    pair.check(lambda rows: np.asarray(rows.among(pair.points(4))))
    pair.check(lambda rows: rows.mean(index))
    pair.check(lambda rows: rows.means(np.arange(N), 4, np.random.default_rng(3), rounds=5))
    pair.check(lambda rows: rows.sample(7, np.random.default_rng(3)))
    assert (pair.there.n, pair.there.d) == (pair.host.n, pair.host.d)
    pair.check(lambda rows: dense(rows.take(index)))


@pytest.mark.parametrize("name", SMOOTH)
def test_pullback_among_points(device, name):
    pair = Pair(device, name)
    A, Z = pair.points(4), pair.points(3, 10)
    K, W = pair.kernel(A, Z), pair.rng.normal(size=(4, 3))
    pair.check(lambda rows: rows.pullback_among(A, Z, K, W.copy()))


def test_subsets_other_rows_and_rows_on_the_host(pair):
    V, index = pair.rng.normal(size=(M, 2)), np.array([30, 4, 5, 41])
    pair.check(lambda rows: rows.subset(index).product(pair.points(), V))
    pair.check(lambda rows: rows.subset(index).subset(np.array([2, 0])).product(pair.points(), V))
    pair.check(lambda rows: rows.subset(index).product_of(np.array([3, 1]), V[:2]))
    pair.check(lambda rows: rows.of(rows.take(index), exact=True).product(pair.points(), V))
    pair.check(lambda rows: rows.of(rows.take(index)).block(np.array([2, 1])))
    assert not pair.there.subset(index).worth_caching
    np.testing.assert_array_equal(pair.there.subset(index).ids, index)
    fetched = pair.there.fetch(index)
    assert isinstance(fetched, HostRows)
    assert fetched.dtype == np.float64
    pair.check(lambda rows: rows.fetch(index).product(pair.points(), V))


def test_other_rows_have_a_cache_on_request(device):
    rows = open_rows(Linear(), np.random.default_rng(0).random((4, 300)), device=device)
    points = rows.take(np.arange(2))
    assert rows.of(points, cache=True).worth_caching == (device != "cuda")
    assert not rows.of(points).worth_caching


def test_points_of_a_precomputed_kernel_must_be_rows(device):
    rows = Pair(device, "precomputed").there.subset(np.arange(5))
    with pytest.raises(ValueError, match="a point is not one of them"):
        rows.of(np.array([[7]]))


def test_work_is_shared_out_to_the_end(device):
    done = []
    open_rows(RBF(0.5), made("rbf")[1], device=device).share_out(done.append, 5)
    assert sorted(done) == list(range(5))


def test_coordinates_of_the_home(pair):
    if pair.kernel.name == "precomputed":
        return
    points = pair.X[:3]
    np.testing.assert_allclose(pair.there.from_coordinates(pair.there.to_coordinates(points)), points, atol=1e-14)


# K(rows, points) on the device


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "not exact"])
def test_answers_of_kernel_values(pair, exact):
    host, there = pair.against(pair.points(), exact=exact)
    rng = pair.rng
    V, W, some = rng.normal(size=(M, 2)), rng.normal(size=(N, 2)), rng.permutation(N)[:20]
    weights = rng.random(N)
    assert there.size == M
    for answer in (
        lambda K: K.times(V),
        lambda K: K.times(V[:, :1]),
        lambda K: K.column(3),
        lambda K: K.column(-1),
        lambda K: K.back(W),
        lambda K: K.back(W[:, :1]),
        lambda K: K.back(W[:20], some),
        lambda K: K.curvature(some, weights),
        lambda K: K.curvature(some, np.full(N, 2.0)),
        lambda K: K.curvature(some, weights, 4),
        lambda K: K.curvature(some[:0], weights),
        lambda K: K.group_means(np.arange(N) % 7, weights),
        lambda K: K.group_means(np.arange(N)[::-1].copy(), weights),
        lambda K: np.array(K.largest_square()),
        lambda K: K.nearest(),
    ):
        pair.same(answer(host), answer(there))


def test_points_join_and_leave(pair):
    host, there = pair.against(pair.points(0))
    V = np.ones((20, 1))

    def check(size):
        assert host.size == there.size == size
        pair.same(host.times(V[:size]), there.times(V[:size]))

    check(0)
    for start in range(0, 12, 3):
        for K in (host, there):
            K.append(pair.points(3, start))
        check(start + 3)
    shared = host.first(5), there.first(5)
    for K in (host, there):
        K.keep(np.array([4, 0, 11]))
    check(3)
    pair.same(*(K.times(V[:5]) for K in shared))
    for K in (host, there):
        K.append(pair.points(2, 20))
    check(5)
    if pair.kernel.differentiable:
        W = pair.rng.normal(size=(N, 1))
        pair.same(*(K.pullback(W, V[:5]) for K in (host, there)))


def test_gradients(pair):
    if not pair.kernel.differentiable:
        with pytest.raises(ValueError, match="has no gradients"):
            pair.there.against(pair.points()).pullback(np.ones((N, 1)), np.ones((M, 1)))
        return
    W, V = pair.rng.normal(size=(N, 2)), pair.rng.normal(size=(M, 2))
    few = W * (np.arange(N) % 4 == 0)[:, None]
    points = pair.X[:M] + 0.1 * pair.rng.random((M, D))
    fixed = pair.against(points)
    moving = tuple(rows.moving(rows.to_coordinates(points)) for rows in (pair.host, pair.there))
    for host, there in (fixed, moving):
        for weights in (W, few, 0 * W):
            pair.same(host.pullback(weights, V), there.pullback(weights, V))
            pair.same(host.pullback(weights[:, :1], V[:, :1]), there.pullback(weights[:, :1], V[:, :1]))


@pytest.mark.parametrize("name", SMOOTH)
def test_points_that_move(device, name):
    pair = Pair(device, name)
    handles = [(rows, rows.moving(rows.to_coordinates(pair.points(4)))) for rows in (pair.host, pair.there)]
    for count in (4, 6, 2):
        points, V = pair.rng.random((count, D)), pair.rng.normal(size=(count, 2))
        pair.same(*(K.move(rows.to_coordinates(points), V) for rows, K in handles))
        pair.same(*(K.back(np.ones((N, 1))) for _, K in handles))


def test_linear_features(pair):
    T = pair.rng.normal(size=(M, 4))
    host, there = (K.features(T) for K in pair.against(pair.points()))
    assert isinstance(there, array_module.ArrayRows)
    index, V = np.array([5, 40, 2]), pair.rng.normal(size=(3, 2))
    for answer in (
        lambda rows: rows.take(index),
        lambda rows: rows.diagonal(),
        lambda rows: rows.product_of(index, V),
        lambda rows: rows.subset(index).block(np.array([1, 0])),
        lambda rows: rows.subset(index).take(np.array([1, 0])),
        lambda rows: rows.product(rows.take(index), V),
        lambda rows: rows.fetch(index).diagonal(),
    ):
        pair.same(answer(host), answer(there))


# Precision


def test_large_work_is_float32_where_rounding_is_small(device):
    X = np.random.default_rng(0).normal(size=(1500, 10))
    V = np.ones((20, 1))
    for shift, dtype in ((0.0, "float32"), (1e5, "float32"), (0.0, "float64")):
        error = 1e-4 if dtype == "float32" else 0.0
        host = HostRows(RBF(0.05), X + shift, error=error)
        there = open_rows(RBF(0.05), X + shift, device=device, error=error)
        assert there.dtype == host.dtype == dtype
        np.testing.assert_allclose(there.product(X[:20] + shift, V), host.product(X[:20] + shift, V), atol=1e-4)
    assert open_rows(Linear(), X + 1e5, device=device).dtype == np.float64


def test_points_far_out_are_float64(device):
    X = np.random.default_rng(0).normal(size=(1500, 10))
    rows, exact = open_rows(RBF(0.05), X, device=device), HostRows(RBF(0.05), X, error=0.0)
    assert rows.dtype == np.float32
    far, V = X[:20] + 3000.0, np.ones((20, 1))
    near = X[:20]
    np.testing.assert_allclose(rows.product(far, V), exact.product(far, V), atol=1e-12)
    handle = rows.moving(rows.to_coordinates(near))
    np.testing.assert_allclose(handle.times(V), exact.product(near, V), atol=1e-4)
    handle.move(rows.to_coordinates(far), V)
    np.testing.assert_allclose(handle.move(rows.to_coordinates(near), V), exact.product(near, V), rtol=0, atol=1e-5)
    assert handle.dtype == np.float64
    handle = rows.against(near)
    handle.append(far)
    assert handle.dtype == np.float64
    np.testing.assert_allclose(
        handle.times(np.ones((40, 1))), exact.product(np.vstack([near, far]), np.ones((40, 1))), atol=1e-4
    )


def test_sums_of_float32_values_are_float64(device):
    X = np.random.default_rng(0).normal(size=(3000, 10))
    rows = open_rows(RBF(0.05), X, device=device)
    K = rows.against(rows.take(np.arange(50)))
    values = np.column_stack([K.column(j) for j in range(50)])
    np.testing.assert_allclose(K.back(np.ones((3000, 1))), values.sum(axis=0)[:, None], rtol=1e-13)
    A = np.column_stack([np.ones(3000), values])
    np.testing.assert_allclose(K.curvature(np.arange(3000), np.ones(3000)), A.T @ A, rtol=1e-12)


@pytest.mark.strict_arrays
def test_a_device_without_float64():
    X = np.random.default_rng(0).normal(size=(N, 3))
    device, V = "array_api_strict:no_float64", np.ones((4, 1))
    rows, host = open_rows(RBF(0.5), X, device=device), HostRows(RBF(0.5), X)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows.product(X[:4], V), host.product(X[:4], V), atol=1e-5)
    np.testing.assert_allclose(
        rows.against(X[:4]).curvature(np.arange(N), np.ones(N)),
        host.against(X[:4]).curvature(np.arange(N), np.ones(N)),
        rtol=1e-4,
    )
    exact = rows.of(X[:4], exact=True)
    assert isinstance(exact, HostRows)
    assert exact.meter is rows.meter
    with pytest.raises(
        ValueError, match=r"no float64, and float32 is too coarse for the linear kernel with these rows; scale"
    ):
        open_rows(Linear(), X * 1e4, device=device)
    with pytest.raises(ValueError, match="too coarse for the laplacian kernel"):
        open_rows(make_kernel("laplacian", gamma=1.0, degree=3, coef0=0.0), X, device=device)
    with pytest.raises(ValueError, match="a point is too far from the rows for float32"):
        rows.moving(rows.to_coordinates(X[:4] + 1e4))


@pytest.mark.strict_arrays
def test_float32_is_left_alone_where_products_lose_digits(monkeypatch):
    monkeypatch.setattr(backends, "_keeps_float32", lambda *_: False)  # as with TF32
    X = np.random.default_rng(0).normal(size=(1500, 10))
    assert open_rows(RBF(0.05), X, device="array_api_strict").dtype == np.float64


def test_products_are_tried_once_for_each_setting_of_torch(monkeypatch):
    torch = pytest.importorskip("torch")
    matmul = torch.backends.cuda.matmul
    if getattr(matmul, "fp32_precision", None) is None:
        pytest.skip("this version of torch has no such setting")
    tried, tells, before = [], backends._tells, matmul.fp32_precision
    monkeypatch.setattr(backends, "_tells", lambda *given: tried.append(given) or tells(*given))
    backends._tells_under.cache_clear()
    try:
        for setting in ("ieee", "tf32", "ieee", "tf32"):
            matmul.fp32_precision = setting
            assert backends.open_torch("torch:cpu").plain_float32
    finally:
        matmul.fp32_precision = before
        backends._tells_under.cache_clear()
    assert len(tried) == 2


def test_rows_far_from_each_other_have_float32_values_of_float64_products(device):
    """As covtype's raw features: float32 distances would have no digit right."""
    X = 1e4 * np.random.default_rng(0).integers(0, 9, size=(2200, 4)) + np.random.default_rng(1).normal(size=(2200, 4))
    rows, exact = open_rows(RBF(0.05), X, device=device, error=1e-5), HostRows(RBF(0.05), X, error=0.0)
    assert rows.held.dtype == np.float64
    assert rows.dtype == np.float32
    index, V = np.arange(300), np.random.default_rng(2).normal(size=(300, 1))
    memory = rows.buffer(300 * 300)
    assert memory.dtype == np.float32
    np.testing.assert_allclose(rows.block(index, out=memory), exact.block(index), atol=1e-6)
    np.testing.assert_allclose(rows.product_of(index, V), exact.product_of(index, V), atol=2e-6 * np.abs(V).sum())
    precise = open_rows(RBF(0.05), X, device=device, error=1e-8)
    assert precise.dtype == np.float64
    np.testing.assert_allclose(precise.product_of(index, V), exact.product_of(index, V), atol=1e-6)  # exponents of 1e9


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_rows_that_are_not_finite_are_refused(device, value):
    X = np.ones((20, 3))
    X[7, 1] = value
    with pytest.raises(ValueError, match="rows must be finite numbers"):
        open_rows(RBF(0.5), X, device=device)


# Memory


def test_a_tile_is_halved_where_memory_is_out(device, monkeypatch):
    pair = Pair(device, "rbf")
    sizes, evaluator = [], type(pair.there).evaluator

    def small_tiles(self, *args, **more):
        values = evaluator(self, *args, **more)

        def small_tile(A):
            sizes.append(A.values.shape[0])
            if A.values.shape[0] > 10:
                raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
            return values(A)

        return small_tile

    monkeypatch.setattr(type(pair.there), "evaluator", small_tiles)
    V = np.ones((M, 1))
    pair.check(lambda rows: rows.product(pair.points(), V))
    assert sizes[:5] == [60, 30, 15, 7, 7]
    pair.same(*(K.times(V) for K in pair.against(pair.points())))
    pair.check(lambda rows: rows.block(np.arange(40)))


@pytest.mark.parametrize("room", [0, 400])
def test_kernel_values_without_memory_for_all_are_evaluated_anew(device, room, monkeypatch):
    """`room`: as many kernel values as there is memory for."""
    monkeypatch.setattr(
        backends.Backend,
        "empty_or_none",
        lambda self, shape, dtype: self.empty(shape, dtype) if shape[0] * shape[1] <= room else None,
    )
    pair = Pair(device, "rbf")
    rng, before = pair.rng, pair.there.meter.evaluations
    W, V, weights = rng.normal(size=(N, 2)), rng.normal(size=(M + 3, 2)), rng.random(N)
    host, there = pair.against(pair.points(3))
    for start in (3, 6, 9):
        for K in (host, there):
            K.append(pair.points(3, start))
    columns = np.array([7, 0, 11])
    for answer in (
        lambda K: K.times(V),
        lambda K: K.back(W),
        lambda K: K.back(W[:20], np.arange(20)),
        lambda K: K.column(-1),
        lambda K: K.curvature(np.arange(30), weights),
        lambda K: K.pullback(W, V),
        lambda K: K.group_means(np.arange(N) % 7, weights),
        lambda K: K.nearest(),
        lambda K: np.array(K.largest_square()),
        lambda K: K.features(V).product(np.eye(2), np.eye(2)),
        lambda K: K.first(4).times(V[:4]),
        lambda K: (K.keep(columns), K.times(V[:3]))[1],
        lambda K: K.move(K.rows.to_coordinates(pair.points(5)), V[:5]),
    ):
        expected, found = answer(host), answer(there)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
    assert pair.there.meter.evaluations > before + 10 * N  # each pass is counted


@pytest.mark.strict_arrays
@pytest.mark.parametrize("error", [RuntimeError("CUDA out of memory"), MemoryError()], ids=repr)
def test_memory_that_there_is_not_is_none(error, monkeypatch):
    on = backends.open_strict("array_api_strict")
    monkeypatch.setattr(on.xp, "empty", lambda *_, **__: (_ for _ in ()).throw(error))
    assert on.empty_or_none((2, 2), np.dtype(np.float64)) is None
    monkeypatch.setattr(on.xp, "empty", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("another")))
    with pytest.raises(RuntimeError, match="another"):
        on.empty_or_none((2, 2), np.dtype(np.float64))


@pytest.mark.strict_arrays
@pytest.mark.parametrize("error", [RuntimeError("out of memory"), MemoryError(), RuntimeError("another error")], ids=repr)
def test_other_errors_and_memory_that_is_never_enough_are_told(error, monkeypatch):
    rows = open_rows(RBF(0.5), made("rbf")[1], device="array_api_strict")

    def fail(*_):
        raise error

    monkeypatch.setattr(type(rows), "evaluator", lambda *_, **__: fail)
    with pytest.raises(type(error)):
        rows.product(rows.take(np.arange(3)), np.ones((3, 1)))


def test_small_tiles_give_the_same(device):
    pair = Pair(device, "rbf")
    pair.there.backend = replace(pair.there.backend, tile_values=100)
    W, V, index = pair.rng.normal(size=(N, 2)), pair.rng.normal(size=(M, 2)), pair.rng.permutation(N)[:M]
    pair.check(lambda rows: rows.product(pair.points(), V))
    pair.check(lambda rows: rows.product_of(index, V, keep=True))
    host, there = pair.against(pair.points())
    for answer in (
        lambda K: K.times(V),
        lambda K: K.back(W),
        lambda K: K.pullback(W, V),
        lambda K: K.curvature(index, np.ones(N)),
        lambda K: K.group_means(np.arange(N) % 7, np.ones(N)),
        lambda K: K.features(V).diagonal(),
    ):
        pair.same(answer(host), answer(there))


def test_sparse_rows_beyond_all_memory(device):
    X = csr_array((10**6, 10**5))
    with pytest.raises(
        ValueError, match=r"1,000,000 sparse rows of 100,000 features: .* holds rows written out, .* 373 GiB"
    ):
        open_rows(RBF(0.5), X, device=device)


# Devices and kernels that there are not


def test_rows_by_their_numbers_and_the_meter_given(device):
    kernel, X = made("rbf")
    meter, index = Meter(), np.array([5, 3, 40])
    rows = open_rows(kernel, X, device=device, meter=meter, index=index, ids=np.array([7, 8, 9]))
    np.testing.assert_allclose(
        rows.product(X[:4], np.ones((4, 1))), HostRows(kernel, X[index]).product(X[:4], np.ones((4, 1)))
    )
    assert meter.evaluations == 12
    np.testing.assert_array_equal(rows.ids, [7, 8, 9])


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_sparse_rows_by_their_numbers(device, kind):
    kernel, X = made("rbf")
    index, V = np.array([5, 3, 40]), np.ones((4, 1))
    expected = kernel(X, X[:4]).sum(axis=1)[:, None]
    np.testing.assert_allclose(open_rows(kernel, kind(X), device=device).product(X[:4], V), expected)
    np.testing.assert_allclose(open_rows(kernel, kind(X), device=device, index=index).product(X[:4], V), expected[index])


def test_the_host_is_the_default():
    kernel, X = made("rbf")
    assert isinstance(open_rows(kernel, X), HostRows)
    assert set(HOMES) >= {"cpu", "cuda", "mps", "torch", "cupy", "array_api_strict"}


@pytest.mark.parametrize("device", ["gpu", "cpu:0", "", None, 3], ids=repr)
def test_an_unknown_device(device):
    with pytest.raises(
        ValueError, match=r"unknown device .*; there are 'cpu' .*'cuda' or 'cuda:1'.*'mps'.*'auto'.*'torch:cpu'"
    ):
        open_rows(RBF(0.5), np.ones((2, 2)), device=device)


@pytest.fixture
def without(monkeypatch):
    """Make packages look as if they were not installed."""

    def hide(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps", "torch:cpu"])
def test_a_device_of_torch_without_torch(device, without):
    without("torch")
    with pytest.raises(
        ImportError, match=rf"device='{device}' needs torch, which is not installed: pip install 'slimsvm\[gpu\]'"
    ):
        open_rows(RBF(0.5), np.ones((2, 2)), device=device)


def test_cupy_and_array_api_strict_without_them(without):
    without("cupy", "array_api_strict")
    for device, match in (("cupy", "needs cupy.*pip install cupy"), ("array_api_strict", "pip install array-api-strict")):
        with pytest.raises(ImportError, match=match):
            open_rows(RBF(0.5), np.ones((2, 2)), device=device)


def test_auto_is_the_first_device_there_is(monkeypatch, without):
    for there, expected in ((("cuda", "mps"), "cuda"), (("mps",), "mps"), ((), "cpu")):
        monkeypatch.setattr("slimsvm.rows.homes.has_torch_device", lambda kind, there=there: kind in there)
        assert resolve_device("auto") == expected
    monkeypatch.undo()
    without("torch")
    assert resolve_device("auto") == "cpu"


def test_torch_without_a_gpu(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for device, match in (
        ("cuda", "sees no CUDA GPU here"),
        ("mps", "sees no Apple GPU here"),
        ("torch:abc", "unknown device"),
    ):
        with pytest.raises(ValueError, match=match):
            open_rows(RBF(0.5), np.ones((2, 2)), device=device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="there are 2 CUDA GPUs, 'cuda:0' to 'cuda:1'"):
        open_rows(RBF(0.5), np.ones((2, 2)), device="cuda:2")
    assert open_rows(RBF(0.5), np.ones((2, 2)), device="torch").backend.device == torch.device("cpu")


def test_a_kernel_function_runs_on_the_device(device):
    kernel, X = Custom(lambda A, B: (A @ B.T + 1.0) ** 2), made("rbf")[1]
    host, there = HostRows(kernel, X), open_rows(kernel, X, device=device)
    V, some = np.random.default_rng(1).normal(size=(M, 2)), np.arange(0, N, 3)
    for answer in (
        lambda rows: rows.product(X[:M], V),
        lambda rows: rows.product_of(np.arange(M), V, keep=True),
        lambda rows: rows.block(some),
        lambda rows: rows.against(X[:M]).times(V),
        lambda rows: rows.among(X[:M], X[M : M + 3]),
        lambda rows: rows.diagonal(),
    ):
        np.testing.assert_allclose(answer(there), answer(host), rtol=1e-12)
    assert host.meter.evaluations == there.meter.evaluations


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda A, B: np.zeros((A.shape[0], B.shape[0])), r"returned ndarray of shape \(2, 2\) .*or use device='cpu'"),
        (lambda A, B: A[: B.shape[0], :], r"of shape \(2, 3\) .*it must return .* of shape \(2, 2\)"),
        (lambda A, B: A.dot_product(B), "failed on arrays of .*write it with functions of"),
        (lambda A, B: np.asarray(A) @ np.asarray(B).T, "(failed on|for) arrays of .*or use device='cpu'"),
    ],
    ids=["another library", "shape", "fails", "of the host"],
)
def test_a_kernel_function_that_the_device_cannot_take_is_told(device, function, words):
    rows = open_rows(Custom(function), np.ones((2, 3)), device=device)
    with pytest.raises(ValueError, match=words):
        rows.block(np.arange(2))


def test_a_kernel_without_an_array_form_stays_on_the_host(device):
    class OnHost(Custom):
        portable = False

    with pytest.raises(ValueError, match=rf"works on host arrays only, not on device '{device}'.*'rbf'"):
        open_rows(OnHost(lambda A, B: A @ B.T), np.ones((2, 2)), device=device)


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_powers(device, degree):
    kernel, X = Poly(0.3, 0.5, degree), made("poly")[1]
    host, there = HostRows(kernel, X).against(X[:4]), open_rows(kernel, X, device=device).against(X[:4])
    W, V = np.ones((N, 1)), np.ones((4, 1))
    np.testing.assert_allclose(there.times(V), host.times(V), rtol=1e-12)
    np.testing.assert_allclose(there.pullback(W, V), host.pullback(W, V), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("away", [0.0, 1e5], ids=["near", "far"])
def test_rows_in_float32_are_as_if_rounded_after_the_centre_was_taken_off(device, away):
    X = np.random.default_rng(0).normal(size=(50, 3)) + away
    backend, centre = open_rows(RBF(0.5), X, device=device).backend, X.mean(axis=0)
    held = backend.upload(Given(X), FLOAT32, centre)
    np.testing.assert_allclose(backend.fetch(held.values), X - centre, atol=2e-7 * np.abs(X - centre).max())
    assert held.radius == pytest.approx(np.square(X - centre).sum(axis=1).max(), rel=1e-6)


def test_memory_held_in_place_takes_all_kinds_of_arrays(monkeypatch):
    torch = pytest.importorskip("torch")
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *shape, pin_memory=False, **how: empty(*shape, **how))  # noqa: ARG005
    backend = open_rows(RBF(0.5), np.ones((2, 2)), device="torch:cpu").backend
    table = np.arange(12.0).reshape(3, 4)
    fixed = table.copy()
    fixed.flags.writeable = False
    for array in (
        table,
        fixed,
        table.T,
        table[::-1],
        table[:, ::2],
        table.astype(np.int32),
        table.astype(">f4"),
        table[:0],
    ):
        for dtype in (np.float32, np.float64):
            there = backend._staged(array, np.dtype(dtype)).numpy()
            assert there.dtype == dtype
            assert (there == array).all()
