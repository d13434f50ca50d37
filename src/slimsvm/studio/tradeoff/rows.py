"""Rows of a trade-off and their CSV file: a row for each run, written when the run ends."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ...budget import Budget
from ...text import is_plain, short, strict_number
from ..runs import Row, RunTable


def _whole(cell: str) -> int:
    """Return a count or a seed."""
    number = int(cell) if is_plain(cell) else -1
    if not 0 <= number <= MOST:
        raise ValueError
    return number


def _real(cell: str) -> float:
    """Return a time or an error; NaN means unknown."""
    number = strict_number(cell)
    if number is None or abs(number) > MOST:
        raise ValueError
    return number


def _budget(cell: str) -> int | str:
    """Return a number of support vectors, or another limit as text."""
    return _whole(cell) if is_plain(cell) else str(Budget.of(cell))


def _path(cell: str) -> str:
    """Return the sizes and validation errors of a path as text: "2:0.5 4:0.25"."""
    for step in cell.split():
        size, _, error = step.partition(":")
        _whole(size), _real(error)
    return cell


def _file_name(cell: str) -> str:
    """Return the name of a model, which must be in the folder beside the rows."""
    if cell and not re.fullmatch(r"[^/\\:\x00-\x1f]{1,255}\.slim", cell):
        raise ValueError
    return cell


#: the largest count that a row may have
MOST = 2**62
#: raised when columns change their meaning
FORMAT = 1
#: the columns and how their cells are read; an empty cell is None
COLUMNS: dict[str, Callable[[str], Any]] = {
    "format": _whole,
    "data": str,
    "test": str,
    "target": str,
    "split": str,
    "fingerprint": str,
    "settings": str,
    "method": str,
    "budget": _budget,
    "seed": _whole,
    "status": str,
    "reason": str,
    "size": _whole,
    "bytes": _whole,
    "multiply_adds": _whole,
    "us": _real,
    "error": _real,
    "se": _real,
    "n_train": _whole,
    "n_test": _whole,
    "validation_error": _real,
    "validation_se": _real,
    "n_validation": _whole,
    "seconds": _real,
    "kernel_evals": _whole,
    "ended": str,
    "path": _path,
    "model": _file_name,
    "slimsvm": str,
    "python": str,
    "numpy": str,
    "scikit_learn": str,
    "threads": _whole,
    "machine": str,
}
#: two rows with these in common are the same run
KEY = ("fingerprint", "settings", "method", "budget", "seed")
#: how a run can end
OK, FAILED, SKIPPED = "ok", "failed", "skipped"
#: the columns that every run with a model fills
FIGURES = ("size", "bytes", "us", "error", "se", "seconds", "kernel_evals")
#: readers of cells that may be empty, and what each reader expects, in words
TEXTS = (str, _path, _file_name)
EXPECTED: dict[Any, str] = {
    _whole: "a whole number",
    _budget: "a number of support vectors, bytes such as 4 KB or a time such as 20 us",
    _real: "a number",
    _path: "a list such as 2:0.5 4:0.25",
    _file_name: "the name of a .slim file in the folder of models",
}


def key_of(row: Row) -> tuple[Any, ...]:
    """Return the key of a run."""
    return tuple(row[name] for name in KEY)


def finished(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that have figures."""
    return [row for row in rows if row["status"] == OK]


def settings_of(row: Row) -> dict[str, Any]:
    """Return the settings that all runs of a study have in common; empty if they are not JSON."""
    try:
        values = json.JSONDecoder().raw_decode(row["settings"])[0]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def last_study(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the data and common settings of the last row: a file may hold several studies."""
    last = rows[-1]
    wanted = last["fingerprint"], settings_of(last)
    return [row for row in rows if (row["fingerprint"], settings_of(row)) == wanted]


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Return the rows in a file; of several of one run, the last."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path} with rows; make it with: slimsvm tradeoff DATA -o {path}")
    try:
        rows = _parse(RunTable(path, ()).content().decode())
    except (ValueError, csv.Error) as error:
        raise ValueError(f"cannot read the rows in {str(path)!r}: {error}") from error
    return list({key_of(row): row for row in rows}.values())


def _parse(text: str) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = list(reader)
    if reader.fieldnames is not None and not {"format", "method"} & set(reader.fieldnames):
        raise ValueError(
            f"it is no file of slimsvm tradeoff: its columns are {short(list(reader.fieldnames))}. Run slimsvm tradeoff "
            "first, whose output slimsvm report reads"
        )
    if not rows:
        raise ValueError("it has no rows; run slimsvm tradeoff to fill it")
    versions = sorted({row.get("format") or "none" for row in rows} - {str(FORMAT)})
    if versions:
        listed = " ".join(", ".join(versions).split())[:80]
        raise ValueError(
            f"it has rows of format {listed}, and this version of slimsvm reads format {FORMAT}; run slimsvm "
            "tradeoff again with another output"
        )
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"it lacks the columns {', '.join(missing)}")
    return [_typed(row, number) for number, row in enumerate(rows, 1)]


def _typed(cells: dict[str, str], number: int) -> Row:
    row: Row = {}
    for name, kind in COLUMNS.items():
        cell = cells[name] or ""
        try:
            row[name] = kind(cell) if cell or kind in TEXTS else None
        except ValueError:
            wanted = EXPECTED[kind]
            raise ValueError(f"row {number} has {short(cell)} in the column {name}, where {wanted} is expected") from None
    missing = [name for name in FIGURES if row["status"] == OK and row[name] is None] + ["seed"] * (row["seed"] is None)
    if missing:
        raise ValueError(f"row {number} has nothing in the column {missing[0]}, which every finished run fills")
    return row


def continued(table: RunTable, *, force: bool) -> list[Row]:
    """Return the rows that a file has already, or begin a new file."""
    old = b"" if force or not table.path.exists() else table.path.read_bytes()
    if table.header.startswith(old):  # new, or cut off in its first line
        table.replace([])
        return []
    try:
        rows = read_rows(table.path) if table.content() != table.header else []
        if not old.startswith(table.header):
            raise ValueError(f"the columns of {str(table.path)!r} have another order or other line ends")
    except ValueError as error:  # a file of something else is left as it is
        raise ValueError(f"{error}. Give another file, or force=True (--force) to replace this one") from error
    return rows
