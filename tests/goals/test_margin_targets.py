"""MarginTargets: intervals, how far outputs are outside them, and what brings them back."""

import numpy as np
import pytest

from slimsvm.goals import MarginTargets


@pytest.fixture
def tube():
    return MarginTargets(np.array([[0.0], [1.0], [-np.inf], [-np.inf]]), np.array([[1.0], [np.inf], [-1.0], [np.inf]]))


def test_classes_demand_a_side():
    margin_targets = MarginTargets.beyond(np.array([[1.0], [-1.0], [0.0]]), 1.0)
    np.testing.assert_array_equal(margin_targets.low.ravel(), [1, -np.inf, -np.inf])
    np.testing.assert_array_equal(margin_targets.high.ravel(), [np.inf, -1, np.inf])


def test_a_margin_of_minus_infinity_demands_nothing():
    margin_targets = MarginTargets.beyond(np.array([[1.0], [-1.0]]), np.full((2, 1), -np.inf))
    np.testing.assert_array_equal(margin_targets.shortfall(np.array([[-9.0], [9.0]])), np.full((2, 1), -np.inf))


def test_shortfall_is_the_distance_outside_and_negative_inside(tube):
    outputs = np.array([[0.25], [0.5], [0.5], [7.0]])
    np.testing.assert_array_equal(tube.shortfall(outputs).ravel(), [-0.25, 0.5, 1.5, -np.inf])


def test_the_residual_brings_outputs_to_the_nearest_end(tube):
    outputs = np.array([[1.5], [0.5], [0.5], [7.0]])
    residual = tube.residual(outputs)
    np.testing.assert_array_equal(residual.ravel(), [-0.5, 0.5, -1.5, 0.0])
    assert (tube.shortfall(outputs + residual) <= 0).all()


def test_some_rows_are_demands_too(tube):
    some = tube[np.array([2, 0])]
    assert some.shape == (2, 1)
    np.testing.assert_array_equal(some.high.ravel(), [-1, 1])
