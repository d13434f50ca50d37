"""A small model in float32 whose numbers all move together, by mini-batches, through the rounding of its tables.

    f(x) = sum_j c_j exp(-gamma w_j |x P - z_j|^2) + b

with P a projection to a few coordinates (features, rank), or a factor for each feature. Adam (Kingma & Ba 2015) takes the
gradient at the rounded numbers and moves the unrounded ones (straight-through: Bengio et al. 2013), so the model learns
what its tables can hold. The projection begins with Fisher's directions beside principal axes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from ..goals.demands import RowLoss
from ..kernels import RBF, Array
from ..limits import Deadline
from ..metric import Metric
from ..model import Expansion
from ..rounding import nearest_upper_halves, rounded, rounded_widths

#: the first rate of Adam, in standard deviations of points; it falls to 0 as half a cosine
RATE = 0.02
#: decay rates of the running means of the gradient and of its square
MEAN, SQUARE, TINY = 0.9, 0.999, 1e-12
#: rows of a mini-batch. More: less noisy and slower steps
BATCH = 1024
#: the share of the steps after which numbers are rounded. More: fewer steps to adapt to it
ROUNDED_FROM = 0.4
#: gamma times the mean squared distance of two projected rows at the start; the pull of logarithms, and the decay, in rows
START_DISTANCE, PULL, DECAY = 8.0, 1e-3, 0.1
#: rows for directions, and rounds and rows of k-means
DIRECTION_ROWS, ROUNDS, MEANS_ROWS = 20_000, 6, 20_000
#: a ridge on the variance within classes, as a share of its mean
RIDGE = 1e-2
#: bits of tables, by precision; 0: no rounding
BITS = {"float32": 0, "int16": 16, "int8": 8, "int4": 4}


@dataclass(frozen=True)
class Layout:
    """What a model is made of: points, the rank of its projection (0: a factor for each feature), and its precision."""

    size: int
    rank: int = 0
    precision: str = "float32"


@dataclass
class Numbers:
    """The numbers that move, float32: points, coefficients, bias, log widths, and a projection or log factors."""

    points: Array  # (m, r), in the coordinates of projected rows, or of rows without factors
    coef: Array  # (m, q)
    bias: Array  # (q,)
    widths: Array  # (m,), logarithms
    map: Array  # (d, r), or (d,) logarithms

    @property
    def arrays(self) -> list[Array]:
        """All arrays."""
        return [self.points, self.coef, self.bias, self.widths, self.map]

    @property
    def projects(self) -> bool:
        """Whether there is a projection."""
        return self.map.ndim == 2

    def rounded(self, bits: int, centre: Array) -> Numbers:
        """Return the numbers that tables of so many bits hold; points in tables are not relative to the centre."""
        if not bits:
            return self
        widths = np.log(rounded_widths(np.exp(np.asarray(self.widths, np.float64))))
        coef = rounded(self.coef, bits) if bits == 4 or self.projects else on_grid(self.coef, bits)
        if self.projects:
            map_ = rounded(self.map, bits)
            offset = centre @ map_
            points = rounded(self.points + offset, bits) - offset
        else:
            factors = nearest_upper_halves(np.exp(self.map))
            points = (self.points + centre) * factors
            points, map_ = (
                (rounded(points, bits) if bits == 4 else on_grid(points, bits)) / factors - centre,
                np.log(factors),
            )
        return Numbers(*(np.asarray(part, np.float32) for part in (points, coef, self.bias, widths, map_)))


class Joint:
    """The loss of such models on dense rows, relative to their mean, and its descent."""

    def __init__(self, X: Array, loss: RowLoss, weights: Array, gamma: float, bits: int, rng: np.random.Generator) -> None:
        self.centre = X.mean(axis=0, dtype=np.float64)
        self.X = (X - self.centre).astype(np.float32)
        self.loss, self.weights, self.gamma, self.bits, self.rng = loss, weights, gamma, bits, rng
        self.scale = float(weights.mean())

    def descended(
        self, start: Numbers, steps: int, deadline: Deadline, *, rate: float = RATE, rounds: float = ROUNDED_FROM
    ) -> Numbers:
        """Return the numbers after some steps, or at the deadline, which the rate then follows, rounded."""
        now = Numbers(*(part.copy() for part in start.arrays))
        units, moments = self._units(now, rate), [(np.zeros_like(part), np.zeros_like(part)) for part in now.arrays]
        n, size = self.X.shape[0], min(BATCH, self.X.shape[0])
        order, place = self.rng.permutation(n), 0
        for step in range(1, steps + 1):
            share = max(step / steps, deadline.used)
            if share >= 1 and step > 1:
                break
            if place + size > n:
                order, place = self.rng.permutation(n), 0
            batch, place = order[place : place + size], place + size
            gradient = self.gradient(now, batch, rounding=share >= rounds)
            pace = 0.5 * (1 + np.cos(np.pi * share)) * np.sqrt(1 - SQUARE**step) / (1 - MEAN**step)
            for part, slope, unit, (mean, square) in zip(now.arrays, gradient, units, moments, strict=True):
                mean *= MEAN
                mean += np.float32(1 - MEAN) * slope
                square *= SQUARE
                square += np.float32(1 - SQUARE) * slope * slope
                part -= np.float32(unit * pace) * mean / (np.sqrt(square) + np.float32(TINY))
        return now.rounded(self.bits, self.centre)

    def gradient(self, now: Numbers, batch: Array, *, rounding: bool) -> list[Array]:
        """Return the gradient on some rows, at the rounded numbers if `rounding`."""
        held = now.rounded(self.bits, self.centre) if rounding else now
        A = self.X[batch]
        factors = None if held.projects else np.exp(held.map)
        rows, points = (A @ held.map, held.points) if factors is None else (A * factors, held.points * factors)
        distances = np.maximum((rows * rows).sum(axis=1)[:, None] + (points * points).sum(axis=1) - 2 * rows @ points.T, 0)
        reach = np.float32(self.gamma) * np.exp(held.widths)
        K = np.exp(-distances * reach)
        _, slopes = self.loss[batch].measured(K @ held.coef + held.bias)
        W = (self.weights[batch, None] / (self.scale * batch.size) * slopes).astype(np.float32)
        P = (W @ held.coef.T) * K
        n, m = self.X.shape[0], held.widths.size
        by_widths = -reach * np.einsum("ij,ij->j", P, distances) + np.float32(2 * PULL / m) * now.widths
        P *= reach
        by_points = 2 * (P.T @ rows - P.sum(axis=0)[:, None] * points)
        by_rows = 2 * (P @ points - P.sum(axis=1)[:, None] * rows)
        by_coef = K.T @ W + np.float32(2 * DECAY / n) * now.coef
        if factors is None:
            return [by_points, by_coef, W.sum(axis=0), by_widths, A.T @ by_rows]
        by_factors = (by_rows * rows).sum(axis=0) + (by_points * points).sum(axis=0) + np.float32(2 * PULL / n) * now.map
        return [by_points * factors, by_coef, W.sum(axis=0), by_widths, by_factors]

    def _units(self, now: Numbers, rate: float) -> list[float]:
        """Return the rate of each array."""
        outputs = 2 * rate / max(abs(self.loss.curvature(np.zeros(self.loss.shape))) ** 0.5, 1.0)
        spread = float(self.X.std())
        points = float(now.points.std()) or spread
        return [rate * points, outputs, outputs, rate / 2, rate * float(now.map.std()) if now.projects else rate / 2]

    # Between numbers and models.

    def model(self, kernel: RBF, found: Numbers, precision: str) -> Expansion:
        """Return the model of numbers, with points in the coordinates of the user's rows."""
        points, coef, bias, widths, map_ = (np.asarray(part, np.float64) for part in found.arrays)
        widths = np.exp(widths)
        if found.projects:
            metric, placed = Metric(None, widths, map_), points + self.centre @ map_
        else:
            metric, placed = Metric(np.exp(map_), widths), points + self.centre
        model = Expansion(kernel, placed, coef, bias, metric)
        return in_tables(replace(model, precision=precision), self.bits)

    def numbers(self, model: Expansion) -> Numbers:
        """Return the numbers of a model."""
        projection = model.projection
        map_ = np.log(model.factors) if projection is None else projection
        points = model.points - (self.centre if projection is None else self.centre @ projection)
        parts = points, model.coef, model.bias, np.log(model.widths), map_
        return Numbers(*(np.array(part, np.float32) for part in parts))

    # The start.

    def start(self, layout: Layout, groups: Array) -> Numbers:
        """Return initial numbers: k-means centres of each group of rows, behind a projection that separates the groups."""
        sample = self.rng.permutation(self.X.shape[0])[:DIRECTION_ROWS]
        A, group = self.X[sample], groups[sample]
        map_ = np.zeros(A.shape[1], np.float32)
        if layout.rank:
            map_ = directions(A.astype(np.float64), group, layout.rank).astype(np.float32)
        rows = A @ map_ if layout.rank else A
        one, other = self.rng.integers(rows.shape[0], size=(2, 4000))
        scale = np.sqrt(
            START_DISTANCE / (self.gamma * max(float(np.square(rows[one] - rows[other]).sum(axis=1).mean()), 1e-30))
        )
        if layout.rank:
            map_ *= np.float32(scale)
            rows = rows * np.float32(scale)
        else:
            map_ += np.float32(np.log(scale))
        points = grouped_means(rows, group, layout.size, self.rng)
        coef = 1e-2 * self.rng.standard_normal((points.shape[0], self.loss.shape[1]))
        parts = points, coef, np.zeros(self.loss.shape[1]), np.zeros(points.shape[0]), map_
        return Numbers(*(np.array(part, np.float32) for part in parts))


def in_tables(model: Expansion, bits: int) -> Expansion:
    """Return a model with the very numbers of its tables; those of 8 and 16 bits in all features are made by the export."""
    if not bits or (bits > 4 and model.projection is None):
        return model
    metric, factors = model.metric or Metric(), nearest_upper_halves(model.factors)
    projection = None if metric.projection is None else rounded(metric.projection, bits)
    points = rounded(model.points * factors, bits) / factors
    learned = Metric(None if projection is not None else factors, rounded_widths(model.widths), projection)
    bias = nearest_upper_halves(model.bias) if bits == 4 and model.bias.size > 1 else model.bias
    return replace(model, points=points, coef=rounded(np.asarray(model.coef), bits), bias=bias, metric=learned)


def on_grid(numbers: Array, bits: int) -> Array:
    """Return numbers rounded to equal steps over their range, as many as integers of so many bits."""
    low, high = float(numbers.min()), float(numbers.max())
    step = (high - low) / (2**bits - 2) or 1.0
    return low + step * np.rint((numbers - low) / step)


def directions(A: Array, groups: Array, rank: int) -> Array:
    """Return Fisher's directions of the groups, for half of the rank at most, and principal axes, (features, rank)."""
    d, names = A.shape[1], np.unique(groups)
    S = A.T @ A / A.shape[0]
    mean = max(float(np.trace(S)) / d, 1e-30)
    axes = eigh(S)[1][:, ::-1]
    count = min(names.size - 1, (rank + 1) // 2)
    if not count:
        return axes[:, :rank]
    means, shares = (
        np.array(part) for part in zip(*((A[groups == k].mean(axis=0), np.mean(groups == k)) for k in names), strict=True)
    )
    L = cholesky(S + RIDGE * mean * np.eye(d), lower=True)
    between = solve_triangular(L, (means * np.sqrt(shares)[:, None]).T, lower=True)
    fisher = solve_triangular(L, eigh(between @ between.T)[1][:, ::-1][:, :count], lower=True, trans="T")
    fisher *= np.sqrt(mean) / np.maximum((A @ fisher).std(axis=0), 1e-30)
    return np.hstack([fisher, axes[:, : rank - count]])


def grouped_means(rows: Array, groups: Array, count: int, rng: np.random.Generator) -> Array:
    """Return k-means centres, in equal number from each group."""
    names = rng.permutation(np.unique(groups))
    found = []
    for place, name in enumerate(names):
        share = count // names.size + (place < count % names.size)
        own = rows[groups == name][:MEANS_ROWS]
        if share:
            found.append(means(own, share, rng))
    return np.vstack(found)


def means(rows: Array, count: int, rng: np.random.Generator) -> Array:
    """Return the centres of k-means; rows are repeated where there are fewer of them."""
    centres = rows[rng.permutation(rows.shape[0])[np.arange(count) % rows.shape[0]]]
    for _ in range(ROUNDS):
        nearest = ((centres * centres).sum(axis=1) - 2 * rows @ centres.T).argmin(axis=1)
        totals = np.bincount(nearest, minlength=count)
        sums = np.column_stack([np.bincount(nearest, column, count) for column in rows.T])
        centres = np.where(totals[:, None] > 0, sums / np.maximum(totals, 1)[:, None], centres).astype(np.float32)
    return centres
