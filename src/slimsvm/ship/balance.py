"""Features in which rows and points of an inner product have the same range, for tables of integers.

Rows and points share one step. But the points of a linear function are its weights, and points that contain the scales of a
scaler go with unscaled rows. Either may be thousands of times larger than the other, and its step would round the other to
0. Since <x, z> = <x / t, t z>, factors t of the features bring both into one range.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..scaling import Scaling
from .artefact import Array, Artefact

#: scales stay a table of their own if this many times less is lost to rounding; more: fewer tables, coarser products
WORTH_A_TABLE = 4.0


def typical_rows(artefact: Artefact) -> Array:
    """Return raw rows like those to predict: the points before the scaling."""
    scaling = artefact.scaling
    return artefact.table if scaling is None else artefact.table / scaling.scale + scaling.centre


def balanced(artefact: Artefact, rows: Array) -> Artefact:
    """Return the compact form of an artefact, with one range for raw rows and points of inner products.

    One factor for all features takes no table. If features have different scales, those of a scaler may have to stay a
    table, and then contain a factor for each feature.
    """
    compact = artefact.compact()
    if not artefact.spec.total.inner or not rows.size or not artefact.size:
        return compact
    plain = _with_one_range(compact, rows, each=False)
    if artefact.scaling is None or artefact.scaling.clips or not np.ptp(artefact.scaling.scale):
        return plain
    scaled = _with_one_range(artefact.compact(fold_scales=False), rows, each=True)
    return scaled if WORTH_A_TABLE * _rounding(scaled, rows) < _rounding(plain, rows) else plain


def _with_one_range(a: Artefact, rows: Array, *, each: bool) -> Artefact:
    """Return the same function with factors of the features, or one factor for all, which make both ranges equal."""
    axis = 0 if each else None
    of_rows, of_points = (np.abs(values).max(axis) for values in (_scaled(a, rows), a.table))
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        middle = np.sqrt(of_rows) * np.sqrt(of_points)
        # a feature without weight, or 0 in all rows, may have any factor that leaves the others their range
        ends = np.where(of_points > 0, of_points, middle.max() ** 2 / of_rows)
        factors = np.sqrt(np.where(of_rows > 0, of_rows, middle.max() ** 2 / of_points) / ends)
        factors = np.where(np.isfinite(factors) & (factors > 0), factors, 1.0) * np.ones(a.features)
    own = a.scaling or Scaling.affine(np.zeros(a.features), np.ones(a.features))
    return replace(a, points=a.table * factors, scaling=own.then(Scaling.affine(np.zeros(a.features), 1 / factors)))


def _rounding(a: Artefact, rows: Array) -> float:
    """Return the error of inner products whose rows and points have one step, relative to the products, up to a factor."""
    scaled = _scaled(a, rows)
    of_rows, of_points = (np.sqrt(np.square(values).mean(axis=0)) for values in (scaled, a.table))
    reach = max(float(np.abs(values).max()) for values in (scaled, a.table))
    return reach * float(np.linalg.norm(of_rows) + np.linalg.norm(of_points)) / max(float(of_rows @ of_points), 1e-300)


def _scaled(a: Artefact, rows: Array) -> Array:
    return rows if a.scaling is None else a.scaling(rows)
