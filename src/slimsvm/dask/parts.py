"""What is computed on one part of the rows: functions of values, without a cluster.

Each takes a part, which stays where it is, and small arguments, and returns a small result or another part. None keeps
anything between two calls. So a part that is lost with its machine can be computed again from where it came from, and any
scheduler that holds values and calls functions can run them: Dask here, Ray's tasks on object references or Spark's
mapPartitions on a cached RDD in the same way.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import check_unmasked
from ..kernels import Array, InnerKernel, Kernel, Matrix
from ..metric import Metric
from ..rows.host import HostRows
from ..rows.host_matrix import HostMatrix
from ..rows.precision import FLOAT32_ERROR, Given, Prepared, copied_rows, float32_error, plain_points, squared_norms
from ..rows.threads import ThreadPool
from ..rows.tiles import make_tiles


@dataclass(frozen=True)
class PartSummary:
    """What is known of a part without its rows."""

    count: int
    width: int
    dtype: str
    finite: bool
    total: Array  # (d,), the sum of the rows
    reach: float  # the largest distance of a row from the mean row of the part


def for_each(several: list[Any], work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return work(part, *arguments) for each of several parts."""
    return [work(part, *arguments) for part in several]


def for_each_own(several: list[Any], work: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Return work(part, *its own arguments) for each of several parts."""
    return [work(part, *values) for part, values in zip(several, arguments, strict=True)]


def summary(part: Any) -> PartSummary:
    """Return the summary of a part."""
    rows = as_rows(part)
    total = rows.sum(axis=0, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are reported by their own names later
        centre = total / max(rows.shape[0], 1)
        squares = [squared_norms(some - centre).max() for _, some in Given(rows).blocks()]
    reach = float(np.sqrt(max(squares, default=0.0)))
    return PartSummary(rows.shape[0], rows.shape[1], str(rows.dtype), bool(np.isfinite(rows).all()), total, reach)


def fingerprint(part: Any) -> str:
    """Return a hash of the rows of a part."""
    from ..estimators import resume

    return resume.fingerprint(as_rows(part))


def as_rows(part: Any) -> Array:
    """Return a part of an array or a data frame as rows of numbers."""
    check_unmasked("X", part)
    rows = np.asarray(_numbers_of(part) if hasattr(part, "to_numpy") else part)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise ValueError(
            f"a part of the rows is an array of {rows.dtype} of shape {rows.shape}; give numbers, one row each"
        )
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float32 if np.can_cast(rows.dtype, np.float32) else np.float64)
    return rows


def _numbers_of(frame: Any) -> Array:
    """Return the numbers of a data frame; pandas' own types of numbers, which may have nulls, become float64."""
    wrong = [f"{name!r} ({kind})" for name, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "biuf"]
    if wrong:
        raise ValueError(
            f"features must be numbers, but these columns are not: {', '.join(wrong)}; encode them, e.g. with "
            "dask.dataframe.get_dummies, or drop them"
        )
    plain = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    return frame.to_numpy() if plain else frame.to_numpy(np.float64, na_value=np.nan)


def spread(part: Any, mean: float) -> float:
    """Return the sum of squared differences of all numbers from a mean."""
    return float(sum(np.square(rows - mean, dtype=np.float64).sum() for _, rows in Given(as_rows(part)).blocks()))


def check_rows(part: Any, kernel: Kernel) -> None:
    """Raise ValueError if the kernel is not defined for a row, or the squares of its features overflow."""
    from ..estimators.validation import checked_range

    kernel.check_rows(checked_range(as_rows(part)))


def prepared(part: Any, dtype: str, centre: Array | None) -> Prepared:
    """Return the rows of a part in the form of tiles: relative to the centre of all rows, in one precision."""
    return Prepared(*copied_rows(Given(as_rows(part)), np.dtype(dtype), centre), centre)


def radius(rows: Prepared) -> float:
    """Return the largest squared norm of the rows."""
    return float(rows.norms.max(initial=0.0))


def taken(part: Any, index: Array) -> Array:
    """Return a few rows as they are."""
    return as_rows(part)[index]


def prepared_rows(rows: Prepared, index: Array) -> tuple[Array, Array]:
    """Return a few rows in the form of tiles, with their squared norms."""
    return rows.values[index], rows.norms[index]


def subset(rows: Prepared, index: Array) -> Prepared:
    """Return some of the rows of a part as another part."""
    return rows.take(index)


def home(kernel: Kernel, rows: Prepared) -> HostRows:
    """Return the rows of a part in the home of the machine that has them."""
    return HostRows(kernel, rows.values, cache_mb=0.0, error=np.inf, pool=ThreadPool(), prepared=rows)


def product(rows: Prepared, kernel: Kernel, values: Array, norms: Array, V: Array) -> Array:
    """Return K(rows, points) @ V for points in the form of tiles."""
    return make_tiles(kernel, rows, Prepared(values, norms, rows.centre), ThreadPool()).product(V)


def product_with(rows: Prepared, kernel: Kernel, points: Matrix, V: Array, metric: Metric | None = None) -> Array:
    """Return K(rows, points) @ V for any points; float64 if points are too far out for float32."""
    if metric is not None and metric.projection is not None:
        values = rows.values if rows.centre is None else rows.values + rows.centre
        return HostRows(kernel, metric.projected(values), cache_mb=0.0, error=np.inf).product(points, V, metric.within)
    if not isinstance(kernel, InnerKernel):
        return make_tiles(kernel, rows, plain_points(points, metric), ThreadPool()).product(V)
    there, within = rows.points(points, metric), rows.measured(metric)
    doubtful = (there,) if metric is None else (there, within)
    worst = max(float32_error(kernel, part, metric) for part in doubtful)
    if rows.values.dtype == np.float32 and worst > FLOAT32_ERROR:
        rows = rows.doubled()
        there, within = rows.points(points, metric), rows.measured(metric)
    return make_tiles(kernel, within, there, ThreadPool()).product(V)


def against(rows: Prepared, kernel: Kernel, points: Matrix, *, placed: bool, exact: bool) -> HostMatrix:
    """Return K(rows, points) of a part, as another part; points that are not `placed` are moved to the centre first."""
    if not placed and rows.centre is not None:
        points = points - rows.centre
    return HostMatrix(home(kernel, rows), np.asarray(points, dtype=np.float64), placed=True, exact=exact)


def answer(matrix: HostMatrix, method: str, *arguments: Any) -> Any:
    """Return the answer of a method of K(rows, points) of a part."""
    return getattr(matrix, method)(*arguments)


def changed(matrix: HostMatrix, method: str, *arguments: Any) -> HostMatrix:
    """Return K(rows, points) of a part with other points; the given one does not change."""
    if method == "first":
        return matrix.first(*arguments)  # type: ignore[return-value]
    other = copy.copy(matrix)
    other.memory, other.space = matrix.K, None
    getattr(other, method)(*arguments)
    return other


def features(matrix: HostMatrix, T: Array) -> Prepared:
    """Return rows K @ T with the linear kernel, as another part."""
    return matrix.features(T).prepared
