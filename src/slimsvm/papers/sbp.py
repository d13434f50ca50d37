"""The stochastic batch perceptron (Cotter, Shalev-Shwartz & Srebro 2012); `solvers.batch_perceptron` runs the rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..keeping import Saved
from ..kernels import Array
from ..limits import Limits, check_time_limit
from ..model import Status
from ..progress import GapProgress
from ..trainers.frames.per_output import Binary, BinaryTrainer, Solution
from .batch_perceptron import BatchPerceptron, Iterate

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
        self.effort = limits.start(problem.deadline)
        self.progress = GapProgress(GAIN * settings.tol)
        self.objectives: list[float] = []  # the lowest up to each check
        self.errors: list[float] = []

    def ending(self) -> Status | None:
        """Return how the run ends here, or None; the state is offered to the keeper before anything is decided."""
        self.problem.keeper.offer(self.state)
        self.effort.spent = self.run.t
        if (reached := self.effort.reached()) is not None:
            if reached is Status.TIME_LIMIT:
                self.problem.keeper.keep(self.state(), now=True)
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
        self.problem.record(objective=self.objectives[-1], **({"error": self.errors[-1]} if self.errors else {}))

    def state(self) -> dict[str, Any]:
        """Return the state of the run and of the checks so far, for a keeper."""
        checked = {"objectives": np.array(self.objectives), "errors": np.array(self.errors)}
        return {"run": self.run.state(), "next_check": self.next_check, **checked}

    def restore(self, saved: Saved) -> None:
        """Continue from a saved state."""
        self.run.restore(saved.part("run"))
        self.next_check = saved.count("next_check")
        self.objectives, self.errors = (saved.array(name, None, finite=False).tolist() for name in ("objectives", "errors"))

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
        self.problem.report(min(max(self.effort.share, self.progress.share), 1.0))

    def solution(self, status: Status) -> Solution:
        """Return the predictor w / level, and the bias with which both basins have this level."""
        iterate = self.run.result()
        if status is not Status.MAX_ITER:
            self.run.check_slack(iterate)
        scale, bias = iterate.predictor
        return Solution(scale * iterate.coef, bias, self.run.t, self.gain(), status, self.run.drawn)
