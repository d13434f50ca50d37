"""Limits on the work of a run, and the effort that is measured against them."""

from __future__ import annotations

import pytest

from slimsvm import clock as module
from slimsvm.limits import Deadline, Limits
from slimsvm.model import Status


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until a test moves it."""
    time = [100.0]
    monkeypatch.setattr(module, "perf_counter", lambda: time[0])
    return time


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")], ids=["zero", "negative", "nan"])
def test_a_time_limit_is_above_0(seconds):
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0, or None"):
        Limits(time_limit=seconds)


def test_without_limits_a_run_never_ends(clock):
    effort = Limits().start()
    effort.spent = 10**9
    clock[0] += 1e9
    assert effort.reached() is None
    assert effort.left == float("inf")
    assert effort.deadline.left is None
    assert effort.share == 0.0


def test_iterations_run_out():
    effort = Limits(max_iter=8).start()
    effort.spent = 6
    assert (effort.left, effort.share, effort.reached()) == (2, 0.75, None)
    effort.spent = 8
    assert effort.reached() is Status.MAX_ITER


def test_no_iterations_are_a_limit_too():
    assert Limits(max_iter=0).start().reached() is Status.MAX_ITER


def test_time_runs_out(clock):
    effort = Limits(max_iter=100, time_limit=10.0).start()
    effort.spent = 1
    clock[0] += 4.0
    assert effort.share == pytest.approx(0.4)
    assert effort.deadline.left == pytest.approx(6.0)
    assert effort.reached() is None
    clock[0] += 6.0
    assert effort.reached() is Status.TIME_LIMIT
    effort.spent = 100
    assert effort.reached() is Status.MAX_ITER


def test_a_deadline_that_has_passed_leaves_a_time_above_0(clock):
    deadline = Deadline(1.0)
    assert not deadline.over
    clock[0] += 2.0
    assert deadline.over
    assert 0 < deadline.left < 1e-6
