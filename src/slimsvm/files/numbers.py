"""Numbers in text, read strictly."""

from __future__ import annotations


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
