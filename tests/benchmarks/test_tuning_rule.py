"""The rule by which every contender of equal bytes is tuned."""

import numpy as np
import pytest

from benchmarks import tuning_rule
from benchmarks.tuning_rule import FINALISTS, FIRST, SECOND, Budget, Round, tune

CHOICES = {"a": (0, 1, 2), "b": (0, 1, 2), "c": (0, 1)}


def alike(loss):
    """The same loss on all validation rows."""
    return [np.full(10, float(loss))]


def test_settings_that_depend_on_each_other_are_found_one_at_a_time() -> None:
    rounds = list[Round]()

    def losses(settings, place, _):
        rounds.append(place)
        return alike(abs(settings["a"] - 2) + abs(settings["b"] - 1) + abs(settings["c"] - 1))

    best, tried = tune(CHOICES, losses, Budget(60.0))
    assert best == {"a": 2, "b": 1, "c": 1}
    assert tried < 18
    assert rounds == [FIRST] * tried + [SECOND] * FINALISTS


def test_the_second_round_decides() -> None:
    def losses(settings, place, _):
        return alike(settings["a"] if place == FIRST else -settings["a"])

    assert tune({"a": (1, 2, 3)}, losses, Budget(60.0))[0] == {"a": 3}


def test_the_usual_setting_stays_where_another_is_better_by_chance() -> None:
    """Two of 100 rows are right by the other setting alone, and one by the usual one alone."""

    def losses(settings, *_):
        wrong = np.zeros(100)
        wrong[:2] = settings["a"] == 0
        wrong[2] = settings["a"] == 1
        wrong[50:] = settings["a"] < 2
        return [wrong]

    assert tune({"a": (0, 1)}, losses, Budget(60.0))[0] == {"a": 0}
    assert tune({"a": (0, 1, 2)}, losses, Budget(60.0))[0] == {"a": 2}


def test_a_setting_that_is_worse_on_a_part_of_the_rows_is_not_chosen() -> None:
    def losses(settings, *_):
        return [np.full(50, 1.0 - settings["a"]), np.full(50, 1.0 + 0.1 * (settings["a"] == 1))]

    assert tune({"a": (0, 1)}, losses, Budget(60.0))[0] == {"a": 0}
    assert tune({"a": (0, 1, 2)}, losses, Budget(60.0))[0] == {"a": 2}


def test_settings_without_a_model_are_passed_over() -> None:
    def losses(settings, *_):
        return alike(1) if settings["a"] == 2 else None

    assert tune(CHOICES, losses, Budget(60.0))[0] == {"a": 2, "b": 0, "c": 0}
    assert tune(CHOICES, lambda *_: None, Budget(60.0))[0] is None


def test_rows_of_a_round_are_a_share_but_not_few() -> None:
    assert [Round(0.1, 50, 0.4, 0.1).rows(count) for count in (20, 200, 1000)] == [20, 50, 100]


def test_half_of_the_time_is_left_for_the_last_training(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(tuning_rule, "perf_counter", lambda: now[0])
    budget = Budget(2.0, begun=0.0)

    def losses(_settings, _place, seconds):
        now[0] += seconds
        return alike(1)

    best, tried = tune(CHOICES, losses, budget)
    assert best == {"a": 0, "b": 0, "c": 0}
    assert tried == 6  # no change is better, and each was tried
    assert budget.left == pytest.approx(1.0, abs=0.2)
