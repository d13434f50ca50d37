"""Models in files, whatever wrote them: the form is told by the first bytes."""

from __future__ import annotations

import os
from typing import Any

from ..ship.libsvm import read_libsvm
from .native import load as load_native


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted model in a .slim file, or the classifier in a LIBSVM model file.

    What a .slim file holds predicts as the model that was saved, to the last bit. A LIBSVM file has features up to the last
    one that is not 0 in all support vectors; `slimsvm.io.libsvm.read_libsvm` takes their number where rows have more.
    """
    return read_libsvm(path) if is_libsvm(path) else load_native(path)


def is_libsvm(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as LIBSVM's models do."""
    with open(path, "rb") as file:
        return file.read(len(b"svm_type")) == b"svm_type"
