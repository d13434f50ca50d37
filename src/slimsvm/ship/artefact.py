"""The artefact that exporters write: a function of raw rows, its scaling and the meaning of its outputs, as plain arrays.

Exporters and the runtime take an `Artefact` and know nothing of estimators. This file needs NumPy only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ..calibration import Calibration, Conformal
from ..goals import Decision, Goal
from ..kernels.spec import IDENTITY, SPECS, KernelSpec, check_parameters
from ..learning import Learning
from ..metric import Metric
from ..scaling import Array, Scaling, with_factors
from ..tables.program import Preparation
from ..words import Words
from .sparse import SparsePoints

#: the largest shift of a feature, in units of its scale, that is folded into the bias; more: shorter code, and fewer
#: exact digits in float32 sums, which lose four bits at 16
HARMLESS_SHIFT = 16.0
#: numbers within these bounds, and their products with numbers of ordinary size, keep their digits in float32
MODERATE = 1e-30, 1e30
#: for goals without classes
NO_CLASSES: Array = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Artefact:
    """f(x) = sum_j k(scaling(x) P, z_j) coef_j + bias, and the meaning of its outputs. P projects; None is the identity.

    The scaling and the points include the factors of a model's metric. Its widths multiply gamma of each point. Points are
    sparse if the model has sparse ones and the scaling leaves zeros as they are (`settled`).
    """

    kernel: str
    parameters: Mapping[str, float]  # those of the kernel's spec
    points: Array | SparsePoints  # (m, d), float64 as all numbers
    coef: Array  # (m, q)
    bias: Array  # (q,)
    goal: Goal
    classes: Array  # empty if predictions are values
    scaling: Scaling | None = None
    calibration: Calibration | None = None  # from scores to probabilities; the class of the largest is predicted
    widths: Array | None = None  # (m,); None means ones
    names: tuple[str, ...] = ()  # of the features, or of the columns of a table, if the model knows them
    words: Words | None = None  # rows are texts, of which these make features
    preparation: Preparation | None = None  # rows are those of a table, of which this makes features
    spread: Conformal | None = None  # the errors of a regressor, of which intervals are made
    interval: float | None = None  # how far the exported intervals reach
    projection: Array | None = None  # (d, columns of points)
    precision: str = "float32"  # of the tables that the model was made for
    learning: Learning | None = None  # how the model learns on, if it learns row by row
    ranges: Array | None = None  # (2, d) the least and the largest number of each raw feature in training, if known

    @property
    def size(self) -> int:
        """The number of points."""
        return self.points.shape[0]

    @property
    def features(self) -> int:
        """The length of a row."""
        return self.columns if self.projection is None else self.projection.shape[0]

    @property
    def columns(self) -> int:
        """The length of a point."""
        return self.points.shape[1]

    @property
    def table(self) -> Array:
        """The points with all their features."""
        return self.points.dense() if isinstance(self.points, SparsePoints) else self.points

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return self.bias.size

    @property
    def scores(self) -> int:
        """The number of scores: one for each output, or one for each class if outputs are of pairs of classes."""
        return self.classes.size if self.by_pairs else self.outputs

    @property
    def decision(self) -> Decision:
        """How outputs become a prediction."""
        return self.goal.decision

    @property
    def by_pairs(self) -> bool:
        """Whether outputs are of pairs of classes, of three classes or more."""
        return self.decision in (Decision.VOTES, Decision.SCORED_VOTES, Decision.DAG)

    @property
    def summary(self) -> str:
        """The size and the kind of predictions, in words."""
        what = f"{self.classes.size} classes" if self.classes.size else self.goal.name
        widths = "" if self.widths is None else " with a width for each point"
        sparse = f" with {self.points.nonzeros:,} nonzeros" if isinstance(self.points, SparsePoints) else ""
        sparse += "" if self.projection is None else f" projected to {self.columns}"
        return f"{self.size:,} points of {self.features:,} features{sparse}, {what}, {self.kernel} kernel{widths}"

    @property
    def spec(self) -> KernelSpec:
        """The facts of the kernel for exporters."""
        return SPECS[self.kernel]

    def check(self) -> None:
        """Raise ValueError unless all parts fit together and all numbers are finite."""
        shapes = f"points of shape {self.points.shape}, coef of {self.coef.shape} and bias of {self.bias.shape}"
        if self.points.ndim != 2 or self.bias.ndim != 1 or self.coef.shape != (self.size, self.outputs):
            raise ValueError(f"{shapes} do not fit together")
        least = 0 if self.goal.real else 2
        if self.classes.ndim != 1 or self.classes.size < least or np.unique(self.classes).size != self.classes.size:
            raise ValueError("it needs two or more different classes")
        if self.goal.n_classes != self.classes.size or self.goal.outputs != self.outputs:
            raise ValueError(f"{self.outputs} outputs of {self.classes.size} classes do not fit together")
        check_parameters(self.kernel, self.parameters)
        _check_columns(self)
        for name, values in {"points": numbers_of(self.points), "coefficients": self.coef, "bias": self.bias}.items():
            if not np.isfinite(values).all():
                raise ValueError(f"it has {int((~np.isfinite(values)).sum())} non-finite values in its {name}")
        Metric(None, self.widths, self.projection).check(self.kernel, self.size, self.columns)
        if self.scaling is not None:
            self.scaling.check(self.features)
        if self.ranges is not None and (self.ranges.shape != (2, self.features) or not np.isfinite(self.ranges).all()):
            raise ValueError(f"it has ranges of shape {self.ranges.shape} for {self.features} features, or some not finite")
        _check_calibration(self)

    def coordinates(self, rows: Array) -> Array:
        """Return rows of features in the coordinates of the points."""
        scaled = rows if self.scaling is None else self.scaling(rows)
        return scaled if self.projection is None else scaled @ self.projection

    def check_plain(self, target: str) -> None:
        """Raise ValueError if rows are projected, for a target that has no matrix."""
        if self.projection is not None:
            raise ValueError(
                f"{target} has no projection, and this model was learned with one; train with metric='both' or 'fixed'"
            )

    def check_one_target(self, target: str) -> None:
        """Raise ValueError if predictions are of several targets, for a target format that has one value."""
        if self.decision is Decision.VALUES:
            raise ValueError(
                f"{target} holds one value for a row, and this model predicts {self.outputs} targets; write C, JavaScript, "
                "ONNX or JSON, or train a model for each target"
            )

    def check_rows(self, target: str, *, tables: bool = False) -> None:
        """Raise ValueError if rows are texts, or those of a table, for a target that takes numbers only."""
        if self.words is not None:
            raise ValueError(
                f"{target} takes numbers, and this Pipeline begins with a vectorizer of texts. Write JavaScript (.mjs), "
                "save it as .slim for slimsvm.runtime, or keep the vectorizer in your program and export the steps after "
                "it, pipeline[1:], which take its rows; skl2onnx converts whole Pipelines "
                "(slimsvm.ship.converter.register)"
            )
        if self.preparation is not None and not tables:
            raise ValueError(
                f"{target} takes prepared rows of numbers, and this Pipeline prepares the rows of a table. Write C, "
                "JavaScript or JSON, or export its last step, pipeline[-1], which takes prepared rows; skl2onnx converts "
                "whole Pipelines (slimsvm.ship.converter.register)"
            )

    def with_metric(self, metric: Metric | None) -> Artefact:
        """Return the function whose kernel has this metric: its factors go into scaling and points."""
        if metric is None:
            return self
        widths = None if metric.widths is None else np.asarray(metric.widths, dtype=np.float64)
        widened = replace(self, widths=widths, projection=metric.projection)
        if metric.factors is None:
            return widened
        factors = np.asarray(metric.factors, dtype=np.float64)
        return replace(widened, points=self.points * factors, scaling=with_factors(self.scaling, factors))

    def with_values(self, target: Scaling) -> Artefact:
        """Return the function of values whose scaled form this one computes: (y - centre) * scale = f(x)."""
        spread = None if self.spread is None else self.spread.times(float(1 / target.scale[0]))
        return replace(self, coef=self.coef / target.scale, bias=self.bias / target.scale + target.centre, spread=spread)

    def covering(self, coverage: float | None) -> Artefact:
        """Return the function with intervals of this coverage; the same for None."""
        if coverage is None:
            return self
        if self.spread is None:
            raise ValueError(
                "coverage= is for a regressor with intervals, and this model has none; fit a "
                "SlimSVR(calibration='conformal')"
            )
        return replace(self, interval=self.spread.half_width(coverage))

    def settled(self) -> Artefact:
        """Return the artefact with dense points if its points are sparse and its scaling changes zeros."""
        moves = self.scaling is not None and (self.scaling.clips or bool(self.scaling.centre.any()))
        return replace(self, points=self.table) if moves else self

    def compact(self, *, fold_scales: bool = True) -> Artefact:
        """Return the same function with as much of the scaling as possible in the points, and linear kernels as weights.

        Without `fold_scales` the scales of the features stay in the scaling.
        """
        if self.projection is not None:
            return _not_empty(_drop_idle_scaling(_fold_into_projection(self)))
        folds = (_fold_shift, _fold_scale, _fold_centre) if fold_scales else (_fold_shift,)
        steps = *folds, _round_centre, _drop_idle_scaling, _as_weights, _not_empty
        return reduce(lambda artefact, step: step(artefact), steps, self)


def _check_calibration(a: Artefact) -> None:
    """Raise ValueError unless the map to probabilities or to intervals fits the goal."""
    if a.spread is not None:
        a.spread.check()
    if a.calibration is not None:
        if not a.classes.size:
            raise ValueError(f"it has probabilities, and {a.goal.name} has no classes")
        a.calibration.check(a.classes.size)


def _check_columns(a: Artefact) -> None:
    """Raise ValueError unless the words of texts, the columns of a table and names fit the features."""
    columns = a.features if a.preparation is None else len(a.preparation.columns)
    if a.preparation is not None:
        a.preparation.check(a.features)
    if a.words is not None and len(a.words.vocabulary) != columns:
        raise ValueError(f"it has {len(a.words.vocabulary)} words for {columns} features")
    if len(a.names) not in (0, columns) or not all(isinstance(name, str) for name in a.names):
        raise ValueError(f"it has {len(a.names)} names for {columns} features, or some that are no text")


def whole_degree(parameters: Mapping[str, float]) -> dict[str, float]:
    """Return the parameters of a kernel as Python numbers; the degree is a whole one."""
    return {name: int(value) if name == "degree" else float(value) for name, value in parameters.items()}


def raw_ranges(ranges: Array | None, scaling: Scaling | None) -> Array | None:
    """Return the ranges of features before their scaling."""
    return ranges if ranges is None or scaling is None else ranges / scaling.scale + scaling.centre


def numbers_of(points: Array | SparsePoints) -> Array:
    """Return the numbers of points; of sparse ones the nonzeros."""
    return points.values if isinstance(points, SparsePoints) else points


def moderate(values: Array | float) -> bool:
    """Return whether all values are finite and the largest one is 0 or within MODERATE."""
    largest = float(np.abs(np.asarray(values, dtype=np.float64)).max(initial=0.0))
    return largest == 0.0 or MODERATE[0] <= largest <= MODERATE[1]


def _fold_scale(a: Artefact) -> Artefact:
    """Move the scales of the features into the points: any scales for inner products, one common scale for distances."""
    if a.scaling is None or a.scaling.clips:
        return a
    scale, inner = a.scaling.scale, a.spec.total.inner
    if not inner and np.ptp(scale):
        return a
    with np.errstate(over="ignore", under="ignore"):
        points = a.points * scale if inner else a.points / scale
        gamma = {} if inner else {"gamma": float(a.parameters["gamma"] * scale[0] ** a.spec.total.power)}
    if not moderate(numbers_of(points)) or not all(map(moderate, gamma.values())):
        return a
    unscaled = replace(a.scaling, scale=np.ones_like(scale))
    return replace(a, points=points, parameters=dict(a.parameters) | gamma, scaling=unscaled)


def _fold_shift(a: Artefact) -> Artefact:
    """Move the shifts of the features into the bias of a linear function, if that loses no digits."""
    if a.scaling is None or not _is_linear(a):
        return a
    harmless = np.abs(a.scaling.centre * a.scaling.scale).max(initial=0.0) <= HARMLESS_SHIFT
    return _moved_centre(a, np.zeros_like(a.scaling.centre)) if harmless else a


def _round_centre(a: Artefact) -> Artefact:
    """Choose a centre that float32 holds exactly: rounding a centre far from 0 would shift all rows."""
    if a.scaling is None:
        return a
    with np.errstate(over="ignore"):
        centre = a.scaling.centre.astype(np.float32).astype(np.float64)
    return _moved_centre(a, centre) if np.isfinite(centre).all() else a


def _moved_centre(a: Artefact, centre: Array) -> Artefact:
    """Return the same function with another centre if the kernel allows it; points or bias take up the difference."""
    if a.scaling is None or a.scaling.clips or not (a.spec.total.shift_invariant or _is_linear(a)):
        return a
    if isinstance(a.points, SparsePoints):
        return a  # the centre is 0
    rest = (a.scaling.centre - centre) * a.scaling.scale
    scaling = replace(a.scaling, centre=centre)
    if _is_linear(a):
        return replace(a, bias=a.bias - (a.points @ rest) @ a.coef, scaling=scaling)
    return replace(a, points=a.points + rest, scaling=scaling)


def _fold_centre(a: Artefact) -> Artefact:
    """Move the shifts of the features into the points of a distance."""
    if a.scaling is None or _is_linear(a) or (a.scaling.scale != 1).any():
        return a
    return _moved_centre(a, np.zeros_like(a.scaling.centre))


def _fold_into_projection(a: Artefact) -> Artefact:
    """Move the scaling into the projection and the points, if that loses no digits."""
    if a.scaling is None or a.projection is None or a.scaling.clips:
        return a
    shift = a.scaling.centre * a.scaling.scale
    projection = a.scaling.scale[:, None] * a.projection
    if np.abs(shift).max(initial=0.0) > HARMLESS_SHIFT or not moderate(projection):
        return a
    if shift.any() and not a.spec.total.shift_invariant:
        return a
    return replace(a, points=a.table + shift @ a.projection, projection=projection, scaling=None)


def _is_linear(a: Artefact) -> bool:
    return a.spec.value is IDENTITY and a.spec.total.inner


def _drop_idle_scaling(a: Artefact) -> Artefact:
    return replace(a, scaling=None) if a.scaling is not None and a.scaling.idle else a


def _as_weights(a: Artefact) -> Artefact:
    """Replace the points of a linear function by its weights, one point per output."""
    if not _is_linear(a) or a.size <= a.outputs:
        return a
    weights = a.points.weighted(a.coef) if isinstance(a.points, SparsePoints) else a.coef.T @ a.points
    return replace(a, points=weights, coef=np.eye(a.outputs))


def _not_empty(a: Artefact) -> Artefact:
    """Give a constant function a point with coefficients of 0: C has no empty tables."""
    if a.size:
        return a
    zeros: Array | SparsePoints = np.zeros((1, a.columns))
    if isinstance(a.points, SparsePoints):
        zeros = replace(a.points, starts=np.zeros(2, dtype=np.intp))
    return replace(a, points=zeros, coef=np.zeros((1, a.outputs)), widths=None)
