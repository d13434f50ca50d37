"""Sparse approximation of a kernel SVM under the slant loss (Cotter, Shalev-Shwartz & Srebro 2013).

The full model f = w + b gives each row that it classifies correctly a margin target h_i = min(1, y_i f(x_i)). The shortfall
of a small model w~ + b~ on a row is how far its margin is below that target. Subgradient descent minimises the largest
shortfall (Problem 4.1):

    minimise  max over rows with y_i f(x_i) > 0 of   h_i - y_i (w~(x_i) + b~)

With eta = eps = 1/2 it ends within 4 |w|^2 steps at a value of 1/2 or less, and the slant loss of the small model is then
no larger than the hinge loss of the full one (Lemmas 4.1 and 4.2). The aggressive variant optimises the present support
vectors before another one is added (section 6.1).

The slant loss is the expected error of a rule that adds Z ~ Uniform[-1/2, 1/2] to the output (section 4.1). The authors
recommend the sign of the output in practice, as `predict` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ..goals.margin_targets import MarginTargets
from ..kernels import Array
from ..model import Expansion, Status, Task
from ..reducers.base import EndedModels, Models, Reducer
from ..rows.responses import Responses
from ..selection.path import Made, Path, Step, merge, prefer
from ..solvers.basis import Refit, refit_rows, wanted
from ..solvers.newton import IntervalSquares

#: the grids of the paper (section 7); each size takes the setting with the lowest validation error
ETAS = tuple(4.0**power for power in range(-4, 3))
EPSILONS = tuple(2.0**power for power in range(-4, 1))
#: the settings that are tried if coefficients are refitted: the step size then hardly matters
REFIT_ETAS, REFIT_EPSILONS = (4.0**-1,), (2.0**-3, 2.0**-2, 2.0**-1)
BIASES = ("kept", "learned")


def least_margins(task: Task, margin_targets: MarginTargets) -> Array:
    """Return the h of margin targets y f >= h; -inf without a margin target."""
    return np.where(task.targets > 0, margin_targets.low, -margin_targets.high)


class SlantRun:
    """One run with fixed settings: the support vectors so far, their coefficients and the responses of all rows.

    `found` are its models; each has the points of the one before and more.
    """

    def __init__(
        self, task: Task, margin_targets: MarginTargets, model: Expansion, settings: Slant, largest: float
    ) -> None:
        self.task, self.margin_targets, self.settings = task, margin_targets, settings
        self.targets, self.least_margins = task.targets, least_margins(task, margin_targets)
        self.kept_bias = model.bias
        # the bias can be balanced only if every output has margin targets on both sides
        both_sides = all((np.isfinite(self.least_margins) & (task.targets == sign)).any(axis=0).all() for sign in (-1, 1))
        self.learned = settings.bias == "learned" and both_sides
        # added to shortfalls, they select those of positives and those of negatives
        self.sides = np.stack([np.where(task.targets == sign, 0.0, -np.inf) for sign in (1, -1)])
        self.responses = Responses(task.rows, model.bias.size)
        self.index = np.empty(0, dtype=np.intp)
        self.place = np.full(task.rows.n, -1)  # of each row among the support vectors, or -1
        self.coef = np.zeros((0, model.bias.size))
        # the paper assumes k(x, x) <= 1; dividing the step by the largest k(x, x) has the same effect
        self.eta = (settings.eta or 0.5) / largest
        self.eps = settings.eps or 0.0
        self.steps = 0
        self.found: list[Expansion] = []
        self.words = f"eta={settings.eta:g}, eps={self.eps:g}, bias={'learned' if self.learned else 'kept'}"

    def models(self, sizes: Sequence[int], report: Callable[[float], None]) -> EndedModels:
        """Yield models up to the largest size; end earlier if the largest shortfall is eps, or at a limit."""
        limit = max(sizes)
        # a learned bias adds two rows at once, which may skip a size
        wanted = {size - less for size in sizes for less in range(1 + self.learned) if size > less}
        while True:
            self.settle()
            shortfall = self.shortfall(slice(None), self.responses.values)
            value, rows, column = self.worst(shortfall, self.sides)
            new = rows[self.place[rows] < 0]
            status = self.ending(value, new.size, limit)
            if status or (new.size and self.index.size in wanted):
                self.found.append(self.model(shortfall))
                yield self.found[-1], self.words
                report(self.index.size / limit)
            if status:
                return status
            self.admit(new)
            self.step(rows, column)

    def settle(self) -> None:
        """Improve the coefficients before a row may be added; the basic algorithm does nothing."""

    def ending(self, value: float, n_new: int, limit: int) -> Status | None:
        """Return why the run ends here, or None if it does not."""
        if not value > self.eps:
            return Status.CONVERGED
        if self.index.size + n_new > limit:
            return Status.BUDGET
        if self.steps >= self.settings.max_steps:
            return Status.MAX_ITER
        if self.task.run.over and self.index.size:
            return Status.TIME_LIMIT
        return None

    def shortfall(self, rows: Array | slice, values: Array) -> Array:
        """Return h - y (w~ + b) for some rows, with b = 0 while the bias is learned."""
        bias = 0.0 if self.learned else self.kept_bias
        return self.least_margins[rows] - self.targets[rows] * (values + bias)

    def worst(self, shortfall: Array, sides: Array) -> tuple[float, Array, int]:
        """Return the objective, and the rows and the output of its subgradient."""
        if not self.learned:
            row, column = divmod(int(shortfall.argmax()), shortfall.shape[1])
            return float(shortfall[row, column]), np.array([row]), column
        # the best bias makes the largest shortfalls of positives and of negatives equal (appendix D)
        above, below = (shortfall + side for side in sides)
        values = 0.5 * (above.max(axis=0) + below.max(axis=0))
        column = int(values.argmax())
        return float(values[column]), np.array([above[:, column].argmax(), below[:, column].argmax()]), column

    def admit(self, rows: Array) -> None:
        """Make rows support vectors, with coefficients of 0."""
        if not rows.size:
            return
        self.place[rows] = np.arange(self.index.size, self.index.size + rows.size)
        self.index = np.append(self.index, rows)
        self.coef = np.vstack([self.coef, np.zeros((rows.size, self.coef.shape[1]))])

    def step(self, rows: Array, column: int) -> None:
        """Take one subgradient step and update all responses."""
        change = np.zeros((rows.size, self.coef.shape[1]))
        change[:, column] = self.eta / rows.size * self.targets[rows, column]
        self.coef[self.place[rows]] += change
        self.responses.add_rows(rows, change, keep=True)
        self.steps += 1

    def model(self, shortfall: Array) -> Expansion:
        """Return the current model."""
        bias = self.kept_bias
        if self.learned:
            above, below = ((shortfall + side).max(axis=0) for side in self.sides)
            bias = 0.5 * (above - below)
        return self.task.expansion(self.index, self.coef.copy(), bias)


@dataclass(frozen=True)
class Slant(Reducer):
    """The basic algorithm (section 4): a step of `eta` on the row with the largest shortfall until that is `eps` or less.

    `eta` and `eps` may be numbers, as in the paper's analysis (1/2 each), or None. With None a grid of values is tried, and
    each size takes the one with the lowest validation error: with `refit` a few values, else those of the paper's
    experiments (an eps of 1 ends at once where no margin target is above 1). `bias` is "kept" (section 4.6)
    or "learned" (section 6 and appendix D).

    With `refit`, coefficients and bias of each model are fitted to all margin targets by one-sided least squares. It makes
    better models of the same points, above all if they are few. The paper's coefficients are kept only if their validation
    error is lower by more than a standard error. `Slant.paper` is the method as printed, without it.
    """

    eta: float | None = None
    eps: float | None = None
    bias: str = "kept"
    refit: bool = True
    max_steps: int = 30_000
    reports: ClassVar[bool] = True  # the sizes of several runs grow one run after another
    run_type: ClassVar[type[SlantRun]] = SlantRun
    #: how many of the values of eps to try; in the basic algorithm eps only ends a run, so the smallest is enough
    n_epsilons: ClassVar[int | None] = 1

    @classmethod
    def paper(cls, eta: float | None = 0.5, eps: float | None = 0.5, *, bias: str = "kept") -> Slant:
        """Return the algorithm as printed: with the settings of the analysis, or with None for the grids of section 7."""
        return cls(eta=eta, eps=eps, bias=bias, refit=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("eta", self.eta), ("eps", self.eps)):
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be a number above 0 or None, not {value!r}")
        if self.bias not in BIASES:
            raise ValueError(f"unknown bias {self.bias!r}; there are {list(BIASES)}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> EndedModels:
        """Yield models of the given sizes, from one run of each setting."""
        assert model is not None
        margin_targets = wanted(task, model)
        highest = least_margins(task, margin_targets).max()
        largest = float(np.abs(task.rows.diagonal()).max()) or 1.0
        grid = list(self._grid(min(1.0, highest) if np.isfinite(highest) else 1.0))
        ending = Status.MAX_ITER
        for number, settings in enumerate(grid):
            run = self.run_type(task, margin_targets, model, settings, largest)
            status = yield from run.models(sizes, task.run.of(number, len(grid)).report)
            if self.refit and run.found:
                yield from _refitted(run)
            ending = status if ending is Status.MAX_ITER else ending
            if task.run.over:
                break
        return ending

    def collected(self, steps: Sequence[Step], status: Status, n_validation: int) -> Path:
        """Return refitted models, and the paper's where they have a clearly lower validation error or are the only ones."""
        refitted = [step for step in steps if step.made.refit]
        paper = [step for step in steps if not step.made.refit]
        return prefer(*(merge([Path(tuple(some), status)], status, n_validation) for some in (refitted, paper)))

    def _grid(self, scale: float) -> Iterator[Slant]:
        """Yield the settings to try; the grids are for margin targets of up to 1, and `scale` is the largest one."""
        etas = [scale * eta for eta in (REFIT_ETAS if self.refit else ETAS)] if self.eta is None else [self.eta]
        tried = (REFIT_EPSILONS if self.refit else EPSILONS)[: self.n_epsilons]
        epsilons = [scale * eps for eps in tried] if self.eps is None else [self.eps]
        for eta, eps in product(etas, epsilons):
            yield replace(self, eta=eta, eps=eps)


def _refitted(run: SlantRun) -> Models:
    """Yield the models of a run with the best coefficients for their points; after the deadline, only the largest one."""
    task, largest = run.task, run.found[-1]
    rows = refit_rows(task, largest.size)
    part = task.part(rows)
    refit = Refit(part.rows, IntervalSquares(run.margin_targets[rows], part.weights))
    for small in refit.nested([largest] if task.run.over else run.found):
        yield small, Made(run.words, refit=True)
        if task.run.over and small.size < largest.size:
            yield refit(largest), Made(run.words, refit=True)
            return


class AggressiveRun(SlantRun):
    """A run that steps on support vectors until their shortfalls are `eps` or less; only then it adds one."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.block = np.zeros((0, 0))  # the kernel among the support vectors

    def settle(self) -> None:
        """Step on support vectors until their shortfalls are `eps` or less, then update all responses once."""
        if not self.index.size:
            return
        targets, sides = self.targets[self.index], self.sides[:, self.index]
        shortfall = self.shortfall(self.index, self.responses.values[self.index])
        change, signed = np.zeros_like(self.coef), np.empty(self.index.size)
        while self.steps < self.settings.max_steps and not self.task.run.over:
            value, rows, column = self.worst(shortfall, sides)
            if not value > self.eps:
                break
            for row in rows:
                step = self.eta / rows.size * targets[row, column]
                change[row, column] += step
                np.multiply(targets[:, column], self.block[row], out=signed)
                signed *= step
                shortfall[:, column] -= signed
            self.steps += 1
        self.coef += change
        moved = change.any(axis=1)
        self.responses.add_rows(self.index[moved], change[moved], keep=True)

    def ending(self, value: float, n_new: int, limit: int) -> Status | None:
        """Return why the run ends here; it has stalled by rounding if no row is to be added."""
        status = super().ending(value, n_new, limit)
        return Status.EXHAUSTED if status is None and not n_new else status

    def admit(self, rows: Array) -> None:
        """Make rows support vectors, and extend the kernel among them."""
        border = self.task.rows.block(rows, np.append(self.index, rows)).astype(np.float64)
        old = self.index.size
        self.block = np.block([[self.block, border[:, :old].T], [border]]) if old else border
        super().admit(rows)

    def step(self, rows: Array, column: int) -> None:
        """Leave the first step on the new rows to `settle`."""


@dataclass(frozen=True)
class AggressiveSlant(Slant):
    """`Slant` that adds a support vector only when all present ones have a shortfall of `eps` or less (section 6.1).

    The paper prints the inequality in the other direction; this is what its text says.
    """

    run_type: ClassVar[type[SlantRun]] = AggressiveRun
    n_epsilons: ClassVar[int | None] = None
