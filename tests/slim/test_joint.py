"""Models that move together through the rounding of their tables: gradients, rounding, projections and bytes."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from slimsvm import SlimSVC, SlimSVR
from slimsvm.goals.demands import CrossEntropy, Demands
from slimsvm.kernels import RBF
from slimsvm.limits import Deadline
from slimsvm.reducers import Slim
from slimsvm.rounding import rounded, rounded_widths
from slimsvm.slim.compact import best_within, layouts_within
from slimsvm.slim.joint import Joint, Layout, Numbers, directions


def problem(rank, outputs, bits=0, n=80, d=5):
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(n, d)), rng.integers(0, 3, n)
    targets = np.where(group[:, None] == np.arange(3), 1.0, -1.0)[:, :outputs]
    loss = CrossEntropy(targets) if outputs > 1 else Demands.beyond(targets, 1.0)
    joint = Joint(X, loss, rng.uniform(0.5, 2, n), 0.3, bits, rng)
    return X, joint, joint.start(Layout(6, rank), group)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("rank", [0, 2])
def test_the_gradient_is_that_of_the_expansion(rank, outputs):
    X, joint, start = problem(rank, outputs)
    rng, batch = np.random.default_rng(1), np.arange(50)
    found = joint.gradient(start, batch, rounding=False)

    def value(numbers):
        losses, _ = joint.loss[batch].measured(joint.model(RBF(0.3), numbers, "float32")(X[batch]))
        return float(joint.weights[batch] @ losses) / (joint.scale * batch.size)

    for place, slope in enumerate(found):
        way, step = rng.normal(size=slope.shape), 1e-4
        sides = []
        for sign in (1, -1):
            arrays = [part.astype(np.float64) for part in start.arrays]
            arrays[place] += sign * step * way
            sides.append(value(Numbers(*arrays)))
        # the decay and the pull are small beside the loss
        assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(float((slope * way).sum()), rel=0.02, abs=2e-3)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_model_holds_what_its_tables_hold(rank):
    _, joint, start = problem(rank, 3, bits=4)
    model = joint.model(RBF(0.3), joint.descended(start, 30, Deadline(None)), "int4")
    placed = model.points * model.factors
    np.testing.assert_allclose(rounded(placed, 4), placed, rtol=1e-12)
    np.testing.assert_allclose(rounded(model.coef, 4), model.coef, rtol=1e-6)
    np.testing.assert_allclose(rounded_widths(model.widths), model.widths, rtol=1e-6)
    if rank:
        np.testing.assert_allclose(rounded(model.projection, 4), model.projection, atol=1e-6)


def test_numbers_and_models_are_the_same():
    _, joint, start = problem(2, 3)
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
    reducer = Slim(metric="projection", rank=6)
    small = SlimSVC(24, trainer=None, reducer=replace(reducer, time_limit=2.0), random_state=0).fit(X[::2] / 16, y[::2])
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
    [(model, made)] = list(best_within(replace(task, run=task.run.limited(1.0)), None, layouts[:3]))
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
