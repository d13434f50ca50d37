"""The stochastic batch perceptron (Cotter, Shalev-Shwartz & Srebro 2012), kernelised.

    maximise over |w| <= 1, b, and slacks xi >= 0 with sum xi <= n nu:    min over i of  y_i (<w, phi(x_i)> + b) + xi_i

A round pours the slack as water over the margins (`water.fill`), draws rows that are under water and moves w towards them.
The responses of all rows are kept, so a round costs n kernel evaluations for each row drawn. The predictor is w / level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Limits, check_time_limit
from ..model import Status
from ..progress import GapProgress
from ..rows.protocol import Rows
from ..rows.responses import Responses
from ..rows.threads import one_blas_thread
from ..states import State, StateError, floats, go_on, pack, row_numbers, unpack
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
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


@dataclass
class SavedOrder:
    """The rows of a basin in the order in which they are drawn, and the place of the next."""

    order: Annotated[Array, row_numbers("n")]
    at: int


@dataclass(kw_only=True)
class SavedRun:
    """The state that the next round depends on."""

    t: int
    drawn: int
    before: int
    spent: int
    rng: np.random.Generator
    orders: list[SavedOrder]
    coef: Annotated[Array, floats("n")]
    responses: Annotated[Array, floats("n", 1)]
    heights: Annotated[Array, floats("rows")]
    levels: Annotated[Array, floats("basins", finite=False)]
    covered: Annotated[Array, floats(2)]
    sums: Annotated[Array, floats(2, "n")]


@dataclass
class SavedChecks:
    """The state of a run, and of the checks so far."""

    run: SavedRun
    next_check: int
    objectives: Annotated[Array, floats("", finite=False)]
    errors: Annotated[Array, floats("", finite=False)]


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

    def restore(self, saved: SavedOrder) -> None:
        """Continue from a saved state."""
        size = self.rows.size
        if not np.array_equal(np.sort(saved.order), np.arange(size)):
            raise StateError("an order that does not have each row once")
        if not saved.at <= max(size - 1, 0):
            raise StateError(f"a place beyond an order of {size} rows")
        self.order, self.at = saved.order, saved.at

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

    @property
    def state(self) -> SavedRun:
        """The state that the next round depends on, for a checkpoint."""
        last = self.last
        return SavedRun(
            t=self.t,
            drawn=self.drawn,
            before=self.before,
            spent=self.responses.rows.spent,
            rng=self.rng,
            orders=[SavedOrder(basin.order, basin.at) for basin in self.basins],
            coef=last.coef,
            responses=self.responses.values,
            heights=np.concatenate(last.heights),
            levels=np.array(last.surface.levels),
            covered=np.array(last.surface.covered, dtype=np.float64),
            sums=self.sums,
        )

    def restore(self, saved: SavedRun) -> None:
        """Continue from a saved state, with the same draws as the run that saved it."""
        if len(saved.orders) != len(self.basins):
            raise StateError(f"{len(saved.orders)} orders for {len(self.basins)} groups of rows")
        for basin, order in zip(self.basins, saved.orders, strict=True):
            basin.restore(order)
        self.t, self.drawn, self.before, self.responses.rows.spent = saved.t, saved.drawn, saved.before, saved.spent
        go_on(self.rng, saved.rng)
        self.responses.values, self.sums = saved.responses, saved.sums
        heights = np.split(saved.heights, np.cumsum([basin.rows.size for basin in self.basins])[:-1])
        levels = tuple(saved.levels.tolist())
        if self.root and not all((h <= level).any() for h, level in zip(heights, levels, strict=True)):
            raise StateError("a group of rows none of which is under water")
        surface = WaterSurface(levels, Covered(*saved.covered.tolist()))
        self.last = Iterate(saved.coef, self.values, heights, surface)

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


STEPS = ("mean", "root")
#: rows drawn between two checks of the objective: this share of the rows under water, and at least this many full batches;
#: more: fewer checks and a later end
CHECK_EVERY, FEWEST_BATCHES = 1 / 4, 32
#: checks before a run may end; more: a later and safer end
FEWEST_CHECKS = 16
#: the gain of the second half of the rounds may be `tol` times this; a larger factor ends earlier
GAIN = 5.0
#: the most rounds of a run without a limit, or the rounds that draw each row this many times, whichever is more. With a
#: large C and overlapping classes the objective falls slowly for very long; more: such a run ends later
MOST_ROUNDS, MOST_DRAWS_A_ROW = 5_000, 100


@dataclass(frozen=True)
class SBP(BinaryTrainer):
    """Stochastic batch perceptron, with an unregularised bias unless `bias` is False.

    `nu` is the slack per row, for a w of length 1. With None, the default, nu is found on the way: each round takes the
    slack that corresponds to C by the length of the mean of the rows drawn so far (`water.DrawnWater`). In the end that is
    the slack of the optimum of 1/2 |w|^2 + C sum_i max(0, 1 - y_i f(x_i)), and no search over nu is needed. Results after
    fewer draws than rows, or than 8,192, have a bias between that of the slack and the one with the fewest errors: few rows
    have been drawn by then, so that errors on all rows are about those on new ones. Steps as in the paper take the slack of
    C at the best scale of w (`water.CostWater`).

    A round draws `batch` rows, or a 256th of the rows drawn so far if that is less. `batch=1` is the paper's algorithm:
    independent draws, steps of 1 / sqrt(t) in the unit ball, and the average of all iterates (weighted by t, which is
    better than equal weights). Otherwise w is the mean of all draws, every row under water is drawn once before any row is
    drawn again, which needs fewer kernel evaluations, and the average gives an iterate after i draws a weight of about i^3.
    `steps` chooses between these two, "root" and "mean", for any batch.

    A run ends when the second half of its rounds has improved the objective by less than a share of 5 `tol`. About twice as
    much then remains to gain, and more if C is large and classes overlap (`smo` is the better choice then). It also ends
    after `max_iter` rounds, or if that is -1 after 5,000 rounds or 100 draws of each row, whichever is more; after
    `time_limit` seconds; or, with `early_stopping`, when the error on the validation rows has not fallen in
    `n_iter_no_change` checks. The validation rows are a `validation_fraction` of the rows and are not learned from. Limits
    are for each output.

    A warm start goes on from the last model, with steps that belong to the rows drawn for it; a model of another method
    counts as drawn from as many rows as there are. The second half of the rounds is then that of both runs.
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
    starts_warm: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

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

    @property
    def root(self) -> bool:
        """Whether steps are those of the paper."""
        return (self.steps or ("root" if self.batch == 1 else "mean")) == "root"

    def solve(self, problem: Binary) -> Solution:
        """Run rounds on one output."""
        validation = self.validation_rows(problem)
        run = BatchPerceptron(
            problem.rows,
            problem.y,
            problem.weights,
            problem.rng,
            validation=validation,
            bias=self.bias,
            batch=self.batch,
            root=self.root,
            C=self.C,
            nu=self.nu,
        )
        monitor = Monitor(self, problem, run, validation)
        if problem.saved is not None:
            monitor.restore(problem.saved)
        elif problem.start is not None and problem.start.any():
            start = problem.start.copy()
            start[validation] = 0.0
            run.begin_from(start, problem.draws or problem.rows.n)
            monitor.begin()
        status = run.run(monitor.ending, monitor.report)
        return monitor.solution(status)

    def validation_rows(self, problem: Binary) -> Array:
        """Return a random share of the rows of each class with `early_stopping`, else none."""
        sides = [problem.rng.permutation(np.flatnonzero(problem.y == sign)) for sign in (1, -1)]
        share = self.early_stopping * self.validation_fraction
        return np.concatenate([side[: int(share * side.size)] for side in sides])


class Monitor:
    """Checks the objective of a run at intervals, and decides when the run ends."""

    def __init__(self, settings: SBP, problem: Binary, run: BatchPerceptron, validation: Array) -> None:
        self.settings, self.problem, self.run, self.validation = settings, problem, run, validation
        self.next_check = FEWEST_BATCHES * run.batch  # in rows drawn
        most = max(MOST_ROUNDS, MOST_DRAWS_A_ROW * problem.rows.n // run.batch)
        limits = Limits(most if settings.max_iter < 0 else settings.max_iter, settings.time_limit)
        self.effort = limits.start(problem.run.deadline)
        self.progress = GapProgress(GAIN * settings.tol)
        self.objectives: list[float] = []  # the lowest up to each check
        self.errors: list[float] = []

    def ending(self) -> Status | None:
        """Return how the run ends here, or None; the state is offered to the checkpoint before anything is decided."""
        self.problem.run.checkpoint.offer(self.state)
        self.effort.spent = self.run.t
        if (reached := self.effort.reached()) is not None:
            if reached is Status.TIME_LIMIT:
                self.problem.run.checkpoint.keep(self.state(), now=True)
            return reached
        if self.run.drawn < self.next_check:
            return None
        self.check()
        if self.settings.early_stopping and self.stable():
            return Status.STABLE
        return Status.CONVERGED if self.gain() <= GAIN * self.settings.tol else None

    def begin(self) -> None:
        """Take the objective of a start as that of all checks that its draws would have had."""
        before = self.run.drawn // self.interval
        self.check()
        self.objectives *= max(before, 1)

    @property
    def interval(self) -> int:
        """The rows drawn between two checks."""
        return max(int(CHECK_EVERY * self.run.under_water), FEWEST_BATCHES * self.run.batch)

    def check(self) -> None:
        """Record the objective and the validation error."""
        iterate = self.run.result()
        self.next_check = self.run.drawn + self.interval
        self.objectives.append(min([self.run.objective(iterate.surface), *self.objectives[-1:]]))
        if self.validation.size:
            self.errors.append(self.validation_error(iterate))
        self.progress.update(self.gain())
        self.problem.run.record(objective=self.objectives[-1], **({"error": self.errors[-1]} if self.errors else {}))

    def state(self) -> State:
        """Return the state of the run and of the checks so far, for a checkpoint."""
        return pack(SavedChecks(self.run.state, self.next_check, np.array(self.objectives), np.array(self.errors)))

    def restore(self, saved: State) -> None:
        """Continue from a saved state."""
        basins = self.run.basins
        sizes = {"n": self.run.y.size, "basins": len(basins), "rows": sum(basin.rows.size for basin in basins)}
        found = unpack(SavedChecks, saved, **sizes)
        self.run.restore(found.run)
        self.next_check = found.next_check
        self.objectives, self.errors = found.objectives.tolist(), found.errors.tolist()

    def validation_error(self, iterate: Iterate) -> float:
        """Return the weighted share of misclassified validation rows."""
        scale, bias = iterate.predictor
        wrong = self.problem.y[self.validation] * (scale * iterate.values[self.validation] + bias) <= 0
        return float(np.average(wrong, weights=self.problem.weights[self.validation]))

    def stable(self) -> bool:
        """Return whether the last checks found no lower validation error than those before."""
        recent = self.settings.n_iter_no_change
        return len(self.errors) > recent and min(self.errors[-recent:]) >= min(self.errors[:-recent])

    def gain(self) -> float:
        """Return the relative improvement of the objective in the second half of the checks."""
        half = len(self.objectives) // 2
        if len(self.objectives) < FEWEST_CHECKS:
            return np.inf
        if not np.isfinite(self.objectives[half - 1]):  # no w has had a margin in half of the checks, so none is expected
            return 0.0 if np.isinf(self.objectives[-1]) and half > FEWEST_CHECKS else np.inf
        return (self.objectives[half - 1] - self.objectives[-1]) / self.objectives[-1]

    def report(self) -> None:
        """Report the share done, by the nearest ending."""
        self.effort.spent = self.run.t
        self.problem.run.report(min(max(self.effort.share, self.progress.share), 1.0))

    def solution(self, status: Status) -> Solution:
        """Return the predictor w / level, and the bias with which both basins have this level."""
        iterate = self.run.result()
        if status is not Status.MAX_ITER:
            self.run.check_slack(iterate)
        scale, bias = iterate.predictor
        return Solution(scale * iterate.coef, bias, self.run.t, self.gain(), status, self.run.drawn)
