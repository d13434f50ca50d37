"""Folds and values of C that share kernel values end at the optimum of a separate problem."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from slimsvm._core import core
from slimsvm.kernels import RBF
from slimsvm.rows.homes import open_rows
from slimsvm.rows.host import HostRows, MatrixRows
from slimsvm.rows.protocol import Rows
from slimsvm.rows.threads import Spaces, ThreadPool
from slimsvm.run import BY_ITSELF
from slimsvm.solvers.folded_path import FoldedPath, FoldedProblem, FoldedRule, Memory, fold_by_fold
from slimsvm.solvers.matrix_path import Copies, MatrixProblem, Solved
from slimsvm.solvers.matrix_path import solutions as matrix_path
from slimsvm.solvers.smo import SmoState
from slimsvm.solvers.tube import PairedRows

COSTS = np.array([0.1, 0.3, 3.0, 30.0])
PARTS = FoldedRule(least=8)


@dataclass(frozen=True)
class Tight:
    tol: float = 1e-8
    working_set: None = None


def in_memory(rows: Rows) -> MatrixRows:
    return MatrixRows(rows, rows.block(np.arange(rows.n)), ThreadPool())


def data(n: int = 260, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    weights = np.tile(rng.uniform(0.5, 2, n), (3, 1))
    for fold in range(3):
        weights[fold, fold::3] = 0
    return X, y, weights


def objective(signed: np.ndarray, K: np.ndarray, linear: np.ndarray) -> float:
    return float(signed @ linear - 0.5 * signed @ K @ signed)


def check_optimal(found: Solved, K: np.ndarray, linear: np.ndarray, y: np.ndarray, weights: np.ndarray, tol: float) -> None:
    """Check feasibility, the gap and the responses of each fold by their definitions."""
    for signed, f, own in zip(found.signed, found.responses, weights, strict=True):
        alpha, cap = signed * y, found.C * own
        assert (alpha >= 0).all()
        assert (alpha <= cap).all()
        assert abs(signed.sum()) < 1e-8 * found.C * own.sum()
        np.testing.assert_allclose(f, K @ signed, atol=1e-4 * max(found.C, 1))
        v = linear - f
        rises, falls = np.where(y > 0, alpha < cap, alpha > 0), np.where(y > 0, alpha > 0, alpha < cap)
        assert v[rises].max() - v[falls].min() <= tol + 1e-12


def solutions(problem: FoldedProblem, megabytes: float = 100.0, rule: FoldedRule = PARTS) -> list[Solved]:
    memory = Memory(megabytes, megabytes, Spaces(problem.rows.dtype))
    return list(FoldedPath(problem, 1e-3, memory, rule=rule).solutions(COSTS))


def by_matrix(K: np.ndarray, y: np.ndarray, linear: np.ndarray, weights: np.ndarray, most: int) -> list[Solved]:
    """Return the solutions of the compiled path, with kernel values among at most so many rows beside the matrix."""
    n, times = K.shape[0], y.size // K.shape[0]
    ranges = core.Ranges(np.zeros(times, dtype=np.intp), np.full(times, n, dtype=np.intp))
    problem = MatrixProblem(K, ranges, y, linear, weights, 1e-3)
    share_out = HostRows(RBF(0.5), K[:2]).share_out
    return list(matrix_path(problem, COSTS, Copies(y.size, most, K.dtype), share_out, BY_ITSELF))


@pytest.mark.parametrize(
    "kind",
    ["compiled", "compiled, little memory", "shared block", "own blocks", "little memory", "matrix", "alone", "a device"],
)
def test_every_fold_and_cost_is_at_its_optimum(kind: str) -> None:
    X, y, weights = data()
    if kind == "a device":
        pytest.importorskip("array_api_strict")
    rows = open_rows(RBF(0.5), X, device="array_api_strict" if kind == "a device" else "cpu")
    problem_rows = in_memory(rows) if kind == "matrix" else rows
    problem = FoldedProblem(problem_rows, y, y, weights)
    if kind.startswith("compiled"):
        found = by_matrix(rows.block(np.arange(rows.n)), y, y, weights, 40 if "little" in kind else rows.n)
    elif kind == "alone":
        found = list(fold_by_fold(problem, lambda: rows.subset(np.arange(rows.n)), COSTS, 1e-3, BY_ITSELF))
    else:
        rule = replace(PARTS, copied=-1.0) if kind == "own blocks" else PARTS
        found = solutions(problem, 0.01 if kind == "little memory" else 100.0, rule)
    K = RBF(0.5)(X, X)
    assert [each.C for each in found] == COSTS.tolist()
    for each in found:
        check_optimal(each, K, y, y, weights, 1e-3)
        for fold, own in enumerate(weights):
            exact = SmoState(HostRows(RBF(0.5), X, error=0.0), y, each.C * own, Tight())
            exact.solve(np.inf)
            best = objective(exact.signed, K, y)
            gap = best - objective(each.signed[fold], K, y)
            assert -1e-6 * abs(best) <= gap <= 1e-3 * each.C * own.sum()
            assert abs(each.bias[fold] - exact.bias()) < 5e-3


def test_regression_has_two_variables_a_row() -> None:
    X, _, weights = data()
    targets, signs = np.sin(3 * X[:, 0]), np.repeat([1.0, -1.0], X.shape[0])
    linear = np.concatenate([targets - 0.1, targets + 0.1])
    once = HostRows(RBF(0.5), X)
    rows = PairedRows(in_memory(once))
    double = np.tile(weights, 2)
    K = np.tile(RBF(0.5)(X, X), (2, 2))
    problem = FoldedProblem(rows, signs, linear, double)  # type: ignore[arg-type]
    K32 = once.block(np.arange(once.n))
    by_fold = fold_by_fold(problem, lambda: PairedRows(HostRows(RBF(0.5), X)), COSTS, 1e-3, BY_ITSELF)  # type: ignore
    for found in (solutions(problem), by_matrix(K32, signs, linear, double, 64), list(by_fold)):
        for each in found:
            check_optimal(each, K, linear, signs, double, 1e-3)


def test_a_fold_of_one_class_has_no_coefficients() -> None:
    X, y, weights = data()
    weights[0, y > 0] = 0
    rows = HostRows(RBF(0.5), X)
    for found in (
        solutions(FoldedProblem(rows, y, y, weights))[-1],
        by_matrix(rows.block(np.arange(rows.n)), y, y, weights, rows.n)[-1],
    ):
        assert not found.signed[0].any()
        assert found.bias[0] == pytest.approx(-1.0)
        assert found.signed[1].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_settle_is_the_solution_of_the_slow_way(dtype: type) -> None:
    X, y, weights = data(90)
    K = RBF(0.5)(X, X)
    cap, alpha, f = 2.0 * weights[0], np.zeros(90), np.zeros(90)
    wide = np.zeros((90, 100), dtype)
    wide[:, :90] = K
    copy, all_rows = core.KernelCopy(90, np.empty(60**2, dtype)), core.Ranges(np.array([0]), np.array([90]))
    steps, gap, bias = core.settle(wide[:, :90], all_rows, y, y, cap, alpha, f, 1e-4, 10**6, copy)
    slow = np.zeros(90)
    for _ in range(20000):  # the pair that violates most, one exact step after the other
        v = y - K @ (y * slow)
        rises, falls = np.where(y > 0, slow < cap, slow > 0), np.where(y > 0, slow > 0, slow < cap)
        i, j = np.where(rises, v, -np.inf).argmax(), np.where(falls, v, np.inf).argmin()
        if v[i] - v[j] <= 1e-4:
            break
        ends = [cap[i] - slow[i] if y[i] > 0 else slow[i], slow[j] if y[j] > 0 else cap[j] - slow[j]]
        step = min((v[i] - v[j]) / (K[i, i] + K[j, j] - 2 * K[i, j]), *ends)
        slow[i], slow[j] = slow[i] + y[i] * step, slow[j] - y[j] * step
    assert steps > 0
    assert gap <= 1e-4
    np.testing.assert_allclose(f, K @ (y * alpha), atol=1e-5)
    assert abs(objective(y * alpha, K, y) - objective(y * slow, K, y)) < 1e-3
    assert not alpha[cap == 0].any()
    free = (alpha > 0) & (alpha < cap)
    assert bias == pytest.approx((y - f)[free].mean())


def test_settle_stops_at_its_limit_and_checks_shapes() -> None:
    X, y, weights = data(60)
    K, cap = RBF(0.5)(X, X), weights[0]
    alpha, f = np.zeros(60), np.zeros(60)
    copy, all_rows = core.KernelCopy(60, np.empty(60**2)), core.Ranges(np.array([0]), np.array([60]))
    steps, gap, _ = core.settle(K, all_rows, y, y, cap, alpha, f, 1e-9, 3, copy)
    assert steps == 3
    assert gap > 1e-9
    with pytest.raises(IndexError, match="60 of 59"):
        core.settle(K[:, :59], all_rows, y, y, cap, alpha, f, 1e-3, 3, copy)
    with pytest.raises(ValueError, match="4"):
        core.settle(K.astype(np.float32), all_rows, y, y, cap, alpha, f, 1e-3, 3, copy)
    with pytest.raises(ValueError, match="copy"):
        core.KernelCopy(0, np.empty(4))
    with pytest.raises(IndexError, match="from -1"):
        core.Ranges(np.array([-1]), np.array([2]))
    none = core.Ranges(np.array([0]), np.array([0]))
    assert core.settle(K[:0, :0], none, y[:0], y[:0], cap[:0], alpha[:0], f[:0], 1e-3, 3, copy) == (0, 0.0, 0.0)


def test_the_line_through_two_solutions_ends_in_the_box_and_keeps_its_sum() -> None:
    X, y, weights = data(90)
    K, cap = RBF(0.5)(X, X), 3.0 * weights
    first, second = (by_matrix(K, y, y, weights, 90)[k] for k in (1, 2))
    alpha, earlier = second.signed * y, first.signed * y
    moved, f, change = np.empty((3, *alpha.shape))
    core.advance(y, y, cap, 0.7, alpha, second.responses, earlier, first.responses, moved, f, change)
    assert (moved >= 0).all()
    assert (moved <= cap).all()
    np.testing.assert_allclose((moved * y).sum(axis=1), 0, atol=1e-9 * moved.sum())
    np.testing.assert_allclose(f + change @ K, (moved * y) @ K, atol=1e-3)


def test_gathered_takes_lines_and_columns() -> None:
    K, out = np.arange(20.0).reshape(4, 5), np.empty((2, 3))
    rows, columns = np.array([3, 0]), np.array([1, 1, 4])
    core.gathered(K, rows, columns, out)
    np.testing.assert_array_equal(out, K[np.ix_(rows, columns)])
    for wrong in (np.array([4, 0]), np.array([-1, 0])):
        with pytest.raises(IndexError):
            core.gathered(K, wrong, columns, out)
    with pytest.raises(IndexError):
        core.gathered(K, rows, np.array([0, 1, 5]), out)


def test_rows_with_their_matrix_answer_as_the_rows_do() -> None:
    X, _, _ = data(70)
    rows = HostRows(RBF(0.5), X)
    held = in_memory(rows)
    some, V = np.array([5, 60, 1]), np.random.default_rng(0).normal(size=(3, 2))
    np.testing.assert_allclose(held.block(some), rows.block(some), atol=1e-6)
    np.testing.assert_allclose(held.product_of(some, V), rows.product_of(some, V), atol=1e-5)
    assert held.n == rows.n


def test_spaces_are_used_again() -> None:
    spaces = Spaces(np.dtype(np.float32))
    with spaces.of(10) as first, spaces.of(5) as second:
        assert first is not second
    with spaces.of(8) as again:
        assert again is first
    for size in range(20, 30):  # a larger one takes the place of one that is too small
        with spaces.of(size):
            pass
    assert len(spaces.unused) == 2
