"""The sources `model.c` and `model.mjs` as the text of one model: untaken branches go, words become what they stand for.

Branches are lines `#if`, `#elif`, `#else` and `#endif` (in JavaScript behind `//`), whose conditions are names, equalities
of names, and && and || of these. So compilers and linters read the sources themselves, given names and words as macros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

#: the licence of everything that exports write
LICENCE = "SPDX-License-Identifier: 0BSD"
BRANCH = re.compile(r"^(?://)?#(if|elif|else|endif)\b *(.*)$")


@cache
def source(name: str) -> str:
    """Return a source of this folder without the comment at its head."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return text.partition("\n\n")[2]


def filled(text: str, names: Mapping[str, int | str], words: Mapping[str, str]) -> str:
    """Return the text with the branches that the values of the names select, and with words replaced by their meaning."""
    chosen = "\n".join(_chosen(text, names))
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b( ?)")
    replaced = pattern.sub(lambda found: words[found[1]] and words[found[1]] + found[2], chosen)
    return re.sub(r"\n{3,}", "\n\n", replaced).strip("\n") + "\n"


def _chosen(text: str, names: Mapping[str, int | str]) -> list[str]:
    """Return the lines whose branches are all taken."""
    lines, taken, done = [], [True], [True]  # of each open #if: whether this branch is taken, and whether one was
    for line in text.splitlines():
        branch = BRANCH.match(line)
        if branch is None:
            if all(taken):
                lines.append(line)
            continue
        word, condition = branch.groups()
        if word == "endif":
            del taken[-1], done[-1]
            continue
        if word == "if":
            taken, done = [*taken, False], [*done, False]
        taken[-1] = not done[-1] and (word == "else" or (all(taken[:-1]) and holds(condition, names)))
        done[-1] |= taken[-1]
    return lines


def holds(condition: str, names: Mapping[str, int | str]) -> bool:
    """Return whether a condition holds; a name by itself holds unless its value is 0."""
    return any(all(_term(term, names) for term in part.split("&&")) for part in condition.split("||"))


def _term(term: str, names: Mapping[str, int | str]) -> bool:
    name, sign, value = (part.strip() for part in re.split(r"(==|!=|$)", term, maxsplit=1)[:3])
    if not sign:
        return bool(names[name])
    return (str(names[name]) == value) == (sign == "==")
