"""Zhan & Shen (2005): train again without the support vectors where the surface is most curved, then use regression.

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
from ..model import Expansion, Task
from ..progress import silent
from ..reducers.base import Models
from ..rows.protocol import Rows
from ..rows.threads import blocks
from ..trainers.smo import SMO
from .osuna_girosi import OsunaGirosi

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

    def models(self, task: Task, sizes: Sequence[int], model: Expansion | None, deadline: Deadline) -> Models:
        """Yield the models that approximate the second model."""
        assert model is not None
        second = replace(task, targets=self._remaining(task, model, deadline), report=silent)
        retrained = SMO(self.C, self.tol, self.max_iter).fit(second).model
        for small, settings in super().models(task, sizes, retrained, deadline):
            yield small, f"share={self.share:g}, {settings}"

    def _remaining(self, task: Task, model: Expansion, deadline: Deadline) -> Array:
        """Return the targets, with 0 where a row is left out of an output."""
        targets = task.targets.copy()
        margins = targets * model.on(task.rows)
        for column in np.flatnonzero(model.coef.any(axis=0)).tolist():  # other outputs are constants without a surface
            y, margin = task.targets[:, column], margins[:, column]
            support = np.flatnonzero((y != 0) & (margin <= 1 + self.tol))
            surface = DecisionSurface(model, column, task.rows)
            probes = directions(task.rows.d, self.probes, task.rng)
            curvature = curvatures(surface, task.rows, support, probes, deadline)
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
