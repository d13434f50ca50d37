"""Words for users: values in messages and tables, near names, strict numbers, and warnings at the line of the user."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from html import escape
from reprlib import Repr
from types import FrameType
from typing import Any

#: the most characters of a value that an error message repeats
LONGEST = 160


def short(value: Any) -> str:
    """Return the value as text on one line, shortened."""
    words = Repr()
    words.maxother = words.maxstring = 80
    text = " ".join(words.repr(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def cell(value: Any) -> str:
    """Return a value of a table as text."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def html_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return columns as an HTML table, as notebooks show it."""
    rows = [[escape(cell(value)) for value in row] for row in zip(*columns.values(), strict=True)]
    lines = ["".join(f"<th>{escape(name)}</th>" for name in columns)]
    lines += ["".join(f"<td>{text}</td>" for text in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def nearest(word: str, names: Iterable[str]) -> str | None:
    """Return the name that a word probably means: the shortest that begins with it, else one of similar letters."""
    names = list(names)
    begun = sorted((name for name in names if word and name.lower().startswith(word.lower())), key=len)
    return next(iter(begun or get_close_matches(word, names, n=1)), None)


def strict_number(text: str) -> float | None:
    """Return the number in a text, or None if the text is not a number.

    Python's own `float` also takes "1_1" for 11 and the digits of other scripts, which would merge labels that differ.
    """
    if not is_plain(text):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def is_plain(text: str) -> bool:
    """Return whether a text has ASCII characters only and no underscore, so that `float` reads it as other programs do."""
    return text.isascii() and "_" not in text


#: packages whose lines say nothing to a user: this one, and those through which it is called
INSIDE = {__package__, "sklearn", "contextlib", "joblib"}


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package from which it was called."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
