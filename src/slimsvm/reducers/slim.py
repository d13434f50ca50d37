"""slim, the house method: points and coefficients that move together towards what each row demands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from ..deadline import Deadline
from ..gram import one_blas_thread
from ..kernels import Array
from ..model import Expansion, Status, Task
from ..path import Path, Step, prefer
from ..responses import largest
from .basis import check_C, means
from .demands import demands
from .projection import ProjectedLoss
from .reducer import Models, Reducer

#: targets, and the share of the SVM's own regularisation that each wants: a full model has been regularised already
DECAYS = {"slant": 0.1, "label": 1.0}
#: the size at which both targets are tried, and up to which a start from scratch is tried beside the grown one
SMALL = 16
#: the size up to which such starts are more, by so many draws of rows
VERY_SMALL, DRAWS = 4, 2
#: the size above which the other target has a second chance at the end
MANY = 256
#: quasi-Newton steps after which the better of two starts is known
TRIAL_STEPS = 10
#: quasi-Newton steps between two looks at all rows
ROUND = 100
#: past steps that quasi-Newton learns curvature from, and numbers that these may hold
MEMORY, MEMORY_VALUES = 40, 1 << 23
#: so many quasi-Newton steps that gain a smaller share of the loss are the last ones
WINDOW, LEAST_GAIN = 10, 3e-3
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

        sum_ic w_i max(0, h_ic - y_ic f_c(x_i))^2 + decay |f|^2

    which is one-sided: a row that has the margin it demands costs nothing. With target "slant" the demands are the full
    model's margins, h = min(1, y f), rows that it gets wrong demand nothing (the slant loss of Cotter et al. 2013,
    squared), and decay is 0.1 / C; with "label" every row demands h = 1, a squared hinge loss, which needs no full model,
    and decay is 1 / C. "auto" tries both at a small size and goes on with the one that has the lower held-out error;
    beyond 256 points the other one is tried once more at the end.

    The coefficients are the best ones for the points at every step (`projection`), and the points follow L-BFGS, with a
    look at all rows only now and then: most have what they demand. Larger models grow from smaller ones by points among
    the rows with unmet demands (k-means); small ones also begin from scratch, and the better start is kept. `steps` are
    those of L-BFGS for each size; the largest has twice as many, and more where it is small. The model that is chosen in
    the end takes a third as many with the held-out rows among the others.
    """

    target: str = "auto"
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
        if self.target not in (*DECAYS, "auto"):
            raise ValueError(f"unknown target {self.target!r}; there are {[*DECAYS, 'auto']}")
        if not self.steps >= 1:
            raise ValueError(f"steps must be a number of at least 1, not {self.steps!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """The first target's models up to a small size; there the other one joins, and the better of the two goes on.

        Where points are many, the other one has a second chance with the points found.
        """
        task = _affordable(task, sizes[-1])
        growths = [_Growth(task, h, name, self.C, deadline) for name, h in self._demands(task, model).items()]
        growth, *rivals = growths
        for size in sizes:
            growth.grow(size, self._steps(size, sizes[-1]))
            yield growth.model, growth.name
            if size == sizes[-1] or size >= SMALL:
                for rival in rivals:
                    rival.grow(size, self._steps(size, sizes[-1]))
                    yield rival.model, rival.name
                growth, rivals = min((growth, *rivals), key=_error), []
            if deadline.over or growth.model.size < size:
                return
        if sizes[-1] > MANY:
            for rival in growths:
                if rival is not growth:
                    rival.go_on(growth.model, self._steps(sizes[-1], sizes[-1]))
                    yield rival.model, rival.name

    def collected(self, steps: Sequence[Step], status: Status, judges: int) -> Path:
        """Of each size the model with the lower held-out error; where points are many, labels unless clearly worse.

        Held-out rows are no strangers to the full model, whose margins the slant target follows, and flatter it a little.
        """
        labels = tuple(step for step in steps if step.settings == "label" and step.size > MANY)
        return prefer(Path(labels, status, judges), super().collected(steps, status, judges))

    def _steps(self, size: int, largest: int) -> int:
        """Steps for a size: few where there is little to find, more for the model that is asked for, if they are cheap."""
        if size == largest:
            return self.steps * int(np.clip(64 // size, 2, 5))
        return self.steps if size > 2 else -(-self.steps // 2)

    def finished(self, task: Task, step: Step, model: Expansion | None) -> Expansion:
        """A model of the path after some steps with all rows."""
        task = _affordable(task, step.size)
        found = replace(self, target=step.settings)._demands(task, model)
        growth = _Growth(task, found[step.settings], step.settings, self.C, Deadline(self.time_limit))
        growth.go_on(step.model, self.steps // 3)
        return growth.model

    def _demands(self, task: Task, model: Expansion | None) -> dict[str, Array]:
        """The demands of each target to try."""
        found = {}
        if model is not None and self.target != "label":
            found["slant"] = demands(task, model)
        if model is None or self.target != "slant":
            found["label"] = demands(task, None)
        return found


def _affordable(task: Task, size: int) -> Task:
    """The task on all rows, or on as many by chance as have `MOST_VALUES` kernel values with so many points."""
    return task.part(task.sample(max(MOST_VALUES // size, 1)))


def _error(growth: _Growth) -> float:
    """The held-out error of a growth as it stands; 0 where nobody judges, which leaves the first one."""
    return float(np.nan_to_num(growth.task.error(growth.model)))


class _Growth:
    """A model that grows, for one target."""

    def __init__(self, task: Task, wanted: Array, name: str, C: float, deadline: Deadline) -> None:
        self.task, self.wanted, self.name, self.deadline = task, wanted, name, deadline
        self.decay = DECAYS[name] / C
        self.rng = np.random.default_rng(task.rng.integers(2**32))
        self.loss = ProjectedLoss(task.gram, task.targets, wanted, task.weights, self.decay)
        self.few = self.loss if task.gram.n <= SAMPLE else self._on(task.sample(SAMPLE))
        self.classes = np.unique(task.targets, axis=0, return_inverse=True)[1].ravel()
        self.points = np.zeros((0, task.gram.X.shape[1]))
        self.theta = np.zeros((1, wanted.shape[1]))
        self.unmet = np.maximum(wanted, 0.0)

    @property
    def model(self) -> Expansion:
        """The model as it stands."""
        points = self.loss.rows.outward(self.points)
        return Expansion(self.task.gram.kernel, points, self.theta[1:].copy(), self.theta[0].copy())

    def grow(self, size: int, steps: int) -> None:
        """Go on to the model of that size; up to a small one starts from scratch are tried beside the grown one."""
        with one_blas_thread():
            start = np.vstack([self.points, self._new(size - self.points.shape[0], self.unmet)])
            if self.points.shape[0] and size <= SMALL:
                trials = [self._tried(points) for points in (start, *self._afresh(size))]
                _, start, self.theta = min(trials, key=lambda trial: trial[0])
            self.points, self.theta, _, self.unmet = self._descended(start, self.theta, steps)

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
        """Some steps from a model on."""
        with one_blas_thread():
            theta = np.vstack([model.bias, model.coef])
            start = self.loss.rows.inward(model.points)
            self.points, self.theta, _, self.unmet = self._descended(start, theta, steps)

    def _on(self, rows: Array) -> ProjectedLoss:
        part = self.task.part(rows)
        return ProjectedLoss(part.gram, part.targets, self.wanted[rows], part.weights, self.decay)

    def _descended(self, points: Array, theta: Array, steps: int) -> tuple[Array, Array, float, Array]:
        """Points after so many steps with all rows, with the best coefficients, the loss and the unmet demands."""
        self.loss.theta = theta
        best = points, *self.loss.settle(points)
        while steps > 0 and not self.deadline.over:
            part = self._part(best[3])
            part.theta = best[1]
            points, taken = _quasi_newton(part, best[0], min(ROUND, steps), self.deadline)
            self.loss.theta = part.theta
            found = points, *self.loss.settle(points)
            gain, steps = best[2] - found[2], steps - ROUND
            best = found if gain > 0 else best
            if gain <= LEAST_GAIN * best[2] or taken < ROUND:
                break
        return best

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
