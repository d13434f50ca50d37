"""The answer to "how small can it be?", from validation errors only."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .rows import Row, finished


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
