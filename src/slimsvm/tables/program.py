"""From the raw rows of a table to rows of numbers, as a list of steps on a tape of numbers. Needs NumPy only.

The tape begins with the columns: numbers, dates as days, and words as codes, which are their places in the column's list;
-1 is a word that is not in the list, NaN a missing cell. Each step reads places of the tape and writes behind it. The
prepared row is a choice of places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..text import short
from .recognition import day_of, is_frame, is_missing, values_of

Array = np.ndarray

KINDS = ("number", "word", "date")
#: the code of a word that is not in a column's list
OTHER = -1


@dataclass(frozen=True)
class Column:
    """A column of the table that the steps read."""

    position: int  # among all columns
    name: str = ""
    kind: str = "number"
    words: tuple[str, ...] = ()

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of each word."""
        return {word: code for code, word in enumerate(self.words)}

    @property
    def title(self) -> str:
        """The name, or the number of a column without one."""
        return self.name or f"column_{self.position}"

    def numbers(self, cells: Any) -> Array:
        """Return cells as numbers of the tape."""
        cells = np.asarray(cells)
        if self.kind == "number" and cells.dtype.kind in "biuf":
            return cells.astype(np.float64)
        return np.array([self._number(cell) for cell in cells.ravel().tolist()], dtype=np.float64)

    def _number(self, cell: Any) -> float:
        if is_missing(cell):
            return math.nan
        if self.kind == "word":
            return float(self.codes.get(cell if isinstance(cell, str) else str(cell), OTHER))
        if self.kind == "date":
            return day_of(cell)
        if isinstance(cell, str | bytes) or not hasattr(cell, "__float__"):
            raise TypeError(f"the column {self.title!r} takes numbers, and was given {short(cell)}")
        return float(cell)


@dataclass(frozen=True)
class Step:
    """One step: reads `inputs` of the tape and writes `outputs` numbers. Each kind is a file in `steps`.

    `source` is its code in what C and JavaScript have in common; `IN` and `IN_J` are inputs i and j, `OUT` and `OUT_J`
    outputs i and j, `BASE` the place of the first output, and other words in capitals are tables or numbers of `words`.
    """

    kind: ClassVar[str]
    #: whether float32 has too few digits for it
    precise: ClassVar[bool] = False

    inputs: Array

    @property
    def outputs(self) -> int:
        """The count of numbers written."""
        return int(self.inputs.size)

    def __call__(self, values: Array) -> Array:
        """Return the outputs (n, outputs) of inputs (n, inputs)."""
        raise NotImplementedError

    @property
    def source(self) -> str:
        """The code."""
        raise NotImplementedError

    @property
    def words(self) -> dict[str, Any]:
        """The tables and numbers of the code: arrays, ints, floats or texts."""
        return {}

    def check(self) -> None:
        """Raise ValueError unless the tables fit together."""


@dataclass(frozen=True)
class Preparation:
    """A table's columns, the steps, and the places of the prepared row."""

    columns: tuple[Column, ...]
    steps: tuple[Step, ...]
    outputs: Array
    given: int  # the number of all columns

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are read; none if they have none."""
        return tuple(column.name for column in self.columns) if all(other.name for other in self.columns) else ()

    @property
    def is_numeric(self) -> bool:
        """Whether all columns that are read are numbers."""
        return all(column.kind == "number" for column in self.columns)

    @property
    def is_array(self) -> bool:
        """Whether a row is a list of numbers, all of which are read."""
        return self.is_numeric and len(self.columns) == self.given

    @property
    def precise(self) -> bool:
        """Whether the tape needs float64."""
        return any(step.precise for step in self.steps) or any(column.kind == "date" for column in self.columns)

    @property
    def starts(self) -> list[int]:
        """The place of each step's first output, and the end of the tape."""
        return np.cumsum([len(self.columns), *(step.outputs for step in self.steps)]).tolist()

    def __call__(self, rows: Any) -> Array:
        """Return prepared rows; one dimension for a single row."""
        columns, single = self._cells(rows)
        tape = np.empty((columns[0].size if columns else _count(rows), self.starts[-1]))
        for place, cells in enumerate(columns):
            tape[:, place] = cells
        for step, start in zip(self.steps, self.starts, strict=False):
            tape[:, start : start + step.outputs] = step(tape[:, step.inputs])
        prepared = tape[:, self.outputs]
        return prepared[0] if single else prepared

    def _cells(self, rows: Any) -> tuple[list[Array], bool]:
        """Return the numbers of each column, and whether a single row was given."""
        if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
            rows = {column.name: [self._cell(row, column) for row in rows] for column in self.columns}
        if isinstance(rows, Mapping):
            cells = [self._cell(rows, column) for column in self.columns]
            single = not any(isinstance(cell, list | tuple | np.ndarray) or hasattr(cell, "to_numpy") for cell in cells)
            return [
                column.numbers(np.atleast_1d(np.asarray(cell, dtype=_dtype(cell))))
                for column, cell in zip(self.columns, cells, strict=True)
            ], single
        if is_frame(rows):
            return [column.numbers(self._series(rows, column)) for column in self.columns], False
        rows = rows if isinstance(rows, np.ndarray) else np.asarray(rows, dtype=object)
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.given:
            raise ValueError(f"a row has {rows.shape[-1] if rows.ndim else 'no'} columns, and the model takes {self.given}")
        table = np.atleast_2d(rows)
        return [column.numbers(table[:, column.position]) for column in self.columns], rows.ndim == 1

    def _cell(self, row: Mapping[str, Any], column: Column) -> Any:
        if not column.name:
            raise ValueError("this model knows no names of columns; give rows as arrays")
        if column.name not in row:
            raise ValueError(f"a row has no {column.name!r}; it takes {short([other.name for other in self.columns])}")
        return row[column.name]

    def _series(self, frame: Any, column: Column) -> Array:
        names = list(frame.columns)
        if column.name and column.name not in names:
            raise ValueError(f"the table has no column {column.name!r}; it has {short(names)}")
        return values_of(frame, column.name or names[column.position])

    def check(self, features: int) -> None:
        """Raise ValueError unless this makes rows of so many features, from tables that fit together."""
        ends = [*self.starts]
        positions = [column.position for column in self.columns]
        if len(set(positions)) < len(positions) or not all(0 <= place < self.given for place in positions):
            raise ValueError(f"it reads columns {short(positions)} of {self.given}")
        for column in self.columns:
            if column.kind not in KINDS or not all(isinstance(word, str) for word in (column.name, *column.words)):
                raise ValueError(f"it has a column of the kind {short(column.kind)}; there are {list(KINDS)}")
            if len(column.codes) < len(column.words):
                raise ValueError(f"the column {column.title!r} lists a word twice")
        for step, end in zip(self.steps, ends, strict=False):
            _check_places(step.inputs, end)
            step.check()
        _check_places(self.outputs, ends[-1])
        if self.outputs.size != features:
            raise ValueError(f"it makes {self.outputs.size} features, and the model takes {features}")


def _check_places(places: Array, end: int) -> None:
    if places.ndim != 1 or places.dtype.kind not in "iu" or not ((places >= 0) & (places < end)).all():
        raise ValueError(f"a step reads places {short(places.tolist())} of {end}")


def _dtype(cell: Any) -> Any:
    return None if isinstance(cell, np.ndarray) or hasattr(cell, "to_numpy") else object


def _count(rows: Any) -> int:
    return int(rows.shape[0]) if getattr(rows, "ndim", 1) == 2 else 1
