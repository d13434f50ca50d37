"""The fitted transformers before a model in a Pipeline: a scaling of raw rows and points that fit it, or a `Preparation`.

Scalers and choices of columns become a scaling. A PCA is folded into the points if that is exact: as the last transformer,
before a kernel of inner products, or if it keeps distances. Needs NumPy only: transformers may be read from a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..importers.scaler_kinds import SCALER_KINDS
from ..kernels.spec import INNER, SPECS, SQUARES
from ..metric import Metric
from ..scaling import Array, Scaling
from .program import Preparation
from .steps import READERS
from .steps.affine import Affine
from .tape import Tape, name_of

Folded = tuple[Array, Scaling | None, Metric | None, Preparation | None]


@dataclass(frozen=True)
class ColumnScaling:
    """Features that are scaled columns of the raw rows, each of another column."""

    columns: Array  # the column of each feature
    scaling: Scaling
    given: int  # the number of features of the raw rows

    @classmethod
    def of(cls, preparation: Preparation) -> ColumnScaling | None:
        """Return the scaling that a preparation is; None if it is more than that."""
        if not preparation.is_numeric or not all(isinstance(step, Affine) for step in preparation.steps):
            return None
        ends = (0.0, 1.0, -np.inf, np.inf)
        places = [(column.position, Scaling(*(np.array([end]) for end in ends))) for column in preparation.columns]
        for step in preparation.steps:
            assert isinstance(step, Affine)
            before = [places[place] for place in step.inputs.tolist()]
            after = [step.scaling.part(np.array([number])) for number in range(len(before))]
            places += [
                (column, column_scaling.then(then)) for (column, column_scaling), then in zip(before, after, strict=True)
            ]
        written = [places[place] for place in preparation.outputs.tolist()]
        columns = np.array([column for column, _ in written], dtype=np.intp)
        if not written or np.unique(columns).size < columns.size:
            return None
        parts = zip(*(scaling.parts for _, scaling in written), strict=True)
        return cls(columns, Scaling(*(np.concatenate(values) for values in parts)), preparation.given)

    def on_rows(self, points: Array) -> tuple[Array, Scaling]:
        """Return points of the features as points of the rows, and the scaling of the rows.

        A column that is not a feature is clipped to 0 in rows and is 0 in points, so it adds nothing to a kernel.
        """
        written = np.zeros((points.shape[0], self.given))
        written[:, self.columns] = points
        unused = np.setdiff1d(np.arange(self.given), self.columns)
        parts = [np.zeros(self.given), np.ones(self.given), np.full(self.given, -np.inf), np.full(self.given, np.inf)]
        for part, of_columns in zip(parts, self.scaling.parts, strict=True):
            part[self.columns] = of_columns
        parts[2][unused] = parts[3][unused] = 0.0
        return written, Scaling(*parts)

    def metric_on_rows(self, metric: Metric | None) -> Metric | None:
        """Return a metric of the features as a metric of the rows."""
        if metric is None or metric.factors is None:
            return metric
        factors = np.ones(self.given)
        factors[self.columns] = metric.factors
        return replace(metric, factors=factors)


def folded(steps: list[Any], kernel: str, points: Array, metric: Metric | None, names: tuple[str, ...]) -> Folded:
    """Return points, scaling and metric for raw rows; or those for prepared rows, and what prepares them."""
    steps = flattened(steps)
    if not steps:
        return points, None, metric, None
    if metric is not None and metric.projection is not None:  # its columns are points of inner products
        columns, scaled, _, prepared = folded(steps, "linear", metric.projection.T, None, names)
        return points, scaled, replace(metric, projection=np.ascontiguousarray(columns.T)), prepared
    given: Any = getattr(steps[0], "n_features_in_", points.shape[1])
    rotates = name_of(steps[-1]) == "PCA" and _folds(steps[-1], kernel, metric)
    before = preparation_of(steps[:-1] if rotates else steps, given, names)
    scaling = ColumnScaling.of(before)
    if scaling is None:
        return points, None, metric, preparation_of(steps, given, names) if rotates else before
    if rotates:
        points = points @ _rotation(steps[-1])
        centred = Scaling.affine(np.asarray(steps[-1].mean_), np.ones(scaling.columns.size))
        scaling = replace(scaling, scaling=scaling.scaling.then(centred))
    return *scaling.on_rows(points), scaling.metric_on_rows(metric), None


def are_scalers(transformers: list[Any]) -> bool:
    """Return whether transformers are scalers, which need no points to become a scaling."""
    return all(isinstance(step, str | None) or name_of(step) in SCALER_KINDS for step in transformers)


def scaling_of(scalers: list[Any], n: int) -> Scaling | None:
    """Return one scaling for scalers of n features that follow each other; None without any."""
    scaling = None
    for step in scalers:
        if not isinstance(step, str | None):
            of_step = SCALER_KINDS[name_of(step)].scaling(step, n)
            scaling = of_step if scaling is None else scaling.then(of_step)
    return scaling


def _folds(pca: Any, kernel: str, metric: Metric | None) -> bool:
    """Return whether a PCA can be a rotation of the points.

    Inner products <W (x - mean), z> are <x - mean, W'z>. If W is orthogonal, distances are those to W'z.
    """
    if metric is not None and metric.factors is not None:
        return False
    size, n = pca.components_.shape
    total = SPECS[kernel].total if kernel in SPECS else None
    return total is INNER or (total is SQUARES and size == n and not pca.whiten)


def _rotation(pca: Any) -> Array:
    components = np.asarray(pca.components_)
    return components / np.sqrt(pca.explained_variance_)[:, None] if pca.whiten else components


# From transformers to a preparation.


def preparation_of(steps: Sequence[Any], given: int, names: tuple[str, ...] = ()) -> Preparation:
    """Return what transformers that follow each other do to rows of `given` columns; ValueError where one is unknown."""
    tape = Tape(given, ALL, names)
    places = list(range(given))
    for step in steps:
        places = tape.read(step, places)
    return tape.finished(places)


def flattened(steps: Sequence[Any]) -> list[Any]:
    """Return transformers that follow each other without Pipelines around them, and without those that do nothing."""
    flat: list[Any] = []
    for step in steps:
        if name_of(step) == "Pipeline":
            flat += flattened([inner for _, inner in step.steps])
        elif not isinstance(step, str | None):
            flat.append(step)
    return flat


def _read_pipeline(step: Any, places: list[int], tape: Tape) -> list[int]:
    for _, inner in step.steps:
        places = tape.read(inner, places)
    return places


def _read_columns(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add the parts of a ColumnTransformer in the order of their outputs."""
    written = []
    for name, transformer, _ in step.transformers_:
        chosen = [places[number] for number in np.asarray(step._transformer_to_input_indices[name], dtype=np.intp)]
        if isinstance(transformer, str) and transformer == "drop":
            continue
        if chosen:
            written.append((step.output_indices_[name].start, tape.read(transformer, chosen)))
    return [place for _, part in sorted(written, key=lambda entry: entry[0]) for place in part]


def _read_union(step: Any, places: list[int], tape: Tape) -> list[int]:
    if step.transformer_weights:
        raise ValueError("cannot ship a FeatureUnion with transformer_weights; put a scaler behind its parts")
    return [place for _, inner in step.transformer_list for place in tape.read(inner, places)]


ALL = READERS | {"Pipeline": _read_pipeline, "ColumnTransformer": _read_columns, "FeatureUnion": _read_union}
