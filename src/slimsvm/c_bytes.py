"""The bytes of an exported C model: text and data as `size` reports them, compiled by `gcc -Os` for x86-64.

Constant tables are as long as their numbers, and begin at multiples of 8, 16 or 32 bytes if they have as many. The code's
share depends on a few facts about a model: its kernel, its decision, the loop over its features ... `c_code.json`, made by
`python -m tools.c_code`, has the measured bytes of usual combinations of them. For others it has bytes of each fact and of
each pair of facts, whose sum no measured model exceeds. A test compiles models and compares. So `fit`, `info` and the
benchmarks count alike, and none of them needs a compiler.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import combinations
from math import ceil
from typing import Any

from .goals import Decision, Goal
from .kernels.spec import SPECS
from .metric import Metric

#: bits of a number in the tables of points, by precision
BITS = {"float32": 32, "int16": 16, "int8": 8, "int4": 4}
#: tables of at least so many bytes begin at multiples of so many
ALIGNED = (32, 16, 8)
#: integer exports keep coefficients in 16 bits up to this many coefficients for each coordinate of a point
CHEAP_COEFFICIENTS = 1 / 8
#: loops over fewer features than this are written out by the compiler; others differ by what is left of groups of four
WRITTEN_OUT = 12
#: points as tables of all features are smaller than those of nonzeros only if these are more than this part of the numbers
DENSE = 4

#: bytes of a prepared row on the stack from which on functions stay apart: compilers inline none with a large stack
LARGE_ROW = 256
#: numbers of outputs from which on the code differs
OUTPUTS = (5, 2)
#: the bytes of code that was not measured: more than any budget
UNKNOWN = 1 << 40

#: the bytes of a table, and those of one of its numbers
Table = tuple[int, int]


def total(tables: Sequence[Table]) -> int:
    """Return the bytes of the numbers of tables."""
    return sum(nbytes for nbytes, _ in tables)


def laid_out(tables: Sequence[Table]) -> int:
    """Return the bytes of constant tables with the gaps between them; compilers write the last one first."""
    end = 0
    for nbytes, item in reversed(tables):
        unit = next((least for least in ALIGNED if nbytes >= least), item)
        end = -(-end // unit) * unit + nbytes
    return end


@cache
def _measured() -> dict[str, dict[str, int]]:
    return dict(json.loads(files(__package__).joinpath("c_code.json").read_text(encoding="utf-8")))


def code_bytes(facts: Sequence[str]) -> int:
    """Return the bytes of code of a model with these facts (`code_facts`): hardly ever less than a compiler makes of it.

    A model with a fact that was not measured fits nowhere.
    """
    form, *others = facts
    known = _measured().get(form, {})
    if (whole := known.get(combined(others))) is not None:
        return whole
    return sum(known.get(single, UNKNOWN) for single in others) + sum(known.get(pair, 0) for pair in pairs(others))


def preparation_code(form: str, parts: Sequence[str]) -> int:
    """Return the bytes of code of the preparation of a table, the sum of its parts."""
    known = _measured().get(form, {})
    return sum(known.get(part, UNKNOWN) for part in parts)


def combined(facts: Sequence[str]) -> str:
    """Return the name of several facts together."""
    return ", ".join(facts)


def pairs(facts: Sequence[str]) -> list[str]:
    """Return the names of all pairs of facts."""
    return [combined(pair) for pair in combinations(facts, 2)]


def is_coded(precision: str, *, projected: bool) -> bool:
    """Return whether tables are codes with a low end and a step for each column: of 4 bits, or of projected points."""
    return precision == "int4" or (projected and precision != "float32")


def code_facts(
    *,
    kernel: str,
    precision: str,
    decision: Decision,
    features: int,
    preparation: str,
    widths: bool,
    projected: bool,
    map: str,  # noqa: A002
    sparse: str,
    outputs: int,
) -> list[str]:
    """Return what the length of the code depends on: the form of the tables, and facts.

    `preparation` is what happens to a row before the kernel: "", "constants", "tables", "short" or "clips". `sparse` is the
    layout of sparse points, "" for dense ones.
    """
    coded = is_coded(precision, projected=projected)
    form = f"sparse {precision}" if sparse else f"coded {precision}" if coded else precision
    loop = str(features) if features < WRITTEN_OUT else f"4k+{features % 4}"
    # several values are the outputs, which classes have code behind
    read = Decision.LARGEST if decision is Decision.VALUES else decision
    facts = ["code", kernel, read.name, sparse or loop]
    facts += [preparation] * bool(preparation) + ["widths"] * widths + ["projection"] * projected + [map] * bool(map)
    if read not in (Decision.VALUE, Decision.SIDE, Decision.SIGN):
        facts.append(f"{next((least for least in OUTPUTS if outputs >= least), 1)} outputs")
    on_stack = features * (2 if form in ("int16", "int8") else 4) * bool(preparation or projected)
    return [form, *facts, *["large row"] * (on_stack >= LARGE_ROW and not sparse)]


@dataclass(frozen=True)
class ScalerTables:
    """The C tables of scalers in front of a model: a centre and a scale for each feature, and two limits where they clip.

    With int8 and a kernel of distances, the centre and the scale have 16 bits each if centres are `near` 0 in units of the
    scale. All other numbers have 32 bits.
    """

    features: int = 0
    clips: bool = False
    near: bool = False
    bytes: int = 0  # of the preparation of a table, in place of scalers

    def behind(self, other: ScalerTables) -> ScalerTables:
        """Return the tables of these scalers behind others, which are one table for each number."""
        nbytes = self.bytes + other.bytes
        if not self.features or not other.features:
            return replace(other if not self.features else self, bytes=nbytes)
        return ScalerTables(max(self.features, other.features), self.clips or other.clips, bytes=nbytes)


#: the tables of a model without scalers
NO_SCALER = ScalerTables()


@dataclass(frozen=True)
class Shape:
    """What the C export of a model takes bytes for, except its size and precision.

    Models that learn `factors`, `widths` or a projection to `rank` coordinates have tables of them. Sparse points have
    `nonzeros` numbers in all, in `columns` columns.
    """

    kernel: str
    features: int
    outputs: int
    decision: Decision
    classes: int = 0
    map: str = ""  # to probabilities
    factors: bool = False
    widths: bool = False
    rank: int = 0  # 0: no projection
    scaler: ScalerTables = NO_SCALER
    nonzeros: int | None = None
    columns: int = 0
    density: float = 0.0  # nonzeros of a sparse point, about, where models are not known yet

    @classmethod
    def of(cls, kernel: str, features: int, goal: Goal, **more: Any) -> Shape:
        """Return the shape of models with a goal."""
        return cls(kernel, features, goal.outputs, goal.decision, goal.n_classes, **more)

    def of_model(self, model: Any) -> Shape:
        """Return the shape of an expansion: with its metric, and with its nonzeros if its points are sparse."""
        metric: Metric = model.metric or Metric()
        rank = 0 if metric.projection is None else metric.projection.shape[1]
        parts: dict[str, Any] = {"factors": metric.factors is not None, "widths": metric.widths is not None, "rank": rank}
        if not hasattr(model.points, "indices"):
            return replace(self, **parts, nonzeros=None, density=0.0)
        columns = len(set(model.points.indices.tolist()))
        return replace(self, **parts, nonzeros=max(model.points.nnz, 1), columns=max(columns, 1), density=0.0)

    def bytes(self, size: int, precision: str) -> int:
        """Return the bytes of a model of so many points, at most."""
        if self.density:
            nonzeros = ceil(self.density * size)
            return replace(self, density=0.0, nonzeros=nonzeros, columns=min(self.features, nonzeros)).bytes(
                size, precision
            )
        tables, facts = self._dense(size, precision)
        if self.nonzeros is not None and precision != "int4":
            sparse = self._sparse(size, precision)
            written = DENSE * self.nonzeros > size * self.features and self.kernel != "linear"
            if not written or total(tables) >= total(sparse[0]):
                tables, facts = sparse
        return laid_out(tables) + code_bytes(facts) + self.scaler.bytes

    def code(self, precision: str) -> int:
        """Return the bytes of the code of a model with dense points."""
        return code_bytes(self._facts(precision, self._preparation(precision)[0]))

    # Dense points.

    @property
    def distance(self) -> bool:
        """Whether the kernel is of distances."""
        return SPECS[self.kernel].total.shift_invariant

    def _dense(self, size: int, precision: str) -> tuple[list[Table], list[str]]:
        """Return the tables of dense points, and the facts about the code."""
        points = max(size, 1)
        if self.kernel == "linear":
            points = min(points, self.outputs)  # the sum of all points for each output
        preparation, tables = self._preparation(precision)
        tables = [*tables, *self._numbers(points, precision), *self._map_tables()]
        return tables, self._facts(precision, preparation)

    def _facts(self, precision: str, preparation: str, sparse: str = "") -> list[str]:
        softmax = self.map == "temperature" and self.classes > 2
        return code_facts(
            kernel=self.kernel,
            precision=precision,
            decision=self.decision,
            features=self.rank or self.features,
            preparation=preparation,
            widths=self.widths,
            projected=bool(self.rank),
            map="softmax" if softmax else self.map,
            sparse=sparse,
            outputs=self.outputs,
        )

    def _preparation(self, precision: str) -> tuple[str, list[Table]]:
        """Return what happens to rows before the kernel, and its tables: those of scalers, which hold the factors too."""
        d, integers = self.features, precision in ("int16", "int8")
        if self.scaler.features:
            short = precision == "int8" and self.scaler.near and not self.scaler.clips and self.distance
            if short:
                return "short", [(2 * d, 2), (2 * d, 2)]
            return ("clips", [(4 * d, 4)] * 4) if self.scaler.clips else ("tables", [(4 * d, 4)] * 2)
        if not self.factors:
            return "constants" if integers and not self.rank else "", []
        if precision == "int4":
            return "tables", [(2 * d, 2)]
        if not self.distance:  # float32 points contain the factors; `ship.balance` may need some for integers
            return ("tables", [(4 * d, 4)]) if integers else ("", [])
        if precision == "int8":
            return "short", [(2 * d, 2), (2 * d, 2)]
        return "tables", [(4 * d, 4)] * (2 if integers else 1)

    def _numbers(self, points: int, precision: str) -> list[Table]:
        """Return the tables of points, coefficients, projection, widths and biases."""
        d, q, bits = self.rank or self.features, self.outputs, BITS[precision]
        if is_coded(precision, projected=bool(self.rank)):
            projection = codes(self.features, d, bits) if self.rank else []
            bias = 2 if bits == 4 and q > 1 else 4
            item = max(bits // 8, 1)
            widths = [(points * item, item)] if self.widths else []
            return [*projection, *codes(points, d, bits), *codes(points, q, bits), *widths, (bias * q, bias)]
        cheap = bits < 32 and q <= CHEAP_COEFFICIENTS * d
        coef = 2 if cheap else bits // 8
        bias = 2 if precision == "int8" and q > 1 and self.distance else 4
        projection = [(4 * self.features * self.rank, 4)] if self.rank else []
        widths = [(points * bits // 8, bits // 8)] if self.widths else []
        return [*projection, (points * d * bits // 8, bits // 8), (points * q * coef, coef), *widths, (bias * q, bias)]

    def _map_tables(self) -> list[Table]:
        scores = self.classes if self.classes > 2 else 1
        return [(4 * scores, 4)] * 2 if self.map == "sigmoid" else []

    # Sparse points.

    def _sparse(self, size: int, precision: str) -> tuple[list[Table], list[str]]:
        """Return the tables of sparse points, and the facts about the code."""
        points, q, spec = max(size, 1), self.outputs, SPECS[self.kernel]
        nonzeros = self.nonzeros or 1
        if self.kernel == "linear" and points > q:
            points, nonzeros = q, min(q * self.columns, q * nonzeros)
        listed, ragged, tables = sparse_layout(points, self.features, nonzeros, self.columns, BITS[precision] // 8)
        tables = ([(4 * self.features, 4)] if self.scaler.features else []) + tables
        tables += [] if precision == "float32" else [(4 * points, 4)]
        tables += [(8 * points, 8)] if spec.total.own is not None else []
        tables += [(4 * points * q, 4), *([(4 * points, 4)] if self.widths else []), (4 * q, 4), *self._map_tables()]
        double = spec.total.own is not None
        sparse = sparse_words(listed=listed, ragged=ragged, double=double)
        return tables, self._facts(precision, "tables" if self.scaler.features else "", sparse)


def codes(rows: int, columns: int, bits: int) -> list[Table]:
    """Return the tables of codes of so many bits: with a low end and a step for each column, or row if these are fewer."""
    pair, pairs = 2 if bits == 4 else 4, min(rows, columns)
    return [(-(-rows * columns * bits // 8), max(bits // 8, 1)), (pair * pairs, pair), (pair * pairs, pair)]


@dataclass(frozen=True)
class Room:
    """A limit in bytes: the most, the precisions that tables may have, and the shape of models without a learned metric."""

    bytes: int
    precisions: tuple[str, ...]
    shape: Shape
    count: int | None = None  # the most points that other limits allow
    ranks: tuple[int, ...] = ()  # of projections that models may learn

    def largest(self, most: int) -> int:
        """Return the points up to `most` of the largest model that fits, with or without a projection; 0 if none does."""
        parts = {"factors": False, "widths": True}
        sizes = [self.points(name, most, rank=rank, **parts) for name in self.precisions for rank in self.ranks]
        return max(sizes + [self.points(name, most) for name in self.precisions])

    def points(self, precision: str, most: int, **changes: Any) -> int:
        """Return the points up to `most` that fit, 0 if none does; `changes` are those of the shape, such as rank=8."""
        shape, most = replace(self.shape, **changes), min(most, self.count or most)
        try:
            if shape.bytes(1, precision) > self.bytes:
                return 0
        except KeyError:  # the C export has no such code
            return 0
        return largest_where(lambda size: shape.bytes(size, precision) <= self.bytes, most)

    def bytes_of(self, model: Any) -> int:
        """Return the bytes of an expansion as it is, with its metric, sparse points and precision."""
        return self.shape.of_model(model).bytes(model.size, model.precision)

    def fits(self, model: Any) -> bool:
        """Return whether an expansion is within the limit."""
        return self.bytes_of(model) <= self.bytes


def sparse_words(*, listed: bool, ragged: bool, double: bool) -> str:
    """Return the layout of sparse points in words."""
    return f"{'listed' if listed else 'all'} columns, {'ragged' if ragged else 'full'}{'; double sums' * double}"


def sparse_layout(points: int, features: int, nonzeros: int, columns: int, item: int) -> tuple[bool, bool, list[Table]]:
    """Return the layout of sparse points with the fewest bytes: whether columns are listed, whether ragged, and its tables.

    Columns are those in which a point is nonzero, or all features, which need no list. A column has its nonzeros with the
    points that they belong to, or a number for every point. Numbers have `item` bytes.
    """
    place, start, owner = (smallest_item(largest) for largest in (features - 1, nonzeros, points - 1))
    lists = {True: [(columns * place, place)], False: []}
    layouts = []
    for listed in (True, False):
        used = columns if listed else features
        entries = [((used + 1) * start, start), (nonzeros * owner, owner), (nonzeros * item, item)]
        layouts += [
            (listed, True, lists[listed] + entries),
            (listed, False, [*lists[listed], (used * points * item, item)]),
        ]
    return min(layouts, key=lambda layout: total(layout[2]))


def smallest_item(most: int) -> int:
    """Return the bytes of an unsigned integer that holds numbers up to `most`."""
    return 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4


def largest_where(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest size from 1 to `most` that fits; size 1 fits, and so does any size below one that fits."""
    low, high = 1, 2
    while high <= most and fits(high):
        low, high = high, 2 * high
    high = min(high, most + 1)  # does not fit, or is above `most`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
