"""The water level against versions that try every level, and against the problems it solves."""

import numpy as np
import pytest
from conftest import naive_level
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from slimsvm.papers import water as water_module
from slimsvm.papers.water import CostWater, DrawnWater, SlackWater, fill


def naive_joint_level(first, second, volume):
    """The highest mean level over all shares of the volume, tried one after the other."""

    def level(part):
        return naive_level(*first, part) / 2 + naive_level(*second, volume - part) / 2

    best = minimize_scalar(lambda part: -level(part), bounds=(0, volume), method="bounded", options={"xatol": 1e-12})
    return max(-best.fun, level(0.0), level(volume))


def primal(scale, bias, basins, C):
    """1/2 s^2 + C times the losses, for heights c of positives and negatives."""
    signs = (1, -1) if len(basins) == 2 else (0,)
    losses = [w @ np.maximum(0, 1 - scale * h - sign * bias) for (h, w), sign in zip(basins, signs, strict=True)]
    return 0.5 * scale**2 + C * sum(losses)


ADVERSARIAL = {
    "all equal": np.full(50, 0.25),
    "one row": np.array([-3.0]),
    "ties": np.repeat([-1.0, 0.0, 0.0, 2.0], 13),
    "falling": np.linspace(5, -5, 101),
    "one far below": np.append(np.zeros(60), -1e6),
    "one far above": np.append(np.zeros(60), 1e6),
    "the sample sees only high rows": np.where(np.arange(3000) % 6, -1.0, 7.0),
}


@pytest.mark.parametrize("volume", [0.0, 1e-9, 0.5, 40.0, 1e7])
@pytest.mark.parametrize("data", ADVERSARIAL)
def test_level_is_that_of_the_naive_search(data, volume):
    heights = ADVERSARIAL[data]
    for weights in (np.ones(heights.size), np.random.default_rng(0).uniform(0.1, 3, heights.size)):
        surface = fill([(heights, weights)], SlackWater(volume))
        assert surface.level == pytest.approx(naive_level(heights, weights, volume), rel=1e-9, abs=1e-9)
        assert surface.volume == pytest.approx(volume, rel=1e-6, abs=1e-6)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 700),
    digits=st.integers(0, 6),
    volume=st.floats(0, 1e4),
    guess=st.floats(-3, 3),
)
@example(seed=0, n=1, digits=0, volume=0.0, guess=0.0)
def test_level_is_that_of_the_naive_search_for_any_guess(seed, n, digits, volume, guess):
    rng = np.random.default_rng(seed)
    heights, weights = np.round(rng.normal(size=n), digits), rng.uniform(0.1, 2, n)
    level = naive_level(heights, weights, volume)
    for given_guess in (None, (guess,), (level,)):
        assert fill([(heights, weights)], SlackWater(volume), given_guess).level == pytest.approx(level, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 40), (30, 30), (5, 200), (200, 5)])
@pytest.mark.parametrize("volume", [0.01, 3.0, 500.0])
def test_two_basins_have_the_highest_level_that_any_share_of_the_water_gives(sizes, volume):
    rng = np.random.default_rng(sum(sizes))
    basins = [(np.round(rng.normal(size=n), 1), np.ones(n)) for n in sizes]
    surface = fill(basins, SlackWater(volume))
    assert surface.level == pytest.approx(naive_joint_level(*basins, volume), rel=1e-6)
    used = sum(w @ np.maximum(level - h, 0) for (h, w), level in zip(basins, surface.levels, strict=True))
    assert used == pytest.approx(volume, rel=1e-9)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1000), (2000, 1500), (20_000, 10)])
def test_the_same_weight_is_under_water_in_both_basins(sizes):
    rng = np.random.default_rng(0)
    basins = [(rng.normal(size=n), np.ones(n)) for n in sizes]
    surface = fill(basins, SlackWater(0.1 * sum(sizes)))
    below = [w[h < level - 1e-12].sum() for (h, w), level in zip(basins, surface.levels, strict=True)]
    up_to = [w[h <= level + 1e-12].sum() for (h, w), level in zip(basins, surface.levels, strict=True)]
    assert below[0] <= up_to[1]
    assert below[1] <= up_to[0]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 400), C=st.floats(1e-3, 100), two=st.booleans())
def test_cost_gives_the_best_scale_and_bias(seed, n, C, two):
    rng = np.random.default_rng(seed)
    basins = [(rng.normal(0.5, 1, size=n), rng.uniform(0.1, 2, n)) for _ in range(1 + two)]
    surface = fill(basins, CostWater(C))
    if not np.isfinite(surface.level):  # nothing is better than w = 0
        slope = sum(w @ h for h, w in basins)
        assert slope <= 0 or two
        return
    scale, bias = 1 / surface.level, (surface.levels[-1] - surface.levels[0]) / 2 / surface.level
    best = primal(scale, bias, basins, C)
    assert best == pytest.approx(0.5 * scale**2 + C * scale * surface.volume, rel=1e-6)
    for _ in range(40):
        other = max(scale * (1 + 0.1 * rng.normal()), 0), bias + 0.1 * two * rng.normal()
        assert primal(*other, basins, C) >= best * (1 - 1e-9)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 400), length=st.floats(1e-3, 1), two=st.booleans())
def test_the_weight_under_water_and_the_level_have_the_product_that_the_draws_say(seed, n, length, two):
    """The level is found even where all heights are below 0, which for the best scale of w would be a flood."""
    rng = np.random.default_rng(seed)
    basins = [(rng.normal(-0.5, 1, size=n), rng.uniform(0.1, 2, n)) for _ in range(1 + two)]
    surface = fill(basins, DrawnWater(3.0, length))
    if np.isfinite(surface.level):
        mass = 1 / (3.0 * length * surface.level)
        assert surface.covered.mass - 2 * len(basins) <= mass <= surface.covered.mass * (1 + 1e-9)  # in part, at the level
    else:  # the smaller class is under water as a whole
        assert two


def test_no_slack_stops_at_the_lowest_row():
    heights = np.array([0.3, 0.1, 0.7])
    assert fill([(heights, np.ones(3))], SlackWater(0.0)).level == pytest.approx(0.1)


def test_few_rows_are_sorted(monkeypatch):
    rng = np.random.default_rng(0)
    basins = [(rng.normal(size=20_000), np.ones(20_000)) for _ in range(2)]
    surface = fill(basins, SlackWater(5000.0))
    taken = []
    between = water_module._between

    def counted(*arguments):
        basin = between(*arguments)
        taken.append(basin.heights.size)
        return basin

    monkeypatch.setattr(water_module, "_between", counted)
    assert fill(basins, SlackWater(5000.0), surface.levels).levels == pytest.approx(surface.levels, rel=1e-9)
    assert sum(taken) < 2000
