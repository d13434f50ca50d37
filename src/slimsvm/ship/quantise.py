"""Tables of small integers: one step per table, and rows in units of the points, so that sums over features are exact."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .artefact import Array, Artefact
from .formulas import FORMULAS

#: the share of the largest score by which quantised scores may differ before the user hears of it
NOTABLE = 0.1
#: how far rows may lie beyond the points: 16 bits have some to spare, 8 bits have none
HEADROOM = {8: 1.0, 16: 4.0}
#: the share of the points' bytes for which coefficients get 16 bits rather than 8
CHEAP = 1 / 8
#: points up to which coefficients are fitted to the rounded points, and rows that this is done on
FITTED_POINTS, FITTED_ROWS = 2048, 4096


@dataclass(frozen=True)
class Quantised:
    """x is about middle + step * q, with q from -largest to largest; coefficients have a step of their own."""

    bits: int
    points: Array  # integers
    coef: Array
    middle: float
    step: float
    coef_step: float

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
    """The points and coefficients of an artefact as integers of 8 or 16 bits.

    The range is that of the points and of `rows`, raw ones like those to come, or from -limit to limit. Coefficients are
    those that give the outputs back best, on the same rows, now that the points are rounded; without `fit` the exact ones.
    """
    if not FORMULAS[a.kernel].integer:
        raise ValueError(f"the {a.kernel} kernel divides feature by feature and has no integer form; export it in float32")
    sample = a.points if rows is None else np.concatenate([a.points, rows if a.scaling is None else a.scaling(rows)])
    middle, reach = _range(a, sample, centred=limit is None)
    if limit is not None and reach > limit:
        raise ValueError(
            f"features reach {reach:.6g} after scaling, {reach / limit:.3g} times the limit {limit:.6g}, and would "
            f"saturate; give a limit of at least {reach:.6g}, or none"
        )
    step = (limit or HEADROOM[bits] * reach or 1.0) / _largest(bits)
    coef_bits = 16 if a.coef.size <= CHEAP * a.points.size else bits
    coef, coef_step = _integers(a.coef, coef_bits, _step(a.coef, coef_bits)), _step(a.coef, coef_bits)
    if fit and a.size <= FITTED_POINTS:
        coef, coef_step = _fitted(a, lambda X: _integers(X - middle, bits, step) * step + middle, sample, coef_bits)
    return Quantised(bits, _integers(a.points - middle, bits, step), coef, middle, step, coef_step)


def _largest(bits: int) -> int:
    return 2 ** (bits - 1) - 1


def _integers(values: Array, bits: int, step: float) -> Array:
    """Values in units of a step, clipped to the range of the integers."""
    return np.clip(np.rint(values / step), -_largest(bits), _largest(bits)).astype(f"i{bits // 8}")


def _range(a: Artefact, sample: Array, *, centred: bool) -> tuple[float, float]:
    """The middle of the range and how far features reach from it; where only differences count it may lie anywhere."""
    low, high = float(sample.min()), float(sample.max())
    middle = (low + high) / 2 if centred and a.kernel in ("rbf", "laplacian") else 0.0
    return middle, max(high - middle, middle - low)


def _fitted(a: Artefact, rounded: Callable[[Array], Array], sample: Array, bits: int) -> tuple[Array, float]:
    """Integer coefficients for rounded points, and their step: those with nearly the exact outputs on the sample."""
    sample = sample[:FITTED_ROWS]
    K = _kernel(a)(rounded(sample), rounded(a.points))
    H = K.T @ K
    ridge = 1e-6 * float(np.trace(H)) / a.size + np.finfo(float).tiny
    H += ridge * np.eye(a.size)
    coef = np.linalg.solve(H, K.T @ (_kernel(a)(sample, a.points) @ a.coef) + ridge * a.coef)
    step = _step(coef, bits)
    return _rounded_in_turn(coef, H, bits, step), step


def _step(coef: Array, bits: int) -> float:
    return (float(np.abs(coef).max()) or 1.0) / _largest(bits)


def _rounded_in_turn(coef: Array, H: Array, bits: int, step: float) -> Array:
    """Integers q with a small (coef - step q)' H (coef - step q): each error is made good by the coefficients to come.

    That is the way of optimal brain quantisation (Frantar & Alistarh 2022) with a fixed order.
    """
    left, integers = coef.copy(), np.zeros(coef.shape, f"i{bits // 8}")
    U = np.linalg.cholesky(np.linalg.inv(H)).T
    for i in range(coef.shape[0]):
        integers[i] = _integers(left[i], bits, step)
        left[i:] -= np.outer(U[i, i:], (left[i] - step * integers[i]) / U[i, i])
    return integers


def _kernel(a: Artefact) -> Callable[[Array, Array], Array]:
    from ..kernels import make_kernel

    return make_kernel(a.kernel, **{"gamma": 1.0, "degree": 1, "coef0": 0.0} | dict(a.parameters))  # type: ignore[arg-type]


def warn_where_coarse(a: Artefact, tables: Quantised) -> None:
    """Compare the outputs on some of the points, which are rows like any other, and warn where they differ much."""
    some = np.arange(0, a.size, -(-a.size // 256))
    points = tables.points * tables.step + tables.middle
    exact = _kernel(a)(a.points[some], a.points) @ a.coef
    coarse = _kernel(a)(points[some], points) @ (tables.coef * tables.coef_step)
    share = float(np.abs(coarse - exact).max() / max(np.abs(exact).max(), np.finfo(float).tiny))
    if share > NOTABLE:
        warnings.warn(
            f"int{tables.bits} tables change scores by up to {100 * share:.0f} % of the largest; put the features on one "
            "scale (a Pipeline with a StandardScaler is exported as one), or use more bits",
            stacklevel=4,
        )
