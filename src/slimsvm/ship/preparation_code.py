"""The code of a preparation: the sources of its steps with the words of C or of JavaScript, and their tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tables.program import Array, Preparation, Step
from ..tables.steps import FUNCTIONS


@dataclass(frozen=True)
class Language:
    """How a language says the words of a step's source, and a table of numbers."""

    words: Mapping[str, str]
    table: Callable[[str, Array, Step], str]  # name, numbers -> a declaration
    number: Callable[[float, Step], str]


def code_of(preparation: Preparation, language: Language) -> tuple[str, str]:
    """Return the declarations of tables and functions, and the statements that fill the tape `t`."""
    tables: list[str] = []
    statements: list[str] = []
    for number, (step, base) in enumerate(zip(preparation.steps, preparation.starts, strict=False)):
        words = {"BASE": f"{base}", "COUNT": f"{step.inputs.size}"} | dict(language.words)
        for name, value in step.words.items():
            words[name] = _word(f"step{number}_{name.lower()}", name, value, step, language, tables)
        places = step.inputs
        read = f"t[{places[0]} + {{}}]" if places.size and (np.diff(places) == 1).all() else f"t[step{number}_in[{{}}]]"
        if read.endswith("]]") and re.search(r"\bIN(_J)?\b", step.source):
            tables.append(language.table(f"step{number}_in", places, step))
        words |= {"IN": read.format("i"), "IN_J": read.format("j")}
        words |= {"OUT": f"t[{base} + i]", "OUT_J": f"t[{base} + j]"}
        statements.append(f"/* {step.kind} */\n{replaced(step.source, words)}")
    called = [text for name, text in FUNCTIONS.items() if _is_called(name, preparation)]
    functions = [replaced(text, language.words) for text in called]
    return "\n".join([*tables, "", *functions]).strip("\n"), "".join(statements)


def _word(table: str, name: str, value: Any, step: Step, language: Language, tables: list[str]) -> str:
    """Return what a word stands for; arrays become tables, those of one number a constant if the word is in capitals."""
    if not isinstance(value, np.ndarray):
        return str(value) if isinstance(value, int) else language.number(float(value), step)
    if name.isupper() and value.dtype.kind == "f" and value.size and not np.ptp(value) and np.isfinite(value[0]):
        return language.number(float(value[0]), step)
    tables.append(language.table(table, value, step))
    return f"{table}[i]" if name.isupper() else table


def _is_called(function: str, preparation: Preparation) -> bool:
    """Return whether a step calls a function, or calls one that does."""
    texts = [step.source for step in preparation.steps]
    texts += [text for name, text in FUNCTIONS.items() if name != function and any(f"{name}(" in each for each in texts)]
    return any(f"{function}(" in text for text in texts)


def replaced(text: str, words: Mapping[str, str]) -> str:
    """Return the text with words replaced; the space after an empty one goes."""
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})\b( ?)")
    return pattern.sub(lambda found: words[found[1]] and words[found[1]] + found[2], text)


def indented(text: str, depth: int = 1) -> str:
    """Return the lines of a text further to the right."""
    return "".join(f"{'    ' * depth}{line}\n" if line else "\n" for line in text.splitlines())
