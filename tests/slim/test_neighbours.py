"""Blocks of neighbouring rows."""

import numpy as np
import pytest

from slimsvm.goals.values import Regression
from slimsvm.kernels import RBF
from slimsvm.model import Task
from slimsvm.slim.neighbours import LEFT_OUT, PIECES, block_numbers, validation_of


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
