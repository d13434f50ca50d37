"""Fewer support vectors by a smoother surface (Zhan & Shen 2005), then regression on what is left.

Four steps: a full model; the support vectors that make its separating surface convoluted are left out of the training
rows; a second model is trained on the others; its outputs are approximated as Osuna & Girosi have it. A support vector x is
judged by the curvature of the surface f = 0 at its projection p along the gradient of f:

    curvature(x) = |T H T| / |g|,      g = f'(p),  H = f''(p),  T = I - gg'/|g|^2

the Frobenius norm of the shape operator, the root of the sum of the squared principal curvatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..kernels import Array, Matrix, dense, squared_norms
from ..limits import Deadline
from ..model import Expansion, Task, silent
from ..rows.host import HostRows
from ..rows.threads import blocks, one_blas_thread
from ..trainers.smo import SMO
from .base import Models
from .osuna_girosi import OsunaGirosi

#: steps along the gradient to the surface
STEPS = 3
#: the length of finite differences over the spread of the support vectors
DIFFERENCE = 1e-5
#: numbers of one kind that are held at a time
VALUES = 1 << 22


@dataclass(frozen=True)
class ZhanShen(OsunaGirosi):
    """`OsunaGirosi` on a second model, trained without the support vectors at which the full one's surface is most curved.

    `share` of the support vectors are left out of the training rows, for each output on its own, and of each side alike,
    so that no small class vanishes. These are the rows with y f(x) <= 1. `C`, `tol` and `max_iter` are those of the
    training.

    Reconstructed without the paper at hand: its four steps and the projection along the gradient are known, its measure of
    curvature is not; the sum of all squared principal curvatures is our reading. It is estimated from second
    differences of f in `probes` random directions, and exact where rows have no more features than that. With a linear
    kernel nothing is curved, and nothing is left out.

    Y. Zhan and D. Shen, "Design efficient support vector machine for fast classification", Pattern Recognition 38, 2005.
    """

    share: float = 0.1
    probes: int = 4
    C: float = 1.0
    max_iter: int = -1
    needs_gradients: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share < 1:
            raise ValueError(f"share must be a part of the support vectors from 0 up to 1, such as 0.1, not {self.share!r}")
        if self.probes < 1:
            raise ValueError(f"probes must be a number of directions of at least 1, not {self.probes!r}")

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """The regression of the second model."""
        assert model is not None
        second = replace(task, targets=self._remaining(task, model, deadline), report=silent)
        retrained = SMO(self.C, self.tol, self.max_iter).fit(second).model
        for small, settings in super().models(task, sizes, retrained, deadline):
            yield small, f"share={self.share:g}, {settings}"

    def _remaining(self, task: Task, model: Expansion, deadline: Deadline) -> Array:
        """The targets, 0 where a row is left out of an output."""
        targets = task.targets.copy()
        margins = targets * (task.rows.product(model.points, model.coef) + model.bias)
        for column in np.flatnonzero(model.coef.any(axis=0)).tolist():  # the others are constants, and have no surface
            y, margin = task.targets[:, column], margins[:, column]
            support = np.flatnonzero((y != 0) & (margin <= 1 + self.tol))
            surface = Surface(model, column, task.rows)
            probes = directions(surface.features, self.probes, task.rng)
            bent = curvatures(surface, task.rows.X, support, probes, deadline)
            for sign in (-1, 1):
                side = y[support] == sign
                targets[most_curved(support[side], bent[side], self.share), column] = 0.0
        return targets


def most_curved(rows: Array, curvature: Array, share: float) -> Array:
    """That share of the rows, those with the largest curvatures, and none where nothing is curved."""
    order = np.argsort(-curvature, kind="stable")[: int(share * rows.size)]
    return rows[order[curvature[order] > 0]]


class Surface:
    """One output of a model as a function with a gradient, in float64."""

    def __init__(self, model: Expansion, column: int, like: HostRows) -> None:
        used = np.flatnonzero(model.coef[:, column])
        self.coef, self.bias = model.coef[used, column], model.bias[column]
        self.gram = HostRows(model.kernel, model.points[used], like.meter, cache_mb=0.0, error=0.0)
        self.features = model.points.shape[1]
        self.spread = _spread(self.gram.X)

    def __call__(self, P: Array) -> tuple[Array, Array]:
        """f and its gradient at each of the points."""
        K = self.gram.matrix(P)
        with one_blas_thread():
            slope = self.gram.kernel.pullback(self.gram.X, P, K, np.repeat(self.coef[:, None], P.shape[0], axis=1))
        return self.coef @ K + self.bias, slope


def directions(features: int, probes: int, rng: np.random.Generator) -> Array:
    """Vectors v with sum v v' = I: all unit vectors, or where these are too many, random signs with that mean."""
    if features <= probes:
        return np.eye(features)
    return rng.choice([-1.0, 1.0], (probes, features)) / np.sqrt(probes)


def curvatures(surface: Surface, X: Matrix, rows: Array, probes: Array, deadline: Deadline) -> Array:
    """The curvature of the surface next to each of the rows, a block of them at a time; 0 for those that come too late."""
    found = np.zeros(rows.size)
    for some in blocks(rows.size, max(VALUES // max(surface.gram.n, surface.features), 1)):
        if deadline.over:
            break
        P = dense(X[rows[some]]).astype(np.float64)
        found[some] = curvature_at(surface, *projected(surface, P), probes)
    return found


def projected(surface: Surface, P: Array) -> tuple[Array, Array]:
    """The points moved along the gradient to where f is 0, as near as a few Newton steps get, and the gradients there.

    No step is longer than the spread of the support vectors: beyond them, f is flat.
    """
    value, slope = surface(P)
    length = np.ones(P.shape[0])
    for _ in range(STEPS):
        steepness = np.maximum(np.sqrt(np.square(slope).sum(axis=1)), np.finfo(float).tiny)
        step = length * np.clip(value / steepness, -surface.spread, surface.spread)
        trial = P - (step / steepness)[:, None] * slope
        new_value, new_slope = surface(trial)
        nearer = np.abs(new_value) < np.abs(value)  # not so where f is far from linear: then half the step
        length = np.where(nearer, 1.0, length / 2)
        P, slope = np.where(nearer[:, None], trial, P), np.where(nearer[:, None], new_slope, slope)
        value = np.where(nearer, new_value, value)
    return P, slope


def curvature_at(surface: Surface, P: Array, slope: Array, probes: Array) -> Array:
    """|T H T| / |g| at each of the points, from differences of gradients; 0 where there is no gradient."""
    steepness = np.sqrt(np.square(slope).sum(axis=1))
    steep = steepness > 0
    normal = np.divide(slope, steepness[:, None], out=np.zeros_like(slope), where=steep[:, None])
    total = np.zeros(P.shape[0])
    for probe in probes:
        tangent = _along(np.broadcast_to(probe, P.shape), normal)
        step = DIFFERENCE * surface.spread / float(np.sqrt(probe @ probe))
        bend = _along((surface(P + step * tangent)[1] - slope) / step, normal)
        total += np.square(bend).sum(axis=1)
    return np.divide(np.sqrt(total), steepness, out=np.zeros_like(total), where=steep)


def _along(vectors: Array, normal: Array) -> Array:
    """The part of each vector along the surface with that normal."""
    return vectors - (vectors * normal).sum(axis=1)[:, None] * normal


def _spread(X: Matrix) -> float:
    """The root of the mean squared distance of the rows to their mean."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return float(np.sqrt(max(squared_norms(X).mean() - mean @ mean, 0.0))) or 1.0
