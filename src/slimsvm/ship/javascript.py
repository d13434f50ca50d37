"""JavaScript: one ES module without dependencies, for browsers and Node, of `model.mjs` with a model's tables in front."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from ..calibration import LEAST
from ..goals import Decision
from ..kernels.spec import POWER, spec_of
from ..rounding import Table
from ..words import ATOM, Words
from . import preparation_javascript
from .artefact import Array, Artefact
from .coded import Coded
from .literals import as_float32, encoded, label_literals, listing, table
from .preparation_javascript import declaration
from .sparse import SparsePoints, own_sums, smallest
from .template import LICENCE, filled, source

ROW = """\
/** All features, or nonzeros only: from feature numbers, counted from 0, to values. */
export type Row =
  | ArrayLike<number>
  | ReadonlyMap<number, number>
  | { readonly indices: ArrayLike<number>; readonly values: ArrayLike<number> };
"""
TEXT = """\
/** A text. */
export type Row = string;
"""


def declarations(a: Artefact, stem: str) -> str:
    """Return the declarations of a module."""
    values = {Decision.VALUE: "number", Decision.VALUES: "number[]"}
    predicted = "Label" if a.classes.size else values.get(a.decision, "1 | -1")
    lines = [f"// Types of {json.dumps(stem)[1:-1]}: {a.summary}.", "", _row(a)]
    lines += [f"export declare const features: {a.features};"]
    if a.names:
        lines += [f"export declare const featureNames: {_tuple(map(json.dumps, a.names))};"]
    if a.classes.size:
        lines += [f"export declare const classes: {_tuple(label_literals(a.classes, json.dumps))};"]
        lines += ["export type Label = (typeof classes)[number];"]
    lines += [f"export declare function predict(row: Row): {predicted};"]
    lines += [] if a.decision in values else ["export declare function scores(row: Row): number[];"]
    lines += [] if a.calibration is None else ["export declare function proba(row: Row): number[];"]
    lines += [] if a.interval is None else ["export declare function interval(row: Row): [number, number];"]
    return "\n".join([*lines, ""])


def _row(a: Artefact) -> str:
    if a.preparation is not None:
        return declaration(a.preparation)
    return ROW if a.words is None else TEXT


def _tuple(words: Iterable[str]) -> str:
    return f"readonly [\n    {listing(words)}\n]"


ABOUT_TEXTS = ["//", "// A row is a text, a string. Anything else throws a TypeError."]
#: Python's classes of characters, which differ from those of JavaScript
WORD, SPACE = r"\p{L}\p{N}_", r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CLASSES = {r"\w": WORD, r"\d": r"\p{Nd}", r"\s": SPACE}
PLACES = {
    r"\b": f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))",
    r"\B": f"(?:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))",
}
#: whole runs of letters, without the look behind that browsers before 2023 lack
USUAL = {r"\b\w\w+\b": f"[{WORD}]{{2,}}", r"\b\w+\b": f"[{WORD}]+", r"\w+": f"[{WORD}]+"}
#: characters that have a backslash in an expression of JavaScript, and in one only if that has them
SYNTAX = set(r"^$\.*+?()[]{}|/")


def expression(pattern: str) -> str:
    """Return a plain pattern of Python as one of JavaScript with the flag u."""
    pattern = pattern.removeprefix("(?u)")
    return USUAL[pattern] if pattern in USUAL else re.sub(rf"{ATOM}|[*+?|{{}}]", lambda found: _atom(found[0]), pattern)


def _atom(atom: str) -> str:
    if atom[0] == "[":
        inside = re.sub(r"\\(.)|/", lambda found: CLASSES.get(found[0]) or _escaped(found[1] or "/", also="-"), atom[1:-1])
        return f"[{inside}]"
    if atom in PLACES:
        return PLACES[atom]
    if atom.lower() in CLASSES:
        return f"[{'^' * atom[1].isupper()}{CLASSES[atom.lower()]}]"
    return _escaped(atom[-1]) if atom[0] in "\\/" else atom


def _escaped(character: str, also: str = "") -> str:
    return f"\\{character}" if character in SYNTAX or character in also else character


def _quoted(words: list[str]) -> str:
    return f"[\n    {listing(json.dumps(word, ensure_ascii=False) for word in words)}\n]"


def word_tables(words: Words) -> str:
    """Return the vocabulary and what goes with it."""

    numbered = f"const vocabulary = new Map({_quoted(list(words.vocabulary))}.map((word, i) => [word, i]));"
    lines = [f"const WORD = /{expression(words.pattern)}/gu;", numbered]
    lines += [f"const stopWords = new Set({_quoted(sorted(words.stop_words))});"] * bool(words.stop_words)
    lines += [] if words.idf is None else [f"const idf = {encoded(as_float32(words.idf, 'idf'))};"]
    return "\n".join([*lines, ""])


def word_expressions(words: Words) -> dict[str, str]:
    """Return what the words of `model.mjs` about texts stand for."""
    low, high = words.runs
    text = "text.toLowerCase()" if words.lowercase else "text"
    kept = ".filter((word) => !stopWords.has(word))" if words.stop_words else ""
    value = "1 + Math.log(count)" if words.sublinear else "count"
    return {
        "WORDS_OF_TEXT": f"({text}.match(WORD) ?? []){kept}",
        "LOW_RUN": f"{low}",
        "HIGH_RUN": f"{high}",
        "COUNTED": "1" if words.binary else "(counts.get(i) ?? 0) + 1",
        "WEIGHTED": value if words.idf is None else f"({value}) * idf[i]",
        "SIZE_OF": {None: "1", "l1": "Math.abs(x)", "l2": "x * x"}[words.norm],
        "ROOT": "Math.sqrt(sum)" if words.norm == "l2" else "sum",
    }


#: what predict and scores return, in words: by how outputs become a prediction
LABEL, A_SCORE_EACH = "the label of an array of numbers", "a score for each class"
PREDICTIONS = {
    Decision.VALUE: "the value of an array of numbers",
    Decision.VALUES: "[the value of each target] of an array of numbers",
    Decision.SIDE: "1 for an array of numbers like the training rows, -1 for a novel one",
}
SCORES = {
    Decision.SIGN: "[score], above 0 for the second class",
    Decision.SIDE: "[score], below 0 for novel rows",
}
#: the probability of score k before the sum is made 1, for each kind of map
PROBABILITIES = {
    "sigmoid": "1 / (1 + Math.exp(-(slope[k] * score + shift[k])))",
    "isotonic": "curve(score, k)",
    "temperature": "1 / (1 + Math.exp(-score / TEMPERATURE))",
    "softmax": "Math.exp((score - top) / TEMPERATURE)",
}
#: the tables of the maps: their names in the module by those of the fields
MAP_TABLES = {
    "sigmoid": {"slope": "slope", "shift": "shift"},
    "isotonic": {"scores": "knotScores", "values": "knotValues", "starts": "knotStarts"},
}
#: terms and kernel values of tables of codes, rounded to float32 after each operation
ROUNDED_TERMS = {
    "inner": "round(x * z)",
    "squares": "round(round(x - z) ** 2)",
    "manhattan": "round(Math.abs(x - z))",
    "chi_squared": "(round(x + z) !== 0 ? round(round(round(x - z) ** 2) / round(x + z)) : 0)",
}
ROUNDED_VALUES = {
    "identity": "s",
    "exp": "exponential(round(-GAMMA * s))",
    "power": "power(round(round(GAMMA * s) + COEF0))",
    "tanh": "tangent(round(round(GAMMA * s) + COEF0))",
}
#: the lines of the module's comment about rows
ABOUT_ROWS = [
    "//",
    "// A row is an array of all features, or has its nonzeros only: a Map from feature numbers (from 0) to values, or",
    "// { indices: [...], values: [...] } in any order, each feature once. Anything else throws an error.",
]
#: little-endian numbers as base64, which every browser and Node decode: decimal digits would take twice as many bytes
DECODE = "const decode = (text, kind) => new kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);\n"


INTERVAL = """/** Both ends of the interval of a row. */
export function interval(row) {{
  const value = predict(row);
  return [value - {reach!r}, value + {reach!r}];
}}
"""


@dataclass(frozen=True)
class JavaScriptExporter:
    """A module that exports features, classes, scores(row) and predict(row); tables are Float32Array, sums double.

    `precision` is float32 or int4, by default the one for which the model was made; int4 computes in float32, as C does.

    `featureNames` are the names of the columns that the model was trained on, if it knows them. Types for TypeScript are
    in a file beside it.

    Regression and novelty detection have no classes, and a regressor has no scores.
    """

    ending: ClassVar[str] = ".mjs"
    precision: str | None = None
    coverage: float | None = None

    def __post_init__(self) -> None:
        if self.precision not in (None, "float32", "int4"):
            raise ValueError(f"unknown precision {self.precision!r} of JavaScript tables; there are ['float32', 'int4']")

    def render(self, artefact: Artefact, stem: str) -> dict[str, bytes]:
        """Return the module and the types of what it exports."""
        spec_of(artefact.kernel, "the JavaScript export")
        covered = artefact.covering(self.coverage)
        coded = Coded.of(covered, "int4") if (self.precision or artefact.precision) == "int4" else None
        a = covered.compact() if coded is None else coded.a
        pieces = [_head(a, stem), *_tables(a, coded), filled(source("model.mjs"), _branches(a, coded), _words(a, coded))]
        pieces += [] if a.interval is None else [INTERVAL.format(reach=a.interval)]
        return {self.ending: "\n".join(pieces).encode(), ".d.mts": declarations(a, stem).encode()}


def _about_rows(a: Artefact) -> list[str]:
    if a.preparation is not None:
        return preparation_javascript.HEAD
    return ABOUT_ROWS if a.words is None else ABOUT_TEXTS


def _head(a: Artefact, stem: str) -> str:
    name, scored = json.dumps(stem)[1:-1], a.decision not in (Decision.VALUE, Decision.VALUES)
    names = "predict" + ", scores" * scored + ", proba" * (a.calibration is not None)
    lines = [
        f"// {name}: {a.summary}.",
        f"// Written by slimsvm {version('slimsvm')}; do not edit. {LICENCE}",
        "//",
        f'//   import {{ {names} }} from "./{name}.mjs";',
        f"//   predict(row)  {PREDICTIONS.get(a.decision, LABEL)}",
    ]
    lines += [f"//   scores(row)   {SCORES.get(a.decision, A_SCORE_EACH)}"] * scored
    lines += [] if a.calibration is None else ["//   proba(row)    the probability of each class; the largest is predicted"]
    lines += [*_about_rows(a), "", f"export const features = {a.features};"]
    if a.names:
        lines += ["export const featureNames = [", f"    {listing(map(json.dumps, a.names))}", "];"]
    if a.classes.size:
        lines += ["export const classes = [", f"    {listing(label_literals(a.classes, json.dumps))}", "];"]
    return "\n".join([*lines, ""])


# Tables and constants.


def _tables(a: Artefact, coded: Coded | None) -> list[str]:
    """Return the numbers of a model as statements."""
    if coded is not None:
        return [DECODE, "\n".join([*_code_lines(coded), *_plain_lines(a, coded), ""])]
    packed = _sparse_arrays(a)
    plain = {} if packed else {"points": as_float32(a.table, "points"), "coef": as_float32(a.coef, "coefficients")}
    if a.projection is not None:
        plain["projection"] = as_float32(a.projection, "projection")
    if a.widths is not None:
        (packed or plain)["widths"] = as_float32(a.widths, "widths", each=True)
    lines = [f"const {name} = {encoded(values)};" for name, values in packed.items()]
    lines += [f"const {name} = new Float32Array([\n{table(values)}\n]);" for name, values in plain.items()]
    lines += _plain_lines(a, None)
    words = [] if a.words is None else [word_tables(a.words)]
    words += [] if a.preparation is None else [preparation_javascript.table_code(a.preparation)]
    return [DECODE] * bool(packed or a.words) + words + ["\n".join([*lines, ""])]


def _plain_lines(a: Artefact, coded: Coded | None) -> list[str]:
    """Return the numbers in double precision, and the constants."""
    lines = [f"const {name} = [\n    {listing(map(_number, values))}\n];" for name, values in _doubles(a).items()]
    return lines + [f"const {name} = {value!r};" for name, value in _constants(a, coded).items()]


def _code_lines(coded: Coded) -> list[str]:
    """Return the tables of codes, which `expand` reads."""
    tables, lines = {"points": coded.points, "coef": coded.coef, "projection": coded.projection}, []
    lines += [f"const BITS = {coded.bits};"]
    for name, codes in tables.items():
        if isinstance(codes, Table):
            size, columns = codes.codes.size, codes.codes.shape[1]
            pair = f"e % {columns}" if codes.by_column else f"Math.floor(e / {columns})"
            parts = ", ".join([encoded(codes.packed), str(size), encoded(codes.low), encoded(codes.step)])
            lines += [f"const {name} = expand({parts}, (e) => {pair});"]
    if coded.width_numbers is not None:
        lines += [f"const widths = {encoded(coded.width_numbers)};"]
    return lines


def _sparse_arrays(a: Artefact) -> dict[str, Array]:
    if not isinstance(a.points, SparsePoints):
        return {}
    columns = a.points.by_column()
    return {
        "columns": smallest(columns.columns),
        "starts": smallest(columns.starts),
        "owners": smallest(columns.points),
        "entriesOfPoints": as_float32(columns.values, "points"),
        "own": as_float32(own_sums(a.spec, a.points), "sums of squares"),
        "coef": as_float32(a.coef, "coefficients"),
    }


def _doubles(a: Artefact) -> dict[str, list[Any]]:
    """Return the bias, the scaling and the map to probabilities, in double precision."""
    scaling = ["centre", "scale"] if a.scaling is not None else []
    scaling += ["low", "high"] if a.scaling is not None and a.scaling.clips else []
    found = {"bias": a.bias} | {name: getattr(a.scaling, name) for name in scaling}
    found |= {name: getattr(a.calibration, field) for field, name in MAP_TABLES.get(_map(a), {}).items()}
    return {name: values.tolist() for name, values in found.items()}


def _constants(a: Artefact, coded: Coded | None) -> dict[str, float]:
    """Return the parameters of the kernel and of the map to probabilities."""
    calibration: Any = a.calibration
    found = {parameter.name.upper(): a.parameters[parameter.name] for parameter in a.spec.parameters}
    if coded is not None:
        found |= {name: float(np.float32(value)) for name, value in found.items() if isinstance(value, float)}
        found |= {"GAMMA": float(coded.gamma)} if "GAMMA" in found else {}
    return found | ({"TEMPERATURE": calibration.temperature} if _map(a) in ("temperature", "softmax") else {})


def _number(value: float) -> str:
    return repr(value) if np.isfinite(value) else f"{'-' * (value < 0)}Infinity"


# The branches and words of `model.mjs`.


def _map(a: Artefact) -> str:
    """Return the kind of the map to probabilities; empty without one."""
    if a.calibration is None:
        return ""
    return "softmax" if a.calibration.name == "temperature" and a.classes.size > 2 else a.calibration.name


def _branches(a: Artefact, coded: Coded | None) -> dict[str, int | str]:
    return {
        "TEXT": a.words is not None,
        "TABLE": a.preparation is not None,
        "NORM": a.words is not None and a.words.norm is not None,
        "CODED": coded is not None,
        "PROJECTED": a.projection is not None,
        "POWER": a.spec.value is POWER,
        "SPARSE": isinstance(a.points, SparsePoints),
        "SCALED_ROWS": a.scaling is not None,
        "DECISION": a.decision.name,
        "TALLIED": a.by_pairs,
        "MAP": _map(a).upper() or 0,
        "TWO": a.classes.size == 2,
    }


def _words(a: Artefact, coded: Coded | None) -> dict[str, str]:
    sparse, value = isinstance(a.points, SparsePoints), a.spec.value.expression.format(exp="Math.exp", tanh="Math.tanh")
    value = value if coded is None else ROUNDED_VALUES[a.spec.value.name]
    if a.widths is not None:
        value = value.replace("* s", f"* widths[{'j' if sparse else f'start / {a.columns}'}] * s")
    value = value.replace("-GAMMA * widths", "round(-GAMMA * widths").replace("] * s", "]) * s") if coded else value
    scaled = "(x - centre[i]) * scale[i]" if coded is None else "round(round(round(x) - centre[i]) * scale[i])"
    return {
        "entriesOfText": "entries",
        "entriesOfTable": "entries",
        "evaluateSparse": "evaluate",
        "SPARSE_VALUE": "values[n]" if a.scaling is None else "values[n] * scale[i]",
        "OWN_TERM": a.spec.total.own or "0",
        "JOINT_TERM": a.spec.total.joint,
        "TERM": a.spec.total.term if coded is None else ROUNDED_TERMS[a.spec.total.name],
        "ROUND": "" if coded is None else "round",
        "COLUMNS": f"{a.columns}",
        "ALL_NUMBERS": "numbers(row)" if coded is None else "Float32Array.from(numbers(row))",
        "PROJECTED_ROW": f"new {'Float64Array' if coded is None else 'Float32Array'}({a.columns})",
        "VALUE": value,
        "SCALED": f"Math.min(Math.max({scaled}, low[i]), high[i])" if a.scaling is not None and a.scaling.clips else scaled,
        "PAIR_OUTPUTS": "bias.map((_, k) => output(values, k))" if a.decision is Decision.DAG else "outputs(row)",
        "PROBABILITY": PROBABILITIES.get(_map(a), ""),
        "LEAST": repr(LEAST),
        **({} if a.words is None else word_expressions(a.words)),
    }
