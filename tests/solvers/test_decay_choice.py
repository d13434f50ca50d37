"""The walk along decays: it follows clear gains, up or else down, and stays where differences may be chance."""

import pytest

from slimsvm.model import Judgement
from slimsvm.solvers.decay_choice import best_power, is_better, nearer_to_zero


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
        return [Judgement(losses[power], 0.1)]

    assert best_power(judged, 2) == best
    assert seen == tried


def test_without_powers_only_the_usual_decay_is_judged():
    seen = []
    assert best_power(lambda power: seen.append(power) or [Judgement(1.0, 0.0)], 0) == 0
    assert seen == [0]


@pytest.mark.parametrize(
    ("other", "better"),
    [
        ([0.8], True),
        ([0.95], False),
        ([0.8, 0.9, 1.0], True),
        ([0.8, 1.1, 0.8], True),  # worse on one block by one standard error
        ([0.8, 1.3, 0.1], False),  # clearly worse on one block
        ([0.8, 1.1, 1.0], False),  # worse on both together
        ([0.95, 0.1, 0.1], False),  # better on blocks alone
    ],
)
def test_a_decay_must_be_better_on_random_rows_and_no_worse_on_blocks(other, better):
    present = [Judgement(1.0, 0.1)] * len(other)
    assert is_better([Judgement(error, 0.1) for error in other], present) == better


@pytest.mark.parametrize(("one", "other", "both"), [(2, 1, 1), (-1, -2, -1), (1, -1, 0), (0, 2, 0), (-2, 0, 0)])
def test_two_powers_agree_on_the_smaller(one, other, both):
    assert nearer_to_zero(one, other) == both
