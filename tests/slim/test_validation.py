"""What validation rows choose: the walk along decays, blocks of neighbouring rows, and when a learned model goes on."""

import numpy as np
import pytest

from slimsvm.clock import Deadline
from slimsvm.goals.values import Regression
from slimsvm.kernels import RBF
from slimsvm.model import Judgement, Task
from slimsvm.slim.validation import LEFT_OUT, PIECES, best_power, block_numbers, harmless_power, is_harmless, validation_of


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


def test_blocks_are_pieces_of_each_class_with_the_first_and_the_last_one():
    groups = np.repeat([0, 1, 0], [2 * PIECES, PIECES, PIECES])
    numbers = block_numbers(groups)
    for number, place in enumerate(LEFT_OUT):
        many, few = (np.flatnonzero(groups == group) for group in (0, 1))
        np.testing.assert_array_equal(
            np.flatnonzero(numbers == number), np.sort([*many[3 * place : 3 * place + 3], few[place]])
        )
    assert numbers[0] == 0
    assert numbers[-1] == len(LEFT_OUT) - 1


def test_classes_with_few_rows_stay_in_training():
    numbers = block_numbers(np.array([0] * 30 + [1] * (PIECES - 1)))
    assert (numbers[30:] == -1).all()


def test_rows_left_out_are_the_validation_rows(make_task):
    task = make_task(RBF(1.0), np.arange(10.0)[:, None], np.where(np.arange(10) < 5, -1.0, 1.0))
    found = validation_of(task, np.array([3, 9]))
    np.testing.assert_array_equal(found.labels, [0, 1])
    np.testing.assert_array_equal(found.rows.take(np.arange(2)).ravel(), [3.0, 9.0])
    real = Task(task.rows, np.arange(10.0)[:, None], task.weights, goal=Regression())
    np.testing.assert_array_equal(validation_of(real, np.array([3, 9])).labels, [3.0, 9.0])


def slow_block_numbers(groups):
    """The same, group by group and row by row."""
    numbers = [-1] * len(groups)
    for group in set(groups):
        rows = [row for row, each in enumerate(groups) if each == group]
        pieces = np.array_split(rows, PIECES) if len(rows) >= PIECES else []
        for place, piece in enumerate(pieces):
            for row in piece:
                numbers[row] = LEFT_OUT.index(place) if place in LEFT_OUT else -1
    return numbers


@pytest.mark.parametrize("n", [1, 14, 40, 200])
def test_blocks_are_those_of_a_slow_twin(n):
    groups = np.random.default_rng(n).integers(0, 4, size=n)
    np.testing.assert_array_equal(block_numbers(groups), slow_block_numbers(groups.tolist()))
