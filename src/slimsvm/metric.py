"""The metric of a model: a factor for each feature and a width for each point. Needs NumPy only.

    k_j(x) = exp(-gamma width_j |factors * (x - z_j)|^2)

Points and rows keep their own coordinates. Whatever evaluates kernels takes the metric with the points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .kernels.spec import SPECS, KernelSpec

Array = np.ndarray
#: factors and widths between these have squares, and products with gamma, that are float64 numbers
SMALLEST, LARGEST = 1e-100, 1e100
#: the same for float32
SMALLEST_FLOAT32, LARGEST_FLOAT32 = 1e-15, 1e15


@dataclass(frozen=True, eq=False)
class Metric:
    """What multiplies each feature of rows and points before the kernel, and gamma of each point; None stands for ones."""

    factors: Array | None = None  # (d,)
    widths: Array | None = None  # (m,)

    def __post_init__(self) -> None:
        for name, values in (("factors", self.factors), ("widths", self.widths)):
            if values is not None:
                _check_positive(name, values)

    def check(self, kernel: str, size: int, features: int) -> None:
        """Raise ValueError unless this is a metric for so many points and features, and one that the kernel has."""
        if self.factors is not None:
            if not takes_factors(kernel):
                raise ValueError(_refusal(kernel, "factors", takes_factors))
            _check_count("factors", self.factors, features, "features")
        if self.widths is not None:
            if not takes_widths(kernel):
                raise ValueError(_refusal(kernel, "widths", takes_widths))
            _check_count("widths", self.widths, size, "points")

    @property
    def size(self) -> int:
        """How many numbers the metric has."""
        return sum(values.size for values in (self.factors, self.widths) if values is not None)

    @property
    def squares(self) -> Array | None:
        """The squared factors, which an inner product of rows and points has as weights."""
        return None if self.factors is None else self.factors**2

    @property
    def widest(self) -> float:
        """The largest width."""
        return 1.0 if self.widths is None else float(self.widths.max(initial=0.0))

    @property
    def fits_float32(self) -> bool:
        """Whether float32 holds the squares of all factors, and the widths, with all its digits."""
        return all(
            values is None or bool(((values >= SMALLEST_FLOAT32) & (values <= LARGEST_FLOAT32)).all())
            for values in (self.factors, self.widths)
        )

    def part(self, points: Any) -> Metric:
        """Return the metric of some of the points, given as an index or a slice."""
        return self if self.widths is None else replace(self, widths=self.widths[points])


def takes_factors(kernel: str) -> bool:
    """Return whether a factor for each feature is defined: for kernels of inner products and of differences."""
    return kernel in SPECS and (SPECS[kernel].total.inner or SPECS[kernel].total.shift_invariant)


def takes_widths(kernel: str) -> bool:
    """Return whether the kernel has a width, which each point may have for itself."""
    return kernel in SPECS and has_width(SPECS[kernel])


def has_width(spec: KernelSpec) -> bool:
    """Return whether gamma multiplies a distance."""
    return spec.total.shift_invariant and any(parameter.name == "gamma" for parameter in spec.parameters)


def _refusal(kernel: str, what: str, takes: Any) -> str:
    return f"the {kernel} kernel takes no {what} of a metric; kernels that do are {[name for name in SPECS if takes(name)]}"


def _check_count(name: str, values: Array, count: int, of: str) -> None:
    if values.shape != (count,):
        raise ValueError(f"the metric's {name} have the shape {values.shape}, and the model has {count} {of}")


def _check_positive(name: str, values: Array) -> None:
    """Raise ValueError unless these are numbers in one row, finite and above 0."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != np.float64:
        given = f"{type(values).__name__} of shape {np.shape(values)} and type {getattr(values, 'dtype', None)}"
        raise ValueError(f"the metric's {name} must be an array of float64 with one axis, not {given}")
    wrong = ~((values >= SMALLEST) & (values <= LARGEST))
    if wrong.any():
        raise ValueError(
            f"the metric's {name} must be numbers above 0, from {SMALLEST:g} to {LARGEST:g}; number {wrong.argmax()} is "
            f"{values[wrong][0]:g}"
        )
