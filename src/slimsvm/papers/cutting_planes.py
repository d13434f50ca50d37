"""Sparse kernel SVMs by cutting planes (Joachims & Yu 2009): few basis vectors, made where the planes need them.

With features phi_i (the coordinates of Phi(x_i) in the span of the basis), signs y_i and caps C_i,

    minimise  P(v) = 1/2 |v|^2 + sum_i C_i max(0, 1 - y_i <phi_i, v>)        over v

The sum is the maximum over c in {0, 1}^n of the planes d_c - <p_c, v>, with d_c = sum_i C_i c_i and
p_c = sum_i C_i c_i y_i phi_i. At v the maximum is the plane with c_i = 1 where y_i <phi_i, v> < 1 (Joachims 2006). A few of
the planes give a lower bound of P, and its dual is a quadratic program over their weights,

    maximise  D(a) = <d, a> - 1/2 |v|^2,    v = sum_j a_j p_j                over a >= 0 with sum_j a_j = 1

Planes are added where they are tight until P - D is small. As in OCAS (Franc & Sonnenburg 2009), the best v so far is kept
and improved by an exact line search towards the program's v, and the next plane is taken near it. That takes far fewer
rounds to the same gap than planes at the program's own v. The part of g = sum_i pull_i Phi(x_i), the planes' w, that is
outside the span of the basis is its residual, from which the next basis vector is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ..kernels import RBF, Array, Kernel, Matrix, dense
from ..limits import Deadline
from ..model import Expansion, Task
from ..reducers.base import Models, Reducer
from ..rows.protocol import Rows
from ..rows.threads import one_blas_thread
from ..solvers.cholesky import GrowingCholesky
from .reduced_set import FeatureVector, ascended, fixed_points

#: the share of |Phi(z)|^2 that a point must have outside the span of the others, by the precision of kernel values
INDEPENDENT = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


class SpanCoordinates:
    """Orthonormal coordinates of all rows in the span of a growing list of points.

    With L L' = K(B, B) for the points B, the coordinates of a row x are L^-1 k(B, x): their inner products are those of the
    rows' projections on the span. A new point adds a coordinate and changes none of the others. The coordinates of all n
    rows are K L^-T with K = K(rows, B), which stays where the rows are. Only products with them are needed:

        outputs   K (L^-T v)              one number for each row
        sums      L^-1 (K' pull)          one number for each coordinate

    Coordinate 0 is a constant, for the bias: `bias` times the root mean square |Phi(x)|. `newest` is the coordinate added
    last, (n,).
    """

    def __init__(self, rows: Rows, bias: float) -> None:
        self.rows = rows
        self.diagonal = rows.diagonal()  # |Phi(x)|^2 of each row
        self.rest = self.diagonal.astype(np.float64)  # the part of it outside the span
        self.constant = bias * float(np.sqrt(np.abs(self.diagonal).mean()))
        self.newest = np.full(rows.n, self.constant)
        self.cholesky = GrowingCholesky(INDEPENDENT[rows.dtype])
        self.against = rows.against(rows.take(np.empty(0, dtype=np.intp)), exact=False)

    @property
    def size(self) -> int:
        """The number of points."""
        return self.cholesky.size

    def outside(self) -> Array:
        """Return the rows that are linearly independent of the points."""
        return np.flatnonzero(self.cholesky.independent(self.rest, self.diagonal))

    def forget(self, row: int) -> None:
        """Count a row as part of the span: it is outside by rounding only."""
        self.rest[row] = 0.0

    def add(self, point: Matrix, links: Array, own: float) -> bool:
        """Add a point (1, d) by k(points, z) and k(z, z), unless it is linearly dependent on the points before it."""
        if not self.cholesky.add(links, own):
            return False
        self.against.append(point)
        self.newest = self.outputs(np.eye(1, self.size + 1, self.size)[0])
        self.rest -= np.square(self.newest)
        return True

    def outputs(self, v: Array) -> Array:
        """Return the inner product of a vector (1 + k,) with the coordinates of each row, (n,)."""
        bias = self.constant * v[0]
        if not self.size:
            return np.full(self.rows.n, bias)
        return self.against.times(self.coefficients(v[1:, None])).ravel() + bias

    def sums(self, pull: Array) -> Array:
        """Return the sum over rows of pull_i times their coordinates, (1 + k,)."""
        return np.append(self.constant * pull.sum(), self._projected(pull[:, None]))

    def projected(self, pull: Array) -> Array:
        """Return the coefficients over the points, (k, q), of the projection of sum_i pull_i Phi(x_i) on the span."""
        return self.coefficients(self._projected(pull))

    def coefficients(self, v: Array) -> Array:
        """Return vectors given by their coordinates (k, q) as coefficients over the points, (k, q)."""
        return self.cholesky.backward(v)

    def _projected(self, pull: Array) -> Array:
        return self.cholesky.forward(self.against.back(pull)) if self.size else np.empty((0, pull.shape[1]))


#: the share of the way from the best v to the program's v at which the next plane is taken, as in OCAS
AHEAD = 0.1
#: rounds without weight after which a plane is dropped
IDLE = 50
#: added to each |p_c|^2, as a share of the largest offset d and of the largest |p_c|^2: the program then has one solution
#: where planes depend on each other, and rounding does not hide it
RIDGE, ROUNDING = 1e-12, 1e-3


class Features(Protocol):
    """The features of n rows, in any home, as products with them."""

    def outputs(self, v: Array) -> Array:
        """Return <phi_i, v> for each row, (n,)."""

    def sums(self, pull: Array) -> Array:
        """Return sum_i pull_i phi_i."""


class CuttingPlanes:
    """The problem of one output: its planes, their weights, and the best v so far."""

    def __init__(self, y: Array, caps: Array) -> None:
        self.y, self.caps = y, caps
        self.masks = np.zeros((1, y.size), dtype=bool)  # the c of each plane; c = 0 is first: losses are >= 0
        self.normals = np.zeros((1, 0))  # p_c
        self.offsets = np.zeros(1)  # d_c
        self.weights = np.ones(1)
        self.idle = np.zeros(1, dtype=np.intp)
        self.best = np.zeros(0)
        self.margins = np.zeros(y.size)  # y_i <phi_i, best>

    def widen(self, feature: Array) -> None:
        """Add a feature by its value for each row, (n,); the best v so far has a 0 there."""
        self.normals = np.column_stack([self.normals, self.masks @ (self.caps * self.y * feature)])
        self.best = np.append(self.best, 0.0)

    @one_blas_thread()
    def solve(self, features: Features, gap: float, max_rounds: int, deadline: Deadline) -> float:
        """Run rounds until P - D <= gap, at most `max_rounds`, and return P - D."""
        left = np.inf
        for _ in range(max_rounds):
            self.weights = simplex_qp(self.normals @ self.normals.T, self.offsets, self.weights)
            step = self.weights @ self.normals - self.best
            # not a difference of outputs, which may be float32: line searches would magnify its rounding
            change = self.y * features.outputs(step)
            ahead = self.margins + change
            self.improve(step, change)
            left = self.primal() - self.dual()
            if left <= gap or deadline.over:
                break
            self.cut(features, (1 - AHEAD) * self.margins + AHEAD * ahead)
        return left

    def improve(self, step: Array, change: Array) -> None:
        """Move the best v to the lowest P on the ray along a step, which changes margins by `change`."""
        length = line_search(float(self.best @ step), float(step @ step), self.margins, change, self.caps)
        self.best = self.best + length * step
        self.margins = self.margins + length * change

    def cut(self, features: Features, margins: Array) -> None:
        """Add the plane that is tight at these margins, and drop planes that had no weight for `IDLE` rounds."""
        self.idle = np.where(self.weights > 0, 0, self.idle + 1)
        self.idle[0] = 0
        keep = self.idle <= IDLE
        mask = margins < 1
        self.masks = np.vstack([self.masks[keep], mask])
        self.normals = np.vstack([self.normals[keep], features.sums(self.caps * self.y * mask)])
        self.offsets = np.append(self.offsets[keep], self.caps @ mask)
        self.weights, self.idle = np.append(self.weights[keep], 0.0), np.append(self.idle[keep], 0)

    def primal(self) -> float:
        """Return P at the best v."""
        return float(self.best @ self.best / 2 + self.caps @ np.maximum(1 - self.margins, 0.0))

    def dual(self) -> float:
        """Return D at the weights."""
        v = self.weights @ self.normals
        return float(self.weights @ self.offsets - v @ v / 2)

    def pull(self) -> Array:
        """Return the coefficient of each row in v = sum_j a_j p_j, sum_j a_j c_ij C_i y_i."""
        held = self.weights > 0
        return (self.weights[held] @ self.masks[held]) * self.caps * self.y

    def newest_pull(self) -> Array:
        """Return the coefficient of each row in the newest plane, C_i c_i y_i."""
        return self.masks[-1] * self.caps * self.y


def line_search(slope: float, curvature: float, margins: Array, change: Array, caps: Array) -> float:
    """Return the t >= 0 that minimises slope t + curvature t^2 / 2 + sum_i caps_i max(0, 1 - margins_i - t change_i)."""
    lossy = (margins < 1) | ((margins == 1) & (change < 0))
    slope -= float(caps[lossy] @ change[lossy])  # the derivative at 0 from the right
    if slope >= 0:
        return 0.0
    turning = np.flatnonzero((1 - margins) * change > 0)  # rows whose loss begins or ends at some t > 0
    at = (1 - margins[turning]) / change[turning]
    order = np.argsort(at, kind="stable")
    at, jumps = at[order], (caps[turning] * np.abs(change[turning]))[order]
    after = slope + np.cumsum(jumps)  # the derivative after each of them, without its curvature term
    first = int(np.argmax(np.append(after + curvature * at, np.inf) >= 0))
    before = after[first - 1] if first else slope
    zero = -before / curvature
    return float(min(zero, at[first])) if first < at.size else float(zero)


def simplex_qp(Q: Array, d: Array, a: Array) -> Array:
    """Minimise 1/2 a'Qa - d'a over a >= 0 with sum a = 1, from a feasible a, by active sets as in Lawson-Hanson NNLS."""
    most = float(np.abs(d).max()) or 1.0
    Q, d = Q / most, d / most
    Q = Q + RIDGE * (1 + ROUNDING * float(np.abs(Q).max())) * np.eye(d.size)
    free, added = a > 0, -1
    for _ in range(10 * d.size):
        goal = _equality_qp(Q, d, free)
        if added >= 0 and goal[added] <= 0:
            break  # its gradient was negative only by rounding
        outside = np.flatnonzero(free & (goal < 0))
        if outside.size:
            lengths = a[outside] / (a[outside] - goal[outside])
            a = np.maximum(a + lengths.min() * (goal - a), 0.0)
            free[outside[lengths.argmin()]], added = False, -1
            a[~free] = 0.0
            continue
        a = goal
        gradient = Q @ a - d
        added = int(gradient.argmin())
        if free[added] or gradient[added] >= a @ gradient - 1e-12:
            break
        free[added] = True
    return a / a.sum()


def _equality_qp(Q: Array, d: Array, free: Array) -> Array:
    """Return the minimum over a with sum a = 1 and a = 0 outside `free`."""
    index = np.flatnonzero(free)
    m = index.size
    system = np.ones((m + 1, m + 1))
    system[:m, :m], system[m, m] = Q[np.ix_(index, index)], 0.0
    goal = np.zeros(free.size)
    goal[index] = np.linalg.solve(system, np.append(d[index], 1.0))[:m]
    return goal


#: a pre-image has converged when a fixed-point step gains less than this share
SETTLED = 1e-3


class RowBasis:
    """Training rows: each is the one of `candidates` random rows that leaves the smallest residual of g."""

    def __init__(self, rows: Rows, span: SpanCoordinates, candidates: int) -> None:
        self.rows, self.span, self.candidates = rows, span, candidates
        self.index = np.empty(0, dtype=np.intp)

    @property
    def points(self) -> Matrix:
        """The basis as points of an expansion."""
        return self.rows.take(self.index)

    @one_blas_thread()
    def grow(self, pull: Array, rng: np.random.Generator) -> bool:
        """Add a point for the residual of g with coefficients `pull` (n, q); False if all rows are in the span."""
        while (candidates := self.draw(pull, rng)).size:
            if self.add_best(candidates, pull):
                return True
        return False

    def draw(self, pull: Array, rng: np.random.Generator) -> Array:
        """Return random rows outside the span, if possible rows with a coefficient in g."""
        outside = self.span.outside()
        part = outside[pull[outside].any(axis=1)]
        pool = part if part.size else outside
        return rng.choice(pool, min(self.candidates, pool.size), replace=False)

    def add_best(self, candidates: Array, pull: Array) -> bool:
        """Add the best of the candidates, unless it is in the span up to rounding."""
        best = candidates[[int(self.gains(candidates, pull).argmax())]]
        links = self.rows.block(self.index, best).ravel().astype(np.float64)
        if self.span.add(self.rows.take(best), links, float(self.span.diagonal[best[0]])):
            self.index = np.append(self.index, best)
            return True
        self.span.forget(best[0])
        return False

    def gains(self, candidates: Array, pull: Array) -> Array:
        """Return the decrease of the squared length of the residual by each candidate."""
        active, some = np.flatnonzero(pull.any(axis=1)), self.rows.subset(candidates)
        inner = some.product(self.rows.take(active), pull[active])
        if self.span.size:
            inner -= some.product(self.points, self.span.projected(pull))
        return np.square(inner).sum(axis=1) / self.span.rest[candidates]


class PreimageBasis(RowBasis):
    """Pre-images of the residual, searched from the best `starts` of the candidates in at most `max_steps` steps each."""

    def __init__(self, rows: Rows, span: SpanCoordinates, candidates: int, starts: int, max_steps: int) -> None:
        super().__init__(rows, span, candidates)
        self.starts, self.max_steps = starts, max_steps
        self.made = np.empty((0, rows.d))

    @property
    def points(self) -> Array:
        """The points made so far, dense."""
        return self.made

    def add_best(self, candidates: Array, pull: Array) -> bool:
        """Add the pre-image or, if that is linearly dependent on the points, the best candidate."""
        active = np.flatnonzero(pull.any(axis=1))
        residual = FeatureVector(self.rows.subset(active), pull[active], self.made, self.span.projected(pull))
        Z = dense(self.rows.take(candidates)).astype(np.float64)
        gains = residual.gains(Z)
        order = np.argsort(-gains, kind="stable")
        starts = order[: self.starts]
        if self.add(self.search(residual, Z[starts], gains[starts])) or self.add(Z[order[:1]]):
            return True
        self.span.forget(candidates[order[0]])
        return False

    def search(self, residual: FeatureVector, starts: Array, gains: Array) -> Array:
        """Return the point (1, d) with the largest gain that is found from the initial points with these gains."""
        if isinstance(self.rows.kernel, RBF):
            found, gains = fixed_points(residual, starts, self.max_steps, SETTLED, backtrack=False)
        else:
            pairs = zip(starts[:, None], gains, strict=True)
            found = np.vstack([starts, *(ascended(residual, start, gain, self.max_steps) for start, gain in pairs)])
            gains = residual.gains(found)
        return found[[int(np.nan_to_num(gains).argmax())]]

    def add(self, point: Array) -> bool:
        """Add a point (1, d), unless it is linearly dependent on the others."""
        links = self.rows.among(self.made, point).ravel() if self.made.size else np.empty(0)
        added = self.span.add(point, links, float(self.rows.among(point)[0, 0]))
        if added:
            self.made = np.vstack([self.made, point])
        return added


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

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield the models of all sizes from one run: each basis begins with the one before."""
        run = _SparsePlanes(self, task)
        run.solve(self.max_rounds)
        yielded = -1
        while not (run.size and task.run.over) and run.size < sizes[-1] and run.grow(task.rng):
            asked = run.size in sizes
            run.solve(self.max_rounds if self.settle or asked else 1)
            if asked:
                yielded = run.size
                yield run.model()
        if run.size != yielded:
            run.solve(self.max_rounds)
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

    def solve(self, max_rounds: int) -> None:
        """Solve for each output; `gap` is then the largest gap of an output, as a part of its mean hinge loss."""
        gaps = []
        for planes in self.outputs:
            most = float(planes.caps.sum())
            gaps.append(planes.solve(self.span, self.settings.tol * most, max_rounds, self.task.run.deadline) / most)
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
