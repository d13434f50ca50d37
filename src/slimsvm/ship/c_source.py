"""The text of a C model: `model.c` with tables and constants in front of it, its header, and its costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from ..c_bytes import BITS, Table, code_bytes, code_facts, laid_out, sparse_words, total
from ..calibration import LEAST
from ..goals import Decision
from ..kernels.spec import POWER
from ..scaling import Scaling
from ..tables.code import c_code_of, c_tables
from .artefact import Array, Artefact
from .literals import as_float32, c_string, class_names, float_literal, label_literals, listing, table
from .preparation_c import CTable
from .quantise import Quantised
from .sparse import Layout, SparsePoints, layout_of, needs_double, own_sums, rounded
from .template import LICENCE, filled, source

#: tables of an AVR stay in flash where its compiler can read them there (-std=gnu99), and need no RAM
FLASH = ["#ifdef __FLASH", "#define FLASH __flash", "#else", "#define FLASH", "#endif", ""]
#: the arguments of functions of a sparse row
ENTRIES = "const uint32_t *index, const float *value, size_t count"
#: what predict and scores return, in words: by how outputs become a prediction
CLASS, A_SCORE_EACH = "the number of the class of a row", "a score for each class, the largest wins"
PREDICTIONS = {
    Decision.VALUE: "the value of a row",
    Decision.VALUES: "the value of each target",
    Decision.SIDE: "1 for a row like the training rows, -1 for a novel one",
}
SCORES = {
    Decision.SIGN: "one score, above 0 for class 1",
    Decision.SIDE: "one score, below 0 for novel rows",
}
#: the function that outputs are the result of
OUTPUTS = dict.fromkeys((Decision.SIGN, Decision.LARGEST, Decision.SIDE), "scores") | {Decision.VALUES: "predict"}
#: what predict returns for a sparse row that is not valid; others return -1
INVALID = {Decision.VALUE: "NAN", Decision.SIDE: "0"}
#: the probability of score k, by the kind of map; "softmax" is the temperature of three classes or more
LOGISTIC = "1 / (1 + expf(-({})))"
PROBABILITIES = {
    "sigmoid": LOGISTIC.format("slope[k] * scores[k] + shift[k]"),
    "isotonic": "curve(scores[k], k)",
    "temperature": LOGISTIC.format("scores[k] / TEMPERATURE"),
    "softmax": "expf((scores[k] - top) / TEMPERATURE)",
}
#: the tables of the maps: their names in C by those of the fields
MAP_TABLES = {
    "sigmoid": {"slope": "slope", "shift": "shift"},
    "isotonic": {"scores": "knot_scores", "values": "knot_values", "starts": "knot_starts"},
}


@dataclass(frozen=True)
class Cost:
    """The costs of a C model: tables, facts about its code (`c_bytes`), bytes on the stack, multiply-adds a prediction."""

    tables: tuple[Table, ...]
    facts: tuple[str, ...]
    ram: int
    multiply_adds: int
    more: int = 0  # bytes of the code of a table's preparation

    @property
    def flash(self) -> int:
        """The bytes of the tables."""
        return total(self.tables)

    @property
    def bytes(self) -> int:
        """The bytes of text and data, compiled by `gcc -Os` for x86-64."""
        return laid_out(self.tables) + code_bytes(self.facts) + self.more


@dataclass(frozen=True)
class CSource:
    """The text of one model with dense points."""

    a: Artefact
    prefix: str
    precision: str
    small: Quantised | None  # the integer tables

    def text(self) -> str:
        """Return the C source."""
        pieces = [self.summary(), self.constants(), "\n".join(self.prototypes()), self.tables()]
        code = filled(source("model.c"), self.branches, self.words)
        if self.a.interval is not None:
            code += "\n" + self.interval_function(self.a.interval)
        if self.prepared is not None:
            pieces.insert(2, self.prepared.declarations())
            code += "\n" + self.prepared.source(self.raw_functions())
        return "\n\n".join([*pieces, code])

    @cached_property
    def prepared(self) -> CTable | None:
        """The rows of a table and their preparation, where the model has one."""
        return None if self.a.preparation is None else CTable(self.a.preparation, self.prefix, self.a.features)

    def interval_function(self, reach: float) -> str:
        """Return the function that writes both ends of an interval."""
        suffix = "" if self.prepared is None else "_prepared"
        return f"""void {self.prefix}_interval{suffix}(const float *x, float *interval)
{{
    const float value = {self.prefix}_predict{suffix}(x);
    interval[0] = value - {float_literal(reach)};
    interval[1] = value + {float_literal(reach)};
}}
"""

    def raw_functions(self) -> list[tuple[str, str, str]]:
        """Return the type, the name and the output of each function of a row."""
        if self.several:
            return [("void", "predict", "values")]
        names = ["scores"] * self.scored + ["proba"] * bool(self.map) + ["interval"] * (self.a.interval is not None)
        return [(self.returns, "predict", ""), *(("void", name, name) for name in names)]

    @property
    def several(self) -> bool:
        """Whether predict writes the values of several targets."""
        return self.a.decision is Decision.VALUES

    # What the branches of the source depend on, and what its words stand for.

    @property
    def branches(self) -> dict[str, int | str]:
        """The values of the names in the conditions of `model.c`."""
        small, decision = self.small, self.a.decision
        return {
            "SPARSE": 0,
            "CODED": 0,
            "LEARNS": 0,
            "PROJECTED": self.a.projection is not None,
            "SCALED": bool(self.scaling_parts),
            "BITS": 32 if small is None else small.grid.bits,
            "INTEGER_TABLES": small is not None,
            "UPPER_HALVES": self.short_scaling or self.short_bias,
            "SHORT_SCALING": self.short_scaling,
            "WIDTHS": 0 if self.a.widths is None else "FLOATS" if small is None else "SMALL_FLOATS",
            "PREPARED": self.prepares,
            "CLIPS": "low" in self.scaling_parts,
            "POWER": self.a.spec.value is POWER,
            "DECISION": "VALUE_ITSELF" if decision is Decision.VALUE else decision.name,
            "MAP": self.map.upper() if self.map else 0,
            "CLASSES": self.a.classes.size,
        }

    @property
    def prepares(self) -> bool:
        """Whether rows are scaled or projected first."""
        return bool(self.scaling_parts) or self.a.projection is not None

    @property
    def words(self) -> dict[str, str]:
        """The types, names and expressions of this model."""
        a, small = self.a, self.small
        number = "float" if small is None else f"int{small.sum_bits}_t"
        fine = small is not None and small.grid.fine > 1
        read = {name: f"{name}[i]" if name in self.arrays else name.upper() for name in self.scaling_parts}
        total = "s0 + s1 + s2 + s3"
        end = 0 if small is None else small.row_end
        return {
            "Input": "float",
            "Entry": c_type(self.arrays["points"]) if "points" in self.arrays else "float",
            "RowEntry": "float" if small is None else f"int{small.row_bits}_t",
            "Coef": c_type(self.arrays["coef"]),
            "Number": number,
            "PUBLIC": "",
            "OUTER": "" if a.decision in OUTPUTS else "static",
            "outputs": self.inner_name(OUTPUTS[a.decision]) if a.decision in OUTPUTS else "outputs",
            **{f"row_{name}": self.inner_name(name) for name in ("predict", "scores", "proba")},
            "TERM": a.spec.total.term,
            "VALUE": self.value,
            "SUM_OF_FOUR": total if small is None else f"(float)({total})",
            "FINER": "FINE *" if fine else "",
            "KERNEL": f"kernel({'row' if self.prepares else 'x'}, z{self.width_read})",
            "START": "bias[k]" if small is None else "0",
            "BIAS": "upper_half(bias[k])" if self.short_bias else "bias[k]",
            "NEXT": f"j++, z += {'RANK' if a.projection is not None else 'FEATURES'}, c += OUTPUTS",
            "NEXT_VALUE": f"j++, z += {'RANK' if a.projection is not None else 'FEATURES'}",
            "COEF": "c[k]",
            "COEF_OF": "coef[j * OUTPUTS + k]",
            "PROJECTION": "projection[i * RANK + r]",
            "LENGTH": "RANK" if a.projection is not None else "FEATURES",
            **{name.upper(): word for name, word in read.items()},
            "SHIFT": f"(FINE * {read['shift']})" if fine and "shift" in read else read.get("shift", ""),
            "ROW_END": f"{end}",
            "ROW_HALF": f"{end}.5f",
            "PROBABILITY": PROBABILITIES.get(self.map, ""),
        }

    def inner_name(self, name: str) -> str:
        """Return the name of a function of a row of numbers: of prepared ones if rows are those of a table."""
        return f"{self.prefix}_{name}{'' if self.a.preparation is None else '_prepared'}"

    @property
    def value(self) -> str:
        """The kernel value of a sum over the features, as an expression."""
        value = self.a.spec.value.expression.format(exp="expf", tanh="tanhf")
        if self.small is not None:
            # beside GAMMA, so that compilers combine the two constants
            value = "UNIT * s" if value == "s" else value.replace("* s", "* UNIT * s")
        return value if self.a.widths is None else value.replace("* s", "* width * s")

    @property
    def width_read(self) -> str:
        """The last argument of the kernel, if points have widths."""
        if self.a.widths is None:
            return ""
        widths = None if self.small is None else self.small.widths
        return ", widths[j]" if widths is None else f", small_float(widths[j], {widths.mantissa})"

    @property
    def map(self) -> str:
        """The kind of the map to probabilities; empty without one."""
        if self.a.calibration is None:
            return ""
        return (
            "softmax" if self.a.calibration.name == "temperature" and self.a.classes.size > 2 else self.a.calibration.name
        )

    @property
    def short_scaling(self) -> bool:
        """Whether scales and shifts have 16 bits each."""
        return self.small is not None and self.small.scaling is not None

    @property
    def short_bias(self) -> bool:
        """Whether biases are upper halves of floats."""
        return self.small is not None and self.small.bias.dtype.kind == "u"

    @property
    def library(self) -> list[str]:
        """The functions of the C library that the code calls."""
        kernel = self.a.spec.value.library
        called = {f"{kernel}f"} if kernel else set()
        return sorted(called | ({"expf"} if "expf" in PROBABILITIES.get(self.map, "") else set()))

    # Tables and constants.

    @cached_property
    def scaling(self) -> Scaling | None:
        """The scaling from raw features to those of the tables; rounding to integers needs one too."""
        if self.small is None:
            return self.a.scaling
        size, grid = self.a.features, self.small.grid
        units = Scaling.affine(np.full(size, grid.middle), np.full(size, grid.fine / grid.step))
        return units if self.a.scaling is None else self.a.scaling.then(units)

    @cached_property
    def scaling_parts(self) -> dict[str, Array]:
        """The arrays of the scaling that change anything."""
        if self.scaling is None:
            return {}
        if self.small is not None and self.small.scaling is not None:
            return {"scale": self.small.scaling.scales, "shift": self.small.scaling.shifts}
        parts = {"centre": self.scaling.centre, "scale": self.scaling.scale}
        if self.scaling.clips:
            end = float(np.finfo(np.float32).max)
            parts |= {"low": np.maximum(self.scaling.low, -end), "high": np.minimum(self.scaling.high, end)}
        return {name: as_float32(values, f"scaler's {name}", each=name == "scale") for name, values in parts.items()}

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The constant tables by name."""
        a, small = self.a, self.small
        scaling = {name: values for name, values in self.scaling_parts.items() if self.short_scaling or np.ptp(values)}
        if small is None:
            numbers = {"points": as_float32(a.table, "points"), "coef": as_float32(a.coef, "coefficients")}
        else:
            numbers = {"points": small.points, "coef": small.coef}
        bias = as_float32(a.bias, "bias") if small is None else small.bias
        if a.projection is not None:
            scaling |= {"projection": as_float32(a.projection, "projection")}
        return scaling | numbers | self.width_table | {"bias": bias} | self.map_tables

    @property
    def width_table(self) -> dict[str, Array]:
        """The width of each point, if points have widths."""
        if self.a.widths is None:
            return {}
        widths = None if self.small is None else self.small.widths
        return {"widths": as_float32(self.a.widths, "widths", each=True) if widths is None else widths.codes}

    @property
    def map_tables(self) -> dict[str, Array]:
        """The tables of the map to probabilities."""
        found = {name: getattr(self.a.calibration, field) for field, name in MAP_TABLES.get(self.map, {}).items()}
        return {
            name: values.astype(np.int32) if name == "knot_starts" else as_float32(values, "calibration")
            for name, values in found.items()
        }

    @property
    def cost(self) -> Cost:
        """Bytes and work."""
        a = self.a
        entry = 4 if self.small is None else self.small.row_bits // 8
        stack = (entry * a.columns if self.prepares else 0) + self.decision_stack
        work = a.size * (a.columns + self.needed + (a.widths is not None)) + (a.features if self.scaling_parts else 0)
        work += 0 if a.projection is None else a.projection.size
        return self._cost(stack, work)

    def _cost(self, stack: int, work: int) -> Cost:
        """Return the costs with those of tables and code."""
        tables = tuple((values.nbytes, values.itemsize) for values in self.arrays.values())
        more = 0
        if self.prepared is not None:
            preparation, stack = self.prepared.preparation, stack + self.prepared.stack
            tables = (*tables, *c_tables(preparation))
            more = c_code_of(preparation, len(self.raw_functions()))
        return Cost(tables, tuple(self.facts), stack, work, more)

    @property
    def facts(self) -> list[str]:
        """The facts on which the length of the code depends."""
        return code_facts(
            kernel=self.a.kernel,
            precision=self.precision,
            decision=self.a.decision,
            features=self.a.columns,
            preparation=self.preparation,
            widths=self.a.widths is not None,
            projected=self.a.projection is not None,
            map=self.map,
            sparse=self.layout_words,
            outputs=self.a.outputs,
        )

    @property
    def preparation(self) -> str:
        """What happens to a row before the kernel, in a word."""
        if not self.scaling_parts:
            return ""
        if self.short_scaling:
            return "short"
        if "low" in self.scaling_parts:
            return "clips"
        return "tables" if self.scaling_parts.keys() & self.arrays.keys() else "constants"

    @property
    def layout_words(self) -> str:
        """The layout of sparse points in words; empty for dense ones."""
        return ""

    @property
    def needed(self) -> int:
        """The outputs that a prediction computes."""
        return self.a.classes.size - 1 if self.a.decision is Decision.DAG else self.a.outputs

    @property
    def decision_stack(self) -> int:
        """The bytes of arrays of scores, outputs, votes and probabilities."""
        a = self.a
        pairs = (a.size if a.decision is Decision.DAG else a.outputs) + a.classes.size
        return 4 * (a.scores + a.by_pairs * pairs + bool(self.map) * a.classes.size)

    # The pieces before the code.

    def summary(self) -> str:
        """Return the comment at the head."""
        p, cost = self.prefix, self.cost
        needs = f", and {' and '.join(self.library)} of the C library" if self.library else ""
        functions = "\n".join(f" *   {line}".rstrip() for line in [*self.described(), *self.more_functions()])
        return f"""/* {p}: {self.a.summary}, {self.precision} tables.
 *
{functions}
 *
 *   flash  {cost.flash:,} bytes of tables, and the code below{needs}
 *   RAM    {cost.ram:,} bytes of arrays on the stack
 *   work   {self.work()}
 *
 * Written by slimsvm {version("slimsvm")}; do not edit. {LICENCE} */"""

    def described(self) -> list[str]:
        """Return the declarations of the functions of dense rows with what they return, in words."""
        words = [PREDICTIONS.get(self.a.decision, CLASS), SCORES.get(self.a.decision, A_SCORE_EACH)][: 1 + self.scored]
        lines = self.dense_prototypes()
        width = max(map(len, lines))
        return [
            f"{line:<{width}}  {what}" for line, what in zip(lines, [*words, "the probability of each class"], strict=False)
        ]

    def work(self) -> str:
        """Return the work of a prediction, in words."""
        return f"{self.cost.multiply_adds:,} multiply-adds per prediction"

    def more_functions(self) -> list[str]:
        """Return the lines of the comment after the declarations."""
        return []

    def headers(self) -> list[str]:
        """Return the headers of the C library that the source includes."""
        integers = any(values.dtype.kind in "iu" for values in self.arrays.values())
        tables = self.prepared is not None
        texts = ["stddef", "stdint", "string"] if tables else ["stdint"] * integers
        return ["math"] * (bool(self.library) or tables) + texts

    def constants(self) -> str:
        """Return includes and constants."""
        a = self.a
        lines = [f"#include <{name}.h>" for name in self.headers()]
        lines += [""] * bool(lines)
        lines += FLASH
        lines += [f"#define FEATURES {a.features}"]
        lines += [f"#define RANK {a.columns}"] * (a.projection is not None or bool(self.branches["CODED"]))
        lines += [f"#define POINTS {a.size}", f"#define OUTPUTS {a.outputs}"]
        lines += [f"#define CLASSES {a.classes.size}"] * (a.classes.size > 2 or bool(self.map))
        lines += [f"#define SCORES {a.scores}"] * bool(self.map)
        values = self.parameters
        values |= {name.upper(): float(v[0]) for name, v in self.scaling_parts.items() if name not in self.arrays}
        values |= {} if self.small is None else self.units(self.small)
        values |= {"LEAST": LEAST} if self.map else {}
        calibration: Any = a.calibration
        values |= {"TEMPERATURE": calibration.temperature} if self.map in ("temperature", "softmax") else {}
        lines += [f"#define {key} {v if isinstance(v, int) else float_literal(v)}" for key, v in values.items()]
        return "\n".join(lines)

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the kernel by their names in C."""
        return {parameter.name.upper(): self.a.parameters[parameter.name] for parameter in self.a.spec.parameters}

    def units(self, small: Quantised) -> dict[str, float]:
        """Return what sums over features and coefficients are multiplied by, and points, where rows are finer."""
        grid = small.grid
        sums = (grid.step / grid.fine) ** self.a.spec.total.power * (1 if small.widths is None else small.widths.step)
        return {"UNIT": sums, "COEF_UNIT": small.coef_step} | ({"FINE": grid.fine} if grid.fine > 1 else {})

    def tables(self) -> str:
        """Return all numbers of the model."""
        texts = []
        for name, values in self.arrays.items():
            texts.append(f"static const FLASH {c_type(values)} {name}[{values.size}] = {{\n{table(values, 'f')}\n}};")
        return "\n\n".join(texts)

    # The header.

    @property
    def scored(self) -> bool:
        """Whether there is a function of scores."""
        return self.a.decision not in (Decision.VALUE, Decision.VALUES)

    @property
    def returns(self) -> str:
        """The type of predict."""
        return "float" if self.a.decision is Decision.VALUE else "int"

    def dense_prototypes(self) -> list[str]:
        """Return the declarations of the functions of a row: of a table's row, and of a prepared one."""
        found = []
        rows = ["const float *x"] if self.prepared is None else [self.prepared.row, "const float *x"]
        for row, suffix in zip(rows, ["", "_prepared"] if len(rows) > 1 else [""], strict=True):
            for returns, name, output in self.raw_functions():
                argument = f", float *{output}" if output else ""
                found.append(f"{returns} {self.prefix}_{name}{suffix}({row}{argument});")
        return found

    def prototypes(self) -> list[str]:
        """Return the declarations of the header."""
        return self.dense_prototypes() + ([] if self.prepared is None else self.prepared.prototypes())

    def header(self) -> str:
        """Return the declarations, and the classes by number."""
        p, upper = self.prefix, self.prefix.upper()
        scores = f"\n#define {upper}_SCORES {self.a.scores}" if self.scored else ""
        scores += f"\n#define {upper}_TARGETS {self.a.outputs}" if self.several else ""
        told = f"/* {p}_predict {'writes' if self.several else 'returns'} {PREDICTIONS.get(self.a.decision, CLASS)}. */"
        declarations = "\n".join([told, *self.prototypes()])
        return f"""/* {p}: see {p}.c. Written by slimsvm {version("slimsvm")}; do not edit. {LICENCE} */
#ifndef {upper}_H
#define {upper}_H

{self.header_includes()}#define {upper}_FEATURES {self.a.features}{scores}
{self.feature_list()}{self.table_list()}{self.class_list() if self.a.classes.size else ""}
#ifdef __cplusplus
extern "C" {{
#endif

{declarations}

#ifdef __cplusplus
}}
#endif

#endif
"""

    def header_includes(self) -> str:
        """Return the lines in front of the header's constants."""
        return ""

    def feature_list(self) -> str:
        """Return the names of the features, if the model knows them; those of a table are in its struct."""
        if not self.a.names or self.prepared is not None:
            return ""
        names = ", ".join(map(c_string, self.a.names))
        return f"""
/* The names of the features of a row, in order, for an array of your own. */
#define {self.prefix.upper()}_FEATURE_NAMES {{ {names} }}
"""

    def table_list(self) -> str:
        """Return the struct of a table's row, if rows are such."""
        return "" if self.prepared is None else "\n" + self.prepared.declarations()

    def class_list(self) -> str:
        """Return the classes by number, and by label."""
        upper, labels = self.prefix.upper(), label_literals(self.a.classes, c_string)
        names = [f"{upper}_CLASS_{name} = {number}" for number, name in enumerate(class_names(self.a.classes))]
        return f"""
/* The classes by number, and their labels for an array of your own. */
enum {{
    {listing(names)}
}};
#define {upper}_LABELS {{ {", ".join(labels)} }}
"""


@dataclass(frozen=True)
class SparseCSource(CSource):
    """The text of one model with sparse points: tables of their nonzeros, column by column, and functions of sparse rows.

    A row needs only the columns of its own nonzeros: in each, the entries of the points are added to a sum for each point
    (`sparse`). Integers are smaller tables only: each point has a step, and sums are of floats, since rows are not rounded.
    """

    steps: Array | None = None  # those of the points, if values are integers

    @classmethod
    def of(cls, artefact: Artefact, prefix: str, precision: str) -> SparseCSource:
        """Return the source of an artefact with sparse points, whose values have this precision."""
        a = artefact.compact()
        if precision == "float32":
            return cls(a, prefix, precision, None)
        points, steps = rounded(a.points, BITS[precision])
        return cls(replace(a, points=points), prefix, precision, None, steps)

    @property
    def points(self) -> SparsePoints:
        """The points in units of their steps."""
        assert isinstance(self.a.points, SparsePoints)
        return self.a.points

    @property
    def held(self) -> Artefact:
        """The function that the tables hold."""
        values = self.points.values if self.steps is None else self.points.values * self.steps[self.points.rows]
        return replace(self.a, points=replace(self.points, values=as_float32(values, "points").astype(np.float64)))

    def inner_name(self, name: str) -> str:
        """Return the name of a function of a row, which public functions wrap."""
        return f"{self.prefix}_row_{name}"

    @property
    def branches(self) -> dict[str, int | str]:
        """The values of the names in the conditions of `model.c`."""
        sparse = {"SPARSE": 1, "LISTED": self.layout.listed, "RAGGED": self.layout.ragged, "OWN": self.has_own}
        return super().branches | sparse

    @property
    def words(self) -> dict[str, str]:
        """The types, names and expressions of this model."""
        total, double = self.a.spec.total, self.number == "double"
        row = f"row->value[n]{' * scale[feature]' * (self.a.scaling is not None)}"
        owner = "owners[e]" if self.layout.ragged else "j"
        value = "values[e]" if self.steps is None else f"(float)values[e] * steps[{owner}]"
        return super().words | {
            "Input": "Row",
            "Number": self.number,
            "PUBLIC": "static",
            "OUTER": "static",
            "OWN_TERM": total.own or "",
            "JOINT_TERM": total.joint,
            "ROW_VALUE": f"(double)({row})" if double else row,
            "POINT_VALUE": f"(double)({value})" if double else value,
            "COLUMNS": f"{self.layout.columns}",
            "KERNEL": f"kernel({'(float)' * double}s[j]{self.width_read})",
            "NEXT": "j++, c += OUTPUTS",
            "NEXT_VALUE": "j++",
            "Prediction": self.returns,
            "INVALID": self.invalid,
            **{f"model_{name}": f"{self.prefix}_{name}" for name in ("predict", "scores", "proba")},
            **{f"model_{name}_sparse": f"{self.prefix}_{name}_sparse" for name in ("predict", "scores", "proba")},
        }

    # Tables.

    @cached_property
    def layout(self) -> Layout:
        """The tables of the points."""
        if self.steps is not None:
            return layout_of(self.points.by_column(), np.dtype(self.precision).type)
        columns = self.points.by_column()
        return layout_of(replace(columns, values=as_float32(columns.values, "points")), np.float32)

    @cached_property
    def own(self) -> Array:
        """The sum of each point alone; 0 for inner products."""
        return own_sums(self.a.spec, self.held.points)  # type: ignore[arg-type]

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The constant tables by name."""
        a = self.a
        found = {} if a.scaling is None else {"scale": as_float32(a.scaling.scale, "scaler's scale", each=True)}
        found |= self.layout.tables
        found |= {} if self.steps is None else {"steps": as_float32(self.steps, "points")}
        own = self.own if self.number == "double" else as_float32(self.own, "sums of squares")
        found |= {"own": own} if self.has_own else {}
        coef, bias = as_float32(a.coef, "coefficients"), as_float32(a.bias, "bias")
        return found | {"coef": coef} | self.width_table | {"bias": bias} | self.map_tables

    @property
    def has_own(self) -> bool:
        """Whether rows and points have sums of their own."""
        return self.a.spec.total.own is not None

    @property
    def number(self) -> str:
        """The type of sums over features."""
        return "double" if needs_double(self.a.spec, self.a.parameters, self.own, self.a.widths) else "float"

    @cached_property
    def scaling_parts(self) -> dict[str, Array]:
        """No table in addition to `arrays`."""
        return {}

    @property
    def cost(self) -> Cost:
        """Bytes and work; the work is that of a row without zeros."""
        stack = (8 if self.number == "double" else 4) * self.a.size + self.decision_stack
        each = self.has_own + (self.a.scaling is not None)
        work = self.points.nonzeros + each * self.a.features + self.fixed_work
        return self._cost(stack, work)

    @property
    def preparation(self) -> str:
        """What happens to the numbers of a row, in a word."""
        return "" if self.a.scaling is None else "tables"

    @property
    def layout_words(self) -> str:
        """The layout of the points in words."""
        return sparse_words(listed=self.layout.listed, ragged=self.layout.ragged, double=self.number == "double")

    @property
    def fixed_work(self) -> int:
        """The multiply-adds of a row of zeros."""
        return self.a.size * (self.needed + (self.a.widths is not None))

    # Pieces.

    @property
    def invalid(self) -> str:
        """What predict returns for a row that is not valid."""
        return INVALID.get(self.a.decision, "-1")

    def work(self) -> str:
        """Return the work of a prediction, in words."""
        each = self.points.nonzeros / self.layout.columns + self.has_own + (self.a.scaling is not None)
        return f"{self.fixed_work:,} multiply-adds per prediction, and about {each:.0f} for each nonzero of the row"

    def sparse_functions(self) -> list[str]:
        """Return the declarations of functions of rows by their nonzeros."""
        names = ["scores"] * self.scored + ["proba"] * bool(self.map)
        if self.several:
            return [f"int {self.prefix}_predict_sparse({ENTRIES}, float *values);"]
        return [
            f"{self.returns} {self.prefix}_predict_sparse({ENTRIES});",
            *(f"int {self.prefix}_{name}_sparse({ENTRIES}, float *{name});" for name in names),
        ]

    def more_functions(self) -> list[str]:
        """Return the functions of sparse rows, in words."""
        others = "; the others return 0, or -1 without a result" if self.scored else ", else 0" if self.several else ""
        return [
            "",
            *self.sparse_functions(),
            "",
            "The same for a row by its nonzeros: index[] has their features, each below FEATURES, in increasing order,",
            f"and value[] their values. For a row that is not so, predict returns {self.invalid}{others}.",
        ]

    def prototypes(self) -> list[str]:
        """Return the declarations of the header."""
        return super().prototypes() + self.sparse_functions()

    def headers(self) -> list[str]:
        """Return the headers of the C library that the source includes."""
        return ["math"] * (bool(self.library) or self.invalid == "NAN") + ["stddef", "stdint"]

    def header_includes(self) -> str:
        """Return the headers that the declarations need."""
        return "#include <stddef.h>\n#include <stdint.h>\n\n"


def c_type(values: Array) -> str:
    """Return the C type of an array's numbers."""
    if values.dtype.kind == "f":
        return "float" if values.itemsize == 4 else "double"
    return f"{'u' * (values.dtype.kind == 'u')}int{8 * values.itemsize}_t"
