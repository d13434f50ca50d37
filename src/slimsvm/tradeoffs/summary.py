"""Means over seeds, as points for displays and reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .rows import Row, finished


@dataclass(frozen=True)
class Point:
    """A method at a budget: means over the seeds."""

    method: str
    budget: int | None
    size: float
    bytes: float
    us: float
    error: float
    se: float  # of the error: between seeds, or of one test set
    seconds: float
    kernel_evals: float
    validation_error: float | None
    seeds: int


def summarise(rows: Iterable[Row]) -> list[Point]:
    """Return a point for each method and budget, in the order of their first rows."""
    groups: dict[tuple[str, int | None], list[Row]] = {}
    for row in finished(rows):
        groups.setdefault((row["method"], row["budget"]), []).append(row)
    return [_point(method, budget, group) for (method, budget), group in groups.items()]


def _point(method: str, budget: int | None, group: list[Row]) -> Point:
    def mean(name: str) -> float:
        return float(np.mean([np.nan if row[name] is None else row[name] for row in group]))

    errors = [row["error"] for row in group]
    between = float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else mean("se")
    validation = mean("validation_error")
    return Point(
        method,
        budget,
        mean("size"),
        mean("bytes"),
        mean("us"),
        mean("error"),
        between,
        mean("seconds"),
        mean("kernel_evals"),
        None if np.isnan(validation) else validation,
        len(group),
    )
