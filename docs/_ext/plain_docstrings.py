"""Read docstrings as plain text: formulas stay as they are, and no sign but the backtick has a meaning.

Docstrings here are written for readers of the code. In reStructuredText, |f|, a* and x_ would be markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

#: a literal in backticks, or a sign that reStructuredText would read as markup
MARKUP = re.compile(r"`[^`]*`|[|*]|(?<=\w)_(?!\w)")
UNDERLINE = re.compile(r"-{3,}\s*")
#: sections of numpydoc whose lines at the margin are names with types
NAMED = ("Parameters", "Attributes", "Returns", "Raises", "Warns", "Yields", "See Also")


def plain(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a docstring in reStructuredText that shows them as they are."""
    head = next((i - 1 for i, line in enumerate(lines) if UNDERLINE.fullmatch(line)), len(lines))
    yield from _paragraphs(lines[:head])
    section = ""
    for line, following in pairwise([*lines[head:], ""]):
        section = line.strip() if UNDERLINE.fullmatch(following) else section
        yield _section_line(line, section)


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Yield text with its signs escaped, and indented paragraphs as literal blocks: they are formulas."""
    after_blank = True
    for kind, group in groupby(lines, key=_kind):
        part = list(group)
        if kind == "formula" and after_blank:
            yield from ["::", "", *part]
        else:
            yield from map(escaped, part)
        after_blank = kind == "blank"


def _kind(line: str) -> str:
    """Return what a line is: blank, a formula (indented), or text."""
    if not line.strip():
        return "blank"
    return "formula" if line.startswith("    ") else "text"


def _section_line(line: str, section: str) -> str:
    """Return a line of a section; names stay as numpydoc wants them, and examples are code."""
    if section == "Examples":
        return line
    if section in NAMED and not line.startswith(" "):
        name, colon, kind = line.partition(" : ")
        return name + colon + escaped(kind)
    return escaped(line)


def escaped(line: str) -> str:
    """Return a line whose signs mean themselves; literals in backticks are left as they are."""
    return MARKUP.sub(lambda found: found[0] if found[0][0] == "`" else "\\" + found[0], line)


def _process(_app: Any, what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    if what != "module":
        lines[:] = list(plain(lines))


def setup(app: Any) -> dict[str, bool]:
    """Have every docstring rewritten before numpydoc reads it."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
