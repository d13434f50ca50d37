"""The transformers before a model in a Pipeline, as one scaling of raw rows and points that fit it.

Scalers, choices of columns and imputers become a scaling. A PCA is a matrix, which an exported model has no table for. It
is folded into the points if that is exact: as the last transformer, before a kernel of inner products, or if it keeps
distances.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from ..kernels import Array
from ..kernels.spec import INNER, SPECS, SQUARES
from ..metric import Metric
from ..scaling import Scaling
from ..warning import warn_user
from .scaler_kinds import NOTHING
from .scalers import SCALERS


@dataclass(frozen=True)
class ColumnScaling:
    """Features that are scaled columns of the raw rows."""

    columns: Array  # the column of each feature
    scaling: Scaling
    given: int  # the number of features of the raw rows

    @classmethod
    def same(cls, n: int) -> ColumnScaling:
        """Return the scaling that does not change rows of n features."""
        return cls(np.arange(n), Scaling.affine(np.zeros(n), np.ones(n)), n)

    def then(self, after: ColumnScaling) -> ColumnScaling:
        """Return one scaling for this one followed by another."""
        return ColumnScaling(
            self.columns[after.columns], self.scaling.part(after.columns).then(after.scaling), given=self.given
        )

    def on_rows(self, points: Array) -> tuple[Array, Scaling]:
        """Return points of the features as points of the rows, and the scaling of the rows.

        A column that is not a feature is clipped to 0 in rows and is 0 in points, so it adds nothing to a kernel.
        """
        if np.unique(self.columns).size < self.columns.size:
            raise ValueError("cannot export a ColumnTransformer that uses a column twice; give each column once")
        written = np.zeros((points.shape[0], self.given))
        written[:, self.columns] = points
        unused = np.setdiff1d(np.arange(self.given), self.columns)
        parts = [np.zeros(self.given), np.ones(self.given), np.full(self.given, -np.inf), np.full(self.given, np.inf)]
        for part, own in zip(parts, self.scaling.parts, strict=True):
            part[self.columns] = own
        parts[2][unused] = parts[3][unused] = 0.0
        return written, Scaling(*parts)

    def metric_on_rows(self, metric: Metric | None) -> Metric | None:
        """Return a metric of the features as a metric of the rows."""
        if metric is None or metric.factors is None:
            return metric
        factors = np.ones(self.given)
        factors[self.columns] = metric.factors
        return replace(metric, factors=factors)


def fold_transformers(
    transformers: list[Any], kernel: str, points: Array, metric: Metric | None
) -> tuple[Array, Scaling | None, Metric | None]:
    """Return points, scaling and metric for raw rows; raise ValueError for transformers that cannot be folded in."""
    steps = [step for step in transformers if step not in NOTHING]
    if not steps:
        return points, None, metric
    if metric is not None and metric.projection is not None:  # its columns are points of inner products
        columns, scaling, _ = fold_transformers(steps, "linear", metric.projection.T, None)
        return points, scaling, replace(metric, projection=np.ascontiguousarray(columns.T))
    check_is_fitted(steps[0])
    n = getattr(steps[0], "n_features_in_", 0)  # 0: rows are no numbers, and the step is refused
    if isinstance(steps[-1], PCA):
        if metric is not None and metric.factors is not None:
            raise ValueError(
                "cannot export a PCA before a learned metric; transform the rows before, or give metric='widths'"
            )
        centred, points = _rotated(steps[-1], kernel, points)
        whole = _chain(steps[:-1], n).then(centred)
    else:
        whole = _chain(steps, n)
    return *whole.on_rows(points), whole.metric_on_rows(metric)


def are_scalers(transformers: list[Any]) -> bool:
    """Return whether transformers are scalers, which need no points to become a scaling."""
    return all(step in NOTHING or type(step) in SCALERS for step in transformers)


def scaling_of(scalers: list[Any], n: int) -> Scaling | None:
    """Return one scaling for scalers of n features that follow each other; None without any."""
    steps = [step for step in scalers if step not in NOTHING]
    return _chain(steps, n).scaling if steps else None


def _chain(steps: list[Any], n: int) -> ColumnScaling:
    """Return one scaling for transformers that follow each other."""
    whole = ColumnScaling.same(n)
    for step in steps:
        whole = whole.then(_scaling(step, whole.columns.size))
    return whole


def _scaling(step: Any, n: int) -> ColumnScaling:
    """Return the scaling of one transformer of n features."""
    if step in NOTHING or (isinstance(step, FunctionTransformer) and step.func is None):  # "passthrough", once fitted
        return ColumnScaling.same(n)
    check_is_fitted(step)
    if isinstance(step, Pipeline):
        return _chain([each for _, each in step.steps], n)
    if isinstance(step, ColumnTransformer):
        return _columns(step, n)
    if isinstance(step, SimpleImputer):
        return _complete(step, n)
    if type(step) not in SCALERS:
        known = ", ".join(kind.__name__ for kind in SCALERS)
        last = " (one that is the last transformer can be)" if isinstance(step, PCA) else ""
        raise ValueError(
            f"cannot export a Pipeline with a {type(step).__name__}{last}; there are {known}, SimpleImputer, "
            "ColumnTransformer of these, and PCA. Transform the rows before, or convert the whole Pipeline by skl2onnx "
            "(slimsvm.ship.converter.register)"
        )
    return ColumnScaling(np.arange(n), SCALERS[type(step)].scaling(step, n), n)


def _columns(step: ColumnTransformer, n: int) -> ColumnScaling:
    """Return the scaling of a ColumnTransformer: its parts in the order of their outputs."""
    parts = []
    for name, transformer, _ in step.transformers_:
        chosen = np.asarray(step._transformer_to_input_indices[name], dtype=np.intp)
        if transformer == "drop" or not chosen.size:
            continue
        inside = _scaling(transformer, chosen.size)
        parts.append((step.output_indices_[name].start, chosen[inside.columns], inside.scaling))
    parts.sort(key=lambda part: part[0])
    scaling = Scaling(*(np.concatenate(each) for each in zip(*(part[2].parts for part in parts), strict=True)))
    return ColumnScaling(np.concatenate([part[1] for part in parts]), scaling, n)


def _complete(step: SimpleImputer, n: int) -> ColumnScaling:
    """Return the scaling that changes nothing, with a warning: exported models do not fill in missing values."""
    empty = np.isnan(np.asarray(step.statistics_, dtype=np.float64)).any()
    if step.add_indicator or (empty and not step.keep_empty_features):
        raise ValueError(
            "cannot export a SimpleImputer that adds indicators or leaves empty columns out; fill in rows before the model"
        )
    warn_user("exported models do not fill in missing values; give them complete rows")
    return ColumnScaling.same(n)


def _rotated(pca: PCA, kernel: str, points: Array) -> tuple[ColumnScaling, Array]:
    """Return the scaling that subtracts the mean of a PCA, and points before its rotation.

    Inner products <W (x - mean), z> are <x - mean, W'z>. If W is orthogonal, distances are those to W'z.
    """
    check_is_fitted(pca)
    size, n = pca.components_.shape
    total = SPECS[kernel].total if kernel in SPECS else None
    if total is not INNER and not (total is SQUARES and size == n and not pca.whiten):
        raise ValueError(
            f"cannot export a PCA before the {kernel} kernel: distances in {size} of {n} components"
            f"{', whitened,' if pca.whiten else ''} are not distances of raw rows and points. Possible are a PCA of "
            "all components without whitening before the rbf kernel, and any before the linear, poly and sigmoid kernels; "
            "or transform the rows before, or convert the whole Pipeline by skl2onnx (slimsvm.ship.converter.register)"
        )
    rotation = pca.components_ / np.sqrt(pca.explained_variance_)[:, None] if pca.whiten else pca.components_
    return ColumnScaling(np.arange(n), Scaling.affine(np.asarray(pca.mean_), np.ones(n)), n), points @ rotation
