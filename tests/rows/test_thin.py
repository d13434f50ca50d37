"""Rows without their zeros: gradients of a learned metric as those of the whole rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm._core import core
from slimsvm.kernels import Linear, make_kernel
from slimsvm.metric import Metric
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import Precision
from slimsvm.rows.thin import ThinRows, thin_rows
from slimsvm.rows.threads import Crew


def table(n=90, seed=0):
    """Two dense features far from 0, a category of six values in a column each, and a column of zeros."""
    rng = np.random.default_rng(seed)
    return np.hstack([10 + rng.normal(size=(n, 2)), np.eye(6)[rng.integers(0, 6, n)], np.zeros((n, 1))])


class Problem:
    """A model with a metric on such rows; the loss is half the squared error."""

    def __init__(self, q=1, m=70, n=90, seed=0):
        rng = np.random.default_rng(seed)
        self.X, self.kernel = table(n), make_kernel("rbf", gamma=0.4, degree=3, coef0=0.0)
        self.Z, self.V, self.Y = table(m, 1) + 0.1, rng.normal(size=(m, q)), rng.normal(size=(n, q))
        self.Y[: n // 3] = np.nan  # rows without a slope
        self.metric = Metric(rng.uniform(0.5, 2.0, 9), rng.uniform(0.5, 2.0, m))

    def found(self, rows, whole=None):
        placed = (whole or rows).inward(self.Z)
        return rows.backpropagate(placed, self.V, self.metric, self.slopes)

    def slopes(self, some, outputs):
        return np.nan_to_num(outputs - self.Y[some])


def check(found, expected, rtol=2e-5):
    for name in ("points", "coef", "log_factors", "log_widths"):
        mine, other = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(mine, other, atol=rtol * np.abs(other).max(), err_msg=name)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("parts", ["both", "scales", "widths", "none"])
def test_gradients_are_those_of_the_whole_rows(q, form, parts):
    problem = Problem(q)
    factors, widths = problem.metric.factors, problem.metric.widths
    problem.metric = Metric(
        factors if parts in ("both", "scales") else None, widths if parts in ("both", "widths") else None
    )
    rows = HostRows(problem.kernel, form(problem.X), error=0.0)
    check(problem.found(thin_rows(rows), rows), problem.found(rows))
    assert rows.meter.evaluations == 2 * 2 * 90 * 70


def test_categories_of_standardised_rows_are_left_out_too():
    """Where most rows have no entry in a column, a scaler gives them one value, which is not 0."""
    problem = Problem()
    spread = problem.X.std(axis=0)
    problem.X = (problem.X - problem.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    problem.Z = problem.X[:70] + 0.1
    rows = HostRows(problem.kernel, problem.X, error=0.0)
    thin = thin_rows(rows)
    assert thin.prepared.values.nnz == 3 * 90
    check(problem.found(thin, rows), problem.found(rows))


def test_some_of_the_rows_have_their_own_gradient():
    problem, some = Problem(), np.array([88, 3, 40, 41, 42, 7])
    rows = HostRows(problem.kernel, problem.X, error=0.0)
    problem.Y = problem.Y[some]
    check(problem.found(thin_rows(rows).subset(some), rows), problem.found(rows.subset(some)))


def test_strips_and_threads_add_up_to_the_same_sums():
    problem = Problem(n=50_000, m=130)
    expected = problem.found(HostRows(problem.kernel, problem.X, error=0.0))
    rows = [HostRows(problem.kernel, problem.X, error=0.0, crew=Crew(count)) for count in (1, 3)]
    found = [problem.found(thin_rows(each), each) for each in rows]
    check(found[0], expected, rtol=1e-4)
    for name in ("points", "coef", "log_factors", "log_widths"):
        np.testing.assert_array_equal(*(getattr(each, name) for each in found))
    short = thin_rows(rows[0])
    short.strip_values = 1 << 17
    check(problem.found(short, rows[0]), expected, rtol=1e-4)


def test_a_search_gets_thin_rows_where_the_work_is_large():
    X, rbf = table(), make_kernel("rbf", gamma=0.4, degree=3, coef0=0.0)
    assert isinstance(HostRows(rbf, X, precision=Precision(small_work=0)).coarse(10), ThinRows)
    assert not isinstance(HostRows(rbf, X).coarse(10), ThinRows)
    assert not isinstance(HostRows(rbf, X[:, :2], precision=Precision(small_work=0)).coarse(10), ThinRows)


def test_rows_of_zeros_have_kernel_values_too():
    problem = Problem(n=6)
    rows = HostRows(problem.kernel, csr_array(np.vstack([problem.X, np.zeros((6, 9))])), error=0.0)
    problem.Y, problem.Z = np.ones((6, 1)), 0.1 * problem.Z
    zeros = np.arange(6, 12)
    check(problem.found(thin_rows(rows).subset(zeros), rows), problem.found(rows.subset(zeros)))


def test_only_rows_with_many_zeros_and_the_rbf_kernel_are_thin(tmp_path):
    X, rbf = table(), make_kernel("rbf", gamma=0.4, degree=3, coef0=0.0)
    assert thin_rows(HostRows(rbf, X)) is not None
    assert thin_rows(HostRows(rbf, X[:, :2])) is None
    assert thin_rows(HostRows(rbf, X + 0.01 * np.random.default_rng(0).normal(size=X.shape))) is None
    assert thin_rows(HostRows(rbf, csr_array(X[:, :2]))) is None
    assert thin_rows(HostRows(rbf, csr_array((5, 9)))) is None
    assert thin_rows(HostRows(Linear(), X)) is None
    assert thin_rows(HostRows(rbf, np.hstack([X, np.zeros((90, 1024))]))) is None
    np.save(tmp_path / "X.npy", X)
    assert thin_rows(HostRows(rbf, np.load(tmp_path / "X.npy", mmap_mode="r"))) is None


@pytest.mark.parametrize(("starts", "ends"), [([0, 2], [2, 1]), ([0, 1], [1, 9]), ([-1, 0], [0, 1]), ([0], [1])])
def test_compiled_loops_look_where_rows_start_and_end(starts, ends):
    lanes, float32 = core.SPARSE_LANES, np.float32
    rows = np.ones(2, float32), np.zeros(2, np.int32), np.array(starts, np.int32), np.array(ends, np.int32)
    K, line = np.zeros((2, lanes), float32), np.zeros(lanes, float32)
    sums, two = np.zeros((2, 2, core.PARTIAL_SUMS), float32), np.zeros(2, float32)
    with pytest.raises(ValueError, match=r"must lie within 2 values|equal lengths"):
        core.thin_values(*rows, K[None, :1], line, line, two[:1], K, two, K, sums)
    with pytest.raises(ValueError, match=r"must lie within 2 values|equal lengths"):
        core.thin_back(*rows, two, two, two, K, np.zeros((1, 3, lanes), float32), np.zeros(1))
