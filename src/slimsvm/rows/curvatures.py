"""Curvatures of squared losses: the sum of w d d' over the rows that fall short, with d = (1, k_1 .. k_m)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import core
from ..kernels import Array
from .threads import ALONE, ThreadPool

if TYPE_CHECKING:
    from .kernel_matrix import KernelMatrix
    from .protocol import Factor


#: the first ridge, as a share of the largest diagonal element; a smaller one may be lost in rounding
JITTER = 1e-14
#: the factor by which the ridge grows until the matrix is definite
MORE = 100.0


@dataclass(frozen=True)
class HostFactor:
    """The lower Cholesky factor L of a matrix H = L L'."""

    lower: Array

    @property
    def size(self) -> int:
        return self.lower.shape[0]

    def solve(self, right: Array) -> Array:
        """Return H^-1 right for one vector."""
        return solve_all([self], right[None])[0]


def solve_all(factors: Sequence[Factor], right: Array) -> Array:
    """Return the solution of each system, a line for each."""
    found = np.array(right, np.float64, order="C")
    if all(isinstance(factor, HostFactor) for factor in factors):
        core.solve_factored([factor.lower for factor in factors], found)  # type: ignore[attr-defined]
    else:
        found[:] = [factor.solve(line) for factor, line in zip(factors, right, strict=True)]
    return found


def factor_definite(H: Array, R: Array) -> HostFactor:
    """Return the factor of H + R, with the least ridge that makes it definite; lower triangles are read."""
    total, place = H + R, np.arange(H.shape[0])
    diagonal = total[place, place]
    largest, share = diagonal.max() or 1.0, JITTER
    while share * largest < np.inf:
        total[place, place] = diagonal + share * largest
        with suppress(np.linalg.LinAlgError):
            return HostFactor(np.linalg.cholesky(total))  # NumPy's releases the interpreter's lock
        share *= MORE
    raise not_finite()


def not_finite() -> ValueError:
    """Return the error for a matrix that is not finite."""
    return ValueError("kernel values are too large for float64; scale the features, or lower gamma or degree")


#: with fewer rows that fall short, a curvature is summed again; with more, only changed rows are added or subtracted
FEW_ROWS = 512
#: the sums of all outputs are kept for the next call if they have at most this many numbers; more: more memory
KEPT_VALUES = 1 << 25
#: larger systems are factored by LAPACK, one after the other
LAPACK_SIZE = 200


class RunningCurvatures:
    """The sums of several outputs for the points of a handle, to which points may be added. Few rows change in a step."""

    at_once = 8  # threads take others

    def __init__(
        self, against: KernelMatrix, count: int, *, few_rows: int = FEW_ROWS, kept_values: int = KEPT_VALUES
    ) -> None:
        self.each = [RunningCurvature(against, against.curvature, bordered, few_rows) for _ in range(count)]
        self.kept_values = kept_values

    def at(self, outputs: Array, residual: Array, weights: Array) -> list[Array]:
        """Return the sum of each of some outputs over the rows with a residual, (m + 1, m + 1)."""
        return running(self.each, outputs, residual, weights, self.kept_values)

    def factors(self, outputs: Array, residual: Array, weights: Array, R: Array) -> list[Factor]:
        """Return the factor of each output's sum plus R."""
        return [factor_definite(H, R) for H in self.at(outputs, residual, weights)]


def running(
    each: Sequence[RunningCurvature], outputs: Array, residual: Array, weights: Array, kept_values: int = KEPT_VALUES
) -> list[Any]:
    """Return the sum of each of some outputs; the sums of all are kept if they have at most `kept_values` numbers."""
    found = [each[c].at(line != 0, weights) for c, line in zip(outputs, residual, strict=True)]
    if found and len(each) * found[0].shape[0] ** 2 > kept_values:
        for c in outputs:
            each[c].forget()
    return found


class RunningCurvature:
    """The sum of one output, in arrays of any library. `sums` adds up rows; `bordered` appends new columns."""

    def __init__(
        self,
        against: KernelMatrix,
        sums: Callable[..., Any],
        bordered: Callable[[Any, Any], Any],
        few_rows: int = FEW_ROWS,
    ) -> None:
        self.against, self.sums, self.bordered, self.few_rows = against, sums, bordered, few_rows
        self.forget()

    def forget(self) -> None:
        """Forget the sum."""
        self.active: Array | None = None
        self.values: Any = np.zeros((0, 0))

    def at(self, active: Array, weights: Array) -> Any:
        """Return the sum over the active rows."""
        rows = np.flatnonzero(active)
        changed = rows if self.active is None or rows.size < self.few_rows else np.flatnonzero(active != self.active)
        if 2 * changed.size >= rows.size:
            self.values = self.sums(rows, weights)
        else:
            self._widen(weights)
            came, went = changed[active[changed]], changed[~active[changed]]
            self.values = self.values + self.sums(came, weights) - self.sums(went, weights)
        self.active = active
        return self.values

    def _widen(self, weights: Array) -> None:
        """Add the points that are new since the last call."""
        old = self.values.shape[0]
        if self.against.size + 1 > old and self.active is not None:
            self.values = self.bordered(self.values, self.sums(np.flatnonzero(self.active), weights, since=old))


def bordered(values: Array, border: Array) -> Array:
    """Return a symmetric matrix with further columns."""
    return np.block([[values, border[: values.shape[0]]], [border.T]])


class CompiledCurvatures:
    """The sums of some outputs for fixed kernel values, by compiled code in threads."""

    at_once = 1 << 10  # threads share the rows

    def __init__(self, K: Array, count: int, pool: ThreadPool = ALONE, *, kept_values: int = KEPT_VALUES) -> None:
        self.K, self.pool = K, pool
        self.kept = self._begun(count) if count * (K.shape[1] + 1) ** 2 <= kept_values else None

    def _begun(self, count: int) -> tuple[Array, Array, Array]:
        """Return for `count` outputs: the rows in their sums, whether a sum is known, and the sums."""
        n, m = self.K.shape
        return np.zeros((count, n), np.uint8), np.zeros(count, np.uint8), np.empty((count, m + 1, m + 1))

    def at(self, outputs: Array, residual: Array, weights: Array) -> list[Array]:
        """Return the sum of each of some outputs over the rows with a residual, in lower triangles of (m + 1, m + 1)."""
        sums, places = self._sums(outputs, residual, weights)
        return [sums[place] for place in places]

    def _sums(self, outputs: Array, residual: Array, weights: Array) -> tuple[Array, Array]:
        """Return sums, and the places of these outputs among them."""
        (n, m), q = self.K.shape, outputs.size
        state, places = (self.kept, outputs) if self.kept else (self._begun(q), np.arange(q))
        space = np.empty((q, n), np.intp), np.empty((2, q), np.intp)
        helpers = self.pool.helpers_for(n * q * m * (m + 1) // 8)
        core.update_curvatures(self.K, weights, places, residual, *state, *space, *helpers)
        return state[2], places

    def factors(self, outputs: Array, residual: Array, weights: Array, R: Array) -> list[Factor]:
        """Return the factor of each output's sum plus R."""
        size = R.shape[0]
        if size > LAPACK_SIZE:
            return [factor_definite(H, R) for H in self.at(outputs, residual, weights)]
        if not outputs.size:
            return []
        sums, places = self._sums(outputs, residual, weights)
        found = np.empty((outputs.size, size, size))
        if not core.factor_sums(
            sums,
            places,
            np.ascontiguousarray(R),
            JITTER,
            MORE,
            found,
            *self.pool.helpers_for(places.size * size**3 // 6, places.size - 1),
        ):
            raise not_finite()
        return [HostFactor(each) for each in found]
