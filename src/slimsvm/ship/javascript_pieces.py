"""Pieces of a JavaScript module that models with dense and with sparse points share."""

from __future__ import annotations

import numpy as np

from ..kernels.spec import POWER
from .artefact import Artefact
from .literals import listing

#: one output, by the kernel values of all points
OUTPUT = """\
function output(values, k) {
  return values.reduce((sum, value, j) => sum + value * coef[j * bias.length + k], bias[k]);
}
"""


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
