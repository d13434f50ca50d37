"""Random changes of what files hold: numbers, texts, JSON values, arrays and lines of words."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

Rng = np.random.Generator

#: numbers at which readers go wrong: beyond int32, int64 and float64, near 0, and none at all
NUMBERS = (0, 1, -1, 2, 3, 255, 1025, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 10**30, -(2**31), -(2**63))
FLOATS = (
    0.0,
    -0.0,
    0.5,
    -1.5,
    1e-320,
    1e-30,
    1e30,
    1e300,
    1.7976931348623157e308,
    float("inf"),
    -float("inf"),
    float("nan"),
)
TEXTS = (
    "",
    " ",
    "0",
    "a",
    "rbf",
    "1_1",
    "٣",
    "\x00",
    "\x1b[31m",
    "../../etc/passwd",
    "/dev/zero",
    "[/a]",
    "é" * 40,
    "9" * 400,
)
#: words of text files: numbers written in ways that parsers disagree about
_WORDS = (
    "0 1 -1 +1 1. .5 1e5 1e-400 1e400 -1e308 nan inf -inf NaN 1_1 0x10 1e ٣ -0 007 1,5 1:1 2:nan 0:1 -1:1 1:1_1 1: :1 :: "
    "300000000:1 2147483647:1 2147483648:1 4294967297:1 9223372036854775808:1 99999999999999999999999:1 qid:3 # #1 "
    "2147483648 9223372036854775807 9223372036854775808 99999999999999999999999 SV label rho nr_sv \x00 \x1a \ufeff é \" '"
)
WORDS = _WORDS.split()
DTYPES = ("?", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", ">f8", ">i4", "c16", "U3", "S2", "M8[s]", "V4")


def pick(rng: Rng, options: Any) -> Any:
    """Return one of the options."""
    return options[int(rng.integers(len(options)))]


def hostile_value(rng: Rng) -> Any:
    """Return a JSON value that few readers expect."""
    kind = int(rng.integers(7))
    if kind < 4:
        return copy.deepcopy(pick(rng, (NUMBERS, FLOATS, TEXTS, (None, True, False))[kind]))
    if kind == 4:
        return [hostile_value(rng) for _ in range(int(rng.integers(4)))]
    if kind == 5:
        return {pick(rng, TEXTS): hostile_value(rng) for _ in range(int(rng.integers(3)))}
    return _nested(int(rng.integers(1, 30)))


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return the container and the key of every value below a JSON value."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    found = [(tree, key) for key in keys]
    for key in keys:
        found += places(tree[key])
    return found


def mutate_tree(rng: Rng, tree: Any) -> None:
    """Change one value somewhere below a JSON value, in place."""
    spots = places(tree)
    if not spots:
        return
    holder, key = pick(rng, spots)
    other, other_key = pick(rng, spots)
    action = int(rng.integers(8))
    if action == 0:
        holder[key] = hostile_value(rng)
    elif action == 1:
        del holder[key]
    elif action == 2:  # another value of the same document: right in kind, wrong in place
        holder[key] = copy.deepcopy(other[other_key])
    elif action == 3:
        holder[key], other[other_key] = copy.deepcopy(other[other_key]), copy.deepcopy(holder[key])
    elif action == 4 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif action == 5 and isinstance(holder, dict):
        holder[pick(rng, (*TEXTS, *map(str, holder)))] = copy.deepcopy(other[other_key])
    elif type(holder[key]) in (int, float):
        holder[key] = tweaked(rng, holder[key])
    else:
        holder[key] = [holder[key]]


def tweaked(rng: Rng, number: float) -> Any:
    """Return a number near another one, or one from the lists."""
    if not np.isfinite(float(number)):
        return 0.0
    return pick(rng, (number + 1, number - 1, -number, number * 1000, number / 3, pick(rng, NUMBERS), pick(rng, FLOATS)))


def mutate_array(rng: Rng, array: Any) -> Any:
    """Return an array with other entries, another shape or another type."""
    array = np.array(array)
    action = int(rng.integers(9))
    if action <= 2 and array.size:
        flat = array.ravel()
        flat[int(rng.integers(flat.size))] = _entry_for(rng, array.dtype)
        return flat.reshape(array.shape)
    if action == 3:
        return _retyped(array, pick(rng, DTYPES))
    if action == 4:
        return _reshaped(rng, array)
    if action == 5 and array.ndim:
        return array[: int(rng.integers(array.shape[0] + 1))]
    if action == 6 and array.ndim:
        return np.concatenate([array, array[: int(rng.integers(array.shape[0] + 1))]])
    if action == 7 and array.ndim:
        return array[rng.permutation(array.shape[0])]
    return array[::-1].T if array.ndim == 2 else array[::-1] if array.ndim else array


def _entry_for(rng: Rng, dtype: np.dtype) -> Any:
    """Return a hostile entry that an array of this type can hold."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return int(min(max(pick(rng, NUMBERS), limits.min), limits.max))
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.float64(pick(rng, FLOATS)).astype(dtype)
    return pick(rng, TEXTS) if dtype.kind == "U" else np.zeros(1, dtype)[0]


def _retyped(array: Any, dtype: str) -> Any:
    try:
        with np.errstate(all="ignore"):
            return array.astype(dtype)
    except (OverflowError, RuntimeError, TypeError, ValueError):
        return np.zeros(array.shape, dtype)


def _reshaped(rng: Rng, array: Any) -> Any:
    shapes = [(-1,), (-1, 1), (1, -1), (1, 1, -1), array.shape[::-1]]
    if array.size % 2 == 0 and array.size:
        shapes.append((2, -1))
    return array.reshape(pick(rng, shapes)) if array.size else np.zeros(pick(rng, [(0,), (0, 3), (3, 0), ()]), array.dtype)


def mutate_words(rng: Rng, lines: list[list[str]]) -> None:
    """Change, add, drop or move words and lines of a text, in place."""
    row = int(rng.integers(len(lines))) if lines else 0
    action = int(rng.integers(8))
    if action == 0 or not lines:
        lines.insert(row, [pick(rng, WORDS) for _ in range(int(rng.integers(4)))])
    elif action == 1:
        del lines[row]
    elif action == 2:
        lines.insert(row, list(pick(rng, lines)))
    elif action == 3:
        lines[row].insert(int(rng.integers(len(lines[row]) + 1)), pick(rng, WORDS))
    elif not lines[row]:
        lines[row] = list(pick(rng, lines))
    else:
        _mutate_line(rng, lines[row], action)


def _mutate_line(rng: Rng, line: list[str], action: int) -> None:
    place = int(rng.integers(len(line)))
    if action == 4:
        del line[place]
    elif action == 5:
        other = int(rng.integers(len(line)))
        line[place], line[other] = line[other], line[place]
    elif action == 6:
        line[place] = pick(rng, WORDS)
    else:
        line[place] = spoiled(rng, line[place])


def spoiled(rng: Rng, text: str) -> str:
    """Return a text with one character more, less or another."""
    place = int(rng.integers(len(text) + 1))
    return (
        text[:place]
        + pick(rng, ("", "0", "9", "-", ".", ":", "e", "_", " ", "\t", "\r", '"', ";", ","))
        + text[place + 1 :]
    )
