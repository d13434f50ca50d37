"""The stochastic batch perceptron (Cotter, Shalev-Shwartz & Srebro 2012), kernelised.

    maximise over |w| <= 1, b, and slacks xi >= 0 with sum xi <= n nu:    min over i of  y_i (<w, phi(x_i)> + b) + xi_i

A round pours the slack as water over the responses (`water.fill`), draws rows that are under water and steps w towards
them. The responses of all rows are at hand, so a round costs n kernel evaluations for each row drawn and no more.
The predictor is w / gamma, gamma the water's level.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np

from ..kernels import Array
from ..limits import check_time_limit
from ..model import Status
from ..rows.responses import Responses
from ..rows.threads import one_blas_thread
from ..solvers.water import Amount, Cost, Covered, Slack, Surface, fill
from .frames.per_output import Binary, BinaryTrainer, Solution

STEPS = ("mean", "root")
#: rounds between looks at the objective: enough to draw this part of the rows under water, and a few at least
LOOK_EVERY, FEWEST_ROUNDS = 1 / 4, 32
#: looks before the gain of half of them means something
FEWEST_LOOKS = 16
#: what `tol` is multiplied with to bound the gain of the second half of the rounds
GAIN = 5.0
#: the largest part of all rows to draw at once: few rows need many small rounds, not a few of everything
LARGEST_BATCH = 1 / 32


@dataclass(frozen=True)
class SBP(BinaryTrainer):
    """Stochastic batch perceptron, with an unregularised bias unless `bias` is False.

    `nu` is the slack per row, in the units of a w of length 1. None, the default, takes the slack that belongs to C: each
    round fills up to the level of the best scale of its w (`water.Cost`), so that the optimum is that of
    1/2 |w|^2 + C sum_i max(0, 1 - y_i f(x_i)) and no search over nu is needed.

    `batch` rows are drawn in a round, at first fewer. `batch=1` is the paper's algorithm: independent draws, steps of
    1 / sqrt(t) in the unit ball, and the average of all iterates (weighted by t, which is better than equal weights). With
    more, w is the mean of all draws, and every row under water is drawn once before any is again, which needs fewer
    evaluations. `steps` chooses between these two, "root" and "mean", for any batch.

    A run ends when the second half of its rounds has improved the objective by less than 5 `tol`, relatively, which leaves
    about twice as much to gain (more where C is large and classes overlap: `smo` is the better choice there); at `max_iter`
    rounds; after `time_limit` seconds; or, with `early_stopping`, when the error on a `validation_fraction` of the rows,
    which are then not learned from, has not fallen at `n_iter_no_change` looks. Limits are for each output.
    """

    C: float = 1.0
    nu: float | None = None
    bias: bool = True
    batch: int = 64
    steps: str | None = None
    tol: float = 1e-3
    max_iter: int = -1
    time_limit: float | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"batch must be 1 row at least, not {self.batch!r}")
        if self.steps not in (None, *STEPS):
            raise ValueError(f"unknown steps {self.steps!r}; there are {list(STEPS)}, or None for what suits the batch")
        if self.nu is not None and not 0 <= self.nu < np.inf:
            raise ValueError(f"nu must be a number from 0 up, or None for the one that belongs to C, not {self.nu!r}")
        check_time_limit(self.time_limit)
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1, not {self.validation_fraction!r}")
        if self.n_iter_no_change < 1:
            raise ValueError(f"n_iter_no_change must be 1 at least, not {self.n_iter_no_change!r}")

    def solve(self, problem: Binary) -> Solution:
        """Rounds until one of the endings."""
        run = _Run(self, problem)
        watch = _Watch(self, run)
        with one_blas_thread():  # waking threads for inner products would cost more than they do
            while (status := watch.ending()) is None:
                run.round()
                problem.report(watch.progress())
        return watch.solution(status)


@dataclass(frozen=True)
class _Iterate:
    """A w of any length: signed coefficients, the responses of all rows, and the water over the heights y f / |w|."""

    coef: Array
    values: Array
    heights: list[Array]  # by basin
    surface: Surface

    @property
    def predictor(self) -> tuple[float, float]:
        """What to multiply w with to get w / (|w| level), and the bias with which both basins have that level."""
        length, levels = np.sqrt(max(self.coef @ self.values, 0.0)), self.surface.levels
        if not length or not 0 < self.surface.level < np.inf:
            return 0.0, 0.0
        return float(1 / (length * self.surface.level)), float((levels[-1] - levels[0]) / 2 / self.surface.level)


class _Basin:
    """The rows of one basin, and a random order in which each has its turn to be drawn."""

    def __init__(self, rows: Array, problem: Binary) -> None:
        self.rows, self.rng = rows, problem.rng
        self.signs, self.weights = problem.y[rows], problem.weights[rows]
        self.order, self.at = self.rng.permutation(rows.size), 0

    def independent(self, heights: Array, level: float, count: int) -> Array:
        """Places of `count` rows under water, drawn anew."""
        return self.rng.choice(np.flatnonzero(heights <= level), count)

    def in_turn(self, heights: Array, level: float, count: int) -> Array:
        """Places of the next `count` rows that are under water, fewer where a whole order has no more."""
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

    def shares(self, places: Array, wet: Array) -> Array:
        """The signed weights of drawn rows, for rows under water of weight 1 on average."""
        return self.signs[places] * self.weights[places] / self.weights[wet].mean()


class _Run:
    """The rounds: the last iterate, the sums of all, and the basins to draw from."""

    def __init__(self, settings: SBP, problem: Binary) -> None:
        self.y, self.weights, self.rng = problem.y, problem.weights, problem.rng
        sides = [self.rng.permutation(np.flatnonzero(self.y == sign)) for sign in (1, -1)]
        spared = [int(settings.early_stopping * settings.validation_fraction * rows.size) for rows in sides]
        self.judges = np.concatenate([rows[:count] for rows, count in zip(sides, spared, strict=True)])
        sides = [np.sort(rows[count:]) for rows, count in zip(sides, spared, strict=True)]
        self.basins = [_Basin(rows, problem) for rows in (sides if settings.bias else [np.concatenate(sides)])]
        self.learned = sum(float(basin.weights.sum()) for basin in self.basins)
        self.amount: Amount = Cost(settings.C) if settings.nu is None else Slack(settings.nu * self.learned)
        self.root = (settings.steps or ("root" if settings.batch == 1 else "mean")) == "root"
        self.batch = settings.batch if self.root else max(min(settings.batch, int(LARGEST_BATCH * self.y.size)), 1)
        self.responses = Responses(problem.rows, 1)
        flood = Surface((np.inf,) * len(self.basins), Covered(self.learned, 0.0))
        heights = [np.zeros(basin.rows.size) for basin in self.basins]
        self.last = _Iterate(np.zeros(self.y.size), self.values, heights, flood)
        self.sums = np.zeros((2, self.y.size))  # of coefficients and responses, over the iterates
        self.t = 0

    @property
    def values(self) -> Array:
        """The responses of all rows to the last iterate."""
        return self.responses.values[:, 0]

    def round(self) -> None:
        """Draw rows under water, step towards them, and let the water find its level."""
        self.t += 1
        # the first rows say most, and one informs the choice of the next: round t draws t rows until that is the batch
        count = self.batch if self.root else min(self.t, self.batch)
        rows, step = self.draw(count)
        step = step / np.sqrt(self.t) if self.root else step * (count * self.last.surface.covered.mass)
        coef = self.last.coef
        coef[rows] += step
        self.responses.add_rows(rows, step[:, None], keep=False)  # they come back late: no cache would hold them
        if self.root:
            length = max(np.sqrt(coef @ self.values), 1.0)
            coef /= length
            self.responses.values /= length
            self.sums += self.t * np.stack([coef, self.values])
        self.last = self.iterate(coef, self.values)

    def draw(self, count: int) -> tuple[Array, Array]:
        """Rows under water, half of them from each of two basins, and the step towards their mean."""
        rows, steps = [], []
        k = len(self.basins)
        counts = self.rng.multinomial(count, [1 / k] * k) if self.root else [-(-count // k)] * k
        for basin, heights, level, count in zip(
            self.basins, self.last.heights, self.last.surface.levels, counts, strict=True
        ):
            places = (basin.independent if self.root else basin.in_turn)(heights, level, count)
            rows.append(basin.rows[places])
            share = count / sum(counts) / max(places.size, 1)
            steps.append(share * basin.shares(places, heights <= level))
        unique, place = np.unique(np.concatenate(rows), return_inverse=True)
        return unique, np.bincount(place, np.concatenate(steps))

    def iterate(self, coef: Array, values: Array) -> _Iterate:
        """A w with its water; the levels are looked for near those of the last one."""
        length = np.sqrt(max(coef @ values, np.finfo(float).tiny))
        heights = [values[basin.rows] * (basin.signs / length) for basin in self.basins]
        guess = self.last.surface.levels if np.isfinite(self.last.surface.level) else None
        filled = [(h, basin.weights) for h, basin in zip(heights, self.basins, strict=True)]
        return _Iterate(coef, values, heights, fill(filled, self.amount, guess))

    @property
    def wet(self) -> int:
        """The number of rows under water."""
        levels = self.last.surface.levels
        return sum(int(np.count_nonzero(h <= level)) for h, level in zip(self.last.heights, levels, strict=True))

    def objective(self, surface: Surface) -> float:
        """1/2 |w|^2 + C sum of losses, for the predictor w / level; with nu, its length, which is 1 / level."""
        if not 0 < surface.level < np.inf:
            return np.inf
        scale = 1.0 / surface.level
        return scale if isinstance(self.amount, Slack) else 0.5 * scale**2 + self.amount.C * scale * surface.volume

    def result(self) -> _Iterate:
        """The iterate to predict with: the paper's average, or the last, which is a mean by itself."""
        return self.iterate(*self.sums) if self.root else self.last

    def check_slack(self, iterate: _Iterate) -> None:
        """Raise ValueError for a nu that has no solution, or the same one as any larger nu."""
        if not isinstance(self.amount, Slack):
            return
        nu, levels = self.amount.volume / self.learned, iterate.surface.levels
        basins = list(zip(iterate.heights, self.basins, levels, strict=True))
        if iterate.surface.level <= 0:
            short = sum(basin.weights @ np.maximum(-heights, 0.0) for heights, basin, _ in basins) / self.learned
            raise ValueError(f"nu={nu:.6g} is too little slack to part these rows; it must be above {short:.3g}")
        if any((heights <= level).all() for heights, _, level in basins):
            tops = [heights[heights <= level].max() for heights, _, level in basins]
            most = sum(b.weights @ np.maximum(top - h, 0.0) for (h, b, _), top in zip(basins, tops, strict=True))
            raise ValueError(
                f"nu={nu:.6g} is so much slack that it covers a whole class, and more would change nothing; for these "
                f"rows it lies between 0 and {most / self.learned:.3g}"
            )


class _Watch:
    """Looks at the run now and then, and says when it ends."""

    def __init__(self, settings: SBP, run: _Run) -> None:
        self.settings, self.run = settings, run
        self.next_look = FEWEST_ROUNDS
        self.limit = settings.max_iter if settings.max_iter >= 0 else np.inf
        self.start = monotonic()
        self.objectives: list[float] = []  # the lowest up to each look
        self.errors: list[float] = []

    def ending(self) -> Status | None:
        """How the run ends here, or None."""
        if self.run.t >= self.limit:
            return Status.MAX_ITER
        if self.settings.time_limit is not None and monotonic() - self.start >= self.settings.time_limit:
            return Status.TIME_LIMIT
        if self.run.t < self.next_look:
            return None
        self.look()
        if self.settings.early_stopping and self.stable():
            return Status.STABLE
        return Status.CONVERGED if self.gain() <= GAIN * self.settings.tol else None

    def look(self) -> None:
        """Note the objective and the error on the rows that judge."""
        iterate = self.run.result()
        self.next_look = self.run.t + max(int(LOOK_EVERY * self.run.wet / self.run.batch), FEWEST_ROUNDS)
        self.objectives.append(min([self.run.objective(iterate.surface), *self.objectives[-1:]]))
        if self.run.judges.size:
            self.errors.append(self.error(iterate))

    def error(self, iterate: _Iterate) -> float:
        """The weighted share of the judging rows on the wrong side."""
        judges, (scale, bias) = self.run.judges, iterate.predictor
        wrong = self.run.y[judges] * (scale * iterate.values[judges] + bias) <= 0
        return float(np.average(wrong, weights=self.run.weights[judges]))

    def stable(self) -> bool:
        """Whether the last looks have seen no lower error than those before."""
        recent = self.settings.n_iter_no_change
        return len(self.errors) > recent and min(self.errors[-recent:]) >= min(self.errors[:-recent])

    def gain(self) -> float:
        """What the second half of the looks has improved the objective by, relatively."""
        half = len(self.objectives) // 2
        if len(self.objectives) < FEWEST_LOOKS:
            return np.inf
        if not np.isfinite(self.objectives[half - 1]):  # no w so far has a margin, and after many looks none will
            return 0.0 if np.isinf(self.objectives[-1]) and half > FEWEST_LOOKS else np.inf
        return (self.objectives[half - 1] - self.objectives[-1]) / self.objectives[-1]

    def progress(self) -> float:
        """The share done, by the ending that is nearest."""
        seconds = (monotonic() - self.start) / (self.settings.time_limit or np.inf)
        return min(max(self.run.t / max(self.limit, 1), seconds, GAIN * self.settings.tol / max(self.gain(), 1e-12)), 1.0)

    def solution(self, status: Status) -> Solution:
        """The predictor w / level, and the bias that makes both levels one."""
        iterate = self.run.result()
        if status is not Status.MAX_ITER:
            self.run.check_slack(iterate)
        scale, bias = iterate.predictor
        return Solution(scale * iterate.coef, bias, self.run.t, self.gain(), status)
