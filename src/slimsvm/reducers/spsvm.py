"""Sparse primal SVM (Keerthi, Chapelle & DeCoste 2006): a basis that grows by the point that lowers the objective most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from ..kernels import Array
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.threads import one_blas_thread
from ..solvers.basis import EXACT, check_C, squared_hinge
from ..solvers.coefficients import line_minimum
from .base import Models, Reducer

#: how well coefficients are optimised, as a share of the objective, where no model is asked for
ROUGH = 1e-4


@dataclass(frozen=True)
class SpSVM(Reducer):
    """The SVM with the squared hinge in the primal, its function restricted to a basis J of rows that grows greedily:

        minimise  1/2 beta' K_JJ beta + C/2 sum_i w_i max(0, 1 - y_i f(x_i))^2,    f(x) = sum_J beta_j k(x, x_j) + b

    Each round draws `candidates` rows (the paper's 59: the best of them is among the best 5 % of all with probability
    0.95), finds for each of them the least objective over its own coefficient alone, the others fixed (the second of the
    paper's methods), and adds the best one. With several outputs, which share their points, gains are summed.

    All coefficients are then optimised by Newton's method: fully for every model on the path, and to four digits of the
    objective when the basis has grown by the share `growth` since the last time. 0 is after every point, which takes more
    time and chooses by what is left after the last one. The matrix of Newton's equations is kept up
    to date with points and rows that come and go, and factorised anew, which is cheap for a few hundred points.

    The bias is free, as in an SVM. A candidate that the basis represents already, to rounding, is passed over: a copy of
    a point lowers nothing. This also keeps the problem convex where a kernel is not positive. The full model plays no
    part. The kernel values between all rows and the basis are kept in memory.

    S. S. Keerthi, O. Chapelle and D. DeCoste, "Building support vector machines with reduced classifier complexity",
    Journal of Machine Learning Research 7, 2006. (Written from memory; theirs optimises less often, on a schedule, and has
    no free bias.)
    """

    C: float = 1.0
    candidates: int = 59
    growth: float = 0.0
    needs_model: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_C(self.C)
        if not self.candidates >= 1:
            raise ValueError(f"candidates must be a number of rows of at least 1, not {self.candidates!r}")
        if not self.growth >= 0:
            raise ValueError(f"growth must be 0 or a share such as 0.05, not {self.growth!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """One growing basis, with the best coefficients where a size is asked for."""
        basis = Basis(task, self.C, min(sizes[-1], task.rows.n))
        for size in sizes:
            while basis.size < size and not (basis.size and deadline.over) and basis.grow(self.candidates):
                if basis.size < size and basis.size >= (1 + self.growth) * basis.settled:
                    basis.optimise(ROUGH)
            basis.optimise()
            yield basis.model(), f"C={self.C:g}, candidates={self.candidates}"
            if basis.size < size:
                return


class Basis:
    """Rows chosen so far, their coefficients, and the kernel values between them and all rows."""

    def __init__(self, task: Task, C: float, most: int) -> None:
        n, q = task.targets.shape
        self.task, self.C = task, C
        self.index = np.empty(0, dtype=np.intp)
        self.coef, self.bias = np.zeros((0, q)), np.zeros(q)
        self.K = np.empty((n, most), task.rows.dtype)
        self.regulariser = np.zeros((most + 1, most + 1))
        self.fit = squared_hinge(task, self.K, self.regulariser)
        self.diagonal = task.rows.diagonal()
        self.factor = np.zeros((most, most))  # L with L L' = K_JJ
        self.pool = self.diagonal > 0  # rows that may still join
        self.unmet = self.fit.unmet(self.coef, self.bias)
        self.optimise()

    @property
    def size(self) -> int:
        """The number of points."""
        return self.index.size

    def optimise(self, precision: float = EXACT) -> None:
        """The best coefficients of all points, to a share of the objective."""
        self.coef, self.bias, self.unmet = self.fit.descend(self.coef, self.bias, self.unmet, precision)
        self.settled = self.size

    def grow(self, candidates: int) -> bool:
        """Add the best of so many candidates, with its own best coefficient; False where none lowers the objective."""
        rows, halves, pivots = self._draw(candidates)
        if not rows.size:
            return False
        columns = self.task.rows.matrix(self.task.rows.points(rows))
        with one_blas_thread():  # many small products
            steps, gains = self.gains(rows, columns)
        best = int(gains.argmax())
        if self.size and not gains[best] > 0:
            return False
        self._add(int(rows[best]), columns[:, best], steps[best], halves[:, best], pivots[best])
        return True

    def _draw(self, count: int) -> tuple[Array, Array, Array]:
        """Rows by chance that the basis does not represent yet, with their part of the next line of the factor.

        The pivot of a row is the squared distance of its image from the span of the basis, and can only shrink.
        """
        smallest = np.finfo(self.K.dtype).eps ** (2 / 3)  # of its own norm; rounding hides less than that
        while (left := np.flatnonzero(self.pool)).size:
            rows = self.task.rng.choice(left, min(count, left.size), replace=False)
            among = self.task.rows.block(self.index, rows).astype(np.float64)
            with one_blas_thread():
                halves = solve_triangular(self.factor[: self.size, : self.size], among, lower=True)
            pivots = self.diagonal[rows] - np.square(halves).sum(axis=0)
            new = pivots > smallest * self.diagonal[rows]
            self.pool[rows[~new]] = False
            if new.any():
                return rows[new], halves[:, new], pivots[new]
        if not self.size:
            raise ValueError(
                f"spsvm needs rows with k(x, x) > 0, and the {self.task.rows.kernel.name} kernel has none here"
            )
        return left, np.empty((self.size, 0)), np.empty(0)

    def gains(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The best coefficient of each candidate alone, (count, q), and what they lower the objective by, times 2 / C."""
        linear = self.K[rows, : self.size] @ self.coef / self.C
        quadratic = self.diagonal[rows] / self.C
        steps, gains = np.empty_like(linear), np.empty_like(linear)
        columns = np.ascontiguousarray(columns.T)
        for output, (slack, signs) in enumerate(zip(self.unmet.T.copy(), self.fit.signs.T.copy(), strict=True)):
            for number, column in enumerate(columns):
                line = slack, signs * column, linear[number, output], quadratic[number]
                steps[number, output] = line_minimum(*line)
                gains[number, output] = _gain(*line, steps[number, output])
        return steps, gains.sum(axis=1)

    def _add(self, row: int, column: Array, step: Array, half: Array, pivot: float) -> None:
        size = self.size
        self.factor[size, :size], self.factor[size, size] = half, np.sqrt(pivot)
        self.regulariser[size + 1, 1 : size + 1] = self.regulariser[1 : size + 1, size + 1] = column[self.index] / self.C
        self.regulariser[size + 1, size + 1] = self.diagonal[row] / self.C
        self.K[:, size] = column
        self.index = np.append(self.index, row)
        self.coef = np.vstack([self.coef, step])
        self.unmet -= self.fit.signs * column[:, None] * step
        self.pool[row] = False

    def model(self) -> Expansion:
        """The function so far."""
        return self.task.expansion(self.index, self.coef, self.bias)


def _gain(slack: Array, change: Array, linear: float, quadratic: float, step: float) -> float:
    """What a step lowers the objective of a line by."""
    before, after = np.maximum(slack, 0.0), np.maximum(slack - step * change, 0.0)
    return float(before @ before - after @ after - step * (quadratic * step + 2 * linear))
