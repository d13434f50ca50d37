"""Parts shared by the displays: axes of matplotlib, an extra, and tables of rows from several sources."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..tradeoffs.result import Tradeoff
from ..tradeoffs.rows import Row, last_study, read_rows

#: the columns for the x axis, and their labels
ACROSS = {"size": "support vectors", "bytes": "bytes", "us": "µs per row"}


def new_axes(ax: Any) -> Any:
    """Return the given axes, or new ones; only this function imports matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('displays need matplotlib, which is an extra: pip install "slimsvm[plots]"') from error
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def table_of(rows: Tradeoff | str | os.PathLike[str] | Iterable[Row]) -> list[Row]:
    """Return rows as a list of dicts: those of a Tradeoff, of the last study in its CSV file, or the given dicts."""
    if isinstance(rows, Tradeoff):
        found = list(rows.rows)
    elif isinstance(rows, str | Path | os.PathLike):
        found = last_study(read_rows(rows))
    else:
        found = [dict(row) for row in rows]
    if not found:
        raise ValueError("there are no rows to draw; give the rows of slimsvm.tradeoff, or its CSV file")
    return found


def check_column(name: str, known: Mapping[str, str], rows: Iterable[Row]) -> None:
    """Raise ValueError for an unknown axis, or one that the rows do not have."""
    if name not in known:
        raise ValueError(f"unknown x {name!r}; there are {', '.join(known)}")
    missing = [column for column in (name, "error") if any(column not in row for row in rows)]
    if missing:
        raise ValueError(f"the rows have no column {', '.join(missing)}")
