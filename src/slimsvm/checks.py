"""Checks of settings that solvers, trainers and estimators share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def is_count(value: Any, least: int = 1) -> bool:
    """Return whether a value is a whole number of at least `least`; True and False are not numbers here."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_count(budget: Any) -> int:
    """Return the budget of a trainer that keeps to one during training: a count of 2 or more, one for each class."""
    if not is_count(budget, 2):
        raise ValueError(f"budget must be a number of support vectors, 2 at least, not {budget!r}; give budget=100, say")
    return int(budget)


def check_unmasked(name: str, values: Any) -> None:
    """Raise ValueError for a masked array with masked entries, which NumPy would read as the numbers beneath the mask."""
    masked = int(np.ma.getmaskarray(values).sum()) if isinstance(values, np.ma.MaskedArray) else 0
    if masked:
        raise ValueError(
            f"{name} is a masked array with {masked:,} masked entries; fill them ({name}.filled(0), or filled(np.nan) and "
            "a SimpleImputer), or drop their rows"
        )


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError unless a setting is a finite number above 0."""
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a number above 0, not {value!r}")


def check_cost(C: Any) -> None:
    """Raise ValueError unless C is a number above 0; infinity asks for a hard margin."""
    if not isinstance(C, Real) or not float(C) > 0:
        raise ValueError(f"C must be a number above 0, or float('inf') for a hard margin, not {C!r}")


def check_at_least_zero(name: str, value: Any) -> None:
    """Raise ValueError unless a setting is a finite number of at least 0."""
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a number of at least 0, not {value!r}")


def check_at_least(name: str, value: Any, least: int) -> None:
    """Raise ValueError unless a setting is a whole number of at least `least`."""
    if not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
