"""Rows of a trade-off and their CSV file: one row a run, written when the run ends."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]

#: raised when columns change their meaning
FORMAT = 1
#: the columns and how their cells are read; an empty cell is None
COLUMNS: dict[str, Callable[[str], Any]] = {
    "format": int,
    "data": str,
    "test": str,
    "target": str,
    "split": str,
    "fingerprint": str,
    "settings": str,
    "method": str,
    "budget": int,
    "seed": int,
    "status": str,
    "reason": str,
    "size": int,
    "bytes": int,
    "multiply_adds": int,
    "us": float,
    "error": float,
    "se": float,
    "n_train": int,
    "n_test": int,
    "validation_error": float,
    "validation_se": float,
    "n_validation": int,
    "seconds": float,
    "kernel_evals": int,
    "ended": str,
    "path": str,
    "model": str,
    "slimsvm": str,
    "python": str,
    "numpy": str,
    "scikit_learn": str,
    "threads": int,
    "machine": str,
}
#: two rows with these in common are the same run
KEY = ("fingerprint", "settings", "method", "budget", "seed")
#: how a run can end
OK, FAILED, SKIPPED = "ok", "failed", "skipped"


def key_of(row: Row) -> tuple[Any, ...]:
    """Return what identifies a run."""
    return tuple(row[name] for name in KEY)


def finished(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that have figures."""
    return [row for row in rows if row["status"] == OK]


def settings_of(row: Row) -> dict[str, Any]:
    """Return the settings that all runs of a study have in common; empty where they are not JSON."""
    try:
        values = json.JSONDecoder().raw_decode(row["settings"])[0]
    except ValueError:
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
        rows = _parse(_complete_lines(path).decode())
    except (ValueError, csv.Error) as error:
        raise ValueError(f"cannot read the rows in {str(path)!r}: {error}") from error
    return list({key_of(row): row for row in rows}.values())


def _complete_lines(path: Path) -> bytes:
    """Return the file up to its last line break; a process that was killed may leave part of a line after it."""
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1]


def _parse(text: str) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = list(reader)
    if not rows:
        raise ValueError("it has no rows; run slimsvm tradeoff to fill it")
    versions = sorted({row.get("format") or "none" for row in rows} - {str(FORMAT)})
    if versions:
        raise ValueError(
            f"it has rows of format {', '.join(versions)}, and this version of slimsvm reads format {FORMAT}; run slimsvm "
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
            row[name] = cell if kind is str else None if cell == "" else kind(cell)
        except ValueError:
            raise ValueError(f"row {number} has {cell!r} in the column {name}, where a number is expected") from None
    return row


class RowsFile:
    """A CSV file that rows are appended to; each is complete on the disk before the next run begins."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self, *, force: bool) -> list[Row]:
        """Return the rows that are there already, or begin a new file."""
        if force or not self.path.exists() or not self.path.stat().st_size:
            self.path.write_bytes(_line(list(COLUMNS)))
            return []
        whole = _complete_lines(self.path)
        os.truncate(self.path, len(whole))
        return read_rows(self.path) if whole.count(b"\n") > 1 else []

    def append(self, row: Row) -> None:
        """Write one row at the end."""
        with open(self.path, "ab") as file:
            file.write(_line(["" if row[name] is None else row[name] for name in COLUMNS]))
            file.flush()
            os.fsync(file.fileno())


def _line(cells: Sequence[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
