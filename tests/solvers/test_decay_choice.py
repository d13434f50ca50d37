"""The walk along decays: it follows clear gains, up or else down, and stays where differences may be chance."""

import pytest

from slimsvm.clock import Deadline
from slimsvm.model import Judgement
from slimsvm.solvers.decay_choice import best_power


@pytest.mark.parametrize(
    ("losses", "best", "tried"),
    [
        ({0: 1.0, 1: 0.95, -1: 0.95}, 0, [0, 1, -1]),  # within a standard error
        ({0: 1.0, 1: 0.8, 2: 0.6}, 2, [0, 1, 2]),  # no further than allowed, and not down
        ({0: 1.0, 1: 0.8, 2: 0.75}, 1, [0, 1, 2]),
        ({0: 1.0, 1: 2.0, -1: 0.8, -2: 0.9}, -1, [0, 1, -1, -2]),
        ({0: 1.0, 1: float("nan"), -1: float("nan")}, 0, [0, 1, -1]),
    ],
)
def test_the_walk_follows_clear_gains(losses, best, tried):
    seen = []

    def judged(power):
        seen.append(power)
        return Judgement(losses[power], 0.1)

    assert best_power(judged, 2, Deadline(None)) == best
    assert seen == tried


def test_without_powers_only_the_usual_decay_is_judged():
    seen = []
    assert best_power(lambda power: seen.append(power) or Judgement(1.0, 0.0), 0, Deadline(None)) == 0
    assert seen == [0]


def test_after_the_deadline_only_the_usual_decay_is_judged():
    seen = []
    assert best_power(lambda power: seen.append(power) or Judgement(1.0 - power, 0.0), 2, Deadline(0.0)) == 0
    assert seen == [0]
