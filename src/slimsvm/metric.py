"""The metric of a model: a factor for each feature or a projection, and a width for each point. Needs NumPy only.

    k_j(x) = exp(-gamma width_j |factors * (x - z_j)|^2)        or        exp(-gamma width_j |x P - z_j|^2)

With factors, points and rows stay in the coordinates of the features. With a projection P (features, rank), points have
`rank` columns. Code that evaluates kernels takes the metric with the points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .kernels.spec import SPECS, KernelSpec

Array = np.ndarray
#: bounds on factors and widths: their squares and their products with gamma stay within float64
SMALLEST, LARGEST = 1e-100, 1e100
#: the same for float32
SMALLEST_FLOAT32, LARGEST_FLOAT32 = 1e-15, 1e15


@dataclass(frozen=True, eq=False)
class Metric:
    """Factors of the features of rows and points, widths, which multiply gamma of each point, and a projection of rows.

    None means ones, and the identity. A projection contains the factors.
    """

    factors: Array | None = None  # (d,)
    widths: Array | None = None  # (m,)
    projection: Array | None = None  # (d, rank)

    def __post_init__(self) -> None:
        for name, values in (("factors", self.factors), ("widths", self.widths)):
            if values is not None:
                _check_positive(name, values)
        if self.projection is not None:
            _check_projection(self.projection, self.factors)

    def check(self, kernel: str, size: int, features: int) -> None:
        """Raise ValueError unless the metric fits the kernel, the number of points and the number of their columns."""
        if self.projection is not None:
            if not takes_factors(kernel):
                raise ValueError(_refusal(kernel, "projection", takes_factors))
            _check_count("projection", self.projection[0], features, "columns of points")
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
        """The number of factors, widths and numbers of the projection."""
        return sum(values.size for values in (self.factors, self.widths, self.projection) if values is not None)

    @property
    def within(self) -> Metric | None:
        """The metric of projected rows, which points are in; None if that is the kernel's own."""
        return None if self.widths is None else Metric(None, self.widths)

    def projected(self, X: Any) -> Array:
        """Return rows, dense or sparse, in the coordinates of points."""
        return np.asarray(X @ self.projection, dtype=np.float64)

    @property
    def squares(self) -> Array | None:
        """The squared factors: the weights of the features in an inner product of rows and points."""
        return None if self.factors is None else self.factors**2

    @property
    def widest(self) -> float:
        """The largest width."""
        return 1.0 if self.widths is None else float(self.widths.max(initial=0.0))

    @property
    def fits_float32(self) -> bool:
        """Whether float32 can hold the squares of all factors and the widths in full precision."""
        return all(
            values is None or bool(((values >= SMALLEST_FLOAT32) & (values <= LARGEST_FLOAT32)).all())
            for values in (self.factors, self.widths)
        )

    def part(self, points: Any) -> Metric:
        """Return the metric of some of the points, given as an index or a slice."""
        return self if self.widths is None else replace(self, widths=self.widths[points])


def takes_factors(kernel: str) -> bool:
    """Return whether the kernel can have factors: kernels of inner products and of differences can."""
    return kernel in SPECS and (SPECS[kernel].total.inner or SPECS[kernel].total.shift_invariant)


def takes_widths(kernel: str) -> bool:
    """Return whether the kernel can have a width for each point."""
    return kernel in SPECS and has_width(SPECS[kernel])


def has_width(spec: KernelSpec) -> bool:
    """Return whether gamma multiplies a distance."""
    return spec.total.shift_invariant and any(parameter.name == "gamma" for parameter in spec.parameters)


def _refusal(kernel: str, what: str, takes: Any) -> str:
    able = [name for name in SPECS if takes(name)]
    return f"the {kernel} kernel takes no {what} of a metric; the kernels that do are {able}"


def _check_count(name: str, values: Array, count: int, of: str) -> None:
    if values.shape != (count,):
        raise ValueError(f"the metric's {name} have the shape {values.shape}, but the model has {count} {of}")


def _check_projection(values: Any, factors: Array | None) -> None:
    """Raise ValueError unless a projection is a finite matrix of at most as many columns as rows, without factors."""
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype != np.float64 or not values.size:
        given = f"{type(values).__name__} of shape {np.shape(values)} and type {getattr(values, 'dtype', None)}"
        raise ValueError(f"the metric's projection must be an array of float64 with two axes, not {given}")
    if values.shape[1] > values.shape[0]:
        raise ValueError(f"the metric's projection leads from {values.shape[0]} features to more, {values.shape[1]}")
    if not (np.abs(values) <= LARGEST).all():
        raise ValueError(f"the metric's projection must have finite numbers of at most {LARGEST:g}")
    if factors is not None:
        raise ValueError(
            "a metric has factors or a projection, not both: multiply the rows of the projection by the factors"
        )


def _check_positive(name: str, values: Array) -> None:
    """Raise ValueError unless the values are a vector of finite numbers above 0."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != np.float64:
        given = f"{type(values).__name__} of shape {np.shape(values)} and type {getattr(values, 'dtype', None)}"
        raise ValueError(f"the metric's {name} must be an array of float64 with one axis, not {given}")
    wrong = ~((values >= SMALLEST) & (values <= LARGEST))
    if wrong.any():
        raise ValueError(
            f"the metric's {name} must be numbers above 0, from {SMALLEST:g} to {LARGEST:g}; number {wrong.argmax()} is "
            f"{values[wrong][0]:g}"
        )
