"""CSV files: one row in a line, with or without a header line."""

from __future__ import annotations

import csv
import io
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ..tables.recognition import HOLES, MOST_CATEGORIES, parsed_date
from ..text import is_plain, strict_number, warn_user
from .columns import Columns, Wanted, check_width, choose_columns

if TYPE_CHECKING:
    from ..kernels import Array


DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d.*)?")
#: a table with more rows than this is announced: its cells are objects
MANY_ROWS = 1_000_000


def cells_of_csv(
    rows: Iterator[tuple[int, list[str]]], width: int, columns: Columns, wanted: Wanted
) -> tuple[Array, list[str], list[int]]:
    """Return the cells of the features, the texts of the labels, and the numbers of their lines."""
    assert wanted.cells is not None
    texts: list[list[str]] = [[] for _ in columns.features]
    labels: list[str] = []
    lines: list[int] = []
    known: dict[str, str] = {}
    for line, row in rows:
        if len(row) != width:
            raise ValueError(f"line {line} has {len(row)} columns and the first line has {width}")
        for cells, column in zip(texts, columns.features, strict=True):
            cells.append("" if column < 0 else known.setdefault(row[column], row[column]))
        if columns.label is not None:
            labels.append(row[columns.label])
        lines.append(line)
    if not lines:
        raise ValueError("it has a header line and no rows")
    if len(lines) > MANY_ROWS:
        warn_user(f"the cells of {len(lines):,} rows take about {len(lines) * len(texts) * 16 >> 20:,} MiB of memory")
    X = np.empty((len(lines), len(texts)), dtype=object)
    for place, cells in enumerate(texts):
        name = columns.names[place] if columns.names else place
        X[:, place] = converted(cells, wanted.cells.kinds.get(name), name, lines)
    return X, labels, lines


def converted(cells: list[str], kind: str | None, name: Any, lines: Sequence[int]) -> list[Any]:
    """Return the texts of a column as numbers, dates or words, of the given kind or of the first that fits all of them."""
    if kind == "nothing":
        return [None] * len(cells)
    values = {text: None if text in HOLES else text for text in dict.fromkeys(cells)}
    texts = [text for text, value in values.items() if value is not None]
    if kind == "word":
        return [values[text] for text in cells]
    numbers = {text: strict_number(text) for text in texts}
    strange = [text for text, number in numbers.items() if number is None or not np.isfinite(number)]
    if kind == "number" or (kind is None and not strange):
        if strange:
            line = lines[cells.index(strange[0])]
            raise ValueError(f"line {line}, column {name!r}: {short(strange[0])} is not a finite number")
        values_of = {text: np.nan if value is None else numbers[text] for text, value in values.items()}
        return [values_of[text] for text in cells]
    if kind == "date" or (kind is None and all(DATE.fullmatch(text) for text in texts)):
        dates = {text: None if value is None else _date(text, name) for text, value in values.items()}
        return [dates[text] for text in cells]
    if len(texts) > MOST_CATEGORIES and len(strange) < len(texts) / 2:
        raise ValueError(
            f"the column {name!r} has numbers and {len(strange)} words, such as {short(sorted(strange)[0])}; leave their "
            "cells empty, or name it by --categorical or --drop"
        )
    return [values[text] for text in cells]


def _date(text: str, name: Any) -> datetime:
    try:
        return parsed_date(text)
    except ValueError as error:
        raise ValueError(f"the column {name!r} has {text!r} among dates: {error}; name it by --drop") from error


def parquet_cells(table: Any, wanted: Wanted) -> tuple[Array, Any, tuple[str, ...]]:
    """Return the cells of an Arrow table, the values of the column of labels, and the names of the features."""
    names = [str(name) for name in table.column_names]
    columns = choose_columns(names, len(names), wanted)
    assert wanted.cells is not None
    assert columns.names is not None
    X = np.empty((table.num_rows, len(columns.features)), dtype=object)
    for place, column in enumerate(columns.features):
        kind = wanted.cells.kinds.get(columns.names[place])
        cells = [None] * table.num_rows if column < 0 or kind == "nothing" else table.column(column).to_pylist()
        X[:, place] = [str(cell) if kind == "word" and cell is not None else cell for cell in cells]
    label = None if columns.label is None else table.column(columns.label).to_pylist()
    return X, label, columns.names


#: whole numbers below this are exact in float64
EXACT = 2**53


def as_labels(y: Array) -> Array:
    """Return numbers as integers if all of them are whole."""
    are_whole = y.dtype.kind == "f" and (np.abs(y, dtype=np.float64) < EXACT).all() and (y == np.rint(y)).all()
    return y.astype(np.int64) if are_whole else y


SEPARATORS = ("\t", ";", ",")


class NotNumbersError(ValueError):
    """A feature is not a finite number."""


def read_csv(
    opened: BinaryIO, wanted: Wanted, *, cells: bool = False
) -> tuple[Array, Array | None, tuple[str, ...] | None]:
    """Return the features, the labels and the names of the features; with `cells`, words, dates and holes as they are."""
    with io.TextIOWrapper(opened, encoding="utf-8-sig", newline="") as file:
        try:
            rows = _csv_rows(file)
            line, first = next(rows, (0, []))
            if not first:
                raise ValueError("it is empty")
            header = _is_header(first, wanted)
            columns = choose_columns(first if header else None, len(first), wanted)
            if columns.unnamed is None:
                check_width(len(columns.features), wanted.n_features)
            rows = rows if header else chain([(line, first)], rows)
            if cells:
                X, labels, lines = cells_of_csv(rows, len(first), columns, wanted)
                y = None if columns.label is None else _text_labels(labels, lines)
            else:
                X, y = _table(rows, len(first), columns, header)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise ValueError(
                f"byte 0x{byte:02x} is no UTF-8 text; save the file as UTF-8, e.g. by iconv -f latin1 -t utf-8"
            ) from error
    if columns.unnamed is not None and wanted.names is None:
        return _without_index(X, y, columns)
    return X, y, columns.names


def _csv_rows(file: io.TextIOBase) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with their line numbers."""
    start = next((line for line in iter(file.readline, "") if line.strip()), "")
    file.seek(0)
    reader = csv.reader(file, delimiter=max(SEPARATORS, key=start.count))
    for row in reader:
        cells = [cell.strip() for cell in row]
        if len(cells) > 1 or any(cells):
            yield reader.line_num, cells


def _is_header(first: list[str], wanted: Wanted) -> bool:
    """Return whether the first row is a header: it has names that are wanted, or no number among the features."""
    if wanted.target in first and strict_number(str(wanted.target)) is None:
        return True
    place = choose_columns(None, len(first), wanted, first).label
    features = [cell for column, cell in enumerate(first) if column != place]
    return bool(set(wanted.names or ()) & set(first)) or all(strict_number(cell) is None for cell in features)


def _table(rows: Iterator[tuple[int, list[str]]], width: int, columns: Columns, header: bool) -> tuple[Array, Array | None]:
    """Return the features and labels of rows with `width` cells; `header` is whether there was a header line."""
    values, labels, lines = array("d"), [], []
    for line, row in rows:
        if len(row) != width:
            raise ValueError(f"line {line} has {len(row)} columns and the first line has {width}")
        if columns.label is not None:
            labels.append(row[columns.label])
        values.extend(_features([row[column] for column in columns.features], line, columns))
        lines.append(line)
    if not lines:
        raise ValueError("it has a header line and no rows")
    X = np.array(values).reshape(len(lines), -1)
    skip = not header and _has_numbered_header(labels)
    return X[skip:], None if columns.label is None else _text_labels(labels[skip:], lines[skip:])


def _without_index(X: Array, y: Array | None, columns: Columns) -> tuple[Array, Array | None, tuple[str, ...] | None]:
    """Return the table without a column that has no name and counts the rows: the index of a data frame."""
    place = columns.features.index(columns.unnamed) if columns.unnamed in columns.features else None
    assert columns.names is not None
    if place is None or X.shape[1] == 1 or not _counts_rows(X[:, place]):
        return X, y, columns.names
    warn_user("the first column has no name and counts the rows; it is left out")
    return np.delete(X, place, axis=1), y, (*columns.names[:place], *columns.names[place + 1 :])


def _counts_rows(values: Array) -> bool:
    """Return whether values are 0, 1, 2 ... or 1, 2, 3 ..."""
    if values.size < 2 or values[0] not in (0, 1) or not all(isinstance(value, float) for value in values.tolist()):
        return False
    return bool((np.diff(values.astype(np.float64)) == 1).all())


def _features(cells: list[str], line: int, columns: Columns) -> list[float]:
    """Return the numbers of one row, all finite."""
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        numbers = [math.nan]
    if not math.isfinite(sum(numbers)) or not is_plain("".join(cells)):
        for column, cell in zip(columns.features, cells, strict=True):
            number = strict_number(cell)
            if number is None or not math.isfinite(number):
                what = f"{short(cell)} is not a finite number" if cell else "there is no value"
                hint = f"; if this column has the labels, give target={column}" if cell else ""
                raise NotNumbersError(
                    f"line {line}, column {column} (from 0): {what}; features must be numbers without gaps{hint}"
                )
    return numbers


def _has_numbered_header(labels: list[str]) -> bool:
    """Return whether the first row is a header with numbers for feature names: a word, and numbers for all other labels."""
    numbers = [strict_number(label) is not None for label in labels]
    return len(labels) > 1 and any(map(str.isalpha, labels[0])) and not numbers[0] and all(numbers[1:])


def _text_labels(labels: list[str], lines: list[int]) -> Array:
    """Return labels as numbers if all are numbers, else as strings; so are 01 and 1 together, which are two names."""
    if "" in labels:
        raise ValueError(f"line {lines[labels.index('')]} has no label")
    numbers = [strict_number(label) for label in labels]
    digits = {label for label in labels if label.isdecimal()}
    if any(number is None for number in numbers) or len({label.lstrip("0") for label in digits}) < len(digits):
        return np.array(labels)
    y = np.array(numbers, dtype=np.float64)
    if not np.isfinite(y).all():
        worst = int(np.isfinite(y).argmin())
        raise ValueError(f"line {lines[worst]} has the label {labels[worst]!r}; labels must be finite numbers or words")
    return as_labels(y) if (np.abs(y) < EXACT).all() else np.array(labels)
