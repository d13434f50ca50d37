"""Quasi-Newton descent: it finds minima, keeps shapes, and ends for want of gain, steps or time."""

import numpy as np
import pytest

from slimsvm.limits import Deadline
from slimsvm.solvers.descent import METHODS, DescentSettings, descend

GOAL = np.arange(6.0).reshape(2, 3)


def bowl(x):
    """A quadratic of unequal curvatures, least at GOAL."""
    curvature = np.array([[1.0, 10.0, 100.0], [2.0, 3.0, 4.0]])
    return float((curvature * (x - GOAL) ** 2).sum()), 2 * curvature * (x - GOAL)


@pytest.mark.parametrize("method", METHODS)
def test_it_finds_the_minimum_in_the_shape_of_the_start(method):
    end = descend(bowl, np.zeros((2, 3)), DescentSettings(200, method), Deadline())
    np.testing.assert_allclose(end.x, GOAL, atol=1e-4)
    assert end.value == pytest.approx(0.0, abs=1e-6)
    assert 0 < end.steps <= 200


@pytest.mark.parametrize("method", METHODS)
def test_steps_are_limited(method):
    assert descend(bowl, np.zeros((2, 3)), DescentSettings(2, method), Deadline()).steps == 2


@pytest.mark.parametrize("method", METHODS)
def test_the_time_is_looked_at_after_every_step(method):
    assert descend(bowl, np.zeros((2, 3)), DescentSettings(100, method), Deadline(1e-9)).steps <= 1


def test_a_window_of_little_gain_is_the_end():
    """Far from 0 a step gains next to nothing of the value; without a window the descent goes on."""

    def slow(x):
        return 1000.0 + bowl(x)[0], bowl(x)[1]

    settings = DescentSettings(500, ftol=0.0, gtol=0.0)
    patient = descend(slow, np.zeros((2, 3)), settings, Deadline())
    hasty = descend(slow, np.zeros((2, 3)), DescentSettings(500, ftol=0.0, gtol=0.0, window=2, least_gain=0.5), Deadline())
    assert hasty.steps == 3
    assert patient.steps > hasty.steps


@pytest.mark.parametrize("method", ["lbfgs", "cg"])
def test_a_descent_on_flat_ground_stays_where_it_is(method):
    start = np.array([1.0, 2.0])
    settings = DescentSettings(10, method=method, ftol=0.0, gtol=0.0)
    end = descend(lambda x: (1.0, np.full(x.shape, 1e-170)), start, settings, Deadline())
    np.testing.assert_array_equal(end.x, start)
