"""Tables of small integers. Each table has one step, and rows are in units of the points, so sums are exact."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .artefact import Array, Artefact

#: quantised scores that differ by more than this share of the largest score raise a warning
NOTABLE = 0.1
#: the range of the tables in units of that of the points: 16 bits leave room for rows beyond the points, 8 bits do not
HEADROOM = {8: 1.0, 16: 4.0}
#: coefficients get 16 bits where their count is at most this share of the points' numbers, 8 bits otherwise
CHEAP = 1 / 8
#: bits of the exponent of a width at most: widths may differ by a factor of 2^16
EXPONENT_BITS = 4
#: models up to this size have their coefficients fitted to the rounded points, on at most so many rows
FITTED_POINTS, FITTED_ROWS = 2048, 4096


@dataclass(frozen=True)
class Widths:
    """Widths as small floats, so that small ones are as precise as large ones.

    The lower bits of a code w are a mantissa, the upper ones an exponent: (M + w mod M) 2^(w / M) steps, M = 2^mantissa.
    """

    codes: Array  # unsigned integers
    mantissa: int  # bits
    step: float

    @property
    def values(self) -> Array:
        """The widths that the codes stand for."""
        codes, one = self.codes.astype(np.int64), 1 << self.mantissa
        return self.step * ((one + codes % one) << (codes >> self.mantissa))

    @classmethod
    def of(cls, widths: Array, bits: int) -> Widths:
        """Return the nearest codes; widths get as long a mantissa as their range allows."""
        octaves = np.log2(widths.max() / widths.min()) + 0.1  # 2^exponents times the last mantissa is a little less
        most = max(bits - EXPONENT_BITS, 1)
        mantissa = next((m for m in range(bits - 1, most, -1) if 2 ** (bits - m) >= octaves), most)
        one, largest = 1 << mantissa, 2 ** (bits - mantissa) - 1
        step = float(widths.max()) / ((2 * one - 1) << largest)
        units = np.maximum(widths / step, one)
        exponent = np.clip(np.floor(np.log2(units)).astype(np.int64) - mantissa, 0, largest)
        codes = np.rint(units / 2.0**exponent).astype(np.int64) - one + (exponent << mantissa)
        return cls(np.minimum(codes, 2**bits - 1).astype(f"u{bits // 8}"), mantissa, step)


@dataclass(frozen=True)
class Quantised:
    """x is about middle + step * q, with q from -largest to largest; coefficients have a step of their own."""

    bits: int
    points: Array  # integers
    coef: Array
    middle: float
    step: float
    coef_step: float
    widths: Widths | None = None

    @property
    def largest(self) -> int:
        """The largest integer of the points."""
        return _largest(self.bits)

    @property
    def sum_bits(self) -> int:
        """The width that the sum over features needs: squares of differences are up to (2 largest)^2 each."""
        return 32 if self.points.shape[1] * (2 * self.largest) ** 2 < 2**31 else 64


def quantise(
    a: Artefact, bits: int, limit: float | None = None, rows: Array | None = None, *, fit: bool = True
) -> Quantised:
    """Return the points and coefficients of an artefact as integers of 8 or 16 bits.

    The range is that of the points and of `rows`, raw rows like those to predict, or from -limit to limit. Coefficients are
    fitted on the same rows to reproduce the outputs with the rounded points; without `fit` they are only rounded.
    """
    if not a.spec.total.integer:
        raise ValueError(f"the {a.kernel} kernel divides feature by feature and has no integer form; export it in float32")
    sample = a.points if rows is None else np.concatenate([a.points, rows if a.scaling is None else a.scaling(rows)])
    middle, reach = _range(a, sample, centred=limit is None)
    if limit is not None and not reach <= limit:
        raise ValueError(
            f"features reach {reach:.6g} after scaling, {reach / limit:.3g} times the limit {limit:.6g}, and would "
            f"saturate; give a limit of at least {reach:.6g}, or none"
        )
    step = (limit or HEADROOM[bits] * reach or 1.0) / _largest(bits)
    coef_bits = 16 if a.coef.size <= CHEAP * a.points.size else bits
    coef, coef_step = _integers(a.coef, coef_bits, _step(a.coef, coef_bits)), _step(a.coef, coef_bits)
    widths = None if a.widths is None else Widths.of(a.widths, bits)
    if fit and a.size <= FITTED_POINTS:
        coef, coef_step = _fitted(a, lambda X: _integers(X - middle, bits, step) * step + middle, widths, sample, coef_bits)
    return Quantised(bits, _integers(a.points - middle, bits, step), coef, middle, step, coef_step, widths)


def predicted_alike(a: Artefact, tables: Quantised, rows: Array) -> int:
    """Return on how many rows the integers lead to the same prediction as the artefact."""
    from .runtime import Runtime

    points = tables.middle + tables.step * tables.points
    widths = None if tables.widths is None else tables.widths.values
    restored = replace(a, points=points, coef=tables.coef_step * tables.coef, widths=widths, scaling=None)
    scaled = rows if a.scaling is None else a.scaling(rows)
    rounded = tables.middle + tables.step * _integers(scaled - tables.middle, tables.bits, tables.step)
    return int(np.count_nonzero(Runtime(restored)(rounded) == Runtime(a)(rows)))


def _largest(bits: int) -> int:
    return 2 ** (bits - 1) - 1


def _integers(values: Array, bits: int, step: float) -> Array:
    """Return values in units of a step, clipped to the range of the integers."""
    return np.clip(np.rint(values / step), -_largest(bits), _largest(bits)).astype(f"i{bits // 8}")


def _range(a: Artefact, sample: Array, *, centred: bool) -> tuple[float, float]:
    """Return the middle of the range and the reach of features from it; it is 0 unless the kernel ignores shifts."""
    low, high = float(sample.min()), float(sample.max())
    middle = (low + high) / 2 if centred and a.spec.total.shift_invariant else 0.0
    return middle, max(high - middle, middle - low)


def _fitted(
    a: Artefact, rounded: Callable[[Array], Array], widths: Widths | None, sample: Array, bits: int
) -> tuple[Array, float]:
    """Return integer coefficients for rounded points that nearly give the exact outputs on the sample, and their step."""
    sample = sample[:FITTED_ROWS]
    K = _kernel(a, None if widths is None else widths.values)(rounded(sample), rounded(a.points))
    H = K.T @ K
    ridge = 1e-6 * float(np.trace(H)) / a.size + np.finfo(float).tiny
    H += ridge * np.eye(a.size)
    coef = np.linalg.solve(H, K.T @ (_kernel(a, a.widths)(sample, a.points) @ a.coef) + ridge * a.coef)
    step = _step(coef, bits)
    return _rounded_in_turn(coef, H, bits, step), step


def _step(coef: Array, bits: int) -> float:
    return (float(np.abs(coef).max()) or 1.0) / _largest(bits)


def _rounded_in_turn(coef: Array, H: Array, bits: int, step: float) -> Array:
    """Return integers q with a small (coef - step q)' H (coef - step q): later coefficients make up for earlier rounding.

    This is optimal brain quantisation (Frantar & Alistarh 2022) with a fixed order.
    """
    left, integers = coef.copy(), np.zeros(coef.shape, f"i{bits // 8}")
    # U'U = H^-1 with U = R^-1 and H = R R', both upper: H^-1 itself may have lost its small eigenvalues to rounding
    U = np.linalg.inv(np.linalg.cholesky(H[::-1, ::-1])[::-1, ::-1])
    for i in range(coef.shape[0]):
        integers[i] = _integers(left[i], bits, step)
        left[i:] -= np.outer(U[i, i:], (left[i] - step * integers[i]) / U[i, i])
    return integers


def _kernel(a: Artefact, widths: Array | None) -> Callable[[Array, Array], Array]:
    from ..kernels import make_kernel

    kernel: Any = make_kernel(a.kernel, **{"gamma": 1.0, "degree": 1, "coef0": 0.0} | dict(a.parameters))  # type: ignore[arg-type]
    return kernel if widths is None else lambda A, B: kernel(A, B, widths)


def warn_where_coarse(a: Artefact, tables: Quantised) -> None:
    """Compare the outputs on a subsample of the points, as rows, and warn where they differ much."""
    some = np.arange(0, a.size, -(-a.size // 256))
    points = tables.points * tables.step + tables.middle
    exact = _kernel(a, a.widths)(a.points[some], a.points) @ a.coef
    widths = None if tables.widths is None else tables.widths.values
    coarse = _kernel(a, widths)(points[some], points) @ (tables.coef * tables.coef_step)
    share = float(np.abs(coarse - exact).max() / max(np.abs(exact).max(), np.finfo(float).tiny))
    if share > NOTABLE:
        warnings.warn(
            f"int{tables.bits} tables change scores by up to {100 * share:.0f} % of the largest; put the features on one "
            "scale (a Pipeline with a StandardScaler is exported as one), or use more bits",
            stacklevel=4,
        )
