"""Training rows, test rows and scaling of a run; a report makes the same ones again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.model_selection import train_test_split

from ...kernels import Array, Matrix

SCALES = ("auto", "none", "standard", "minmax", "maxabs")
#: "auto" standardises features if the largest standard deviation is more than this many times the median one; more: rarely
UNEVEN = 10.0


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


def resolve_scale(scale: str, X: Matrix) -> str:
    """Return the scaling; "auto" is standard for dense features whose deviations differ widely, else none."""
    if scale != "auto":
        return scale
    if issparse(X):
        return "none"
    deviations = np.std(X, axis=0)
    deviations = deviations[deviations > 0]
    return "standard" if deviations.size and deviations.max() > UNEVEN * np.median(deviations) else "none"


def fingerprint(*arrays: Any) -> str:
    """Return a short hash of rows and labels, which identifies the data of results."""
    digest = hashlib.sha256()
    for array in arrays:
        parts = (array.data, array.indices, array.indptr) if issparse(array) else (np.asarray(array),)
        for part in parts:
            digest.update(f"{part.shape}".encode())
            digest.update(repr(part.tolist()).encode() if part.dtype.kind in "OU" else part.tobytes())
    return digest.hexdigest()[:12]
