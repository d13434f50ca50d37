"""Kernel rows that the solver asks for: the values of a block, counted once, and the same solution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from slimsvm._core import core
from slimsvm.kernels import RBF, Poly
from slimsvm.model import Status
from slimsvm.rows.array import ArrayRows
from slimsvm.rows.array import on_device as rows_on_device
from slimsvm.rows.backends import open_strict
from slimsvm.rows.host import HostRows
from slimsvm.solvers.smo import SmoState
from slimsvm.trainers.smo import SMO

N, D = 700, 40  # work enough for float32


@pytest.fixture(scope="module")
def given():
    return np.random.default_rng(0).normal(size=(N, D))


@pytest.fixture(scope="module")
def y(given):
    return np.where(given[:, 0] + 0.5 * np.random.default_rng(1).normal(size=N) > 0, 1.0, -1.0)


def test_product_has_the_values_of_a_block_and_counts_each_row_once(given):
    rows, signed = HostRows(RBF(0.02), given), np.zeros(N)
    signed[[0, 63, 64, 65, N - 1]] = [1.0, -2.0, 0.5, 3.0, -1.0]
    handle = rows.on_demand()
    assert_allclose(handle.product(signed), RBF(0.02)(given, given) @ signed, atol=2e-5)
    assert rows.meter.evaluations == 5 * N
    handle.product(signed)
    assert rows.meter.evaluations == 5 * N


@pytest.mark.parametrize("count", [1, 63, 64, 65])
@pytest.mark.parametrize("features", [0, 1, 7])
def test_any_number_of_rows_and_features(count, features):
    X = np.random.default_rng(2).normal(size=(count, features)).astype(np.float32)
    norms = np.einsum("ij,ij->i", X, X)
    out, signed = np.zeros(count), np.arange(count) - 3.0
    core.RbfRows(np.log2(np.e), X, norms * np.float32(np.log2(np.e))).add_product(signed, out)
    assert_allclose(out, RBF(1.0)(X, X) @ signed, rtol=1e-5, atol=1e-4)


def on_device(kernel, X, **more):
    return ArrayRows(open_strict("array_api_strict"), kernel, X, **more)


@pytest.mark.parametrize("there", [False, True], ids=["rows of the host", "rows of the device"])
@pytest.mark.parametrize("index", [None, np.arange(3, N)], ids=["all", "some"])
def test_few_rows_of_a_device_come_from_the_host(given, there, index):
    backend = open_strict("array_api_strict")
    X = rows_on_device(backend, backend.send(given, np.float64)) if there else given
    rows = on_device(RBF(0.02), X, index=index)
    chosen = given if index is None else given[index]
    signed = np.random.default_rng(3).normal(size=rows.n) * (np.arange(rows.n) % 7 == 0)
    assert_allclose(rows.on_demand().product(signed), RBF(0.02)(chosen, chosen) @ signed, atol=2e-5)
    assert rows.meter.evaluations == np.count_nonzero(signed) * rows.n


def test_the_same_optimum_as_by_a_block(given, y):
    class ByBlock(SmoState):
        by_rows = False

    states = [kind(HostRows(RBF(0.02), given), y, np.full(N, 2.0), SMO(tol=1e-3)) for kind in (SmoState, ByBlock)]
    for state in states:
        state.solve(np.inf)
        assert state.status is Status.CONVERGED
    assert states[0].on_demand is not None
    assert states[1].on_demand is None
    assert_allclose(states[0].objective(), states[1].objective(), rtol=1e-6)
    assert_allclose(states[0].v, states[1].v, atol=2e-3)
    assert states[0].rows.meter.evaluations < states[1].rows.meter.evaluations


def test_few_steps_at_a_time_go_on_where_the_last_ended(given, y):
    rows, settings = HostRows(RBF(0.02), given), SMO()
    at_once, in_parts = (SmoState(rows, y, np.full(N, 2.0), settings) for _ in range(2))
    at_once.solve(60)
    for limit in (20, 40, 60):
        in_parts.status = Status.CONVERGED
        in_parts.solve(limit)
    assert in_parts.steps == at_once.steps == 60
    assert at_once.status is Status.MAX_ITER
    assert_allclose(in_parts.objective(), at_once.objective(), rtol=1e-3)


@pytest.mark.parametrize(
    "rows",
    [
        lambda X: HostRows(Poly(degree=2), X),
        lambda X: HostRows(RBF(0.02), csr_array(np.where(X > 2, X, 0))),
        lambda X: HostRows(RBF(0.02), X, error=0.0),
        lambda X: HostRows(RBF(0.02), np.tile(X, (1, 64))),
        lambda X: on_device(Poly(degree=2), X),
        lambda X: on_device(RBF(0.02), X, error=0.0),
        lambda X: on_device(RBF(0.02), np.tile(X, (1, 8))),
    ],
    ids=[
        "other kernel",
        "sparse",
        "float64",
        "beyond the cache",
        "device: other kernel",
        "device: float64",
        "device: many",
    ],
)
def test_none_where_blocks_are_faster_or_needed(given, rows):
    assert rows(given).on_demand() is None


def test_wrong_lengths_are_refused(given):
    X = given.astype(np.float32)
    with pytest.raises(ValueError, match="equal lengths"):
        core.RbfRows(1.0, X, np.zeros(3, np.float32))
    compiled = core.RbfRows(1.0, X, np.zeros(N, np.float32))
    with pytest.raises(ValueError, match="equal lengths"):
        compiled.add_product(np.zeros(N), np.zeros(3))
    with pytest.raises(ValueError, match="equal lengths"):
        compiled.smo(np.ones(N, np.float32), np.ones(N), np.ones(3), np.ones(N, np.float32), 1e-3, 1)
