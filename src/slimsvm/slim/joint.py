"""A small model in float32 whose numbers all move together, by mini-batches, through the rounding of its tables.

    f(x) = sum_j c_j exp(-gamma w_j |x P - z_j|^2) + b

with P a projection to a few coordinates (features, rank), or a factor for each feature. Adam (Kingma & Ba 2015) takes the
gradient at the rounded numbers and moves the unrounded ones (straight-through: Bengio et al. 2013), so the model learns
what its tables can hold. Rows and numbers are arrays of the library and device that hold the rows.

One product gives all exponents of a strip of rows, K = exp([x P, |x P|^2, 1] R), and one more all sums over its rows,
with P_ij = <W_i, c_j> K_ij for the slopes W of the loss: P' [x P, |x P|^2, 1]. So kernel values are read a few times only.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from ..goals.margin_targets import LOSSES, RowLoss
from ..kernels import RBF, Array, dense
from ..metric import Metric
from ..model import Expansion, Task
from ..rounding import nearest_upper_halves, rounded, rounded_widths
from ..run import Run
from ..selection.limits import on_grid
from ..states import State, floats, go_on, pack, unpack
from .learned import BOUND, KINDS, pull_of
from .starts import directions, grouped_means

#: the first rate of Adam, in standard deviations of points; it falls to 0 as half a cosine
RATE = 0.02
#: decay rates of the running means of the gradient and of its square, and a number that prevents a division by 0
MEAN, SQUARE, TINY = 0.9, 0.999, 1e-12
#: rows of a mini-batch, on the host and on a GPU, which fewer leave idle. More: less noisy and slower steps
BATCH, GPU_BATCH = 1024, 8192
#: numbers in a strip of kernel values, which fit into a core's cache, and multiply-adds of a batch that are worth threads
STRIP_VALUES, WORTH_THREADS = 1 << 17, 1 << 23
#: the share of the steps after which numbers are rounded. More: fewer steps to adapt to it
ROUNDED_FROM = 0.4
#: gamma times the mean squared distance of two projected rows at the start; the pull of logarithms, and the decay, in rows
START_DISTANCE, PULL, DECAY = 8.0, 1e-3, 0.01
#: rows for the directions of a projection
DIRECTION_ROWS = 20_000
#: rows for their median and size, and for the spread of features; the sizes that are ordinary; and the most in units of the
#: size, whose square float32 holds
CENTRE_ROWS, SPREAD_ROWS, ORDINARY, MOST = 4096, 1 << 16, (1e-6, 1e6), 1e15
#: steps that a GPU may be behind the host, whose clock would say little otherwise
AHEAD = 16
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

    points: Any  # (m, r), in the coordinates of projected rows, or of rows without factors
    coef: Any  # (m, q)
    bias: Any  # (q,)
    widths: Any  # (m,), logarithms
    map: Any  # (d, r), or (d,) logarithms

    @property
    def arrays(self) -> list[Any]:
        """All arrays."""
        return [self.points, self.coef, self.bias, self.widths, self.map]

    @property
    def vector(self) -> Array:
        """All numbers in a row, float32."""
        return np.concatenate([np.asarray(part, np.float32).ravel() for part in self.arrays])

    def like(self, vector: Any, xp: Any = np) -> Numbers:
        """Return numbers of these shapes from a vector, whose memory they share."""
        found, place = [], 0
        for part in self.arrays:
            end = place + int(np.prod(part.shape))
            found.append(xp.reshape(vector[place:end], part.shape))
            place = end
        return Numbers(*found)

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


@dataclass
class SavedJoint:
    """The state of a descent: the numbers, Adam's means, the steps taken, and the rows of the present pass."""

    vector: Annotated[Array, floats("v", dtype="float32")]
    mean: Annotated[Array, floats("v", dtype="float32")]
    square: Annotated[Array, floats("v", dtype="float32")]
    steps: int
    place: int
    rng: np.random.Generator  # before the pass


@dataclass(frozen=True)
class Plan:
    """The work of a descent: steps, the first rate, and the share of the steps before numbers are rounded."""

    steps: int
    rate: float = RATE
    rounded_from: float = ROUNDED_FROM


class Rows:
    """Dense rows of a task relative to their median, in float32 where they are computed with, and the loss of outputs.

    Rows of extraordinary size are in a `unit`, a power of 2.
    """

    def __init__(self, task: Task, loss: RowLoss) -> None:
        given = dense(task.rows.take(np.arange(task.rows.n)))
        self.share_out, self.name = task.rows.share_out, loss.name
        self.on: Any = task.rows.arrays  # type: ignore[attr-defined]  # of homes that hold rows
        self.n, self.outputs, self.meter = task.rows.n, loss.shape[1], task.rows.meter
        some = given[:: -(-self.n // CENTRE_ROWS)].astype(np.float64)
        self.centre = np.median(some, axis=0)  # a row far out does not move it
        size = float(np.sqrt(np.mean(np.square((some - self.centre) / MOST)))) * MOST
        self.unit = 1.0 if ORDINARY[0] <= size <= ORDINARY[1] or not size else float(np.exp2(np.rint(np.log2(size))))
        self.offset = self.centre / self.unit
        self.host = np.clip((given - self.centre) / self.unit, -MOST, MOST).astype(np.float32)  # for initial numbers
        self.spread = self.host[:: -(-self.n // SPREAD_ROWS)].std(axis=0, dtype=np.float64)
        self.X = self.on.send(self.host, np.float32)
        self.sides = [self.on.send(side, np.float32) for side in loss.sides]
        self.weights = self.on.send(task.weights[:, None] / float(task.weights.mean()), np.float32)
        # outputs of 0 have the largest slopes: a steeper loss is for smaller steps
        self.steepness = max(abs(loss.curvature(np.zeros(loss.shape))) ** 0.5, 1.0)
        self.pull = pull_of(self.n)

    def batch(self, rows: Any) -> tuple[Any, list[Any], Any]:
        """Return some rows, the sides of their loss, and their weights."""
        take = self.on.xp.take
        return (
            take(self.X, rows, axis=0),
            [take(side, rows, axis=0) for side in self.sides],
            take(self.weights, rows, axis=0),
        )


class Joint:
    """The loss of such models on dense rows, and its descent."""

    def __init__(self, rows: Rows, gamma: float, rng: np.random.Generator, *, bits: int = 0, kind: str = "both") -> None:
        self.rows, self.gamma, self.rng, self.bits, self.kind = rows, gamma * rows.unit**2, rng, bits, kind
        self.on, self.xp = rows.on, rows.on.xp
        self.batch = min(GPU_BATCH if self.on.is_gpu else BATCH, rows.n)

    def descended(self, start: Numbers, plan: Plan, run: Run, saved: State | None = None) -> Numbers:
        """Return the numbers after some steps, or at the deadline, which the rate then follows, rounded."""
        vector, units = start.vector, self._units(start, plan.rate)
        pulls, lowest, highest = self._pulls(start), *self._bounds(start)
        now = SavedJoint(vector, 0 * vector, 0 * vector, 0, 0, deepcopy(self.rng))
        if saved is not None:
            now = unpack(SavedJoint, saved, v=vector.size)
            go_on(self.rng, now.rng)
        order, place = self._pass(), now.place
        x, mean, square = (self.on.send(part, np.float32) for part in (now.vector, now.mean, now.square))
        units, pulls, lowest, highest = (self.on.send(part, np.float32) for part in (units, pulls, lowest, highest))
        step = now.steps

        def state() -> State:
            moved = [self.on.fetch(part, np.float32) for part in (x, mean, square)]
            return pack(SavedJoint(moved[0], moved[1], moved[2], step, place, now.rng))

        while step < plan.steps:
            share = max((step + 1) / plan.steps, run.deadline.used)
            if share >= 1 and step:
                break
            if place + self.batch > self.rows.n:
                now.rng, place = deepcopy(self.rng), 0
                order = self._pass()
            run.checkpoint.offer(state)
            batch, place, step = order[place : place + self.batch], place + self.batch, step + 1
            gradient = self.gradient(start.like(x, self.xp), batch, rounding=share >= plan.rounded_from)
            gradient += pulls * x
            pace = 0.5 * (1 + np.cos(np.pi * share)) * np.sqrt(1 - SQUARE**step) / (1 - MEAN**step)
            mean *= MEAN
            mean += (1 - MEAN) * gradient
            square *= SQUARE
            gradient *= gradient
            square += (1 - SQUARE) * gradient
            x -= (float(pace) * units) * (mean / (square**0.5 + TINY))
            x = self.xp.minimum(self.xp.maximum(x, lowest), highest)
            if self.on.is_gpu and step % AHEAD == 0:
                self.on.fetch(x[:1])
        return start.like(self.on.fetch(x, np.float32)).rounded(self.bits, self.rows.offset)

    def _pass(self) -> Any:
        """Return the numbers of all rows in random order."""
        return self.on.permutation(self.rows.n, self.rng)

    def gradient(self, now: Numbers, batch: Any, *, rounding: bool) -> Any:
        """Return the gradient of the mean loss of some rows, at the rounded numbers if `rounding`, as a vector."""
        held = now
        if rounding and self.bits:
            fetched = (self.on.fetch(part, np.float32) for part in now.arrays)
            host = Numbers(*fetched).rounded(self.bits, self.rows.offset)
            held = Numbers(*(self.on.send(part, np.float32) for part in host.arrays))
        size, m = int(batch.shape[0]), held.widths.shape[0]
        strip = size if self.on.is_gpu else min(max(STRIP_VALUES // m, 64), size)
        parts: list[Any] = [None] * -(-size // strip)
        pass_ = _Pass(self, held, size)

        def work(number: int) -> None:
            parts[number] = pass_.sums(*self.rows.batch(batch[number * strip : (number + 1) * strip]))

        if size * m * (held.points.shape[1] + self.rows.outputs) > WORTH_THREADS:
            self.rows.share_out(work, len(parts))
        else:
            for number in range(len(parts)):
                work(number)
        self.rows.meter.add(2 * size * m)
        sums = [sum(each[1:], start=each[0]) for each in zip(*parts, strict=True)]
        return pass_.gradient(sums)

    def _units(self, now: Numbers, rate: float) -> Array:
        """Return the rate of each number; 0 for parts of the metric that are not learned."""
        scales, widths = KINDS[self.kind]
        outputs, spread = 2 * rate / self.rows.steepness, self.rows.spread
        if now.projects:
            # a feature that varies much more than most moves its part of the projection less
            varying = np.maximum(spread, spread.mean()) / max(float(spread.mean()), 1e-30)
            points, of_map = np.full(now.points.shape, float(now.points.std()) or 1.0), float(now.map.std()) / varying
            of_map = np.broadcast_to(of_map[:, None], now.map.shape)
        else:
            points, of_map = np.broadcast_to(spread, now.points.shape), np.full(now.map.shape, scales / 2)
        parts = [rate * points, np.full(now.coef.shape, outputs), np.full(now.bias.shape, outputs)]
        parts += [np.full(now.widths.shape, rate / 2 * widths), rate * of_map]
        return np.concatenate([part.ravel() for part in parts]).astype(np.float32)

    def _pulls(self, now: Numbers) -> Array:
        """Return what pulls each number to 0: the decay of coefficients, and what holds logarithms where rows are few."""
        n, of_logs = self.rows.n, 2 * PULL * self.rows.pull
        by_part = [0.0, 2 * DECAY / n, 0.0, of_logs / now.widths.size, 0.0 if now.projects else of_logs / n]
        return np.repeat(np.array(by_part, dtype=np.float32), [part.size for part in now.arrays])

    def _bounds(self, now: Numbers) -> tuple[Array, Array]:
        """Return the least and the largest value of each number: logarithms are kept within bounds."""
        limit = np.log(BOUND)
        by_part = [np.inf, np.inf, np.inf, limit, np.inf if now.projects else limit]
        highest = np.repeat(np.array(by_part, dtype=np.float32), [part.size for part in now.arrays])
        return -highest, highest

    # Between numbers and models.

    def model(self, kernel: RBF, found: Numbers, precision: str) -> Expansion:
        """Return the model of numbers, with points in the coordinates of the user's rows."""
        points, coef, bias, widths, map_ = (np.asarray(part, np.float64) for part in found.arrays)
        widths, offset, unit = np.exp(widths), self.rows.offset, self.rows.unit
        if found.projects:
            metric, placed = Metric(None, widths, map_), unit * (points + offset @ map_)
        else:
            scales, varies = KINDS[self.kind]
            metric, placed = Metric(np.exp(map_) if scales else None, widths if varies else None), unit * (points + offset)
        model = Expansion(kernel, placed, coef, bias, metric if metric.size else None)
        return in_tables(replace(model, precision=precision), self.bits)

    def numbers(self, model: Expansion) -> Numbers:
        """Return the numbers of a model."""
        projection, offset = model.projection, self.rows.offset
        map_ = np.log(model.factors) if projection is None else projection
        points = dense(model.points) / self.rows.unit - (offset if projection is None else offset @ projection)
        parts = points, model.coef, model.bias, np.log(model.widths), map_
        return Numbers(*(np.array(part, np.float32) for part in parts))

    def start(self, layout: Layout, groups: Array) -> Numbers:
        """Return initial numbers: k-means centres of each group of rows, behind a projection that separates the groups."""
        X, learns = self.rows.host, KINDS[self.kind][0]
        sample = self.rng.permutation(X.shape[0])[:DIRECTION_ROWS]
        A, group = X[sample], groups[sample]
        map_ = np.zeros(A.shape[1], np.float32)
        if layout.rank:
            map_ = directions(A.astype(np.float64), group, layout.rank).astype(np.float32)
        rows = A @ map_ if layout.rank else A
        one, other = self.rng.integers(rows.shape[0], size=(2, 4000))
        distance = max(float(np.square(rows[one] - rows[other]).sum(axis=1).mean()), 1e-30)
        scale = np.float32(np.sqrt(START_DISTANCE / (self.gamma * distance)))
        if layout.rank:
            map_, rows = map_ * scale, rows * scale
        elif learns:
            map_ = map_ + np.log(np.clip(scale, 1 / BOUND, BOUND))
        points = grouped_means(rows, group, layout.size, self.rng)
        coef = 1e-2 * self.rng.standard_normal((points.shape[0], self.rows.outputs))
        parts = points, coef, np.zeros(self.rows.outputs), np.zeros(points.shape[0]), map_
        return Numbers(*(np.array(part, np.float32) for part in parts))


class _Pass:
    """The gradient at some numbers, from sums over strips of a mini-batch."""

    def __init__(self, joint: Joint, held: Numbers, size: int) -> None:
        xp, self.held, self.size = joint.xp, held, size
        self.xp, self.on, self.loss = xp, joint.on, LOSSES[joint.rows.name]
        self.joined = getattr(xp, "concat", np.concatenate)  # NumPy 1 has no such name
        self.factors = None if held.projects else xp.exp(held.map)
        self.Z = held.points if self.factors is None else held.points * self.factors
        self.reach = joint.gamma * xp.exp(held.widths)[:, None]
        norms = xp.sum(self.Z * self.Z, axis=1)[:, None]
        self.right = self.joined([2 * self.reach * self.Z, -self.reach, -self.reach * norms], axis=1).T
        self.norms = norms
        self.with_reach = self.joined([self.reach * self.Z, self.reach], axis=1)

    def sums(self, A: Any, sides: list[Any], weights: Any) -> tuple[Any, ...]:
        """Return the sums over a strip: the slopes by bias and coefficients, those of points, and those of the map."""
        xp, held, r = self.xp, self.held, self.held.points.shape[1]
        rows = A @ held.map if self.factors is None else A * self.factors
        norms = xp.sum(rows * rows, axis=1)[:, None]
        lifted = self.joined([rows, norms, xp.ones_like(norms)], axis=1)
        K = self.on.exp(lifted @ self.right, at_most_1=True)
        _, slopes = self.loss(xp, K @ held.coef + held.bias, *sides)
        W = weights / self.size * slopes
        by_coef = K.T @ W
        K *= W @ held.coef.T
        found, pulled = K.T @ lifted, K @ self.with_reach
        by_rows = 2 * (pulled[:, :r] - pulled[:, r:] * rows)
        by_map = A.T @ by_rows if self.factors is None else xp.sum(by_rows * rows, axis=0)
        return xp.sum(W, axis=0), by_coef, found, by_map

    def gradient(self, sums: list[Any]) -> Any:
        """Return the gradient as a vector."""
        (bias, coef, found, by_map), xp, r = sums, self.xp, self.held.points.shape[1]
        total = found[:, r + 1 :]
        points = 2 * self.reach * (found[:, :r] - total * self.Z)
        # the sums over rows of P_ij |x_i - z_j|^2
        apart = found[:, r : r + 1] + total * self.norms - 2 * xp.sum(found[:, :r] * self.Z, axis=1)[:, None]
        if self.factors is not None:
            by_map = by_map + xp.sum(points * self.Z, axis=0)
            points = points * self.factors
        parts = [points, coef, bias, -self.reach * apart, by_map]
        return self.joined([xp.reshape(part, (-1,)) for part in parts])


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
