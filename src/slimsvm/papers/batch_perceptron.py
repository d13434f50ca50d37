"""The stochastic batch perceptron (Cotter, Shalev-Shwartz & Srebro 2012), kernelised.

    maximise over |w| <= 1, b, and slacks xi >= 0 with sum xi <= n nu:    min over i of  y_i (<w, phi(x_i)> + b) + xi_i

A round distributes the slack so that the smallest margin becomes as large as possible: like water poured over the margins
c_i = y_i <w, phi(x_i)>, up to the level g that solves sum_i max(0, g - c_i) = volume (section 3.2). It draws a row that is
under water and moves w towards it. The responses of all rows are kept, so a round costs n kernel evaluations. That is
`SBP.paper`, the algorithm as printed.

With an unregularised bias each class is a basin of its own (3.6). A bias raises the level of one as much as it lowers that
of the other, so only the sum of the levels counts, and at the optimum both have equally many rows under water. The k-th
lowest row of one and the k-th lowest of the other then go under water together: the sum of the levels is the level of the
same water in one basin whose heights are the sums of these pairs.

`SBP` itself keeps the draws and changes the step. It solves the C-SVM, whose rows under water are those with a margin below
1. A round draws many of them, half from each class, and gives them the coefficients that are best for the dual problem of
these rows (`solvers.smo`), in place of a step of 1 / sqrt(t). The step needs no step size and no nu, large batches are
products at full speed, and the dual objective tells how far the optimum is. Lemma 3.2 of the paper is about its own steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np

from ..checks import check_count
from ..kernels import Array
from ..limits import Limits, check_time_limit
from ..model import Status
from ..rows.protocol import Rows
from ..rows.responses import Responses
from ..rows.threads import one_blas_thread
from ..run import GapProgress, Run
from ..solvers.bias import best_bias, fewest_errors
from ..solvers.no_bias import NoBiasState
from ..solvers.smo import RoundCount, SavedSmo, SmoState
from ..states import State, floats, pack, unpack, whole
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution

#: rows of the first batch; each later one has twice as many, up to the working set. More: a later first model
FIRST = 256
#: relative duality gap at which a run ends: the objective is then within this share of the optimum. Smaller: a later end.
#: On held-out training rows of a8a, magic, ijcnn1, covtype, letter, Reuters and MNIST errors were at most 0.1 points above
#: those of 0.02; with 0.15 and 0.2 up to 0.4 and 0.8 points
GAP = 0.1
#: relative duality gap from which on the bias of free rows has fewer errors on new rows than that of the fewest errors
SETTLED = 0.3
#: rows from which on a run holds out validation rows by default: the gap closes after draws in proportion to the rows, and
#: the error is stable long before
MANY = 100_000


@dataclass
class SavedDraws:
    """The state that the next round depends on."""

    smo: SavedSmo
    rng: np.random.Generator
    turns: Annotated[Array, floats("n")]
    batch: Annotated[int, whole(1)]
    made: int
    errors: Annotated[Array, floats("")]


class Draws(SmoState):
    """A run whose working sets are drawn from the rows under water; rows with a cap of 0 are for validation."""

    shrinks = False
    by_rows = False

    def __init__(self, problem: Binary, cap: Array, settings: SBP, run: Run, validation: Array) -> None:
        super().__init__(problem.rows, problem.y, cap, settings, newton=None, run=run)
        self.sbp, self.rng, self.validation, self.weights = settings, problem.rng, validation, problem.weights
        self.limit = Limits(settings.max_iter).iterations
        self.turns = np.zeros(self.rows.n)  # how often each row was drawn
        self.batch, self.made, self.relative = FIRST, 0, np.inf
        self.errors: list[float] = []

    def next_working(self, grow: Array, shrink: Array) -> Array:
        """Return the next batch, half of it from each class, those rows first that were drawn least often."""
        level = self.bias() if self.made else 0.0
        wet = (grow > level) | (shrink < level)  # also rows above the water whose coefficients are too large
        half = max(min(self.batch, self.size) // 2, 1)
        rows = np.concatenate([self.drawn(np.flatnonzero(wet & (self.y == sign)), half) for sign in (1, -1)])
        self.turns[rows] += 1
        self.batch = min(2 * self.batch, self.size)
        return rows

    def drawn(self, rows: Array, count: int) -> Array:
        """Return that many of the rows at random, those first that were drawn least often."""
        if rows.size <= count:
            return rows
        return rows[np.argpartition(self.turns[rows] + self.rng.random(rows.size), count)[:count]]

    def tell(self, rounds: RoundCount, v: Array) -> None:
        """Record the relative duality gap, and the error on the validation rows if there are any."""
        self.relative = self.relative_gap(v)
        measures = {"gap": self.relative}
        if self.validation.size and self.made:
            self.errors.append(self.error_with(self.final_bias()))
            measures["error"] = self.errors[-1]
        self.run.record(**measures)
        self.run.report(max(rounds.progress.update(self.relative), min(self.made / max(self.limit, 1), 1.0)))

    def relative_gap(self, v: Array) -> float:
        """Return (primal - dual) / primal, with the bias of the lowest primal objective."""
        total, bias = float(self.alpha.sum()), 0.0
        if self.sbp.bias:
            learned = self.cap > 0
            bias = best_bias((self.y - v)[learned], self.y[learned], self.cap[learned])
        squared = float((self.signed * (self.y - v)).sum())
        losses = np.maximum(self.y * (v - bias), 0.0)
        primal = 0.5 * squared + float((self.cap * losses)[losses > 0].sum())
        return (primal + 0.5 * squared - total) / primal if 0 < primal < np.inf else np.inf

    def begun(self, limit: float) -> RoundCount:
        """Return the count of a run, whose progress is that of the relative gap."""
        rounds = super().begun(limit)
        if not rounds.progress.rounds:
            rounds.progress = GapProgress(self.sbp.gap)
        return rounds

    def ending(self, rounds: RoundCount, objective: float) -> Status | None:
        """Return how the run ends here, or None."""
        if self.relative <= self.sbp.gap:
            return Status.CONVERGED
        if self.is_stable():
            return Status.STABLE
        if self.made >= self.limit:
            return Status.MAX_ITER
        return super().ending(rounds, objective)

    def is_stable(self) -> bool:
        """Return whether the last rounds have no lower validation error than those before."""
        recent = self.sbp.n_iter_no_change
        return len(self.errors) > recent and min(self.errors[-recent:]) >= min(self.errors[:-recent])

    def step(self, limit: float, v: Array) -> None:
        """Make a round."""
        super().step(limit, v)
        self.made += 1

    def final_bias(self) -> float:
        """Return the bias of the free rows if the optimum is near, else that one or the one of the fewest errors.

        The rows learned from are overfit in the end: the fewest errors among them then say little of other rows. Rows held
        out decide between the two, if there are any.
        """
        near = self.sbp.gap if self.validation.size else max(self.sbp.gap, SETTLED)
        if self.relative <= near or not self.sbp.bias:
            return self.bias()
        learned = self.cap > 0
        fewest = fewest_errors(self.responses.values[learned, 0], self.y[learned], self.weights[learned])
        return min(self.bias(), fewest, key=self.error_with) if self.validation.size else fewest

    def error_with(self, bias: float) -> float:
        """Return the weighted share of validation rows on the wrong side with a bias."""
        rows = self.validation
        return float(np.average(self.y[rows] * (self.responses.values[rows, 0] + bias) <= 0, weights=self.weights[rows]))

    def state(self, rounds: RoundCount) -> dict[str, Any]:
        smo = SavedSmo(self.alpha, self.responses.values, self.working, self.steps, self.rows.spent, rounds)
        return pack(SavedDraws(smo, self.rng, self.turns, self.batch, self.made, np.array(self.errors)))

    def restore(self, saved: State | None) -> None:
        found = unpack(SavedDraws, saved, n=self.rows.n)
        super().restore(pack(found.smo))
        self.rng, self.turns, self.batch, self.made = found.rng, found.turns, found.batch, found.made
        self.errors = found.errors.tolist()


class NoBiasDraws(Draws, NoBiasState):
    """The same without a bias."""


@dataclass(frozen=True)
class SBP(BinaryTrainer):
    """Stochastic batch perceptron with the best step for each batch; with an unregularised bias unless `bias` is False.

    Each round draws `working_set` rows under water (None: as many as suit the home of the rows; the first rounds draw
    fewer), those first that were drawn least often, and solves the C-SVM's dual problem for them with all other
    coefficients fixed. Any round leaves a model, whose bias is the one with the fewest errors until the optimum is near.

    A run ends when its relative duality gap is at most `gap`: with the best bias for it, the objective is then within this
    share of the optimum. It also ends after `max_iter` rounds, after `time_limit` seconds, or with `early_stopping` when
    the error on validation rows has not fallen in `n_iter_no_change` rounds, as the paper advises. The validation rows are
    a `validation_fraction` of the rows and are not learned from. With None, the default, rows are held out if there are
    100,000 or more. Limits are for each output.

    `SBP.paper` is the algorithm as printed.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SlimSVC
    >>> from slimsvm.trainers import SBP
    >>> X, y = make_moons(4000, noise=0.2, random_state=0)
    >>> SlimSVC(trainer=SBP(), random_state=0).fit(X, y).score(X, y) > 0.95
    True
    >>> printed = SBP.paper(nu=0.05, T=1000)
    >>> SlimSVC(trainer=printed, gamma=1.0, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = -1
    gap: float = GAP
    bias: bool = True
    working_set: int | None = None
    time_limit: float | None = None
    early_stopping: bool | None = None
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    many: ClassVar[int] = MANY
    starts_warm: ClassVar[bool] = True
    resumes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        if not self.gap >= 0:
            raise ValueError(f"gap must be 0 or a share of the primal objective above it, such as 0.1, not {self.gap!r}")
        if self.working_set is not None and self.working_set < 2:
            raise ValueError(f"working_set must be 2 rows at least, one of each class, not {self.working_set!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1, not {self.validation_fraction!r}")
        if self.n_iter_no_change < 1:
            raise ValueError(f"n_iter_no_change must be 1 at least, not {self.n_iter_no_change!r}")

    @staticmethod
    def paper(nu: float, T: int = 4096, *, bias: bool = False) -> PrintedSBP:
        """Return the algorithm as printed: T draws of one row, with the slack nu for each row."""
        return PrintedSBP(nu, T, bias)

    def solve(self, problem: Binary) -> Solution:
        validation = self.validation_rows(problem)
        cap = self.C * problem.weights
        cap[validation] = 0.0
        state = (Draws if self.bias else NoBiasDraws)(problem, cap, self, problem.run.limited(self.time_limit), validation)
        if problem.saved is not None:
            state.restore(problem.saved)
        elif problem.start is not None:
            state.begin_from(problem.start)
        state.solve(np.inf)
        bias = state.final_bias()
        outputs = state.responses.values[:, 0] + bias if problem.rows.n >= self.many else None
        return Solution(state.signed, bias, state.made, state.relative, state.status, outputs=outputs)

    def validation_rows(self, problem: Binary) -> Array:
        """Return a random share of the rows of each class if rows are to be held out, else none."""
        held_out = problem.rows.n >= self.many if self.early_stopping is None else self.early_stopping
        share = held_out * self.validation_fraction
        sides = [problem.rng.permutation(np.flatnonzero(problem.y == sign)) for sign in (1, -1)]
        return np.concatenate([side[: int(share * side.size)] for side in sides])


@dataclass(frozen=True)
class PrintedSBP(BinaryTrainer):
    """The stochastic batch perceptron as printed: `T` rounds with the slack `nu` for each row, for a w of length 1.

    A round draws one row, uniformly from those under water; with a bias, from either class with the same chance (3.6). It
    moves w by y phi(x) / sqrt(t), projects it to the unit ball, and the result is the mean of all iterates over the level
    of its water. The paper assumes k(x, x) <= 1; steps are divided by the root of the largest k(x, x), which has the same
    effect. Where the level is no margin (0 or less), w itself is the result, since the paper predicts with its sign.
    """

    nu: float
    T: int = 4096
    bias: bool = False
    weighted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.nu, Real) or not 0 < float(self.nu) < 1:
            raise ValueError(
                f"nu, the slack for each row, must lie between 0 and 1, not {self.nu!r}; for rows that can be separated a "
                "small one, such as 1e-9, does what 0 would"
            )
        check_count(self.T)

    def solve(self, problem: Binary) -> Solution:
        """Run the rounds of one output."""
        run = Perceptron(problem.rows, problem.y, problem.rng, self.nu, bias=self.bias)
        with one_blas_thread():  # inner products are faster in one thread
            while run.t < self.T and not (run.t and problem.run.over):
                run.round()
                problem.run.report(run.t / self.T)
        coef, bias = run.predictor()
        run.check_slack()
        return Solution(coef, bias, run.t, 0.0, Status.TIME_LIMIT if run.t < self.T else Status.PASSED, run.t)


class Perceptron:
    """The state of a run: w with its responses, the sums of both over all rounds, and the levels of the water."""

    def __init__(self, rows: Rows, y: Array, rng: np.random.Generator, nu: float, *, bias: bool) -> None:
        self.y, self.rng, self.volume = y, rng, nu * y.size
        self.basins = [np.flatnonzero(y == sign) for sign in (1, -1)] if bias else [np.arange(y.size)]
        self.responses = Responses(rows, 1)
        self.radius = float(np.sqrt(np.abs(rows.diagonal()).max())) or 1.0
        self.w = np.zeros(y.size)
        self.sums = np.zeros((2, y.size))  # of w and of its responses
        self.levels = self.water(np.zeros(y.size))
        self.t = 0

    def round(self) -> None:
        """Draw a row under water, step towards it, project to the unit ball and fill in the water."""
        self.t += 1
        side = int(self.rng.integers(len(self.basins)))
        basin, f = self.basins[side], self.responses.values[:, 0]
        row = int(self.rng.choice(basin[self.y[basin] * f[basin] <= self.levels[side]]))
        step = self.y[row] / (np.sqrt(self.t) * self.radius)
        self.w[row] += step
        self.responses.add_rows(np.array([row]), np.array([[step]]), keep=False)
        length = max(float(np.sqrt(max(float(self.w @ f), 0.0))), 1.0)
        self.w /= length
        f /= length
        self.sums += np.stack([self.w, f])
        self.levels = self.water(f)

    def water(self, f: Array) -> tuple[float, ...]:
        """Return the level of each basin over y f."""
        heights = [self.y[basin] * f[basin] for basin in self.basins]
        if len(heights) == 1:
            return (level_of(heights[0], self.volume),)
        return levels_of((heights[0], heights[1]), self.volume)

    def predictor(self) -> tuple[Array, float]:
        """Return the coefficients and the bias of the mean of all iterates, over its level."""
        coef, f = self.sums / self.t
        levels = self.water(f)
        level = float(np.mean(levels))
        scale = 1 / level if 0 < level < np.inf else 1.0
        threshold = (levels[0] - levels[-1]) / 2 if np.isfinite(level) else 0.0
        return scale * coef, -scale * threshold

    def check_slack(self) -> None:
        """Raise ValueError for a nu with the same solution as any larger one."""
        f = self.sums[1] / self.t
        if any((self.y[basin] * f[basin] <= level).all() for basin, level in zip(self.basins, self.water(f), strict=True)):
            raise ValueError(
                f"nu={self.volume / self.y.size:.6g} is so much slack that it covers a whole class of these rows; give less"
            )


#: lowest rows of each basin that are sorted at first; more: slower rounds where few are under water
SORTED = 256


def level_of(heights: Array, volume: float, guess: float = np.inf) -> float:
    """Return the level in one basin, by Newton's method from a guess.

    The volume is a convex function of the level with few kinks between two rounds, so few steps reach the level exactly.
    """
    under = heights <= guess
    if not under.any():
        under = np.ones(heights.size, dtype=bool)
    level, wet = (volume + heights[under].sum()) / np.count_nonzero(under), heights.size + 1
    # the first step may lead from below to above the level; from there on fewer and fewer rows are under water
    while 0 < (count := int(np.count_nonzero(heights <= level))) < wet:
        level, wet = (volume + heights[heights <= level].sum()) / count, count
    return float(level)


def levels_of(basins: tuple[Array, Array], volume: float) -> tuple[float, float]:
    """Return the levels of two basins that hold this water together; infinite where the whole smaller basin is wet."""
    fewest, count = min(heights.size for heights in basins), SORTED
    while True:
        low = [_lowest(heights, count) for heights in basins]
        pairs = low[0][: min(count, fewest)] + low[1][: min(count, fewest)]
        total = level_of(pairs, volume)
        wet = int(np.count_nonzero(pairs < total)) or 1
        if wet < min(count, fewest) or count >= fewest:
            break
        count *= 4
    least = [float(rows[wet - 1]) for rows in low]
    rooms = [float(rows[wet]) - rows[wet - 1] if rows.size > wet else np.inf for rows in low]
    extra = max(total - sum(least), 0.0)
    first = min(max(extra / 2, extra - rooms[1]), rooms[0])
    return least[0] + first, least[1] + (extra - first)


def _lowest(heights: Array, count: int) -> Array:
    """Return the `count` lowest heights and one more, sorted, or all of them."""
    return np.sort(heights if heights.size <= count + 1 else np.partition(heights, count)[: count + 1])
