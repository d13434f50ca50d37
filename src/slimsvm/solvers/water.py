"""Water filling: how far a volume of water rises over rows of heights c, in one basin or in two.

The stochastic batch perceptron maximises its margin after a total slack is shared out so that the worst rows gain most,
which is water poured over the responses c_i = y_i <w, phi(x_i)> (Cotter, Shalev-Shwartz & Srebro 2012, section 3.2). With
an unregularised bias the two classes are two basins, joined so that the same weight of rows is under water in each (3.6).

With a mean level g of the basins, M the weight of all rows under water and S the sum of their weighted heights:

    slack:  M g - S = volume      the paper's problem, volume = n nu
    cost:   C S g = 1             the slack that belongs to C at the best scale of w

The second is 1/2 s^2 + C sum_i max(0, 1 - s c_i) at its minimum over s, where the level is 1 / s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..kernels import Array

#: rows of the sample that a first guess comes from, and of basins that are sorted as they are
SAMPLE = 512
#: the part of the spread of heights around a guess in which to look first, for a given guess and a sampled one
NEAR, SAMPLED = 0.04, 0.15


class Covered(NamedTuple):
    """What is under water in all basins: the weight of the rows, and the sum of their weighted heights."""

    mass: Any  # a number or an array of them
    heights: Any


@dataclass(frozen=True)
class Surface:
    """The water's surface: a level for each basin, and what they cover."""

    levels: tuple[float, ...]
    covered: Covered

    @property
    def level(self) -> float:
        """The margin after slack: the mean of the levels, since a bias moves one up as far as the other down."""
        return float(np.mean(self.levels))

    @property
    def volume(self) -> float:
        """The water in all basins together."""
        return float(self.covered.mass * self.level - self.covered.heights)


@dataclass(frozen=True)
class Slack:
    """Water of a given volume."""

    volume: float

    def filled(self, covered: Covered, level: Array) -> Array:
        """Whether water up to that mean level is enough."""
        return covered.mass * level - covered.heights >= self.volume

    def level(self, covered: Covered) -> float:
        """The mean level at which the water covers just that."""
        return (self.volume + covered.heights) / covered.mass


@dataclass(frozen=True)
class Cost:
    """As much water as belongs to the cost C of a margin violation."""

    C: float

    def filled(self, covered: Covered, level: Array) -> Array:
        """Whether water up to that mean level is enough, which it is not before the heights sum to more than 0."""
        wet = covered.heights > 0
        return np.multiply(self.C * covered.heights, level, out=np.zeros_like(covered.heights), where=wet) >= 1

    def level(self, covered: Covered) -> float:
        """The mean level at which the water covers just that."""
        return 1 / (self.C * covered.heights)


Amount = Slack | Cost


@dataclass(frozen=True)
class Basin:
    """Rows of a basin between `low` and `high`, in rising order; those below are under water, those above are dry."""

    heights: Array
    weights: Array
    low: float
    high: float
    mass: float  # of the rows below
    sum: float  # of weight times height of the rows below

    @cached_property
    def masses(self) -> Array:
        """The weight under water when the water just covers none, one, two, ... of the rows."""
        return self.mass + np.concatenate([[0.0], np.cumsum(self.weights)])

    def heights_at(self, mass: Any) -> Array:
        """The weighted heights of the lowest rows of that weight."""
        sums = self.sum + np.concatenate([[0.0], np.cumsum(self.weights * self.heights)])
        return np.interp(mass, self.masses, sums)

    def least_level(self, mass: Any) -> Array:
        """The lowest level that covers that weight."""
        return np.concatenate([[self.low], self.heights])[np.searchsorted(self.masses, mass, "left")]

    def greatest_level(self, mass: Array) -> Array:
        """The highest level that covers no more than that weight."""
        return np.concatenate([self.heights, [self.high]])[np.searchsorted(self.masses, mass, "right") - 1]


def fill(basins: Sequence[tuple[Array, Array]], amount: Amount, guess: Sequence[float] | None = None) -> Surface:
    """The surface over basins of (heights, weights), in linear time: only rows near the levels are sorted.

    Near which levels, `guess` says, the levels of similar heights, or a sample (as in Floyd & Rivest's selection). Where
    the surface is not among these rows, the search takes in more of them, in the end all.
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
    """Every so many-th row, with the weight of all."""
    some = slice(None, None, -(-heights.size // SAMPLE))
    return heights[some], weights[some] * (weights.sum() / weights[some].sum())


def _window(heights: Array, level: float, share: float) -> tuple[float, float]:
    """A part of the heights' spread around a level."""
    some = heights[:: -(-heights.size // SAMPLE)]
    reach = share * float(np.abs(some - level).mean())
    return level - reach, level + reach


def _between(heights: Array, weights: Array, low: float, high: float) -> Basin:
    """The rows of a basin from low to high, and the sums of those below."""
    below = heights < low
    rows = np.flatnonzero((heights <= high) & ~below)
    rows = rows[np.argsort(heights[rows])]
    wet = weights * below
    return Basin(heights[rows], weights[rows], low, high, float(wet.sum()), float(wet @ heights))


def _surface(basins: list[Basin], amount: Amount) -> Surface:
    """The surface, looked for among the weights at which the water meets another row."""
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
    # with rows just at a level the water may be met before their whole weight is wet, which changes no level or volume
    extra = len(basins) * amount.level(here) - float(least[:, at].sum())
    levels = least[:, at] + _shares(max(extra, 0.0), greatest[:, at] - least[:, at])
    return Surface(tuple(levels.tolist()), here)


def _flood(basins: list[Basin], most: float) -> Surface:
    """As much weight under water as the smallest basin has: its own level has no end, others cover their lowest rows."""
    levels = [np.inf if basin.masses[-1] <= most else float(basin.least_level(most)) for basin in basins]
    return Surface(tuple(levels), Covered(len(basins) * most, sum(float(basin.heights_at(most)) for basin in basins)))


def _shares(extra: float, room: Array) -> Array:
    """How far one or two levels rise when they rise by `extra` together: equally, where both have room."""
    if room.size == 1:
        return np.array([extra])
    first = min(max(extra / 2, extra - room[1]), room[0])
    return np.array([first, extra - first])
