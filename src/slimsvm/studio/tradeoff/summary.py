"""Means over seeds, as points for displays and reports, and the smallest size that is good enough."""

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


def smallest_good(rows: Iterable[Row], method: str) -> int | None:
    """Return the smallest budget whose validation error is within a standard error of the method's lowest.

    Errors are averaged over seeds. None for a method without validation errors, such as a trainer that keeps to a budget.
    """
    by_budget: dict[int, list[Row]] = {}
    for row in finished(rows):
        if row["method"] == method and row["budget"] is not None and row["validation_error"] is not None:
            by_budget.setdefault(row["budget"], []).append(row)
    if not by_budget:
        return None
    errors = {budget: float(np.mean([row["validation_error"] for row in group])) for budget, group in by_budget.items()}
    best = min(errors, key=lambda budget: errors[budget])
    spread = by_budget[best][0]["validation_se"] or 0.0
    bound = errors[best] + (spread if spread > 0 else 0.0)  # it is NaN for a single validation row
    return min(budget for budget, error in errors.items() if budget == best or error <= bound)
