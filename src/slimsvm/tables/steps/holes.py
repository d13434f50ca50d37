"""Holes are filled, or become a feature that says so: SimpleImputer and MissingIndicator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..program import Array, Step
from ..recognition import is_missing
from ..tape import Tape, are_words


@dataclass(frozen=True)
class _Marked(Step):
    """A step on cells that count as missing: those that equal `marker`, NaN by default."""

    marker: Array  # (inputs,)

    def missing(self, values: Array) -> Array:
        """Return which cells are missing."""
        return np.where(np.isnan(self.marker), np.isnan(values), values == self.marker)

    @property
    def test(self) -> str:
        """The test of an input in the code."""
        return "ISNAN(IN)" if np.isnan(self.marker).all() else "ISNAN(MARKER) ? ISNAN(IN) : IN == MARKER"

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        return {} if np.isnan(self.marker).all() else {"MARKER": self.marker}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        if self.marker.shape != self.inputs.shape:
            raise ValueError("there is a marker of missing cells for each column")


@dataclass(frozen=True)
class Fill(_Marked):
    """A value in the place of missing cells."""

    kind: ClassVar[str] = "fill"
    values: Array

    @property
    def source(self) -> str:
        """The code."""
        return f"for (INT i = 0; i < COUNT; i++)\n    OUT = ({self.test}) ? VALUES : IN;\n"

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        return np.where(self.missing(values), self.values, values)

    @property
    def words(self) -> dict[str, Any]:
        """The tables."""
        return super().words | {"VALUES": self.values}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""
        super().check()
        if self.values.shape != self.inputs.shape or np.isinf(self.values).any():
            raise ValueError("there is a value for the holes of each column")


@dataclass(frozen=True)
class Missing(_Marked):
    """1 for missing cells, else 0."""

    kind: ClassVar[str] = "missing"

    @property
    def source(self) -> str:
        """The code."""
        return f"for (INT i = 0; i < COUNT; i++)\n    OUT = ({self.test}) ? ONE : ZERO;\n"

    def __call__(self, values: Array) -> Array:
        """Return the outputs."""
        return self.missing(values).astype(np.float64)


def read_imputer(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a SimpleImputer: columns that had no values in training are left out, and indicators come last."""
    values = np.asarray(step.statistics_, dtype=object)
    marker = _markers(step.missing_values, places, tape, worded=are_words(values))
    indicated = [] if getattr(step, "indicator_", None) is None else _indicated(step.indicator_, places, marker, tape)
    kept = [number for number, value in enumerate(values) if step.strategy == "constant" or not is_missing(value)]
    filled = np.array([_value(values[number], places[number], tape) for number in kept], dtype=np.float64)
    inside = np.array([places[number] for number in kept], dtype=np.intp)
    return tape.filled(Fill(inside, marker[kept], filled)) + indicated


def read_indicator(step: Any, places: list[int], tape: Tape) -> list[int]:
    """Add a MissingIndicator."""
    return _indicated(step, places, _markers(step.missing_values, places, tape, worded=False), tape)


def _indicated(step: Any, places: list[int], marker: Array, tape: Tape) -> list[int]:
    features = np.asarray(step.features_, dtype=np.intp)
    return tape.add(Missing(np.array(places, dtype=np.intp)[features], marker[features])) if features.size else []


def _markers(missing: Any, places: list[int], tape: Tape, *, worded: bool) -> Array:
    """Return what marks a missing cell of each column, as a number of the tape."""
    if is_missing(missing):
        return np.full(len(places), np.nan)
    if worded or isinstance(missing, str):
        return np.array([tape.codes(place, [missing])[0] for place in places])
    return np.full(len(places), float(missing))


def _value(value: Any, place: int, tape: Tape) -> float:
    if is_missing(value):
        return np.nan
    return float(tape.codes(place, [value])[0]) if isinstance(value, str) else float(value)


READERS = {"SimpleImputer": read_imputer, "MissingIndicator": read_indicator}
FITTED: dict[str, tuple[str, ...]] = {
    "SimpleImputer": ("statistics_", "indicator_", "_fit_dtype", "_fill_dtype"),
    "MissingIndicator": ("features_", "_n_features", "_precomputed"),
}
