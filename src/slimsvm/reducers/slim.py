"""slim, the house method: points and coefficients that move together towards what each row demands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from ..deadline import Deadline
from ..gram import one_blas_thread
from ..kernels import Array
from ..model import Expansion, Task
from ..path import Step, standard_error
from ..responses import largest
from .basis import check_C, means
from .demands import demands
from .projection import ProjectedLoss
from .reducer import Models, Reducer

#: what is tried: a target, the share of the SVM's own regularisation 1 / C that is kept, since few points are a restraint
#: already, and by how many standard errors of its held-out error the first one must be beaten. Following the full model
#: takes most, for it has seen the held-out rows
OBJECTIVES = (("label", 0.1, 0.0), ("label", 1.0, 0.5), ("slant", 0.1, 2.0))
TARGETS = ("label", "slant", "auto")
#: the size at which objectives are compared first, and again at so many times the size
SMALL, AGAIN = 16, 4
#: the size up to which such starts are more, by so many draws of rows
VERY_SMALL, DRAWS = 4, 2
#: quasi-Newton steps after which the better of two starts is known
TRIAL_STEPS = 10
#: quasi-Newton steps between two looks at all rows
ROUND = 100
#: past steps that quasi-Newton learns curvature from, and numbers that these may hold
MEMORY, MEMORY_VALUES = 40, 1 << 23
#: so many quasi-Newton steps that gain a smaller share of the loss are the last ones
WINDOW, LEAST_GAIN = 10, 1e-3
#: rows for each number to be found, and rows at least, for models on the way to the largest
ROWS_PER_NUMBER, LEAST_ROWS = 8, 8192
#: rows to look at for each row with an unmet demand, those first that are nearest to one; and as many beside
NEARBY, BESIDE = 3, 1024
#: the share of rows above which all are looked at
MOST = 0.6
#: rounds of k-means for new points, which move on from there anyway
MEANS_ROUNDS = 10
#: rows that k-means sees, and that starts are compared on
SAMPLE = 4096
#: kernel values between rows and points that may be held; with more rows than that allows, as many by chance
MOST_VALUES = 1 << 26


@dataclass(frozen=True)
class Slim(Reducer):
    """Small models whose points are found, not chosen.

    For each size it minimises, over points and coefficients,

        sum_ic w_i max(0, h_ic - y_ic f_c(x_i))^2 + decay / C |f|^2

    which is one-sided: a row that has the margin it demands costs nothing. With target "label" every row demands h = 1, a
    squared hinge loss, which needs no full model. With "slant" the demands are the full model's margins, h = min(1, y f),
    and rows that it gets wrong demand nothing: the slant loss of Cotter et al. 2013, squared. `decay` is the share of the
    SVM's own regularisation that is kept. With target "auto" and decay None held-out rows choose: labels and 0.1 unless
    labels and 1, or slant and 0.1, are clearly better at 16 points, and again at every fourfold size.

    The coefficients are the best ones for the points at every step (`projection`), and the points follow L-BFGS, with a
    look at all rows only now and then: most have what they demand. Larger models grow from smaller ones by points among
    the rows with unmet demands (k-means); small ones also begin from scratch, and the better start is kept. `steps` are
    those of L-BFGS for each size, on a sample of the rows where these are many; the largest model has all of them, and
    the model that is chosen in the end takes as many steps again with the held-out rows among the others.
    """

    target: str = "auto"
    decay: float | None = None
    C: float = 1.0
    steps: int = 50
    needs_model: ClassVar[bool] = False
    selects: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True
    sizes_per_doubling: ClassVar[int] = 1
    finishes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if self.target not in TARGETS:
            raise ValueError(f"unknown target {self.target!r}; there are {list(TARGETS)}")
        if self.decay is not None and not 0 <= self.decay < np.inf:
            raise ValueError(f"decay must be a number of at least 0, or None, not {self.decay!r}")
        if not self.steps >= 1:
            raise ValueError(f"steps must be a number of at least 1, not {self.steps!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Models under one objective; now and then others are tried from its points on, and the best one goes on."""
        objectives = self._objectives(model)
        growth = _Growth(_affordable(task, sizes[-1]), objectives[0], 1 / self.C, deadline)
        next_trial = min(SMALL, sizes[-1]) if len(objectives) > 1 and task.judges else np.inf
        for size in sizes:
            last = size == sizes[-1]
            trial = size >= next_trial and (size <= SMALL or not last)
            growth.grow(size, self._steps(size), whole=last and not trial)
            if trial:
                growth, next_trial = growth.under_the_best(objectives, self.steps // 2), AGAIN * size
            if last and trial:
                growth.go_on(growth.model, self._last_steps(size))
            yield growth.model, growth.objective.name
            if deadline.over or growth.model.size < size:
                return

    def _steps(self, size: int) -> int:
        """Steps for a size: fewer where there is little to find."""
        return self.steps if size > 2 else -(-self.steps // 2)

    def _last_steps(self, size: int) -> int:
        """Steps for the model that is asked for: more where they are cheap."""
        return self.steps * int(np.clip(32 // size, 1, 3))

    def finished(self, task: Task, step: Step, model: Expansion | None) -> Expansion:
        """A model of the path after some steps with all rows."""
        objective = next(each for each in self._objectives(model) if each.name == step.settings)
        growth = _Growth(_affordable(task, step.size), objective, 1 / self.C, Deadline(self.time_limit))
        growth.go_on(step.model, self._last_steps(step.size))
        return growth.model

    def _objectives(self, model: Expansion | None) -> list[_Objective]:
        """What is tried, the first choice first."""
        found = [
            _Objective(target, decay if self.decay is None else self.decay, margin, model if target == "slant" else None)
            for target, decay, margin in OBJECTIVES
            if self.target in ("auto", target) and (model is not None or target == "label")
        ]
        return list({objective.name: objective for objective in found[::-1]}.values())[::-1]


@dataclass(frozen=True)
class _Objective:
    """A loss: what rows demand, of the full model if there is one, and how much |f|^2 weighs."""

    target: str
    decay: float
    margin: float
    model: Expansion | None

    @property
    def name(self) -> str:
        """Its settings in words."""
        return f"target={self.target}, decay={self.decay:g}"


def _affordable(task: Task, size: int) -> Task:
    """The task on all rows, or on as many by chance as have `MOST_VALUES` kernel values with so many points."""
    return task.part(task.sample(max(MOST_VALUES // size, 1)))


class _Growth:
    """A model that grows, for one objective."""

    def __init__(self, task: Task, objective: _Objective, unit: float, deadline: Deadline) -> None:
        """`unit` is what the objective's decay counts in: 1 / C for all rows."""
        self.task, self.objective, self.unit, self.deadline = task, objective, unit, deadline
        self.wanted, self.decay = demands(task, objective.model), objective.decay * unit
        self.rng = np.random.default_rng(task.rng.integers(2**32))
        self.loss = ProjectedLoss(task.gram, task.targets, self.wanted, task.weights, self.decay)
        self.few = self._on_sample(task.sample(SAMPLE))
        self.classes = np.unique(task.targets, axis=0, return_inverse=True)[1].ravel()
        self.points = np.zeros((0, task.gram.X.shape[1]))
        self.theta = np.zeros((1, self.wanted.shape[1]))
        self.unmet = np.maximum(self.wanted, 0.0)

    @property
    def model(self) -> Expansion:
        """The model as it stands."""
        points = self.loss.rows.outward(self.points)
        return Expansion(self.task.gram.kernel, points, self.theta[1:].copy(), self.theta[0].copy())

    def grow(self, size: int, steps: int, whole: bool) -> None:
        """Go on to the model of that size; up to a small one starts from scratch are tried beside the grown one."""
        with one_blas_thread():
            start = np.vstack([self.points, self._new(size - self.points.shape[0], self.unmet)])
            if self.points.shape[0] and size <= SMALL:
                trials = [self._tried(points) for points in (start, *self._afresh(size))]
                _, start, self.theta = min(trials, key=lambda trial: trial[0])
            self.points, self.theta, self.unmet = self._descended(start, self.theta, steps, whole)

    def _tried(self, points: Array) -> tuple[float, Array, Array]:
        """The loss on some rows after a few steps from the points on, and the points and coefficients then."""
        self.few.theta = self.theta
        points, _ = _quasi_newton(self.few, points, TRIAL_STEPS, self.deadline)
        theta, value, _ = self.few.settle(points)
        return value, points, theta

    def _afresh(self, size: int) -> Iterator[Array]:
        """Starts from scratch: means; and rows by chance where so few points are easily in a wrong place."""
        everything = np.maximum(self.wanted, 0.0)
        yield self._new(size, everything)
        for _ in range(DRAWS if size <= VERY_SMALL else 0):
            yield self._new(size, everything, sample=1)

    def go_on(self, model: Expansion, steps: int) -> None:
        """Some steps from a model on, with all rows."""
        with one_blas_thread():
            theta = np.vstack([model.bias, model.coef])
            start = self.loss.rows.inward(model.points)
            self.points, self.theta, self.unmet = self._descended(start, theta, steps, whole=True)

    def under_the_best(self, objectives: Sequence[_Objective], steps: int) -> _Growth:
        """The growth under the objective that has the lowest held-out error after some steps from here on.

        The first of them stays unless another is better by its margin.
        """
        rows = self._enough(self.points.size)
        part, unit = self.task.part(rows), self.unit * self._share(rows)
        trials = [_Growth(part, objective, unit, self.deadline) for objective in objectives]
        for trial in trials:
            trial.go_on(self.model, steps)
        errors = [self.task.error(trial.model) for trial in trials]
        noise = standard_error(errors[0], self.task.judges)
        margins = [trial.objective.margin * noise for trial in trials]
        able = [k for k in range(len(trials)) if k == 0 or errors[k] < errors[0] - margins[k]]
        best = trials[min(able, key=lambda k: errors[k])]
        growth = self
        if best.objective.name != self.objective.name:
            growth = _Growth(self.task, best.objective, self.unit, self.deadline)
        growth.go_on(best.model, 0)
        return growth

    def _enough(self, numbers: int) -> Array:
        """Rows by chance that are enough to find so many numbers; all, where there are not many more."""
        most = max(ROWS_PER_NUMBER * numbers, LEAST_ROWS)
        return self.task.sample(most if most < MOST * self.task.gram.n else self.task.gram.n)

    def _share(self, rows: Array) -> float:
        """The rows' share of all weights; rows without weight have no say, and 1 will do."""
        whole = self.task.weights.sum()
        return float(self.task.weights[rows].sum() / whole) if whole else 1.0

    def _on(self, rows: Array, decay: float) -> ProjectedLoss:
        part = self.task.part(rows)
        return ProjectedLoss(part.gram, part.targets, self.wanted[rows], part.weights, decay)

    def _on_sample(self, rows: Array) -> ProjectedLoss:
        """The loss on rows by chance, on which |f|^2 is to weigh as much as on all of them."""
        return self.loss if rows.size == self.task.gram.n else self._on(rows, self.decay * self._share(rows))

    def _descended(self, points: Array, theta: Array, steps: int, whole: bool) -> tuple[Array, Array, Array]:
        """Points after so many steps, with the best coefficients and the unmet demands on all rows."""
        some = self._on_sample(self._enough(points.size))
        if whole or some is self.loss:
            return self._descended_on_all(points, theta, steps)
        some.theta = theta
        points, _ = _quasi_newton(some, points, steps, self.deadline)
        self.loss.theta = some.theta
        theta, _, unmet = self.loss.settle(points)
        return points, theta, unmet

    def _descended_on_all(self, points: Array, theta: Array, steps: int) -> tuple[Array, Array, Array]:
        """Points after so many steps with all rows, most of which are looked at only now and then."""
        self.loss.theta = theta
        theta, loss, unmet = self.loss.settle(points)
        while steps > 0 and not self.deadline.over:
            part = self._part(unmet)
            part.theta = theta
            moved, taken = _quasi_newton(part, points, min(ROUND, steps), self.deadline)
            self.loss.theta = part.theta
            found = self.loss.settle(moved)
            gain, steps = loss - found[1], steps - ROUND
            if gain > 0:
                points, (theta, loss, unmet) = moved, found
            if gain <= LEAST_GAIN * loss or taken < ROUND:
                break
        return points, theta, unmet

    def _part(self, unmet: Array) -> ProjectedLoss:
        """The loss on the rows that matter next: with unmet demands, or near to that."""
        nearness = unmet.max(axis=1)
        count = NEARBY * int((nearness > 0).sum()) + BESIDE
        if count > MOST * nearness.size:
            return self.loss
        return self._on(np.sort(largest(nearness, count)), self.decay)

    def _new(self, count: int, unmet: Array, sample: int = SAMPLE) -> Array:
        """New points: means of some rows with unmet demands, in equal number from each class."""
        mass = (self.task.weights[:, None] * np.square(np.maximum(unmet, 0.0))).sum(axis=1)
        totals = np.bincount(self.classes, weights=mass)
        order = np.argsort(-totals, kind="stable")
        counts = np.full(order.size, count // order.size)
        counts[order[: count % order.size]] += 1
        found = [
            self._means(np.flatnonzero(self.classes == k), mass, counts[k], max(sample, counts[k]))
            for k in range(order.size)
            if counts[k]
        ]
        return np.vstack([np.zeros((0, self.points.shape[1])), *found])

    def _means(self, rows: Array, mass: Array, count: int, sample: int) -> Array:
        """Means of a sample of the rows, in which those with more mass are likelier."""
        chances = mass[rows] / mass[rows].sum() if mass[rows].any() else None
        most = min(sample, rows.size if chances is None else int((chances > 0).sum()))
        if most < count:
            chances, most = None, min(sample, rows.size)
        drawn = self.rng.choice(rows, most, replace=False, p=chances)
        return self.loss.rows.inward(means(self.task.gram.X[drawn], count, MEANS_ROUNDS, self.rng))


def _quasi_newton(loss: ProjectedLoss, points: Array, steps: int, deadline: Deadline) -> tuple[Array, int]:
    """Points after some steps of L-BFGS, and how many there were."""
    scale = 1 / max(float(loss.weights.sum()), 1e-300)

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        value, gradient = loss(x.reshape(points.shape))
        return scale * value, scale * gradient.ravel()

    values: list[float] = []

    def stop(intermediate_result: OptimizeResult) -> None:
        values.append(intermediate_result.fun)
        slow = len(values) > WINDOW and values[-1 - WINDOW] - values[-1] < LEAST_GAIN * values[-1]
        if slow or deadline.over:
            raise StopIteration

    memory = int(np.clip(MEMORY_VALUES // points.size, 10, MEMORY))
    options = {"maxiter": steps, "maxcor": memory, "ftol": 1e-9, "gtol": 1e-9}
    found = minimize(value_and_gradient, points.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options)
    return found.x.reshape(points.shape), int(found.nit)
