"""Water filling: the level to which a volume of water rises over rows of heights c, in one basin or in two.

The stochastic batch perceptron distributes a total slack over the rows so that the smallest margin becomes as large as
possible. That is water poured over the margins c_i = y_i <w, phi(x_i)> (Cotter, Shalev-Shwartz & Srebro 2012, section 3.2):
rows under water get slack up to the level. With an unregularised bias each class is a basin of its own, and both basins
have the same weight of rows under water (3.6).

With a mean level g of the basins, M the weight of all rows under water and S the sum of their weighted heights:

    SlackWater:  M g - S = volume      the paper's problem, volume = n nu
    CostWater:   C S g = 1             the slack of the C-SVM at the best scale of w
    DrawnWater:  C M l g = 1           the slack of the C-SVM, as the rows drawn so far tell it

The second is the minimum of 1/2 s^2 + C sum_i max(0, 1 - s c_i) over s, with the level 1 / s. In the third, l is the length
of the mean of y_i phi(x_i) over the rows drawn. The optimum is C M times their mean over the rows under water, so S = M l
there and the two agree. Before it, a w of few rows has S < 0 on the rows that are under water, but l > 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..kernels import Array

#: size of the sample for a first guess; basins up to this size are sorted as a whole. A larger sample makes a better guess
SAMPLE = 512
#: width of the first search window as a share of the spread of heights, for a given guess and for a sampled one; a wider
#: window sorts more rows and has to be widened less often
NEAR, SAMPLED = 0.04, 0.15


class Covered(NamedTuple):
    """The rows under water in all basins: their weight, and the sum of their weighted heights."""

    mass: Any  # a number or an array of numbers
    heights: Any


@dataclass(frozen=True)
class WaterSurface:
    """The surface of the water: the level of each basin, and the rows under water."""

    levels: tuple[float, ...]
    covered: Covered

    @property
    def level(self) -> float:
        """The margin after slack: the mean of the levels, since a bias raises one level as much as it lowers the other."""
        return float(np.mean(self.levels))

    @property
    def volume(self) -> float:
        """The volume of water in all basins."""
        return float(self.covered.mass * self.level - self.covered.heights)


@dataclass(frozen=True)
class SlackWater:
    """A given volume of water."""

    volume: float

    def filled(self, covered: Covered, level: Array) -> Array:
        """Return whether water up to a mean level has at least this volume."""
        return covered.mass * level - covered.heights >= self.volume

    def level(self, covered: Covered) -> float:
        """Return the mean level at which exactly these rows are under water."""
        return (self.volume + covered.heights) / covered.mass


@dataclass(frozen=True)
class CostWater:
    """The volume of water that corresponds to the cost C of a margin violation."""

    C: float

    def filled(self, covered: Covered, level: Array) -> Array:
        """Return whether water up to a mean level has at least this volume; never while heights sum to 0 or less."""
        wet = covered.heights > 0
        return np.multiply(self.C * covered.heights, level, out=np.zeros_like(covered.heights), where=wet) >= 1

    def level(self, covered: Covered) -> float:
        """Return the mean level at which exactly these rows are under water."""
        return 1 / (self.C * covered.heights)


@dataclass(frozen=True)
class DrawnWater:
    """The volume of water for which the optimum of C has the length that a mean of rows of this length gives it."""

    C: float
    length: float

    def filled(self, covered: Covered, level: Array) -> Array:
        """Return whether water up to a mean level has at least this volume."""
        return covered.mass * level * (self.C * self.length) >= 1

    def level(self, covered: Covered) -> float:
        """Return the mean level at which exactly these rows are under water."""
        return 1 / (self.C * self.length * covered.mass)


Amount = SlackWater | CostWater | DrawnWater


@dataclass(frozen=True)
class Basin:
    """The rows of a basin between `low` and `high`, sorted by height; rows below are under water, rows above are dry."""

    heights: Array
    weights: Array
    low: float
    high: float
    mass: float  # of the rows below
    sum: float  # of weight times height of the rows below

    @cached_property
    def masses(self) -> Array:
        """The weight under water when the water covers none, one, two, ... of the rows."""
        return self.mass + np.concatenate([[0.0], np.cumsum(self.weights)])

    def heights_at(self, mass: Any) -> Array:
        """Return the sum of the weighted heights of the lowest rows with this total weight."""
        sums = self.sum + np.concatenate([[0.0], np.cumsum(self.weights * self.heights)])
        return np.interp(mass, self.masses, sums)

    def least_level(self, mass: Any) -> Array:
        """Return the lowest level that covers this weight."""
        return np.concatenate([[self.low], self.heights])[np.searchsorted(self.masses, mass, "left")]

    def greatest_level(self, mass: Array) -> Array:
        """Return the highest level that covers no more than this weight."""
        return np.concatenate([self.heights, [self.high]])[np.searchsorted(self.masses, mass, "right") - 1]


def fill(basins: Sequence[tuple[Array, Array]], amount: Amount, guess: Sequence[float] | None = None) -> WaterSurface:
    """Return the surface over basins of (heights, weights), in linear time: only rows near the levels are sorted.

    The levels are searched near `guess`, or near those of a sample (as in Floyd & Rivest's selection). If they lie outside
    the search window, the window is widened, in the end to all rows.
    """
    share = NEAR
    if guess is None and max(heights.size for heights, _ in basins) > SAMPLE:
        guess, share = fill([_sample(*basin) for basin in basins], amount).levels, SAMPLED
    while guess is not None and share < 1.0:
        windows = [_window(heights, level, share) for (heights, _), level in zip(basins, guess, strict=True)]
        surface = _surface([_between(*basin, *window) for basin, window in zip(basins, windows, strict=True)], amount)
        if all(low < level < high for level, (low, high) in zip(surface.levels, windows, strict=True)):
            return surface
        share *= 4
    return _surface([_between(*basin, -np.inf, np.inf) for basin in basins], amount)


def _sample(heights: Array, weights: Array) -> tuple[Array, Array]:
    """Return evenly spaced rows, with weights that sum to the weight of all rows."""
    some = slice(None, None, -(-heights.size // SAMPLE))
    return heights[some], weights[some] * (weights.sum() / weights[some].sum())


def _window(heights: Array, level: float, share: float) -> tuple[float, float]:
    """Return a window around a level, as a share of the spread of heights."""
    some = heights[:: -(-heights.size // SAMPLE)]
    reach = share * float(np.abs(some - level).mean())
    return level - reach, level + reach


def _between(heights: Array, weights: Array, low: float, high: float) -> Basin:
    """Return the rows of a basin from low to high, with the sums over those below."""
    below = heights < low
    rows = np.flatnonzero((heights <= high) & ~below)
    rows = rows[np.argsort(heights[rows])]
    wet = weights * below
    return Basin(heights[rows], weights[rows], low, high, float(wet.sum()), float(wet @ heights))


def _surface(basins: list[Basin], amount: Amount) -> WaterSurface:
    """Return the surface, searched among the weights at which the water reaches another row."""
    mass = np.unique(np.concatenate([basin.masses for basin in basins]))
    most = min(basin.masses[-1] for basin in basins)
    mass = mass[(mass >= max(basin.mass for basin in basins)) & (mass <= most) & (mass > 0)]
    covered = Covered(len(basins) * mass, np.sum([basin.heights_at(mass) for basin in basins], axis=0))
    least = np.array([basin.least_level(mass) for basin in basins])
    greatest = np.array([basin.greatest_level(mass) for basin in basins])
    enough = amount.filled(covered, greatest.mean(axis=0))
    if not enough.any():
        return _flood(basins, float(most))
    at = int(enough.argmax())
    here = Covered(float(covered.mass[at]), float(covered.heights[at]))
    # of rows exactly at a level only a part of the weight may count, which changes neither level nor volume
    extra = len(basins) * amount.level(here) - float(least[:, at].sum())
    return WaterSurface(_raised(least[:, at].tolist(), greatest[:, at].tolist(), max(extra, 0.0)), here)


def _flood(basins: list[Basin], most: float) -> WaterSurface:
    """Return the surface with the whole smallest basin under water: its level is infinite, others cover as much weight."""
    levels = [np.inf if basin.masses[-1] <= most else float(basin.least_level(most)) for basin in basins]
    return WaterSurface(tuple(levels), Covered(len(basins) * most, sum(float(basin.heights_at(most)) for basin in basins)))


def _raised(least: list[float], greatest: list[float], extra: float) -> tuple[float, ...]:
    """Return one or two levels whose sum is raised by `extra`: equally, unless one of them reaches its greatest level.

    That level is then the height of a row to the last bit, so that rounding does not decide whether the row is under water.
    """
    if len(least) == 1:
        return (least[0] + extra,)
    for one, other in ((0, 1), (1, 0)):
        room = greatest[one] - least[one]
        if extra / 2 > room:
            levels = {one: greatest[one], other: least[other] + extra - room}
            return levels[0], levels[1]
    return least[0] + extra / 2, least[1] + extra / 2
