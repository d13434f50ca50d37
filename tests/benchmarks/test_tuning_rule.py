"""The rule by which every contender of equal bytes is tuned."""

import numpy as np
import pytest

from benchmarks import tuning_rule
from benchmarks.tuning_rule import FINALISTS, FIRST, Budget, tune

CHOICES = {"a": (0, 1, 2), "b": (0, 1, 2), "c": (0, 1)}


def test_settings_that_depend_on_each_other_are_found_one_at_a_time() -> None:
    rows = list[float]()

    def error(settings, share, _):
        rows.append(share)
        return abs(settings["a"] - 2) + abs(settings["b"] - 1) + abs(settings["c"] - 1)

    best, tried = tune(CHOICES, error, Budget(60.0))
    assert best == {"a": 2, "b": 1, "c": 1}
    assert tried < 18
    assert rows == [FIRST.rows] * tried + [1.0] * FINALISTS


def test_the_second_round_decides() -> None:
    def error(settings, share, _):
        return settings["a"] if share < 1 else -settings["a"]

    assert tune({"a": (1, 2, 3)}, error, Budget(60.0))[0] == {"a": 3}


def test_settings_without_a_model_are_passed_over() -> None:
    def error(settings, *_):
        return 1.0 if settings["a"] == 2 else np.inf

    assert tune(CHOICES, error, Budget(60.0))[0] == {"a": 2, "b": 0, "c": 0}
    assert tune(CHOICES, lambda *_: np.inf, Budget(60.0))[0] is None


def test_half_of_the_time_is_left_for_the_last_training(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(tuning_rule, "perf_counter", lambda: now[0])
    budget = Budget(2.0, begun=0.0)

    def error(_settings, _share, seconds):
        now[0] += seconds
        return 1.0

    best, tried = tune(CHOICES, error, budget)
    assert best == {"a": 0, "b": 0, "c": 0}
    assert tried == 6  # no change is better, and each was tried
    assert budget.left == pytest.approx(1.0, abs=0.2)
