"""The text of a C model whose tables are codes of few bits, which C computes as `coded` does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..kernels.spec import TANH
from ..rounding import SmallFloats, Table, upper_halves
from .artefact import Array, Artefact
from .c_source import Cost, CSource
from .coded import CODE_BITS, Coded


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
