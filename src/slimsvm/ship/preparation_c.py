"""The rows of a table in C: a struct with a field for each column, codes of words, and the function that prepares a row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..tables.code import Language, c_real, code_of, indented
from ..tables.program import Array, Column, Preparation, Step
from ..tables.recognition import HOLES
from .literals import as_float32, c_string, identifier, listing, table
from .sparse import smallest

KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false
    nullptr constexpr alignas alignof thread_local typeof asm class new delete this template typename namespace using try
    catch throw public private protected virtual friend operator explicit export mutable and or not xor nan infinity
    """.split()  # noqa: SIM905
)
#: codes of words that are no category
MISSING, OTHER = -1, -2
WORDS = {
    "INT": "int",
    "INDEX": "int",
    "TO_INT": "(int)",
    "ISNAN": "isnan",
    "FUNCTION": "static REAL",
}
MATH = ("ABS", "SQRT", "LOG", "LOG1P", "EXPM1")
NAMES = {"ABS": "fabs", "SQRT": "sqrt", "LOG": "log", "LOG1P": "log1p", "EXPM1": "expm1"}


@dataclass(frozen=True)
class CTable:
    """The text of a preparation in C."""

    preparation: Preparation
    prefix: str
    features: int

    @property
    def real(self) -> str:
        """The type of the tape."""
        return c_real(self.preparation)

    @property
    def row(self) -> str:
        """The type of a raw row, as a parameter."""
        return "const float *row" if self.preparation.is_array else f"const {self.prefix}_row *row"

    @cached_property
    def fields(self) -> list[str]:
        """A name for each column, which is no keyword and no other column's."""
        names: list[str] = []
        for column in self.preparation.columns:
            name = (
                identifier(column.title).removeprefix("model_") if column.title[:1].isdigit() else identifier(column.title)
            )
            name = f"_{name}" if name[:1].isdigit() else name
            name = f"{name}_" if name.lower() in KEYWORDS else name
            while name in names:
                name += "_"
            names.append(name)
        return names

    @cached_property
    def constants(self) -> dict[str, list[str]]:
        """The names of the codes of each column of words, all different."""
        found: dict[str, list[str]] = {}
        taken = {f"{self.prefix}_{each}".upper() for each in ("MISSING", "OTHER", "FEATURES", "SCORES", "LABELS", "H")}
        for field, column in self.worded:
            found[field] = []
            for code, word in enumerate(column.words):
                plain = re.sub(r"\W+", "_", word, flags=re.ASCII).strip("_") or f"{code}"
                name = f"{self.prefix}_{field}_{plain}".upper()
                while name in taken:
                    name += f"_{code}"
                taken.add(name)
                found[field].append(name)
        return found

    @property
    def worded(self) -> list[tuple[str, Column]]:
        """The columns of words with their fields."""
        return [
            (field, column)
            for field, column in zip(self.fields, self.preparation.columns, strict=True)
            if column.kind == "word"
        ]

    def prototypes(self) -> list[str]:
        """Return the declarations of functions of a raw row."""
        lookups = [f"int {self.prefix}_{field}_code(const char *text);" for field, _ in self.worded]
        return [*lookups, f"void {self.prefix}_prepare({self.row}, float *x);"]

    def declarations(self) -> str:
        """Return the struct of a row and the codes of words."""
        p = self.prefix
        if self.preparation.is_array:
            return (
                f"/* A raw row has {self.preparation.given} numbers, NAN for missing ones. */\n"
                f"#define {p.upper()}_COLUMNS {self.preparation.given}\n"
            )
        lines = [
            "/* A row of the table: numbers, NAN for missing ones; dates as days since 1970-01-01 in UTC; codes of words */"
        ]
        lines += ["typedef struct {"]
        for field, column in zip(self.fields, self.preparation.columns, strict=True):
            kind = "int" if column.kind == "word" else "float"
            what = {"word": f": a code, see {p}_{field}_code", "date": ": days since 1970-01-01"}.get(column.kind, "")
            lines += [f"    {kind} {field}; /* {_comment(column.title)}{what} */"]
        lines += [f"}} {p}_row;", ""]
        if self.worded:
            upper = p.upper()
            lines += ["/* Codes of missing words, of words that training has not seen or hardly, and of all others. */"]
            lines += ["enum {", f"    {upper}_MISSING = {MISSING},", f"    {upper}_OTHER = {OTHER}", "};"]
        for names in self.constants.values():
            if names:
                lines += ["enum {", f"    {listing(f'{name} = {code}' for code, name in enumerate(names))}", "};"]
        return "\n".join([*lines, ""])

    def source(self, functions: list[tuple[str, str, str]]) -> str:
        """Return the tables, the lookups, the preparation, and functions of a raw row, given as type, name and output."""
        language = Language(self._words(), self._table, self._number)
        tables, statements = code_of(self.preparation, language)
        pieces = [tables, *self._lookups(), self._prepare(statements)]
        pieces += [self._function(*function) for function in functions]
        return "\n\n".join(piece.strip("\n") for piece in pieces if piece) + "\n"

    @property
    def stack(self) -> int:
        """The bytes on the stack: the tape and the prepared row."""
        return self.preparation.starts[-1] * (8 if self.preparation.precise else 4) + 4 * self.features

    def _words(self) -> dict[str, str]:
        suffix = "" if self.real == "double" else "f"
        words = WORDS | {name: NAMES[name] + suffix for name in MATH}
        words |= {"ONE": f"1.0{suffix}", "ZERO": f"0.0{suffix}"}
        return words | {"REAL": self.real, "VAR": self.real, "TO_REAL": f"({self.real})", "FUNCTION": f"static {self.real}"}

    def _stored(self, values: Array, step: Step) -> Array:
        if values.dtype.kind in "iu":
            return smallest(values)
        if step.kind == "power":
            return values.astype(np.float64)
        # raw rows are float32, and must equal a number of a table where they do in Python
        narrow = as_float32(values, "preparation")
        return narrow.astype(np.float64) if self.real == "double" else narrow

    def _table(self, name: str, values: Array, step: Step) -> str:
        stored = self._stored(values, step)
        kind = f"{'u' * (stored.dtype.kind == 'u')}int{8 * stored.itemsize}_t" if stored.dtype.kind in "iu" else ""
        kind = kind or ("float" if stored.itemsize == 4 else "double")
        text = re.sub(r"\bnanf?\b", "NAN", table(stored, "f"))
        return f"static const {kind} {name}[{stored.size}] = {{\n{text}\n}};"

    def _number(self, value: float, step: Step) -> str:
        if np.isnan(value):
            return "NAN"
        if self.real == "double" and step.kind == "power":
            return repr(value)
        if self.real == "double":
            return repr(float(np.float32(value)))
        text = f"{np.float32(value):.9g}"
        return f"{text if re.search('[.e]', text) else text + '.0'}f"

    def _lookups(self) -> list[str]:
        if not self.worded:
            return []
        upper = self.prefix.upper()
        holes = ", ".join(c_string(hole) for hole in HOLES)
        texts = [
            f"""static int code_of(const char *text, const char *const *words, int count)
{{
    static const char *const holes[] = {{ {holes} }};
    if (text == NULL)
        return {upper}_MISSING;
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    for (int i = 0; i < {len(HOLES)}; i++)
        if (strcmp(text, holes[i]) == 0)
            return {upper}_MISSING;
    return {upper}_OTHER;
}}"""
        ]
        for field, column in self.worded:
            words = listing(map(c_string, column.words)) or "NULL"
            texts.append(f"""/* The code of a word of {_comment(column.title)}. */
int {self.prefix}_{field}_code(const char *text)
{{
    static const char *const words[] = {{
    {words}
    }};
    return code_of(text, words, {len(column.words)});
}}""")
        return texts

    def _prepare(self, statements: str) -> str:
        """Return the function from a raw row to a prepared one."""
        preparation = self.preparation
        lines = [f"    {self.real} t[{max(preparation.starts[-1], 1)}];"]
        for place, (field, column) in enumerate(zip(self.fields, preparation.columns, strict=True)):
            read = f"row[{column.position}]" if preparation.is_array else f"row->{field}"
            if column.kind == "word":
                known = f"{read} >= 0 && {read} < {len(column.words)}"
                missing = f"{read} == {self.prefix.upper()}_MISSING"
                lines.append(f"    t[{place}] = {known} ? ({self.real}){read} : {missing} ? NAN : -1;")
            else:
                lines.append(f"    t[{place}] = {'(double)' * self.preparation.precise}{read};")
        outputs = preparation.outputs
        cast = "(float)" if self.real == "double" else ""
        places = smallest(outputs)
        rising = bool((np.diff(outputs) == 1).all())
        index = f"{outputs[0]} + i" if rising else "places[i]"
        if not rising:
            kind = f"uint{8 * places.itemsize}_t"
            lines.insert(0, f"    static const {kind} places[] = {{\n{table(places)}\n    }};")
        lines.append(indented(statements).rstrip("\n"))
        lines.append(f"    for (int i = 0; i < {outputs.size}; i++)\n        x[i] = {cast}t[{index}];")
        return f"void {self.prefix}_prepare({self.row}, float *x)\n{{\n" + "\n".join(lines) + "\n}"

    def _function(self, returns: str, name: str, output: str) -> str:
        """Return a function of a raw row that calls the one of the prepared row."""
        p, argument = self.prefix, f", float *{output}" if output else ""
        call = f"{p}_{name}_prepared(x{', ' + output if output else ''})"
        result = f"return {call}" if returns != "void" else call
        return f"""{returns} {p}_{name}({self.row}{argument})
{{
    float x[{self.features}];
    {p}_prepare(row, x);
    {result};
}}"""


def _comment(text: str) -> str:
    """Return a text that may stand in a comment."""
    return re.sub(r"[^\x20-\x7e]|\*/|/\*|\?\?", "_", text).rstrip("\\")
