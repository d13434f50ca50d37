"""Threads of the host: a limit that is shared and given back, and thread pools within thread pools."""

import signal
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from slimsvm.kernels import RBF
from slimsvm.rows.host import HostRows
from slimsvm.rows.threads import ThreadPool, one_blas_thread, thread_count


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.mark.usefixtures("two_blas_threads")
def test_the_last_one_out_gives_the_threads_of_blas_back():
    """Each thread would restore what it found, and the second finds 1."""
    inside, first_is_out = threading.Event(), threading.Event()

    def overlapping():
        with one_blas_thread():
            inside.set()
            first_is_out.wait(10)

    other = threading.Thread(target=overlapping)
    with one_blas_thread():
        other.start()
        assert inside.wait(10)
        assert blas_threads() == {1}
    assert blas_threads() == {1}  # the other one still holds it
    first_is_out.set()
    other.join(10)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_an_error_gives_the_threads_back_too():
    with pytest.raises(KeyError), one_blas_thread(), one_blas_thread():
        raise KeyError
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_twelve_threads_that_predict_leave_blas_as_it_was():
    start = threading.Barrier(12)

    def predict():
        start.wait(10)
        for _ in range(50):
            with one_blas_thread():
                pass

    threads = [threading.Thread(target=predict) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert blas_threads() == {2}


def test_work_that_is_shared_out_within_a_strip_stays_in_its_thread():
    pool, seen, lock = ThreadPool(2), [], threading.Lock()

    def inner(part):
        with lock:
            seen.append((threading.get_ident(), part.stop - part.start))

    def outer(_):
        before = threading.get_ident()
        pool.run(inner, 10, 3)
        with lock:
            assert {thread for thread, _ in seen if thread == before}

    pool.run(outer, 4, 1)
    assert sum(count for _, count in seen) == 4 * 10


def test_little_work_asks_for_no_threads(monkeypatch):
    def asked():
        raise AssertionError("threads were asked for")

    monkeypatch.setattr("slimsvm.rows.threads.thread_count", asked)
    rows = HostRows(RBF(0.5), np.random.default_rng(0).normal(size=(200, 3)))
    assert rows.block(np.arange(200)).shape == (200, 200)
    with pytest.raises(AssertionError, match="asked for"):
        HostRows(RBF(0.5), np.zeros((5000, 3))).block(np.arange(5000))


def test_limits_on_blas_are_kept_to(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threadpool_limits(3, user_api="blas"):
        assert thread_count() == 3
        with one_blas_thread():
            assert thread_count() == 3


def test_late_helpers_are_not_waited_for():
    """One helper is in the strips of another thread pool's work, which ends only after this thread pool's."""
    ended, begun = threading.Event(), threading.Event()

    def long(_):
        begun.set()
        ended.wait(10)

    first = threading.Thread(target=ThreadPool(2).run, args=(long, 2, 1))
    first.start()
    assert begun.wait(10)
    seen = []
    ThreadPool(2).run(lambda strip: seen.append(strip.start), 5, 1)
    assert sorted(seen) == [0, 1, 2, 3, 4]
    ended.set()
    first.join(10)


def test_errors_of_helpers_are_raised_and_the_team_goes_on():
    pool, here, came = ThreadPool(4), threading.get_ident(), threading.Event()

    def work(_):
        if threading.get_ident() != here:
            came.set()
            raise KeyError
        came.wait(10)

    for _ in range(5):
        came.clear()
        with pytest.raises(KeyError):
            pool.run(work, 8, 1)
    seen = []
    pool.run(lambda strip: seen.append(strip.start), 8, 1)
    assert sorted(seen) == list(range(8))


def test_an_error_does_not_wait_for_helpers():
    pool, here, ended, inside = ThreadPool(2), threading.get_ident(), threading.Event(), threading.Event()

    def work(_):
        if threading.get_ident() == here:
            assert inside.wait(10)
            raise KeyboardInterrupt
        inside.set()
        ended.wait(10)

    with pytest.raises(KeyboardInterrupt):
        pool.run(work, 4, 1)
    assert not ended.is_set()
    seen = []
    pool.run(lambda strip: seen.append(strip.start), 3, 1)  # while the helper is still at work
    ended.set()
    assert seen == [0, 1, 2]


def test_compiled_jobs_have_the_same_bits_with_any_number_of_threads():
    X = np.random.default_rng(0).normal(size=(3000, 20))
    Z, V = X[:1000], X[:1000, :2]  # enough work for several strips and threads
    wanted = HostRows(RBF(0.5), X, pool=ThreadPool(1)).product(Z, V)

    def compare(count):
        rows = HostRows(RBF(0.5), X, pool=ThreadPool(count))
        same.extend(np.array_equal(rows.product(Z, V), wanted) for _ in range(10))

    same = []
    threads = [threading.Thread(target=compare, args=(count,)) for count in (2, 5, 5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert same == [True] * 40


@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupt_ends_a_long_product(count):
    """The whole product takes far longer than the timer."""
    X = np.random.default_rng(0).normal(size=(20_000, 60))
    rows = HostRows(RBF(0.5), X, pool=ThreadPool(count))
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            rows.product(np.vstack([X] * 3), np.ones((60_000, 1)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rows.product(X[:2], np.ones((2, 1))).shape == (20_000, 1)
