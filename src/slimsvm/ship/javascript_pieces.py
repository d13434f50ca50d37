"""Pieces of a JavaScript module that models with dense and with sparse points share: how it reads a row, and constants."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from ..kernels.spec import POWER
from .artefact import Array, Artefact
from .literals import listing

#: the lines of the module's comment about rows
HEAD = [
    "//",
    "// A row is an array of all features, or has its nonzeros only: a Map from feature numbers (from 0) to values, or",
    "// { indices: [...], values: [...] } in any order, each feature once. Anything else throws an error.",
]
ROWS = """\
const isList = (x) => typeof x === "object" && x !== null && Number.isInteger(x.length);

/** The numbers of the features that a row lists, null for all of them, and their values. */
function entries(row) {
  if (row instanceof Map) row = { indices: [...row.keys()], values: [...row.values()] };
  const [indices, values] = isList(row) ? [null, row] : [row?.indices, row?.values];
  if (!isList(values) || (indices !== null && !isList(indices))) {
    throw new TypeError("a row is an array of numbers, a Map, or an object with the arrays indices and values");
  }
  const count = indices === null ? features : indices.length;
  if (values.length !== count) throw new RangeError(`a row of ${count} features has ${values.length} values`);
  let sorted = true;
  for (let n = 0; n < count; n++) {
    const i = indices === null ? n : indices[n], x = values[n];
    if (!Number.isInteger(i) || i < 0 || i >= features) throw new RangeError(`there is no feature ${i} of ${features}`);
    if (typeof x !== "number") throw new TypeError(`feature ${i} is a ${typeof x}, not a number`);
    if (!Number.isFinite(x)) throw new RangeError(`feature ${i} is ${x}, not a finite number`);
    sorted &&= n === 0 || i > (indices === null ? n - 1 : indices[n - 1]);
  }
  if (!sorted && new Set(Array.from(indices)).size < count) throw new RangeError("a row lists a feature twice");
  return [indices, values];
}
"""
#: for points with all their features
ALL = """\
/** All numbers of a row; features that it does not list are 0. */
function numbers(row) {
  const [indices, values] = entries(row);
  if (indices === null) return values;
  const all = new Float64Array(features);
  for (let n = 0; n < indices.length; n++) all[indices[n]] = values[n];
  return all;
}
"""
#: one output, by the kernel values of all points
OUTPUT = """\
function output(values, k) {
  return values.reduce((sum, value, j) => sum + value * coef[j * bias.length + k], bias[k]);
}
"""

DECODE = """\
const decode = (text, kind) => new kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
"""
#: typed arrays by the types of numbers
TYPED = {"float32": "Float32Array", "uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array"}


def encoded(values: Array) -> str:
    """Return an array as JavaScript: little-endian numbers as base64, half the bytes of decimal digits."""
    content = b64encode(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()).decode()
    return f'decode("{content}", {TYPED[values.dtype.name]})'


def double_tables(a: Artefact) -> list[str]:
    """Return the bias and the scaling, in double precision."""
    doubles = {"bias": a.bias}
    if a.scaling is not None:
        doubles |= {"centre": a.scaling.centre, "scale": a.scaling.scale}
        doubles |= {"low": a.scaling.low, "high": a.scaling.high} if a.scaling.clips else {}
    return [f"const {name} = [\n    {listing(map(_number, values.tolist()))}\n];" for name, values in doubles.items()]


def constants(a: Artefact) -> list[str]:
    """Return the parameters of the kernel."""
    return [f"const {p.name.upper()} = {a.parameters[p.name]!r};" for p in a.spec.parameters]


def power(a: Artefact) -> str:
    """Return the function that the poly kernel calls; nothing for other kernels."""
    return "const power = (base) => base ** DEGREE;\n\n" if a.spec.value is POWER else ""


def _number(value: float) -> str:
    return repr(value) if np.isfinite(value) else f"{'-' * (value < 0)}Infinity"
