"""The decay of slim: chosen by random validation rows, and by blocks of neighbouring rows that a model has not seen."""

from dataclasses import replace

import numpy as np
import pytest

from slimsvm import SlimSVC
from slimsvm.goals import OneVsRest
from slimsvm.goals.values import Regression
from slimsvm.kernels import RBF
from slimsvm.limits import Deadline
from slimsvm.model import Holdout, Task
from slimsvm.rows.host import HostRows
from slimsvm.run import Run
from slimsvm.slim.method import Slim
from slimsvm.slim.point_search import Objective, PointSearch
from slimsvm.slim.validation import block_numbers


def periods(seed, count=90, rows=12):
    """Rows in the order of time. Those of a period are alike and have one label, a wrong one in a fifth of the periods."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, size=(count, 2))
    labels = np.where(rng.random(count) < 0.2, -1, 1) * np.sign(centres[:, 0])
    return np.repeat(centres, rows, axis=0) + 0.03 * rng.normal(size=(count * rows, 2)), np.repeat(labels, rows)


def test_rows_that_drift_do_not_mislead_the_choice():
    """Random rows know the wrong labels of their period, and ask for less decay; rows of later periods do not."""
    X, y = periods(0)
    shuffled = np.random.default_rng(0).permutation(y.size)
    later, truth = periods(1, 400)
    in_order = SlimSVC(40, trainer=None, C=0.01, gamma=2.0, random_state=0).fit(X, y)
    misled = SlimSVC(40, trainer=None, C=0.01, gamma=2.0, random_state=0).fit(X[shuffled], y[shuffled])
    assert in_order.path_[-1].settings == "target=label"
    assert misled.path_[-1].settings == "target=label, decay x 0.01, metric=both"
    assert misled.path_[-1].error < in_order.path_[-1].error
    assert in_order.score(later, truth) > misled.score(later, truth) + 0.05


def wavy(n=400, real=False):
    """A task whose labels a small decay suits, with as many random validation rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n, 3))
    values, goal = np.sin(2 * X[:, 0]), Regression() if real else OneVsRest(2)
    labels = values if real else (values > 0).astype(int)
    holdout = Holdout(HostRows(RBF(0.5), X[n:]), labels[n:], np.ones(n), goal)
    targets = values if real else np.sign(values)
    return Task(HostRows(RBF(0.5), X[:n]), targets[:n, None], np.ones(n), rng, holdout, goal=goal)


def grown(task, unit):
    search = PointSearch(task, Objective("label", None, None), unit)
    search.grow(8, 20, all_rows=False, last=False)
    return search


def slow_judgement(search, judge, power):
    """The judgement of the points of a search, with coefficients fitted from nothing under another decay."""
    other = PointSearch(search.task, search.objective.with_decay(power), search.unit)
    other.refine(search.model, 0)
    return judge.judge_shortfall(other.model)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("unit", [1e-4, 1.0, 100.0])
def test_decays_are_judged_as_by_a_slow_twin(real, unit):
    search = grown(wavy(real=real), unit)
    points, theta, judge = search.points.copy(), search.found.theta.copy(), search.task.holdout
    judged = search._judged_decays([judge])
    for power in (0, 2, -2, 1):
        [quick], slow = judged(power), slow_judgement(search, judge, power)
        assert quick.error == pytest.approx(slow.error, rel=1e-2)
    np.testing.assert_array_equal(search.points, points)
    np.testing.assert_array_equal(search.found.theta, theta)


def test_blocks_are_judged_by_a_model_without_them(monkeypatch):
    search, seen, judged_decays = grown(wavy(), 100.0), [], PointSearch._judged_decays

    def recorded(other, judges):
        seen.append((other, judges))
        return judged_decays(other, judges)

    monkeypatch.setattr(PointSearch, "_judged_decays", recorded)
    assert search._harmless_on_blocks(-1, search.task.holdout) == -1
    numbers = block_numbers(search.task.groups)
    [(other, (random, *blocks))] = seen
    assert random is search.task.holdout
    np.testing.assert_array_equal(other.task.rows.ids, np.flatnonzero(numbers < 0))
    assert other.points.shape == search.points.shape
    for number, block in enumerate(blocks):
        np.testing.assert_array_equal(block.labels, search.task.targets[numbers == number, 0] > 0)
        np.testing.assert_array_equal(block.rows.ids, np.flatnonzero(numbers == number))


@pytest.mark.parametrize(("harmless", "multiple"), [(-1, 0.1), (-2, 0.01), (0, 1.0)])
def test_a_decay_that_validation_rows_choose_is_used_as_far_as_it_does_no_harm(harmless, multiple, monkeypatch):
    search = grown(wavy(), 100.0)
    monkeypatch.setattr(PointSearch, "_harmless_on_blocks", lambda *_: harmless)
    search.choose_decay()
    assert search.objective.multiple == multiple
    again = PointSearch(search.task, search.objective, 100.0)
    again.refine(search.model, 0)
    assert search.found.loss == pytest.approx(again.found.loss, rel=1e-3)


@pytest.mark.parametrize(
    ("sizes", "tried"), [([1, 2, 4, 8], [4]), ([1, 2, 4], []), ([8], []), ([4, 8, 16, 40], [16]), ([4, 33, 40], [4])]
)
def test_decays_are_tried_at_one_size_below_the_largest(sizes, tried, monkeypatch):
    seen = []
    monkeypatch.setattr(PointSearch, "choose_decay", lambda search: seen.append(search.points.shape[0]))
    Slim(steps=2, metric="fixed").path(wavy(100), sizes)
    assert seen == tried


def test_classes_too_small_for_blocks_keep_their_decay():
    search = grown(wavy(20), 100.0)
    assert search._harmless_on_blocks(-1, search.task.holdout) == 0
    search.choose_decay()
    assert search.objective.multiple == 1


def test_no_decay_is_chosen_when_time_is_up():
    search = grown(wavy(), 100.0)
    search.run = Run(deadline=Deadline(1e-9))
    search.choose_decay()
    assert search.objective.multiple == 1


def test_nothing_is_tried_without_validation_rows():
    search = grown(replace(wavy(), holdout=None), 100.0)
    search.choose_decay()
    assert search.objective.multiple == 1
