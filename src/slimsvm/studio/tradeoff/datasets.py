"""Data by the name of a file, or of a data set that comes with scikit-learn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from ...files.columns import Wanted
from ...files.datasets import Table, read_table
from ...kernels import Array, Matrix

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
        data = DATASETS[str(name)]()
        classes = getattr(data, "target_names", None)
        known = None if name in UNTOLD else tuple(map(str, data.feature_names))
        return Table(data.data, data.target if classes is None else classes[data.target], known)
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


@dataclass(frozen=True)
class Split:
    """Rows to train on and rows to test on."""

    X: Matrix
    y: Array
    X_test: Matrix
    y_test: Array


def split_rows(
    X: Matrix, y: Array, test: tuple[Matrix, Array] | None, test_size: float, seed: int, has_classes: bool = True
) -> Split:
    """Return the given test rows, or a share of the rows drawn by the seed, with all classes in both parts if possible."""
    if test is not None:
        return Split(X, y, *test)
    classes, counts = np.unique(y, return_counts=True)
    n_test = int(np.ceil(test_size * y.size))
    stratify = y if has_classes and counts.min() >= 2 and classes.size <= min(n_test, y.size - n_test) else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=n_test, stratify=stratify, random_state=seed)
    return Split(X, y, X_test, y_test)


def fingerprint(*arrays: Any) -> str:
    """Return a short hash of rows and labels, which identifies the data of results."""
    digest = hashlib.sha256()
    for array in arrays:
        parts = (array.data, array.indices, array.indptr) if issparse(array) else (np.asarray(array),)
        for part in parts:
            digest.update(f"{part.shape}".encode())
            digest.update(repr(part.tolist()).encode() if part.dtype.kind in "OU" else part.tobytes())
    return digest.hexdigest()[:12]
