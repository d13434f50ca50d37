"""Budgets: the most support vectors, bytes of C tables, or prediction time that a model may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from ..checks import check_budget, check_positive, is_count
from ..kernels import Kernel
from ..warning import warn_user
from .costs import BITS, NO_SCALER, ScalerTables, check_exportable, factor_bytes, table_bytes


@dataclass(frozen=True)
class Budgets:
    """The user's limits: support vectors (a count, or a share of the full model's), bytes, microseconds."""

    count: int | float | None = None
    bytes: int | None = None
    precision: str = "float32"
    microseconds: float | None = None
    batch_size: int = 1

    @classmethod
    def of(cls, estimator: Any) -> Budgets:
        """Return an estimator's budgets, checked."""
        names = ("budget", "budget_bytes", "budget_precision", "budget_us", "budget_batch_size")
        budgets = cls(*(getattr(estimator, name) for name in names))
        budgets.check()
        return budgets

    @property
    def given(self) -> bool:
        """Whether any budget is given."""
        return (self.count, self.bytes, self.microseconds) != (None, None, None)

    def check(self) -> None:
        """Raise ValueError for values that are wrong for any data."""
        check_budget(self.count)
        if self.bytes is not None and not is_count(self.bytes):
            raise ValueError(f"budget_bytes must be a whole number of bytes, 1 at least, not {self.bytes!r}")
        if self.precision not in BITS:
            raise ValueError(f"unknown budget_precision {self.precision!r}; there are {[*BITS]}")
        if self.microseconds is not None:
            check_positive("budget_us", self.microseconds)
        if not is_count(self.batch_size):
            raise ValueError(f"budget_batch_size must be a number of rows, 1 at least, not {self.batch_size!r}")


@dataclass(frozen=True)
class Costs:
    """The costs of models by size, for one kernel, number of features and number of outputs."""

    kernel: Kernel
    features: int
    outputs: int
    microseconds: Callable[[int], float]  # for a batch with a model of that size
    scaler: ScalerTables = NO_SCALER  # in front of the model
    learned: frozenset[str] = frozenset()  # the parts of a metric that models learn: "factors", "widths"

    def bytes(self, size: int, precision: str) -> int:
        """Return the bytes of C tables; with a scaler, its table of scales holds the factors too."""
        factors = factor_bytes(self.kernel, self.features, precision) if "factors" in self.learned else 0
        widths = "widths" in self.learned
        own = table_bytes(self.kernel, size, self.features, self.outputs, precision, widths=widths)
        return own + (self.scaler.bytes(self.kernel, precision) or factors)


def size_limit(budgets: Budgets, costs: Costs, most: int, full: bool) -> int | None:
    """Return the support vectors that all budgets allow; None, with a warning, where the full model is within them.

    `most` is the size of the full model (with `full`), or the number of rows.
    """
    limits: dict[str, int] = {}
    if budgets.bytes is not None:
        check_exportable(costs.kernel, budgets.precision)
        limits[f"budget_bytes={budgets.bytes}"] = _within_bytes(budgets, costs, most)
    if budgets.microseconds is not None:
        limits[f"budget_us={budgets.microseconds:g}"] = _within_time(budgets.microseconds, costs, most)
    for words, limit in limits.items():
        if isinstance(budgets.count, Integral) and limit < budgets.count and limit < most:
            raise ValueError(
                f"budget={budgets.count} and {words} contradict each other: {words} allows {limit} support vectors at "
                f"most. Give one of them, or budget={limit} at most"
            )
    if budgets.count is not None:
        count = int(budgets.count) if isinstance(budgets.count, Integral) else max(1, round(budgets.count * most))
        if count > most and not full:
            warn_user(f"budget={count} is above the number of rows, {most}; the model has {most} support vectors at most")
            count = most
        limits[f"budget={budgets.count}"] = count
    if not limits:
        return None
    words, limit = min(limits.items(), key=lambda item: item[1])
    if limit < most or not full:
        return limit
    warn_user(
        f"{words} is not below the {most} support vectors of the full model, which is returned"
        if budgets.count is not None
        else f"{words} is enough for the {most} support vectors of the full model, which is returned",
    )
    return None


def _within_bytes(budgets: Budgets, costs: Costs, most: int) -> int:
    """Return the largest size whose tables are within the budget."""
    most_bytes, least = budgets.bytes or 0, costs.bytes(1, budgets.precision)
    if least > most_bytes:
        smaller = "" if budgets.precision == "int8" else ", or fewer bits by budget_precision"
        raise ValueError(
            f"budget_bytes={most_bytes} is too few: a model of one support vector takes {least} bytes as "
            f"{budgets.precision} tables ({costs.features} features, {costs.outputs} outputs). Give {least} or more"
            f"{smaller}"
        )
    return largest_where(lambda size: costs.bytes(size, budgets.precision) <= most_bytes, most)


def _within_time(microseconds: float, costs: Costs, most: int) -> int:
    """Return the largest size that predicts a batch within the time, as measured on this machine."""
    least = costs.microseconds(1)
    if least > microseconds:
        raise ValueError(
            f"budget_us={microseconds:g} is too little: with one support vector predict takes {least:.3g} on this machine. "
            f"Give {1.2 * least:.3g} or more, or shorten the steps before the model"
        )
    return largest_where(lambda size: size == 1 or costs.microseconds(size) <= microseconds, most)


def largest_where(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest size from 1 to `most` that fits; size 1 fits, and so does any size below one that fits."""
    low, high = 1, 2
    while high <= most and fits(high):
        low, high = high, 2 * high
    high = min(high, most + 1)  # does not fit, or is above `most`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
