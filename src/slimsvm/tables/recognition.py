"""What the columns of a table hold, by their values: numbers, words, dates, or nothing that a model can use.

The rules are those of skrub's TableVectorizer where it has one: up to `MOST_CATEGORIES` categories are encoded one by one,
and columns without values are left out.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..text import short, warn_user

#: texts that count as missing cells, where tables are read from text
HOLES = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")
#: categories of a column that get a feature each; the rarer ones share one. More: larger models
MOST_CATEGORIES = 40
#: a column with more categories than `MOST_CATEGORIES` is free text, or numbers its rows, if more than this share of its
#: values are different
FREE_TEXT = 0.5


@dataclass(frozen=True)
class Kind:
    """What a column holds: "number", "word", "date", or "nothing" with the reason why it is left out."""

    name: str
    reason: str = ""


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame: columns with names."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and not isinstance(X, np.ndarray)


def columns_of(X: Any) -> list[Any]:
    """Return the names of a data frame's columns, or the numbers of an array's."""
    if hasattr(X, "column_names"):  # a table of pyarrow
        return list(X.column_names)
    return list(X.columns) if is_frame(X) else list(range(X.shape[1]))


def values_of(X: Any, column: Any) -> np.ndarray:
    """Return the cells of a column."""
    if not is_frame(X):
        return np.asarray(X[:, column])
    series = X[column]
    series = series.to_pandas() if hasattr(X, "column_names") else series
    zone = getattr(series.dtype, "tz", None) is not None
    return np.asarray(series.dt.tz_convert("UTC").dt.tz_localize(None) if zone else series)


def is_missing(cell: Any) -> bool:
    """Return whether a cell has no value: None, NaN, NaT, or pandas' NA."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    return isinstance(cell, float | np.floating) and math.isnan(cell)


def kind_of(values: np.ndarray, name: Any) -> Kind:
    """Return what a column holds; raise ValueError for one of mixed types, or of lists."""
    if values.dtype.kind in "biufM":
        return _number_or_date(values, name)
    cells = [cell for cell in values.tolist() if not is_missing(cell)]
    if not cells:
        return Kind("nothing", "has no values")
    types = {type(cell) for cell in cells}
    if all(issubclass(kind, str) for kind in types):
        distinct = len(set(cells))
        if distinct > MOST_CATEGORIES and distinct > FREE_TEXT * len(cells):
            what = "numbers as text, to be made numbers" if all(map(_is_number, cells)) else "free text, or names of rows"
            return Kind("nothing", f"has {distinct:,} different words in {len(cells):,} rows: {what}")
        return Kind("word") if distinct > 1 or len(cells) < values.size else Kind("nothing", "has one value only")
    if all(issubclass(kind, Real) for kind in types):
        return _number_or_date(np.array(cells, dtype=np.float64), name, holes=len(cells) < values.size)
    if all(issubclass(kind, datetime.date | np.datetime64) for kind in types):
        return Kind("date")
    named = ", ".join(sorted(kind.__name__ for kind in types))
    example = next((cell for cell in cells if not isinstance(cell, Real)), cells[0])
    raise ValueError(
        f"the column {name!r} has cells of several types or of none that is known, {named}, such as {short(example)}; make "
        "them all numbers, words or dates, or drop the column"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number_or_date(values: np.ndarray, name: Any, holes: bool = False) -> Kind:
    missing = np.isnat(values) if values.dtype.kind == "M" else np.isnan(values.astype(np.float64))
    known = values[~missing]
    if not known.size:
        return Kind("nothing", "has no values")
    if values.dtype.kind == "f" and np.isinf(known).any():
        raise ValueError(f"the column {name!r} has infinite numbers; make them missing or finite, or drop the column")
    if (known == known[0]).all() and not holes and not missing.any():
        return Kind("nothing", "has one value only")
    return Kind("date" if values.dtype.kind == "M" else "number")


@dataclass(frozen=True)
class ColumnsOf:
    """A selector of the columns that hold numbers, words or dates, for a ColumnTransformer."""

    kind: str
    numeric: tuple[Any, ...] = ()
    categorical: tuple[Any, ...] = ()
    drop: tuple[Any, ...] = ()

    def __call__(self, X: Any) -> list[Any]:
        """Return the names or numbers of the columns; columns that no selector takes are named in a warning."""
        kinds = self.kinds(X)
        if self.kind == "number":
            left_out = [f"{name!r} {kind.reason}" for name, kind in kinds.items() if kind.reason]
            if left_out:
                warn_user(f"columns that are left out: {'; '.join(left_out)}")
        return [name for name, kind in kinds.items() if kind.name == self.kind]

    def kinds(self, X: Any) -> dict[Any, Kind]:
        """Return what each column holds."""
        columns = columns_of(X)
        asked = [*self.numeric, *self.categorical, *self.drop]
        missing = [name for name in asked if name not in columns]
        if missing:
            raise ValueError(f"there are no columns {short(missing)}; the columns are {short(columns)}")
        fixed = {name: Kind("number") for name in self.numeric} | {name: Kind("word") for name in self.categorical}
        fixed |= {name: Kind("nothing") for name in self.drop}
        return {name: fixed[name] if name in fixed else kind_of(values_of(X, name), name) for name in columns}


def days(X: Any) -> np.ndarray:
    """Return the dates of a table as days since 1970-01-01, in UTC; NaN for missing ones."""
    return np.column_stack([days_of(values_of(X, column)) for column in columns_of(X)])


def days_of(cells: Iterable[Any]) -> np.ndarray:
    """Return dates as days since 1970-01-01, in UTC; numbers are days already."""
    return np.array([day_of(cell) for cell in np.asarray(cells).ravel()], dtype=np.float64)


def day_of(cell: Any) -> float:
    """Return a date as days since 1970-01-01, in UTC; a number is one already."""
    if is_missing(cell):
        return math.nan
    if isinstance(cell, int | float | np.integer | np.floating):
        return float(cell)
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        cell = cell.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(cell, str):
        cell = parsed_date(cell)
    if not isinstance(cell, datetime.date | np.datetime64):
        raise TypeError(f"{short(cell)} is no date; give a date, a text such as 2026-11-19, or days since 1970-01-01")
    moment: Any = cell
    return float((np.datetime64(moment, "us") - np.datetime64(0, "us")) / np.timedelta64(1, "D"))


def parsed_date(text: str) -> datetime.datetime:
    """Return the date in a text of ISO 8601, in UTC; raise ValueError for another text."""
    date = datetime.datetime.fromisoformat(text)
    return date if date.tzinfo is None else date.astimezone(datetime.UTC).replace(tzinfo=None)
