"""Support vector regression of the full model's own outputs (Osuna & Girosi 1998).

The outputs f(x_i) of the full model at its support vectors are approximated by regression with the same kernel and the
epsilon-insensitive loss ("Reducing the run-time complexity of support vector machines"):

    minimise  1/2 |w|^2 + cost sum_i max(0, |f(x_i) - f~(x_i)| - eps)

The tube around f~ has the radius eps. The support vectors of the regression are the x_i on its surface or outside. A wider
tube has fewer of them.

Zhan & Shen (2005): train again without the support vectors where the surface is most curved, then use regression.

The method has four steps. Train a full model. Leave out of the training rows the support vectors that make its separating
surface convoluted. Train a second model on the other rows. Approximate that one as Osuna & Girosi do. A support vector x is
left out by the curvature of the surface f = 0 at its projection p along the gradient of f:

    curvature(x) = |T H T| / |g|,      g = f'(p),  H = f''(p),  T = I - gg'/|g|^2

This is the Frobenius norm of the shape operator, the root of the sum of the squared principal curvatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..kernels import Array, Matrix, dense, squared_norms
from ..limits import Deadline
from ..model import Expansion, Status, Task
from ..reducers.base import Models, Reducer
from ..rows.kernel_matrix import KernelMatrix
from ..rows.protocol import Rows
from ..rows.threads import blocks
from ..solvers.tube import Tube
from ..trainers.smo import SMO

#: the default cost, as a multiple of the full model's largest coefficient; larger: fewer rows outside the tube
COST_RATIO = 10.0
#: the ratio of two radii while all tubes are too wide; nearer to 1: more steps
NARROWER = 0.7
#: bisection ends when the ratio of two radii is this; nearer to 1: sizes are met more often, and more time
CLOSEST_RATIO = 1.003
#: pair steps between two checks of the deadline, and the checks after which a regression ends unconverged
STEPS_PER_CHECK, MAX_CHECKS = 100_000, 100
#: rows in a working set of the regression; each output holds a kernel block of its square
WORKING_SET = 512
#: ridge of the least squares, as a share of the sum of squared kernel values; it only makes the solution unique
RIDGE = 1e-9
#: coefficients below this share of the largest are rounding, and their rows are no support vectors
ROUNDING = 1e-9


@dataclass(frozen=True)
class OsunaGirosi(Reducer):
    """Epsilon-insensitive regression of the full model's outputs at its support vectors (Osuna & Girosi 1998).

    For each size, bisection finds the narrowest tube with at most that many support vectors. All outputs have the same
    radius, and their support vectors are counted together. `cost` is the regression's C. None means ten times the
    largest coefficient of the full model; nearly all support vectors are then in the tube. `tol` is the regression's.
    A pair of classes is approximated on the support vectors of these two classes alone.

    `refit=False` is the paper's method. The coefficients of a wide tube are too small, since the regression stops where it
    touches the tube. With `refit`, coefficients and bias are fitted to the same outputs by least squares. Also, where no
    tube has exactly the wanted number of support vectors (a tube has two or more, since its coefficients sum to 0), those
    with the largest coefficients of the next narrower tube are kept.

    The labels and weights of the rows are not used. With a precomputed kernel, only support vectors that are
    rows of the task are used, since others have no kernel values.
    """

    cost: float | None = None
    tol: float = 1e-3
    refit: bool = True
    real_valued: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is not None and not self.cost > 0:
            raise ValueError(f"cost must be a number above 0, or None for a large one, not {self.cost!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield a model for each size, from narrower and narrower tubes; the full model if it is small enough."""
        assert model is not None
        smaller = [size for size in sizes if size < model.size]
        if smaller:
            yield from self._smaller(task, smaller, model)
        if len(smaller) < len(sizes) and not task.run.over:
            yield model, "the full model"

    def _smaller(self, task: Task, sizes: Sequence[int], model: Expansion) -> Models:
        """Yield a model for each size below the full model's."""
        rows, places = task.support(model)
        concerned = task.goal.concerned(model.coef[places])
        search = TubeSearch(rows, model.on(rows), concerned, self._cost(model), self.tol)
        for size in sizes:
            best, narrower = search.around(size, task.run.deadline)
            yield self._model(search, best, narrower, size)
            if task.run.over or (best.size < size and narrower is None):
                return

    def _cost(self, model: Expansion) -> float:
        return self.cost or COST_RATIO * float(np.abs(model.coef).max(initial=0.0)) or 1.0

    def _model(self, search: TubeSearch, best: TubeFit, narrower: TubeFit | None, size: int) -> tuple[Expansion, str]:
        """Return the model of one size, from the two tubes that the search found around it."""
        if not self.refit:
            return search.expansion(best), f"eps={best.eps:.4g}"
        if best.size == size or narrower is None:
            return search.refitted(best), f"eps={best.eps:.4g}, refit"
        return search.refitted(narrower.pruned(size)), f"eps={narrower.eps:.4g}, pruned and refit"


@dataclass(frozen=True)
class TubeFit:
    """The regressions of all outputs with tubes of one radius: support vectors, by their row numbers, and coefficients."""

    eps: float
    rows: Array
    coef: Array  # (rows, outputs)
    bias: Array

    @property
    def size(self) -> int:
        """The number of support vectors of all outputs together."""
        return self.rows.size

    def pruned(self, size: int) -> TubeFit:
        """Return the support vectors with the largest coefficients; of equal ones, the first."""
        kept = np.sort(np.argsort(-np.square(self.coef).sum(axis=1), kind="stable")[:size])
        return TubeFit(self.eps, self.rows[kept], self.coef[kept], self.bias)


class TubeSearch:
    """Regressions of `full_outputs` (n, q) on rows, with tubes of many radii; each starts from the last solution.

    `concerned` (n, q) tells which rows an output concerns.
    """

    def __init__(self, rows: Rows, full_outputs: Array, concerned: Array, cost: float, tol: float) -> None:
        self.rows, self.full_outputs, self.concerned = rows, full_outputs, concerned
        self.own_rows = [np.flatnonzero(column) for column in concerned.T]
        smo = SMO(tol=tol, working_set=WORKING_SET)
        self.tubes = [
            Tube(rows if own.size == rows.n else rows.subset(own), column[own], cost, smo)
            for own, column in zip(self.own_rows, full_outputs.T, strict=True)
        ]
        high = np.where(concerned, full_outputs, -np.inf).max(axis=0, initial=-np.inf)
        low = np.where(concerned, full_outputs, np.inf).min(axis=0, initial=np.inf)
        empty = ~concerned.any(axis=0)  # a pair of classes without support vectors is a constant
        high, low = (np.where(empty, full_outputs[0], ends) for ends in (high, low))
        middle, radius = (high + low) / 2, (high - low).max() / 2
        # the widest tube, around a constant, holds all outputs and has no support vectors
        self.tried = [TubeFit(float(radius), np.empty(0, np.intp), np.empty((0, middle.size)), middle)]
        self.narrowest = tol * float(radius)

    def around(self, size: int, deadline: Deadline) -> tuple[TubeFit, TubeFit | None]:
        """Return the fit with the most support vectors up to `size`, and the fit with the widest tube that has more.

        The second is None if the narrowest tube that is tried has at most `size`.
        """
        while True:
            fitting = [fit for fit in self.tried if fit.size <= size]
            best = max(fitting, key=lambda fit: (fit.size, -fit.eps))
            narrower = max((fit for fit in self.tried if fit.size > size), key=lambda fit: fit.eps, default=None)
            eps = self.next_radius(narrower)
            if best.size == size or eps is None or (deadline.over and len(self.tried) > 1):
                return best, narrower
            self.tried.append(self.fit(eps, deadline))

    def next_radius(self, narrower: TubeFit | None) -> float | None:
        """Return the next radius to try: between the tube that is too narrow and the next wider one, or below all.

        None ends the search: the two are close, or the radius is as small as the tolerance.
        """
        if narrower is None:
            eps = NARROWER * min(fit.eps for fit in self.tried)
            return eps if eps > self.narrowest else None
        wider = min(fit.eps for fit in self.tried if fit.eps > narrower.eps)
        return float(np.sqrt(wider * narrower.eps)) if wider > CLOSEST_RATIO * narrower.eps else None

    def fit(self, eps: float, deadline: Deadline) -> TubeFit:
        """Return the regressions of all outputs with tubes of radius `eps`."""
        for tube in self.tubes:
            for _ in range(MAX_CHECKS):
                if tube.solve(eps, STEPS_PER_CHECK) is not Status.MAX_ITER or deadline.over:
                    break
        coef = np.zeros(self.concerned.shape)
        for column, (own, tube) in enumerate(zip(self.own_rows, self.tubes, strict=True)):
            coef[own, column] = tube.coef
        support = np.flatnonzero((np.abs(coef) > ROUNDING * np.abs(coef).max(initial=0.0)).any(axis=1))
        return TubeFit(eps, support, coef[support], np.array([tube.bias for tube in self.tubes]))

    def expansion(self, fit: TubeFit) -> Expansion:
        """Return a fit as a model."""
        return Expansion(self.rows.kernel, self.rows.take(fit.rows), fit.coef, fit.bias)

    def refitted(self, fit: TubeFit) -> Expansion:
        """Return the model on the points of a fit with the least squared differences to the full model's outputs."""
        points = self.rows.take(fit.rows)
        return Expansion(
            self.rows.kernel, points, *least_squares(self.rows.against(points), self.full_outputs, self.concerned)
        )


def least_squares(against: KernelMatrix, goals: Array, concerned: Array) -> tuple[Array, Array]:
    """Return the coefficients (m, q) and biases (q,) that minimise |K coef + bias - goals|^2 on the rows of each output."""
    goals = np.where(concerned, goals, 0.0)
    sums = np.vstack([goals.sum(axis=0), against.back(goals)])
    fitted = np.zeros(sums.shape)
    patterns, pattern_of = np.unique(concerned, axis=1, return_inverse=True)  # outputs with the same rows share a matrix
    for number, pattern in enumerate(patterns.T):
        normal = against.curvature(np.flatnonzero(pattern), np.ones(pattern.size))
        normal.flat[:: normal.shape[0] + 1] += RIDGE * np.trace(normal) or 1.0
        fitted[:, pattern_of == number] = np.linalg.solve(normal, sums[:, pattern_of == number])
    return fitted[1:], fitted[0]


#: Newton steps along the gradient to the surface; more: nearer to it
STEPS = 3
#: the length of finite differences, as a share of the spread of the support vectors
DIFFERENCE = 1e-5
#: kernel values or coordinates in one block of rows; more: more memory
BLOCK_VALUES = 1 << 22


@dataclass(frozen=True)
class ZhanShen(OsunaGirosi):
    """`OsunaGirosi` on a second model, trained without the support vectors where the full model's surface is most curved.

    A support vector is a row with y f(x) <= 1. The given `share` of them is left out of the training rows, for each output
    separately and of both sides alike, so that no small class vanishes. `C`, `tol` and `max_iter` are those of the second
    training.

    Reconstructed without the text of the paper. Its four steps and the projection along the gradient are known; its measure
    of curvature is not, and the sum of all squared principal curvatures is our reading. It is estimated from differences
    of gradients in `probes` random directions, and is exact if rows have no more features than that. With a linear
    kernel the surface is flat, and no row is left out.

    Y. Zhan and D. Shen, "Design efficient support vector machine for fast classification", Pattern Recognition 38, 2005.
    """

    share: float = 0.1
    probes: int = 4
    C: float = 1.0
    max_iter: int = -1
    real_valued: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share < 1:
            raise ValueError(f"share must be a part of the support vectors from 0 up to 1, such as 0.1, not {self.share!r}")
        if self.probes < 1:
            raise ValueError(f"probes must be a number of directions of at least 1, not {self.probes!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None) -> Models:
        """Yield the models that approximate the second model."""
        assert model is not None
        second = replace(task, targets=self._remaining(task, model), run=task.run.quiet().during("train"))
        retrained = SMO(self.C, self.tol, self.max_iter).fit(second).model
        for small, settings in super().models(task, sizes, retrained):
            yield small, f"share={self.share:g}, {settings}"

    def _remaining(self, task: Task, model: Expansion) -> Array:
        """Return the targets, with 0 where a row is left out of an output."""
        targets = task.targets.copy()
        margins = targets * model.on(task.rows)
        for column in np.flatnonzero(model.coef.any(axis=0)).tolist():  # other outputs are constants without a surface
            y, margin = task.targets[:, column], margins[:, column]
            support = np.flatnonzero((y != 0) & (margin <= 1 + self.tol))
            surface = DecisionSurface(model, column, task.rows)
            probes = directions(task.rows.d, self.probes, task.rng)
            curvature = curvatures(surface, task.rows, support, probes, task.run.deadline)
            for sign in (-1, 1):
                side = y[support] == sign
                targets[most_curved(support[side], curvature[side], self.share), column] = 0.0
        return targets


def most_curved(rows: Array, curvature: Array, share: float) -> Array:
    """Return that share of the rows with the largest curvatures, without those whose curvature is 0."""
    order = np.argsort(-curvature, kind="stable")[: int(share * rows.size)]
    return rows[order[curvature[order] > 0]]


class DecisionSurface:
    """One output of a model as a function with a gradient, in float64.

    `spread` is the root mean squared distance of its support vectors to their mean.
    """

    def __init__(self, model: Expansion, column: int, like: Rows) -> None:
        used = np.flatnonzero(model.coef[:, column])
        self.coef, self.bias = model.coef[used, column : column + 1], model.bias[column]
        self.support = like.of(model.points[used], exact=True)
        self.spread = _spread(model.points[used])

    def __call__(self, P: Array) -> tuple[Array, Array]:
        """Return f (m,) and its gradient (m, d) at each of the points."""
        against = self.support.against(P)
        value = against.back(self.coef)[:, 0] + self.bias
        return value, against.pullback(self.coef, np.ones((P.shape[0], 1)))


def directions(features: int, probes: int, rng: np.random.Generator) -> Array:
    """Return at most `probes` vectors v with sum v v' = I: the unit vectors, or random sign vectors, with I as the mean."""
    if features <= probes:
        return np.eye(features)
    return rng.choice([-1.0, 1.0], (probes, features)) / np.sqrt(probes)


def curvatures(
    surface: DecisionSurface,
    rows: Rows,
    index: Array,
    probes: Array,
    deadline: Deadline,
    block_values: int = BLOCK_VALUES,
) -> Array:
    """Return the curvature of the surface next to each of some rows; 0 for rows after the deadline."""
    found = np.zeros(index.size)
    for some in blocks(index.size, max(block_values // max(surface.support.n, rows.d), 1)):
        if deadline.over:
            break
        P = dense(rows.take(index[some])).astype(np.float64)
        found[some] = curvature_at(surface, *projected(surface, P), probes)
    return found


def projected(surface: DecisionSurface, P: Array) -> tuple[Array, Array]:
    """Return the points moved along the gradient towards f = 0 by a few Newton steps, and the gradients there.

    No step is longer than the spread of the support vectors, since f is flat far from them.
    """
    value, slope = surface(P)
    length = np.ones(P.shape[0])
    for _ in range(STEPS):
        steepness = np.maximum(np.sqrt(np.square(slope).sum(axis=1)), np.finfo(float).tiny)
        step = length * np.sign(value) * np.minimum(np.abs(value), surface.spread * steepness) / steepness
        trial = P - step[:, None] * (slope / steepness[:, None])  # a flat f must not give large quotients
        new_value, new_slope = surface(trial)
        nearer = np.abs(new_value) < np.abs(value)  # otherwise f is far from linear here: halve the step
        length = np.where(nearer, 1.0, length / 2)
        P, slope = np.where(nearer[:, None], trial, P), np.where(nearer[:, None], new_slope, slope)
        value = np.where(nearer, new_value, value)
    return P, slope


def curvature_at(surface: DecisionSurface, P: Array, slope: Array, probes: Array) -> Array:
    """Return |T H T| / |g| at each of the points, from differences of gradients; 0 where the gradient is 0."""
    steepness = np.sqrt(np.square(slope).sum(axis=1))
    steep = steepness > 0
    normal = np.divide(slope, steepness[:, None], out=np.zeros_like(slope), where=steep[:, None])
    total = np.zeros(P.shape[0])
    for probe in probes:
        tangent = _tangential(np.broadcast_to(probe, P.shape), normal)
        step = DIFFERENCE * surface.spread / float(np.sqrt(probe @ probe))
        bend = _tangential((surface(P + step * tangent)[1] - slope) / step, normal)
        total += np.square(bend).sum(axis=1)
    return np.divide(np.sqrt(total), steepness, out=np.zeros_like(total), where=steep)


def _tangential(vectors: Array, normal: Array) -> Array:
    """Return the part of each vector that is orthogonal to the normal."""
    return vectors - (vectors * normal).sum(axis=1)[:, None] * normal


def _spread(points: Matrix) -> float:
    """Return the root mean squared distance of points to their mean; 1 where they are equal."""
    mean = np.asarray(points.mean(axis=0, dtype=np.float64)).ravel()
    return float(np.sqrt(max(squared_norms(points).mean() - mean @ mean, 0.0))) or 1.0
