"""Values in error messages."""

from __future__ import annotations

from reprlib import Repr
from typing import Any

#: the most characters of a value that an error message repeats
LONGEST = 160


def short(value: Any) -> str:
    """Return the value as text on one line, shortened."""
    words = Repr()
    words.maxother = words.maxstring = 80
    text = " ".join(words.repr(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
