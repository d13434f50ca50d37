"""Tables of small integers. Each table has one step, and rows are integers in units of the points, so sums are exact.

Points of 8 bits go with rows of 16 bits, which take no bytes of tables. Rounded points lose little, because coefficients
are fitted to them; the rounding of a row is not corrected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..c_bytes import CHEAP_COEFFICIENTS
from ..rounding import SmallFloats, of_upper_halves, upper_halves
from ..text import warn_user
from .artefact import MODERATE, Array, Artefact
from .literals import as_float32

#: a warning is given if quantised scores differ by more than this share of the largest score
NOTABLE = 0.1
#: the range of the tables, as a multiple of the points' range: 16 bits leave room for rows beyond the points, 8 bits do not
HEADROOM = {8: 1.0, 16: 4.0}
#: steps of a row in a step of 8 bits at most, a power of 2. More: larger sums; fewer where these leave 32 bits
FINEST = 32
#: how far from 0 the middle of a scaled feature may be, in units of the range, to be an integer of 16 bits
FAR = 128.0
#: coefficients are fitted to the rounded points in models of at most this many points, on at most this many rows
FITTED_POINTS, FITTED_ROWS = 2048, 4096
#: how often the range of 8 bits may be halved, on how many rows ranges are compared, and the share of the misfit that a
#: narrower range must save
HALVINGS, COMPARED_ROWS, LEAST_SAVED = 8, 2048, 0.05


@dataclass(frozen=True)
class Grid:
    """Integers q from -largest to largest for numbers x, about middle + step * q. Rows have steps of step / fine."""

    bits: int
    middle: Array | float  # of each feature, or of all
    step: float
    fine: int
    largest: int  # of the points

    def points(self, X: Array) -> Array:
        """Return points as integers."""
        units = np.clip(np.rint((X - self.middle) / self.step), -self.largest, self.largest)
        return units.astype(f"i{self.bits // 8}")

    def rounded_points(self, X: Array) -> Array:
        """Return the points of the integers."""
        return self.points(X) * self.step + self.middle

    def rounded_rows(self, X: Array) -> Array:
        """Return the rows of the integers."""
        end, step = self.largest * self.fine, self.step / self.fine
        return np.clip(np.rint((X - self.middle) / step), -end, end) * step + self.middle


@dataclass(frozen=True)
class Form:
    """Integers of so many bits for points, up to the largest one, and the steps of a row in each of their steps."""

    bits: int
    largest: int
    fine: int
    short: bool = True  # whether scales may have 16 bits
    wide: bool = True  # whether 16 bits leave room beyond the points

    @property
    def headroom(self) -> float:
        """The range of the tables, as a multiple of the points' range."""
        return HEADROOM[self.bits] if self.wide else 1.0


@dataclass(frozen=True)
class ShortScaling:
    """A scaling in 4 bytes for each feature: scale * x in steps of the rows, minus a shift in steps of the points."""

    scales: Array  # codes of `upper_halves`
    shifts: Array  # integers of 16 bits


@dataclass(frozen=True)
class Quantised:
    """The integer tables: points on a grid, coefficients with another step, bias, widths and scaling.

    With points of 8 bits, the biases of several outputs have 16 bits, and coefficients are fitted to their rounding. The
    bias of a single output may be far from 0, and keeps all digits.
    """

    grid: Grid
    points: Array  # integers
    coef: Array
    coef_step: float
    bias: Array  # float32, or codes of `upper_halves`
    widths: SmallFloats | None = None
    scaling: ShortScaling | None = None

    @property
    def bias_values(self) -> Array:
        """The biases as numbers."""
        return of_upper_halves(self.bias) if self.bias.dtype.kind == "u" else self.bias.astype(np.float64)

    @property
    def row_end(self) -> int:
        """The largest integer of a row."""
        return self.grid.largest * self.grid.fine

    @property
    def row_bits(self) -> int:
        """The bits of a row's integers."""
        return 8 if self.row_end < 2**7 else 16

    @property
    def sum_bits(self) -> int:
        """The width that the sum over features needs: squares of differences are up to (2 row_end)^2 each."""
        return 32 if self.points.shape[1] * (2 * self.row_end) ** 2 < 2**31 else 64


def quantise(
    a: Artefact,
    bits: int,
    limit: float | None = None,
    rows: Array | None = None,
    *,
    typical: Array | None = None,
    fit: bool = True,
    form: Form | None = None,
) -> Quantised:
    """Return the points and coefficients of an artefact as integers of 8 or 16 bits.

    The range is that of the points and of `rows`, raw rows like those to predict, or from -limit to limit. With rows, the
    range of 8 bits is halved as long as outputs on the rows get nearer to the exact ones: a few far points or rows should
    not make all others coarse, and are clipped. Coefficients are fitted on the same rows to reproduce the outputs with the
    rounded points; without `fit` they are only rounded. `typical` rows take the place of rows that are not given, for inner
    products, whose points need not be like rows. The form says how fine rows are.
    """
    if not a.spec.total.integer:
        raise ValueError(f"the {a.kernel} kernel divides feature by feature and has no integer form; export it in float32")
    scaled = _sample_rows(a, typical if rows is None else rows)
    ranged = np.concatenate([a.table, scaled])
    sample = scaled if a.spec.total.inner and scaled.size else ranged
    middle, reach = _range(a, ranged, centred=limit is None)
    if limit is not None and not reach <= limit:
        raise ValueError(
            f"features reach {reach:.6g} after scaling, {reach / limit:.3g} times the limit {limit:.6g}, and would "
            f"saturate; give a limit of at least {reach:.6g}, or none"
        )
    form = form or Form(bits, _largest(bits), finest(bits, a.features))
    wide = limit or form.headroom * reach or 1.0
    tables = _tables(a, form, middle, wide, sample, fit=fit)
    if bits > 8 or rows is None or limit is not None or not scaled.size:
        return tables
    return _narrowed(a, form, tables, sample, scaled, fit=fit)


def _sample_rows(a: Artefact, rows: Array | None) -> Array:
    """Return raw rows after the scaling; none if there are none."""
    if rows is None:
        return a.table[:0]
    return rows if a.scaling is None else a.scaling(rows)


def _tables(a: Artefact, form: Form, middle: Array | float, reach: float, sample: Array, *, fit: bool) -> Quantised:
    """Return the integers for one range."""
    bits = form.bits
    exact, grid, scaling = a, Grid(bits, middle, reach / form.largest, form.fine, form.largest), None
    if bits == 8 and form.short and _has_short_scaling(a, middle, reach):
        a, grid, scaling = _shortened(a, grid)
    coef_bits = 16 if a.coef.size <= CHEAP_COEFFICIENTS * a.table.size else bits
    coef, coef_step = _integers(a.coef, coef_bits, _step(a.coef, coef_bits)), _step(a.coef, coef_bits)
    widths = None if a.widths is None else SmallFloats.of(a.widths, bits)
    bias = as_float32(a.bias, "bias")
    if bits == 8 and a.outputs > 1 and a.spec.total.shift_invariant:
        bias = upper_halves(bias)
        a = replace(a, bias=of_upper_halves(bias))
    if fit and a.size <= FITTED_POINTS:
        coef, coef_step = _fitted(exact, a, grid, widths, sample, coef_bits)
    return Quantised(grid, grid.points(a.table), coef, coef_step, bias, widths, scaling)


def _narrowed(a: Artefact, form: Form, tables: Quantised, sample: Array, rows: Array, *, fit: bool) -> Quantised:
    """Return tables of a narrower range while that lowers the misfit on scaled rows and takes no more bytes."""
    some = rows[:: -(-rows.shape[0] // COMPARED_ROWS)]
    axis = 0 if np.ndim(tables.grid.middle) else None
    low, high, usual = sample.min(axis), sample.max(axis), np.median(rows, axis)
    reach, misfit = tables.grid.step * tables.grid.largest, _misfit(a, tables, some)
    for _ in range(HALVINGS):
        reach /= 2
        # as near to the usual values as the range still covers what it can
        least, most = np.minimum(low + reach, (low + high) / 2), np.maximum(high - reach, (low + high) / 2)
        middle = np.clip(usual, least, most) if a.spec.total.shift_invariant else 0.0
        other = _tables(a, form, middle, reach, sample, fit=fit)
        found = _misfit(a, other, some)
        if not found < (1 - LEAST_SAVED) * misfit or (other.scaling is None) != (tables.scaling is None):
            break
        tables, misfit = other, found
    return tables


def _misfit(a: Artefact, tables: Quantised, scaled: Array) -> float:
    """Return the mean squared difference between the outputs of the tables and the exact ones on scaled rows."""
    grid, widths = tables.grid, None if tables.widths is None else tables.widths.values
    exact = kernel_of(a, a.widths)(scaled, a.table) @ a.coef + a.bias
    rows, points = grid.rounded_rows(_as_in_tables(a, tables, scaled)), grid.middle + grid.step * tables.points
    found = kernel_of(a, widths)(rows, points) @ (tables.coef_step * tables.coef) + tables.bias_values
    return float(np.square(found - exact).mean())


def finest(bits: int, features: int) -> int:
    """Return the steps of a row in each step of the points: as many as sums of 32 bits allow, 1 at least."""
    if bits > 8:
        return 1
    most = np.sqrt(2**31 / features) / (2 * _largest(bits))
    return int(2 ** np.clip(np.ceil(np.log2(most)) - 1, 0, np.log2(FINEST)))


def _has_short_scaling(a: Artefact, middle: Array | float, reach: float) -> bool:
    """Return whether scales and centres may be rounded: those of a distance, near the range, without clipping."""
    if a.scaling is None or a.scaling.clips or not a.spec.total.shift_invariant or not np.ptp(a.scaling.scale):
        return False
    near = bool(np.abs(a.scaling.centre * a.scaling.scale + middle).max() <= FAR * reach)
    low, high = MODERATE
    return near and bool(low <= a.scaling.scale.min() and a.scaling.scale.max() <= high)


def _shortened(a: Artefact, grid: Grid) -> tuple[Artefact, Grid, ShortScaling]:
    """Return nearly the same function with scales of 16 bits, and a grid whose shifts are whole steps."""
    assert a.scaling is not None
    codes = upper_halves(a.scaling.scale * grid.fine / grid.step)
    scale = of_upper_halves(codes) * grid.step / grid.fine
    change, centre = scale / a.scaling.scale, a.scaling.centre * scale
    shifts = np.rint((centre + grid.middle * change) / grid.step).astype(np.int16)
    return (
        replace(a, points=a.table * change, scaling=replace(a.scaling, scale=scale)),
        replace(grid, middle=shifts * grid.step - centre),
        ShortScaling(codes, shifts),
    )


def predicted_alike(a: Artefact, tables: Quantised, rows: Array) -> int:
    """Return on how many rows the integers lead to the same prediction as the artefact."""
    from .runtime import Runtime

    return int(np.count_nonzero(predictions(a, tables, rows) == Runtime(a)(rows)))


def predictions(a: Artefact, tables: Quantised, rows: Array) -> Array:
    """Return what integer tables predict for raw rows."""
    from .runtime import Runtime

    grid, widths = tables.grid, None if tables.widths is None else tables.widths.values
    points, coef = grid.middle + grid.step * tables.points, tables.coef_step * tables.coef
    restored = replace(a, points=points, coef=coef, bias=tables.bias_values, widths=widths, scaling=None)
    scaled = _as_in_tables(a, tables, rows if a.scaling is None else a.scaling(rows))
    found: Array = Runtime(restored)(grid.rounded_rows(scaled))
    return found


def _as_in_tables(a: Artefact, tables: Quantised, scaled: Array) -> Array:
    """Return scaled rows as the rounded scales of the tables give them."""
    if a.scaling is None or tables.scaling is None:
        return scaled
    scale = of_upper_halves(tables.scaling.scales) * tables.grid.step / tables.grid.fine
    return scaled * (scale / a.scaling.scale)


def _largest(bits: int) -> int:
    return 2 ** (bits - 1) - 1


def _integers(values: Array, bits: int, step: float) -> Array:
    """Return values in units of a step, clipped to the range of the integers."""
    return np.clip(np.rint(values / step), -_largest(bits), _largest(bits)).astype(f"i{bits // 8}")


def _range(a: Artefact, sample: Array, *, centred: bool) -> tuple[Array | float, float]:
    """Return the middle of the range, which is 0 unless the kernel ignores shifts, and the largest distance from it.

    Features whose centres are a table already have a middle each.
    """
    each = a.scaling is not None and bool(np.ptp(a.scaling.scale) or np.ptp(a.scaling.centre))
    low, high = (end(sample, axis=0 if each else None) for end in (np.min, np.max))
    middle = (low + high) / 2 if centred and a.spec.total.shift_invariant else 0.0
    return middle, float(np.max(np.maximum(high - middle, middle - low)))


def _fitted(
    exact: Artefact, a: Artefact, grid: Grid, widths: SmallFloats | None, sample: Array, bits: int
) -> tuple[Array, float]:
    """Return integer coefficients, fitted to the exact outputs on the sample with rounded points, and their step."""
    sample = sample[:FITTED_ROWS]
    wanted = kernel_of(exact, exact.widths)(sample, exact.table) @ exact.coef + (exact.bias - a.bias)
    if exact.scaling is not None and a.scaling is not None:
        sample = sample * (a.scaling.scale / exact.scaling.scale)
    K = kernel_of(a, None if widths is None else widths.values)(grid.rounded_rows(sample), grid.rounded_points(a.table))
    return fitted_coefficients(K, wanted, a.coef, bits)


def fitted_coefficients(K: Array, wanted: Array, near: Array, bits: int, most: int | None = None) -> tuple[Array, float]:
    """Return integers of so many bits, fitted to outputs by columns of kernel values, and their step.

    They are near some coefficients, and the sum of the sizes of an output's integers is about `most` at most.
    """
    H = K.T @ K
    ridge = 1e-6 * float(np.trace(H)) / len(H) + np.finfo(float).tiny
    H += ridge * np.eye(len(H))
    coef = np.linalg.solve(H, K.T @ wanted + ridge * near)
    step = _step(coef, bits)
    if bits > 8 and most is not None:
        step *= max(1.0, float(np.abs(coef / step).sum(axis=0).max()) / most)
    return _rounded_in_turn(coef, H, bits, step), step


def _step(coef: Array, bits: int) -> float:
    return (float(np.abs(coef).max()) or 1.0) / _largest(bits)


def _rounded_in_turn(coef: Array, H: Array, bits: int, step: float) -> Array:
    """Return integers q with a small (coef - step q)' H (coef - step q): later coefficients correct earlier rounding.

    This is optimal brain quantisation (Frantar & Alistarh 2022) with a fixed order.
    """
    left, integers = coef.copy(), np.zeros(coef.shape, f"i{bits // 8}")
    # U'U = H^-1 with U = R^-1 and H = R R', both upper: H^-1 itself may have lost its small eigenvalues to rounding
    U = np.linalg.inv(np.linalg.cholesky(H[::-1, ::-1])[::-1, ::-1])
    for i in range(coef.shape[0]):
        integers[i] = _integers(left[i], bits, step)
        left[i:] -= np.outer(U[i, i:], (left[i] - step * integers[i]) / U[i, i])
    return integers


def kernel_of(a: Artefact, widths: Array | None) -> Callable[[Array, Array], Array]:
    """Return the kernel as a function of rows and points that have these widths."""
    from ..kernels import make_kernel

    kernel: Any = make_kernel(a.kernel, **{"gamma": 1.0, "degree": 1, "coef0": 0.0} | dict(a.parameters))  # type: ignore[arg-type]
    return kernel if widths is None else lambda A, B: kernel(A, B, widths)


def warn_where_coarse(a: Artefact, tables: Quantised, like: Array) -> None:
    """Warn if outputs differ much from the exact ones on a subsample of points, or of raw rows `like` those to predict.

    The points of inner products need not be like rows.
    """
    some, grid = _sample_rows(a, like) if a.spec.total.inner and like.size else a.table, tables.grid
    rows, points = some[:: -(-some.shape[0] // 256)], tables.points * grid.step + grid.middle
    exact = kernel_of(a, a.widths)(rows, a.table) @ a.coef
    widths = None if tables.widths is None else tables.widths.values
    coarse = kernel_of(a, widths)(grid.rounded_rows(_as_in_tables(a, tables, rows)), points) @ (
        tables.coef * tables.coef_step
    )
    share = float(np.abs(coarse - exact).max() / max(np.abs(exact).max(), np.finfo(float).tiny))
    if share > NOTABLE:
        warn_user(
            f"int{grid.bits} tables change scores by up to {100 * share:.0f} % of the largest; put the features on one "
            "scale (a Pipeline with a StandardScaler is exported as one), or use more bits",
        )
