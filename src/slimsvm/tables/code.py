"""The code of a preparation: sources of its steps with the words of C or JavaScript, their tables, and their bytes in C."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..c_bytes import Table, laid_out, preparation_code, smallest_item
from .program import Array, Preparation, Step
from .steps import FUNCTIONS


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


def c_real(preparation: Preparation) -> str:
    """Return the type of the tape in C."""
    return "double" if preparation.precise else "float"


def c_tables(preparation: Preparation) -> list[Table]:
    """Return the bytes of the tables in C, of lists of words and of the words, and those of an entry."""
    found: list[Table] = []

    def kept(name: str, values: Array, step: Step) -> str:
        item = 8 if step.kind == "power" or preparation.precise else 4
        found.append(_integers(values) if values.dtype.kind in "iu" else (values.size * item, item))
        return name

    code_of(preparation, Language({"INT": "int"}, kept, lambda value, _: str(value)))
    places, words = preparation.outputs, [column.words for column in preparation.columns if column.kind == "word"]
    found += [_integers(places)] * bool((np.diff(places) != 1).any())
    letters = sum(len(word.encode()) + 1 for word in {word for some in words for word in some})
    return [*found, *((8 * len(some), 8) for some in words), (letters, 1)]


def _integers(values: Array) -> Table:
    item = smallest_item(int(values.max(initial=0)))
    return values.size * item, item


def c_parts(preparation: Preparation, functions: int) -> list[str]:
    """Return the names of the parts of the code in C, with so many functions of a raw row."""
    kinds = [column.kind for column in preparation.columns]
    steps = [f"{step.kind}{' by places' * bool((np.diff(step.inputs) != 1).any())}" for step in preparation.steps]
    names = ["all", *["function of a row"] * functions, *["words"] * ("word" in kinds)]
    names += [*(f"column of {kind}s" for kind in kinds), *steps]
    return names + [f"function {name}" for name in FUNCTIONS if _is_called(name, preparation)]


def c_code_of(preparation: Preparation, functions: int = 3) -> int:
    """Return the most bytes of a preparation's code in C, with functions of labels, scores and probabilities."""
    return preparation_code(f"table in {c_real(preparation)}", c_parts(preparation, functions))


def c_bytes_of(preparation: Preparation) -> int:
    """Return the most bytes that a preparation adds to a model in C."""
    return laid_out(c_tables(preparation)) + c_code_of(preparation)
