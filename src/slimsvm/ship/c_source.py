"""The text of a C model with dense points, in pieces, and its costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version

import numpy as np

from ..kernels.spec import POWER
from ..scaling import Scaling
from . import c_calibration
from .artefact import Array, Artefact
from .c_decisions import INTERFACES, Interface, Naming, function
from .literals import as_float32, c_string, class_names, float_literal, label_literals, listing, table
from .quantise import Quantised
from .small_floats import DECODER, UPPER_HALF


@dataclass(frozen=True)
class Cost:
    """The costs of a C model: bytes of constant tables, bytes on the stack, multiply-adds per prediction."""

    flash: int
    ram: int
    multiply_adds: int


@dataclass(frozen=True)
class CSource:
    """The text of one model, in pieces in the order of the file."""

    a: Artefact
    prefix: str
    precision: str
    small: Quantised | None  # the integer tables

    def text(self) -> str:
        """The C source."""
        kernel = [self.power()] * (self.a.spec.value is POWER) + [self.kernel()]
        pieces = [
            self.summary(),
            self.constants(),
            self.prototypes(),
            self.tables(),
            *self.preparation(),
            *kernel,
            *([self.evaluation(), self.output()] if self.interface.single else [self.outputs()]),
            *self.functions(),
        ]
        return "\n\n".join(pieces) + "\n"

    # Parts shared by the pieces.

    @property
    def probable(self) -> bool:
        """Whether there are probabilities."""
        return self.a.calibration is not None

    @property
    def interface(self) -> Interface:
        """The public functions."""
        return INTERFACES[self.a.decision]

    @property
    def naming(self) -> Naming:
        """The names of the functions of a row."""
        return Naming(self.prefix)

    @property
    def library(self) -> list[str]:
        """The functions of the C library that the code calls."""
        kernel = self.a.spec.value.library
        found = {f"{kernel}f"} if kernel else set()
        if self.a.calibration is not None and c_calibration.map_code(self.a.calibration, self.a.classes.size).exponential:
            found.add("expf")
        return sorted(found)

    def functions(self) -> list[str]:
        """The functions after that of the outputs; with a calibration, `predict` uses probabilities."""
        own = self.interface.functions(self.naming)
        if self.a.calibration is None:
            return own
        return own[:-1] + c_calibration.functions(self.a.calibration, self.a.classes.size, self.naming)

    @property
    def entry(self) -> str:
        """The type of a point's numbers."""
        return "float" if self.small is None else f"int{self.small.grid.bits}_t"

    @property
    def row_entry(self) -> str:
        """The type of a row's numbers."""
        return "float" if self.small is None else f"int{self.small.row_bits}_t"

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
        short = small is not None and small.scaling is not None
        scaling = {name: values for name, values in self.scaling_parts.items() if short or np.ptp(values)}
        if small is None:
            own = {"points": as_float32(a.table, "points"), "coef": as_float32(a.coef, "coefficients")}
        else:
            own = {"points": small.points, "coef": small.coef}
        bias = as_float32(a.bias, "bias") if small is None else small.bias
        map_tables = (
            {} if a.calibration is None else c_calibration.map_code(a.calibration, a.classes.size).tables(a.calibration)
        )
        return scaling | own | self.width_table | {"bias": bias} | map_tables

    @property
    def width_table(self) -> dict[str, Array]:
        """The width of each point, if points have widths."""
        if self.a.widths is None:
            return {}
        widths = None if self.small is None else self.small.widths
        return {"widths": as_float32(self.a.widths, "widths", each=True) if widths is None else widths.codes}

    @property
    def cost(self) -> Cost:
        """Bytes and work."""
        a = self.a
        row = a.features * np.dtype(self.row_entry.removesuffix("_t").replace("float", "float32")).itemsize
        stack = (row if self.scaling_parts else 0) + 4 * self.a.scores
        stack += 4 * ((a.size if self.interface.single else a.outputs) + a.classes.size) if a.by_pairs else 0
        stack += 4 * a.classes.size if a.calibration is not None else 0
        needed = a.classes.size - 1 if self.interface.single else a.outputs
        work = a.size * (a.features + needed + (a.widths is not None)) + (a.features if self.scaling_parts else 0)
        return Cost(sum(values.nbytes for values in self.arrays.values()), stack, work)

    # The pieces.

    def summary(self) -> str:
        """The comment at the head."""
        p, cost = self.prefix, self.cost
        needs = f", and {' and '.join(self.library)} of the C library" if self.library else ""
        lines = [*self.interface.summary(p, probabilities=self.probable), *self.more_functions()]
        functions = "\n".join(f" *   {line}".rstrip() for line in lines)
        return f"""/* {p}: {self.a.summary}, {self.precision} tables.
 *
{functions}
 *
 *   flash  {cost.flash:,} bytes of tables, and the code below{needs}
 *   RAM    {cost.ram:,} bytes of arrays on the stack
 *   work   {self.work()}
 *
 * Written by slimsvm {version("slimsvm")}; do not edit. */"""

    def work(self) -> str:
        """The work of a prediction, in words."""
        return f"{self.cost.multiply_adds:,} multiply-adds per prediction"

    def more_functions(self) -> list[str]:
        """The lines of the comment after the declarations."""
        return []

    def headers(self) -> list[str]:
        """The headers of the C library that the source includes."""
        integers = any(values.dtype.kind in "iu" for values in self.arrays.values())
        return ["math"] * bool(self.library) + ["stdint"] * integers

    def constants(self) -> str:
        """Includes and constants."""
        a = self.a
        lines = [f"#include <{name}.h>" for name in self.headers()]
        lines += [""] * bool(lines)
        lines += [f"#define FEATURES {a.features}", f"#define POINTS {a.size}", f"#define OUTPUTS {a.outputs}"]
        lines += [f"#define CLASSES {a.classes.size}"] * (a.classes.size > 2 or self.probable)
        lines += [f"#define SCORES {a.scores}"] * self.probable
        values = {parameter.name.upper(): a.parameters[parameter.name] for parameter in a.spec.parameters}
        values |= {name.upper(): float(v[0]) for name, v in self.scaling_parts.items() if name not in self.arrays}
        if self.small is not None:
            values |= self.units(self.small)
        lines += [f"#define {key} {v if isinstance(v, int) else float_literal(v)}" for key, v in values.items()]
        lines += [] if a.calibration is None else c_calibration.constants(a.calibration, a.classes.size)
        return "\n".join(lines)

    def units(self, small: Quantised) -> dict[str, float]:
        """What sums over features and coefficients are multiplied by, and points, where rows are finer."""
        grid = small.grid
        sums = (grid.step / grid.fine) ** self.a.spec.total.power * (1 if small.widths is None else small.widths.step)
        found: dict[str, float] = {"UNIT": sums, "COEF_UNIT": small.coef_step}
        return found | ({"FINE": grid.fine} if grid.fine > 1 else {})

    def tables(self) -> str:
        """All numbers of the model."""
        texts = []
        for name, values in self.arrays.items():
            texts.append(f"static const {c_type(values)} {name}[{values.size}] = {{\n{table(values, 'f')}\n}};")
        return "\n\n".join(texts)

    def preparation(self) -> list[str]:
        """From the caller's row to that of the kernel."""
        if not self.scaling_parts:
            return []
        read = {name: f"{name}[i]" if name in self.arrays else name.upper() for name in self.scaling_parts}
        lines = [f"float t = {self.scaled(read)};"]
        if "low" in read:
            low, high = read["low"], read["high"]
            lines.append(f"t = t < {low} ? {low} : t > {high} ? {high} : t;")
        lines.append(f"row[i] = {'t' if self.small is None else self.rounded()};")
        what = "Scaled features" if self.small is None else "Features in the units of the tables, clipped to their range"
        return [
            *self.decoders(),
            f"/* {what}. */\n"
            + function(
                f"static void prepare(const float *x, {self.row_entry} *row)",
                ["for (int i = 0; i < FEATURES; i++) {", *(f"    {line}" for line in lines), "}"],
            ),
        ]

    def scaled(self, read: dict[str, str]) -> str:
        """A feature of the caller's row after scaling."""
        if "shift" not in read:
            return f"(x[i] - {read['centre']}) * {read['scale']}"
        assert self.small is not None
        shift = read["shift"] if self.small.grid.fine == 1 else f"(FINE * {read['shift']})"
        return f"upper_half({read['scale']}) * x[i] - (float){shift}"

    def rounded(self) -> str:
        """The nearest integer of the tables; NaN becomes the smallest."""
        assert self.small is not None
        end = self.small.row_end
        return f"({self.row_entry})((int32_t)((!(t > -{end}) ? -{end} : t > {end} ? {end} : t) + {end}.5f) - {end})"

    def power(self) -> str:
        """An integer power, by squaring."""
        return function(
            "static float power(float base)",
            [
                "float p = 1;",
                "for (int n = DEGREE; n > 0; n /= 2, base *= base)",
                "    if (n % 2)",
                "        p *= base;",
                "return p;",
            ],
        )

    def kernel(self) -> str:
        """The kernel of a row and a point, after its term for one feature."""
        value = self.a.spec.value.expression.format(exp="expf", tanh="tanhf")
        number = "float" if self.small is None else f"int{self.small.sum_bits}_t"
        term = function(f"static {number} term({number} x, {number} z)", [f"return {self.a.spec.total.term};"])
        width = ", float width" * (self.a.widths is not None)
        head = f"static float kernel(const {self.row_entry} *x, const {self.entry} *z{width})"
        if self.small is not None:
            # beside GAMMA, so that compilers combine the two constants
            value = "UNIT * s" if value == "s" else value.replace("* s", "* UNIT * s")
        if width:
            value = value.replace("* s", "* width * s")
        body = self.four_sums(number) if self.small is None else self.integer_sum(number)
        return "\n\n".join([term, function(head, [*body, f"return {value};"])])

    def four_sums(self, number: str) -> list[str]:
        """Statements that sum up the terms of a row and a point."""
        return [
            f"{number} s0 = 0, s1 = 0, s2 = 0, s3 = 0; /* four sums that the CPU adds to in parallel */",
            "int i = 0;",
            "for (; i < FEATURES - 3; i += 4) {",
            *(f"    s{lane} += term(x[i + {lane}], z[i + {lane}]);" for lane in range(4)),
            "}",
            "for (; i < FEATURES; i++)",
            "    s0 += term(x[i], z[i]);",
            f"const float s = {'s0 + s1 + s2 + s3' if number == 'float' else '(float)(s0 + s1 + s2 + s3)'};",
        ]

    def integer_sum(self, number: str) -> list[str]:
        """The same statements for integers: as short as possible for int8, and as quick for int16."""
        assert self.small is not None
        if self.small.grid.bits == 16:
            return self.four_sums(number)
        point = "z[i]" if self.small.grid.fine == 1 else "FINE * z[i]"
        return [
            f"{number} sum = 0;",
            "for (int i = 0; i < FEATURES; i++)",
            f"    sum += term(x[i], {point});",
            "const float s = (float)sum;",
        ]

    def decoders(self) -> list[str]:
        """From the codes of small floats to their numbers."""
        if self.small is None:
            return []
        found = []
        if self.small.scaling is not None or self.has_short_bias:
            comment = "/* The float whose upper half is given. */\n"
            found.append(comment + function("static float upper_half(uint16_t code)", [*UPPER_HALF]))
        if self.small.widths is not None:
            comment = "/* A small float: a mantissa and, in the upper bits, an exponent of 2. */\n"
            found.append(comment + function("static float small_float(uint32_t code, int bits)", [DECODER]))
        return found

    def outputs(self) -> str:
        """The loop over the points."""
        scales = self.small is not None
        name = f"void {self.prefix}_scores" if self.interface.plain else "static void outputs"
        body = [f"const {c_type(self.arrays[name])} *{short} = {name};" for name, short in (("points", "z"), ("coef", "c"))]
        body += [
            *self.prepared(),
            "for (int k = 0; k < OUTPUTS; k++)",
            f"    out[k] = {'0' if scales else 'bias[k]'};",
            "for (int j = 0; j < POINTS; j++, z += FEATURES, c += OUTPUTS) {",
            f"    const float v = {self.kernel_call()};",
            "    for (int k = 0; k < OUTPUTS; k++)",
            "        out[k] += v * c[k];",
            "}",
        ]
        body += ["for (int k = 0; k < OUTPUTS; k++)", f"    out[k] = COEF_UNIT * out[k] + {self.bias_read()};"] * scales
        return function(f"{name}(const float *x, float *out)", body)

    def prepared(self) -> list[str]:
        """Statements that scale the caller's row; none if the model has no scaling."""
        return [f"{self.row_entry} row[FEATURES];", "prepare(x, row);"] * bool(self.scaling_parts)

    def kernel_call(self) -> str:
        """The kernel of the row and the point z, which is number j."""
        return f"kernel({'row' if self.scaling_parts else 'x'}, z{self.width_read()})"

    def evaluation(self) -> str:
        """The kernel values of all points."""
        body = [
            f"const {self.entry} *z = points;",
            *self.prepared(),
            "for (int j = 0; j < POINTS; j++, z += FEATURES)",
            f"    values[j] = {self.kernel_call()};",
        ]
        return function("static void evaluate(const float *x, float *values)", body)

    def output(self) -> str:
        """One output, from the kernel values."""
        scales = self.small is not None
        body = [
            f"float sum = {'0' if scales else 'bias[k]'};",
            "for (int j = 0; j < POINTS; j++)",
            "    sum += values[j] * coef[j * OUTPUTS + k];",
            f"return COEF_UNIT * sum + {self.bias_read()};" if scales else "return sum;",
        ]
        return function("static float output(const float *values, int k)", body)

    @property
    def has_short_bias(self) -> bool:
        """Whether biases are upper halves of floats."""
        return self.small is not None and self.small.bias.dtype.kind == "u"

    def bias_read(self) -> str:
        """The bias of output k."""
        return "upper_half(bias[k])" if self.has_short_bias else "bias[k]"

    def width_read(self) -> str:
        """The third argument of the kernel, if points have widths."""
        if self.a.widths is None:
            return ""
        widths = None if self.small is None else self.small.widths
        return ", widths[j]" if widths is None else f", small_float(widths[j], {widths.mantissa})"

    def prototypes(self) -> str:
        """The declarations of the header."""
        return "\n".join(self.interface.prototypes(self.prefix, probabilities=self.probable))

    def header(self) -> str:
        """Declarations, and the classes by number."""
        p, upper = self.prefix, self.prefix.upper()
        scores = "" if self.interface.scores is None else f"\n#define {upper}_SCORES {self.a.scores}"
        return f"""/* {p}: see {p}.c. Written by slimsvm {version("slimsvm")}; do not edit. */
#ifndef {upper}_H
#define {upper}_H

{self.header_includes()}#define {upper}_FEATURES {self.a.features}{scores}
{self.feature_list() if self.a.names else ""}{self.class_list() if self.a.classes.size else ""}
#ifdef __cplusplus
extern "C" {{
#endif

{self.prototypes()}

#ifdef __cplusplus
}}
#endif

#endif
"""

    def header_includes(self) -> str:
        """The lines in front of the header's constants."""
        return ""

    def feature_list(self) -> str:
        """The names of the features."""
        names = ", ".join(map(c_string, self.a.names))
        return f"""
/* The names of the features of a row, in order, for an array of your own. */
#define {self.prefix.upper()}_FEATURE_NAMES {{ {names} }}
"""

    def class_list(self) -> str:
        """The classes by number, and by label."""
        upper, labels = self.prefix.upper(), label_literals(self.a.classes, c_string)
        names = [f"{upper}_CLASS_{name} = {number}" for number, name in enumerate(class_names(self.a.classes))]
        return f"""
/* The classes by number, and their labels for an array of your own. */
enum {{
    {listing(names)}
}};
#define {upper}_LABELS {{ {", ".join(labels)} }}
"""


def c_type(values: Array) -> str:
    """Return the C type of an array's numbers."""
    if values.dtype.kind == "f":
        return "float" if values.itemsize == 4 else "double"
    return f"{'u' * (values.dtype.kind == 'u')}int{8 * values.itemsize}_t"
