"""Sparse primal SVM (Keerthi, Chapelle & DeCoste 2006): a basis that grows by the point that lowers the objective most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..model import Expansion, Task
from ..solvers.basis import check_C
from ..solvers.greedy_basis import GreedyBasis
from ..solvers.newton import NewtonSettings
from .base import Models, Reducer

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
