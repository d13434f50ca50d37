"""Probabilities from scores: maps that are fitted once and stored with a model. They need NumPy only.

Scores are what decision_function returns: one for two classes, (n,), or one per class, (n, k). A new map is a class and a
line in `CALIBRATIONS`; `estimators.calibrating` fits it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np

Array = np.ndarray

#: errors that a map to intervals holds; more: finer coverages, and larger files
MOST_ERRORS = 999
#: probabilities are kept this far from 0, so that no class is impossible and logarithms are finite
LEAST = 1e-7


class Calibration(Protocol):
    """A map from scores to probabilities."""

    @property
    def name(self) -> str:
        """The name as a parameter and in files."""

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of the classes, (n, k)."""

    def check(self, n_classes: int) -> None:
        """Raise ValueError unless its numbers fit `n_classes` classes."""


@dataclass(frozen=True)
class Sigmoid:
    """p = 1 / (1 + exp(-(slope score + shift))) for each score (Platt 1999); three or more are scaled to a sum of 1."""

    name: ClassVar[str] = "sigmoid"
    slope: Array  # (1,) for two classes, else (k,)
    shift: Array

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of the classes."""
        return _normalised(logistic(columns(scores) * self.slope + self.shift))

    def check(self, n_classes: int) -> None:
        """Raise ValueError unless there is a finite slope and shift for each score."""
        for what in (self.slope, self.shift):
            _check_numbers(what, scores_of(n_classes))


@dataclass(frozen=True)
class Isotonic:
    """A rising curve for each score, linear between its knots; it assumes no shape, so it needs about a thousand rows."""

    name: ClassVar[str] = "isotonic"
    scores: Array  # the knots of all scores, one after the other
    values: Array  # the probability at each knot
    starts: Array  # the first knot of each score; the last entry is the number of knots

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of the classes."""
        given, curves = columns(scores), []
        for column, start, stop in zip(given.T, self.starts[:-1], self.starts[1:], strict=True):
            curves.append(np.interp(column, self.scores[start:stop], self.values[start:stop]))
        return _normalised(np.clip(np.column_stack(curves), LEAST, 1 - LEAST))

    def check(self, n_classes: int) -> None:
        """Raise ValueError unless each score has knots in rising order."""
        _check_numbers(self.values, self.scores.size)
        _check_numbers(self.scores, self.values.size)
        starts = self.starts
        if starts.shape != (scores_of(n_classes) + 1,) or starts[0] != 0 or starts[-1] != self.scores.size:
            raise ValueError("the knots of its calibration do not fit its classes")
        for start, stop in pairwise(starts.tolist()):
            if start >= stop or (np.diff(self.scores[start:stop]) <= 0).any():
                raise ValueError("the knots of its calibration are not in rising order")


@dataclass(frozen=True)
class Temperature:
    """softmax(scores / temperature); the class with the largest score stays the most probable (Guo et al. 2017)."""

    name: ClassVar[str] = "temperature"
    temperature: float

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of the classes."""
        scaled = columns(scores) / self.temperature
        if scaled.shape[1] == 1:
            return _normalised(logistic(scaled))
        odds = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def check(self, n_classes: int) -> None:  # noqa: ARG002
        """Raise ValueError unless the temperature is a number above 0."""
        if not 0 < self.temperature < np.inf:
            raise ValueError(f"its temperature is {self.temperature}, and must be a number above 0")


CALIBRATIONS: dict[str, Any] = {kind.name: kind for kind in (Sigmoid, Isotonic, Temperature)}


def restored(name: str, numbers: Mapping[str, Array]) -> Calibration:
    """Return the map of that name from its numbers in a file: an array for each field."""
    if name == Temperature.name:
        if numbers["temperature"].size != 1:
            raise ValueError("its temperature is not one number")
        return Temperature(float(numbers["temperature"][0]))
    if name == Sigmoid.name:
        return Sigmoid(numbers["slope"], numbers["shift"])
    starts = numbers["starts"].astype(np.int64)
    if (starts != numbers["starts"]).any():
        raise ValueError("the knots of its calibration do not begin at whole numbers")
    return Isotonic(numbers["scores"], numbers["values"], starts)


def columns(scores: Array) -> Array:
    """Return scores as (n, 1) or (n, k)."""
    return scores.reshape(scores.shape[0], -1)


def scores_of(n_classes: int) -> int:
    """Return the number of scores for `n_classes` classes."""
    return n_classes if n_classes > 2 else 1


def logistic(values: Array) -> Array:
    """Return 1 / (1 + exp(-values)), kept `LEAST` away from 0 and 1."""
    return np.clip((1 + np.tanh(values / 2)) / 2, LEAST, 1 - LEAST)


def _normalised(p: Array) -> Array:
    """Return the probabilities of both classes, or of all, with a sum of 1."""
    return np.column_stack([1 - p, p]) if p.shape[1] == 1 else p / p.sum(axis=1, keepdims=True)


def _check_numbers(values: Array, count: int) -> None:
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ValueError(f"its calibration needs {count} finite numbers, and has {values.tolist()[:5]}")


@dataclass(frozen=True)
class Conformal:
    """The errors of a regressor on rows that it was not trained on, from which intervals are made (split-conformal).

    With n errors, the interval of coverage c reaches as far as the ceil((n + 1) c)-th smallest of them.
    """

    name: ClassVar[str] = "conformal"
    errors: Array  # sorted; of many rows those at MOST_ERRORS evenly spaced places
    rows: int

    @classmethod
    def of(cls, errors: Array) -> Conformal:
        """Return the map for absolute errors."""
        sorted_errors, n = np.sort(np.asarray(errors, dtype=np.float64)), errors.size
        if n > MOST_ERRORS:
            places = np.ceil((n + 1) * np.arange(1, MOST_ERRORS + 1) / (MOST_ERRORS + 1)).astype(np.intp)
            sorted_errors = sorted_errors[np.minimum(places, n) - 1]
        return cls(sorted_errors, int(n))

    def half_width(self, coverage: float) -> float:
        """Return how far an interval reaches on either side."""
        count = self.errors.size
        if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
            raise ValueError(f"coverage must be a share of the rows above 0 and below 1, such as 0.8, not {coverage!r}")
        place = int(np.ceil((count + 1) * float(coverage) - 1e-9))
        if place > count:
            raise ValueError(f"an interval that covers {coverage:g} takes more than {self.rows} rows of calibration")
        return float(self.errors[place - 1])

    def times(self, factor: float) -> Conformal:
        """Return the map for values in another unit."""
        return Conformal(self.errors * factor, self.rows)

    def check(self) -> None:
        """Raise ValueError unless errors are sorted numbers."""
        errors = self.errors
        if errors.ndim != 1 or not errors.size or not np.isfinite(errors).all() or (np.diff(errors) < 0).any():
            raise ValueError("its errors are not sorted finite numbers")
        if errors[0] < 0 or not isinstance(self.rows, int) or self.rows < errors.size:
            raise ValueError("its errors are not those of rows")


def check_calibration(calibration: Any, names: Iterable[str] = ()) -> None:
    """Raise ValueError for a calibration that is not one of these, by default those of classes."""
    known = [*(names or CALIBRATIONS)]
    if calibration is not None and not (isinstance(calibration, str) and calibration in known):
        raise ValueError(f"unknown calibration {calibration!r}; there are {[*known, None]}")
