"""Models in integers only: rows, tables, sums, kernel values and decisions, for processors without floating point.

A row has integers of 8 or 16 bits in the units of the points. A distance s becomes a kernel value in three steps: t = s
times a constant, in parts of an octave; 2^-t by two small tables, exact to 0.14 %, or 0.04 % with tables of 16 bits; and a
shift. Python computes here what `integers.c` computes, integer by integer. Only `quantise`, which makes a row, has floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..calibration import Isotonic, Sigmoid
from ..goals import Decision
from ..kernels.spec import EXP, IDENTITY, POWER, SPECS, TANH
from ..rounding import Table
from ..scaling import Scaling
from .artefact import Array, Artefact
from .balance import balanced, typical_rows
from .coded import Coded
from .quantise import Form, finest, fitted_coefficients, kernel_of, quantise
from .sparse import SparsePoints

#: the kernels that integers hold
KERNELS = [name for name, spec in SPECS.items() if spec.total.integer]
PRECISIONS = ("int8", "int16", "int4")
#: bits of a kernel value of 1, and octaves below which it is 0
ONE_BITS, OCTAVES = 15, 16
#: the least factor of a rate; a larger one keeps more digits, and AVR shifts by single bits in more models
LEAST_FACTOR = 2**9
#: sums over points stay below 2^30, and so do biases
SUM_BITS = 30
#: sums of the absolute coefficients of 16 bits, at most
MOST_WEIGHT = 1 << 16
#: units of projected rows in each step of points of 8 bits, which sums over 32 coordinates and more allow
FINE = 16
#: rows on which integers are chosen, at most; rows that are made where none are given; points of models whose
#: coefficients are fitted
KNOWN_ROWS, MADE_ROWS, MOST_FITTED = 4096, 1024, 2048
#: the least share of equal predictions with rows of 8 bits, and the largest error of values in standard deviations;
#: stricter: more models have rows of 16 bits, for which AVR takes twice as long
CLOSE_LABELS, CLOSE_VALUES = 0.9975, 0.02
#: the range of the base of a power, as a multiple of that of the rows that are known
POWER_ROOM = 2.0


@dataclass(frozen=True)
class Codes:
    """Integers base + step code, with a base and a step for each column or row, of a table of 4 bits."""

    table: Table
    base: Array
    step: Array

    @classmethod
    def of(cls, table: Table, unit: float, middle: Array | float = 0.0) -> Codes:
        """Return the numbers of a table, from the middle on, in these units."""
        return cls(
            table, np.rint((table.low - middle) / unit).astype(np.int16), np.rint(table.step / unit).astype(np.int16)
        )

    @property
    def values(self) -> Array:
        """The integers."""
        base, step = (part if self.table.by_column else part[:, None] for part in (self.base, self.step))
        return base.astype(np.int64) + step.astype(np.int64) * self.table.codes

    @property
    def arrays(self) -> dict[str, Array]:
        """The tables by the ends of their names."""
        return {"": self.table.packed, "_base": self.base, "_step": self.step}


@dataclass(frozen=True)
class Rate:
    """t = (s << left) * factor >> down, in parts of an octave, with one factor of 16 bits or one for each point."""

    left: int
    factors: Array
    down: int
    half_bits: int  # of the fraction of an octave, in each of the two tables

    @classmethod
    def of(cls, rates: Array, half_bits: int) -> Rate:
        """Return the constants for t = rate s, with a last shift by whole bytes where enough bits of a factor are left."""
        most = 15 - int(np.floor(np.log2(rates.max())))
        left = max(16 - most, 0)
        down = most + left
        down = down // 8 * 8 if rates.min() * 2.0 ** (down // 8 * 8 - left) >= LEAST_FACTOR else down
        down = min(down, 47)
        factors = np.clip(np.rint(rates * 2.0 ** (down - left)), 1, 2**16 - 1)
        return cls(left, factors.astype(np.int64), down, half_bits)

    def __call__(self, s: Array) -> Array:
        """Return t for sums, capped where 2^-t is 0."""
        t = (np.minimum(s, (1 << (32 - self.left)) - 1) << self.left) * self.factors >> self.down
        return np.where(s >> (32 - self.left), OCTAVES << 2 * self.half_bits, t)


def halves(half_bits: int) -> tuple[Array, Array]:
    """Return 2^-i in parts of the first and of the second half of an octave's fraction, in units of 2^-15.

    A number of the second half is in the middle of its part, since t is rounded down.
    """
    steps = np.arange(1 << half_bits)
    parts = steps / (1 << half_bits), (steps + 0.5) / (1 << 2 * half_bits)
    return tuple(np.rint(2.0 ** (ONE_BITS - part)).astype(np.uint16) for part in parts)  # type: ignore[return-value]


def power_of_half(t: Array, half_bits: int) -> Array:
    """Return 2^-t in units of 2^-15, for t in parts of an octave."""
    coarse, fine = (part.astype(np.int64) for part in halves(half_bits))
    mask, octaves = (1 << half_bits) - 1, np.minimum(t >> 2 * half_bits, OCTAVES)
    return (coarse[t >> half_bits & mask] * fine[t & mask] >> ONE_BITS) >> octaves


@dataclass(frozen=True)
class Line:
    """factor s + offset in fixed point: ((s >> before) * factor >> after) + offset, saturated to +-most."""

    before: int
    factor: int
    after: int
    offset: int
    most: int

    @classmethod
    def of(cls, factor: float, offset: float, largest: int, most: int) -> Line:
        """Return the constants for sums up to `largest`."""
        before = max(int(largest).bit_length() - 15, 0)
        scaled = factor * 2.0**before
        after = int(np.clip(14 - np.floor(np.log2(scaled or 1.0)), 0, 31))
        return cls(before, int(np.rint(scaled * 2.0**after)), after, int(np.clip(np.rint(offset), -most, most)), most)

    def __call__(self, s: Array) -> Array:
        """Return the values for sums."""
        return np.clip(((s >> self.before) * self.factor >> self.after) + self.offset, -self.most, self.most)


@dataclass(frozen=True)
class Projection:
    """Projected coordinates: base + (step_of_sums sums + step_of_products products) with shifts, of rows times codes."""

    table: Table
    before: tuple[int, int]  # shifts of the sum of a row, and of its products
    factors: tuple[Array, Array]
    after: int
    offset: Array
    end: int

    @classmethod
    def of(cls, table: Table, row_unit: float, base: Array, units: Array, ends: tuple[int, int]) -> Projection:
        """Return the projection of rows of whole `row_unit`s into whole units of each column, from a base on."""
        d, row_end, end = table.codes.shape[0], *ends
        before = tuple(max((d * row_end * most).bit_length() - 15, 0) for most in (1, 2**table.bits - 1))
        parts = zip((table.low, table.step), before, strict=True)
        real = [part.astype(np.float64) * row_unit / units * 2.0**shift for part, shift in parts]
        largest = max(float(np.abs(part).max()) for part in real) or 1.0
        after = int(np.clip(14 - np.floor(np.log2(largest)), 0, 31))
        factors = tuple(np.clip(np.rint(part * 2.0**after), -(2**15) + 1, 2**15 - 1).astype(np.int16) for part in real)
        return cls(table, before, factors, after, np.rint(base / units).astype(np.int32), end)

    def __call__(self, rows: Array) -> Array:
        """Return the coordinates of integer rows."""
        sums, products = rows.sum(axis=1, keepdims=True), rows @ self.table.codes.astype(np.int64)
        (low, step), (first, second) = (part.astype(np.int64) for part in self.factors), self.before
        moved = ((sums >> first) * low + (products >> second) * step) >> self.after
        return np.clip(moved + self.offset, -self.end, self.end)


@dataclass(frozen=True)
class Integers:
    """All integers of a model, and its outputs, scores and predictions from them."""

    a: Artefact
    precision: str
    rows: Scaling  # of raw features to units of the integers
    row_end: int
    fine: int  # units of a row in each step of the points
    points: Array | Codes
    projection: Projection | None
    value: Rate | Line | None  # None: sums are outputs
    coef: Array | Codes | None
    drop: int  # bits by which kernel values are shortened
    bias: Array  # int32
    unit: float  # of the outputs
    offset: float = 0.0  # added to a value

    @property
    def row_bits(self) -> int:
        """The bits of a row's integers."""
        return 8 if self.row_end < 2**7 else 16

    @property
    def half_bits(self) -> int:
        """The bits of each of the two tables of powers."""
        return 5 if self.precision == "int16" else 4

    def quantise(self, rows: Array) -> Array:
        """Return raw rows as integers; features beyond the range are at its ends, and NaN is at the lower one."""
        end = np.float32(self.row_end)
        with np.errstate(over="ignore", invalid="ignore"):
            t = (np.asarray(rows, np.float32) - self.rows.centre.astype(np.float32)) * self.rows.scale.astype(np.float32)
        t = np.where(t > -end, np.where(t > end, end, t), -end).astype(np.float32)
        return (t + (end + np.float32(0.5))).astype(np.int32) - self.row_end

    def outputs(self, rows: Array) -> Array:
        """Return the outputs of integer rows, (n, q)."""
        rows = np.asarray(rows, np.int64)
        some = max((1 << 18) // max(self.a.size, 1), 1)
        return np.concatenate([self._outputs(rows[at : at + some]) for at in range(0, max(len(rows), 1), some)])

    def _outputs(self, rows: Array) -> Array:
        s = self.sums(rows)
        if self.value is None:
            return s + self.bias
        wide = self.a.spec.value is POWER
        return (self.values(s) @ _values(self.coef) >> (2 if wide else 0) * 8) + self.bias

    def sums(self, rows: Array) -> Array:
        """Return the sums over the features of integer rows and points; float64 holds sums below 2^53."""
        x = (rows if self.projection is None else self.projection(rows)).astype(np.float64)
        z = (_values(self.points) * self.fine).astype(np.float64)
        name = self.a.spec.total.name
        if name == "inner":
            s = x @ z.T
        elif name == "squares":
            s = np.square(x).sum(axis=1)[:, None] + np.square(z).sum(axis=1) - 2 * (x @ z.T)
        else:
            s = np.zeros((len(x), len(z)))
            for i in range(z.shape[1]):
                s += np.abs(x[:, i, None] - z[:, i])
        return s.astype(np.int64)

    def values(self, s: Array) -> Array:
        """Return kernel values of sums: of 15 bits less `drop`, or of 30 bits for powers."""
        assert self.value is not None
        t = self.value(s)
        if isinstance(self.value, Rate):
            return power_of_half(t, self.half_bits) >> self.drop
        if self.a.spec.value is POWER:
            return _power(t, int(self.a.parameters["degree"]))
        share = power_of_half(np.abs(t), self.half_bits)  # tanh u = (1 - exp(-2 |u|)) / (1 + exp(-2 |u|))
        size = ((1 << ONE_BITS) - share << 14) // ((1 << ONE_BITS) + share)
        return np.where(t < 0, -size, size)

    def scores(self, rows: Array) -> Array:
        """Return integer scores of integer rows, the largest of which wins: outputs, or votes above sums of outputs."""
        outputs = self.outputs(rows)
        if not self.a.by_pairs:
            return outputs
        votes, confidence = self._tally(outputs)
        scores = (votes << self.vote_bits) + (confidence >> 32 - self.vote_bits)
        if self.a.decision is Decision.DAG:
            scores[np.arange(len(scores)), self.a.goal.decode(outputs)] += self.a.classes.size << self.vote_bits
        return scores

    @property
    def vote_bits(self) -> int:
        """The bits of a score below those of its votes."""
        return 30 - (2 * self.a.classes.size).bit_length()

    @property
    def pair_shift(self) -> int:
        """The shift of outputs in sums over pairs."""
        return int(self.a.classes.size).bit_length()

    def _tally(self, outputs: Array) -> tuple[Array, Array]:
        k = self.a.classes.size
        votes, confidence = np.zeros((2, len(outputs), k), np.int64)
        for pair, (i, j) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
            f = outputs[:, pair]
            votes[:, i] += f > 0
            votes[:, j] += f <= 0
            confidence[:, i] += f >> self.pair_shift
            confidence[:, j] -= f >> self.pair_shift
        return votes, confidence

    def predict(self, rows: Array) -> Array:
        """Return the predictions of integer rows: numbers of classes, +1 or -1, or values in units of the outputs."""
        if self.a.decision is Decision.SCORED_VOTES:
            return self.scores(rows).argmax(axis=1)
        outputs = self.outputs(rows)
        if self.a.decision is Decision.VOTES:
            return self._tally(outputs)[0].argmax(axis=1)
        if self.a.decision is Decision.VALUE:
            return outputs[:, 0]
        if self.a.decision is Decision.DAG:
            return self.a.goal.decode(outputs.astype(np.float64))
        return outputs.argmax(axis=1) if outputs.shape[1] > 1 else _side(self.a.decision, outputs[:, 0])

    @classmethod
    def of(cls, artefact: Artefact, precision: str | None = None, rows: Array | None = None) -> Integers:
        """Return a model in integers of this precision, by default its own or int8.

        Rows are like those to predict; without them, the range of a feature is that in training, or else of the points.
        Rows of 8 bits go with points of 8 bits, unless they change too many predictions: then rows have 16 bits.
        """
        precision = precision or (artefact.precision if artefact.precision != "float32" else "int8")
        artefact.check_one_target("code of integers only")
        _check(artefact, precision)
        known, a = _known_rows(artefact, rows), _calibrated(artefact)
        offset = float(a.bias[0]) if a.decision is Decision.VALUE else 0.0
        a = replace(a, bias=a.bias * 0.0, calibration=None) if offset else replace(a, calibration=None)
        a = replace(a, points=a.coef.T @ a.table, coef=np.eye(a.outputs)) if a.spec.value is IDENTITY else a
        given = rows is not None or artefact.ranges is not None
        wanted = kernel_of(a, a.widths)(a.coordinates(known), a.table) @ a.coef + a.bias
        made = _fitted(_made(a, precision, known, offset, given=given, fine=1), known, wanted)
        fine = finest(8, a.columns)
        if precision != "int8" or a.projection is not None or fine == 1 or _is_close(made, known, wanted):
            return made
        return _fitted(_made(a, precision, known, offset, given=given, fine=fine), known, wanted)


def _is_close(made: Integers, known: Array, wanted: Array) -> bool:
    """Return whether the predictions of rows are nearly those of the exact outputs."""
    found = made.outputs(made.quantise(known))
    if made.a.decision is Decision.VALUE:
        return bool(np.square(found * made.unit - wanted).mean() <= (CLOSE_VALUES * wanted.std()) ** 2)
    alike = made.a.goal.decode(found.astype(np.float64)) == made.a.goal.decode(wanted)
    return bool(alike.mean() >= CLOSE_LABELS)


def _fitted(made: Integers, known: Array, wanted: Array) -> Integers:
    """Return the integers with coefficients fitted to the exact outputs, by the kernel values that integers give."""
    fits = made.a.spec.value in (EXP, TANH) and made.a.size <= MOST_FITTED
    if not fits or not isinstance(made.coef, np.ndarray):
        return made
    sums, bits, bias = made.sums(made.quantise(known)), 8 * made.coef.itemsize, made.bias * made.unit
    near = made.coef * made.unit
    for _ in range(ONE_BITS):
        K = made.values(sums).astype(np.float64)
        coef, step = fitted_coefficients(K, wanted - bias, near, bits, MOST_WEIGHT)
        drop = _drop(coef) if isinstance(made.value, Rate) else made.drop
        made = replace(made, coef=coef, unit=step, bias=_rounded_bias(bias, step))
        if drop <= made.drop:
            break
        near, made = near * 2.0 ** (drop - made.drop), replace(made, drop=drop)
    return made


def _rounded_bias(bias: Array, unit: float) -> Array:
    return np.clip(np.rint(bias / unit), -(2**SUM_BITS), 2**SUM_BITS).astype(np.int64)


def _drop(coef: Array) -> int:
    """Return the bits by which kernel values are shortened, so that sums of them times coefficients stay within 32 bits."""
    return max(int(np.abs(coef.astype(np.int64)).sum(axis=0).max()).bit_length() + ONE_BITS - SUM_BITS, 1)


def _made(a: Artefact, precision: str, known: Array, offset: float, *, given: bool, fine: int) -> Integers:
    """Return the integers of a model whose rows are like these, with so many units of a row in each step of its points."""
    bits = 8 if precision == "int8" else 16
    coded = Coded.of(a, "int4") if precision == "int4" else None
    a = a if coded is None else coded.a
    largest = 127 if bits == 8 else _largest(a)
    fine = FINE if bits == 8 and a.projection is not None else fine
    form = Form(bits, largest, fine, short=False, wide=False)
    flat = replace(a, projection=None, scaling=None) if a.projection is not None else a
    prepared = a.coordinates(known) if a.projection is not None else known
    b = balanced(flat, prepared) if coded is None else flat
    fits = a.spec.value not in (IDENTITY, POWER)
    sample = prepared if given else None
    small = quantise(b, bits, None, sample, typical=prepared, fit=fits and coded is None, form=form)
    grid, unit_of_rows = small.grid, small.grid.step / fine
    units = Scaling.affine(np.full(b.features, grid.middle), np.full(b.features, fine / grid.step))
    to_units = units if b.scaling is None else b.scaling.then(units)
    projection, row_end = None, largest * fine
    if a.projection is not None:
        scale = np.ones(a.columns) if b.scaling is None else b.scaling.scale
        row_end = 127 if precision != "int16" else _row_end(a)
        to_units, projection = _projected(a, coded, known, unit_of_rows / scale, grid.middle, (row_end, largest * fine))
    points = small.points.astype(np.int64)
    table = (
        points if coded is None or not isinstance(coded.points, Table) else Codes.of(coded.points, grid.step, grid.middle)
    )
    value, sizes = _value(b, _values(table) * fine, unit_of_rows, largest * fine, prepared, precision)
    if value is None:
        unit = unit_of_rows**2
        bias = _rounded_bias(b.bias, unit)
        return Integers(a, precision, to_units, row_end, fine, table, projection, None, None, 0, bias, unit, offset)
    coef, unit = _coefficients(small.coef, small.coef_step, coded)
    drop = _drop(_values(coef)) if isinstance(value, Rate) else 0
    unit = unit * (2.0 ** (drop - ONE_BITS) if isinstance(value, Rate) else sizes * 2.0**-14)
    bias = _rounded_bias(b.bias, unit)
    return Integers(a, precision, to_units, row_end, fine, table, projection, value, coef, drop, bias, unit, offset)


def _value(
    b: Artefact, points: Array, step: float, largest: int, prepared: Array, precision: str
) -> tuple[Rate | Line | None, float]:
    """Return how sums become kernel values, and the size of a kernel value of 1."""
    half_bits, spec = (5 if precision == "int16" else 4), b.spec
    if spec.value is IDENTITY:
        return None, 1.0
    gamma = b.parameters["gamma"] * step**spec.total.power
    if spec.value is EXP:
        rates = gamma * math.log2(math.e) * (1 << 2 * half_bits) * (np.ones(1) if b.widths is None else b.widths)
        return Rate.of(np.asarray(rates), half_bits), 1.0
    most_sum = points.shape[1] * largest * int(np.abs(points).max() or 1)
    if spec.value is POWER:
        rows = prepared if b.scaling is None else b.scaling(prepared)
        known = np.abs(b.parameters["gamma"] * rows @ b.table.T + b.parameters["coef0"]).max(initial=1e-9)
        base = POWER_ROOM * float(known)
        unit = (1 << ONE_BITS) / base
        line = Line.of(gamma * unit, b.parameters["coef0"] * unit, most_sum, (1 << ONE_BITS) - 1)
        return line, base ** int(b.parameters["degree"])
    unit = 2 * math.log2(math.e) * (1 << 2 * half_bits)
    return Line.of(gamma * unit, b.parameters["coef0"] * unit, most_sum, (OCTAVES << 2 * half_bits) - 1), 1.0


def _coefficients(coef: Array, step: float, coded: Coded | None) -> tuple[Array | Codes, float]:
    """Return integer coefficients whose sums of kernel values stay within 32 bits, and their unit."""
    if coded is not None and isinstance(coded.coef, Table):
        values = coded.coef.values.astype(np.float64)
        unit = max(float(np.abs(values).sum(axis=0).max()) / MOST_WEIGHT, float(np.abs(values).max()) / 2**14) or 1.0
        return Codes.of(coded.coef, unit), unit
    whole, total = coef.astype(np.int64), int(np.abs(coef.astype(np.int64)).sum(axis=0).max())
    if coef.itemsize == 1 or total <= MOST_WEIGHT:
        return whole.astype(coef.dtype), step
    return np.rint(whole * (MOST_WEIGHT / total)).astype(coef.dtype), step * total / MOST_WEIGHT


def _projected(
    a: Artefact, coded: Coded | None, known: Array, units: Array, middle: Array | float, ends: tuple[int, int]
) -> tuple[Scaling, Projection]:
    """Return the map of raw rows to integers, and the projection of those."""
    scaled = known if a.scaling is None else a.scaling(known)
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    middles = (low + high) / 2
    row_unit = float(np.max(high - middles)) / ends[0] or 1.0
    table = coded.projection if coded is not None else Table.of(a.projection, 8)  # type: ignore[arg-type]
    assert isinstance(table, Table)
    own = Scaling.affine(middles, np.full(a.features, 1 / row_unit))
    to_units = own if a.scaling is None else a.scaling.then(own)
    return to_units, Projection.of(table, row_unit, middles @ a.projection - middle, units, ends)


def _check(a: Artefact, precision: str) -> None:
    """Raise ValueError for what integers cannot hold, by its name."""
    if a.kernel not in KERNELS:
        raise ValueError(
            f"integers cannot hold the {a.kernel} kernel, which divides feature by feature; they hold {KERNELS}"
        )
    if precision not in PRECISIONS:
        raise ValueError(f"integers have the precisions {list(PRECISIONS)}, not {precision!r}")
    a.check_rows("an export in integers")
    if isinstance(a.points, SparsePoints):
        raise ValueError("integers are for dense points, and this model has sparse ones; train it on dense rows")
    if a.scaling is not None and a.scaling.clips:
        raise ValueError(
            "integers hold linear scaling only, and this Pipeline clips features: take clip=False, since rows beyond the "
            "range of the integers are clipped anyway"
        )


def _calibrated(a: Artefact) -> Artefact:
    """Return the artefact whose outputs lead to the classes of the largest probability."""
    map_ = a.calibration
    if map_ is None or map_.name == "temperature":
        return a
    if isinstance(map_, Sigmoid) and not a.by_pairs:
        return replace(a, coef=a.coef * map_.slope, bias=a.bias * map_.slope + map_.shift)
    if isinstance(map_, Isotonic) and a.decision is Decision.SIGN:
        above = np.flatnonzero(map_.values > 0.5)
        if not above.size or not above[0]:
            return replace(a, coef=0 * a.coef, bias=np.array([1.0 if above.size else -1.0]))
        at = slice(above[0] - 1, above[0] + 1)
        return replace(a, bias=a.bias - np.interp(0.5, map_.values[at], map_.scores[at]))
    raise ValueError(
        f"integers have no {map_.name} probabilities of {a.classes.size} classes, which decide what is predicted; fit the "
        "model with calibration='temperature' or None"
    )


def _known_rows(a: Artefact, rows: Array | None) -> Array:
    """Return raw rows like those to predict: those given, or made ones."""
    if rows is not None:
        return _some(np.asarray(rows, dtype=np.float64))
    if a.ranges is None:
        if a.projection is not None:
            raise ValueError(
                "the range of the features is not known, since points are behind a projection; give rows=, some rows like "
                "those to predict"
            )
        return typical_rows(a)
    rng, (low, high) = np.random.default_rng(0), a.ranges
    some, d = _rows_of_points(a), a.features
    # points with one feature at an end of its range, and rows between two points
    ends = some[rng.integers(len(some), size=2 * d)]
    ends[np.arange(2 * d), np.tile(np.arange(d), 2)] = a.ranges.ravel()
    first, second = some[rng.integers(len(some), size=(2, MADE_ROWS))]
    between = first + rng.uniform(0, 0.5, (MADE_ROWS, 1)) * (second - first)
    return np.clip(np.concatenate([some, ends, between]), low, high)


def _some(rows: Array) -> Array:
    """Return rows by chance, for rows may be in the order of time, and those at the ends of the ranges."""
    if len(rows) <= KNOWN_ROWS:
        return rows
    chosen = np.random.default_rng(0).choice(len(rows), KNOWN_ROWS, replace=False)
    return rows[np.unique(np.concatenate([chosen, rows.argmin(axis=0), rows.argmax(axis=0)]))]


def _rows_of_points(a: Artefact) -> Array:
    """Return the raw rows that are the points; behind a projection, those next to the middle of the ranges."""
    if a.projection is None:
        return typical_rows(a)
    assert a.ranges is not None
    middle = a.ranges.mean(axis=0) if a.scaling is None else a.scaling(a.ranges).mean(axis=0)
    scaled = middle + (a.table - middle @ a.projection) @ np.linalg.pinv(a.projection)
    return scaled if a.scaling is None else scaled / a.scaling.scale + a.scaling.centre


def _largest(a: Artefact) -> int:
    """Return the largest integer of 16 bits whose sums over the features stay below 2^31, and differences below 2^15."""
    most = {"inner": np.sqrt(2.0**30 / a.columns), "squares": np.sqrt(2.0**30 / a.columns) / 2, "manhattan": 2.0**14}
    return int(min(most[a.spec.total.name], 2**14 - 1))


def _row_end(a: Artefact) -> int:
    return int(min(2**14 - 1, 2**30 // (a.features * 255)))


def _values(table: Any) -> Array:
    return table.values if isinstance(table, Codes) else np.asarray(table, dtype=np.int64)


def _power(base: Array, degree: int) -> Array:
    p = np.full(base.shape, 1 << 30, np.int64)
    for _ in range(degree):
        p = p * base >> ONE_BITS
    return p


def _side(decision: Decision, outputs: Array) -> Array:
    return np.where(outputs >= 0, 1, -1) if decision is Decision.SIDE else (outputs > 0).astype(np.int64)
