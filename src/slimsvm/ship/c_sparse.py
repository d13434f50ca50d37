"""The text of a C model with sparse points: tables of their nonzeros, column by column, and functions of sparse rows.

A row needs only the columns of its own nonzeros: in each, the entries of the points are added to a sum for each point
(`sparse`). Integers are smaller tables only: each point has a step, and sums are of floats, since rows are not rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..selection.costs import BITS
from . import c_calibration
from .artefact import Array, Artefact
from .c_decisions import Naming, function
from .c_source import Cost, CSource
from .literals import as_float32
from .sparse import ByColumn, SparsePoints, needs_double, own_sums, smallest

#: the arguments of functions of a sparse row
ENTRIES = "const uint32_t *index, const float *value, size_t count"


@dataclass(frozen=True)
class Layout:
    """Tables of columns in one of four layouts, whichever takes the fewest bytes.

    Columns are those in which a point is nonzero, or all features, which need no list. A column has its nonzeros with the
    points that they belong to, or a number for every point.
    """

    tables: dict[str, Array]
    columns: int

    @property
    def listed(self) -> bool:
        """Whether columns are listed; otherwise each feature has one."""
        return "columns" in self.tables

    @property
    def ragged(self) -> bool:
        """Whether columns have their nonzeros only."""
        return "owners" in self.tables

    @property
    def nbytes(self) -> int:
        """The bytes of the tables."""
        return sum(values.nbytes for values in self.tables.values())


def layout_of(table: ByColumn, dtype: type) -> Layout:
    """Return the smallest layout of these points, with values of this type."""
    columns, (m, d), used = {"columns": smallest(table.columns)}, table.shape, table.columns.size
    owners = {"owners": smallest(table.points), "values": table.values.astype(dtype)}
    found = [Layout(columns | {"starts": smallest(table.starts)} | owners, used)]
    # the others have at least one byte for each feature, and one for each point in each column
    if d <= sum(found[0].tables[name].itemsize for name in ("columns", "starts")) * used:
        found.append(Layout({"starts": smallest(table.everywhere().starts)} | owners, d))
    if m * used <= found[0].nbytes:
        found.append(Layout(columns | {"values": table.narrow().T.astype(dtype)}, used))
    if m * d <= found[0].nbytes:
        found.append(Layout({"values": table.everywhere().narrow().T.astype(dtype)}, d))
    return min(found, key=lambda layout: layout.nbytes)


@dataclass(frozen=True)
class SparseCSource(CSource):
    """The text of one model with sparse points; `steps` are those of the points, if values are integers."""

    steps: Array | None = None

    @classmethod
    def of(cls, artefact: Artefact, prefix: str, precision: str) -> SparseCSource:
        """Return the source of an artefact with sparse points, whose values have this precision."""
        a = artefact.compact()
        if precision == "float32":
            return cls(a, prefix, precision, None)
        points, steps = _rounded(a.points, BITS[precision])
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

    @property
    def naming(self) -> Naming:
        """The names of the functions of a row, which public functions wrap."""
        return Naming(f"{self.prefix}_row", "Row", wrapped=True)

    # Tables.

    @cached_property
    def layout(self) -> Layout:
        """The tables of the points."""
        if self.steps is not None:
            return layout_of(self.points.by_column(), np.dtype(self.precision).type)
        table = self.points.by_column()
        return layout_of(replace(table, values=as_float32(table.values, "points")), np.float32)

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
        found |= {"coef": as_float32(a.coef, "coefficients")} | self.width_table | {"bias": as_float32(a.bias, "bias")}
        code = None if a.calibration is None else c_calibration.map_code(a.calibration, a.classes.size)
        return found | ({} if code is None else code.tables(a.calibration))

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
        a = self.a
        stack = (8 if self.number == "double" else 4) * a.size + 4 * a.scores
        stack += 4 * ((a.size if self.interface.single else a.outputs) + a.classes.size) if a.by_pairs else 0
        stack += 4 * a.classes.size if a.calibration is not None else 0
        each = self.has_own + (a.scaling is not None)
        work = self.points.nonzeros + each * a.features + self.fixed_work
        return Cost(sum(values.nbytes for values in self.arrays.values()), stack, work)

    @property
    def fixed_work(self) -> int:
        """The multiply-adds of a row of zeros."""
        needed = self.a.classes.size - 1 if self.interface.single else self.a.outputs
        return self.a.size * (needed + (self.a.widths is not None))

    # Pieces.

    def text(self) -> str:
        """The C source."""
        return super().text() + "\n" + "\n\n".join(self.wrappers()) + "\n"

    def work(self) -> str:
        """The work of a prediction, in words."""
        each = self.points.nonzeros / self.layout.columns + self.has_own + (self.a.scaling is not None)
        return f"{self.fixed_work:,} multiply-adds per prediction, and about {each:.0f} for each nonzero of the row"

    def sparse_functions(self) -> list[str]:
        """The declarations of functions of rows by their nonzeros."""
        names = ["scores"] * (self.interface.scores is not None) + ["proba"] * self.probable
        return [
            f"{self.interface.returns} {self.prefix}_predict_sparse({ENTRIES});",
            *(f"int {self.prefix}_{name}_sparse({ENTRIES}, float *{name});" for name in names),
        ]

    def more_functions(self) -> list[str]:
        """The functions of sparse rows, in words."""
        others = "" if self.interface.scores is None else "; the others return 0, or -1 without a result"
        return [
            "",
            *self.sparse_functions(),
            "",
            "The same for a row by its nonzeros: index[] has their features, each below FEATURES, in increasing order,",
            f"and value[] their values. For a row that is not so, predict returns {self.interface.invalid}{others}.",
        ]

    def prototypes(self) -> str:
        """The declarations of the header."""
        return "\n".join([super().prototypes(), *self.sparse_functions()])

    def headers(self) -> list[str]:
        """The headers of the C library that the source includes."""
        math = bool(self.library) or self.interface.invalid == "NAN"
        return ["math"] * math + ["stddef", "stdint"]

    def header_includes(self) -> str:
        """The headers that the declarations need."""
        return "#include <stddef.h>\n#include <stdint.h>\n\n"

    def preparation(self) -> list[str]:
        """A row, and the column of a feature."""
        row = """\
/* A row: the values of all features, or of those that are listed in increasing order. */
typedef struct {
    const float *value;
    const uint32_t *index; /* NULL: all features */
    size_t count;
} Row;"""
        if not self.layout.listed:
            return [row]
        search = function(
            "static uint32_t column_of(uint32_t feature)",
            [
                f"uint32_t low = 0, high = {self.layout.columns};",
                "while (low < high) {",
                "    const uint32_t middle = (low + high) / 2;",
                "    if (columns[middle] < feature)",
                "        low = middle + 1;",
                "    else",
                "        high = middle;",
                "}",
                "return low;",
            ],
        )
        return [row, f"/* The first column whose feature is not below the given one. */\n{search}"]

    def kernel(self) -> str:
        """The sums over features of a row and all points, after their terms, and the kernel of a sum."""
        spec, number = self.a.spec, self.number
        own = [function(f"static {number} own_term({number} x)", [f"return {spec.total.own};"])] * self.has_own
        joint = function(f"static {number} joint_term({number} x, {number} z)", [f"return {spec.total.joint};"])
        value = spec.value.expression.format(exp="expf", tanh="tanhf")
        width = ", float width" * (self.a.widths is not None)
        if width:
            value = value.replace("* s", "* width * s")
        return "\n\n".join(
            [*own, joint, self.sums(), function(f"static float kernel(float s{width})", [f"return {value};"])]
        )

    def sums(self) -> str:
        """The loop over the features of a row, and over the entries of the points in each."""
        number, listed = self.number, self.layout.listed
        scale = " * scale[feature]" * (self.a.scaling is not None)
        cast = "" if number == "float" else "(double)"
        lines = [
            "for (size_t n = 0; n < row->count; n++) {",
            "    const uint32_t feature = row->index ? row->index[n] : (uint32_t)n;",
            f"    const {number} x = {cast}(row->value[n]{scale});"
            if cast
            else f"    const float x = row->value[n]{scale};",
            "    if (x == 0)",
            "        continue;",
            *["    own_sum += own_term(x);"] * self.has_own,
            f"    const uint32_t c = {'column_of(feature)' if listed else 'feature'};",
            *[f"    if (c == {self.layout.columns} || columns[c] != feature)", "        continue;"] * listed,
            *(f"    {line}" for line in self.entries(cast)),
            "}",
        ]
        start = "own[j]" if self.has_own else "0"
        before = ["for (int j = 0; j < POINTS; j++)", f"    s[j] = {start};"]
        after = ["for (int j = 0; j < POINTS; j++)", "    s[j] += own_sum;"] * self.has_own
        body = [*[f"{number} own_sum = 0;"] * self.has_own, *before, *lines, *after]
        return function(f"static void sums(const Row *row, {number} *s)", body)

    def entries(self, cast: str) -> list[str]:
        """The loop over the entries of column c."""
        if self.layout.ragged:
            head = "for (uint32_t e = starts[c]; e < starts[c + 1]; e++)"
            owner, value = "owners[e]", "values[e]"
        else:
            head = "for (uint32_t j = 0, e = c * POINTS; j < POINTS; j++, e++)"
            owner, value = "j", "values[e]"
        value = value if self.steps is None else f"(float){value} * steps[{owner}]"
        value = f"{cast}({value})" if cast else value
        return [head, f"    s[{owner}] += joint_term(x, {value});"]

    def outputs(self) -> str:
        """The loop over the points."""
        name = f"static void {self.naming.prefix}_scores" if self.interface.plain else "static void outputs"
        body = [
            "const float *c = coef;",
            *self.summed(),
            "for (int k = 0; k < OUTPUTS; k++)",
            "    out[k] = bias[k];",
            "for (int j = 0; j < POINTS; j++, c += OUTPUTS) {",
            f"    const float v = {self.kernel_call()};",
            "    for (int k = 0; k < OUTPUTS; k++)",
            "        out[k] += v * c[k];",
            "}",
        ]
        return function(f"{name}(const Row *x, float *out)", body)

    def summed(self) -> list[str]:
        """Statements that compute the sums over features."""
        return [f"{self.number} s[POINTS];", "sums(x, s);"]

    def kernel_call(self) -> str:
        """The kernel of the row and point j."""
        return f"kernel({'' if self.number == 'float' else '(float)'}s[j]{self.width_read()})"

    def evaluation(self) -> str:
        """The kernel values of all points."""
        body = [*self.summed(), "for (int j = 0; j < POINTS; j++)", f"    values[j] = {self.kernel_call()};"]
        return function("static void evaluate(const Row *x, float *values)", body)

    def wrappers(self) -> list[str]:
        """The public functions, and the check of sparse rows."""
        check = function(
            "static int is_valid(const uint32_t *index, size_t count)",
            [
                "for (size_t n = 0; n < count; n++)",
                "    if (index[n] >= FEATURES || (n > 0 && index[n] <= index[n - 1]))",
                "        return 0;",
                "return 1;",
            ],
        )
        dense = self.interface.prototypes(self.prefix, probabilities=self.probable)
        found = [f"/* Whether features are in increasing order and below FEATURES. */\n{check}"]
        for whole, sparse in zip(dense, self.sparse_functions(), strict=True):
            found += _wrapped(whole, sparse, self.naming.prefix, self.interface.invalid)
        return found


def _wrapped(whole: str, sparse: str, inner: str, invalid: str) -> list[str]:
    """Return the functions of a row with all features and of a sparse row, by their declarations.

    `inner` is the prefix of the functions that they call.
    """
    name = next(each for each in ("predict", "scores", "proba") if f"_{each}(" in whole)
    of_whole, of_entries = "const Row row = { x, NULL, FEATURES };", "const Row row = { value, index, count };"
    if name == "predict":
        return [
            function(whole.removesuffix(";"), [of_whole, f"return {inner}_predict(&row);"]),
            function(
                sparse.removesuffix(";"),
                [of_entries, f"return is_valid(index, count) ? {inner}_predict(&row) : {invalid};"],
            ),
        ]
    call = f"{inner}_{name}(&row, {name});"
    return [
        function(whole.removesuffix(";"), [of_whole, call]),
        function(
            sparse.removesuffix(";"), [of_entries, "if (!is_valid(index, count))", "    return -1;", call, "return 0;"]
        ),
    ]


def _rounded(points: Array | SparsePoints, bits: int) -> tuple[SparsePoints, Array]:
    """Return points as whole numbers of so many bits, without those that become 0, and the step of each point."""
    assert isinstance(points, SparsePoints)
    largest, most = np.zeros(points.shape[0]), 2 ** (bits - 1) - 1
    np.maximum.at(largest, points.rows, np.abs(points.values))
    steps = np.where(largest > 0, largest, 1.0) / most
    whole = np.rint(points.values / steps[points.rows])
    return SparsePoints.of(points.starts, points.columns, whole, points.features), steps
