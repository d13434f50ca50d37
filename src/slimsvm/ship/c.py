"""C: one C99 source with constant tables and a fixed loop, and a small header beside it.

The source compiles by itself, allocates nothing and prints nothing; most kernels call expf or tanhf of the C library.
Tables are float32, integers of 8 or 16 bits with integer sums over the features, or codes of 4 bits (`c_coded`). Sparse
points are tables of their nonzeros (`c_layout`), and rows may be given by their nonzeros too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..c_bytes import BITS, DENSE
from ..kernels import Matrix, dense
from ..kernels.spec import TANH, spec_of
from ..rounding import SmallFloats, Table, upper_halves
from .artefact import Array, Artefact
from .balance import balanced, typical_rows
from .c_integers import IntegerSource
from .c_learning import LearningSource
from .c_source import Cost, CSource, SparseCSource
from .coded import CODE_BITS, Coded
from .integers import Integers
from .literals import check_float32, identifier
from .quantise import predicted_alike, quantise, warn_where_coarse
from .runtime import IntegerRuntime, Runtime
from .sparse import SparsePoints


@dataclass(frozen=True)
class CodedCSource(CSource):
    """The text of one model with tables of codes."""

    coded: Coded

    @classmethod
    def of(cls, artefact: Artefact, prefix: str, precision: str) -> CodedCSource:
        """Return the source of an artefact with tables of this precision."""
        coded = Coded.of(artefact, precision)
        return cls(coded.a, prefix, precision, None, coded)

    @property
    def bits(self) -> int:
        """The bits of a code."""
        return CODE_BITS[self.precision]

    @property
    def branches(self) -> dict[str, int | str]:
        """The values of the names in the conditions of `model.c`."""
        map_needs = self.map in ("sigmoid", "temperature", "softmax")
        own = {
            "CODED": 1,
            "BITS": self.bits,
            "UPPER_HALVES": self.bits == 4,
            "WIDTHS": "SMALL_FLOATS" if self.coded.widths else 0,
            "EXPONENTIAL": self.a.spec.value.library is not None or map_needs,
            "TANGENT": self.a.spec.value is TANH,
        }
        return super().branches | own

    @property
    def words(self) -> dict[str, str]:
        """The types, names and expressions of this model."""
        words, row = super().words, "row" if self.prepares else "x"
        width = "" if self.coded.widths is None else f", small_float(widths[j], {self.coded.widths.mantissa})"
        return words | {
            "Code": "uint8_t" if self.bits < 16 else "uint16_t",
            "Pair": "uint16_t" if self.bits == 4 else "float",
            "POINT": _read(self.coded.points, "points", "entry", "i", "j"),
            "COEF": (coef := _read(self.coded.coef, "coef", "(uint32_t)(j * OUTPUTS + k)", "k", "j")),
            "COEF_OF": coef,
            "PROJECTION": _read(self.coded.projection, "projection", "(uint32_t)(i * RANK + r)", "r", "i"),
            "LENGTH": "RANK",
            "KERNEL": f"kernel({row}, (uint32_t)j{width})",
            "NEXT": "j++",
            "NEXT_VALUE": "j++",
            "START": "upper_half(bias[k])" if self.short_bias else "bias[k]",
            "SCALE": "upper_half(scale[i])" if self.coded.short_scale else words.get("SCALE", ""),
            "PROBABILITY": words["PROBABILITY"].replace("expf", "exponential"),
        }

    @property
    def value(self) -> str:
        """The kernel value of a sum over the features, as an expression."""
        value = self.a.spec.value.expression.format(exp="exponential", tanh="tangent")
        return value if self.a.widths is None else value.replace("* s", "* width * s")

    @property
    def library(self) -> list[str]:
        """No function of the C library."""
        return []

    @property
    def short_bias(self) -> bool:
        """Whether biases are upper halves of floats."""
        return self.bits == 4 and self.a.outputs > 1

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the kernel; gamma contains the step of the widths."""
        found = super().parameters
        return found | ({"GAMMA": float(self.coded.gamma)} if "GAMMA" in found else {})

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The constant tables by name."""
        coded, found = self.coded, {name: values for name, values in self.scaling_parts.items() if np.ptp(values)}
        if coded.short_scale and self.a.scaling is not None:
            found |= {"scale": upper_halves(self.a.scaling.scale)}
        for name, table in (("projection", coded.projection), ("points", coded.points), ("coef", coded.coef)):
            if isinstance(table, Table):
                pairs = {f"{name}_low": table.low, f"{name}_step": table.step}
                found |= {name: table.packed} | (
                    {each: upper_halves(values) for each, values in pairs.items()} if self.bits == 4 else pairs
                )
        bias = upper_halves(self.a.bias) if self.short_bias else self.a.bias.astype(np.float32)
        widths = {} if coded.widths is None else {"widths": coded.widths.codes}
        return found | widths | {"bias": bias} | self.map_tables

    @property
    def cost(self) -> Cost:
        """Bytes and work."""
        own = super().cost
        return replace(own, multiply_adds=own.multiply_adds + self.a.size * self.a.columns)


def _read(table: Table | Array | SmallFloats | None, name: str, entry: str, column: str, row: str) -> str:
    """Return the expression of a number of a table."""
    if not isinstance(table, Table):
        return ""
    pair = column if table.by_column else row
    return f"number({name}, {entry}, {name}_low[{pair}], {name}_step[{pair}])"


#: the precisions of tables
PRECISIONS = ("float32", "int16", "int8", "int4")


@dataclass(frozen=True)
class CExporter:
    """model.c and model.h, whose functions begin with the name of the file.

    `precision` is float32, int16, int8 or int4; by default that for which the model was made. Integers cover features
    (after scaling) from -limit to limit, or the range of the points and of `rows`, raw rows like those to predict; features
    beyond that range are clipped. Sparse points are tables of their nonzeros, and the integers of such points have a step
    for each point: rows are not rounded or clipped. Nor are they with tables of 4 bits, or behind a projection.

    `integers` writes a source without floating point, for rows of integers, and a second one that makes such rows of floats
    (`integers.py`). Its precision is that of the model, or int8; the range of rows is that of the points, or of `rows`.

    `update` adds a function that learns from a row, for models of trainers that learn row by row (`learning.py`).
    """

    ending: ClassVar[str] = ".c"
    precision: str | None = None
    limit: float | None = None
    rows: Matrix | None = None
    integers: bool = False
    coverage: float | None = None
    update: bool = False

    def __post_init__(self) -> None:
        if self.update and (self.integers or self.limit or self.precision not in (None, "float32")):
            raise ValueError("update=True learns in float32; leave precision=, integers= and limit= out")
        if self.precision is not None and self.precision not in PRECISIONS:
            raise ValueError(f"unknown precision {self.precision!r} of C tables; there are {', '.join(PRECISIONS)}")

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:
        """Return the source and the header, by ending; with integers also the source that makes rows of floats integers."""
        if self.integers:
            whole = IntegerSource.of(self._integers(artefact), identifier(stem))
            texts = {".c": whole.text(), ".h": whole.header(), "_quantise.c": whole.quantiser()}
            return {ending: text.encode() for ending, text in texts.items()}
        if self.update:
            learning = LearningSource.of(artefact.covering(self.coverage), identifier(stem))
            return {".c": learning.text().encode(), ".h": learning.header().encode()}
        source = self._source(artefact.covering(self.coverage), identifier(stem))
        if source.small is not None:
            warn_where_coarse(source.a, source.small, self._rows_like(replace(artefact, points=artefact.table)))
        return {".c": source.text().encode(), ".h": source.header().encode()}

    def _integers(self, artefact: Artefact) -> Integers:
        if self.limit is not None:
            raise ValueError("integers=True has no limit: the range is that of the points, or of rows=")
        if self.coverage is not None:
            raise ValueError("integers=True has no intervals; leave coverage= out, or export without integers")
        return Integers.of(artefact, self.precision, None if self.rows is None else self._rows_like(artefact))

    def cost(self, artefact: Artefact) -> Cost:
        """Return the costs of the exported model."""
        if self.integers:
            return IntegerSource.of(self._integers(artefact), "model").cost
        if self.update:
            return LearningSource.of(artefact, "model").cost
        return self._source(artefact, "model", fit=False).cost

    def predicted_alike(self, artefact: Artefact, rows: Matrix) -> int:
        """Return on how many rows integer tables lead to the artefact's predictions."""
        if self.integers:
            whole = IntegerRuntime(self._integers(artefact))
            return int(np.count_nonzero(whole(dense(rows)) == Runtime(artefact)(rows)))
        source = self._source(artefact, "model")
        if isinstance(source, SparseCSource | CodedCSource):
            held = source.held if isinstance(source, SparseCSource) else source.coded.a
            return int(np.count_nonzero(Runtime(held)(rows) == Runtime(artefact)(rows)))
        rows = dense(rows) if artefact.preparation is None else artefact.preparation(rows)
        return rows.shape[0] if source.small is None else predicted_alike(source.a, source.small, rows)

    def precision_for(self, artefact: Artefact) -> str:
        """Return the precision of the tables of an artefact."""
        precision = self.precision or artefact.precision
        return "int8" if self.integers and precision == "float32" else precision

    def _rows_like(self, artefact: Artefact) -> Array:
        """Return raw rows like those to predict."""
        if self.rows is None:
            return typical_rows(artefact)
        rows = dense(self.rows) if artefact.preparation is None else artefact.preparation(self.rows)
        if rows.ndim != 2 or rows.shape[1] != artefact.features:
            raise ValueError(
                f"rows= is of shape {rows.shape}, and the model has {artefact.features} features; give raw rows like those "
                "to predict, one number for each feature"
            )
        return rows

    def _source(self, artefact: Artefact, prefix: str, *, fit: bool = True) -> CSource:
        """Return the source of dense points, or of sparse ones; with many nonzeros, whichever has the smaller tables."""
        spec_of(artefact.kernel, "the C export")
        artefact.check_rows("the C export", tables=True)
        precision = self.precision_for(artefact)
        if precision == "int4" or (precision != "float32" and artefact.projection is not None):
            if self.limit is not None:
                raise ValueError(
                    f"limit={self.limit:g} is for rows as integers; tables of codes take any row. Leave it out"
                )
            return CodedCSource.of(artefact, prefix, precision)
        if not isinstance(artefact.points, SparsePoints):
            return self._dense_source(artefact, prefix, precision, fit=fit)
        written = DENSE * artefact.points.nonzeros > artefact.size * artefact.features and artefact.kernel != "linear"
        if self.limit is not None and not written:
            raise ValueError(
                f"limit={self.limit:g} is for integer tables of dense points; those of sparse points take any row. "
                "Leave the limit out"
            )
        check_float32(artefact.compact())
        sparse = SparseCSource.of(artefact, prefix, precision)
        if not written:
            return sparse
        dense = self._dense_source(replace(artefact, points=artefact.table), prefix, precision, fit=fit)
        return dense if self.limit is not None or dense.cost.flash < sparse.cost.flash else sparse

    def _dense_source(self, artefact: Artefact, prefix: str, precision: str, *, fit: bool) -> CSource:
        if precision == "float32":
            if self.limit is not None:
                raise ValueError(
                    f"limit={self.limit:g} is for integer tables; give precision='int8', or leave the limit out"
                )
            a, small = artefact.compact(), None
        else:
            like = self._rows_like(artefact)
            a = artefact.compact() if self.limit is not None else balanced(artefact, like)
            typical = like if a.spec.total.inner else None
            rows = None if self.rows is None else like
            small = quantise(a, BITS[precision], self.limit, rows, typical=typical, fit=fit)
        check_float32(a)
        return CSource(a, prefix, precision, small)
