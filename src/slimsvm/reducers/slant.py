"""Sparse approximation of a kernel SVM under the slant loss (Cotter, Shalev-Shwartz & Srebro 2013).

The full model f = w + b gives each row that it classifies correctly a demand, h_i = min(1, y_i f(x_i)). The small model
w~ + b~ is found by subgradient descent on the largest unmet demand (Problem 4.1):

    minimise  max over rows with y_i f(x_i) > 0 of   h_i - y_i (w~(x_i) + b~)

With eta = eps = 1/2 it ends within 4 |w|^2 steps at a value of 1/2 or less, and the slant loss of the small model is then
no larger than the hinge loss of the full one (Lemmas 4.1 and 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Status, Task
from ..path import Path, Step, merge, prefer
from ..rows.protocol import Rows
from ..rows.responses import Responses
from ..solvers.coefficients import REFIT_VALUES, CoefficientFit
from ..solvers.demands import demands
from .base import EndedModels, Models, Reducer

#: Values of the paper's grids (section 7); each size takes the best by held-out error.
ETAS = (4.0**-2, 4.0**-1, 2.0**-1)
EPSILONS = (2.0**-3, 2.0**-2, 2.0**-1)
BIASES = ("kept", "learned")
#: what settings in words end with where coefficients were fitted anew
REFIT = ", refit"


@dataclass(frozen=True)
class Slant(Reducer):
    """The basic algorithm (section 4): a step of `eta` on the row with the largest unmet demand until that is <= `eps`.

    `eta` and `eps` may be numbers, as in the paper's analysis (1/2 each), or None: then each size takes the best of a
    grid by held-out error, as in its experiments. `bias` is "kept" (section 4.6) or "learned" (section 6, appendix D).

    The paper stops there. With `refit` the coefficients and the bias of each model are fitted anew to all demands in the
    sense of least squares, which is better for the same points, most of all for few; the paper's stay where held-out rows
    clearly prefer them. The step then hardly matters, and the grid has one. `refit=False` is the paper's method.
    """

    eta: float | None = None
    eps: float | None = None
    bias: str = "kept"
    refit: bool = True
    max_steps: int = 30_000
    aggressive: ClassVar[bool] = False
    reports: ClassVar[bool] = True  # several runs, each through all sizes

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("eta", self.eta), ("eps", self.eps)):
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be a number above 0 or None, not {value!r}")
        if self.bias not in BIASES:
            raise ValueError(f"unknown bias {self.bias!r}; there are {list(BIASES)}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> EndedModels:
        """Models of the given sizes, from one run of each setting."""
        assert model is not None
        wanted = demands(task, model)
        largest = float(np.abs(task.rows.diagonal()).max()) or 1.0
        runs = list(self._runs(min(1.0, wanted.max()) if np.isfinite(wanted).any() else 1.0))
        ending = Status.MAX_ITER
        for number, settings in enumerate(runs):
            run = _Run(task, wanted, model, settings, largest, deadline)
            status = yield from run.models(sizes, partial(_report, task, number, len(runs)))
            if self.refit and run.found:
                yield from _refitted(run, deadline)
            ending = status if ending is Status.MAX_ITER else ending
            if deadline.over:
                break
        return ending

    def collected(self, steps: Sequence[Step], status: Status, n_validation: int) -> Path:
        """Refitted models, but for sizes where held-out rows clearly prefer the paper's, or only those are found."""
        refitted = [step for step in steps if step.settings.endswith(REFIT)]
        paper = [step for step in steps if not step.settings.endswith(REFIT)]
        return prefer(*(merge([Path(tuple(some), status)], status, n_validation) for some in (refitted, paper)))

    def _runs(self, scale: float) -> Iterator[Slant]:
        """The settings to try; the grids are for demands of up to 1 and shrink with the largest demand."""
        steps = ETAS[1:2] if self.refit else ETAS
        etas = [scale * eta for eta in steps] if self.eta is None else [self.eta]
        # without reuse of support vectors eps only ends the run: the smallest is enough
        grid = EPSILONS if self.aggressive else EPSILONS[:1]
        epsilons = [scale * eps for eps in grid] if self.eps is None else [self.eps]
        for eta, eps in product(etas, epsilons):
            yield replace(self, eta=eta, eps=eps)


@dataclass(frozen=True)
class AggressiveSlant(Slant):
    """The variant of section 6.1: a new support vector only when all present ones have their demand met to `eps`.

    (The paper prints that inequality the other way round; this is what its text says.)
    """

    aggressive: ClassVar[bool] = True


def _report(task: Task, run: int, runs: int, part: float) -> None:
    task.report("shrink", (run + part) / runs)


def _refitted(run: _Run, deadline: Deadline) -> Models:
    """The models of a run with the best coefficients for their points; the largest alone where the time is over."""
    task, largest = run.task, run.found[-1]  # a run only adds points: the kernel values of all are among the largest's
    rows = task.sample(max(REFIT_VALUES // (largest.size + 1), 1))
    part = task.part(rows)
    best = CoefficientFit(part.rows.matrix(largest.points), part.targets, run.demands[rows], part.weights)
    for model in run.found:
        if model is largest or not deadline.over:
            coef, bias = best.solve(model.coef, model.bias)
            yield replace(model, coef=coef, bias=bias), run.words + REFIT


def _bordered(block: Array, gram: Rows, index: Array, rows: Array) -> Array:
    """The kernel block of `index`, grown by `rows`."""
    border = gram.block(rows, np.append(index, rows)).astype(np.float64)
    return np.block([[block, border[:, : index.size].T], [border]]) if index.size else border


class _Run:
    """One run with fixed settings: the support set so far, its coefficients, and the unmet demands of all rows."""

    def __init__(
        self, task: Task, demands: Array, model: Expansion, settings: Slant, largest: float, deadline: Deadline
    ) -> None:
        self.task, self.settings, self.deadline = task, settings, deadline
        self.targets, self.demands = task.targets, demands
        self.kept_bias = model.bias
        # a bias can only be balanced where every output has demands on both sides
        both_sides = all((np.isfinite(demands) & (task.targets == sign)).any(axis=0).all() for sign in (-1, 1))
        self.learned = settings.bias == "learned" and both_sides
        self.responses = Responses(task.rows, model.bias.size)
        self.index = np.empty(0, dtype=np.intp)
        self.coef = np.zeros((0, model.bias.size))
        self.block = np.zeros((0, 0))  # the kernel among the support vectors
        # the paper takes k(x, x) <= 1; dividing the step by the largest k(x, x) is the same as scaling the kernel
        self.eta = (settings.eta or 0.5) / largest
        self.eps = settings.eps or 0.0
        self.steps = 0
        self.found: list[Expansion] = []
        self.words = f"eta={settings.eta:g}, eps={self.eps:g}, bias={'learned' if self.learned else 'kept'}"

    def models(self, sizes: Sequence[int], report: Callable[[float], None]) -> EndedModels:
        """Grow until the largest size, until all demands are met to eps, until max_steps, or until time is up."""
        limit = max(sizes)
        # a learned bias admits two rows at once, and may jump over a size
        wanted = {size - less for size in sizes for less in range(1 + self.learned) if size > less}
        while True:
            if self.settings.aggressive:
                self.settle()
            unmet = self.unmet(slice(None), self.responses.values)
            value, rows, column = self.worst(unmet, self.targets)
            fresh = np.setdiff1d(rows, self.index)
            status = self.ending(value, fresh.size, limit)
            if status or (fresh.size and self.index.size in wanted):
                self.found.append(self.model(unmet))
                yield self.found[-1], self.words
                report(self.index.size / limit)
            if status:
                return status
            self.admit(fresh)
            if not self.settings.aggressive:
                self.move(rows, column)

    def ending(self, value: float, fresh: int, limit: int) -> Status | None:
        """Why the run ends here, if it does."""
        if not value > self.eps:
            return Status.CONVERGED
        if self.index.size + fresh > limit:
            return Status.BUDGET
        if self.steps >= self.settings.max_steps:
            return Status.MAX_ITER
        if self.deadline.over and self.index.size:
            return Status.TIME_LIMIT
        # settled support vectors and no new one: rounding hides the rest
        return Status.EXHAUSTED if self.settings.aggressive and not fresh else None

    def unmet(self, rows: Array | slice, values: Array) -> Array:
        """h - y (w~ + b), with b = 0 while the bias is learned."""
        bias = 0.0 if self.learned else self.kept_bias
        return self.demands[rows] - self.targets[rows] * (values + bias)

    def worst(self, unmet: Array, targets: Array) -> tuple[float, Array, int]:
        """The objective, and the rows and the column that its subgradient steps on."""
        if not self.learned:
            row, column = divmod(int(unmet.argmax()), unmet.shape[1])
            return float(unmet[row, column]), np.array([row]), column
        # the best bias lets the worst positive and the worst negative meet half way (appendix D)
        above, below = (np.where(targets == sign, unmet, -np.inf) for sign in (1, -1))
        values = 0.5 * (above.max(axis=0) + below.max(axis=0))
        column = int(values.argmax())
        return float(values[column]), np.array([above[:, column].argmax(), below[:, column].argmax()]), column

    def admit(self, rows: Array) -> None:
        """Make the rows support vectors, with coefficients of 0."""
        if self.settings.aggressive:
            self.block = _bordered(self.block, self.task.rows, self.index, rows)
        self.index = np.append(self.index, rows)
        self.coef = np.vstack([self.coef, np.zeros((rows.size, self.coef.shape[1]))])

    def move(self, rows: Array, column: int) -> None:
        """One subgradient step on all responses."""
        change = np.zeros((rows.size, self.coef.shape[1]))
        change[:, column] = self.eta / rows.size * self.targets[rows, column]
        places = (self.index[:, None] == rows).argmax(axis=0)
        self.coef[places] += change
        self.responses.add_rows(rows, change, keep=True)
        self.steps += 1

    def settle(self) -> None:
        """Steps on the support vectors alone until their demands are met; then one update of all responses."""
        if not self.index.size:
            return
        targets, values = self.targets[self.index], self.responses.values[self.index]
        unmet = self.unmet(self.index, values)
        change = np.zeros_like(self.coef)
        while self.steps < self.settings.max_steps and not self.deadline.over:
            value, rows, column = self.worst(unmet, targets)
            if not value > self.eps:
                break
            step = self.eta / rows.size * targets[rows, column]
            change[rows, column] += step
            unmet[:, column] -= targets[:, column] * (self.block[:, rows] @ step)
            self.steps += 1
        self.coef += change
        moved = change.any(axis=1)
        self.responses.add_rows(self.index[moved], change[moved], keep=True)

    def model(self, unmet: Array) -> Expansion:
        """The model as it stands."""
        bias = self.kept_bias
        if self.learned:
            above, below = (np.where(self.targets == sign, unmet, -np.inf).max(axis=0) for sign in (1, -1))
            bias = 0.5 * (above - below)
        return self.task.expansion(self.index, self.coef.copy(), bias)
