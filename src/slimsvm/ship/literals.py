"""Arrays and names as source text that reads back exactly."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np

from .artefact import Array, Artefact, moderate

PER_LINE = {"f": 8, "i": 20, "u": 20}
#: typed arrays of JavaScript by the types of numbers
TYPED = {"float32": "Float32Array", "uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array"}
#: the smallest number with the full precision of float32
TINY = float(np.finfo(np.float32).tiny)
REMEDY = "put a StandardScaler before the model, in one Pipeline, and train again"


def as_float32(values: Array, what: str, *, each: bool = False) -> Array:
    """Return the values in float32; raise ValueError if the largest is out of range, or with `each` any that is not 0."""
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.asarray(values, dtype=np.float32)
    sizes = np.abs(values)
    largest = float(sizes.max(initial=0.0))
    if not np.isfinite(narrow).all():
        raise ValueError(f"the {what} reach {largest:.3g}, beyond float32 (3.4e38); {REMEDY}")
    least = float(sizes[sizes > 0].min(initial=np.inf)) if each else largest
    if 0 < least < TINY:
        raise ValueError(f"the {what} are as small as {least:.3g}, below what float32 holds (1.2e-38); {REMEDY}")
    return narrow


def check_float32(a: Artefact) -> None:
    """Raise ValueError if sums over features exceed float32.

    The kernel's parameters show it: gamma is about one over the sum between two rows, so a gamma of 1e-40 means sums of
    1e40, which are infinite in float32.
    """
    for name, value in a.parameters.items():
        if not moderate(value):
            raise ValueError(
                f"{name}={value:.3g} of the {a.kernel} kernel means features far from 1, whose sums float32 does not hold; "
                f"{REMEDY}"
            )


def table(values: Array, suffix: str = "") -> str:
    """Return the numbers of an array in lines, with digits that read back exactly: nine for float32, 17 for float64.

    The suffix follows numbers with a fraction: without "f" they are double constants in C, for which -Wconversion warns.
    """
    kind, numbers = values.dtype.kind, values.ravel().tolist()
    if kind == "f" and values.itemsize == 8:
        words: Iterator[str] = map(repr, numbers)
    else:
        words = map(str, numbers) if kind in "iu" else (_float(number, suffix) for number in numbers)
    lines = []
    while chunk := ", ".join(islice(words, PER_LINE[kind])):
        lines.append(f"    {chunk}")
    return ",\n".join(lines)


def encoded(values: Array) -> str:
    """Return an array as JavaScript: little-endian numbers in base64, given to `decode`."""
    content = b64encode(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()).decode()
    return f'decode("{content}", {TYPED[values.dtype.name]})'


def _float(value: float, suffix: str) -> str:
    text = f"{value:.9g}"
    return text + suffix if "." in text or "e" in text else text


def float_literal(value: float) -> str:
    """Return a float constant of C."""
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    if not np.isfinite(narrow) or (value and abs(narrow) < TINY):
        raise ValueError(f"the constant {value:.3g} is beyond float32 (1.2e-38 to 3.4e38); {REMEDY}")
    text = f"{narrow:.9g}"
    return f"{text}f" if re.search(r"[.e]", text) else f"{text}.0f"


def label_literals(classes: Array, quote: Callable[[str], str]) -> list[str]:
    """Return the classes as numbers, or as strings in quotes."""
    if classes.dtype.kind in "OUS":
        return [quote(str(label)) for label in classes]
    return [repr(label) for label in (classes.astype(int) if classes.dtype.kind == "b" else classes).tolist()]


def c_string(text: str) -> str:
    """Return a string constant of C in UTF-8; escapes have three octal digits and no question mark begins a trigraph."""
    plain = {byte: chr(byte) for byte in range(32, 127) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def identifier(text: str) -> str:
    """Return a C identifier made of the letters and digits of a name."""
    name = _plain(text)
    return name if name and not name[0].isdigit() else f"model_{name}".rstrip("_")


def class_names(classes: Array) -> list[str]:
    """Return a name for each class to follow PREFIX_CLASS_: letters and digits of the label, numbered if two are equal."""
    names = [_plain(str(label)) for label in classes.tolist()]
    clear = len(set(names)) == len(names) and all(names)
    return names if clear else [f"{number}_{name}".rstrip("_") for number, name in enumerate(names)]


def _plain(label: str) -> str:
    return re.sub(r"\W+", "_", re.sub(r"^-", "minus_", label), flags=re.ASCII).strip("_")


def listing(words: Iterable[str], width: int = 110) -> str:
    """Return words with commas between them, in lines."""
    lines, line = [], ""
    for word in words:
        if line and len(line) + len(word) > width:
            lines.append(line.rstrip())
            line = ""
        line += f"{word}, "
    return "\n    ".join([*lines, line.rstrip(", ")])
