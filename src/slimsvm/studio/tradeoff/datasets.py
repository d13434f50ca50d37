"""Data by the name of a file, or of a data set that comes with scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from ...files.columns import Wanted
from ...files.datasets import Table, read_table

#: the data that scikit-learn installs; nothing is downloaded
DATASETS: dict[str, Callable[..., Any]] = {
    "breast_cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}


#: those whose labels are values; the others have classes
VALUES = ("diabetes",)
#: those whose names of features tell nothing
UNTOLD = ("digits",)


def usual_task(name: str | os.PathLike[str]) -> str:
    """Return the task of a named data set, or classification for a file."""
    return "regress" if name in VALUES else "classify"


def open_data(
    name: str | os.PathLike[str],
    *,
    labels: bool = True,
    target: str | int | None = None,
    split: str = "train",
    names: Sequence[str] | None = None,
) -> Table:
    """Return rows, labels and the names of the features of a named data set or of a file; "./digits" is a file in any case.

    Without `labels` a file may have none; y is then None. Columns of a table are found by `names`, if these are given.
    """
    if name in DATASETS:
        found = DATASETS[str(name)]()
        classes = getattr(found, "target_names", None)
        known = None if name in UNTOLD else tuple(map(str, found.feature_names))
        return Table(found.data, found.target if classes is None else classes[found.target], known)
    path = Path(name)
    if path.is_file():
        return read_table(path, Wanted(labels, target, names=names), split)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a file in it: LIBSVM format, .csv or .npz")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent}; {_what_is_possible()}")
    raise ValueError(f"there is no file {path}, and no data set of that name; {_what_is_possible()}")


def _what_is_possible() -> str:
    return f"give a file in LIBSVM format, .csv or .npz, or one of scikit-learn's data sets: {', '.join(DATASETS)}"
