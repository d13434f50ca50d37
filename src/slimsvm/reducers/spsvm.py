"""Sparse primal SVM (Keerthi, Chapelle & DeCoste 2006): a basis that grows by the point that lowers the objective most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Array
from ..model import Expansion, Task
from ..rows.protocol import Curvatures
from ..rows.threads import one_blas_thread
from ..solvers.basis import EXACT, check_C, squared_loss
from ..solvers.cholesky import GrowingCholesky
from ..solvers.newton import Line, NewtonSettings
from .base import Models, Reducer

#: curvatures are kept from one fit to the next if all outputs have at most this many numbers
KEPT_CURVATURES = 1 << 25


@dataclass(frozen=True)
class Candidates:
    """Rows that may join the basis, with their kernel values to its points and their entries of the next line of L."""

    rows: Array  # (count,)
    links: Array  # (m, count)
    halves: Array  # (m, count), L^-1 links
    pivots: Array  # (count,), the squared distance of each row's image from the span of the basis


class GreedyBasis:
    """Rows chosen so far, their coefficients, and a handle on the kernel values between them and all rows."""

    def __init__(self, task: Task, C: float, kept_curvatures: int = KEPT_CURVATURES) -> None:
        self.task, self.C, self.kept_curvatures = task, C, kept_curvatures
        self.problem = squared_loss(task)
        self.index = np.empty(0, dtype=np.intp)
        self.theta = np.zeros((1, task.targets.shape[1]))  # biases and coefficients
        self.R = np.zeros((1, 1))  # K_JJ / C, bordered by 0 for the bias
        self.against = task.rows.against(task.rows.take(self.index))
        self.diagonal = task.rows.diagonal()
        # L L' = K_JJ; a smaller share than this is lost in rounding
        self.cholesky = GrowingCholesky(float(np.finfo(task.rows.dtype).eps) ** (2 / 3))
        self.pool = self.diagonal > 0  # rows that may still be added
        self.curvatures = self._new_curvatures()
        self.outputs = np.zeros(task.targets.shape)
        self.optimise()

    @property
    def size(self) -> int:
        """The number of points."""
        return self.index.size

    def optimise(self, settings: NewtonSettings = EXACT) -> None:
        """Set all coefficients and biases to the best ones."""
        optimum = self.problem.fit(
            self.against, self.R, settings, start=self.theta, outputs=self.outputs, curvatures=self.curvatures
        )
        self.theta, self.outputs, self.optimised_size = optimum.theta, optimum.outputs, self.size
        if self.theta.size * self.theta.shape[0] > self.kept_curvatures:
            self.curvatures = self._new_curvatures()

    def _new_curvatures(self) -> Curvatures:
        return self.against.running_curvatures(self.theta.shape[1], growing=True)

    def grow(self, count: int) -> bool:
        """Add the best of `count` random candidates with its own best coefficient; False if none lowers the objective."""
        candidates = self._draw(count)
        if not candidates.rows.size:
            return False
        steps, gains = self.gains(candidates)
        best = int(gains.argmax())
        if self.size and not gains[best] > 0:
            return False
        self._add(candidates, best, steps[best])
        return True

    def _draw(self, count: int) -> Candidates:
        """Return random rows that are linearly independent of the basis; remove dependent ones from the pool."""
        while (remaining := np.flatnonzero(self.pool)).size:
            candidates = self.measured(self.task.rng.choice(remaining, min(count, remaining.size), replace=False))
            new = self.cholesky.independent(candidates.pivots, self.diagonal[candidates.rows])
            self.pool[candidates.rows[~new]] = False
            if new.any():
                return _some(candidates, new)
        if not self.size:
            raise ValueError(
                f"spsvm needs rows with k(x, x) > 0, but with the {self.task.rows.kernel.name} kernel there are none"
            )
        return self.measured(remaining)

    @one_blas_thread()
    def measured(self, rows: Array) -> Candidates:
        """Return rows as candidates."""
        links = self.task.rows.block(self.index, rows).astype(np.float64)
        return Candidates(rows, links, *self.cholesky.eliminate(links, self.diagonal[rows]))

    @one_blas_thread()
    def gains(self, candidates: Candidates) -> tuple[Array, Array]:
        """Return the best coefficient of each candidate by itself, (count, q), and the decrease of the objective."""
        columns = self.task.rows.against(self.task.rows.take(candidates.rows))
        linear = candidates.links.T @ self.theta[1:] / self.C
        quadratic = self.diagonal[candidates.rows] / self.C
        weights, outputs_by_line = self.problem.weights, np.ascontiguousarray(self.outputs.T)
        lines = list(zip(self.problem.low, self.problem.high, outputs_by_line, strict=True))
        steps, gains = np.empty_like(linear), np.empty_like(linear)
        for number in range(candidates.rows.size):
            change = columns.column(number)
            for output, (low, high, outputs) in enumerate(lines):
                line = Line(low, high, outputs, change, weights, linear[number, output], quadratic[number])
                steps[number, output] = line.minimum()
                gains[number, output] = line.gain(steps[number, output])
        return steps, gains.sum(axis=1)

    def _add(self, candidates: Candidates, number: int, step: Array) -> None:
        row = candidates.rows[number]
        self.cholesky.append(candidates.halves[:, number], float(candidates.pivots[number]))
        links = np.concatenate([[0.0], candidates.links[:, number]])[:, None] / self.C
        self.R = np.block([[self.R, links], [links.T, np.full((1, 1), self.diagonal[row] / self.C)]])
        self.against.append(self.task.rows.take(np.array([row])))
        self.index = np.append(self.index, row)
        self.theta = np.vstack([self.theta, step])
        self.outputs = self.outputs + self.against.column(self.size - 1)[:, None] * step
        self.pool[row] = False

    def model(self) -> Expansion:
        """Return the current model."""
        return self.task.expansion(self.index, self.theta[1:], self.theta[0])


def _some(candidates: Candidates, chosen: Array) -> Candidates:
    links, halves = candidates.links[:, chosen], candidates.halves[:, chosen]
    return Candidates(candidates.rows[chosen], links, halves, candidates.pivots[chosen])


#: Newton's method between two models: to four digits of the objective
ROUGH = NewtonSettings(precision=1e-4)


@dataclass(frozen=True)
class SpSVM(Reducer):
    """The SVM with the squared hinge loss in the primal, with a basis J of rows that grows greedily.

        minimise  1/2 beta' K_JJ beta + C/2 sum_i w_i max(0, 1 - y_i f(x_i))^2,    f(x) = sum_J beta_j k(x, x_j) + b

    Each round draws `candidates` rows (the paper's 59: the best of them is among the best 5 % of all with probability
    0.95), finds for each of them the lowest objective over its own coefficient with the others fixed (the second of the
    paper's methods), and adds the best one. Outputs share their points, and their gains are summed.

    All coefficients are then optimised by Newton's method: fully for every model on the path, and to four digits of the
    objective when the basis has grown by the share `growth` since the last time. 0 means after every point: that takes more
    time, and each point is chosen by up-to-date residuals. Newton's matrix is updated as points and rows change, and
    factorised again, which is cheap for a few hundred points.

    The bias is free, as in an SVM. Candidates that are linearly dependent on the basis, to rounding, are skipped: a copy of
    a point lowers nothing. This also keeps the problem convex if the kernel is not positive definite. The full model is
    not used. The kernel values between all rows and the basis are kept.

    S. S. Keerthi, O. Chapelle and D. DeCoste, "Building support vector machines with reduced classifier complexity",
    Journal of Machine Learning Research 7, 2006. (Written from memory; theirs optimises less often, on a schedule, and has
    no free bias.)
    """

    C: float = 1.0
    candidates: int = 59
    growth: float = 0.0
    needs_model: ClassVar[bool] = False
    real_valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if not self.candidates >= 1:
            raise ValueError(f"candidates must be a number of rows of at least 1, not {self.candidates!r}")
        if not self.growth >= 0:
            raise ValueError(f"growth must be 0 or a share such as 0.05, not {self.growth!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield the models of all sizes from one growing basis."""
        basis = GreedyBasis(task, self.C)
        for size in sizes:
            while basis.size < size and not (basis.size and task.run.over) and basis.grow(self.candidates):
                if basis.size < size and basis.size >= (1 + self.growth) * basis.optimised_size:
                    basis.optimise(ROUGH)
            basis.optimise()
            yield basis.model(), f"C={self.C:g}, candidates={self.candidates}"
            if basis.size < size:
                return
