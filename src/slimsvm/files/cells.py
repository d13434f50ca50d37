"""Tables with words, dates and holes from files, as arrays of cells: floats, strings, dates, and None for a hole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tables.recognition import HOLES, MOST_CATEGORIES, parsed_date
from ..warning import warn_user
from .columns import Columns, Wanted, choose_columns
from .numbers import strict_number

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
        found = {text: np.nan if value is None else numbers[text] for text, value in values.items()}
        return [found[text] for text in cells]
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
