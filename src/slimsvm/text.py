"""Values in error messages."""

from __future__ import annotations

from reprlib import Repr
from typing import Any


def short(value: Any) -> str:
    """Return the value in a few words, on one line."""
    words = Repr()
    words.maxother = words.maxstring = 80
    return " ".join(words.repr(value).split())
