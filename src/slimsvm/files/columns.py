"""The column of the labels in tables whose columns have names."""

from __future__ import annotations

from collections.abc import Sequence

#: names that mark the column of the labels, in any case of letters; the first one that a table has counts
LABEL_NAMES = ("label", "labels", "target", "class", "y")


def label_column(names: Sequence[str]) -> int:
    """Return the number of the column whose name marks it as the labels, else of the last one."""
    small = [name.lower() for name in names]
    return next((small.index(name) for name in LABEL_NAMES if name in small), len(small) - 1)
