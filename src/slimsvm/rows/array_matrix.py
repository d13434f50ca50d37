"""K(rows, points) on a device of an array library, and Newton's systems that are summed, factored and solved there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..kernels import Array, Matrix
from ..metric import Metric
from .array_metric import MetricPoints
from .backends import FLOAT32, FLOAT64, Backend, Held
from .curvatures import FEW_ROWS, JITTER, MORE, RunningCurvature, RunningCurvatures, factor_definite, not_finite, running
from .kernel_matrix import KernelMatrix
from .protocol import Curvatures, Factor

#: systems with at least this many unknowns are solved on the device; the host is faster with fewer
LARGE_SYSTEM = 512


class ArrayMatrix(KernelMatrix):
    """K(rows, points) of `ArrayRows`; float64 from the first point on that is too far out for float32."""

    on: Backend

    def __init__(self, rows: Any, points: Matrix, *, placed: bool, exact: bool) -> None:
        self.held = rows.held
        super().__init__(rows, points, placed=placed, exact=exact)

    def _fill(self, points: Matrix, metric: Metric | None = None) -> None:
        A, B = self._pair(points)
        n, m = self.rows.n, points.shape[0]
        self.given, self.dtype, self.size = A, A.dtype, m
        self.evaluate = self.rows.evaluator(B) if metric is None else self._in(metric, points, A.dtype)
        self.K = self.memory = None  # freed before new memory is allocated
        K = self.on.empty_or_none((n, m), A.dtype)

        def work(some: slice) -> None:
            K[some, :] = self._evaluated(some, None)

        if K is not None:
            self.on.tiled(n if m else 0, m + self.rows.d, work)
            self.K = self.memory = K

    def _in(self, metric: Metric, placed: Array, dtype: np.dtype) -> Callable[[Held], Any]:
        """Return a function that evaluates a tile in a metric."""
        kernel, xp = self.kernel, self.on.xp  # the function must not hold the matrix, which holds it
        there = MetricPoints.of(self.on, kernel, placed, metric, dtype)
        return lambda part: there.values_of(kernel, part.values, xp)

    def _evaluated(self, some: slice, rows: Array | None) -> Any:
        part = self.given.part(some) if rows is None else self.on.subset(self.given, rows[some])
        values = self.evaluate(part)
        self.rows.meter.add(values.shape[0] * self.size)
        return values

    def _pair(self, points: Matrix) -> tuple[Held, Held]:
        """Return the rows and points on the device."""
        if not self.placed:
            return self.rows.pair(points)
        there = self.on.points(points, self.held.dtype)
        if self.held.dtype == FLOAT32:
            allowed = max(self.rows.precision.float32_error, self.rows.rounding(self.rows.held))
            if self.rows.rounding(there) > allowed:
                self.on.needs_float64("a point is too far from the rows for float32")
                self.held, there = self.on.converted(self.held, FLOAT64), self.on.points(points, FLOAT64)
        return self.held, there

    def _features(self) -> Any:
        return self.held.values

    def running_curvatures(self, count: int, *, growing: bool = False) -> Curvatures:  # noqa: ARG002
        """Return curvatures of `count` outputs, on the device if it has float64."""
        return DeviceCurvatures(self, count) if self.on.has_float64 else RunningCurvatures(self, count)

    def curvature_there(self, rows: Array, weights: Array, since: int = 0) -> Any:
        """Return `curvature` on the device."""
        return self._total(*self._squares(rows, weights, since)[:4])

    def _each(self, work: Callable[[slice], None]) -> None:
        self.on.tiled(self.rows.n, self.size, work)

    def _summed(self, count: int, width: int, sums: Callable[[slice], Any], shape: tuple[int, ...], cost: int) -> Array:  # noqa: ARG002
        if self.on.has_float64:
            return self.on.fetch(self._total(count, width, sums, shape))
        total = np.zeros(shape)

        def work(some: slice) -> None:
            total[...] += self.on.fetch(sums(some))

        self.on.tiled(count if total.size else 0, 2 * width, work)
        return total

    def _total(self, count: int, width: int, sums: Callable[[slice], Any], shape: tuple[int, ...]) -> Any:
        """Return the total of sums over tiles of range(count) on the device."""
        total = self.on.zeros(shape, self.on.sum_dtype)

        def work(some: slice) -> None:
            total[...] += self.on.cast(sums(some), self.on.sum_dtype)

        self.on.tiled(count if min(shape) else 0, 2 * width, work)
        return total


@dataclass(frozen=True)
class DeviceFactor:
    """The inverse of the lower Cholesky factor L of a matrix H = L L'. The array API has no triangular solver."""

    on: Backend
    inverse: Any

    @property
    def size(self) -> int:
        return int(self.inverse.shape[0])

    def solve(self, right: Array) -> Array:
        """Return H^-1 right for one vector."""
        return self.on.fetch(self.inverse.T @ (self.inverse @ self.on.send(right, self.on.sum_dtype)))


class DeviceCurvatures:
    """The sums of several outputs for the points of a handle on a device with float64."""

    at_once = 64  # more would need more memory for their systems

    def __init__(
        self, against: ArrayMatrix, count: int, *, large_system: int = LARGE_SYSTEM, few_rows: int = FEW_ROWS
    ) -> None:
        self.on, self.large_system = against.on, large_system
        bordered = partial(_bordered, self.on.xp)  # a method of this object would refer back to it: a cycle
        self.each = [RunningCurvature(against, against.curvature_there, bordered, few_rows) for _ in range(count)]

    def factors(self, outputs: Array, residual: Array, weights: Array, R: Array) -> list[Factor]:
        """Return the factor of each output's sum plus R: large ones on the device, others on the host."""
        sums = running(self.each, outputs, residual, weights)
        if R.shape[0] < self.large_system:
            return [factor_definite(self.on.fetch(H), R) for H in sums]
        regulariser = self.on.send(R, self.on.sum_dtype)
        return [factor_there(self.on, H + regulariser) for H in sums]


def _bordered(xp: Any, values: Any, border: Any) -> Any:
    """Return a matrix on the device with more columns, and the same as rows."""
    return xp.concat([xp.concat([values, border[: values.shape[0], :]], axis=1), border.T], axis=0)


def factor_there(on: Backend, total: Any) -> DeviceFactor:
    """Return the factor of a matrix on the device, with the least ridge that makes it definite (`factor_definite`)."""
    unit = on.send(np.eye(total.shape[0]), on.sum_dtype)
    largest, share = float(on.xp.max(on.xp.linalg.diagonal(total))) or 1.0, JITTER
    while share * largest < np.inf:
        lower = on.cholesky(total + share * largest * unit)
        if lower is not None:
            return DeviceFactor(on, on.xp.linalg.inv(lower))
        share *= MORE
    raise not_finite()
