"""Sparse kernel SVMs by cutting planes (Joachims & Yu 2009): few basis vectors, made where the planes need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import Kernel
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..rows.protocol import Rows
from ..solvers.span import SpanCoordinates
from .cutting_planes import CuttingPlanes
from .growing_basis import PreimageBasis, RowBasis

BASES = ("preimages", "rows")
RESIDUALS = ("weighted", "newest")


@dataclass(frozen=True)
class CPSP(Reducer):
    """The SVM whose weight vector lies in the span of few basis vectors, by cutting planes (Machine Learning 76, 2009).

        minimise  1/2 |w|^2 + 1/2 v^2 + C sum_i w_i max(0, 1 - y_i (<w, Phi(x_i)> + bias v))   over v and w in span Phi(b_j)

    is solved for a growing basis b_1, b_2, ... to a gap between primal and dual of `tol` C sum_i w_i. So `tol` is the
    paper's epsilon, a part of the mean hinge loss. The method needs the labels and no full model. Each cutting plane
    (`CuttingPlanes`) is a vector sum_i C w_i c_i y_i Phi(x_i). The part of it outside the span is the residual, from which
    the next basis vector is made:

    - basis="preimages": the z whose Phi(z) has the largest cosine with the residual, searched from the best `starts` of
      `candidates` random rows in at most `climb_steps` steps: of the fixed-point iteration for the rbf kernel (the paper's
      method), of quasi-Newton ascent for others. Kernels without gradients use basis="rows".
    - basis="rows": the one of `candidates` random rows that leaves the smallest residual (the paper's "59/95": the best of
      59 is among the best 5 % of all rows with probability 0.95). Points of sparse rows stay sparse.

    All outputs share the basis: the squared cosines of their residuals are summed. Each has its own planes and weights.

    Differences from the paper: the residual is that of w itself, the weighted sum of all planes, and each basis is solved
    for before it grows. residual="newest", settle=False is the paper's rule: the basis grows with every plane, by the
    residual of the newest one. The paper has no bias; here `bias` is the value of a constant feature (times the root mean
    square |Phi(x)|), so large that its v^2 costs next to nothing; bias=0 leaves it out. Planes are found as in OCAS.
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
        """Return True: kernels without gradients have a basis of rows."""
        return True

    def empty_basis(self, rows: Rows, span: SpanCoordinates) -> RowBasis:
        """Return a basis without points, to grow; kernels without gradients have a basis of rows."""
        if self.basis == "preimages" and rows.kernel.differentiable:
            return PreimageBasis(rows, span, self.candidates, self.starts, self.climb_steps)
        return RowBasis(rows, span, self.candidates)

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Yield the models of all sizes from one run: each basis begins with the one before."""
        run = _SparsePlanes(self, task)
        run.solve(self.max_rounds, deadline)
        yielded = -1
        while not (run.size and deadline.over) and run.size < sizes[-1] and run.grow(task.rng):
            asked = run.size in sizes
            run.solve(self.max_rounds if self.settle or asked else 1, deadline)
            if asked:
                yielded = run.size
                yield run.model()
        if run.size != yielded:
            run.solve(self.max_rounds, deadline)
            yield run.model()


class _SparsePlanes:
    """A basis, and the cutting planes of each output in its span."""

    def __init__(self, settings: CPSP, task: Task) -> None:
        self.settings, self.task = settings, task
        self.span = SpanCoordinates(task.rows, settings.bias)
        self.basis = settings.empty_basis(task.rows, self.span)
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
            planes.widen(self.span.newest)

    def solve(self, max_rounds: int, deadline: Deadline) -> None:
        """Solve for each output; `gap` is then the largest gap of an output, as a part of its mean hinge loss."""
        gaps = []
        for planes in self.outputs:
            most = float(planes.caps.sum())
            gaps.append(planes.solve(self.span, self.settings.tol * most, max_rounds, deadline) / most)
        self.gap = max(gaps)

    def grow(self, rng: np.random.Generator) -> bool:
        """Add a point; False if there is none to add."""
        newest = self.settings.residual == "newest"
        pull = np.column_stack([planes.newest_pull() if newest else planes.pull() for planes in self.outputs])
        grown = self.basis.grow(pull, rng)
        if grown:
            self.widen()
        return grown

    def model(self) -> tuple[Expansion, str]:
        """Return the model so far and its settings in words; without points, the bias and one point of coefficient 0."""
        v = np.column_stack([planes.best for planes in self.outputs])
        bias = self.span.constant * v[0]
        words = f"{self.settings.basis}, {self.settings.residual} residual, gap {self.gap:.1e}"
        if not self.size:
            return self.task.expansion(np.zeros(1, dtype=np.intp), np.zeros_like(v[:1]), bias), words
        return Expansion(self.task.rows.kernel, self.basis.points, self.span.coefficients(v[1:]), bias), words
