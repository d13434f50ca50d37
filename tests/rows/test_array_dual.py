"""Vectors of a dual problem on a GPU: the same looks as by NumPy, and the same optimum as with vectors on the host.

torch on the processor stands in for a GPU where there is none: the operations are the same, except for recordings.
"""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from slimsvm.clock import Deadline
from slimsvm.kernels import RBF, Custom, Linear, Poly, Precomputed
from slimsvm.model import Status
from slimsvm.rows.array import ArrayRows
from slimsvm.rows.array_matrix import ArrayDual
from slimsvm.rows.backends import has_torch_device, open_torch
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import Precision
from slimsvm.rows.protocol import Dual
from slimsvm.run import Run
from slimsvm.solvers.smo import SmoState
from slimsvm.trainers import SMO

N, SIZE = 600, 40
EXACT = Precision(np.inf)  # float64


@pytest.fixture(params=["torch:cpu", "cuda"])
def gpu(request):
    """A backend that is a GPU, or says so."""
    pytest.importorskip("torch")
    if request.param == "cuda" and not has_torch_device("cuda"):
        pytest.skip("there is no CUDA GPU")
    return replace(open_torch(request.param), is_gpu=True)


def made(n=N, seed=0):
    """Rows of two overlapping classes, labels and caps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0.3, 1.0, -1.0)
    return X, y, 2.0 * rng.uniform(0.5, 1.0, n)


def dual_of(K, y, alpha, cap):
    signed, up = alpha * y, y > 0
    rises, falls = alpha < cap, alpha > 0
    return Dual(y, K @ signed, signed, np.where(up, rises, falls), np.where(up, falls, rises))


def some_point(y, cap, seed=1):
    """Coefficients of which many are at a bound."""
    alpha = np.clip(np.random.default_rng(seed).normal(0.3, 1.0, y.size), 0.0, cap)
    alpha[::7] = cap[::7]
    return alpha


@pytest.mark.parametrize("kernel", [RBF(0.3), Poly(gamma=0.5, coef0=1.0, degree=2)])
def test_looks_and_moves_are_those_of_numpy(gpu, kernel):
    X, y, cap = made()
    rows = ArrayRows(gpu, kernel, X, precision=EXACT)
    K, alpha, working = kernel(X, X), some_point(y, cap), np.arange(100, 100 + SIZE)
    vectors, rng = ArrayDual(rows, dual_of(K, y, alpha, cap), working), np.random.default_rng(2)
    for _ in range(5):  # from the second on they are replayed
        problem, look = dual_of(K, y, alpha, cap), vectors.look()
        v = y - problem.responses
        up, down = v[problem.grows], v[problem.shrinks]
        assert look.gap == pytest.approx(up.max() - down.min())
        assert look.objective == pytest.approx(0.5 * problem.signed @ (y + v))
        assert np.unique(look.working).size == SIZE
        new = SIZE // 4
        assert set(np.flatnonzero(problem.grows & (v >= np.sort(up)[-new]))) <= set(look.working)
        assert set(np.flatnonzero(problem.shrinks & (v <= np.sort(down)[new - 1]))) <= set(look.working)
        assert set(look.working[2 * new :]) <= set(working)
        np.testing.assert_allclose(look.v, v[look.working], atol=1e-9)
        np.testing.assert_allclose(look.block, K[np.ix_(look.working, look.working)], atol=1e-9)
        moved, working = rng.choice(look.working, 12, replace=False), look.working
        found = np.clip(alpha[moved] + rng.normal(size=12), 0.0, cap[moved])
        found[:3] = 0.0
        change, alpha[moved] = (found - alpha[moved]) * y[moved], found
        after = dual_of(K, y, alpha, cap)
        vectors.move(moved, change, after.signed[moved], after.grows[moved], after.shrinks[moved])
        np.testing.assert_allclose(vectors.responses(), after.responses, atol=1e-9)
    vectors.move(moved[:0], change[:0], change[:0], after.grows[:0], after.shrinks[:0])
    np.testing.assert_allclose(vectors.responses(), after.responses, atol=1e-9)


def test_rows_that_cannot_move_take_no_place_from_those_of_the_last_set(gpu):
    X, y, cap = made()
    y = np.where(np.arange(N) < 3, 1.0, -1.0)  # three rows can grow, and all others can shrink
    rows, working = ArrayRows(gpu, RBF(0.3), X, precision=EXACT), np.arange(N - SIZE, N)
    look = ArrayDual(rows, dual_of(np.eye(N), y, np.zeros(N), cap), working).look()
    assert {0, 1, 2} <= set(look.working)
    assert np.unique(look.working).size == SIZE
    assert len(set(look.working) & set(working)) >= SIZE - 3 - SIZE // 4


def test_evaluations_are_counted(gpu):
    X, y, cap = made()
    rows = ArrayRows(gpu, RBF(0.3), X)
    vectors = ArrayDual(rows, dual_of(np.eye(N), y, np.zeros(N), cap), np.arange(SIZE))
    vectors.look()
    assert rows.meter.evaluations == SIZE**2
    vectors.move(np.arange(5), np.ones(5), np.ones(5), np.ones(5, bool), np.ones(5, bool))
    assert rows.meter.evaluations == SIZE**2 + 5 * N


def run_of(rows, y, cap, **settings):
    return SmoState(rows, y, cap, SMO(working_set=SIZE, **settings))


class Kept:
    """A checkpoint of all states."""

    def __init__(self):
        self.states = []

    def offer(self, state):
        self.keep(state())

    def keep(self, state, *, now=False):  # noqa: ARG002
        self.states.append(deepcopy(state))


@pytest.mark.parametrize("kernel", [RBF(0.3), Linear(), Poly(gamma=0.5, coef0=1.0, degree=2)])
@pytest.mark.parametrize(("tol", "precision"), [(1e-3, Precision(0.0, 1.0)), (1e-3, EXACT), (1e-6, EXACT)])
def test_the_optimum_is_that_of_the_host(gpu, kernel, tol, precision):
    X, y, cap = made()
    here = run_of(HostRows(kernel, X, error=0.0), y, cap, tol=1e-7)
    there = run_of(ArrayRows(gpu, kernel, X, error=1e-4, precision=precision), y, cap, tol=tol)
    assert there.rows.keeps_vectors
    for run in (here, there):
        run.solve(np.inf)
        assert run.status is Status.CONVERGED
        assert run.violation() <= run.tol
    assert there.objective() == pytest.approx(here.objective(), rel=1e-5)
    np.testing.assert_allclose(there.responses.values[:, 0], kernel(X, X) @ there.signed, atol=0.02 * tol**0.5)
    assert there.bias() == pytest.approx(here.bias(), abs=2 * tol)


def test_a_run_goes_on_from_any_of_its_states_to_the_same_end(gpu):
    X, y, cap = made()
    whole, checkpoint = run_of(ArrayRows(gpu, RBF(0.3), X, precision=EXACT), y, cap), Kept()
    whole.run = Run(checkpoint=checkpoint)
    whole.solve(np.inf)
    assert len(checkpoint.states) > 5
    for number in (0, 1, 3, len(checkpoint.states) - 1):
        again = run_of(ArrayRows(gpu, RBF(0.3), X, precision=EXACT), y, cap)
        again.restore(deepcopy(checkpoint.states[number]))
        again.solve(np.inf)
        np.testing.assert_array_equal(again.alpha, whole.alpha)
        np.testing.assert_array_equal(again.responses.values, whole.responses.values)
        assert (again.steps, again.status) == (whole.steps, whole.status)


def test_limits_end_a_run_with_responses_of_its_coefficients(gpu):
    X, y, cap = made()
    K = RBF(0.3)(X, X)
    stopped = [run_of(ArrayRows(gpu, RBF(0.3), X, precision=EXACT), y, cap) for _ in range(2)]
    stopped[0].solve(50)
    assert (stopped[0].status, stopped[0].steps) == (Status.MAX_ITER, 50)
    stopped[1].run = Run(deadline=Deadline(1e-9))
    stopped[1].solve(np.inf)
    assert stopped[1].status is Status.TIME_LIMIT
    for run in stopped:
        np.testing.assert_allclose(run.responses.values[:, 0], K @ run.signed, atol=1e-9)


def test_a_report_on_the_way_sees_the_bias_of_the_coefficients(gpu):
    X, y, cap = made()
    run, seen = run_of(ArrayRows(gpu, RBF(0.3), X, precision=EXACT), y, cap), []

    def report(_phase, _share):
        seen.append(run.vectors is not None)
        np.testing.assert_allclose(run.v, y - RBF(0.3)(X, X) @ run.signed, atol=1e-9)

    run.run = Run(report)
    run.solve(np.inf)
    assert sum(seen) > 3


def test_an_interrupt_leaves_responses_of_the_coefficients(gpu):
    X, y, cap = made()
    run, reports = run_of(ArrayRows(gpu, RBF(0.3), X, precision=EXACT), y, cap), []

    def report(_phase, share):
        reports.append(share)
        if len(reports) == 4:
            raise KeyboardInterrupt

    run.run = Run(report)
    with pytest.raises(KeyboardInterrupt):
        run.solve(np.inf)
    assert run.steps
    np.testing.assert_allclose(run.responses.values[:, 0], RBF(0.3)(X, X) @ run.signed, atol=1e-9)


def test_without_memory_for_the_vectors_the_host_keeps_them(gpu, monkeypatch):
    X, y, cap = made()
    rows = ArrayRows(gpu, RBF(0.3), X, precision=EXACT)

    def full():
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(rows, "form", full)
    assert rows.dual_vectors(dual_of(np.eye(N), y, np.zeros(N), cap), np.arange(SIZE)) is None
    run = run_of(rows, y, cap)
    run.solve(np.inf)
    assert run.status is Status.CONVERGED


def test_other_errors_are_not_hidden(gpu, monkeypatch):
    X, y, cap = made()
    rows = ArrayRows(gpu, RBF(0.3), X, precision=EXACT)

    def broken():
        raise RuntimeError("a bug")

    monkeypatch.setattr(rows, "form", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        rows.dual_vectors(dual_of(np.eye(N), y, np.zeros(N), cap), np.arange(SIZE))


def test_only_a_gpu_keeps_vectors_and_only_for_kernels_of_the_inner_product(gpu):
    X = np.eye(3)
    assert not HostRows(RBF(0.5), X).keeps_vectors
    assert not ArrayRows(replace(gpu, is_gpu=False), RBF(0.5), X).keeps_vectors
    assert not ArrayRows(replace(gpu, has_float64=False), RBF(0.5), X).keeps_vectors
    for kernel in (Precomputed(), Custom(lambda A, B: A @ B.T)):
        assert not ArrayRows(gpu, kernel, X).keeps_vectors


def test_newtons_method_is_used_on_the_host(gpu):
    """A large C on rows that are hard to separate: pair steps take long, and the free rows are solved for."""

    class Counted(SmoState):
        used = 0

        def moved_free(self, index, v):
            self.used += 1
            return super().moved_free(index, v)

    X, y, _ = made()
    cap, runs = np.full(N, 1e4), []
    for rows in (HostRows(RBF(0.3), X, error=0.0), ArrayRows(gpu, RBF(0.3), X, precision=EXACT)):
        runs.append(Counted(rows, y, cap, SMO(working_set=SIZE)))
        runs[-1].solve(np.inf)
        assert runs[-1].status is Status.CONVERGED
        assert runs[-1].used
    assert runs[1].objective() == pytest.approx(runs[0].objective(), rel=1e-6)
