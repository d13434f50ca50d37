"""Models in files, whatever wrote them: the first bytes tell the format."""

from __future__ import annotations

import os
from typing import Any

from ..estimators import machine_of
from ..importers.libsvm import import_libsvm
from .native import load as load_native


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted model in a .slim file, or that in a LIBSVM model file.

    A model from a .slim file predicts as the model that was saved, to the last bit. A LIBSVM file names no features after
    the last one that occurs in a support vector; `slimsvm.files.models.read_libsvm` takes their number if rows have more.
    """
    return read_libsvm(path) if is_libsvm(path) else load_native(path)


def read_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Any:
    """Return the estimator of a LIBSVM model file; `n_features` where rows have more features than the file names."""
    return machine_of(import_libsvm(path, n_features))


def is_libsvm(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as LIBSVM's models do."""
    with open(path, "rb") as file:
        return file.read(len(b"svm_type")) == b"svm_type"
