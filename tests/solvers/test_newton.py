"""The best coefficients for given points: against a plain optimiser, repeated rows and parts of the points."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from slimsvm._core import core
from slimsvm.goals.margin_targets import MarginTargets
from slimsvm.kernels import Precomputed
from slimsvm.rows.curvatures import FEW_ROWS, RunningCurvatures
from slimsvm.rows.host import HostRows
from slimsvm.solvers import newton
from slimsvm.solvers.basis import EXACT
from slimsvm.solvers.newton import MANY, RIDGE, IntervalSquares, KeptFactors, Line, NewtonSettings, tie_ridge
from slimsvm.states import pack, unpack


def handle(K):
    """A handle on kernel values that are given."""
    return HostRows(Precomputed(), K).against(np.arange(K.shape[1])[:, None])


def fitted(K, targets, margin_targets, weights, R=None, settings=NewtonSettings(), **more):  # noqa: B008
    against = handle(K)
    R = tie_ridge(against, weights) if R is None else R
    return IntervalSquares(MarginTargets.beyond(targets, margin_targets), weights).fit(against, R, settings, **more)


def problem(seed, n=80, m=6, q=2):
    rng = np.random.default_rng(seed)
    K, targets = np.exp(-np.square(rng.normal(size=(n, m)))), rng.choice([-1.0, 1.0], (n, q))
    margin_targets = np.where(rng.random((n, q)) < 0.8, rng.random((n, q)), -np.inf)
    return K, targets, margin_targets, rng.integers(1, 4, n).astype(float)


def loss(theta, K, y, h, w):
    unmet = np.maximum(0.0, h - y * (K @ theta[1:] + theta[0]))
    return w @ np.square(unmet) + RIDGE * w.sum() * np.square(K).max() * theta @ theta


@pytest.mark.parametrize("seed", range(5))
def test_no_other_coefficients_are_better(seed):
    K, targets, margin_targets, weights = problem(seed)
    found = fitted(K, targets, margin_targets, weights)
    total = 0.0
    for column in range(2):
        ours, arguments = found.theta[:, column], (K, targets[:, column], margin_targets[:, column], weights)
        best = minimize(loss, ours, arguments, tol=1e-12)
        assert loss(ours, *arguments) <= best.fun * (1 + 1e-5) + 1e-9
        total += loss(ours, *arguments)
    assert found.loss == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_two_sided_demands_are_met_as_well_as_can_be(seed):
    K, _, _, weights = problem(seed)
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(80, 2))
    margin_targets = MarginTargets(low, low + rng.choice([0.0, 0.3], (80, 2)))
    against = handle(K)
    ridge = tie_ridge(against, weights)
    found = IntervalSquares(margin_targets, weights).fit(against, ridge, EXACT)

    def value(theta, low, high):
        outputs = K @ theta[1:] + theta[0]
        outside = np.maximum(low - outputs, 0) + np.maximum(outputs - high, 0)
        return weights @ outside**2 + ridge[0, 0] * theta @ theta

    for column in range(2):
        ours, arguments = found.theta[:, column], (margin_targets.low[:, column], margin_targets.high[:, column])
        best = minimize(value, ours, arguments, tol=1e-12)
        assert value(ours, *arguments) <= best.fun * (1 + 1e-8)


def test_the_outputs_are_those_of_the_coefficients_found():
    K, targets, margin_targets, weights = problem(2)
    found = fitted(K, targets, margin_targets, weights)
    np.testing.assert_allclose(found.outputs, K @ found.coef + found.bias, atol=1e-12)


def test_slopes_are_the_derivative_of_the_loss_by_outputs():
    _, targets, margin_targets, weights = problem(2)
    squares = IntervalSquares(MarginTargets.beyond(targets, margin_targets), weights)
    outputs = np.random.default_rng(0).normal(size=(80, 2))

    def value(outputs):
        residual = squares.margin_targets.residual(outputs)
        return (squares.weights @ np.square(residual)).sum()

    slopes = squares.slopes(outputs)
    for place in [(0, 0), (7, 1), (33, 0)]:
        step = np.zeros_like(outputs)
        step[place] = 1e-6
        assert slopes[place] == pytest.approx((value(outputs + step) - value(outputs - step)) / 2e-6, abs=1e-6)


def test_the_first_points_alone_are_fitted_as_if_there_were_no_others():
    K, targets, margin_targets, weights = problem(7)
    R = np.eye(4)
    few = fitted(K[:, :3], targets, margin_targets, weights, R)
    first = IntervalSquares(MarginTargets.beyond(targets, margin_targets), weights).fit(
        handle(K).first(3), R, NewtonSettings()
    )
    np.testing.assert_array_equal(few.theta, first.theta)


def test_a_weight_is_a_number_of_equal_rows():
    K, targets, margin_targets, weights = problem(3)
    times = weights.astype(int)
    repeated = (np.repeat(part, times, axis=0) for part in (K, targets, margin_targets))
    once, often = fitted(K, targets, margin_targets, weights), fitted(*repeated, np.ones(times.sum()))
    np.testing.assert_allclose(once.theta, often.theta, rtol=1e-6)


def test_rows_without_margin_targets_leave_the_start_as_it_is():
    K, targets, _, weights = problem(1)
    found = fitted(K, targets, np.full_like(targets, -np.inf), weights)
    np.testing.assert_array_equal(found.theta, np.zeros((7, 2)))


def test_the_start_is_not_written_to():
    K, targets, margin_targets, weights = problem(1)
    start = np.zeros((7, 2))
    assert fitted(K, targets, margin_targets, weights, start=start).theta.any()
    assert not start.any()


def squared_problem(seed, n=120, m=10, q=3):
    """Squared hinge with a regulariser of bias and coefficients; of the rows some have no part in an output."""
    K, targets, _, weights = problem(seed, n, m, q)
    A = np.random.default_rng(seed).normal(size=(m + 1, m + 1))
    targets[np.random.default_rng(seed).random((n, q)) < 0.2] = 0
    return K, targets, np.where(targets != 0, 1.0, -np.inf), weights, A @ A.T / m


@pytest.mark.parametrize("seed", range(3))
def test_with_a_regulariser_the_gradient_is_zero(seed):
    K, targets, margin_targets, weights, R = squared_problem(seed)
    found = fitted(K, targets, margin_targets, weights, R, EXACT)
    design, theta = np.column_stack([np.ones(len(K)), K]), found.theta
    slack = np.maximum(0.0, np.where(targets != 0, 1 - targets * (design @ theta), 0.0))
    gradient = 2 * R @ theta - 2 * design.T @ (weights[:, None] * targets * slack)
    assert np.abs(gradient).max() <= 1e-6
    value = (weights[:, None] * slack**2).sum() + np.trace(theta.T @ R @ theta)
    assert found.loss == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("few_rows", [0, FEW_ROWS])
def test_points_that_come_later_and_warm_starts_change_nothing(few_rows):
    """Curvatures that are carried from one fit to the next are those that a new one computes."""
    K, targets, margin_targets, weights, R = squared_problem(4)
    squares, rows = IntervalSquares(MarginTargets.beyond(targets, margin_targets), weights), HostRows(Precomputed(), K)
    growing, theta = rows.against(np.empty((0, 1), dtype=np.intp)), np.zeros((1, 3))
    curvatures = RunningCurvatures(growing, 3, few_rows=few_rows)
    for size in (0, 1, 2, 5, 10):
        if size > growing.size:
            growing.append(np.arange(growing.size, size)[:, None])
        part = R[: size + 1, : size + 1]
        start = np.vstack([theta, np.zeros((size + 1 - theta.shape[0], 3))])
        theta = squares.fit(growing, part, EXACT, start=start, curvatures=curvatures).theta
        fresh = fitted(K[:, :size], targets, margin_targets, weights, part, EXACT).theta
        np.testing.assert_allclose(theta, fresh, rtol=1e-6, atol=1e-8)


@pytest.fixture
def steps_taken(monkeypatch):
    """The outputs that take part in each step of a fit, in order."""
    taken, steps = [], newton._Run._steps

    def watched(self, going, number):
        taken.append((self.first + going).tolist())
        return steps(self, going, number)

    monkeypatch.setattr(newton._Run, "_steps", watched)
    return taken


@pytest.mark.parametrize("settings", [{}, {"shared": False}, {"shared": True}], ids=["default", "own", "shared"])
def test_with_shared_precision_outputs_end_by_their_mean_loss(settings, steps_taken):
    """An output of tiny loss goes on alone where its own precision counts, and rests where the mean's does."""
    K, targets, margin_targets, weights = problem(2, q=3)
    scale = np.array([1.0, 1e-6, 1.0])
    fitted(K, targets, margin_targets * scale, weights, np.eye(7), NewtonSettings(precision=1e-6, **settings))
    assert (1 in steps_taken[1]) == (not settings.get("shared", False))


def test_the_unit_of_the_loss_does_not_change_the_number_of_steps(steps_taken):
    K, targets, margin_targets, weights, R = squared_problem(4)
    counts = []
    for unit in (1.0, 1e8, 1e-8):
        steps_taken.clear()
        fitted(K, targets, margin_targets, unit * weights, unit * R)
        counts.append(len(steps_taken))
    assert counts[0] == counts[1] == counts[2] < NewtonSettings().steps


@pytest.mark.parametrize(("m", "steps"), [(6, 1), (MANY - 2, 1), (MANY - 1, 2)])
def test_a_step_to_the_minimum_of_a_quadratic_is_the_last(m, steps, steps_taken):
    """Without a row that changes sides nothing is left to gain; of many coefficients the curvature may be a kept one."""
    rng = np.random.default_rng(0)
    K, values, weights, R = rng.random((2 * MANY, m)), rng.normal(size=(2 * MANY, 1)), np.ones(2 * MANY), np.eye(m + 1)
    squares = IntervalSquares(MarginTargets(values, values), weights)
    best = squares.fit(handle(K), R, EXACT)
    steps_taken.clear()
    start = best.theta.copy()
    start[0] += np.sqrt(1e-3 * best.loss / (2 * MANY))  # a thousandth of the loss to gain
    near = squares.fit(handle(K), R, NewtonSettings(), start=start)
    assert len(steps_taken) == steps
    assert near.loss == pytest.approx(best.loss, rel=1e-9)


@pytest.mark.parametrize("over", [0, 1, 9])
def test_outputs_are_fitted_in_parts_that_are_as_even_as_can_be(over, monkeypatch):
    parts, make = [], newton._Run.__init__

    def watched(self, problem, some, *more):
        parts.append(some)
        make(self, problem, some, *more)

    monkeypatch.setattr(newton._Run, "__init__", watched)
    most = RunningCurvatures.at_once
    K, margin_targets, weights, R = many_outputs(np.random.default_rng(0), 20, 2, 2 * most + over)
    curvatures = RunningCurvatures(handle(K), 2 * most + over)
    IntervalSquares(margin_targets, weights).fit(handle(K), R, NewtonSettings(), curvatures=curvatures)
    sizes = [some.stop - some.start for some in parts]
    assert sum(sizes) == 2 * most + over
    assert len(sizes) == -(-sum(sizes) // most)
    assert sizes[0] == max(sizes) == -(-sum(sizes) // len(sizes))


def test_a_fit_is_restored_in_its_order_of_memory():
    found = fitted(*problem(1))
    for outputs in (np.ascontiguousarray(found.outputs), np.asfortranarray(found.outputs)):
        fit = newton.Fitted(found.theta, outputs, found.loss)
        again = unpack(newton.Fitted, pack(fit), n=80, q=2)
        assert np.isfortran(again.outputs) == np.isfortran(outputs)
        np.testing.assert_array_equal(again.outputs, outputs)


def test_the_ridge_grows_with_weights_and_squared_kernel_values():
    K, _, _, weights = problem(1)
    expected = RIDGE * weights.sum() * 9 * np.square(K).max() * np.eye(7)
    np.testing.assert_allclose(tie_ridge(handle(3 * K), weights), expected, rtol=1e-6)


def test_equal_points_share_a_regulariser_without_full_rank():
    K, targets, margin_targets, weights, _ = squared_problem(2)
    twice, norm = np.column_stack([K[:, :3], K[:, :3]]), np.diag([0.0, 1, 1, 1])
    pairs = np.vstack([np.eye(4), np.eye(4)[1:]])
    once = fitted(K[:, :3], targets, margin_targets, weights, norm, EXACT)
    both = fitted(twice, targets, margin_targets, weights, pairs @ norm @ pairs.T, EXACT)
    assert both.loss == pytest.approx(once.loss, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_no_other_step_on_a_line_is_better(seed, start):
    rng = np.random.default_rng(seed)
    low, change = rng.normal(size=50), rng.normal(size=50)
    high = low + rng.exponential(size=50)
    low[:10], high[5:20] = -np.inf, np.inf
    linear, quadratic = rng.normal(), rng.exponential()
    outputs, root = rng.normal(size=50), 0.5 + rng.random(50)

    def value(t):
        outside = np.maximum(0, low - t * change) + np.maximum(0, t * change - high)
        return quadratic * t**2 + 2 * linear * t + np.square(outside).sum()

    best = minimize_scalar(value, tol=1e-12)
    line = Line(low / root + outputs, high / root + outputs, outputs, change / root, root**2, linear, quadratic)
    t = line.minimum(start)
    assert line.gain(t) == pytest.approx(value(0.0) - value(t))
    assert value(t) <= best.fun + 1e-10 * abs(best.fun)
    assert t == pytest.approx(best.x, abs=1e-5)


def test_a_line_that_changes_nothing_keeps_its_start():
    nothing = np.zeros(3)
    assert Line(np.ones(3), np.full(3, np.inf), nothing, nothing, np.ones(3), 0.0, 0.0).minimum(1.0) == 1.0


@pytest.mark.parametrize("seed", range(8))
def test_a_line_search_ends_at_the_least_value(seed):
    rng = np.random.default_rng(seed)
    low, change = rng.normal(size=(2, 30))
    high = low + np.where(rng.random(30) < 0.5, np.inf, rng.random(30))
    line = Line(low, high, np.zeros(30), change, np.ones(30), rng.normal(), rng.uniform(0.1, 2.0))

    def value(t):
        distance = np.clip(t * change, low, high) - t * change
        return line.quadratic * t**2 + 2 * line.linear * t + distance @ distance

    best = minimize_scalar(value, tol=1e-12)
    for start in (0.0, 1.0, -50.0):
        t = line.minimum(start)
        assert t == pytest.approx(best.x, abs=1e-6)
        assert value(t) <= best.fun + 1e-12 * abs(best.fun)
        assert line.gain(t) == pytest.approx(value(0.0) - value(t))


def test_threads_over_outputs_change_nothing(threads):
    problem, found = squared_problem(3, n=newton.WORTH_THREADS // 20), []
    for count in (1, 3):
        threads(count)
        found.append(fitted(*problem).theta)
    np.testing.assert_array_equal(*found)


def test_intervals_of_one_point_are_least_squares_in_one_step():
    K, _, _, weights = problem(1)
    values = np.random.default_rng(0).normal(size=(80, 2))
    R = 0.1 * np.eye(7)
    found = IntervalSquares(MarginTargets(values, values), weights).fit(handle(K), R, NewtonSettings(steps=1))
    A = np.column_stack([np.ones(80), K])
    np.testing.assert_allclose(found.theta, np.linalg.solve(A.T * weights @ A + R, A.T * weights @ values), rtol=1e-6)


def many_outputs(rng, n, m, q):
    """Kernel values, margin targets of labels, weights and a regulariser."""
    K = rng.uniform(size=(n, m))
    margin_targets = MarginTargets.beyond(rng.choice([-1.0, 1.0], size=(n, q)), 1.0)
    return K, margin_targets, rng.uniform(0.5, 2.0, n), 0.1 * np.eye(m + 1)


@pytest.mark.parametrize("q", [17, 33])
def test_outputs_that_are_fitted_side_by_side_are_fitted_as_if_alone(q):
    K, margin_targets, weights, R = many_outputs(np.random.default_rng(0), 60, 5, q)
    together = IntervalSquares(margin_targets, weights).fit(handle(K), R, NewtonSettings(precision=1e-12))
    for c in range(q):
        one = MarginTargets(margin_targets.low[:, [c]], margin_targets.high[:, [c]])
        alone = IntervalSquares(one, weights).fit(handle(K), R, NewtonSettings(precision=1e-12))
        np.testing.assert_allclose(together.theta[:, [c]], alone.theta, atol=1e-8)
        np.testing.assert_allclose(together.outputs[:, [c]], alone.outputs, atol=1e-8)


def test_steps_with_kept_factors_end_at_the_same_minimum():
    rng = np.random.default_rng(1)
    K, margin_targets, weights, R = many_outputs(rng, 400, MANY, 3)
    problem, factors, settings = IntervalSquares(margin_targets, weights), KeptFactors(), NewtonSettings(precision=1e-10)
    first = problem.fit(handle(K), R, settings, factors=factors)
    assert set(factors.factors) == {0, 1, 2}
    moved = handle(K + 0.01 * rng.normal(size=K.shape))
    after = problem.fit(moved, R, settings, start=first.theta, factors=factors)
    plain = problem.fit(moved, R, settings, start=first.theta)
    assert after.loss == pytest.approx(plain.loss, rel=1e-6)


def test_few_coefficients_keep_no_factor():
    K, margin_targets, weights, R = many_outputs(np.random.default_rng(2), 50, 4, 2)
    factors = KeptFactors()
    IntervalSquares(margin_targets, weights).fit(handle(K), R, NewtonSettings(), factors=factors)
    assert not factors.factors


def test_lines_of_several_outputs_are_moved_to_their_least_values():
    rng = np.random.default_rng(3)
    low, high = np.full((3, 40), -np.inf), rng.normal(size=(3, 40))
    outputs, change, weights = rng.normal(size=(3, 40)), rng.normal(size=(2, 40)), rng.uniform(0.5, 2.0, 40)
    linear, quadratic, going = rng.normal(size=2), rng.uniform(0.1, 2.0, 2), np.array([2, 0])
    residual = np.clip(outputs, low, high) - outputs
    before, moved, bent = residual.copy(), outputs.copy(), residual.copy()
    lengths, sums, switched = np.empty(2), np.empty(2), np.empty(2, np.intp)
    core.line_moves(low, high, weights, change, going, linear, quadratic, 1e-9, 30, moved, bent, lengths, sums, switched)
    np.testing.assert_array_equal(moved[1], outputs[1])
    for k, c in enumerate(going):
        line = Line(low[c], high[c], outputs[c], change[k], weights, linear[k], quadratic[k])
        assert lengths[k] == pytest.approx(line.minimum(1.0))
        np.testing.assert_allclose(moved[c], outputs[c] + lengths[k] * change[k])
        np.testing.assert_allclose(bent[c], np.clip(moved[c], low[c], high[c]) - moved[c])
        assert sums[k] == pytest.approx(weights @ np.square(bent[c]))
        assert switched[k] == np.count_nonzero((bent[c] != 0) != (before[c] != 0))


@pytest.mark.parametrize("wrong", ["an output that is not there", "a change too many"])
def test_lines_that_do_not_fit_are_refused(wrong):
    rows, outputs = np.zeros((2, 5)), np.zeros((2, 5))
    going = np.array([2 if wrong.startswith("an output") else 1])
    change = np.zeros((1 if wrong.startswith("an output") else 2, 5))
    one = np.ones(1)
    with pytest.raises(ValueError, match="2"):
        core.line_moves(
            rows, rows, np.ones(5), change, going, one, one, 0.1, 9, outputs, outputs, one, one, np.zeros(1, np.intp)
        )
