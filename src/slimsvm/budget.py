"""What a model may cost: `budget=64`, `0.1`, `"4 KB"` or `"20 us"`, or a tuple of these, all of which hold.

Nothing here imports NumPy, so that the command line can read budgets before it does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

from .text import short

#: bytes and microseconds of the units of text
BYTES = {"B": 1, "KB": 1024, "MB": 1024**2}
TIMES = {"us": 1.0, "ms": 1000.0}
#: the precisions of exported tables, and what leaves the choice to the search
PRECISIONS = ("float32", "int16", "int8", "int4")
AUTO = "auto"
#: what a budget may be, for errors
FORMS = (
    "64 (support vectors), 0.1 (a fraction of the full model's), '4 KB' (bytes of the exported C, in B, KB or MB), '20 us' "
    "(the time of a prediction, in us or ms), or a tuple of these"
)
#: the largest number in text
LARGEST = 2**31 - 1
_TEXT = re.compile(r"\s*([+-]?[\d.]+(?:e[+-]?\d+)?)\s*([^\W\d_]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """Upper limits on a model, all of which hold; None: no such limit."""

    count: int | None = None  # support vectors
    fraction: float | None = None  # of the full model's support vectors
    bytes: int | None = None  # of the exported C, compiled
    microseconds: float | None = None  # of a call of predict with one row

    @classmethod
    def of(cls, given: Any) -> Budget:
        """Return the limits that a user gives; raise ValueError for what is no limit."""
        limits = cls()
        for limit in () if given is None else given if isinstance(given, tuple | list) else (given,):
            name, value = _limit(limit)
            if getattr(limits, name) is not None:
                raise ValueError(
                    f"budget={given!r} has two limits of one kind, which contradict each other; give one of them"
                )
            limits = replace(limits, **{name: value})
        if isinstance(given, tuple | list) and not given:
            raise ValueError(f"budget={given!r} has no limit; give {FORMS}, or None")
        return limits

    @property
    def given(self) -> bool:
        """Whether there is any limit."""
        return self != NO_BUDGET

    @property
    def alone(self) -> bool:
        """Whether the only limit is a count."""
        return self == Budget(self.count)

    @property
    def amount(self) -> tuple[str, float]:
        """The kind and the amount of a budget with a single limit, to compare budgets by."""
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        given = [(name, float(value)) for name, value in given if value is not None]
        if len(given) != 1:
            raise ValueError(f"budgets with several limits have no order: {self}")
        return given[0]

    def __str__(self) -> str:
        words = [str(limit) for limit in (self.count, self.fraction) if limit is not None]
        words += [] if self.bytes is None else [in_units(self.bytes, BYTES)]
        words += [] if self.microseconds is None else [in_units(self.microseconds, TIMES)]
        return " and ".join(words)


#: no limits at all
NO_BUDGET = Budget()


def order_of(budget: Any) -> tuple[int, float]:
    """Return a key that sorts budgets of one limit: by its kind, then by its amount."""
    kind, amount = Budget.of(budget).amount
    return [field.name for field in fields(Budget)].index(kind), amount


def in_units(amount: float, units: dict[str, Any]) -> str:
    """Return an amount of the smallest unit in the largest unit that writes it shortly."""
    for unit, size in reversed(units.items()):
        if amount >= size and round(amount / size, 2) * size == amount:
            return f"{amount / size:g} {unit}"
    return f"{amount:g} {next(iter(units))}"


def check_precision(precision: Any) -> None:
    """Raise ValueError for a precision that there is not."""
    if precision not in (AUTO, *PRECISIONS):
        raise ValueError(f"unknown precision {precision!r}; there are {', '.join((AUTO, *PRECISIONS))}")


def _limit(given: Any) -> tuple[str, Any]:
    """Return the kind and the value of one limit."""
    if isinstance(given, str):
        return _limit_in_words(given)
    if isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= 1:
        return "count", int(given)
    if isinstance(given, Real) and not isinstance(given, Integral) and 0 < float(given) < 1:
        return "fraction", float(given)
    raise ValueError(f"budget must be {FORMS}, not {short(given)}")


def _limit_in_words(text: str) -> tuple[str, Any]:
    match = _TEXT.fullmatch(text)
    number = _number(match[1]) if match else None
    if match is None or number is None or number > LARGEST:
        raise ValueError(f"budget={short(text)} is no number with a unit; give {FORMS}")
    if not number > 0:
        raise ValueError(f"budget={text!r} must be above 0; give {FORMS}")
    unit = match[2].lower().replace("µ", "u").replace("μ", "u")
    if not unit:
        return _limit(int(number) if number >= 1 and number == int(number) else number)
    for name, size in BYTES.items():
        if unit == name.lower():
            if number * size < 1:
                raise ValueError(f"budget={text!r} is less than a byte")
            return "bytes", int(number * size)
    if unit not in TIMES:
        raise ValueError(f"budget={text!r} has an unknown unit {match[2]!r}; there are {', '.join((*BYTES, *TIMES))}")
    return "microseconds", number * TIMES[unit]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
