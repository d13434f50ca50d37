"""The loss of points, coefficients and metric together, against plain formulas and finite differences."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from slimsvm.goals import OneVsRest
from slimsvm.goals.demands import LOSSES, CrossEntropy, Demands
from slimsvm.kernels import make_kernel
from slimsvm.limits import Deadline
from slimsvm.rows.array_metric import ArrayMetricLosses
from slimsvm.rows.backends import has_torch_device
from slimsvm.rows.homes import open_rows
from slimsvm.rows.host import HostRows
from slimsvm.rows.precision import Precision
from slimsvm.slim.adam import AdamSettings, Moments, take_steps
from slimsvm.slim.learned_metric import KINDS, MetricLoss, Parameters, ParameterUnits, grown, metric_of
from slimsvm.slim.mini_batches import MiniBatches, steps_on

#: any work is large work
LARGE_WORK = Precision(small_work=0)


class Problem:
    """Rows with weights and a loss, and a model of four points."""

    def __init__(self, q=2, n=40, d=3, m=4, kernel="rbf", seed=0, loss="squared"):
        rng = np.random.default_rng(seed)
        self.kernel = make_kernel(kernel, gamma=0.3, degree=2, coef0=0.5)
        self.X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
        self.demands = Demands.beyond(np.where(rng.random((n, q)) < 0.5, -1.0, 1.0), 1.0)
        self.row_loss = CrossEntropy(OneVsRest(max(q, 2)).encode(rng.integers(0, max(q, 2), n)))
        self.row_loss = self.demands if loss == "squared" else self.row_loss
        self.weights = rng.integers(1, 4, n).astype(float)
        self.start = Parameters(
            rng.normal(size=(m, d)),
            rng.normal(size=(m + 1, q)),
            0.3 * rng.normal(size=d),
            0.3 * rng.normal(size=m) * (kernel in ("rbf", "laplacian")),
        )

    def loss(self, kind="both", rows=None, spread=(0.5, 1.0, 2.0), outputs=1.5, bound=50.0):
        rows = HostRows(self.kernel, self.X) if rows is None else rows
        units = ParameterUnits(np.array(spread), outputs, KINDS[kind])
        placed = replace(self.start, points=rows.inward(self.start.points))
        return MetricLoss(rows, self.row_loss, self.weights, placed, units, 0.02, 0.01, bound)

    def plain(self, model, outputs=1.5):
        """The same sum, written out, for points as the rows have them."""
        factors, widths = np.exp(model.log_factors), np.exp(model.log_widths)
        squared = ((factors * (self.X[:, None] - model.points)) ** 2).sum(axis=2)
        F = np.exp(-0.3 * widths * squared) @ model.theta[1:] + model.theta[0]
        unmet = np.clip(F, self.demands.low, self.demands.high) - F
        value = (self.weights[:, None] * unmet**2).sum() / self.weights.sum() / outputs**2
        penalty = 0.01 * (model.log_factors @ model.log_factors + model.log_widths @ model.log_widths)
        return value + 0.02 * (model.theta[1:] ** 2).sum() / outputs**2 + penalty


@pytest.mark.parametrize("q", [1, 3])
def test_loss_is_the_sum_written_out(q):
    problem = Problem(q)
    loss = problem.loss()
    x = 0.1 * np.random.default_rng(1).normal(size=loss.origin.size)
    model = loss.at(x)
    assert loss(x)[0] == pytest.approx(problem.plain(replace(model, points=loss.rows.outward(model.points))), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_gradient_is_that_of_finite_differences(kind, kernel, form):
    problem = Problem(kernel=kernel)
    loss = problem.loss(kind, HostRows(problem.kernel, form(problem.X)))
    x = 0.1 * np.random.default_rng(1).normal(size=loss.origin.size)
    value, gradient = loss(x)
    np.testing.assert_allclose(gradient, approx_fprime(x, lambda at: loss(at)[0], 1e-7), atol=2e-5 * max(value, 1))


@pytest.mark.parametrize("q", [1, 3])
def test_gradient_of_cross_entropy_is_that_of_finite_differences(q):
    loss = Problem(q, loss="cross_entropy").loss(outputs=1.0)
    x = 0.1 * np.random.default_rng(1).normal(size=loss.origin.size)
    np.testing.assert_allclose(loss(x)[1], approx_fprime(x, lambda at: loss(at)[0], 1e-7), atol=5e-5)


@pytest.mark.parametrize("device", ["array_api_strict", "torch:cpu"])
def test_every_home_has_the_same_loss(device):
    pytest.importorskip(device.partition(":")[0])
    problem = Problem()
    loss = problem.loss(rows=open_rows(problem.kernel, problem.X, device=device))
    x = 0.1 * np.random.default_rng(1).normal(size=loss.origin.size)
    value, gradient = loss(x)
    expected = problem.loss()(x)
    assert value == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-9)


DEVICES = [
    "array_api_strict",
    "torch:cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not has_torch_device("cuda"), reason="no CUDA GPU")),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("q", [1, 3])
def test_a_device_has_the_loss_of_the_host_on_all_rows_and_on_batches(device, kind, loss, q):
    pytest.importorskip(device.partition(":")[0].replace("cuda", "torch"))
    problem = Problem(q, loss=loss)
    loss, host = (
        problem.loss(kind, open_rows(problem.kernel, problem.X, device=device), bound=1.2),
        problem.loss(kind, bound=1.2),
    )
    there, batch = loss.at_home, np.array([3, 4, 11, 39])
    assert there is not loss
    x = 0.5 * np.random.default_rng(1).normal(size=loss.origin.size)  # some logarithms are beyond their bounds
    value, gradient = there(x)
    assert value == pytest.approx(host(x)[0], rel=1e-9)
    np.testing.assert_allclose(gradient, host(x)[1], atol=1e-9)
    host.keep_within(x)
    found = there.on_batch(there.sent(x), there.on.send(batch, np.int64))
    np.testing.assert_allclose(there.fetched(found), host.on_batch(x, batch), atol=1e-9)
    assert loss.rows.meter.evaluations == 2 * (40 + 4) * 4


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_keeps_logarithms_within_their_bounds(device):
    pytest.importorskip(device.partition(":")[0].replace("cuda", "torch"))
    problem = Problem()
    loss, host = (
        problem.loss("scales", rows, bound=1.2) for rows in (open_rows(problem.kernel, problem.X, device=device), None)
    )
    x = 5.0 * np.random.default_rng(1).normal(size=host.origin.size)
    there = loss.at_home
    moved = there.sent(x)
    there.keep_within(moved)
    host.keep_within(x)
    np.testing.assert_allclose(there.fetched(moved), x, atol=1e-12)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.skipif(not has_torch_device("cuda"), reason="no CUDA GPU")
def test_steps_recorded_on_cuda_are_the_plain_ones(q):
    problem = Problem(q)
    loss = problem.loss(rows=open_rows(problem.kernel, problem.X, device="cuda"))
    there, ends = loss.at_home, []
    for records in (False, True):
        now = Moments.at(there.sent(np.zeros(loss.origin.size)))
        batches = MiniBatches(there.shuffled, 40, 8, np.random.default_rng(0))
        before = loss.rows.meter.evaluations
        there.recorded = partial(ArrayMetricLosses.recorded, there) if records else lambda work, changed: None  # noqa: ARG005
        ends.append(there.fetched(take_steps(steps_on(there, batches, now), now, AdamSettings(30, 0.05), Deadline())))
        assert loss.rows.meter.evaluations - before == 2 * 30 * 8 * 4
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6, atol=1e-9)


def test_float32_batches_of_large_work_have_nearly_the_same_gradient():
    pytest.importorskip("torch")
    problem = Problem()
    rows = open_rows(problem.kernel, problem.X, device="torch:cpu", precision=LARGE_WORK)
    there, host = problem.loss(rows=rows).at_home, problem.loss()
    assert there.coarse.dtype == np.float32
    x, batch = 0.1 * np.random.default_rng(1).normal(size=host.origin.size), np.arange(20)
    expected = host.on_batch(x, batch)
    found = there.fetched(there.on_batch(there.sent(x), there.on.send(batch, np.int64)))
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_the_host_has_float32_batches_of_large_work_too():
    problem = Problem()
    exact, batch = problem.loss(), np.arange(20)
    x = 0.1 * np.random.default_rng(1).normal(size=exact.origin.size)
    expected = exact.on_batch(x, batch)
    coarse = problem.loss(rows=HostRows(problem.kernel, problem.X, error=0.0, precision=LARGE_WORK))
    assert coarse.rows.prepared.values.dtype == np.float64
    found = coarse.on_batch(x, batch)
    assert (found != expected).any()
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_allclose(coarse(x)[1], exact(x)[1], atol=1e-12)  # all rows keep their precision
    near = coarse.cheapest_near(x)
    assert near == coarse.on_coarse_rows
    np.testing.assert_allclose(near(x)[1], exact(x)[1], atol=1e-5)
    assert exact.cheapest_near(x) is exact


def test_rows_far_out_keep_their_precision_on_all_rows():
    problem = Problem()
    problem.X[::2] += 1e5
    loss = problem.loss(rows=HostRows(problem.kernel, problem.X, precision=LARGE_WORK))
    x = np.zeros(loss.origin.size)
    assert loss.cheapest_near(x) is loss


def test_kernels_other_than_rbf_have_their_loss_by_backpropagation():
    pytest.importorskip("torch")
    problem = Problem(kernel="laplacian")
    loss = problem.loss(rows=open_rows(problem.kernel, problem.X, device="torch:cpu"))
    assert loss.at_home is loss


def test_weights_are_duplicates():
    problem = Problem()
    loss, times = problem.loss(), problem.weights.astype(int)
    twice = problem.loss(rows=loss.rows.subset(np.repeat(np.arange(40), times)))
    twice.row_loss, twice.weights = problem.demands[np.repeat(np.arange(40), times)], np.ones(times.sum())
    x = 0.1 * np.random.default_rng(1).normal(size=loss.origin.size)
    assert twice(x)[0] == pytest.approx(loss(x)[0], rel=1e-12)
    np.testing.assert_allclose(twice(x)[1], loss(x)[1], atol=1e-12)


def test_gradients_of_batches_average_to_that_of_all_rows():
    loss = Problem().loss()
    x = 0.1 * np.random.default_rng(1).normal(size=loss.origin.size)
    batches = np.random.default_rng(2).permutation(40).reshape(4, 10)
    np.testing.assert_allclose(np.mean([loss.on_batch(x, batch) for batch in batches], axis=0), loss(x)[1], atol=1e-12)


@pytest.mark.parametrize(("kind", "parts"), [("scales", (3,)), ("widths", (2,)), ("both", ())])
def test_parts_that_are_not_learned_stay(kind, parts):
    loss = Problem().loss(kind)
    _, gradient = loss(np.zeros(loss.origin.size))
    found = np.split(gradient, loss.ends[:-1])
    for number, part in enumerate(found):
        assert part.any() == (number not in parts)
    metric = metric_of(loss.at(np.zeros(loss.origin.size)), KINDS[kind])
    assert (metric.factors is None, metric.widths is None) == (2 in parts, 3 in parts)


def test_constant_features_keep_their_factor_and_their_place():
    loss = Problem().loss(spread=(1.0, 0.0, 1.0))
    rng = np.random.default_rng(1)
    model, moved = loss.at(np.zeros(loss.origin.size)), loss.at(rng.normal(size=loss.origin.size))
    np.testing.assert_array_equal(moved.points[:, 1], model.points[:, 1])
    assert moved.log_factors[1] == model.log_factors[1]
    assert not loss(np.zeros(loss.origin.size))[1][loss.ends[1] + 1]


def test_logarithms_are_kept_within_their_bounds():
    loss = Problem().loss(bound=2.0)
    x = np.full(loss.origin.size, 100.0)
    assert loss.at_bound(x)
    assert not loss.at_bound(np.zeros(x.size))
    far = loss.at(x)
    np.testing.assert_allclose(np.exp(np.concatenate([far.log_factors, far.log_widths])), 2.0)
    assert not loss(x)[1][loss.ends[1] :].any()  # beyond the bound there is no slope
    loss.keep_within(x)
    within = loss.at(x)
    np.testing.assert_allclose(within.log_factors, far.log_factors)
    np.testing.assert_allclose(loss.origin[loss.ends[1] :] + loss.units[loss.ends[1] :] * x[loss.ends[1] :], np.log(2.0))
    assert (x[: loss.ends[1]] == 100.0).all()


def test_the_unit_of_outputs_changes_nothing_but_the_measure():
    """Demands, coefficients and their unit ten times as large: the same loss."""
    problem = Problem()
    loss = problem.loss(outputs=1.0)
    problem.row_loss = Demands(10 * problem.demands.low, 10 * problem.demands.high)
    problem.start = replace(problem.start, theta=10 * problem.start.theta)
    larger = problem.loss(outputs=10.0)
    x = 0.1 * np.random.default_rng(1).normal(size=loss.origin.size)
    assert larger(x)[0] == pytest.approx(loss(x)[0], rel=1e-9)
    np.testing.assert_allclose(larger(x)[1], loss(x)[1], atol=1e-9)


def test_new_points_have_no_coefficients_and_the_mean_width():
    model = Problem().start
    larger = grown(model, np.ones((2, 3)))
    assert larger.points.shape == (6, 3)
    assert not larger.theta[5:].any()
    np.testing.assert_allclose(larger.log_widths[4:], model.log_widths.mean())
    np.testing.assert_array_equal(larger.theta[:5], model.theta)
    assert not grown(
        Parameters(np.zeros((0, 3)), np.zeros((1, 1)), np.zeros(3), np.zeros(0)), np.ones((2, 3))
    ).log_widths.any()
