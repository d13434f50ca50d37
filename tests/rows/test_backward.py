"""The gradient of a model with a learned metric: every kernel and home, against finite differences of plain formulas."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from slimsvm.kernels import KERNELS, RBF, make_kernel, scaled
from slimsvm.metric import Metric, takes_widths
from slimsvm.rows.homes import open_rows
from slimsvm.rows.host import HostRows
from slimsvm.rows.threads import ThreadPool

SMOOTH = [name for name, kind in KERNELS.items() if kind.differentiable and name != "chi2"]  # chi2 has no metric


def kernel_matrix(kernel, X, Z, factors, widths):
    """K(f * X, f * Z) with gamma times the width of each point, one column at a time."""
    columns = []
    for z, width in zip(Z, widths, strict=True):
        each = make_kernel(kernel.name, gamma=kernel.gamma * width, degree=1, coef0=0.0) if width != 1 else kernel
        columns.append(each(X * factors, (z * factors)[None])[:, 0])
    return np.array(columns).T


class Problem:
    """Rows, a target for each output, and a model with a metric; the loss is half the squared error."""

    def __init__(self, name, q=2, n=30, d=4, m=3, seed=0):
        rng = np.random.default_rng(seed)
        self.kernel = make_kernel(name, gamma=0.4, degree=3, coef0=0.5)
        self.X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
        self.Z, self.V, self.Y = rng.normal(size=(m, d)), rng.normal(size=(m, q)), rng.normal(size=(n, q))
        self.factors = rng.uniform(0.5, 2.0, d)
        self.widths = rng.uniform(0.5, 2.0, m) if takes_widths(name) else np.ones(m)
        self.metric = Metric(self.factors, self.widths if takes_widths(name) else None)

    def loss(self, Z, V, factors, widths):
        outputs = kernel_matrix(self.kernel, self.X, Z, factors, widths) @ V
        return 0.5 * np.square(outputs - self.Y).sum()

    def slopes(self, some, outputs):
        return outputs - self.Y[some]

    def found(self, rows):
        return gradient(rows, rows.to_coordinates(self.Z), self.V, self.metric, self.slopes)

    def expected(self):
        """The gradients by finite differences."""

        def by(change, at):
            return approx_fprime(at.ravel(), lambda x: change(x.reshape(at.shape)), 1e-6).reshape(at.shape)

        Z, V, f, w = self.Z, self.V, self.factors, self.widths
        return (
            by(lambda x: self.loss(x, V, f, w), Z),
            by(lambda x: self.loss(Z, x, f, w), V),
            by(lambda x: self.loss(Z, V, np.exp(x), w), np.log(f)),
            by(lambda x: self.loss(Z, V, f, np.exp(x)), np.log(w)) if self.metric.widths is not None else 0 * w,
        )


def gradient(rows, placed, V, metric, slopes):
    handle = rows.moving(np.zeros((0, placed.shape[1])))
    W = slopes(slice(None), handle.move(placed, V, metric))
    return replace(handle.metric_pullback(W, V, metric), coef=handle.back(W))


def check(found, expected, atol=2e-4):
    for mine, other in zip((found.points, found.coef, found.log_factors, found.log_widths), expected, strict=True):
        np.testing.assert_allclose(mine, other, atol=atol * max(np.abs(other).max(), 1.0))


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_gradient_is_that_of_finite_differences(name, q, form):
    problem = Problem(name, q)
    rows = HostRows(problem.kernel, form(problem.X))
    check(problem.found(rows), problem.expected())
    assert rows.meter.evaluations == 2 * 30 * 3


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("device", ["array_api_strict", "torch:cpu"])
def test_every_home_gives_the_same_gradient(name, device):
    pytest.importorskip(device.partition(":")[0])
    problem = Problem(name)
    check(problem.found(open_rows(problem.kernel, problem.X, device=device)), problem.expected())


@pytest.mark.parametrize(
    "metric", [Metric(), Metric(np.array([2.0, 1.0, 0.5, 1.0])), Metric(None, np.array([2.0, 1.0, 0.5]))]
)
def test_parts_of_a_metric_that_are_not_there_are_ones(metric):
    problem = Problem("rbf")
    problem.metric = metric
    problem.factors = np.ones(4) if metric.factors is None else metric.factors
    problem.widths = np.ones(3) if metric.widths is None else metric.widths
    found, expected = problem.found(HostRows(problem.kernel, problem.X)), problem.expected()
    check(found, (*expected[:3], found.log_widths if metric.widths is None else expected[3]))


@pytest.mark.parametrize("name", ["rbf", "poly"])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_float32_strips_in_threads_add_up_to_the_same_sums(name, form):
    problem = Problem(name, q=1, n=7000, d=40, m=60)
    exact = problem.found(HostRows(problem.kernel, problem.X, error=0.0))
    several = [problem.found(HostRows(problem.kernel, form(problem.X), pool=ThreadPool(count))) for count in (1, 3)]
    check(several[0], (exact.points, exact.coef, exact.log_factors, exact.log_widths), atol=1e-4)
    for name in ("points", "coef", "log_factors", "log_widths"):
        np.testing.assert_array_equal(*(getattr(each, name) for each in several))


@pytest.mark.parametrize("count", [9, 29], ids=["few have one", "most have one"])
def test_rows_without_a_slope_have_no_part_in_the_gradient(count):
    problem = Problem("rbf")
    rows = HostRows(problem.kernel, problem.X)
    problem.slopes = lambda some, outputs: np.where(np.arange(30)[some, None] < count, outputs - problem.Y[some], 0.0)
    found = problem.found(rows)
    problem.X, problem.Y = problem.X[:count], problem.Y[:count]
    check(found, problem.expected())


def test_a_subset_of_the_rows_is_a_batch():
    problem, batch = Problem("rbf"), np.array([2, 3, 11, 29])
    problem.X, problem.Y = problem.X, problem.Y
    rows = HostRows(problem.kernel, problem.X).subset(batch)
    problem.X, problem.Y = problem.X[batch], problem.Y[batch]
    check(problem.found(rows), problem.expected())


def test_kernels_without_gradients_are_refused():
    rows = HostRows(make_kernel("chi2", gamma=1.0, degree=1, coef0=0.0), np.ones((3, 2)))
    with pytest.raises(ValueError, match="no metric can be learned with the chi2 kernel"):
        gradient(rows, np.ones((1, 2)), np.ones((1, 1)), Metric(), lambda _, outputs: outputs)


def test_scaled_rows_have_the_gradient_of_the_metric():
    """A factor is the same as a scaled feature: the outputs and the gradient by coefficients agree."""
    problem = Problem("rbf")
    plain = HostRows(RBF(0.4), scaled(problem.X, problem.factors))
    at = plain.to_coordinates(problem.Z * problem.factors)
    other = gradient(plain, at, problem.V, Metric(None, problem.widths), problem.slopes)
    found = problem.found(HostRows(problem.kernel, problem.X))
    np.testing.assert_allclose(found.coef, other.coef, atol=1e-10)
    np.testing.assert_allclose(found.points, problem.factors * other.points, atol=1e-10)
