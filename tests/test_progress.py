"""The share done of a run that closes a gap, and the history of what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from slimsvm import SlimSVC, run
from slimsvm.estimators import fit_reporting
from slimsvm.run import GapProgress, History, Printed
from slimsvm.trainers.smo import SMO


def test_the_share_is_logarithmic():
    found = GapProgress(goal=1e-4, quarter=1e300)  # rounds do not count
    assert [found.update(gap) for gap in (1.0, 1e-1, 1e-2, 1e-3)] == pytest.approx([0.0, 0.25, 0.5, 0.75])
    assert found.update(1e-4) == 1.0


def test_the_share_never_falls():
    found = GapProgress(goal=1e-2, quarter=1e300)
    assert [found.update(gap) for gap in (1.0, 0.1, 0.5)] == pytest.approx([0.0, 0.5, 0.5])


def test_a_largest_gap_may_be_known_before():
    assert GapProgress(goal=1e-2, largest=1.0).update(0.1) == pytest.approx(0.5)


@pytest.mark.parametrize(("goal", "gap"), [(0.0, 0.5), (1e-3, float("inf"))], ids=["goal of 0", "infinite gap"])
def test_without_a_scale_rounds_count(goal, gap):
    found = GapProgress(goal)
    found.update(1.0)
    assert 0 < found.update(gap) < 0.01


def test_a_goal_of_0_can_be_met():
    assert GapProgress(goal=0.0).update(0.0) == 1.0


def test_the_share_moves_while_the_gap_grows():
    found = GapProgress(goal=1e-3)
    gaps = [*np.geomspace(2.0, 1e5, 300), *np.geomspace(1e5, 1e-3, 100)]  # as of a large C: up for long, then down
    shares = [found.update(gap) for gap in gaps]
    assert (np.diff(shares) > 0).all()
    assert 0.2 < shares[299] < 0.5
    assert shares[-2] < 1.0 == shares[-1]


def test_the_progress_of_a_part_stays_below_what_is_open():
    found = GapProgress(goal=1e-3)
    found.update(1.0)
    assert found.inside(0.0) == found.share
    assert found.share < found.inside(1.0) < 1.0


def test_a_fit_whose_gap_grows_first_is_seen_to_move():
    """Raw features and a large C, as of covtype: the gap grows before it falls."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) * [1.0, 3.0, 10.0, 30.0]
    y = np.sign(np.sin(X[:, 0]) + 0.2 * rng.normal(size=600))
    told = []
    svc = SlimSVC(C=1e4, gamma=1e-2, tol=0.1, trainer=SMO(working_set=40))
    fit_reporting(svc, X, y, report=lambda _, done: told.append(done))
    gaps = [entry["gap"] for entry in svc.history_ if "gap" in entry]
    assert max(gaps) > gaps[0]
    assert (np.diff(told) >= 0).all()
    quarters = np.array(told)[np.linspace(0, len(told) - 1, 5).astype(int)]
    assert (np.diff(quarters) > 0.01).all()


def test_a_history_has_few_entries_and_each_model(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(run, "perf_counter", lambda: clock[0])
    history = History()
    for gap in np.geomspace(1.0, 1e-3, 10_000):
        clock[0] += 0.01
        history.record("train", gap=gap)
    for size in range(5):
        history.record("shrink", size=size, error=0.1)
    seconds = [entry["seconds"] for entry in history.entries]
    assert len(history.entries) < 500
    assert seconds == sorted(seconds)
    assert [entry["size"] for entry in history.entries if entry["phase"] == "shrink"] == list(range(5))
    assert history.latest == {"seconds": pytest.approx(100.0), "size": 4, "error": 0.1}


def test_the_history_of_a_fit():
    X = np.random.default_rng(0).normal(size=(200, 2))
    svc = SlimSVC(4, random_state=0).fit(X, X[:, 0] > 0)
    assert {"phase", "seconds", "gap"} == svc.history_[0].keys()
    assert {"phase", "seconds", "size", "error"} == svc.history_[-1].keys()
    assert svc.history_[-1]["size"] == 4


def test_printed_lines_have_seconds_and_measures(capsys):
    history = History()
    printed = Printed("SlimSVC", history)
    history.record("train", gap=0.25)
    for done in (0.0, 0.05, 0.1):
        printed("train", done)
    assert [line.split(", ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "[SlimSVC] train 0 %",
        "[SlimSVC] train 10 %",
    ]
    printed("train", 1.0)
    assert capsys.readouterr().out.endswith(" s, gap 0.25\n")
