"""How a JavaScript module reads a text: words, runs of words and their weights, as `Words` makes rows of texts."""

from __future__ import annotations

import json
import re

from ..words import ATOM, Words
from .literals import as_float32, encoded, listing

HEAD = ["//", "// A row is a text, a string. Anything else throws a TypeError."]
#: Python's classes of characters, which differ from those of JavaScript
WORD, SPACE = r"\p{L}\p{N}_", r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CLASSES = {r"\w": WORD, r"\d": r"\p{Nd}", r"\s": SPACE}
PLACES = {
    r"\b": f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))",
    r"\B": f"(?:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))",
}
#: whole runs of letters, without the look behind that browsers before 2023 lack
USUAL = {r"\b\w\w+\b": f"[{WORD}]{{2,}}", r"\b\w+\b": f"[{WORD}]+", r"\w+": f"[{WORD}]+"}
#: characters that have a backslash in an expression of JavaScript, and in one only if that has them
SYNTAX = set(r"^$\.*+?()[]{}|/")


def expression(pattern: str) -> str:
    """Return a plain pattern of Python as one of JavaScript with the flag u."""
    pattern = pattern.removeprefix("(?u)")
    return USUAL[pattern] if pattern in USUAL else re.sub(rf"{ATOM}|[*+?|{{}}]", lambda found: _atom(found[0]), pattern)


def _atom(atom: str) -> str:
    if atom[0] == "[":
        inside = re.sub(r"\\(.)|/", lambda found: CLASSES.get(found[0]) or _escaped(found[1] or "/", also="-"), atom[1:-1])
        return f"[{inside}]"
    if atom in PLACES:
        return PLACES[atom]
    if atom.lower() in CLASSES:
        return f"[{'^' * atom[1].isupper()}{CLASSES[atom.lower()]}]"
    return _escaped(atom[-1]) if atom[0] in "\\/" else atom


def _escaped(character: str, also: str = "") -> str:
    return f"\\{character}" if character in SYNTAX or character in also else character


def _quoted(words: list[str]) -> str:
    return f"[\n    {listing(json.dumps(word, ensure_ascii=False) for word in words)}\n]"


def tables(words: Words) -> str:
    """Return the vocabulary and what goes with it."""

    numbered = f"const vocabulary = new Map({_quoted(list(words.vocabulary))}.map((word, i) => [word, i]));"
    lines = [f"const WORD = /{expression(words.pattern)}/gu;", numbered]
    lines += [f"const stopWords = new Set({_quoted(sorted(words.stop_words))});"] * bool(words.stop_words)
    lines += [] if words.idf is None else [f"const idf = {encoded(as_float32(words.idf, 'idf'))};"]
    return "\n".join([*lines, ""])


def expressions(words: Words) -> dict[str, str]:
    """Return what the words of `model.mjs` about texts stand for."""
    low, high = words.runs
    text = "text.toLowerCase()" if words.lowercase else "text"
    kept = ".filter((word) => !stopWords.has(word))" if words.stop_words else ""
    value = "1 + Math.log(count)" if words.sublinear else "count"
    return {
        "WORDS_OF_TEXT": f"({text}.match(WORD) ?? []){kept}",
        "LOW_RUN": f"{low}",
        "HIGH_RUN": f"{high}",
        "COUNTED": "1" if words.binary else "(counts.get(i) ?? 0) + 1",
        "WEIGHTED": value if words.idf is None else f"({value}) * idf[i]",
        "SIZE_OF": {None: "1", "l1": "Math.abs(x)", "l2": "x * x"}[words.norm],
        "ROOT": "Math.sqrt(sum)" if words.norm == "l2" else "sum",
    }
