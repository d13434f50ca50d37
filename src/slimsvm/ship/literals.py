"""Arrays and names as source text that reads back exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice

import numpy as np

from .artefact import Array

PER_LINE = {"f": 8, "i": 20}


def as_float32(values: Array, what: str) -> Array:
    """The values in float32, none of which may overflow."""
    with np.errstate(over="ignore"):
        narrow = np.asarray(values, dtype=np.float32)
    if not np.isfinite(narrow).all():
        largest = float(np.abs(values).max())
        raise ValueError(f"the {what} reach {largest:.3g}, beyond float32 (3.4e38); scale the features or the targets")
    return narrow


def table(values: Array) -> str:
    """The numbers of an array in lines: `%.9g` for float32, which reads back exactly, and digits for integers."""
    form = "%d" if values.dtype.kind == "i" else "%.9g"
    numbers = iter(values.ravel().tolist())
    lines = []
    while chunk := tuple(islice(numbers, PER_LINE[values.dtype.kind])):
        lines.append(("    " + ", ".join([form] * len(chunk))) % chunk)
    return ",\n".join(lines)


def float_literal(value: float) -> str:
    """A float constant of C."""
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if re.search(r"[.e]", text) else f"{text}.0f"


def label_literals(classes: Array, quote: Callable[[str], str]) -> list[str]:
    """The classes as numbers, or as strings in quotes."""
    if classes.dtype.kind in "OUS":
        return [quote(str(label)) for label in classes]
    return [repr(label) for label in (classes.astype(int) if classes.dtype.kind == "b" else classes).tolist()]


def c_string(text: str) -> str:
    """A string constant of C in UTF-8; escapes have three octal digits and no question mark begins a trigraph."""
    plain = {byte: chr(byte) for byte in range(32, 127) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def identifier(text: str) -> str:
    """A C identifier made of the letters and digits of a name."""
    name = _plain(text)
    return name if name and not name[0].isdigit() else f"model_{name}".rstrip("_")


def class_names(classes: Array) -> list[str]:
    """A name for each class that may follow PREFIX_CLASS_: letters and digits of the label, numbered where two agree."""
    names = [_plain(str(label)) for label in classes.tolist()]
    clear = len(set(names)) == len(names) and all(names)
    return names if clear else [f"{number}_{name}".rstrip("_") for number, name in enumerate(names)]


def _plain(label: str) -> str:
    return re.sub(r"\W+", "_", re.sub(r"^-", "minus_", label), flags=re.ASCII).strip("_")


def listing(words: Iterable[str], width: int = 110) -> str:
    """Words with commas between them, in lines."""
    lines, line = [], ""
    for word in words:
        if line and len(line) + len(word) > width:
            lines.append(line.rstrip())
            line = ""
        line += f"{word}, "
    return "\n    ".join([*lines, line.rstrip(", ")])
