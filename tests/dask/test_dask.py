"""Fits on a real cluster of worker processes on the loopback address."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="dask is not installed")
pytest.importorskip("dask.array", reason="dask is not installed")
pytest.importorskip("dask.dataframe", reason="dask is not installed")

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402

import slimsvm  # noqa: E402
from slimsvm import SlimSVC, SlimSVR  # noqa: E402
from slimsvm.dask import DaskSlimSVC, DaskSlimSVR, parts  # noqa: E402
from slimsvm.dask.partitions import Partitions, at_hand, evened  # noqa: E402
from slimsvm.dask.rows import DaskRows  # noqa: E402
from slimsvm.estimators import fit_reporting  # noqa: E402
from slimsvm.kernels import RBF, Laplacian  # noqa: E402
from slimsvm.papers.batch_perceptron import SBP  # noqa: E402
from slimsvm.reducers import Slim  # noqa: E402
from slimsvm.rows.host import HostRows  # noqa: E402
from slimsvm.trainers.smo import SMO  # noqa: E402

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
    pytest.mark.filterwarnings("default"),  # those of Dask and its event loop are not ours
    pytest.mark.xdist_group("dask"),
]

rng = np.random.default_rng(0)
X = rng.normal(size=(900, 4)) + 2.0
y = np.where((X[:, 0] - 2) * (X[:, 1] - 2) + 0.2 * rng.normal(size=900) > 0, "yes", "no")
CHUNKS = (250, 4)
#: each step of slim on the rows of a cluster is a journey


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, which a nanny starts again when they die; ends after a minute whatever happens."""
    settings = {"distributed.comm.timeouts.connect": "30s", "distributed.scheduler.allowed-failures": 10}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as made,
        distributed.Client(made, timeout=30),
    ):
        yield made


@pytest.fixture
def remote(cluster):  # noqa: ARG001
    """Rows stay on the workers, however few they are."""
    with dask.config.set({"slimsvm.local-values": 0}):
        yield


@pytest.fixture
def ends():
    """Fail a test that does not end by itself."""

    def too_long(*_):
        pytest.fail("it does not end")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


pytestmark.append(pytest.mark.usefixtures("ends"))


@pytest.mark.usefixtures("remote")
@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.3)], ids=lambda kernel: kernel.name)
def test_the_home_answers_as_that_of_the_host(kernel):
    """The protocol of rows, for parts in order and for rows picked in another order."""
    pick = rng.permutation(900)[:600]
    there = DaskRows(kernel, Partitions.of(da.from_array(X, chunks=CHUNKS)), error=0.0, index=pick)
    here = HostRows(kernel, X, error=0.0, index=pick)
    some, V = rng.permutation(600)[:40], rng.normal(size=(40, 2))
    close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    assert (there.n, there.d, there.dtype) == (here.n, here.d, here.dtype)
    for index in (None, rng.permutation(600)[:300]):
        a, b = (rows if index is None else rows.subset(index) for rows in (there, here))
        chosen = some[some < a.n]
        values = V[: chosen.size]
        close(a.product(X[:40], V), b.product(X[:40], V))
        close(a.product_of(chosen, values), b.product_of(chosen, values))
        close(a.block(chosen, chosen[:9]), b.block(chosen, chosen[:9]))
        close(a.diagonal(), b.diagonal())
        close(a.take(chosen), b.take(chosen))
        close(a.mean(chosen), b.mean(chosen))
        close(a.fetch(chosen).block(np.arange(5)), b.fetch(chosen).block(np.arange(5)))
        W, group, weights = rng.normal(size=(a.n, 2)), np.arange(a.n) % 3, rng.random(a.n)
        for first, second in ((a.against(X[:7]), b.against(X[:7])),):
            for handle in (first, second):
                handle.append(X[7:9])
                handle.keep(np.array([8, 0, 3, 5]))
            close(first.times(V[:4]), second.times(V[:4]))
            close(first.back(W), second.back(W))
            close(first.back(W[:3], np.array([5, 1, 7])), second.back(W[:3], np.array([5, 1, 7])))
            close(first.curvature(np.arange(0, a.n, 2), weights), second.curvature(np.arange(0, a.n, 2), weights))
            close(first.curvature(np.arange(9), weights, 2), second.curvature(np.arange(9), weights, 2))
            close(first.pullback(W, V[:4]), second.pullback(W, V[:4]))
            close(first.group_means(group, weights), second.group_means(group, weights))
            close(first.column(2), second.column(2))
            close(first.first(2).times(V[:2]), second.first(2).times(V[:2]))
            assert (first.nearest() == second.nearest()).all()
            assert first.largest_square() == pytest.approx(second.largest_square())
            close(first.features(V[:4]).block(np.arange(6)), second.features(V[:4]).block(np.arange(6)))


@pytest.mark.usefixtures("remote")
def test_the_optimum_is_that_of_a_local_fit():
    rows, labels = da.from_array(X, chunks=CHUNKS), da.from_array(y, chunks=400)  # partitioned differently
    found = DaskSlimSVC(C=5.0, tol=1e-4, trainer=SMO(working_set=200)).fit(rows, labels)
    local = SlimSVC(C=5.0, tol=1e-4, trainer=SMO(working_set=200)).fit(X, y)
    np.testing.assert_allclose(found.to_local().decision_function(X), local.decision_function(X), atol=1e-3)
    assert (found.support_ == local.support_).mean() > 0.95
    answers = found.predict(rows)
    assert answers.chunks == (rows.chunks[0],)
    assert (answers.compute() == found.to_local().predict(X)).all()
    with pytest.raises(ValueError, match="X has 1 dimensions; give rows of"):
        found.predict(rows[:, 0])
    np.testing.assert_allclose(found.decision_function(rows).compute(), found.decision_function(X), atol=1e-9)


@pytest.mark.usefixtures("remote")
def test_a_small_model_and_its_files(tmp_path):
    rows, labels = da.from_array(X[:400].astype(np.float32), chunks=CHUNKS), da.from_array(y[:400], chunks=250)
    settings = {
        "trainer": SBP(max_iter=3, working_set=20, gap=0),
        "reducer": Slim(steps=1),
        "random_state": 0,
    }
    with pytest.warns(match="SBP stopped at max_iter"):
        found = DaskSlimSVC(1, **settings).fit(rows, labels)
    slimsvm.save(found.to_local(), tmp_path / "m.slim")
    assert (slimsvm.load(tmp_path / "m.slim").predict(X) == found.predict(X)).all()
    assert found.path_.sizes == [1]


def arrays_in(values):
    """The bytes of all arrays in lists and tuples."""
    if isinstance(values, np.ndarray):
        return values.nbytes
    return sum(map(arrays_in, values)) if isinstance(values, list | tuple) else 0


@pytest.mark.usefixtures("remote")
def test_a_round_brings_one_number_for_each_row_and_the_new_rows_of_the_working_set(cluster, monkeypatch):
    """What is sent are the rows whose coefficients changed, once to each worker."""
    traffic, moved, answers, selected = [], [], Partitions._answers, Partitions.selected

    def watched(self, groups, work, calls):
        found = answers(self, groups, work, calls)
        if calls[0][1] is parts.prepared_rows:
            return found  # counted below
        traffic.append((calls[0][1], arrays_in([list(call[2:]) for call in calls]), arrays_in(found)))
        moved.append(calls[0][-1].shape[0] if calls[0][1] is parts.product else 0)
        return found

    def watched_rows(self, held, places, work):
        found = selected(self, held, places, work)
        traffic.append((work, len(cluster.workers) * arrays_in([local for _, _, local in places]), arrays_in(found)))
        moved.append(0)
        return found

    monkeypatch.setattr(Partitions, "_answers", watched)
    monkeypatch.setattr(Partitions, "selected", watched_rows)
    size, n = 100, len(X)
    found = DaskSlimSVC(C=5.0, trainer=SMO(working_set=size)).fit(da.from_array(X, chunks=CHUNKS), y)
    products = [k for k, (work, _, _) in enumerate(traffic) if work is parts.product]
    assert len(products) > 10
    rows_of_set = size * 8 * (X.shape[1] + 1)  # with their squared norms
    for before, now in pairwise(products):
        a_round = traffic[before + 1 : now + 1]
        assert {work for work, _, _ in a_round} <= {parts.product, parts.prepared_rows}
        assert sum(received for _, _, received in a_round) <= 8 * n + rows_of_set
        a_row = 8 * (X.shape[1] + 2)  # with its norm and its coefficient
        assert sum(sent for _, sent, _ in a_round) <= len(cluster.workers) * (moved[now] * a_row + 8 * size)
    assert found.model_.size > size


@pytest.mark.usefixtures("remote")
@pytest.mark.parametrize("moment", [0.0, 0.5, 0.9])
def test_a_lost_worker_is_no_harm(cluster, moment):
    rows, labels = da.from_array(X, chunks=CHUNKS), da.from_array(y, chunks=250)
    killed = []

    def kill(_, done):
        if done > moment and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    found = fit_reporting(DaskSlimSVC(C=5.0, trainer=SMO(working_set=100)), rows, labels, report=kill)
    assert killed
    local = SlimSVC(C=5.0, trainer=SMO(working_set=100)).fit(X, y)
    np.testing.assert_allclose(found.to_local().decision_function(X), local.decision_function(X), atol=0.02)


@pytest.mark.usefixtures("cluster")
def test_data_frames_regression_and_small_problems():
    """Rows of a small problem come to the process that leads; the model is the local one."""
    table = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=3)
    target = dd.from_pandas(pd.Series(X[:, 0] * X[:, 1]), npartitions=3)
    found, local = DaskSlimSVR(C=5.0).fit(table, target), SlimSVR(C=5.0).fit(X, X[:, 0] * X[:, 1])
    assert found.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(found.predict(table).compute(), local.predict(X), atol=1e-3)
    few = DaskSlimSVC(4, trainer=None, random_state=0).fit(da.from_array(X[:200], chunks=(90, 4)), y[:200])
    same = SlimSVC(4, trainer=None, random_state=0).fit(X[:200], y[:200])
    np.testing.assert_allclose(few.decision_function(X), same.decision_function(X), atol=1e-9)


@pytest.mark.usefixtures("remote")
def test_a_class_of_one_partition_and_an_empty_partition():
    order = np.argsort(y, kind="stable")  # the first partitions have one class alone
    whole = da.from_array(X[order], chunks=CHUNKS)
    rows = da.concatenate([whole[:250], whole[:0], whole[250:]])
    found = DaskSlimSVC(trainer=SMO(working_set=200)).fit(rows, y[order])
    assert found.classes_.tolist() == ["no", "yes"]
    assert (found.predict(rows).compute() == y[order]).mean() > 0.85


def peak_memory():
    """The bytes that this process has used at most."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is measured by /proc")
def test_more_rows_than_the_memory_of_one_worker(tmp_path):
    """The rows are on disk by turns. A third of the limit is what a worker has before it sees a row."""
    limit, shape = 560 << 20, (75_000, 1000)
    settings = {"temporary-directory": str(tmp_path), "distributed.comm.timeouts.connect": "30s"}
    cluster_of = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": ":0"}
    made = partial(distributed.LocalCluster, **cluster_of)
    with dask.config.set(settings), made(memory_limit=limit) as cluster, distributed.Client(cluster, timeout=30) as client:
        rows = da.random.default_rng(0).random(shape, chunks=(1000, 1000))
        assert rows.nbytes > limit
        labels = (rows[:, 0] > 0.5).compute()
        with pytest.warns(match="SMO stopped at max_iter"):
            found = DaskSlimSVC(gamma=1.0, trainer=SMO(working_set=16), max_iter=8).fit(rows, labels)
        assert found.n_iter_ == 8
        # Dask looks at a worker's memory now and then: peaks may be a little above the limit; all rows would be far above
        assert max(client.run(peak_memory).values()) < 1.25 * limit < rows.nbytes + limit / 3
        assert found.predict(rows[:1000]).compute().shape == (1000,)


def test_parts_are_grouped_by_worker_and_thread():
    class Part:
        def __init__(self, key):
            self.key = key

    class Client:
        def who_has(self, parts):
            holders = {"a": ("one",), "b": ("two",), "c": ("two", "one"), "d": ("two",), "e": (), "f": ("gone",)}
            return {part.key: holders[part.key] for part in parts}

        def nthreads(self):
            return {"one": 1, "two": 2}

    rows = object.__new__(Partitions)
    rows.client, rows.at_once, rows.found = Client(), 6, ([], 0.0, [])
    assert rows.grouped([Part(key) for key in "abcdef"]) == [[0], [1, 3], [2], [4], [5]]
    rows.at_once = 1  # there is no memory for more
    assert rows.grouped([Part(key) for key in "abcdef"]) == [[0], [1], [2], [3], [4], [5]]
    assert rows.grouped([Part(key) for key in "bd"]) == [[0], [1]]
    rows.client = None  # the scheduler is not asked again at once
    assert rows.grouped([Part(key) for key in "bd"]) == [[0], [1]]


def test_parts_are_shared_out_evenly():
    """Against all ways to give out few parts: the worker with the most rows a thread has hardly more than it must."""
    draw = np.random.default_rng(0)
    for _ in range(40):
        threads = {name: int(draw.integers(1, 3)) for name in "abc"[: draw.integers(1, 4)]}
        sizes = draw.integers(1, 100, size=6).tolist()
        holders = [str(draw.choice(list(threads))) for _ in sizes]
        found = evened(sizes, holders, threads)

        def load(given, sizes=sizes, threads=threads):
            rows = {name: sum(size for size, at in zip(sizes, given, strict=True) if at == name) for name in threads}
            return max(rows[name] / threads[name] for name in threads)

        best = min(map(load, product(threads, repeat=len(sizes))))
        assert load(found) <= min(load(holders), best + max(sizes) / min(threads.values()))
    assert evened([5, 5, 5, 5], ["a"] * 4, {"a": 1, "b": 1}) in (list("bbaa"), list("abba"), list("aabb"))
    assert evened([5, 5], ["a", "b"], {"a": 1, "b": 1}) == ["a", "b"]  # nothing moves without need
    assert evened([5, 5], ["a", None], {"a": 1, "b": 1})[1] is None  # lost: Dask chooses
    assert evened([5], [None], {}) == [None]


@pytest.mark.usefixtures("remote")
def test_rows_on_one_worker_are_spread_out_and_read_where_they_are(cluster):
    client = distributed.get_client()
    first = next(iter(client.nthreads()))
    kept = client.map(np.asarray, [X[start : start + 90] for start in range(0, 900, 90)], workers=[first])
    given = da.concatenate([da.from_delayed(each, (90, 4), X.dtype) for each in kept])
    source = Partitions.of(given)
    rows = DaskRows(RBF(0.3), source)
    distributed.wait(rows.held)
    holders = source.holders(rows.held, client.nthreads())
    assert {holders.count(worker) for worker in client.nthreads()} == {5}
    some = rng.permutation(900)[:50]
    np.testing.assert_array_equal(source[some], X[some])
    asked = rows._owners(some)
    lost = client.submit(parts.prepared, source.held[0], "float64", rows.centre, pure=False)  # perhaps not computed yet
    held = [lost, *rows.held[1:]]
    for (number, _, local), (values, norms) in zip(asked, source.selected(held, asked, parts.prepared_rows), strict=True):
        np.testing.assert_allclose(values, X[90 * number + local] - rows.centre, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(norms, (values**2).sum(axis=1))
    there = max(source.gathered(rows.held, parts.radius))
    assert there <= source.most_squared_norm(rows.centre) * (1 + 1e-12) <= 4 * there
    assert len(cluster.workers) == 2


def test_workers_answer_for_the_parts_that_they_hold():
    class Worker:
        data: ClassVar = {"a": X[:5], "b": X[5:9]}

    found = at_hand({"b": np.array([2]), "c": np.array([0])}, parts.taken, dask_worker=Worker())
    assert list(found) == ["b"]
    np.testing.assert_array_equal(found["b"], X[[7]])


def test_without_a_client(monkeypatch):
    def no_client():
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr(distributed, "get_client", no_client)  # other tests have one
    with pytest.raises(ValueError, match=r"there is no Dask client, or it was closed; make one before fit"):
        DaskSlimSVC().fit(da.from_array(X, chunks=CHUNKS), y)


@pytest.mark.usefixtures("cluster")
def test_numbers_of_data_frames_that_may_have_nulls():
    whole = (10 * pd.DataFrame(X[:200])).round()
    found, same = (
        DaskSlimSVC().fit(dd.from_pandas(each, npartitions=2), y[:200]) for each in (whole.astype("Int64"), whole)
    )
    np.testing.assert_allclose(found.decision_function(whole), same.decision_function(whole), atol=1e-9)
    assert not hasattr(found, "feature_names_in_")  # numbers are no names


@pytest.mark.usefixtures("cluster")
def test_probabilities_are_computed_where_the_rows_are():
    rows = da.from_array(X[:300], chunks=(90, 4))
    found = DaskSlimSVC(calibration="sigmoid", random_state=0).fit(rows, y[:300])
    answers = found.predict_proba(rows)
    assert answers.chunks == ((90, 90, 90, 30), (2,))
    np.testing.assert_allclose(answers.compute(), found.to_local().predict_proba(X[:300]))
    np.testing.assert_allclose(found.predict_log_proba(rows).compute(), np.log(answers.compute()))
    assert not hasattr(DaskSlimSVC(), "predict_proba")


@pytest.mark.usefixtures("cluster")
def test_rows_that_cannot_be_used():
    rows = da.from_array(X, chunks=CHUNKS)
    with pytest.raises(ValueError, match=r"chunk sizes of a Dask array are unknown.*X.compute_chunk_sizes\(\)"):
        DaskSlimSVC().fit(rows[rows[:, 0] > 2], y)
    mixed = da.concatenate([rows[:250], rows[250:].map_blocks(np.float32, dtype=np.float64)])
    with pytest.raises(ValueError, match="the partitions of X differ in dtype: float32, float64"):
        DaskSlimSVC().fit(mixed, y)
    with pytest.raises(ValueError, match="X is a masked array with 1 masked entries; fill them"):
        DaskSlimSVC().fit(da.ma.masked_equal(rows, X[3, 1]), y)
    with pytest.raises(ValueError, match=r"y is a masked array with \d+ masked entries"):
        DaskSlimSVR().fit(rows, da.ma.masked_greater(rows[:, 0], 4.0))
    with pytest.raises(ValueError, match="y has 899 entries, but X has 900 rows"):
        DaskSlimSVC().fit(rows, y[1:])
    with pytest.raises(ValueError, match="X contains NaN or infinity, first in partition 1"):
        DaskSlimSVC().fit(da.where(da.arange(900, chunks=250)[:, None] == 300, np.nan, rows), y)
    with pytest.raises(TypeError, match="X is a ndarray, not a Dask array or data frame"):
        DaskSlimSVC().fit(X, y)
    with pytest.raises(ValueError, match="X has no rows: all its partitions are empty"):
        DaskSlimSVC().fit(rows[:0], y[:0])
    with pytest.raises(ValueError, match="X has no features"):
        DaskSlimSVC().fit(rows[:, :0], y)
    with pytest.raises(ValueError, match=r"features must lie between -1e\+150 and"):
        DaskSlimSVC(gamma=1.0).fit(rows * 1e200, y)
    with pytest.raises(ValueError, match="scoring needs rows in one process"):
        DaskSlimSVC(scoring="accuracy").fit(rows, y)
    with pytest.raises(ValueError, match="rows of weight 0 count as absent"):
        DaskSlimSVC().fit(rows, y, sample_weight=np.arange(900))
    frame = pd.DataFrame({"a": X[:, 0], "b": y, "c": X[:, 1]})
    with pytest.raises(ValueError, match=r"features must be numbers, but these columns are not: 'b' \((str|string|object)"):
        DaskSlimSVC().fit(dd.from_pandas(frame, npartitions=2), y)
    with pytest.raises(ValueError, match="X contains NaN or infinity, first in partition 0"):
        DaskSlimSVC().fit(dd.from_pandas(pd.DataFrame(X).astype("Float64").where(X < 3), npartitions=2), y)
    with pytest.raises(ValueError, match="targets, but regression needs numbers"):
        DaskSlimSVR().fit(rows, y)
    with (
        dask.config.set({"slimsvm.local-values": 0}),
        pytest.raises(ValueError, match="metric='both' is learned from rows on"),
    ):
        DaskSlimSVC(4, trainer=None, reducer=Slim(metric="both")).fit(rows, y)
    with pytest.raises(ValueError, match="a precomputed kernel has no rows to share out"):
        DaskRows(slimsvm.kernels.Precomputed(), Partitions.of(rows))
