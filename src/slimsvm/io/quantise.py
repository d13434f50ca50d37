"""Tables of small integers: one step per table, and rows in units of the points, so that sums over features are exact."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from .artefact import Array, Artefact
from .formulas import FORMULAS

#: the share of the largest score by which quantised scores may differ before the user hears of it
NOTABLE = 0.1
#: how far rows may lie beyond the points: 16 bits have some to spare, 8 bits have none
HEADROOM = {8: 1.0, 16: 4.0}


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
        """The largest integer of the tables."""
        return 2 ** (self.bits - 1) - 1

    @property
    def sum_bits(self) -> int:
        """The width that the sum over features needs: squares of differences are up to (2 largest)^2 each."""
        return 32 if self.points.shape[1] * (2 * self.largest) ** 2 < 2**31 else 64


def quantise(a: Artefact, bits: int, limit: float | None = None, rows: Array | None = None) -> Quantised:
    """The points and coefficients of an artefact as integers of 8 or 16 bits.

    The range is that of the points and of `rows`, raw ones like those to come, or from -limit to limit.
    """
    if a.kernel in FORMULAS and not FORMULAS[a.kernel].integer:
        raise ValueError(f"the {a.kernel} kernel divides feature by feature and has no integer form; export it in float32")
    low, high = _extent(a, rows)
    # where only differences count the range may lie anywhere, which saves up to one bit
    middle = (low + high) / 2 if limit is None and a.kernel in ("rbf", "laplacian") else 0.0
    reach = max(high - middle, middle - low)
    if limit is not None and reach > limit:
        raise ValueError(
            f"features reach {reach:.6g} after scaling, {reach / limit:.3g} times the limit {limit:.6g}, and would "
            f"saturate; give a limit of at least {reach:.6g}, or none"
        )
    largest = 2 ** (bits - 1) - 1
    step = (limit or HEADROOM[bits] * reach or 1.0) / largest
    coef_step = (float(np.abs(a.coef).max(initial=0.0)) or 1.0) / largest
    points, coef = (np.rint(values).astype(f"i{bits // 8}") for values in ((a.points - middle) / step, a.coef / coef_step))
    return Quantised(bits, points, coef, middle, step, coef_step)


def _extent(a: Artefact, rows: Array | None) -> tuple[float, float]:
    values = [a.points]
    if rows is not None:
        values.append(rows if a.scaling is None else a.scaling(rows))
    return min(float(v.min(initial=np.inf)) for v in values), max(float(v.max(initial=-np.inf)) for v in values)


def warn_where_coarse(a: Artefact, tables: Quantised) -> None:
    """Compare the outputs on some of the points, which are rows like any other, and warn where they differ much."""
    some = a.points[:: -(-a.size // 256)]
    exact = _outputs(a, some, a.points, a.coef)
    units = np.clip(np.rint((some - tables.middle) / tables.step), -tables.largest, tables.largest)
    coarse = _outputs(
        a,
        units * tables.step + tables.middle,
        tables.points * tables.step + tables.middle,
        tables.coef * tables.coef_step,
    )
    share = float(np.abs(coarse - exact).max(initial=0.0) / max(np.abs(exact).max(initial=0.0), np.finfo(float).tiny))
    if share > NOTABLE:
        warnings.warn(
            f"int{tables.bits} tables change scores by up to {100 * share:.0f} % of the largest; put the features on one "
            "scale (a Pipeline with a StandardScaler is exported as one), or use more bits",
            stacklevel=4,
        )


def _outputs(a: Artefact, X: Array, points: Array, coef: Array) -> Array:
    """Outputs for scaled rows X with other points and coefficients than the artefact's."""
    from ..kernels import make_kernel

    given = {"gamma": 1.0, "degree": 1, "coef0": 0.0} | dict(a.parameters)
    return make_kernel(a.kernel, **given)(X, points) @ coef + a.bias  # type: ignore[arg-type]
