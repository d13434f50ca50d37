"""Means over seeds, as points for displays and reports, and the smallest size that is good enough."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...budget import order_of
from ...selection.allowance import smallest
from .rows import Row, finished
from .tasks import TaskKind

#: the difference of two test errors that is always small; more: smaller models count as near the full one
FAR = 0.02
#: the headline if the smallest good model is far from the full one
NOT_NEAR = "No size tried is near the full model"


@dataclass(frozen=True)
class Point:
    """A method at a budget: means over the seeds."""

    method: str
    budget: int | str | None
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
    groups: dict[tuple[str, int | str | None], list[Row]] = {}
    for row in finished(rows):
        groups.setdefault((row["method"], row["budget"]), []).append(row)
    return [_point(method, budget, group) for (method, budget), group in groups.items()]


def _point(method: str, budget: int | str | None, group: list[Row]) -> Point:
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


def whole(mean: float) -> str:
    """Return a mean of counts as a whole number, rounded as the page does."""
    return f"{math.floor(mean + 0.5):,}"


def answer(task: TaskKind, small: Point, full: Point | None) -> str:
    """Return the smallest good model beside the full one, in words: how small a model can be, or that none is near."""
    vectors, nbytes, good = f"{whole(small.size)} support vectors", f"{whole(small.bytes)} bytes", ""
    if full is not None:
        vectors, nbytes = f"{vectors} instead of {whole(full.size)}", f"{nbytes} instead of {whole(full.bytes)}"
        good = f" (full model: {task.written(full.error)})" if task.has_labels else ""
    figures = f"{small.method} needs {vectors} and {nbytes}, for {task.in_words(small.error)}{good}."
    if full is not None and clearly_worse(small, full):
        return f"{NOT_NEAR}. {figures} {advice(small, full)}"
    rule = f"It is the smallest {small.method} model whose validation error is within one standard error of the lowest."
    return " ".join(["How small can it be?", figures, rule, advice(small, full)]).rstrip()


def advice(small: Point, full: Point | None) -> str:
    """Return what to do where a small and the full model differ much; nothing where they are near each other."""
    if full is not None and clearly_worse(small, full):
        doublings = math.ceil(math.log2(max(small.size, 1)))
        return f"Try larger sizes: --budgets {','.join(str(2 ** (doublings + more)) for more in (1, 2, 3))}."
    if full is not None and clearly_worse(full, small):
        return "The full model is the worse one: other settings suit these rows better; slimsvm tune finds them."
    return ""


def clearly_worse(one: Point, other: Point) -> bool:
    """Return whether a model is worse than another by more than `FAR` and by more than two standard errors."""
    return one.error - other.error > max(FAR, 2 * math.hypot(*np.nan_to_num([one.se, other.se])))


def smallest_good(rows: Iterable[Row], method: str) -> int | str | None:
    """Return the smallest budget whose validation error is within a standard error of the method's lowest.

    Errors are averaged over seeds. None for a method without validation errors, such as a trainer that keeps to a budget.
    """
    by_budget: dict[int | str, list[Row]] = {}
    for row in finished(rows):
        if row["method"] == method and row["budget"] is not None and row["validation_error"] is not None:
            by_budget.setdefault(row["budget"], []).append(row)
    if not by_budget:
        return None
    errors = {budget: float(np.mean([row["validation_error"] for row in group])) for budget, group in by_budget.items()}
    best = min(errors, key=lambda budget: errors[budget])
    spread = by_budget[best][0]["validation_se"] or 0.0
    limit = errors[best] + (spread if spread > 0 else 0.0)  # it is NaN for a single validation row
    budgets = sorted(errors, key=order_of)
    place = smallest(range(len(budgets)), [errors[budget] for budget in budgets], limit)
    return best if place is None else budgets[place]
