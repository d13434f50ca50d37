from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from slimsvm import SlimSVC
from slimsvm.c_bytes import Shape
from slimsvm.goals import OneVsRest
from slimsvm.model import Status
from slimsvm.studio.tune.halving import MOST_ROWS, Clock, efforts, ranked
from slimsvm.studio.tune.space import COSTS, WIDTHS, Settings, Space, different_scalers, make_space
from slimsvm.studio.tune.trials import SMALL, Trial, TrialEffort, Trials, make_rows

EFFORT = TrialEffort(100, 10, 1, 4)


def rows_of(n, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return make_rows(rng.normal(size=(n, 2)), np.arange(n) % classes, np.ones(n), seed, real=False)


def shape_of(rows):
    return Shape.of("rbf", rows.X.shape[1], OneVsRest(rows.n_classes))


def trial(seconds):
    return Trial(Settings(1.0, 1.0, "none"), EFFORT, 0.1, 0.01, 4, 100, seconds, Status.BUDGET, "1 of 4")


# The space


def test_settings_are_within_their_ranges_and_start_with_each_scaling():
    space = Space({"none": 0.5, "standard": 2.0}, (None,))
    found = space.settings(50, seed=0)
    assert [each.scaling for each in found[:2]] == ["none", "standard"]
    assert all(COSTS[0] <= each.C <= COSTS[1] for each in found)
    assert all(WIDTHS[0] <= each.gamma / space.units[each.scaling] <= WIDTHS[1] for each in found)
    assert len(set(found)) == 50
    assert found[:20] == space.settings(20, seed=0)


def test_neighbours_differ_in_one_setting_and_stay_within_the_ranges():
    space = Space({"none": 1.0}, (None,))
    centre = Settings(1.0, 10.0, "none")
    assert all((near.gamma == centre.gamma) != (near.C == centre.C) for near in space.neighbours(centre))
    assert len(space.neighbours(centre)) == 4
    assert len(space.neighbours(Settings(WIDTHS[1], COSTS[0], "none"))) == 2


def test_the_linear_kernel_has_no_width():
    X = np.random.default_rng(0).normal(size=(30, 2))
    space = make_space("linear", X, None, {"none": None}, np.random.default_rng(0))
    assert len({each.gamma for each in space.settings(5, 0)}) == 1
    assert len(space.neighbours(space.settings(1, 0)[0])) == 2


def test_scalings_that_make_no_difference_are_left_out():
    X = np.random.default_rng(0).integers(0, 2, size=(200, 3)).astype(float)
    X[:, 2] = np.arange(200) < 10  # rarer, so that standard deviations differ
    assert set(different_scalers("rbf", X, sparse=False)) == {"none", "standard"}
    assert set(different_scalers("poly", X, sparse=False)) == {"none", "standard", "minmax", "robust"}


def test_the_unit_of_gamma_follows_the_units_of_the_rows():
    X = np.random.default_rng(0).normal(size=(100, 3))
    one, hundred = (
        make_space("rbf", rows, None, {"none": None}, np.random.default_rng(0)).units["none"] for rows in (X, 100 * X)
    )
    assert one == pytest.approx(1e4 * hundred)


# Folds


def test_validation_rows_are_not_training_rows():
    rows = rows_of(90)
    assert len(rows.folds) == 3
    for fold in rows.folds:
        assert not set(fold.train) & set(fold.validation)
    assert sorted(np.concatenate([fold.validation for fold in rows.folds])) == list(range(90))


def test_subsamples_have_every_class():
    y = np.r_[np.zeros(500), np.ones(4), np.full(3, 2)]
    rows = make_rows(np.zeros((507, 1)), y, np.ones(507), 0, real=False)
    for fold in rows.folds:
        assert set(y[fold.train[:3]]) == {0, 1, 2}


def test_a_class_of_one_row_is_no_error():
    y = np.r_[np.zeros(50), 1]
    assert make_rows(np.zeros((51, 1)), y, np.ones(51), 0, real=False).n_classes == 2


def test_values_have_folds_of_equal_size():
    rows = make_rows(np.zeros((30, 1)), np.linspace(0, 1, 30), np.ones(30), 0, real=True)
    assert [fold.validation.size for fold in rows.folds] == [10, 10, 10]
    assert rows.n_classes == 0


def test_many_rows_have_one_fold():
    assert len(rows_of(SMALL + 1).folds) == 1


# Stages and times


@pytest.mark.parametrize("n", [30, 2000, 5000, 100_000])
def test_stages_grow_up_to_the_budget(n):
    planned = efforts(rows_of(n), 200 if n > 1000 else 5)
    assert [each.rows for each in planned] == sorted(each.rows for each in planned)
    assert planned[-1].rows == min(rows_of(n).n_train, MOST_ROWS)
    assert planned[-1].size == (200 if n > 1000 else 5)
    assert len(set(planned)) == len(planned)


def test_the_clock_keeps_time_for_the_last_fit():
    clock = Clock(100.0)
    clock.add(trial(seconds=1.0))
    assert clock.seconds_for(EFFORT.work) == pytest.approx(1.0)
    assert clock.allows(50 * EFFORT.work, last_fit=40 * EFFORT.work, share=1.0)
    assert not clock.allows(70 * EFFORT.work, last_fit=40 * EFFORT.work, share=1.0)
    assert not clock.allows(50 * EFFORT.work, last_fit=40 * EFFORT.work, share=0.5)
    assert Clock(None).allows(1e300, 1e300, 0.1)


# Trials


def test_a_trial_that_starts_from_another_one_is_as_good():
    X, y = load_iris(return_X_y=True)
    rows = make_rows(X, y, np.ones(y.size), 0, real=False)
    trials = Trials(SlimSVC(), rows, {"none": None}, 0, shape_of(rows))
    effort = TrialEffort(100, 20, 3, 5)
    first = trials.run(Settings(0.5, 10.0, "none"), effort, "1", None)
    second = trials.run(Settings(0.6, 10.0, "none"), effort, "2", None, first.points)
    assert len(first.points) == 3
    assert first.size == second.size == 5
    assert second.error <= first.error + 0.02
    assert first.standard_error == pytest.approx(np.sqrt(first.error * (1 - first.error) / 150))


def test_a_metric_is_tried_next_to_good_settings_and_wins_no_tie():
    space = Space({"none": 1.0}, (None,), metrics=("fixed", "both"))
    guess = space.settings(1, 0)[0]
    assert guess.metric == "fixed"
    learned = next(near for near in space.neighbours(guess) if near.metric == "both")
    assert (learned.gamma, learned.C) == (guess.gamma, guess.C)
    best_first = ranked([replace(trial(1.0), settings=each) for each in (learned, guess)])
    assert [each.settings.metric for each in best_first] == ["fixed", "both"]


def test_a_trial_with_a_metric_counts_its_bytes():
    rows = rows_of(60, classes=2)
    trials = Trials(SlimSVC(), rows, {"none": None}, 0, shape_of(rows))
    fixed, learned = (
        trials.run(Settings(1.0, 1.0, "none", None, metric), TrialEffort(40, 2, 1, 3), "1 of 1", None)
        for metric in ("fixed", "both")
    )
    assert fixed.size == learned.size == 3
    assert learned.nbytes > fixed.nbytes + 4 * (rows.X.shape[1] + 3)  # and some code
