"""Training rows, test rows and scaling of a run; a report makes the same ones again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.model_selection import train_test_split

from ...kernels import Array, Matrix


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
