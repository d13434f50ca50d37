"""The rounds of the stochastic batch perceptron (Cotter, Shalev-Shwartz & Srebro 2012), kernelised.

    maximise over |w| <= 1, b, and slacks xi >= 0 with sum xi <= n nu:    min over i of  y_i (<w, phi(x_i)> + b) + xi_i

A round pours the slack as water over the margins (`water.fill`), draws rows that are under water and moves w towards them.
The responses of all rows are kept, so a round costs n kernel evaluations for each row drawn. The predictor is w / level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..keeping import Saved, StateError, restore_rng, rng_state
from ..kernels import Array
from ..model import Status
from ..rows.protocol import Rows
from ..rows.responses import Responses
from ..rows.threads import one_blas_thread
from .water import Amount, CostWater, Covered, DrawnWater, SlackWater, WaterSurface, fill

#: largest batch as a share of all rows; a larger one gives small problems too few rounds
LARGEST_BATCH = 1 / 32
#: largest batch as a share of all rows drawn so far. The rows of a batch are chosen by the same responses, so some of them
#: add little to the others: with a larger share, a draw is worth less. A smaller one makes more rounds
LARGEST_MOVE = 1 / 256
#: weight of a round in the average of iterates, in units of its share of all draws: draw i weighs about i^(RECENT - 1).
#: With a smaller value, early iterates, which are poor, have more weight
RECENT = 4.0
#: until this many draws, or as many as there are rows, the bias moves from the one with the fewest errors to that of the
#: water, which is poor for a w of few rows. With a larger value the bias of the optimum is reached later
EARLY = 8192


@dataclass(frozen=True)
class Iterate:
    """A w of any length: signed coefficients, the responses of all rows, and the water over the heights y f / |w|."""

    coef: Array
    values: Array
    heights: list[Array]  # of each basin
    surface: WaterSurface
    cut: float | None = None  # where the class changes, if not at the threshold of the water

    @property
    def threshold(self) -> float:
        """The output, for a w of length 1, at which the class changes: both basins then have the same level."""
        return float(self.surface.levels[0] - self.surface.levels[-1]) / 2 if np.isfinite(self.surface.level) else 0.0

    @property
    def predictor(self) -> tuple[float, float]:
        """The factor of w in w / (|w| level), and the bias; a level that is no margin leaves w / |w|."""
        length, level = np.sqrt(max(self.coef @ self.values, 0.0)), self.surface.level
        if not length:
            return 0.0, 0.0
        scale = 1 / level if 0 < level < np.inf else 1.0
        return float(scale / length), -scale * (self.threshold if self.cut is None else self.cut)


class DrawOrder:
    """The rows of one basin, and the random order in which they are drawn."""

    def __init__(self, rows: Array, y: Array, weights: Array, rng: np.random.Generator) -> None:
        self.rows, self.rng = rows, rng
        self.signs, self.weights = y[rows], weights[rows]
        self.order, self.at = self.rng.permutation(rows.size), 0

    def independent(self, heights: Array, level: float, count: int) -> Array:
        """Return the places of `count` rows under water, drawn independently."""
        return self.rng.choice(np.flatnonzero(heights <= level), count)

    def in_turn(self, heights: Array, level: float, count: int) -> Array:
        """Return the places of the next `count` rows under water in this order, or of all if there are fewer."""
        found: list[Array] = []
        missing, left = count, heights.size
        while missing and left:
            ahead = self.order[self.at : self.at + min(16 * count, left)]
            wet = np.flatnonzero(heights[ahead] <= level)[:missing]
            step = int(wet[-1]) + 1 if wet.size == missing else ahead.size
            found.append(ahead[wet])
            missing, left, self.at = missing - wet.size, left - step, self.at + step
            if self.at == self.order.size:
                self.order, self.at = self.rng.permutation(self.order), 0
        return np.concatenate(found)

    def state(self) -> dict[str, Any]:
        """Return the state for a keeper."""
        return {"order": self.order.copy(), "at": self.at}

    def restore(self, saved: Saved) -> None:
        """Continue from a saved state."""
        size = self.rows.size
        self.order, self.at = saved.places("order", size), saved.count("at", most=max(size - 1, 0))
        if not np.array_equal(np.sort(self.order), np.arange(size)):
            raise StateError("an order that does not have each row once")

    def shares(self, places: Array, wet: Array) -> Array:
        """Return the signed weights of drawn rows, relative to the mean weight of rows under water."""
        return self.signs[places] * self.weights[places] / self.weights[wet].mean()


def fewest_errors(basins: list[DrawOrder], heights: list[Array]) -> float:
    """Return the output at which the class has to change for the fewest errors, by weight."""
    signs, weights = (np.concatenate([getattr(basin, name) for basin in basins]) for name in ("signs", "weights"))
    outputs = np.concatenate(heights) * signs
    order = np.argsort(outputs)
    outputs, weights = outputs[order], (signs * weights)[order]
    middles = (outputs[1:] + outputs[:-1]) / 2
    errors = np.where(outputs[1:] > outputs[:-1], np.cumsum(weights)[:-1], np.inf)  # positive below, less negative below
    return float(middles[errors.argmin()]) if np.isfinite(errors).any() else float(outputs[0])


class BatchPerceptron:
    """The state of a run: the last iterate, the sums over all iterates, and the basins to draw rows from.

    `validation` are rows that are not learned from. With `bias` each class is a basin. With `root` the steps are those of
    the paper; otherwise w is the mean of all draws. Either way the result is an average of iterates, with more weight
    on later ones.
    """

    def __init__(
        self,
        rows: Rows,
        y: Array,
        weights: Array,
        rng: np.random.Generator,
        *,
        validation: Array,
        bias: bool,
        batch: int,
        root: bool,
        C: float,
        nu: float | None,
    ) -> None:
        self.y, self.rng, self.root = y, rng, root
        learned = np.ones(y.size, dtype=bool)
        learned[validation] = False
        sides = [np.flatnonzero(learned & (y == sign)) for sign in (1, -1)]
        self.basins = [DrawOrder(side, y, weights, rng) for side in (sides if bias else [np.concatenate(sides)])]
        self.learned = sum(float(basin.weights.sum()) for basin in self.basins)
        self.C, self.slack = C, None if nu is None else SlackWater(nu * self.learned)
        self.batch = batch if root else max(min(batch, int(LARGEST_BATCH * y.size)), 1)
        self.responses = Responses(rows, 1)
        flood = WaterSurface((np.inf,) * len(self.basins), Covered(self.learned, 0.0))
        heights = [np.zeros(basin.rows.size) for basin in self.basins]
        self.last = Iterate(np.zeros(y.size), self.values, heights, flood)
        self.sums = np.zeros((2, y.size))  # sums of coefficients and responses over the iterates
        self.t = self.drawn = 0  # rounds, and rows drawn in them
        self.before = 0  # rounds before this run

    def begin_from(self, coef: Array, drawn: int) -> None:
        """Start from the coefficients of a predictor, as after a run that has drawn this many rows."""
        support = np.flatnonzero(coef)
        self.responses.add_rows(support, coef[support, None], keep=False)
        if not coef @ self.values > 0:
            self.responses.values[:] = 0.0
            return
        length, self.drawn = np.sqrt(coef @ self.values), drawn
        if self.root:
            self.before = max(drawn // self.batch, 1)
            scale, weight = 1 / length, self.before * (self.before + 1) / 2
        else:  # w is the sum of the draws, and their weights are 1 on average
            scale, weight = drawn / np.abs(coef).sum(), 1.0
        self.sums = weight / length * np.stack([coef, self.values])
        self.responses.values *= scale
        self.last = self.iterate(coef * scale, self.values, self.drawn_water(float(scale * length)))

    def run(self, ending: Callable[[], Status | None], report: Callable[[], None]) -> Status:
        """Run rounds until `ending` returns how the run ends."""
        with one_blas_thread():  # inner products are faster in one thread
            while (status := ending()) is None:
                self.round()
                report()
        return status

    @property
    def values(self) -> Array:
        """The responses of all rows to the last iterate."""
        return self.responses.values[:, 0]

    @property
    def amount(self) -> Amount:
        """The water of a result: that of nu or that of C."""
        return CostWater(self.C) if self.slack is None else self.slack

    @property
    def progress(self) -> float:
        """The rows drawn as a share of the first ones, from those of one draw up to 1; always 1 in the paper's form."""
        return 1.0 if self.root else min(max(self.drawn, 1) / min(EARLY, self.y.size), 1.0)

    def round(self) -> None:
        """Draw rows under water, move w towards them, and compute the new water level."""
        self.t += 1
        count = self.batch if self.root else self.even_batch()
        rows, step = self.draw(count)
        self.drawn += count
        step = step / np.sqrt(self.before + self.t) if self.root else step * count
        coef = self.last.coef
        coef[rows] += step
        self.responses.add_rows(rows, step[:, None], keep=False)  # a row is drawn again too late for a cache
        length = np.sqrt(max(coef @ self.values, np.finfo(float).tiny))
        if self.root:
            coef /= max(length, 1.0)
            self.responses.values /= max(length, 1.0)
            self.sums += (self.before + self.t) * np.stack([coef, self.values])
        else:
            self.average(coef, length, min(RECENT * count / self.drawn, 1.0))
        self.last = self.iterate(coef, self.values, self.drawn_water(float(length)))

    def drawn_water(self, length: float) -> Amount:
        """Return the water for the next draws, by the length of the sum of all; that of a result in the paper's form."""
        return self.amount if self.root or self.slack is not None else DrawnWater(self.C, length / self.drawn)

    def even_batch(self) -> int:
        """Return the size of the next batch, a multiple of the number of basins.

        The first batches are small: the first rows matter most, and each row improves the choice of the next.
        """
        k = len(self.basins)
        return -(-min(int(LARGEST_MOVE * self.drawn) or 1, self.batch) // k) * k

    def average(self, coef: Array, length: float, share: float) -> None:
        """Move the average towards an iterate, scaled to length 1, by a share of the way."""
        self.sums *= 1 - share
        self.sums[0] += share / length * coef
        self.sums[1] += share / length * self.values

    def draw(self, count: int) -> tuple[Array, Array]:
        """Return rows under water, half of them from each of two basins, and the step towards their mean."""
        rows, steps = [], []
        k = len(self.basins)
        counts = self.rng.multinomial(count, [1 / k] * k) if self.root else [count // k] * k
        for basin, heights, level, count in zip(
            self.basins, self.last.heights, self.last.surface.levels, counts, strict=True
        ):
            places = (basin.independent if self.root else basin.in_turn)(heights, level, count)
            rows.append(basin.rows[places])
            share = count / sum(counts) / max(places.size, 1)
            steps.append(share * basin.shares(places, heights <= level))
        unique, place = np.unique(np.concatenate(rows), return_inverse=True)
        return unique, np.bincount(place, np.concatenate(steps))

    def iterate(self, coef: Array, values: Array, amount: Amount) -> Iterate:
        """Return a w with its water surface, searched near that of the last one."""
        length = np.sqrt(max(coef @ values, np.finfo(float).tiny))
        heights = [values[basin.rows] * (basin.signs / length) for basin in self.basins]
        guess = self.last.surface.levels if np.isfinite(self.last.surface.level) else None
        filled = [(h, basin.weights) for h, basin in zip(heights, self.basins, strict=True)]
        return Iterate(coef, values, heights, fill(filled, amount, guess))

    def state(self) -> dict[str, Any]:
        """Return the state that the next round depends on, for a keeper."""
        last = self.last
        return {
            "t": self.t,
            "drawn": self.drawn,
            "before": self.before,
            "spent": self.responses.rows.spent,
            "rng": rng_state(self.rng),
            "orders": [basin.state() for basin in self.basins],
            "coef": last.coef.copy(),
            "responses": self.responses.values.copy(),
            "heights": np.concatenate(last.heights),
            "levels": np.array(last.surface.levels),
            "covered": np.array(last.surface.covered, dtype=np.float64),
            "sums": self.sums.copy(),
        }

    def restore(self, saved: Saved) -> None:
        """Continue from a saved state, with the same draws as the run that saved it."""
        n, sizes = self.y.size, [basin.rows.size for basin in self.basins]
        self.t, self.drawn, self.before = (saved.count(name) for name in ("t", "drawn", "before"))
        self.responses.rows.spent = saved.count("spent")
        restore_rng(self.rng, saved.part("rng"))
        orders = saved.parts("orders")
        if len(orders) != len(self.basins):
            raise StateError(f"{len(orders)} orders for {len(self.basins)} groups of rows")
        for basin, order in zip(self.basins, orders, strict=True):
            basin.restore(order)
        self.responses.values, self.sums = saved.array("responses", n, 1), saved.array("sums", 2, n)
        heights = np.split(saved.array("heights", sum(sizes)), np.cumsum(sizes)[:-1])
        levels = tuple(saved.array("levels", len(sizes), finite=False).tolist())
        if self.root and not all((h <= level).any() for h, level in zip(heights, levels, strict=True)):
            raise StateError("a group of rows none of which is under water")
        surface = WaterSurface(levels, Covered(*saved.array("covered", 2).tolist()))
        self.last = Iterate(saved.array("coef", n), self.values, heights, surface)

    @property
    def under_water(self) -> int:
        """The number of rows under water."""
        levels = self.last.surface.levels
        return sum(int(np.count_nonzero(h <= level)) for h, level in zip(self.last.heights, levels, strict=True))

    def objective(self, surface: WaterSurface) -> float:
        """Return 1/2 |w|^2 + C sum of losses of the predictor w / level; with nu the length of the predictor, 1 / level."""
        if not 0 < surface.level < np.inf:
            return np.inf
        scale = 1.0 / surface.level
        return scale if self.slack is not None else 0.5 * scale**2 + self.C * scale * surface.volume

    def result(self) -> Iterate:
        """Return the iterate to predict with, an average."""
        found, share = self.iterate(self.sums[0], self.sums[1], self.amount), self.progress
        if share == 1.0 or len(self.basins) == 1 or self.slack is not None:
            return found
        cut = (1 - share) * fewest_errors(self.basins, found.heights) + share * found.threshold
        return replace(found, cut=cut)

    def check_slack(self, iterate: Iterate) -> None:
        """Raise ValueError for a nu without a solution, or with the same solution as any larger nu."""
        if self.slack is None:
            return
        nu, levels = self.slack.volume / self.learned, iterate.surface.levels
        basins = list(zip(iterate.heights, self.basins, levels, strict=True))
        if iterate.surface.level <= 0:
            short = sum(basin.weights @ np.maximum(-heights, 0.0) for heights, basin, _ in basins) / self.learned
            raise ValueError(f"nu={nu:.6g} is too little slack to separate these rows; it must be above {short:.3g}")
        if any((heights <= level).all() for heights, _, level in basins):
            tops = [heights[heights <= level].max() for heights, _, level in basins]
            most = sum(b.weights @ np.maximum(top - h, 0.0) for (h, b, _), top in zip(basins, tops, strict=True))
            raise ValueError(
                f"nu={nu:.6g} is so much slack that it covers a whole class; for these "
                f"rows nu must be between 0 and {most / self.learned:.3g}"
            )
