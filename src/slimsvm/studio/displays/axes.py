"""Parts shared by the displays: axes of matplotlib, an extra, and tables of rows from several sources."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ..tradeoff.result import Tradeoff
from ..tradeoff.rows import Row, last_study, read_rows
from ..tune import TuningResult

#: a result of `tradeoff`, its CSV file, a result of `tune`, rows as dicts, or columns of the same length
RowsLike = Tradeoff | str | os.PathLike[str] | TuningResult | Mapping[str, Any] | Iterable[Row]
#: the columns for the x axis, and their labels
ACROSS = {"size": "support vectors", "bytes": "bytes", "us": "µs per row"}


def new_axes(ax: Any) -> Any:
    """Import matplotlib and return the given axes, or new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('displays need matplotlib, which is an extra: pip install "slimsvm[plots]"') from error
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def plain_numbers(axis: Any) -> None:
    """Put 1, 2 and 5 times the powers of ten on a logarithmic axis, written as plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def table_of(rows: RowsLike) -> list[Row]:
    """Return rows as a list of dicts: those of a Tradeoff, of the last study in its CSV file, of `tune`, or those given."""
    if isinstance(rows, TuningResult):
        rows = rows.results_
    if isinstance(rows, Tradeoff):
        table = list(rows.rows)
    elif isinstance(rows, Mapping):
        table = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    elif isinstance(rows, str | os.PathLike):
        table = last_study(read_rows(rows))
    else:
        table = [dict(row) for row in rows]
    if not table:
        raise ValueError("there are no rows to draw; give the rows of slimsvm.tradeoff, or its CSV file")
    return table


def check_axis(x: str, known: Mapping[str, str]) -> None:
    """Raise ValueError for an unknown x axis."""
    if x not in known:
        raise ValueError(f"unknown x {x!r}; there are {', '.join(known)}")


def rows_with(x: str, known: Mapping[str, str], rows: RowsLike) -> list[Row]:
    """Return the rows that have an error and a value for the x axis."""
    table = table_of(rows)
    check_axis(x, known)
    missing = [column for column in (x, "error") if any(column not in row for row in table)]
    if missing:
        raise ValueError(f"the rows have no column {', '.join(missing)}")
    complete = [row for row in table if row["error"] is not None and row[x] is not None]
    if not complete:
        raise ValueError("no run in these rows has figures")
    return complete
