"""What the tests share: every kernel's plain formula, made data, and tasks for trainers and reducers."""

import gc
import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import hypothesis
import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

from slimsvm.goals import OneVsRest
from slimsvm.kernels import KERNELS, RBF, make_kernel
from slimsvm.model import Holdout, Task
from slimsvm.reducers import REDUCERS, Slim
from slimsvm.reducers.base import Reducer
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import Precision
from slimsvm.solvers.basis import EXACT, squared_loss
from slimsvm.solvers.newton import tie_ridge
from tools.contracts import Recorder

# the same examples in every run: a failure is then a change, not chance
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--write-contracts", action="store_true", help="write docs/contracts.md from what the tests found")


def pytest_configure(config):
    config.pluginmanager.register(Recorder(config))
    gc.disable()  # collecting tests makes objects that live to the end; looking for garbage takes 40 % of its time


def pytest_collection_finish():
    """Take ten thousand tests, which live to the end, out of what the garbage collector looks through again and again."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items):
    """Begin with the tests that take longest; skip those with array_api_strict where it cannot be used."""
    # they take their whole time: if one of them came last, the other cores would wait for it
    items.sort(key=lambda item: "test_no_mutant_breaks_a_reader" not in item.nodeid)
    if find_spec("array_api_strict") and np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        return
    for item in items:
        if item.get_closest_marker("strict_arrays") or "array_api_strict" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="needs array_api_strict and NumPy 2"))


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk():
    """Leave files in the system's cache: thousands of models are saved, and waiting for the disk took half of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


GAMMA, DEGREE, COEF0 = 0.3, 3, 0.5

#: k(x, z), written as in the textbook; a new entry in KERNELS needs its line here
FORMULAS = {
    "linear": lambda x, z: sum(x * z),
    "rbf": lambda x, z: np.exp(-GAMMA * sum((x - z) ** 2)),
    "poly": lambda x, z: (GAMMA * sum(x * z) + COEF0) ** DEGREE,
    "sigmoid": lambda x, z: np.tanh(GAMMA * sum(x * z) + COEF0),
    "laplacian": lambda x, z: np.exp(-GAMMA * sum(abs(x - z))),
    "chi2": lambda x, z: np.exp(-GAMMA * sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b)),
    "precomputed": lambda x, z: 1 / (1 + sum((x - z) ** 2)),
}


class Case:
    """One kernel on made rows: `X` as an estimator takes it and `K`, all its values by a double loop."""

    def __init__(self, name, n=23, d=6, *, density=1.0, seed=0):
        rng = np.random.default_rng(seed)
        raw = rng.random((n, d)) * (rng.random((n, d)) < density)
        formula = FORMULAS[name]
        self.K = np.array([[formula(x, z) for z in raw] for x in raw]).reshape(n, n)
        self.kernel = make_kernel(name, gamma=GAMMA, degree=DEGREE, coef0=COEF0)
        self.X = self.K.copy() if name == "precomputed" else raw
        self.n = n

    def points(self, index):
        return self.kernel.points(self.X[index], np.asarray(index))


def naive_level(heights, weights, volume):
    """The level of water over heights, in O(n^2): of each number of rows under water, the level; the one that fits."""
    order = np.argsort(heights, kind="stable")
    h, w = heights[order], weights[order]
    for k in range(1, h.size + 1):
        level = (volume + w[:k] @ h[:k]) / w[:k].sum()
        if k == h.size or level <= h[k]:
            return level
    raise AssertionError


@pytest.fixture
def excused(record_property):
    """excused(reason): a contract test passes, but this method is excused from the contract (docs/contracts.md)."""
    return lambda reason: record_property("excused", reason)


@pytest.fixture
def threads(monkeypatch):
    """threads(count): let what is built from now on use so many threads, whatever the machine has."""

    def use(count):
        monkeypatch.setattr(joblib, "cpu_count", lambda: count)
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        monkeypatch.setattr("slimsvm.rows.threads.blas_limit", lambda: None)

    return use


@pytest.fixture(params=KERNELS)
def kernel_name(request):
    return request.param


@pytest.fixture
def make_case():
    """Case(name, n, d, density, seed)."""
    return Case


@pytest.fixture(params=["dense", "sparse"])
def form(request):
    """Rows as a dense array or in CSR."""
    return np.asarray if request.param == "dense" else csr_array


@pytest.fixture
def float32_always():
    """Float32 kernel values for the smallest work too, however large the bound on their error."""
    return Precision(small_work=0, float32_error=np.inf)


@pytest.fixture
def float64_always():
    """No float32 kernel values, however large the work."""
    return Precision(small_work=np.inf)


@pytest.fixture
def make_blobs():
    """Two overlapping clouds: rows and labels of -1, +1."""

    def make(n=80, d=3, seed=0, distance=1.5):
        rng = np.random.default_rng(seed)
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        return rng.normal(size=(n, d)) + distance / 2 * y[:, None] / np.sqrt(d), y

    return make


@pytest.fixture
def make_task():
    """A Task on rows and targets (n,) or (n, q), with rows held out where they are given."""

    def make(kernel, X, targets, weights=None, holdout=None, **settings):
        targets = np.asarray(targets, dtype=float).reshape(X.shape[0], -1)
        weights = np.ones(X.shape[0]) if weights is None else weights
        judge = None
        if holdout is not None:
            rows, labels = holdout
            goal = OneVsRest(2 if targets.shape[1] == 1 else targets.shape[1])
            judge = Holdout(HostRows(kernel, rows), np.asarray(labels), np.ones(rows.shape[0]), goal)
        return Task(HostRows(kernel, X, **settings), targets, weights, np.random.default_rng(0), judge)

    return make


@pytest.fixture
def weighted_iris(make_task):
    """The three classes of iris, with weights, and an output that some of the rows have no part in."""
    X, labels = load_iris(return_X_y=True)
    targets = OneVsRest(3).encode(labels)
    targets[::7, 2] = 0
    return make_task(RBF(0.5), X, targets, np.random.default_rng(1).uniform(0.5, 2.0, 150))


def primal_objective(task, index, coef, bias, C):
    """1/2 beta' K_JJ beta + C/2 sum w max(0, 1 - y f)^2, summed over outputs, and the largest part of its gradient."""
    X = task.rows.given.rows()
    K = task.rows.kernel(X, X[index])
    part = C * task.weights[:, None] * (task.targets != 0)
    slack = np.maximum(0.0, 1 - task.targets * (K @ coef + bias))
    value = 0.5 * np.einsum("ic,ij,jc", coef, K[index], coef) + 0.5 * (part * slack**2).sum()
    pull = part * task.targets * slack
    gradient = np.vstack([pull.sum(axis=0), K[index] @ coef - K.T @ pull])
    return value, np.abs(gradient).max(initial=0.0)


@dataclass(frozen=True)
class FirstRows(Reducer):
    """The first rows as points, with the best coefficients for the labels: the plainest reducer without a full model."""

    needs_model: ClassVar[bool] = False
    sizes_per_doubling: ClassVar[int] = 1

    def models(self, task, sizes, model):  # noqa: ARG002
        for size in sizes:
            rows = np.arange(min(size, task.rows.n))
            against = task.rows.against(task.rows.take(rows))
            found = squared_loss(task).fit(against, tie_ridge(against, task.weights), EXACT)
            yield task.expansion(rows, found.coef, found.bias), "first rows"
            if rows.size < size:
                return


@pytest.fixture
def first_rows(monkeypatch):
    """A reducer in the table, under the name "first-rows", that needs no full model."""
    monkeypatch.setitem(REDUCERS, "first-rows", FirstRows)
    return FirstRows


@pytest.fixture(scope="module")
def quick_slim():
    """The default reducer with few steps from one set of initial points, for tests that are not about how good it is."""
    make = Slim.__init__

    def quick(self, *given, **settings):
        make(self, *given, **{"steps": 5} | settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Slim, "__init__", quick)
        yield
