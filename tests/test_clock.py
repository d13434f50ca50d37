"""The time of a call: the fastest of several, as many as fit and as are wanted at least."""

import numpy as np
import pytest

from slimsvm import clock as timer


@pytest.mark.parametrize(
    ("seconds", "least", "calls", "made"),
    [(10.0, 1, 5, 5), (2.5, 1, 100, 3), (2.5, 7, 100, 7), (0.0, 1, 100, 1), (100.0, 7, 3, 3)],
    ids=["most", "time", "least", "one", "most before least"],
)
def test_calls_are_made_for_a_time_and_the_fastest_counts(monkeypatch, seconds, least, calls, made):
    clock, lengths = [0.0], iter(np.linspace(1.0, 0.9, 100))
    count = []

    def call():
        count.append(clock[0])
        clock[0] += next(lengths)

    monkeypatch.setattr(timer, "perf_counter", lambda: clock[0])
    found = timer.microseconds(call, calls, seconds, least)
    assert len(count) == made
    assert found == pytest.approx(1e6 * np.linspace(1.0, 0.9, 100)[made - 1])
