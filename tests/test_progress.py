"""The share done of a run that closes a gap."""

from __future__ import annotations

import pytest

from slimsvm.progress import GapProgress


def test_the_share_is_logarithmic():
    progress = GapProgress(goal=1e-4)
    assert [progress.update(gap) for gap in (1.0, 1e-1, 1e-2, 1e-3)] == pytest.approx([0.0, 0.25, 0.5, 0.75])
    assert progress.update(1e-4) == 1.0


def test_the_share_never_falls():
    progress = GapProgress(goal=1e-2)
    assert [progress.update(gap) for gap in (1.0, 0.1, 0.5)] == pytest.approx([0.0, 0.5, 0.5])


def test_a_largest_gap_may_be_known_before():
    assert GapProgress(goal=1e-2, largest=1.0).update(0.1) == pytest.approx(0.5)


@pytest.mark.parametrize(("goal", "gap"), [(0.0, 0.5), (1e-3, float("inf"))], ids=["goal of 0", "infinite gap"])
def test_without_a_scale_the_share_stays_0(goal, gap):
    progress = GapProgress(goal)
    progress.update(1.0)
    assert progress.update(gap) == 0.0


def test_a_goal_of_0_can_be_met():
    assert GapProgress(goal=0.0).update(0.0) == 1.0
