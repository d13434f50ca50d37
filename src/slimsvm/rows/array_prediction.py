"""Prediction on a device: the points and coefficients of a model stay there, and rows pass by.

Rows are sent a block at a time. The device works on one block while the host writes the next, and neither holds more than a
few of them. Whether float32 is enough for the rows, and whether they are finite, shows when the last of them has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import RBF, Array, InnerKernel, Matrix
from .array import FLOAT32_SUMS, OnDevice, check_finite, evaluator
from .backends import FLOAT32, FLOAT64, STAGED_VALUES, Backend, Held
from .precision import MIXED_ERROR, USUAL, Given, Precision, fits_float32, mean_row, rounding_error

#: numbers of a block of rows; fewer: more calls; more: the device waits longer for its first block
PASSING_VALUES = 2 * STAGED_VALUES


@dataclass(frozen=True)
class Placed:
    """Points and coefficients on a device, for rows in one precision."""

    rows: np.dtype
    sent: np.dtype  # the precision in which float64 rows travel
    sums: np.dtype
    radius: float  # the largest squared norm of the points
    values: Callable[[Held], Any]  # from rows to their kernel values
    coef: Any


class PlacedPoints:
    """K(X, points) @ V for any rows X, with points and V on a device; `error` is the allowed error of a kernel value.

    Rows pass in blocks of `passing` numbers.
    """

    def __init__(
        self,
        on: Backend,
        kernel: InnerKernel,
        points: Matrix,
        V: Array,
        error: float,
        *,
        precision: Precision = USUAL,
        passing: int = PASSING_VALUES,
    ) -> None:
        self.on, self.kernel, self.points, self.V = on, kernel, points, V
        self.error, self.allowed, self.precision, self.passing = error, precision.most(error), precision, passing
        self.centre = mean_row(Given(points)) if kernel.translation_invariant and points.shape[0] else None
        self._placed: dict[tuple[np.dtype, np.dtype], Placed] = {}

    def product(self, X: Matrix) -> Array:
        large = self.precision.is_large(X.shape[0], *self.points.shape) or not self.on.has_float64
        if large and self.on.plain_float32:
            there = self._in(FLOAT32, FLOAT32)
            if self._fits(there.radius):
                out, radius = self._product(X, there)
                if self._fits(radius) and fits_float32(max(radius, there.radius)):
                    return self.on.fetch(out)
                if not self.on.has_float64:
                    check_finite(radius)
        self.on.needs_float64(f"float32 is too coarse for the {self.kernel.name} kernel with these rows")
        mixed = large and isinstance(self.kernel, RBF) and self.error >= MIXED_ERROR and self.on.plain_float32
        out, radius = self._product(X, self._in(FLOAT64, FLOAT32 if mixed else FLOAT64))
        check_finite(radius)
        return self.on.fetch(out)

    def _fits(self, radius: float) -> bool:
        """Return whether float32 products are exact enough for rows or points with squared norms up to `radius`."""
        return rounding_error(self.kernel, self.points.shape[1], radius) <= self.allowed

    def _in(self, rows: np.dtype, values: np.dtype) -> Placed:
        """Return the points for rows and kernel values in these precisions; they stay on the device."""
        if (rows, values) not in self._placed:
            held = self.on.upload(Given(self.points), rows, self.centre)
            # rows that are rounded before the centre is taken off may lose digits if it is far out (`Backend.upload`)
            near = self.centre is None or float(self.centre @ self.centre) <= held.radius
            sums = FLOAT32 if values == FLOAT32 and self.error >= FLOAT32_SUMS else self.on.sum_dtype
            evaluate = evaluator(self.on, self.kernel, held, values, summed=True)
            coef = self.on.send(self.V, sums)
            self._placed[rows, values] = Placed(rows, rows if near else FLOAT64, sums, held.radius, evaluate, coef)
        return self._placed[rows, values]

    def _product(self, X: Matrix, there: Placed) -> tuple[Any, float]:
        """Return K(X, points) @ V on the device, and the largest squared norm of the rows."""
        on, (n, d) = self.on, X.shape
        placed, given = on.placing(self.centre, there.sent), X.values if isinstance(X, OnDevice) else X
        out, norms = on.empty((n, self.V.shape[1]), there.sums), [on.zeros((), on.sum_dtype)]

        def work(some: slice) -> None:
            rows = placed(given[some] if given is X else given[some, :])
            A = Held(on.empty((rows.shape[0], d + 2), there.rows), d, 0.0, there.rows)
            norms.append(on.lift(rows, A.lifted, there.rows))
            out[some, :] = on.cast(there.values(A), there.sums) @ there.coef

        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the largest norm
            on.tiled(n, self.points.shape[0] + d, work, most=max(self.passing // (d + 1), 1))
        return out, on.largest(norms)
