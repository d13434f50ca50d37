"""The water level against versions that try every level, and against the linear program it solves."""

import numpy as np
import pytest
from conftest import naive_level
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from slimsvm.papers.batch_perceptron import level_of, levels_of

HEIGHTS = {
    "all equal": np.full(50, 0.25),
    "one row": np.array([-3.0]),
    "ties": np.repeat([-1.0, 0.0, 0.0, 2.0], 13),
    "falling": np.linspace(5, -5, 101),
    "one far below": np.append(np.zeros(60), -1e6),
    "one far above": np.append(np.zeros(60), 1e6),
}


@pytest.mark.parametrize("volume", [0.0, 1e-9, 0.5, 40.0, 1e7])
@pytest.mark.parametrize("data", HEIGHTS)
def test_level_is_that_of_the_naive_search(data, volume):
    heights = HEIGHTS[data]
    expected = naive_level(heights, np.ones(heights.size), volume)
    assert level_of(heights, volume) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    digits=st.integers(0, 6),
    volume=st.floats(0, 1e4),
    guess=st.floats(-3, 3),
)
@example(seed=0, n=1, digits=0, volume=0.0, guess=0.0)
def test_level_is_that_of_the_naive_search_for_any_guess(seed, n, digits, volume, guess):
    heights = np.round(np.random.default_rng(seed).normal(size=n), digits)
    expected = naive_level(heights, np.ones(n), volume)
    for given_guess in (np.inf, guess, expected):
        assert level_of(heights, volume, given_guess) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def highest_level(first, second, volume):
    """The level g of: max g, first + b + slack >= g, second - b + slack >= g, slacks of this sum (3.9, with w fixed)."""
    n, m = first.size, second.size
    A = np.zeros((n + m + 1, 2 + n + m))
    A[:-1, 0] = 1
    A[:n, 1], A[n:-1, 1] = -1, 1
    A[:-1, 2:] = -np.eye(n + m)
    A[-1, 2:] = 1
    bounds = [(None, None)] * 2 + [(0, None)] * (n + m)
    return -linprog(np.eye(2 + n + m)[0] * -1, A, np.concatenate([first, second, [volume]]), bounds=bounds).fun


@pytest.mark.parametrize("sizes", [(1, 1), (1, 40), (30, 30), (5, 100), (300, 280)])
@pytest.mark.parametrize("volume", [0.01, 3.0, 500.0])
def test_two_basins_have_the_highest_level(sizes, volume):
    rng = np.random.default_rng(sum(sizes))
    first, second = (np.round(rng.normal(size=n), 1) for n in sizes)
    levels = levels_of((first, second), volume)
    assert np.mean(levels) == pytest.approx(highest_level(first, second, volume), rel=1e-7, abs=1e-9)
    used = [np.maximum(level - heights, 0).sum() for level, heights in zip(levels, (first, second), strict=True)]
    assert sum(used) == pytest.approx(volume)


def test_two_basins_have_equally_many_rows_under_water():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=2000), rng.normal(size=5000)
    one, other = levels_of((first, second), 200.0)
    assert abs(int((first < one).sum()) - int((second < other).sum())) <= 1
