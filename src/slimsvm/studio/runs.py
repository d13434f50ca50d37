"""The table of runs: a CSV file to which rows are appended when a run ends, so that a later call makes only the others.

The rows of tradeoff, of the trials of tune and of `benchmarks/reproduce` are such tables.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class RunTable:
    """A CSV file of runs; rows are on the disk before `append` returns."""

    path: Path
    columns: tuple[str, ...]

    @property
    def header(self) -> bytes:
        """The first line."""
        return lines([self.columns])

    def content(self) -> bytes:
        """Return the file up to its last line break: a process that was killed may leave part of a line after it."""
        data = self.path.read_bytes() if self.path.exists() else b""
        return data[: data.rfind(b"\n") + 1]

    def rows(self) -> list[dict[str, str]]:
        """Return the rows as text."""
        return list(csv.DictReader(io.StringIO(self.content().decode(), newline=""), restval=""))

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows behind those that are complete."""
        content = self.content()
        with open(self.path, "r+b" if content else "wb") as file:
            file.seek(len(content))
            file.truncate()
            file.write((b"" if content else self.header) + self._lines(rows))
            file.flush()
            os.fsync(file.fileno())

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows in place of those in the file."""
        self.path.write_bytes(self.header + self._lines(rows))

    def _lines(self, rows: Iterable[Mapping[str, Any]]) -> bytes:
        return lines([row.get(name) for name in self.columns] for row in rows)


def lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows as lines of a CSV file; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def columns_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, list[Any]]:
    """Return rows column by column, as `pandas.DataFrame` takes them."""
    return {name: [row[name] for row in rows] for name in names}
