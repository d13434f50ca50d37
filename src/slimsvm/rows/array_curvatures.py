"""Newton's systems on a device: curvatures that are summed, factored and solved where the kernel values are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import Array
from .backends import Backend
from .curvatures import FEW_ROWS, RunningCurvature, running
from .factors import JITTER, MORE, factor_definite, not_finite

if TYPE_CHECKING:
    from .array_against import ArrayAgainst
    from .protocol import Factor

#: systems with at least this many unknowns are solved on the device; the host is faster with fewer
LARGE_SYSTEM = 512


@dataclass(frozen=True)
class DeviceFactor:
    """The inverse of the lower Cholesky factor L of a matrix H = L L'. The array API has no triangular solver."""

    on: Backend
    inverse: Any

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return int(self.inverse.shape[0])

    def solve(self, right: Array) -> Array:
        """Return H^-1 right for one vector."""
        return self.on.fetch(self.inverse.T @ (self.inverse @ self.on.send(right, self.on.sum_dtype)))


class DeviceCurvatures:
    """The sums of several outputs for the points of a handle on a device with float64."""

    at_once = 64  # more would need more memory for their systems

    def __init__(
        self, against: ArrayAgainst, count: int, *, large_system: int = LARGE_SYSTEM, few_rows: int = FEW_ROWS
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
