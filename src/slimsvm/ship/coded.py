"""Models whose tables are codes of few bits, computed in float32 in one order. Needs NumPy only.

C, JavaScript, images and the runtime hold the same codes and make the same operations in the same order, so they predict
the same labels. Rows are scaled and projected feature by feature, sums over features and over points are one after the
other, and the exponential is a polynomial. Compilers must not fuse multiplications with additions (-ffp-contract=off).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..kernels.spec import IDENTITY, POWER, TANH
from ..rounding import SmallFloats, Table, nearest_upper_halves
from ..scaling import Scaling
from .artefact import Array, Artefact
from .literals import as_float32
from .sparse import check_dense

#: bits of a code by precision
CODE_BITS = {"int4": 4, "int8": 8, "int16": 16}
#: numbers of a block of rows times points
BLOCK = 1 << 20
ONE = np.float32(1)
TERMS: dict[str, Callable[[Array, Array], Array]] = {
    "inner": lambda x, z: x * z,
    "squares": lambda x, z: (x - z) * (x - z),
    "manhattan": lambda x, z: np.abs(x - z),
    "chi_squared": lambda x, z: np.where(x + z != 0, (x - z) * (x - z) / np.where(x + z != 0, x + z, ONE), np.float32(0)),
}


@dataclass(frozen=True)
class Coded:
    """The tables of a model, and its outputs as exported code computes them."""

    a: Artefact  # with the numbers that the tables hold
    points: Table | Array
    coef: Table | Array
    projection: Table | Array | None
    widths: SmallFloats | None
    short_scale: bool = False  # scales are upper halves of floats

    @classmethod
    def of(cls, artefact: Artefact, precision: str) -> Coded:
        """Return the tables of an artefact, rounded to this precision unless it is float32."""
        check_dense(artefact.size, artefact.columns)
        artefact = replace(artefact, points=artefact.table)
        if precision == "float32":
            return cls.plain(artefact.compact())
        a, bits = _weighted(artefact, CODE_BITS[precision]), CODE_BITS[precision]
        short_scale = bits == 4 and a.scaling is not None and not a.scaling.centre.any() and not a.scaling.clips
        if short_scale and a.scaling is not None:
            scale = nearest_upper_halves(a.scaling.scale)
            moved = a.table * (scale / a.scaling.scale) if a.projection is None else a.table
            a = replace(a, points=moved, scaling=replace(a.scaling, scale=scale))
        if bits == 4 and a.outputs > 1:
            a = replace(a, bias=nearest_upper_halves(a.bias))
        projection = None if a.projection is None else Table.of(a.projection, bits)
        points, coef = Table.of(a.table, bits), Table.of(a.coef, bits)
        widths = None if a.widths is None else SmallFloats.of(a.widths, *((8, 4) if bits == 4 else (bits, None)))
        held = replace(a, points=points.values, coef=coef.values, widths=None if widths is None else widths.values)
        held = held if projection is None else replace(held, projection=projection.values)
        return cls(_with_float32(held), points, coef, projection, widths, short_scale)

    @classmethod
    def plain(cls, artefact: Artefact) -> Coded:
        """Return the tables of an artefact in float32."""
        a = _with_float32(artefact)
        matrix = None if a.projection is None else as_float32(a.projection, "projection")
        return cls(a, as_float32(a.table, "points"), as_float32(a.coef, "coefficients"), matrix, None)

    @property
    def bits(self) -> int:
        """The bits of a code; 32 for plain numbers."""
        return self.points.bits if isinstance(self.points, Table) else 32

    @property
    def gamma(self) -> np.float32:
        """Gamma, times the step of the widths."""
        return np.float32(self.a.parameters.get("gamma", 1.0) * (1.0 if self.widths is None else self.widths.step))

    @property
    def width_numbers(self) -> Array | None:
        """The widths as numbers that gamma multiplies."""
        if self.a.widths is None:
            return None
        codes = self.a.widths if self.widths is None else self.widths.values / self.widths.step
        return np.rint(codes).astype(np.float32) if self.widths is not None else codes.astype(np.float32)

    def outputs(self, rows: Array) -> Array:
        """Return the outputs of raw rows, (n, q), in float32."""
        rows = np.asarray(rows, dtype=np.float32)
        size = max(BLOCK // max(self.a.size, self.a.features), 1)
        blocks = [self._outputs(rows[start : start + size]) for start in range(0, len(rows), size)]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.a.outputs), np.float32)

    def _outputs(self, rows: Array) -> Array:
        a, values = self.a, self.values(self.prepared(rows))
        out = np.tile(a.bias.astype(np.float32), (len(rows), 1))
        coef = a.coef.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for j in range(a.size):
                out += values[:, j, None] * coef[j]
        return out

    def prepared(self, rows: Array) -> Array:
        """Return rows scaled and projected."""
        scaling = self.a.scaling
        with np.errstate(over="ignore", invalid="ignore"):
            if scaling is not None:
                rows = (rows - scaling.centre.astype(np.float32)) * scaling.scale.astype(np.float32)
            if scaling is not None and scaling.clips:
                low, high = (_within_float32(end) for end in (scaling.low, scaling.high))
                rows = np.where(rows < low, low, np.where(rows > high, high, rows))
            return rows if self.a.projection is None else _products(rows, self.a.projection.astype(np.float32))

    def values(self, rows: Array) -> Array:
        """Return the kernel values of prepared rows and all points."""
        term, points = TERMS[self.a.spec.total.name], self.a.table.astype(np.float32)
        total = np.zeros((len(rows), len(points)), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(points.shape[1]):
                total += term(rows[:, i, None], points[:, i])
            return self.of_totals(total)

    def of_totals(self, total: Array) -> Array:
        """Return the kernel values of sums over the features."""
        value, gamma, widths = self.a.spec.value, self.gamma, self.width_numbers
        if value is IDENTITY:
            return total
        if value in (POWER, TANH):
            base = gamma * total + np.float32(self.a.parameters["coef0"])
            return tangent(base) if value is TANH else _power(base, int(self.a.parameters["degree"]))
        return exponential((-gamma if widths is None else -gamma * widths) * total)


def exponential(x: Array) -> Array:
    """Return exp(x) in float32, to one part in 4 million: a polynomial about the nearest power of 2."""
    x = np.where(x > -87, np.where(x < 88, x, np.float32(88)), np.float32(-87)).astype(np.float32)
    n = (x * np.float32(1.44269504) + np.where(x < 0, np.float32(-0.5), np.float32(0.5))).astype(np.int32)
    whole = n.astype(np.float32)
    r = (x - whole * np.float32(0.693359375)) - whole * np.float32(-2.12194440e-4)
    p = np.full(r.shape, np.float32(1 / 720))
    for factor in (1 / 120, 1 / 24, 1 / 6, 0.5, 1, 1):
        p = p * r + np.float32(factor)
    return np.asarray(p * ((n + 127) << 23).view(np.float32))


def tangent(x: Array) -> Array:
    """Return tanh(x) in float32."""
    share = exponential(np.float32(-2) * np.abs(x))
    size = (ONE - share) / (ONE + share)
    return np.where(x < 0, -size, size)


def _power(base: Array, degree: int) -> Array:
    """Return powers by squaring, as exported code does."""
    p = np.ones_like(base)
    while degree > 0:
        if degree % 2:
            p = p * base
        base, degree = base * base, degree // 2
    return p


def _products(rows: Array, matrix: Array) -> Array:
    """Return rows times a matrix, summed feature by feature."""
    out = np.zeros((len(rows), matrix.shape[1]), np.float32)
    for i in range(matrix.shape[0]):
        out += rows[:, i, None] * matrix[i]
    return out


def _weighted(a: Artefact, bits: int) -> Artefact:
    """Return the artefact with what tables of codes hold: linear functions as weights, whose codes of 1 are exact."""
    a = replace(a, points=a.table)
    if a.scaling is not None and a.scaling.idle:
        a = replace(a, scaling=None)
    if a.spec.value is not IDENTITY:
        return a.compact() if not a.size else a
    largest = 2**bits - 1
    return replace(a, points=a.coef.T @ a.table / largest, coef=largest * np.eye(a.outputs))


def _with_float32(a: Artefact) -> Artefact:
    """Return the artefact with the numbers that float32 holds."""
    parts = {"points": a.table, "coef": a.coef, "bias": a.bias, "projection": a.projection, "widths": a.widths}
    held = {
        name: as_float32(part, name, each=name == "widths").astype(np.float64)
        for name, part in parts.items()
        if part is not None
    }
    if a.scaling is not None:
        centre, scale = as_float32(a.scaling.centre, "centre"), as_float32(a.scaling.scale, "scale", each=True)
        held["scaling"] = Scaling(centre.astype(np.float64), scale.astype(np.float64), a.scaling.low, a.scaling.high)  # type: ignore[assignment]
    return replace(a, **held)  # type: ignore[arg-type]


def _within_float32(ends: Array) -> Array:
    most = np.finfo(np.float32).max
    return np.clip(ends, -most, most).astype(np.float32)
