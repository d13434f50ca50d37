"""The text of a C model in integers only: `integers.c` with tables and constants in front of it, and `quantise.c`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version

import numpy as np

from ..goals import Decision
from ..kernels.spec import EXP, IDENTITY, POWER
from .artefact import Array
from .c_source import FLASH, OUTPUTS, CSource, c_type
from .integers import Codes, Integers, Line, Rate, halves
from .literals import as_float32, float_literal, table
from .template import LICENCE, filled, source

#: the sum of squares of differences of a row and a point of bytes. AVR multiplies bytes, in a loop for rows of 8 bits, and
#: in one for rows of 16 bits, whose differences have 13
SQUARES = r"""#if defined(__AVR_HAVE_MUL__) && defined(__FLASH) && FEATURES < 256
#define ADD_SQUARES(sum, x, point) do { \
    const RowEntry *row = (x); \
    uint16_t place = (uint16_t)(point); \
    uint8_t left = FEATURES, b; \
    LOOP \
} while (0)
#else
#define ADD_SQUARES(sum, x, point) do { \
    for (int i = 0; i < FEATURES; i++) { \
        const int32_t d = (int32_t)(x)[i] - FINE * (point)[i]; \
        (sum) += (uint32_t)(d * d); \
    } \
} while (0)
#endif"""
LOOPS = {
    8: r"""uint8_t a; \
    __asm__ volatile("1: ld %3, %a1+\n\tlpm %4, Z+\n\tsub %3, %4\n\tbrge 2f\n\tneg %3\n\t2: mul %3, %3\n\t" \
            "add %A0, r0\n\tadc %B0, r1\n\tadc %C0, %D0\n\tdec %5\n\tbrne 1b\n\tclr r1" /* D is 0 */ \
            : "+r"(sum), "+x"(row), "+z"(place), "=&r"(a), "=&r"(b), "+r"(left) : : "r0", "memory");""",
    16: r"""uint16_t a; \
    uint8_t zero; \
    const int8_t finer = FINE; \
    __asm__ volatile("clr %6\n\t1: ld %A3, %a1+\n\tld %B3, %a1+\n\tlpm %4, Z+\n\tmuls %4, %7\n\t" \
            "sub %A3, r0\n\tsbc %B3, r1\n\tbrpl 2f\n\tcom %B3\n\tneg %A3\n\tsbci %B3, 255\n\t" \
            "2: mul %A3, %A3\n\tadd %A0, r0\n\tadc %B0, r1\n\tadc %C0, %6\n\tadc %D0, %6\n\t" \
            "mul %A3, %B3\n\tlsl r0\n\trol r1\n\tadd %B0, r0\n\tadc %C0, r1\n\tadc %D0, %6\n\t" \
            "mul %B3, %B3\n\tadd %C0, r0\n\tadc %D0, r1\n\tdec %5\n\tbrne 1b\n\tclr r1" \
            : "+r"(sum), "+x"(row), "+z"(place), "=&d"(a), "=&d"(b), "+r"(left), "=&r"(zero) : "d"(finer) \
            : "r0", "memory");""",
}
#: s * factor >> 16, of 48 bits
SCALED = r"""#ifdef __AVR_HAVE_MUL__
static inline uint32_t scaled(uint32_t s, uint16_t factor)
{
    uint32_t p;
    uint8_t low;
    __asm__("clr %A0\n\tclr %B0\n\tclr %C0\n\tclr %D0\n\tmul %A2, %A3\n\tmov %1, r1\n\t"
            "mul %A2, %B3\n\tadd %1, r0\n\tadc %A0, r1\n\tmul %B2, %A3\n\tadd %1, r0\n\tadc %A0, r1\n\tadc %B0, %D0\n\t"
            "mul %B2, %B3\n\tadd %A0, r0\n\tadc %B0, r1\n\tmul %C2, %A3\n\tadd %A0, r0\n\tadc %B0, r1\n\tadc %C0, %D0\n\t"
            "mul %C2, %B3\n\tadd %B0, r0\n\tadc %C0, r1\n\tmul %D2, %A3\n\tadd %B0, r0\n\tadc %C0, r1\n\trol %D0\n\t"
            "mul %D2, %B3\n\tadd %C0, r0\n\tadc %D0, r1\n\tclr r1"
            : "=&r"(p), "=&r"(low) : "r"(s), "r"(factor) : "r0");
    return p;
}
#define SCALED(s, factor) scaled(s, factor)
#else
#define SCALED(s, factor) (((s) >> 16) * (factor) + (((s) & 0xffff) * (factor) >> 16))
#endif"""
#: the product of a kernel value, which is not negative, and a coefficient of a byte, added to a sum
ADD_PRODUCT = r"""#ifdef __AVR_HAVE_MUL__
#define ADD_PRODUCT(sum, v, c) do { \
    const int16_t a = (v); \
    const int8_t b = (c); \
    int32_t s = (sum); \
    uint8_t sign; \
    __asm__("mulsu %3, %A2\n\tsbc %1, %1\n\tadd %A0, r0\n\tadc %B0, r1\n\tadc %C0, %1\n\tadc %D0, %1\n\t" \
            "muls %3, %B2\n\tsbc %1, %1\n\tadd %B0, r0\n\tadc %C0, r1\n\tadc %D0, %1\n\tclr r1" \
            : "+r"(s), "=&r"(sign) : "a"(a), "a"(b) : "r0"); \
    (sum) = s; \
} while (0)
#else
#define ADD_PRODUCT(sum, v, c) ((sum) += (int32_t)(v) * (c))
#endif"""


@dataclass(frozen=True)
class IntegerSource(CSource):
    """The texts of one model in integers."""

    held: Integers

    @classmethod
    def of(cls, held: Integers, prefix: str) -> IntegerSource:
        """Return the source of a model."""
        return cls(held.a, prefix, held.precision, None, held)

    @property
    def branches(self) -> dict[str, int | str]:
        """The values of the names in the conditions of the sources."""
        held, a = self.held, self.a
        value = {EXP: "EXP", IDENTITY: "IDENTITY", POWER: "POWER"}.get(a.spec.value, "TANH")
        return {
            "PROJECTED": held.projection is not None,
            "CODED": isinstance(held.points, Codes),
            "BITS": 8 if self.entry_bits == 8 else 16,
            "TERM": a.spec.total.name.upper(),
            "VALUE": value,
            "WIDTHS": a.widths is not None,
            "LEFT": held.value.left if isinstance(held.value, Rate) else 0,
            "BYTE_SQUARES": a.spec.total.name == "squares" and self.points_are_bytes,
            "PLAIN_COEF": isinstance(held.coef, np.ndarray),
            "BYTE_COEF": value == "EXP" and isinstance(held.coef, np.ndarray) and held.coef.itemsize == 1,
            "PAIRS": a.by_pairs,
            "DECISION": "VALUE_ITSELF" if a.decision is Decision.VALUE else a.decision.name,
        }

    @property
    def entry_bits(self) -> int:
        """The bits of the numbers of a row that points are compared with."""
        return 16 if self.held.projection is not None or isinstance(self.held.points, Codes) else self.held.row_bits

    @property
    def points_are_bytes(self) -> bool:
        """Whether rows are compared as they are with points of bytes."""
        held = self.held
        return held.projection is None and not isinstance(held.points, Codes) and int(np.abs(held.points).max()) < 2**7

    @property
    def words(self) -> dict[str, str]:
        """The types, names and expressions of this model."""
        held, a, wide = self.held, self.a, self.a.spec.value is POWER
        name = "scores" if a.decision in OUTPUTS else "outputs"
        parts = self.scaling_parts
        return {
            "RowEntry": self.row_type,
            "Coef": c_type(np.asarray(self.arrays.get("coef", held.bias))),
            "Entry": f"int{np.asarray(self.arrays['points']).itemsize * 8}_t",
            "Place": f"int{self.entry_bits}_t",
            "Distance": "uint8_t" if self.entry_bits == 8 else "uint16_t",
            "Total": "int32_t" if a.spec.total.inner else "uint32_t",
            "Value": "int16_t" if a.spec.value is EXP else "int32_t",
            "Sum": "int64_t" if wide else "int32_t",
            "SUM": "sums" if wide else "out",
            "FINER_POINT": "point[i]" if held.fine == 1 else f"(int16_t)({held.fine} * point[i])",
            "COARSE_PART": "(uint8_t)t >> 4" if held.half_bits == 4 else "t >> HALF & MASK",
            "POINT": _read(held.points, "points", "entry", "i", "j"),
            "COEF": _read(held.coef, "coef", "(uint16_t)(j * OUTPUTS + k)", "k", "j") or "*c++",
            "PROJECTION": self.projection_read,
            "PLACE": "place" if held.projection is not None else "x",
            "WIDTH": ", factors[j]" if a.widths is not None else "",
            "OUTER": "" if name == "scores" else "static",
            "FACTOR_OF": "factor" if a.widths is not None else "FACTOR",
            "outputs": f"{self.prefix}_scores" if name == "scores" else "outputs",
            "Prediction": "int32_t" if a.decision is Decision.VALUE else "int",
            "model_predict": f"{self.prefix}_predict",
            "model_scores": f"{self.prefix}_scores",
            "model_quantise": f"{self.prefix}_quantise",
            "model_value": f"{self.prefix}_value",
            "SCORES": "CLASSES" if a.by_pairs else "OUTPUTS",
            **{key.upper(): f"{key}[i]" if np.ptp(values) else key.upper() for key, values in parts.items()},
        }

    @property
    def row_type(self) -> str:
        """The type of a row's integers."""
        return f"int{self.held.row_bits}_t"

    @property
    def projection_read(self) -> str:
        """The code of an entry of the projection."""
        if self.held.projection is None or self.held.projection.table.bits > 4:
            return "projection[(uint32_t)i * RANK + (uint32_t)r]"
        entry = "((uint32_t)i * RANK + (uint32_t)r)"
        return f"(projection[{entry} / 2] >> {entry} % 2 * 4 & 15)"

    @cached_property
    def scaling_parts(self) -> dict[str, Array]:
        """The centres and scales of a row."""
        rows = self.held.rows
        return {"centre": as_float32(rows.centre, "centre"), "scale": as_float32(rows.scale, "scale", each=True)}

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The constant tables by name."""
        held = self.held
        found: dict[str, Array] = {}
        if held.projection is not None:
            low, step = held.projection.factors
            found |= {"projection": held.projection.table.packed, "projection_low": low, "projection_step": step}
            found |= {"projection_offset": held.projection.offset}
        for name, values in (("points", held.points), ("coef", held.coef)):
            if isinstance(values, Codes):
                found |= {name + end: part for end, part in values.arrays.items()}
            elif values is not None:
                narrow = np.int8 if name == "points" and np.abs(values).max(initial=0) < 2**7 else np.int16
                found |= {name: values.astype(narrow) if name == "points" else values}
        if isinstance(held.value, Rate) and self.a.widths is not None:
            found |= {"factors": held.value.factors.astype(np.uint16)}
        if isinstance(held.value, Rate) or (isinstance(held.value, Line) and self.a.spec.value is not POWER):
            found |= dict(zip(("coarse", "fine"), halves(held.half_bits), strict=True))
        return found | {"bias": held.bias.astype(np.int32)}

    @property
    def numbers(self) -> dict[str, int]:
        """The constants by name."""
        held, a = self.held, self.a
        found = {"FEATURES": a.features, "RANK": a.columns, "POINTS": a.size, "OUTPUTS": a.outputs}
        if a.by_pairs:
            found |= {"CLASSES": a.classes.size, "PAIR_SHIFT": held.pair_shift, "VOTE_BITS": held.vote_bits}
        if "coarse" in self.arrays:
            found |= {"HALF": held.half_bits, "MASK": (1 << held.half_bits) - 1}
        if isinstance(held.value, Rate):
            rate = held.value
            found |= {"LEFT": rate.left, "DOWN": rate.down - 16, "DROP": held.drop}
            found |= {} if a.widths is not None else {"FACTOR": int(rate.factors[0])}
        if isinstance(held.value, Line):
            line = held.value
            found |= {
                "BEFORE": line.before,
                "FACTOR": line.factor,
                "AFTER": line.after,
                "OFFSET": line.offset,
                "MOST": line.most,
            }
            found |= {"DEGREE": int(a.parameters["degree"])} if a.spec.value is POWER else {}
        if held.projection is not None:
            first, second = held.projection.before
            found |= {"SUM_SHIFT": first, "PRODUCT_SHIFT": second, "PROJECTION_SHIFT": held.projection.after}
            found |= {"END": held.projection.end}
        return found

    def text(self) -> str:
        """Return the C source, which has no floating point."""
        lines = ["#include <stddef.h>", "#include <stdint.h>", "", *FLASH]
        lines += [f"#define {key} {f'({value})' if value < 0 else value}" for key, value in self.numbers.items()]
        if self.branches["BYTE_SQUARES"]:
            squares = SQUARES.replace("LOOP", LOOPS[self.entry_bits])
            lines += ["", squares.replace("RowEntry", self.row_type).replace("FINE", str(self.held.fine))]
        lines += ["", ADD_PRODUCT] * bool(self.branches["BYTE_COEF"])
        lines += ["", SCALED] * isinstance(self.held.value, Rate)
        lines += ["", *self.prototypes()]
        code = filled(source("integers.c"), self.branches, self.words)
        return "\n\n".join([self.summary(), "\n".join(lines), self.tables(), code])

    def quantiser(self) -> str:
        """Return the source of the function that makes rows of floats integers."""
        tables = {name: values for name, values in self.scaling_parts.items() if np.ptp(values)}
        constants = {"END": float_literal(self.held.row_end)}
        constants |= {
            name.upper(): float_literal(values[0]) for name, values in self.scaling_parts.items() if name not in tables
        }
        if self.a.decision is Decision.VALUE:
            constants |= {"UNIT": float_literal(self.held.unit), "OFFSET": float_literal(self.held.offset)}
        texts = [
            f"static const float {name}[{values.size}] = {{\n{table(values, 'f')}\n}};" for name, values in tables.items()
        ]
        written = f"Written by slimsvm {version('slimsvm')}; do not edit. {LICENCE}"
        head = f"/* {self.prefix}: rows of floats for {self.prefix}.c. {written} */"
        lines = ["#include <stdint.h>", "", f"#define FEATURES {self.a.features}"]
        lines += [f"#define {key} {value}" for key, value in constants.items()]
        lines += ["", *self.float_prototypes()]
        return "\n\n".join([head, "\n".join(lines), *texts, filled(source("quantise.c"), self.branches, self.words)])

    # What the header and the comment say.

    @property
    def library(self) -> list[str]:
        """No function of the C library."""
        return []

    def float_prototypes(self) -> list[str]:
        """Return the declarations of functions with floats, which are in a file of their own."""
        value = [f"float {self.prefix}_value(int32_t prediction);"] * (self.a.decision is Decision.VALUE)
        return [f"void {self.prefix}_quantise(const float *x, {self.row_type} *row);", *value]

    def dense_prototypes(self) -> list[str]:
        """Return the declarations of functions without floats."""
        returns = "int32_t" if self.a.decision is Decision.VALUE else "int"
        scores = [f"void {self.prefix}_scores(const {self.row_type} *x, int32_t *scores);"] * self.scored
        return [f"{returns} {self.prefix}_predict(const {self.row_type} *x);", *scores]

    def more_functions(self) -> list[str]:
        """Return what makes rows, in words."""
        p, held = self.prefix, self.held
        value = [f"A value is {p}_value(prediction), prediction * {held.unit:.9g} + {held.offset:.9g}."]
        return [
            "",
            f"A row is made of floats by {p}_quantise in {p}_quantise.c: row[i] = round((x[i] - {p.upper()}_CENTRES[i]) *",
            f"{p.upper()}_SCALES[i]), from -{held.row_end} to {held.row_end}; features beyond that range are at its ends.",
            *value * (self.a.decision is Decision.VALUE),
        ]

    def header_includes(self) -> str:
        """Return the headers that the declarations need, and the scales of a row."""
        upper = self.prefix.upper()
        rows = {f"{upper}_{name.upper()}S": values for name, values in self.scaling_parts.items()}
        lines = [f"#define {name} {{ {', '.join(map(float_literal, values.tolist()))} }}" for name, values in rows.items()]
        text = "\n".join([*lines, f"#define {upper}_ROW_END {self.held.row_end}"])
        return f"#include <stdint.h>\n\n/* row[i] = round((x[i] - centre) * scale), from -ROW_END to ROW_END */\n{text}\n"

    def prototypes(self) -> list[str]:
        """Return the declarations of the header."""
        return self.dense_prototypes()

    def header(self) -> str:
        """Return the declarations of both files, and the classes by number."""
        own = super().header()
        last = self.dense_prototypes()[-1]
        return own.replace(last, "\n".join([last, *self.float_prototypes()]))

    @property
    def prepares(self) -> bool:
        """Whether rows are projected first."""
        return self.held.projection is not None

    @property
    def decision_stack(self) -> int:
        """The bytes of arrays of scores, outputs, votes and products of the projection."""
        a = self.a
        outputs = (8 if a.spec.value is POWER else 0) + 4
        return outputs * a.outputs + 4 * (a.by_pairs * 2 * a.classes.size + self.prepares * a.columns)


def _read(values: Array | Codes | None, name: str, entry: str, column: str, row: str) -> str:
    """Return the expression of an integer of a table of codes."""
    if not isinstance(values, Codes):
        return ""
    pair, code = column if values.table.by_column else row, f"({name}[{entry} / 2] >> {entry} % 2 * 4 & 15)"
    return f"(int16_t)({name}_base[{pair}] + {name}_step[{pair}] * {code})"
