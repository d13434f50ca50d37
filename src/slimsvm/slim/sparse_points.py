"""Points of sparse rows: the span of directions in which they move, and the few entries that they keep in the end.

Rows of text have tens of thousands of features, but points in the span of a few directions are as good. As in partial
least squares, each round adds the direction X'r for every output, with r the residuals of the best linear model in the span
so far, and then fits that model again. No kernel is evaluated.

Points that move in a span of directions have an entry for every feature that occurs, many times as many as a row. A change
d of the entries of one feature i changes the outputs of row x by x_i sum_j d_j s_j c_j, with s_j the derivative of
k(x, z_j) by <x, z_j> and c_j the coefficients. On average over rows, its square is proportional to

    d' H d      H = (sum_x s s') o (C C')

which is the same H for all features. So each feature is a small least-squares problem: matching pursuit keeps one entry
after the other and fits those kept, so that the sum over all points stays the same as far as it can (as optimal brain
surgery does for weights of networks). Afterwards the coefficients are fitted to the outputs of the points with all entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, issparse

from ..goals.margin_targets import MarginTargets
from ..kernels import Array, Matrix, dense
from ..limits import Deadline
from ..model import Expansion
from ..rows.kernel_matrix import KernelMatrix
from ..rows.protocol import Rows, SpannedRows
from ..solvers.newton import RIDGE as NEWTON_RIDGE
from ..solvers.newton import IntervalSquares, NewtonSettings

#: Newton's method between two rounds; this precision is enough for the next directions
ROUGH = NewtonSettings(steps=8, precision=1e-3, line_precision=0.01, shared=True)
#: what is added to the diagonal of H, as a share of its mean. More: points stay nearer to what they were, with more entries
STIFFNESS = 1e-3
#: the same for the fit of the coefficients
RIDGE = 1e-8
#: the entries of a feature after each stage of the pursuit: later ones are chosen several at a time, which is quicker
STAGES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
#: from so many entries on, only the half of the features with the most left to gain goes on to the next stage
ALL_UP_TO = 6
#: the fewest entries that are tried are this part of the features. More: an earlier end where points stay accurate
FEWEST = 8
#: features at once; more: larger matrices in memory
BLOCK = 1 << 13
#: the number of entries is searched to within this factor. Smaller: fewer entries, more trials
CLOSE = 1.25


def discriminating_span(
    rows: SpannedRows, margin_targets: MarginTargets, weights: Array, decay: float, rounds: int, most: int
) -> SpannedRows:
    """Return the rows with up to `rounds` x outputs more directions in the span, `most` in a round.

    `decay` weighs |w|^2 of the linear models, for rows of length 1 on average.
    """
    problem, outputs = IntervalSquares(margin_targets, weights), np.zeros(margin_targets.shape)
    for _ in range(rounds):
        wider = rows.widened(weights[:, None] * margin_targets.residual(outputs), most)
        if wider.d == rows.d:
            break
        rows, handle = wider, wider.coordinates()
        outputs = problem.fit(handle, _regulariser(handle, weights, decay), ROUGH).outputs
    return rows


def _regulariser(handle: KernelMatrix, weights: Array, decay: float) -> Array:
    """Return decay |w|^2 times the mean squared length of the coordinates, with a ridge that makes the solution unique."""
    lengths = np.diag(handle.curvature(np.arange(weights.size), weights))[1:].sum()
    ridge = NEWTON_RIDGE * float(weights.sum())
    scale = lengths / max(float(weights.sum()), np.finfo(float).tiny)
    return np.diag([ridge, *np.full(handle.size, ridge + decay * scale)])


@dataclass(frozen=True)
class Stage:
    """The entries of some features after a stage of the pursuit."""

    columns: Array  # numbers of the features, among those with an entry
    points: Array  # (columns, entries of each)
    values: Array
    gains: Array  # what each of the new entries gains


class Entries:
    """What the pursuit keeps of each feature, and the entries of the largest gain."""

    def __init__(self, columns: Array, shape: tuple[int, int]) -> None:
        self.columns, self.shape = columns, shape
        self.stages: dict[int, list[Stage]] = {}  # by the number of entries

    def add(self, stage: Stage) -> None:
        """Add what a stage found for some features."""
        self.stages.setdefault(stage.points.shape[1], []).append(stage)

    def ordered(self) -> tuple[Array, Array]:
        """Return gains, the largest first, and how many entries gain at least as much."""
        gains = self.gains()
        added = np.repeat(np.diff([0, *self.stages]), gains.shape[1])[gains.ravel() >= 0]
        gains = gains[gains >= 0]
        order = np.argsort(-gains, kind="stable")
        return gains[order], np.cumsum(added[order])

    def gains(self) -> Array:
        """Return the gain of an entry at each stage for each feature, which falls from stage to stage; -1 for none."""
        found = np.full((len(self.stages), self.columns.size), -1.0)
        for line, parts in zip(found, self.stages.values(), strict=True):
            for stage in parts:
                line[stage.columns] = stage.gains
        return np.minimum.accumulate(found, axis=0)

    def some(self, least: float) -> csr_array:
        """Return points with the entries that gain at least so much."""
        reached = (self.gains() >= max(least, 0.0)).sum(axis=0) - 1
        rows, columns, values = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)], [np.zeros(0)]
        for number, (count, parts) in enumerate(self.stages.items()):
            for stage in parts:
                these = reached[stage.columns] == number
                rows.append(stage.points[these].ravel())
                columns.append(np.repeat(self.columns[stage.columns[these]], count))
                values.append(stage.values[these].ravel())
        places = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.concatenate(values), places), shape=self.shape)


def with_few_entries(
    rows: Rows, model: Expansion, sums: Array, outputs: Array, change: float, deadline: Deadline
) -> Expansion:
    """Return the model with the fewest entries that change its outputs by at most a share `change`; the model if none do.

    `sums` are sum_x s s' for the points, (m, m), and `outputs` those of the model on the rows. The change is the root mean
    square of the outputs' differences, relative to the standard deviation of the outputs.
    """
    H = sums * (model.coef @ model.coef.T)
    entries = Entries(occurring(model.points), model.points.shape)
    if not entries.columns.size or not 0 < np.trace(H) < np.inf:
        return model
    pursue_all(model.points, H, entries)
    trials, (least, counts) = _Trials(rows, model, outputs), entries.ordered()
    allowed, best = change * float(outputs.std(axis=0).mean()), model
    low, high = max(entries.columns.size // FEWEST, 1), int(counts[-1])  # too few entries, and enough
    middle = high
    while not deadline.over:
        trial, found = trials(entries.some(least[np.searchsorted(counts, middle)]))
        if found <= allowed:
            best, high = trial, middle
        elif middle == high:
            return model
        else:
            low = middle
        if high <= CLOSE * low:
            break
        middle = int(np.sqrt(low * high))
    return best


def occurring(points: Matrix) -> Array:
    """Return the features in which some point is not 0."""
    return np.unique(points.nonzero()[1]) if issparse(points) else np.flatnonzero(points.any(axis=0))


def pursue_all(points: Matrix, H: Array, found: Entries) -> None:
    """Add the entries that matching pursuit keeps of each feature."""
    H = H + STIFFNESS * np.trace(H) / H.shape[0] * np.eye(H.shape[0])
    for begin in range(0, found.columns.size, BLOCK):
        numbers = np.arange(begin, min(begin + BLOCK, found.columns.size))
        _pursue(dense(points[:, found.columns[numbers]]).T, H, numbers, found)


def _pursue(Z: Array, H: Array, numbers: Array, found: Entries) -> None:
    """Add the stages of a few features, Z (features, m), to those found; later ones only where much is left to gain."""
    target = Z @ H
    loss = (Z * target).sum(axis=1)
    left, chosen = target, np.zeros((Z.shape[0], 0), dtype=np.intp)
    for count in sorted({min(size, Z.shape[1]) for size in STAGES}):
        score = np.square(left) / H.diagonal()
        np.put_along_axis(score, chosen, -1.0, axis=1)
        new = count - chosen.shape[1]
        chosen = np.hstack([chosen, np.argpartition(-score, new - 1, axis=1)[:, :new]])
        wanted = np.take_along_axis(target, chosen, axis=1)
        fitted = np.linalg.solve(H[chosen[:, :, None], chosen[:, None, :]], wanted[:, :, None])[:, :, 0]
        kept = np.zeros(target.shape)
        np.put_along_axis(kept, chosen, fitted, axis=1)
        left = target - kept @ H
        # (u - z)'H(u - z) with H_SS u = (H z)_S is z'Hz - u'(H z)_S
        rest = (Z * target).sum(axis=1) - (fitted * wanted).sum(axis=1)
        found.add(Stage(numbers, chosen, fitted, np.maximum(loss - rest, 0.0) / new))
        going_on = np.sort(np.argsort(-rest, kind="stable")[: rest.size if count < ALL_UP_TO else -(-rest.size // 2)])
        Z, target, left, loss = Z[going_on], target[going_on], left[going_on], rest[going_on]
        chosen, numbers = chosen[going_on], numbers[going_on]


class _Trials:
    """Models with other points whose coefficients reproduce the outputs of a model."""

    def __init__(self, rows: Rows, model: Expansion, outputs: Array) -> None:
        self.rows, self.model, self.outputs = rows, model, outputs
        self.ones = np.ones((rows.n, 1))
        self.sums = rows.against(model.points, exact=False).back(self.ones)

    def __call__(self, points: csr_array) -> tuple[Expansion, float]:
        """Return the model with these points, and the root mean square difference of its outputs."""
        against, n = self.rows.against(points, exact=False), self.rows.n
        start = np.vstack([self.model.bias, self.model.coef])
        if self.rows.kernel.translation_invariant:
            # a point that moved away from all rows has smaller kernel values, all by about the same factor
            sums = against.back(self.ones)
            start[1:] *= np.divide(self.sums, sums, out=np.ones_like(sums), where=sums > 0)
        A = against.curvature(np.arange(n), np.ones(n))
        ridge = RIDGE * np.trace(A) / A.shape[0]
        right = np.vstack([self.outputs.sum(axis=0), against.back(self.outputs)])
        theta = np.linalg.solve(A + ridge * np.eye(A.shape[0]), right + ridge * start)
        found = against.times(theta[1:]) + theta[0]
        trial = replace(self.model, points=points, coef=theta[1:], bias=theta[0])
        return trial, float(np.sqrt(np.square(found - self.outputs).mean()))
