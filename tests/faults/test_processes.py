"""Forked and spawned processes, loky, many threads, other numbers of BLAS threads: the results are those of one thread."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_info, threadpool_limits

from slimsvm import SlimSVC

#: fits and predicts in other processes, begun in a way of multiprocessing's, after this one has used its threads
OTHER_PROCESSES = """
import multiprocessing, sys
import numpy as np
from sklearn.datasets import make_moons
from slimsvm import SlimSVC

X, y = make_moons(400, noise=0.25, random_state=0)
large = np.random.default_rng(0).normal(size=(5_000, 2))

def scores(budget):
    return SlimSVC(budget, reducer="spsvm" if budget else "slim", random_state=0).fit(X, y).decision_function(large)

if __name__ == "__main__":
    alone = [scores(None), scores(8)]
    for way in sys.argv[1:]:
        with multiprocessing.get_context(way).Pool(2) as pool:
            for mine, theirs in zip(alone, pool.map_async(scores, [None, 8]).get(50), strict=True):
                np.testing.assert_array_equal(mine, theirs)
"""

#: forks while another thread holds BLAS at one thread, again and again
FORK_WHILE_FITTING = """
import os, signal, threading, time, warnings
import numpy as np
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_info
from slimsvm import SlimSVC
from slimsvm.rows.threads import one_blas_thread

warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of forking with threads, from 3.12 on
X, y = make_moons(200, noise=0.25, random_state=0)
alone = SlimSVC(4, reducer="spsvm", random_state=0).fit(X, y).decision_function(X)
threads = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
done = threading.Event()

def fit():
    while not done.is_set():
        with one_blas_thread():
            time.sleep(0.001)

def child():
    signal.alarm(20)  # a child that waits for a lock which nobody holds any more is killed
    now = SlimSVC(4, reducer="spsvm", random_state=0).fit(X, y).decision_function(X)
    return 0 if np.allclose(now, alone, atol=1e-6) else 1

other = threading.Thread(target=fit)
other.start()
try:
    for _ in range(8):
        time.sleep(0.0005)
        pid = os.fork()
        if not pid:
            os._exit(child())
        assert os.waitpid(pid, 0)[1] == 0
    with one_blas_thread():
        pid = os.fork()
        if not pid:
            threads = {1}  # the child's own thread holds the limit too
            os._exit(child())
        assert os.waitpid(pid, 0)[1] == 0
finally:
    done.set()
    other.join()
assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == threads
"""

LOKY = """
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from slimsvm import SlimSVC

X, y = make_moons(200, noise=0.25, random_state=0)
grid = {"budget": [3, 6]}
found = [
    GridSearchCV(SlimSVC(reducer="spsvm", random_state=0), grid, cv=2, n_jobs=jobs).fit(X, y).cv_results_["mean_test_score"]
    for jobs in (1, 2)
]
assert (found[0] == found[1]).all(), found
"""


def test_other_processes_give_the_same_scores(python, tmp_path):
    ways = ["spawn"] if sys.platform == "win32" else ["fork", "spawn"]
    (tmp_path / "script.py").write_text(OTHER_PROCESSES)
    assert python.run("-W", "ignore::DeprecationWarning", "script.py", *ways, OMP_NUM_THREADS="2") == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on Windows")
def test_a_fork_while_another_thread_works_does_not_hang(python):
    assert python.run("-c", FORK_WHILE_FITTING, OMP_NUM_THREADS="2") == (0, "", "")


def test_a_grid_search_in_loky_gives_the_scores_of_one_process(python):
    assert python.run("-c", LOKY) == (0, "", "")


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.25, random_state=0)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_32_threads_that_predict_and_two_that_fit_agree_with_one(moons, threads):
    X, y = moons
    threads(2)
    large = np.random.default_rng(0).normal(size=(6_000, 2))
    model, before = SlimSVC(C=10.0).fit(X, y), blas_threads()
    alone = model.decision_function(large)

    def fitted(seed):
        return SlimSVC(6, reducer="spsvm", random_state=seed).fit(X, y).decision_function(large)

    expected, start = [fitted(0), fitted(1)], threading.Barrier(34)

    def predicting(_):
        start.wait(30)
        return model.decision_function(large)

    def fitting(seed):
        start.wait(30)
        return fitted(seed)

    with ThreadPoolExecutor(34) as pool:
        predictions, fits = pool.map(predicting, range(32), timeout=60), pool.map(fitting, range(2), timeout=60)
        for found in predictions:
            np.testing.assert_array_equal(found, alone)
        for found, wanted in zip(fits, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert blas_threads() == before


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("settings", [{}, {"budget": 6, "reducer": "spsvm"}, {"budget": 6}], ids=["full", "spsvm", "slim"])
@pytest.mark.usefixtures("quick_slim")
def test_the_threads_of_blas_do_not_change_the_model(count, settings, moons):
    X, y = moons
    with threadpool_limits(1, user_api="blas"):
        alone = SlimSVC(random_state=0, **settings).fit(X, y).decision_function(X)
    with threadpool_limits(count, user_api="blas"):
        np.testing.assert_array_equal(SlimSVC(random_state=0, **settings).fit(X, y).decision_function(X), alone)
