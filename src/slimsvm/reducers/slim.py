"""slim, the house method: points and coefficients that move together towards what each row demands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from ..kernels import Array, dense
from ..limits import Deadline
from ..model import Expansion, Task
from ..path import Step, standard_error
from ..rows.responses import largest
from ..rows.threads import one_blas_thread
from ..solvers.basis import check_C, means
from ..solvers.demands import demands
from ..solvers.projection import ProjectedLoss
from .base import Models, Reducer

#: the first target is the first choice; by how many standard errors of its held-out error the other one must be better,
#: for the full model has seen the held-out rows, which flatters it and what follows it
TARGETS, MARGIN = ("label", "slant"), 2.0
#: the size at which targets are compared, and the one up to which several starts are
COMPARED, SMALL = 64, 16
#: the least share of the SVM's own regularisation, and the size from which on there is all of it with labels: few points
#: are a restraint already, and so is a full model
LEAST_DECAY, UNRESTRAINED = 0.1, 64
#: how near to the mean of all rows starts by chance are drawn, as a share of the way that is left
NEARER = (0.5, 0.25)
#: quasi-Newton steps after which the best of several starts is known, and for models on the way to larger ones
TRIAL_STEPS, FEW_TRIAL_STEPS = 30, 10
#: numbers in points up to which the model that is asked for has more steps
FEW_NUMBERS = 1000
#: quasi-Newton steps between two looks at all rows
ROUND = 100
#: past steps that quasi-Newton learns curvature from, and numbers that these may hold
MEMORY, MEMORY_VALUES = 40, 1 << 23
#: so many quasi-Newton steps that gain a smaller share of the loss are the last ones
WINDOW, LEAST_GAIN = 10, 1e-3
#: rows for each number to be found, and rows at least, for models on the way to the largest
ROWS_PER_NUMBER, LEAST_ROWS = 10, 8192
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
    SVM's own regularisation that is kept: None stands for 0.1 with the slant target and with few points, which are a
    restraint themselves, and for more with more points, up to 1 from 64 on. Target "auto" is "label" unless "slant" has a
    clearly lower held-out error at 64 points, as where rows are few and the full model has seen many.

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
        if self.target not in (*TARGETS, "auto"):
            raise ValueError(f"unknown target {self.target!r}; there are {[*TARGETS, 'auto']}")
        if self.decay is not None and not 0 <= self.decay < np.inf:
            raise ValueError(f"decay must be a number of at least 0, or None, not {self.decay!r}")
        if not self.steps >= 1:
            raise ValueError(f"steps must be a number of at least 1, not {self.steps!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Models for one target; at one size the other one is tried from the same points on, and the better goes on."""
        objectives, features = self._objectives(model), task.rows.X.shape[1]
        growth = _Growth(_affordable(task, sizes[-1]), objectives[0], 1 / self.C, deadline)
        compare_at = min(COMPARED, sizes[-1]) if len(objectives) > 1 and task.n_validation else np.inf
        for size in sizes:
            compare, last = size >= compare_at, size == sizes[-1]
            whole = last and not compare
            growth.grow(size, self._last_steps(size, features) if whole else self._steps(size), whole, last)
            if compare:
                growth, compare_at = growth.under_the_best(objectives, self.steps // 2), np.inf
            if compare and last:
                growth.go_on(growth.model, self._last_steps(size, features))
            yield growth.model, growth.objective.name
            if deadline.over or growth.model.size < size:
                return

    def _steps(self, size: int) -> int:
        """Steps for a size: fewer where there is little to find."""
        return self.steps if size > 2 else -(-self.steps // 2)

    def _last_steps(self, size: int, features: int) -> int:
        """Steps for the model that is asked for: more with few numbers to find, which is quick, and with many points."""
        return self.steps * int(np.clip(max(FEW_NUMBERS // (size * features), size // 128), 1, 3))

    def finished(self, task: Task, step: Step, model: Expansion | None) -> Expansion:
        """A model of the path after some steps with all rows."""
        objective = next(each for each in self._objectives(model) if each.name == step.settings)
        growth = _Growth(_affordable(task, step.size), objective, 1 / self.C, Deadline(self.time_limit))
        growth.go_on(step.model, self._last_steps(*step.model.points.shape))
        return growth.model

    def _objectives(self, model: Expansion | None) -> list[_Objective]:
        """What is tried, the first choice first."""
        return [
            _Objective(target, self.decay, model if target == "slant" else None)
            for target in TARGETS
            if self.target in ("auto", target) and (model is not None or target == "label")
        ]


@dataclass(frozen=True)
class _Objective:
    """A loss: what rows demand, of the full model if there is one, and how much |f|^2 weighs."""

    target: str
    decay: float | None
    model: Expansion | None

    @property
    def name(self) -> str:
        """Its settings in words."""
        return f"target={self.target}"

    def decay_at(self, size: int) -> float:
        """The share of the SVM's own regularisation for a model of that size."""
        if self.decay is not None:
            return self.decay
        return LEAST_DECAY if self.target == "slant" else float(np.clip(size / UNRESTRAINED, LEAST_DECAY, 1.0))


def _affordable(task: Task, size: int) -> Task:
    """The task on all rows, or on as many by chance as have `MOST_VALUES` kernel values with so many points."""
    return task.part(task.sample(max(MOST_VALUES // size, 1)))


class _Growth:
    """A model that grows, for one objective."""

    def __init__(self, task: Task, objective: _Objective, unit: float, deadline: Deadline) -> None:
        """`unit` is what decay counts in: 1 / C for all rows."""
        self.task, self.objective, self.unit, self.deadline = task, objective, unit, deadline
        self.wanted = demands(task, objective.model)
        self.rng = np.random.default_rng(task.rng.integers(2**32))
        self.loss = ProjectedLoss(task.rows, task.targets, self.wanted, task.weights, unit)
        self.some = task.sample(SAMPLE)
        self.few = self._on_sample(self.some)
        self.classes = np.unique(task.targets, axis=0, return_inverse=True)[1].ravel()
        self.points = np.zeros((0, task.rows.X.shape[1]))
        self.theta = np.zeros((1, self.wanted.shape[1]))
        self.unmet = np.maximum(self.wanted, 0.0)

    @property
    def model(self) -> Expansion:
        """The model as it stands."""
        points = self.loss.rows.outward(self.points)
        return Expansion(self.task.rows.kernel, points, self.theta[1:].copy(), self.theta[0].copy())

    def grow(self, size: int, steps: int, whole: bool, last: bool) -> None:
        """Go on to the model of that size; up to a small one starts from scratch are tried beside the grown one."""
        with one_blas_thread():
            self._weigh(size)
            start = np.vstack([self.points, self._new(size - self.points.shape[0], self.unmet)])
            if 1 < size <= SMALL:
                trial_steps = TRIAL_STEPS if last else FEW_TRIAL_STEPS
                trials = [self._tried(points, trial_steps) for points in (start, *self._afresh(size))]
                _, start, self.theta = min(trials, key=lambda trial: trial[0])
            self.points, self.theta, self.unmet = self._descended(start, self.theta, steps, whole)

    def _tried(self, points: Array, steps: int) -> tuple[float, Array, Array]:
        """The loss on some rows after a few steps from the points on, and the points and coefficients then."""
        self.few.theta = self.theta
        points, _ = _quasi_newton(self.few, points, steps, self.deadline)
        theta, value, _ = self.few.settle(points)
        return value, points, theta

    def _afresh(self, size: int) -> Iterator[Array]:
        """Starts from scratch: means, and rows by chance that are moved towards the mean of all."""
        everything = np.maximum(self.wanted, 0.0)
        yield self._new(size, everything)
        mean = self.loss.rows.inward(dense(self.task.rows.X[self.some].mean(axis=0))[None])
        for nearer in NEARER:
            yield mean + nearer * (self._new(size, everything, sample=1) - mean)

    def go_on(self, model: Expansion, steps: int) -> None:
        """Some steps from a model on, with all rows."""
        with one_blas_thread():
            self._weigh(model.size)
            theta = np.vstack([model.bias, model.coef])
            start = self.loss.rows.inward(model.points)
            self.points, self.theta, self.unmet = self._descended(start, theta, steps, whole=True)

    def under_the_best(self, objectives: Sequence[_Objective], steps: int) -> _Growth:
        """The growth under the objective that has the lowest held-out error after some steps from here on.

        The first of them unless another is clearly better.
        """
        rows = self._enough(self.points.size)
        part, unit = self.task.part(rows), self.unit * self._share(rows)
        trials = [_Growth(part, objective, unit, self.deadline) for objective in objectives]
        for trial in trials:
            trial.go_on(self.model, steps)
        errors = [self.task.error(trial.model) for trial in trials]
        margin = MARGIN * standard_error(errors[0], self.task.n_validation)
        best = trials[0] if errors[0] - margin <= min(errors) else trials[int(np.argmin(errors))]
        growth = self
        if best.objective.name != self.objective.name:
            growth = _Growth(self.task, best.objective, self.unit, self.deadline)
        growth.go_on(best.model, 0)
        return growth

    def _enough(self, numbers: int) -> Array:
        """Rows by chance that are enough to find so many numbers; all, where there are not many more."""
        most = max(ROWS_PER_NUMBER * numbers, LEAST_ROWS)
        return self.task.sample(most if most < MOST * self.task.rows.n else self.task.rows.n)

    def _share(self, rows: Array) -> float:
        """The rows' share of all weights; rows without weight have no say, and 1 will do."""
        whole = self.task.weights.sum()
        return float(self.task.weights[rows].sum() / whole) if whole else 1.0

    def _weigh(self, size: int) -> None:
        """Let |f|^2 weigh what it is to weigh in a model of that size."""
        self.loss.decay = self.unit * self.objective.decay_at(size)
        self.few.decay = self.loss.decay * self._share(self.some)

    def _on(self, rows: Array) -> ProjectedLoss:
        part = self.task.part(rows)
        return ProjectedLoss(part.rows, part.targets, self.wanted[rows], part.weights, self.loss.decay)

    def _on_sample(self, rows: Array) -> ProjectedLoss:
        """The loss on rows by chance, on which |f|^2 is to weigh as much as on all of them."""
        if rows.size == self.task.rows.n:
            return self.loss
        loss = self._on(rows)
        loss.decay *= self._share(rows)
        return loss

    def _descended(self, points: Array, theta: Array, steps: int, whole: bool) -> tuple[Array, Array, Array]:
        """Points after so many steps, with the best coefficients and the unmet demands on all rows."""
        rows = self._enough(points.size)
        if whole or rows.size == self.task.rows.n:
            return self._descended_on_all(points, theta, steps)
        some = self._on_sample(rows)
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
        return self._on(np.sort(largest(nearness, count)))

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
        return self.loss.rows.inward(means(self.task.rows.X[drawn], count, MEANS_ROUNDS, self.rng))


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
    options = {"maxiter": steps, "maxcor": memory, "ftol": 0.0, "gtol": 0.0}
    found = minimize(value_and_gradient, points.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options)
    return found.x.reshape(points.shape), int(found.nit)
