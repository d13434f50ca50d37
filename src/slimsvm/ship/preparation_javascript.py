"""The rows of a table in JavaScript: an object by the names of its columns, prepared to numbers."""

from __future__ import annotations

import json

import numpy as np

from ..tables.code import Language, code_of, indented
from ..tables.program import Array, Column, Preparation, Step
from .literals import listing

HEAD = [
    "//",
    "// A row is an object by the names of the columns, or an array of all columns: numbers, strings, and for dates a Date",
    "// or days since 1970. null, undefined and NaN are missing; a string that training has not seen is one of the others.",
    "// Anything else throws a TypeError.",
]
WORDS = {
    "INT": "let",
    "INDEX": "",
    "REAL": "",
    "VAR": "let",
    "TO_INT": "",
    "TO_REAL": "",
    "ISNAN": "Number.isNaN",
    "FUNCTION": "function",
    "ONE": "1",
    "ZERO": "0",
    "ABS": "Math.abs",
    "SQRT": "Math.sqrt",
    "LOG": "Math.log",
    "LOG1P": "Math.log1p",
    "EXPM1": "Math.expm1",
}
#: the types of cells for TypeScript
TYPES = {"number": "number | null", "word": "string | null", "date": "Date | number | null"}


def table_code(preparation: Preparation) -> str:
    """Return the tables and the function that prepares a row."""
    tables, statements = code_of(preparation, Language(WORDS, _table, _number))
    columns = ",\n".join(_column(column) for column in preparation.columns)
    places = _listed(preparation.outputs)
    return f"""// The columns that are read: place in an array, name, kind, and codes of words.
const columnsOfTable = [
{columns},
];
{tables}

/** The numbers of a row of the table. */
function prepare(row) {{
  const isRow = typeof row === "object" && row !== null && !(row instanceof Map);
  if (!isRow) throw new TypeError("a row is an object by the names of the columns, or an array of all columns");
  if (Array.isArray(row) && row.length !== {preparation.given}) {{
    throw new RangeError(`a row of {preparation.given} columns has ${{row.length}} values`);
  }}
  const t = new Float64Array({preparation.starts[-1]});
  columnsOfTable.forEach((column, place) => {{
    t[place] = numberOf(Array.isArray(row) ? row[column.place] : row[column.name], column);
  }});
{indented(statements).replace("    ", "  ").rstrip(chr(10))}
  return Float64Array.from({places}, (place) => t[place]);
}}

/** A cell as a number: NaN for missing ones, codes of words, days of dates. */
function numberOf(cell, {{ name, kind, words }}) {{
  if (cell === null || cell === undefined || Number.isNaN(cell)) return NaN;
  if (kind === "word") return words.get(String(cell)) ?? -1;
  if (kind === "date" && cell instanceof Date) return cell.getTime() / {24 * 3600 * 1000};
  if (typeof cell === "boolean") return Number(cell);
  if (typeof cell !== "number") throw new TypeError(`column ${{name}} is a ${{typeof cell}}, not a ${{kind}}`);
  return cell;
}}
"""


def declaration(preparation: Preparation) -> str:
    """Return the type of a row for TypeScript."""
    if not preparation.names:
        return "/** All columns of a row. */\nexport type Row = readonly (number | string | Date | null)[];\n"
    fields = "\n".join(f"  readonly {json.dumps(column.name)}?: {TYPES[column.kind]};" for column in preparation.columns)
    return (
        f"/** The columns of a row, by name, or all of them in order. */\nexport type Row =\n  | {{\n{fields}\n  }}\n"
        + ("  | readonly (number | string | Date | null)[];\n")
    )


def _column(column: Column) -> str:
    words = ", ".join(f"[{json.dumps(word, ensure_ascii=False)}, {code}]" for code, word in enumerate(column.words))
    name = json.dumps(column.title, ensure_ascii=False)
    return f'  {{ place: {column.position}, name: {name}, kind: "{column.kind}", words: new Map([{words}]) }}'


def _table(name: str, values: Array, step: Step) -> str:  # noqa: ARG001
    return f"const {name} = {_listed(values)};"


def _listed(values: Array) -> str:
    numbers = [_number(value) if isinstance(value, float) else str(value) for value in values.ravel().tolist()]
    return f"[\n    {listing(numbers)}\n]"


def _number(value: float, step: Step | None = None) -> str:  # noqa: ARG001
    return "NaN" if np.isnan(value) else repr(value)
