"""The state of an SMO run: its rules one by one, on rows whose kernel matrix is given."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pytest

from slimsvm._core import core
from slimsvm.limits import Deadline
from slimsvm.model import Status
from slimsvm.run import Checkpoint, Run
from slimsvm.solvers import smo
from slimsvm.solvers.smo import SmoState
from slimsvm.states import StateError


@dataclass(frozen=True)
class Settings:
    tol: float = 1e-3
    working_set: int = 8


class MatrixRows:
    """Rows with a given kernel matrix: the part of `Rows` that a run uses."""

    worth_caching, worth_shrinking, keeps_vectors, working_set, spent = False, True, False, 8, 0

    def __init__(self, K, dtype=np.float64):
        self.K, self.n, self.dtype = K, len(K), np.dtype(dtype)

    def buffer(self, size):
        self.buffers = [*getattr(self, "buffers", []), size]
        return np.empty(size, self.dtype)

    def block(self, index, out):
        assert index.size**2 <= out.size
        return self.K[np.ix_(index, index)].astype(self.dtype)

    def product_of(self, index, coef, *, keep=None):  # noqa: ARG002
        return self.K[:, index] @ coef

    def subset(self, rows):
        return MatrixRows(self.K[np.ix_(rows, rows)], self.dtype)


def problem(n=40, seed=0, dtype=np.float64):
    """Rows, labels and caps of a small problem."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    return MatrixRows(K, dtype), y, rng.uniform(0.5, 2.0, n)


def state(n=40, seed=0, settings=None, dtype=np.float64, kind=SmoState, **more):
    rows, y, cap = problem(n, seed, dtype)
    return kind(rows, y, cap, settings or Settings(), **more)


class Recorded(SmoState):
    """A run that notes how its pair steps are called and takes none."""

    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        self.calls = []

    def pair_steps(self, block, y, cap, alpha, v, goal, limit):  # noqa: ARG002
        self.calls.append((block.dtype, y.dtype, goal, limit))
        if len(self.calls) > 200:
            raise AssertionError("a run without progress does not end")
        return 0, np.inf


# What a state says of its coefficients.


def shifted(seed=0, **more):
    """A regression-like problem: other linear terms, and boxes that are moved."""
    rng = np.random.default_rng(seed + 9)
    return state(seed=seed, linear=rng.normal(size=40), shift=rng.uniform(0.0, 0.5, 40), **more)


@pytest.mark.parametrize("make", [state, shifted], ids=["plain", "shifted"])
def test_a_run_starts_at_coefficients_of_0(make):
    run = make()
    assert not run.signed.any()
    assert run.objective() == 0
    assert run.steps == 0


@pytest.mark.parametrize("working_set", [8, 40])
def test_a_shifted_problem_ends_at_its_own_optimum(working_set):
    run = shifted(settings=Settings(1e-6, working_set))
    run.solve(np.inf)
    c, K = run.signed, run.rows.K
    assert run.status is Status.CONVERGED
    assert abs(c.sum()) < 1e-9
    assert (c * run.y >= -run.shift - 1e-12).all()
    assert (c * run.y <= run.cap - run.shift + 1e-12).all()
    np.testing.assert_allclose(run.responses.values.ravel(), K @ c, atol=1e-8)
    assert run.objective() == pytest.approx(run.linear @ c - 0.5 * c @ K @ c, rel=1e-7)
    low, high = np.where(run.y > 0, -run.shift, run.shift - run.cap), np.where(run.y > 0, run.cap - run.shift, run.shift)
    v = run.linear - K @ c
    assert v[c < high - 1e-9].max() - v[c > low + 1e-9].min() <= 1e-5


def test_bounds_are_of_rows_that_can_move():
    run = state(4)
    run.y, run.cap = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
    run.linear, run.alpha = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 0.0, 1.0])
    grow, shrink = run.bounds(run.v)
    assert grow.tolist() == [1.0, -np.inf, -np.inf, 4.0]
    assert shrink.tolist() == [np.inf, 2.0, 3.0, np.inf]


@pytest.mark.parametrize(
    ("alpha", "bias"),
    [([0.5, 1.0, 0.25, 0.0], 2.0), ([0.0, 1.0, 0.0, 1.0], 3.0), ([0.0, 0.0, 1.0, 1.0], 4.0), ([1.0, 1.0, 0.0, 0.0], 1.0)],
    ids=["the free rows", "between the bounds", "grow only", "shrink only"],
)
def test_the_bias_is_the_mean_of_free_rows_or_between_the_bounds(alpha, bias):
    run = state(4)
    run.y, run.cap, run.alpha = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), np.array(alpha)
    run.linear = np.array([1.0, 2.0, 3.0, 4.0])
    assert run.bias() == bias


def test_the_bias_is_a_mean_and_not_the_middle_where_rows_are_free():
    run = state(4)
    run.y, run.cap, run.alpha = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), np.full(4, 0.5)
    run.linear = np.array([1.0, 1.0, 1.0, 3.0])
    assert run.bias() == 1.5


def test_the_bias_without_any_row_that_can_move_is_0():
    run = state(4)
    run.cap = np.zeros(4)
    assert run.bias() == 0.0


# Beginning from other coefficients.


@pytest.mark.parametrize("make", [state, shifted], ids=["plain", "shifted"])
def test_a_start_that_fits_is_taken_as_it_is(make):
    run = make()
    other = make(settings=Settings(1e-6, 40))
    other.solve(np.inf)
    run.begin_from(other.signed)
    np.testing.assert_allclose(run.signed, other.signed, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.responses.values.ravel(), run.rows.K @ run.signed, atol=1e-12)


@pytest.mark.parametrize(
    ("start", "signed"),
    [
        ([0.5, 0.5, -0.25, -0.25], [0.25, 0.25, -0.25, -0.25]),
        ([0.25, 0.0, -0.5, -0.5], [0.25, 0.0, -0.125, -0.125]),
        ([9.0, 0.5, -0.5, -9.0], [1.0, 0.5, -0.5, -1.0]),
        ([-1.0, 0.5, 1.0, -0.5], [0.0, 0.5, 0.0, -0.5]),
        ([0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
    ],
    ids=["more on the positive side", "more on the negative side", "beyond the box", "of the wrong sign", "one side alone"],
)
def test_a_start_is_moved_into_the_box_and_its_larger_side_scaled_down(start, signed):
    run = state(4)
    run.y, run.cap = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
    run.begin_from(np.array(start))
    assert run.signed.tolist() == signed
    np.testing.assert_allclose(run.responses.values.ravel(), run.rows.K @ signed, atol=1e-15)


def test_a_difference_by_rounding_moves_no_row_off_its_bound():
    run = state(4)
    run.y, run.cap = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, 1.0, 1.0, 1.0 + 1e-10])
    run.begin_from(np.array([1.0, 1.0, -1.0, -1.0 - 1e-10]))
    assert run.alpha.tolist() == run.cap.tolist()


def test_a_start_moves_with_the_box():
    run = state(4, shift=np.array([0.5, 0.0, 0.25, 0.0]))
    run.y, run.cap = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
    run.begin_from(np.array([9.0, -9.0, -9.0, 0.25]))  # boxes of y c: [-.5, .5], [0, 1], [-.25, .75], [0, 1]
    np.testing.assert_allclose(run.signed, [0.5, 0.0, -0.5, 0.0])
    run.begin_from(np.array([-9.0, 0.5, 0.25, 0.0]))
    np.testing.assert_allclose(run.signed, [-0.5, 1 / 3, 1 / 6, 0.0])


# When a run ends.


def test_a_gap_of_the_tolerance_is_accepted():
    run = state(settings=Settings(tol=2.0))  # all coefficients 0: v = y, so the gap is 2
    run.solve(np.inf)
    assert (run.steps, run.gap, run.status) == (0, 2.0, Status.CONVERGED)


def test_a_run_without_progress_stalls_after_some_rounds():
    run = state(kind=Recorded)
    run.shrinks = False
    run.begin_from(0.1 * run.y)
    assert run.objective() > 0.1
    run.solve(np.inf)
    assert run.status is Status.STALLED
    assert len(run.calls) == smo.PATIENCE


@pytest.mark.parametrize("shrinks", [True, False])
@pytest.mark.parametrize("limit", [1, 7, 23])
def test_a_limit_of_steps_is_kept(limit, shrinks):
    run = state(200, settings=Settings(1e-9, 4))
    run.shrinks = shrinks
    run.solve(limit)
    assert run.steps == limit
    assert run.status is Status.MAX_ITER


def test_the_number_of_steps_is_that_of_all_rounds():
    class Counted(SmoState):
        taken = 0

        def pair_steps(self, *given):
            steps, gap = super().pair_steps(*given)
            Counted.taken += steps
            return steps, gap

        def part(self, rows, run):
            whole = super().part(rows, run)
            part = Counted(whole.rows, whole.y, whole.cap, whole.settings, linear=whole.linear, shift=whole.shift, run=run)
            part.shrinks = False
            return part

    run = state(120, settings=Settings(1e-4, 8), kind=Counted)
    run.solve(np.inf)
    assert run.steps == Counted.taken > 0
    np.testing.assert_allclose(run.responses.values.ravel(), run.rows.K @ run.signed, atol=1e-9)


# Which rows a round works on.


def bounds_of(n, active):
    """Bounds with so many rows that may still move; the others are at bounds where they stay."""
    grow, shrink = np.full(n, -np.inf), np.full(n, 2.0)
    grow[:active], shrink[:active] = 1.0, 0.0
    grow[-1], shrink[-1] = -1.0, np.inf
    return grow, shrink


@pytest.mark.parametrize(("active", "few"), [(15, True), (16, False)])
def test_rounds_of_active_rows_are_for_less_than_half_of_the_rows(active, few):
    run = state(32)
    found = run.active(*bounds_of(32, active))
    assert (found is not None) == few
    if few:
        assert found.tolist() == list(range(active))


def test_rows_that_tie_with_the_other_bound_stay_active():
    run = state(32)
    grow, shrink = bounds_of(32, 4)
    shrink[5] = 1.0  # as high as the largest of the other bound
    grow[-1] = 0.0
    assert run.active(grow, shrink).tolist() == [0, 1, 2, 3, 5, 31]


def test_active_rows_are_looked_for_where_that_pays():
    assert state(31).active(*bounds_of(31, 4)) is None  # fewer than four working sets
    assert state(39).active(*bounds_of(39, 4)) is not None
    kept = state(32)
    kept.rows.worth_shrinking = False
    assert kept.active(*bounds_of(32, 4)) is None
    never = state(32)
    never.shrinks = False
    assert never.active(*bounds_of(32, 4)) is None


@pytest.mark.parametrize(("n", "size"), [(1, 8), (16, 8), (17, 4), (40, 5), (63, 7), (64, 8), (1000, 8)])
def test_a_run_without_a_working_set_takes_what_suits_the_rows(n, size):
    run = SmoState(MatrixRows(np.eye(n)), np.ones(n), np.ones(n), Settings(1e-6, None))
    assert run.rows.working_set == 8
    assert run.size == size


def test_the_first_working_set_is_the_worst_half_of_each_bound():
    run = state(40)
    grow, shrink = np.arange(40.0), np.arange(40.0)
    run.choose(grow, shrink)
    assert sorted(run.working) == [0, 1, 2, 3, 36, 37, 38, 39]
    np.testing.assert_array_equal(run.block, run.rows.K[np.ix_(run.index, run.index)])


def test_later_working_sets_keep_the_most_recent_rows():
    run = state(40)
    run.working = np.array([20, 21, 39, 22, 23, 24, 25, 26])
    run.choose(np.arange(40.0), np.arange(40.0))
    assert sorted(run.working[:4]) == [0, 1, 38, 39]
    assert run.working[4:].tolist() == [20, 21, 22, 23]


@pytest.mark.parametrize(("n", "everything"), [(8, True), (9, False)])
def test_a_block_of_all_rows_is_made_where_it_fits(n, everything):
    run = state(n)
    run.choose(np.arange(float(n)), np.arange(float(n)))
    assert (run.index.tolist() == list(range(n))) == everything


# How a block is solved.


@pytest.mark.parametrize(
    ("n", "tol", "real"),
    [(8, 1e-3, np.float64), (9, 1e-3, np.float32), (9, 1e-4, np.float32), (9, 9e-5, np.float64)],
    ids=["one small block", "a part", "a part at the limit", "a part at high precision"],
)
def test_pair_steps_are_in_float64_for_small_blocks_and_tolerances(n, tol, real):
    run = state(n, settings=Settings(tol), dtype=np.float32, kind=Recorded)
    run.gap = 2.0
    run.choose(*run.bounds(run.v))
    run.step(np.inf, run.v)
    assert run.calls[0][:2] == (real, real)


def test_one_block_of_many_rows_has_the_precision_of_the_rows():
    n = smo.SMALL_BLOCK + 1
    for size, real in ((n, np.float32), (n - 1, np.float64)):
        run = Recorded(MatrixRows(np.eye(size), np.float32), np.ones(size), np.ones(size), Settings(working_set=n))
        run.by_rows = False
        run.choose(*run.bounds(run.v))
        run.step(np.inf, run.v)
        assert run.calls[0][0] == real


@pytest.mark.parametrize(
    ("n", "gap", "goal"),
    [(8, 2.0, 0.005), (40, 2.0, 0.2), (40, 0.02, 0.005)],
    ids=["all rows", "far from the end", "near the end"],
)
def test_a_block_is_solved_to_a_tenth_of_the_gap_or_half_the_tolerance(n, gap, goal):
    run = state(n, settings=Settings(tol=0.01), kind=Recorded)
    run.gap, run.steps = gap, 5
    run.choose(*run.bounds(run.v))
    run.step(25, run.v)
    assert run.calls[0][2:] == (pytest.approx(goal), 20)
    run.step(1e9, run.v)
    assert run.calls[1][3] == smo.STEPS_A_ROUND


@pytest.mark.parametrize(("reached", "calls"), [(0.0005, 2), (0.0006, 1)])
def test_a_small_problem_is_solved_to_the_limit_of_rounding_once_its_goal_is_met(reached, calls):
    class Reaching(Recorded):
        def pair_steps(self, *given):
            super().pair_steps(*given)
            return 3, reached

    run = state(8, kind=Reaching)
    run.choose(*run.bounds(run.v))
    run.step(np.inf, run.v)
    assert len(run.calls) == calls
    assert run.steps == 3
    if calls == 2:
        assert run.calls[1][2] == smo.EXACT


def test_a_part_of_a_problem_is_solved_more_precisely_and_without_the_steps_taken(monkeypatch):
    run = state(40)
    parts = []
    monkeypatch.setattr(SmoState, "solve", lambda part, limit: parts.append((part, limit)))
    run.steps = 4
    run.solve_active(np.arange(10), 100)
    part, limit = parts[0]
    assert (part.tol, limit) == (pytest.approx(run.tol / 3), 96)


# Ends without a limit, and without progress.


class Taking(Recorded):
    """A run that takes all steps that it may, to no effect."""

    def pair_steps(self, *given):
        super().pair_steps(*given)
        return given[-1], np.inf


@pytest.mark.parametrize(("in_all", "a_row", "taken", "most"), [(50, 1, 0, 50), (10, 2, 0, 80), (50, 1, 7, 57)])
def test_a_run_without_a_limit_ends_after_so_many_steps_of_its_own(in_all, a_row, taken, most):
    run = state(40, kind=Taking)
    run.shrinks, run.steps, run.most_steps = False, taken, (in_all, a_row)
    run.solve(np.inf)
    assert (run.steps, run.status) == (most, Status.MAX_ITER)


def test_a_limit_of_the_callers_own_may_be_larger_than_the_default():
    short, long = state(), state()
    short.most_steps = long.most_steps = (5, 0)
    short.solve(np.inf)
    long.solve(10**6)
    assert (short.steps, short.status) == (5, Status.MAX_ITER)
    assert long.steps > 5
    assert long.status is Status.CONVERGED


def test_a_saved_state_asks_for_no_more_steps_than_the_run():
    checkpoint, run = Kept(), many_at_bounds()
    run.run = Run(checkpoint=checkpoint)
    run.solve(np.inf)
    again = many_at_bounds()
    forged = deepcopy(checkpoint.states[1])
    forged["rounds"]["limit"] = 1e30
    again.restore(forged)
    again.solve(again.steps + 1)
    assert again.status is Status.MAX_ITER


def test_a_run_that_stays_at_an_objective_of_0_stalls():
    run = state(kind=Recorded)
    run.shrinks = False
    run.solve(np.inf)
    assert run.status is Status.STALLED
    assert len(run.calls) == smo.PATIENCE


def test_rounds_with_a_higher_objective_start_the_count_anew():
    class Slow(Recorded):
        """A run that moves a pair of rows in its third round."""

        def pair_steps(self, block, y, cap, alpha, v, goal, limit):
            super().pair_steps(block, y, cap, alpha, v, goal, limit)
            if len(self.calls) == 3:
                alpha[np.flatnonzero(y > 0)[0]] = alpha[np.flatnonzero(y < 0)[0]] = 0.01
            return 0, np.inf

    run = state(8, kind=Slow)
    run.solve(np.inf)
    assert run.objective() > 0
    assert len(run.calls) == 3 + smo.PATIENCE


# All rows in one working set, their kernel values on demand.


class OnDemandRows(MatrixRows):
    """Rows that evaluate kernel rows on demand."""

    asked = 0

    def on_demand(self):
        self.asked += 1
        return WholeMatrix(self.K)


class WholeMatrix:
    """Notes how its pair steps are called, and moves one pair."""

    def __init__(self, K):
        self.K, self.calls = K, []

    def pair_steps(self, y, cap, alpha, v, goal, limit):
        self.calls.append((y.copy(), cap.copy(), alpha.copy(), v.copy(), goal, limit))
        alpha[np.flatnonzero(y > 0)[0]] += 0.25
        alpha[np.flatnonzero(y < 0)[0]] += 0.25
        return 3, 0.0

    def product(self, coef):
        return self.K @ coef


def whole(n, working_set, tol=1e-3):
    X = np.random.default_rng(0).normal(size=(n, 2))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    run = SmoState(OnDemandRows(K), np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n), Settings(tol, working_set))
    run.small_block = 12
    return run


@pytest.mark.parametrize(
    ("n", "size", "tol", "by_rows", "asked"),
    [
        (13, 7, 1e-3, True, 1),
        (14, 7, 1e-4, True, 1),
        (15, 7, 1e-3, True, 0),
        (12, 7, 1e-3, True, 0),
        (14, 7, 9e-5, True, 0),
        (14, 7, 1e-3, False, 0),
    ],
    ids=["above a small block", "two working sets", "more rows", "a small block", "a small tolerance", "not by rows"],
)
def test_kernel_rows_come_on_demand_for_problems_of_up_to_two_working_sets(n, size, tol, by_rows, asked):
    run = whole(n, size, tol)
    run.by_rows = by_rows
    run.choose(*run.bounds(run.v))
    assert run.rows.asked == asked
    assert (run.on_demand is not None) == bool(asked)
    assert (run.index.tolist() == list(range(n))) == bool(asked)
    assert (run.block.size == 0) == bool(asked)
    run.choose(*run.bounds(run.v))
    assert run.rows.asked == asked  # once


def test_a_round_of_all_rows_adds_its_change_to_the_responses():
    run = whole(14, 7)
    run.begin_from(0.125 * run.y)
    before = run.alpha.copy(), run.v.copy()
    run.choose(*run.bounds(run.v))
    run.steps = 5
    run.step_whole(run.on_demand, 25, run.v)
    (y, cap, alpha, v, goal, limit) = run.on_demand.calls[0]
    np.testing.assert_array_equal(np.stack([y, cap, alpha, v]), np.stack([run.y, run.cap, *before]))
    assert (goal, limit, run.steps) == (0.5 * run.tol, 20, 8)
    assert run.alpha[:3].tolist() == [0.375, 0.375, 0.125]
    np.testing.assert_allclose(run.responses.values.ravel(), run.rows.K @ run.signed, atol=1e-12)
    run.step_whole(run.on_demand, np.inf, run.v)
    assert run.on_demand.calls[1][5] == smo.STEPS_A_ROUND


def test_a_run_takes_rounds_of_all_rows_where_kernel_rows_come_on_demand():
    run = whole(14, 7)
    run.solve(3)
    assert (run.steps, len(run.on_demand.calls), run.status) == (3, 1, Status.MAX_ITER)


def test_rounds_of_active_rows_and_of_working_sets_take_turns():
    class Turns(SmoState):
        """A run that notes its rounds; some rows are always active."""

        def active(self, *_):
            return np.arange(5)

        def solve_active(self, *_):
            self.note("active rows")

        def step(self, *_):
            self.note("working set")

        def note(self, words):
            self.turns = [*getattr(self, "turns", []), words]
            self.steps += 1

    run = state(40, kind=Turns)
    run.solve(4)
    assert run.turns == ["active rows", "working set"] * 2


# States that a later run goes on from.


class Kept(Checkpoint):
    """A checkpoint that has every state."""

    def __init__(self):
        self.states, self.at_once = [], []

    def offer(self, state):
        self.states.append(deepcopy(state()))

    def keep(self, state, *, now=False):
        self.at_once.append(now)
        self.states.append(deepcopy(state))


def many_at_bounds(n=120, seed=0):
    """A problem with many rows at their bounds, most of which settle early."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    return SmoState(MatrixRows(K), y, np.full(n, 0.5), Settings(1e-4, 8))


def test_a_run_goes_on_from_any_of_its_states_to_the_same_end():
    whole, checkpoint = many_at_bounds(), Kept()
    whole.run = Run(checkpoint=checkpoint)
    whole.solve(np.inf)
    inside = [number for number, kept in enumerate(checkpoint.states) if "inner" in kept["rounds"]]
    assert inside, "no problem of active rows"
    for number in [0, 1, inside[0], inside[-1], len(checkpoint.states) - 1]:
        again = many_at_bounds()
        again.restore(deepcopy(checkpoint.states[number]))
        assert again.rows.spent == checkpoint.states[number]["spent"]
        again.solve(np.inf)
        np.testing.assert_array_equal(again.alpha, whole.alpha)
        np.testing.assert_array_equal(again.responses.values, whole.responses.values)
        assert (again.steps, again.status) == (whole.steps, whole.status)


@pytest.mark.parametrize("value", [-1e-9, 0.5 + 1e-9])
def test_a_state_outside_of_the_box_is_refused(value):
    run, checkpoint = many_at_bounds(), Kept()
    run.run = Run(checkpoint=checkpoint)
    run.solve(np.inf)
    last = checkpoint.states[-1]
    assert {0.0, 0.5} <= set(last["alpha"])  # at the bounds is within them
    many_at_bounds().restore(deepcopy(last))
    last["alpha"][7] = value
    with pytest.raises(StateError, match="outside of their bounds"):
        many_at_bounds().restore(last)


def test_a_deadline_ends_a_run_with_a_state_that_is_kept_at_once():
    run, checkpoint = many_at_bounds(), Kept()
    run.run = Run(checkpoint=checkpoint, deadline=Deadline(1e-9))
    run.solve(np.inf)
    assert run.status is Status.TIME_LIMIT
    assert checkpoint.at_once == [True]


@pytest.mark.parametrize("seconds", [None, 1e-9])
def test_a_deadline_among_active_rows_is_that_of_the_run(seconds):
    run = many_at_bounds()
    run.run = Run(deadline=Deadline(seconds))
    run.gap = 99.0
    run.solve_active(np.arange(60), np.inf)
    ended = (Status.TIME_LIMIT, run.violation()) if seconds else (Status.CONVERGED, 99.0)
    assert (run.status, run.gap) == ended


def test_one_piece_of_memory_serves_all_blocks():
    run = many_at_bounds()
    run.shrinks = False
    run.solve(np.inf)
    assert run.rows.buffers == [64]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 1001])
def test_bounds_are_those_of_rows_that_can_move(n):
    rng = np.random.default_rng(n)
    y, cap, v = rng.choice([-1.0, 1.0], n), rng.random(n) + 0.5, rng.normal(size=n)
    alpha = np.clip(rng.normal(size=n), 0.0, cap)
    grow, shrink = np.empty(n), np.empty(n)
    core.bounds(alpha, cap, y, v, grow, shrink)
    rises, falls = alpha < cap, alpha > 0
    np.testing.assert_array_equal(grow, np.where(np.where(y > 0, rises, falls), v, -np.inf))
    np.testing.assert_array_equal(shrink, np.where(np.where(y > 0, falls, rises), v, np.inf))
