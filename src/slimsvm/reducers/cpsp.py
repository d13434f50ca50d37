"""Sparse kernel SVMs by cutting planes (Joachims & Yu 2009): few basis vectors, made where the planes need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Kernel
from ..limits import Deadline
from ..model import Expansion, Task
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
from ..solvers.cutting_planes import CuttingPlanes
from ..solvers.growing_basis import PreimageBasis, RowBasis
from ..solvers.span import Span
from .base import Models, Reducer

BASES = ("preimages", "rows")
RESIDUALS = ("weighted", "newest")


@dataclass(frozen=True)
class CPSP(Reducer):
    """The SVM whose weight vector lies in the span of few basis vectors, by cutting planes (Machine Learning 76, 2009).

        minimise  1/2 |w|^2 + 1/2 v^2 + C sum_i w_i max(0, 1 - y_i (<w, Phi(x_i)> + bias v))   over v and w in span Phi(b_j)

    is solved for a growing basis b_1, b_2, ... to a gap between primal and dual of `tol` C sum_i w_i: `tol` is the paper's
    epsilon, of the mean hinge loss. It needs the labels and no full model. Each cutting plane (`CuttingPlanes`) is a
    vector sum_i C w_i c_i y_i Phi(x_i), and what the span lacks of it, the residual, asks for the next basis vector:

    - basis="preimages": the z whose Phi(z) has the largest cosine with it, searched from the best `starts` of `candidates`
      rows drawn by chance, in at most `climb_steps` steps: of the fixed-point iteration for the rbf kernel (the paper's
      method), of quasi-Newton ascent for others. Kernels without gradients fall back on rows.
    - basis="rows": the best of that many rows (the paper's "59/95": the best of 59 is likely among the best 5 % of all)
      where best is what leaves the least residual. For sparse rows of many features this keeps the points sparse.

    All outputs share the basis: the squared cosines of their residuals are summed. Each has its own planes and weights.

    Where this is not the paper's: the residual is that of all planes by their weights, w's own, and each basis is solved
    for before it grows; residual="newest", settle=False grow by the newest plane alone, with every plane. The paper's rule
    has no bias; here `bias` is the value of a constant feature (times the root mean square |Phi(x)|), large enough for
    its v^2 to cost next to nothing; bias=0 leaves it out. The planes are found by OCAS's rounds.
    """

    C: float = 1.0
    tol: float = 1e-3
    basis: str = "preimages"
    residual: str = "weighted"
    settle: bool = True
    bias: float = 10.0
    candidates: int = 59
    starts: int = 1
    climb_steps: int = 20
    max_rounds: int = 1000
    needs_model: ClassVar[bool] = False
    selects: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, table in (("basis", BASES), ("residual", RESIDUALS)):
            if getattr(self, name) not in table:
                raise ValueError(f"unknown {name} {getattr(self, name)!r}; there are {list(table)}")
        for name in ("C", "tol"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be a number above 0, not {getattr(self, name)!r}")
        if not 0 <= self.bias < np.inf:
            raise ValueError(f"bias must be a number of at least 0, not {self.bias!r}; 0 is for none, 10 as good as free")
        for name in ("candidates", "starts", "climb_steps", "max_rounds"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {getattr(self, name)!r}")

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:  # noqa: ARG003
        """Every kernel: those without gradients have a basis of rows."""
        return True

    def empty_basis(self, gram: Rows, span: Span) -> RowBasis:
        """The way of growing; kernels without gradients have one only."""
        if self.basis == "preimages" and gram.kernel.differentiable:
            return PreimageBasis(gram, span, self.candidates, self.starts, self.climb_steps)
        return RowBasis(gram, span, self.candidates)

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """All sizes from one run: each basis begins with the one before."""
        run = _Run(self, task, sizes[-1])
        run.solve(self.max_rounds, deadline)
        judged = -1
        while not (run.size and deadline.over) and run.size < sizes[-1] and run.grow(task.rng):
            wanted = run.size in sizes
            run.solve(self.max_rounds if self.settle or wanted else 1, deadline)
            if wanted:
                judged = run.size
                yield run.model()
        if run.size != judged:
            run.solve(self.max_rounds, deadline)
            yield run.model()


class _Run:
    """A basis, and the planes of each output in its span."""

    def __init__(self, settings: CPSP, task: Task, limit: int) -> None:
        self.settings, self.task = settings, task
        gram = task.rows
        diagonal = gram.diagonal()
        self.span = Span(diagonal, limit, gram.dtype, settings.bias * float(np.sqrt(np.abs(diagonal).mean())))
        self.basis = settings.empty_basis(gram, self.span)
        self.outputs = [CuttingPlanes(y, settings.C * task.weights * np.abs(y)) for y in task.targets.T]
        self.gap = np.inf
        self.widen()

    @property
    def size(self) -> int:
        """The number of points."""
        return self.span.size

    def widen(self) -> None:
        """Give the planes the newest coordinate."""
        for planes in self.outputs:
            planes.widen(self.span.features[-1])

    def solve(self, max_rounds: int, deadline: Deadline) -> None:
        """Rounds of each output until its gap is small; `gap` is the largest that is left, of the mean hinge loss."""
        gaps = []
        with one_blas_thread():
            for planes in self.outputs:
                most = float(planes.caps.sum())
                gaps.append(planes.solve(self.span.features, self.settings.tol * most, max_rounds, deadline) / most)
        self.gap = max(gaps)

    def grow(self, rng: np.random.Generator) -> bool:
        """Another point, if there is one to add."""
        newest = self.settings.residual == "newest"
        pull = np.column_stack([planes.newest_pull() if newest else planes.pull() for planes in self.outputs])
        with one_blas_thread():
            grown = self.basis.grow(pull, rng)
        if grown:
            self.widen()
        return grown

    def model(self) -> tuple[Expansion, str]:
        """The model so far, and how it was made; where no row makes a point, the bias alone and a point of no weight."""
        v = np.column_stack([planes.best for planes in self.outputs])
        bias = self.span.constant * v[0]
        words = f"{self.settings.basis}, {self.settings.residual} residual, gap {self.gap:.1e}"
        if not self.size:
            return self.task.expansion(np.zeros(1, dtype=np.intp), np.zeros_like(v[:1]), bias), words
        return Expansion(self.task.rows.kernel, self.basis.points, self.span.coefficients(v[1:]), bias), words
