"""Which columns of a table are features and labels, by their names where it has names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as short
from typing import Any

from ..text import warn_user

#: names that mark the column of the labels, in any case of letters; the first one that a table has counts
LABEL_NAMES = ("label", "labels", "target", "class", "y")
#: names that programs write for a column without one
UNNAMED = ("", "Unnamed: 0")


@dataclass(frozen=True)
class Cells:
    """Which columns may have words, dates and holes: all of them; of some it is known what they hold."""

    #: "number", "word", "date" or "nothing" by the name of a column, or by its number among the features
    kinds: Mapping[Any, str] = field(default_factory=dict)
    #: whether cells are read even if all of them are numbers
    always: bool = False


@dataclass(frozen=True)
class Wanted:
    """What a reader of a table looks for."""

    labels: bool = True  # whether there must be labels
    target: str | int | None = None  # their column, by name or by number
    n_features: int | None = None  # the number of features; without labels, one column more has them
    names: Sequence[str] | None = None  # the names of the features, in this order
    cells: Cells | None = None  # for tables that may have words, dates and holes


@dataclass(frozen=True)
class Columns:
    """The numbers of the columns that are features, in the order wanted, of the labels, and of one without a name.

    A column of a table that the model does not need, and that is not there, has the number -1.
    """

    features: tuple[int, ...]
    label: int | None
    names: tuple[str, ...] | None = None
    unnamed: int | None = None


def choose_columns(names: Sequence[str] | None, width: int, wanted: Wanted, first: Sequence[str] = ()) -> Columns:
    """Return the columns of a table; `names` is None without a header, and `first` then its first row."""
    if names is not None and wanted.names is not None:
        return _by_name(names, wanted)
    label = _label_of(names or first, width, wanted)
    features = tuple(column for column in range(width) if column != label)
    if not features:
        raise ValueError(
            "it has one column only; features and labels need two or more, separated by commas or semicolons in a CSV file"
        )
    if names is None:
        return Columns(features, label)
    unnamed = 0 if names[0] in UNNAMED and label != 0 else None
    return Columns(features, label, tuple(names[column] for column in features), unnamed)


def check_width(count: int, wanted: int | None) -> None:
    """Raise ValueError unless a table has as many features as are wanted."""
    if wanted not in (None, count):
        raise ValueError(f"it has {count} features and {wanted} are wanted; give the same features in the same order")


def label_column(names: Sequence[str]) -> int:
    """Return the number of the column whose name marks it as the labels, else of the last one."""
    small = [name.lower() for name in names]
    return next((small.index(name) for name in LABEL_NAMES if name in small), len(small) - 1)


def numbered_column(target: str | int | None, names: Sequence[str], width: int) -> int:
    """Return the number of the column of the labels, by its name or number."""
    if target is None:
        return label_column(names) if names else width - 1
    text = str(target)
    if text in names and not text.lstrip("-").isdecimal():
        return list(names).index(text)
    try:
        column = int(target)
    except ValueError:
        known = f"it has {short(list(names))}" if names else f"it has {width} columns, by number"
        raise ValueError(f"it has no column {target!r}; {known}") from None
    if not -width <= column < width:
        raise ValueError(f"it has no column {column}; its columns are numbered from 0 to {width - 1}")
    return column % width


def _label_of(names: Sequence[str], width: int, wanted: Wanted) -> int | None:
    """Return the column of the labels of a table whose features are all other columns."""
    labelled = wanted.labels or wanted.target is not None or width - 1 == wanted.n_features
    return numbered_column(wanted.target, names, width) if labelled else None


def _by_name(names: Sequence[str], wanted: Wanted) -> Columns:
    """Return the columns with the names wanted; the labels are in one of the others."""
    features, places = tuple(wanted.names or ()), {name: number for number, name in enumerate(names)}
    kinds = {} if wanted.cells is None else wanted.cells.kinds
    missing = [name for name in features if name not in places and kinds.get(name) != "nothing"]
    if missing:
        raise ValueError(
            f"it lacks {len(missing)} of the model's features, {short(missing)}; its columns are {short(list(names))}, and "
            f"the model's features {short(list(features))}"
        )
    twice = next((name for name in features if list(names).count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"it has two columns {twice!r}; give each column a name of its own")
    others = [number for number, name in enumerate(names) if name not in features and name not in UNNAMED]
    label = _label_among(others, names, wanted)
    unused = [names[number] for number in others if number != label]
    if unused:
        warn_user(f"columns that the model does not use are left out: {short(unused)}")
    return Columns(tuple(places.get(name, -1) for name in features), label, features)


def _label_among(others: Sequence[int], names: Sequence[str], wanted: Wanted) -> int | None:
    """Return the column of the labels among those that are no features."""
    if wanted.target is not None:
        return numbered_column(wanted.target, names, len(names))
    marked = [number for number in others if names[number].lower() in LABEL_NAMES]
    if marked:
        return min(marked, key=lambda number: LABEL_NAMES.index(names[number].lower()))
    if len(others) == 1:
        return others[0]
    if wanted.labels:
        among = f"one of {short([names[number] for number in others])}" if others else "none: all columns are features"
        raise ValueError(f"the column of the labels may be {among}; name it, as target='species', say")
    return None
