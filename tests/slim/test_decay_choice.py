"""The walk along decays: it follows clear gains, up or else down, and stops where blocks of rows would suffer."""

import pytest

from slimsvm.clock import Deadline
from slimsvm.model import Judgement
from slimsvm.slim.decay_choice import best_power, harmless_power, is_harmless


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

    assert best_power(judged, 2, 1.0, Deadline()) == best
    assert seen == tried


def test_without_powers_only_the_usual_decay_is_judged():
    seen = []
    assert best_power(lambda power: seen.append(power) or Judgement(1.0, 0.0), 0, 1.0, Deadline()) == 0
    assert seen == [0]


def test_after_the_deadline_only_the_usual_decay_is_judged():
    seen = []
    assert best_power(lambda power: seen.append(power) or Judgement(1.0 - power, 0.0), 2, 1.0, Deadline(0.0)) == 0
    assert seen == [0]


@pytest.mark.parametrize(("margin", "best"), [(1.9, 1), (2.1, 0)])
def test_a_step_must_be_better_by_a_margin(margin, best):
    assert best_power(lambda power: Judgement(1.0 - 0.2 * power, 0.1), 1, margin, Deadline()) == best


def judgements(*errors):
    return [Judgement(error, 0.1) for error in errors]


@pytest.mark.parametrize(
    ("random", "errors", "harmless"),
    [
        (1.0, (1.0, 1.0), True),
        (1.0, (1.1, 0.8), True),  # worse on one block by one standard error
        (1.0, (1.3, 0.1), False),  # clearly worse on one block
        (1.0, (1.1, 1.0), True),  # worse on both together, within a standard error
        (1.0, (1.1, 1.1), False),  # beyond it
        (0.5, (1.1, 1.1), False),
        (1.1, (1.1, 1.1), True),  # no worse than on random rows
        (1.1, (1.3, 0.9), False),
        (1.3, (1.3, 1.2), True),
        (1.0, (float("nan"), 1.0), False),
    ],
)
def test_harm_is_done_to_blocks_together_or_clearly_to_one_and_not_to_random_rows(random, errors, harmless):
    assert is_harmless(judgements(random, *errors), judgements(1.0, 1.0, 1.0)) == harmless


def test_no_loss_before_and_some_after_is_harm():
    assert not is_harmless(judgements(0.0, 0.2), judgements(0.0, 0.0))
    assert is_harmless(judgements(0.0, 0.0), judgements(0.0, 0.0))


@pytest.mark.parametrize(
    ("power", "losses", "found"),
    [
        (2, {0: 1.0, 1: 0.9, 2: 0.8}, 2),
        (2, {0: 1.0, 1: 0.8, 2: 0.95}, 1),  # the second step is worse than the first
        (2, {0: 1.0, 1: 1.15, 2: 0.5}, 0),
        (-1, {0: 1.0, -1: 0.9}, -1),
        (-2, {0: 1.0, -1: 1.15}, 0),
    ],
)
def test_a_power_is_reached_by_harmless_steps_only(power, losses, found):
    assert harmless_power(power, lambda other: judgements(1.0, losses[other])) == found
