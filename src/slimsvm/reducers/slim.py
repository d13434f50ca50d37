"""slim, the house method: points and coefficients that move together towards what each row demands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse
from sklearn.cluster import KMeans

from ..deadline import Deadline
from ..gram import one_blas_thread
from ..kernels import Array, Matrix
from ..model import Expansion, Task
from .demands import demands
from .projection import ProjectedLoss
from .reducer import Reducer

TARGETS = ("slant", "label")
#: sizes up to which both targets are tried, and starts from scratch beside the grown one
SMALL = 16
#: quasi-Newton steps after which the better of two starts is known
TRIAL_STEPS = 15
#: quasi-Newton steps between two looks at all rows
ROUND = 25
#: past steps that quasi-Newton learns curvature from
MEMORY = 20
#: rows to look at for each row with an unmet demand: those come first that are nearest to one
NEARBY = 3
#: rows that k-means sees
SAMPLE = 4096
#: kernel values between rows and points that may be held
MOST_VALUES = 1 << 26


@dataclass(frozen=True)
class Slim(Reducer):
    """Small models whose points are found, not chosen.

    For each size it minimises, over points and coefficients,

        sum_ic w_i max(0, h_ic - y_ic f_c(x_i))^2 + |f|^2 / C

    which is one-sided: a row that has the margin it demands costs nothing. With target "slant" the demands are the full
    model's margins, h = min(1, y f), and rows that it gets wrong demand nothing (the slant loss of Cotter et al. 2013,
    squared); with "label" every row demands h = 1, a squared hinge loss, which needs no full model. "auto" tries both on
    small sizes and goes on with the one that has the lower held-out error.

    The coefficients are the best ones for the points at every step (`projection`), and the points follow L-BFGS, with a
    look at all rows only now and then: most have what they demand. Larger models grow from smaller ones by points among
    the rows with unmet demands (k-means); small ones also begin from scratch, and the better start is kept. `steps` are
    those of L-BFGS for each size, and twice as many for the largest.
    """

    target: str = "auto"
    C: float = 1.0
    steps: int = 60
    needs_model: ClassVar[bool] = False
    selects: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True
    sizes_per_doubling: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target not in (*TARGETS, "auto"):
            raise ValueError(f"unknown target {self.target!r}; there are {[*TARGETS, 'auto']}")
        if not self.steps >= 1:
            raise ValueError(f"steps must be a number of at least 1, not {self.steps!r}")

    def models(
        self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline
    ) -> Iterator[tuple[Expansion, str]]:
        """Small sizes for each target, then the others for the better one."""
        growths = [_Growth(task, h, name, self, deadline) for name, h in self._demands(task, model).items()]
        for number, size in enumerate(sizes):
            if size > SMALL and len(growths) > 1:
                growths = [min(growths, key=lambda growth: np.mean(growth.errors or [0.0]))]
            steps = self.steps * (1 + (number == len(sizes) - 1))
            for growth in growths:
                growth.grow(size, steps)
                yield growth.model, growth.name
            if deadline.over or growths[0].model.size < size:
                return

    def _demands(self, task: Task, model: Expansion | None) -> dict[str, Array]:
        """The demands of each target to try."""
        found = {}
        if model is not None and self.target != "label":
            found["slant"] = demands(task, model)
        if model is None or self.target != "slant":
            found["label"] = demands(task, None)
        return found


class _Growth:
    """A model that grows, for one target."""

    def __init__(self, task: Task, wanted: Array, name: str, settings: Slim, deadline: Deadline) -> None:
        self.task, self.wanted, self.name, self.settings, self.deadline = task, wanted, name, settings, deadline
        self.rng = np.random.default_rng(task.rng.integers(2**32))
        self.loss = self._loss(None)
        self.classes = np.unique(task.targets, axis=0, return_inverse=True)[1].ravel()
        self.points = np.zeros((0, task.gram.X.shape[1]))
        self.theta = np.zeros((1, wanted.shape[1]))
        self.value, self.unmet = np.inf, np.maximum(wanted, 0.0)
        self.errors: list[float] = []
        self.model = task.expansion(np.empty(0, dtype=np.intp), self.theta[1:], self.theta[0])

    def _loss(self, rows: Array | None) -> ProjectedLoss:
        task, decay = self.task, 1 / self.settings.C
        if rows is None:
            return ProjectedLoss(task.gram, task.targets, self.wanted, task.weights, decay)
        return ProjectedLoss(task.gram.subset(rows), task.targets[rows], self.wanted[rows], task.weights[rows], decay)

    def grow(self, size: int, steps: int) -> None:
        """Go on to the model of that size."""
        with one_blas_thread():
            starts = [np.vstack([self.points, self._new(size - self.points.shape[0], self.unmet)])]
            if size <= SMALL and self.points.shape[0]:
                starts.append(self._new(size, np.maximum(self.wanted, 0.0)))
            if len(starts) > 1:
                trials = [self._descended(start, TRIAL_STEPS) for start in starts]
                self._accept(*min(trials, key=lambda trial: trial[2]))
                steps -= TRIAL_STEPS
                starts = [self.points]
            self._accept(*self._descended(starts[0], max(steps, 1)))
        self.model = Expansion(
            self.task.gram.kernel, self.loss.rows.outward(self.points), self.theta[1:].copy(), self.theta[0].copy()
        )
        self.errors.append(self.task.error(self.model))

    def _accept(self, points: Array, theta: Array, value: float, unmet: Array) -> None:
        self.points, self.theta, self.value, self.unmet = points, theta, value, unmet

    def _descended(self, points: Array, steps: int) -> tuple[Array, Array, float, Array]:
        """Points after so many steps, with the best coefficients, the loss and the unmet demands."""
        self.loss.theta = self.theta if self.theta.shape[0] <= points.shape[0] + 1 else np.zeros_like(self.theta[:1])
        value, unmet = self.loss.settle(points)
        best = points, self.loss.theta, value, unmet
        while steps > 0 and not self.deadline.over:
            part = self._part(best[3])
            part.theta = best[1].copy()
            points, taken = _quasi_newton(part, best[0], min(ROUND, steps), self.deadline)
            self.loss.theta = part.theta
            value, unmet = self.loss.settle(points)
            gain, steps = best[2] - value, steps - ROUND
            if gain > 0:
                best = points, self.loss.theta, value, unmet
            if gain <= 1e-4 * value or taken < ROUND // 2:
                break
        return best

    def _part(self, unmet: Array) -> ProjectedLoss:
        """The loss on the rows that matter next: with unmet demands, or near to that."""
        nearness = unmet.max(axis=1)
        count = NEARBY * int((nearness > 0).sum()) + BLOCK_OF_ROWS
        if count > 0.6 * nearness.size:
            return self.loss
        return self._loss(np.sort(np.argpartition(-nearness, count)[:count]))

    def _new(self, count: int, unmet: Array) -> Array:
        """New points: means of rows with unmet demands, in equal number from each class."""
        mass = (self.task.weights[:, None] * np.square(np.maximum(unmet, 0.0))).sum(axis=1)
        totals = np.bincount(self.classes, weights=mass)
        order = np.argsort(-totals, kind="stable")
        counts = np.full(order.size, count // order.size)
        counts[order[: count % order.size]] += 1
        found = [self._means(np.flatnonzero(self.classes == k), mass, counts[k]) for k in range(order.size) if counts[k]]
        return np.vstack([np.zeros((0, self.points.shape[1])), *found])

    def _means(self, rows: Array, mass: Array, count: int) -> Array:
        """Means of the rows, those drawn more often that have more mass."""
        chances = mass[rows] / mass[rows].sum() if mass[rows].any() else None
        most = min(SAMPLE, rows.size if chances is None else int((chances > 0).sum()))
        if most < count:
            chances, most = None, min(SAMPLE, rows.size)
        drawn = self.rng.choice(rows, most, replace=False, p=chances)
        X = _dense(self.task.gram.X[drawn])
        means = KMeans(min(count, most), n_init=1, max_iter=10, random_state=int(self.rng.integers(2**31))).fit(X)
        return self.loss.rows.inward(means.cluster_centers_)


BLOCK_OF_ROWS = 1024


def _dense(X: Matrix) -> Array:
    return X.toarray() if issparse(X) else X


def _quasi_newton(loss: ProjectedLoss, points: Array, steps: int, deadline: Deadline) -> tuple[Array, int]:
    """Points after some steps of L-BFGS, and how many there were."""
    scale = 1 / max(float(loss.weights.sum()), 1e-300)

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        value, gradient = loss(x.reshape(points.shape))
        return scale * value, scale * gradient.ravel()

    def stop(intermediate_result: object) -> None:  # noqa: ARG001
        if deadline.over:
            raise StopIteration

    options = {"maxiter": steps, "maxcor": MEMORY, "ftol": 1e-9, "gtol": 1e-9}
    found = minimize(value_and_gradient, points.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options)
    return found.x.reshape(points.shape), int(found.nit)
