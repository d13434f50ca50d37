"""Models that move together through the rounding of their tables: gradients, rounding, projections and bytes."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from slimsvm import SlimSVC, SlimSVR
from slimsvm.goals.margin_targets import CrossEntropy, MarginTargets
from slimsvm.kernels import RBF
from slimsvm.model import Task
from slimsvm.reducers import Slim
from slimsvm.rounding import rounded, rounded_widths
from slimsvm.rows.homes import open_rows
from slimsvm.run import Checkpoint, Run
from slimsvm.slim.compact import Compact, best_within, layouts_within
from slimsvm.slim.joint import Joint, Layout, Numbers, Plan, Rows
from slimsvm.slim.starts import directions


def problem(rank, outputs, bits=0, n=80, d=5, device="cpu"):
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(n, d)), rng.integers(0, 3, n)
    targets = np.where(group[:, None] == np.arange(3), 1.0, -1.0)[:, :outputs]
    loss = CrossEntropy(targets) if outputs > 1 else MarginTargets.beyond(targets, 1.0)
    task = Task(open_rows(RBF(0.3), X, device=device), targets, rng.uniform(0.5, 2, n))
    joint = Joint(Rows(task, loss), 0.3, rng, bits=bits)
    return task, loss, joint, joint.start(Layout(6, rank), group)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("rank", [0, 2])
def test_the_gradient_is_that_of_the_expansion(rank, outputs):
    task, loss, joint, start = problem(rank, outputs)
    X, rng, batch = task.rows.given.rows(), np.random.default_rng(1), np.arange(50)
    found = start.like(joint.gradient(start, batch, rounding=False))

    def value(numbers):
        losses, _ = loss[batch].measured(joint.model(RBF(0.3), numbers, "float32")(X[batch]))
        return float(task.weights[batch] @ losses) / (task.weights.mean() * batch.size)

    for place, slope in enumerate(found.arrays):
        way, step = rng.normal(size=slope.shape), 1e-4
        sides = []
        for sign in (1, -1):
            arrays = [part.astype(np.float64) for part in start.arrays]
            arrays[place] += sign * step * way
            sides.append(value(Numbers(*arrays)))
        assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(float((slope * way).sum()), rel=0.02, abs=2e-3)


@pytest.mark.parametrize("device", ["array_api_strict", "torch:cpu"])
@pytest.mark.parametrize("bits", [0, 4])
def test_a_device_takes_the_steps_of_the_host(device, bits):
    pytest.importorskip(device.partition(":")[0])
    ends = []
    for where in ("cpu", device):
        _, _, joint, start = problem(2, 3, bits, device=where)
        ends.append(joint.descended(start, Plan(20), Run()))
    for one, other in zip(*(end.arrays for end in ends), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)


def test_strips_in_threads_give_the_same_sums():
    _, _, joint, start = problem(0, 3, n=20_000, d=40)
    joint.rows.share_out = lambda work, count: [work(number) for number in reversed(range(count))]
    batch = np.arange(20_000)
    shared = joint.gradient(start, batch, rounding=False)
    joint.rows.share_out = lambda work, count: [work(number) for number in range(count)]
    np.testing.assert_array_equal(shared, joint.gradient(start, batch, rounding=False))


class Kept(Checkpoint):
    """Saves the state of one step."""

    def __init__(self, at):
        self.at, self.state, self.count = at, None, 0

    def offer(self, state):
        self.count += 1
        if self.count == self.at:
            self.state = state()


def test_a_descent_goes_on_to_the_same_bits():
    whole, kept = problem(2, 3, bits=8), Kept(13)
    ended = whole[2].descended(whole[3], Plan(30), Run(checkpoint=kept))
    again = problem(2, 3, bits=8)
    resumed = again[2].descended(again[3], Plan(30), Run(), saved=kept.state)
    for one, other in zip(ended.arrays, resumed.arrays, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_model_holds_what_its_tables_hold(rank):
    _, _, joint, start = problem(rank, 3, bits=4)
    model = joint.model(RBF(0.3), joint.descended(start, Plan(30), Run()), "int4")
    placed = model.points * model.factors
    np.testing.assert_allclose(rounded(placed, 4), placed, rtol=1e-12)
    np.testing.assert_allclose(rounded(model.coef, 4), model.coef, rtol=1e-6)
    np.testing.assert_allclose(rounded_widths(model.widths), model.widths, rtol=1e-6)
    if rank:
        np.testing.assert_allclose(rounded(model.projection, 4), model.projection, atol=1e-6)


@pytest.mark.parametrize(("kind", "parts"), [("fixed", ""), ("scales", "map"), ("widths", "widths")])
def test_parts_that_are_not_learned_stay(kind, parts):
    task, loss, _, start = problem(0, 3)
    joint = Joint(Rows(task, loss), 0.3, np.random.default_rng(0), kind=kind)
    moved = joint.descended(replace(start, map=0 * start.map), Plan(10), Run())
    assert bool(moved.map.any()) == (parts == "map")
    assert bool(moved.widths.any()) == (parts == "widths")


def test_numbers_and_models_are_the_same():
    _, _, joint, start = problem(2, 3)
    again = joint.numbers(joint.model(RBF(0.3), start, "float32"))
    for one, other in zip(start.arrays, again.arrays, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_directions_separate_groups_beside_principal_axes():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(500, 4)) * [10.0, 1.0, 1.0, 1.0]
    groups = rng.integers(0, 2, 500)
    A[:, 3] += 4.0 * groups
    found = directions(A - A.mean(axis=0), groups, 2)
    assert np.abs(found[:, 0]).argmax() == 3
    assert np.abs(found[:, 1]).argmax() == 0


def test_a_projection_makes_points_short():
    X, y = load_digits(return_X_y=True)
    small = SlimSVC(24, trainer=None, reducer=Slim(metric="projection", rank=6, steps=100), random_state=0).fit(
        X[::2] / 16, y[::2]
    )
    assert small.support_vectors_.shape == (24, 6)
    assert small.model_.projection.shape == (64, 6)
    assert small.score(X[1::2] / 16, y[1::2]) > 0.85


def test_a_rank_above_the_features_is_refused():
    with pytest.raises(ValueError, match="rank=5 is more than the 3 features of the rows; give at most that many"):
        SlimSVR(2, trainer=None, reducer=Slim(metric="projection", rank=5)).fit(np.eye(3), np.arange(3.0))


def test_a_projection_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="rank must be a whole number of at least 1, or None, not 0"):
        Slim(rank=0)
    with pytest.raises(ValueError, match="metric='projection' is for the rbf kernel, not for poly; give metric='auto' or"):
        SlimSVC(2, kernel="poly", trainer=None, reducer=Slim(metric="projection")).fit(np.eye(4), [0, 1, 0, 1])


@dataclass
class Room:
    """A limit in bytes that counts numbers only."""

    bytes: int
    precisions: tuple = ("int8", "int4")

    def points(self, precision, most, *, rank, factors, widths):
        bits, d = {"int8": 8, "int4": 4}[precision], 16
        each = ((rank or d) + 4) * bits / 8 + widths
        return min(max(int((self.bytes - (d * rank * bits / 8 if rank else 2 * d * factors)) // each), 0), most)


def test_layouts_fill_a_limit_and_one_of_them_wins(make_task):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 16))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    task = make_task(RBF(0.1), X[:200], y[:200], holdout=(X[200:], y[200:] > 0))
    layouts = layouts_within(Room(160), task, None, 200)
    assert {layout.rank for layout in layouts} == {0, 2, 4, 6, 8}
    for layout in layouts:
        parts = {"rank": layout.rank, "factors": not layout.rank, "widths": True}
        assert layout.size == Room(160).points(layout.precision, 200, **parts)
    [(model, made)] = list(best_within(replace(task, run=task.run.limited(1.0)), Compact.of(task, None), layouts[:3]))
    assert made.precision in ("int8", "int4")
    assert model.size in {layout.size for layout in layouts}


def test_a_budget_in_bytes_finds_points_and_bits_and_is_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = X[:, 0] * X[:, 1] > 0
    small = SlimSVC(budget="1 KB", trainer=None, time_limit=3.0, random_state=0).fit(X, y)
    assert small.path_[-1].made.precision == small.model_.precision in ("int8", "int4")
    assert small.model_.size >= 8
    assert small.score(X, y) > 0.85
