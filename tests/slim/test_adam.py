"""Adam: minima under noise, bounds, and an end in time."""

from itertools import count

import numpy as np
import pytest

import slimsvm.slim.adam as module
from slimsvm.limits import Deadline
from slimsvm.slim.adam import MEAN, SQUARE, TINY, AdamSettings, Moments, plain_steps, recorded_steps, take_steps

CENTRE = np.array([1.0, -2.0, 0.5])


def adam(gradient, start, settings, deadline, within=None, watch=None):
    return take_steps(plain_steps(gradient, start, within), start, settings, deadline, watch)


def slow_adam(gradient, x, steps, rate):
    """The algorithm of the paper, line by line, with the rate of half a cosine."""
    m = v = np.zeros(x.size)
    for t in range(1, steps + 1):
        g = gradient(x)
        m, v = MEAN * m + (1 - MEAN) * g, SQUARE * v + (1 - SQUARE) * g**2
        corrected = (m / (1 - MEAN**t)) / (np.sqrt(v / (1 - SQUARE**t)) + TINY)
        x = x - rate * 0.5 * (1 + np.cos(np.pi * t / steps)) * corrected
    return x


def test_steps_are_those_of_the_paper():
    gradient = lambda x: np.array([2.0, 0.3, 5.0]) * (x - CENTRE)  # noqa: E731
    found = adam(gradient, Moments.at(np.zeros(3)), AdamSettings(50, 0.1), Deadline())
    np.testing.assert_allclose(found, slow_adam(gradient, np.zeros(3), 50, 0.1), atol=1e-9)


def test_noise_averages_out_as_the_rate_falls():
    rng = np.random.default_rng(0)
    found = adam(lambda x: x - CENTRE + rng.normal(size=3), Moments.at(np.zeros(3)), AdamSettings(3000, 0.05), Deadline())
    np.testing.assert_allclose(found, CENTRE, atol=0.1)


def test_vectors_stay_within_their_bounds():
    seen = []

    def within(x):
        np.clip(x, -1, 1, out=x)
        seen.append(x.copy())

    found = adam(lambda x: x - CENTRE, Moments.at(np.zeros(3)), AdamSettings(300, 0.1), Deadline(), within)
    assert np.abs(seen).max() <= 1
    np.testing.assert_allclose(found, [1.0, -1.0, 0.5], atol=0.05)


def test_a_run_cut_short_ends_with_a_low_rate(monkeypatch):
    clock, moves = count(), []
    monkeypatch.setattr(module, "perf_counter", lambda: 0.01 * next(clock))

    def gradient(x):
        moves.append(x.copy())
        return x - 100 * CENTRE  # far away: every step has the length of the rate

    adam(gradient, Moments.at(np.zeros(3)), AdamSettings(10**9, 0.1, seconds=0.2), Deadline())
    assert len(moves) == 20
    steps = np.abs(np.diff(moves, axis=0)).max(axis=1)
    assert steps[-1] < 0.05 * steps.max()


def test_a_deadline_ends_it_at_once():
    found = adam(lambda x: x, Moments.at(np.ones(3)), AdamSettings(10**9, 0.1), Deadline(1e-9))
    np.testing.assert_array_equal(found, np.ones(3))


@pytest.mark.parametrize("steps", [0, 1])
def test_no_steps_leave_the_start(steps):
    found = adam(lambda x: x - CENTRE, Moments.at(np.zeros(3)), AdamSettings(steps, 0.1), Deadline())
    np.testing.assert_array_equal(found, np.zeros(3))  # the rate of the last step is 0


def pull(x):
    return np.array([1.0, 10.0, 100.0]) * (x - CENTRE)


def test_a_descent_goes_on_from_its_moments():
    seen = []

    def watch(now):
        if now.steps == 7:
            seen.append(Moments(now.x.copy(), now.mean.copy(), now.square.copy(), now.steps))

    settings = AdamSettings(20, 0.1)
    whole = adam(pull, Moments.at(np.zeros(3)), settings, Deadline(), watch=watch)
    np.testing.assert_array_equal(adam(pull, seen[0], settings, Deadline()), whole)


def test_arrays_of_another_library_take_the_same_steps():
    torch = pytest.importorskip("torch")
    settings = AdamSettings(50, 0.1)
    there = adam(
        lambda x: torch.from_numpy(pull(x.numpy())), Moments.at(torch.zeros(3, dtype=torch.float64)), settings, Deadline()
    )
    np.testing.assert_allclose(there.numpy(), adam(pull, Moments.at(np.zeros(3)), settings, Deadline()), atol=1e-12)


def test_recorded_steps_are_the_plain_ones():
    torch = pytest.importorskip("torch")
    settings, start = AdamSettings(50, 0.1), Moments.at(torch.zeros(3, dtype=torch.float64))
    slope, within = (lambda x: torch.from_numpy(pull(x.numpy()))), (lambda x: x.clamp_(max=0.4))
    step = recorded_steps(slope, start, within, lambda work, changed: work if len(changed) == 3 else None)
    found = take_steps(step, start, settings, Deadline())
    plain = adam(slope, Moments.at(torch.zeros(3, dtype=torch.float64)), settings, Deadline(), within)
    np.testing.assert_array_equal(found.numpy(), plain.numpy())
    assert recorded_steps(slope, start, within, lambda work, changed: None) is None  # noqa: ARG005
