"""Models in files, whatever wrote them: the form is told by the first bytes."""

from __future__ import annotations

import os
from typing import Any

from .libsvm import read_libsvm
from .native import load as load_native


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted model in a .slim file, or the classifier in a LIBSVM model file.

    What a .slim file holds predicts as the model that was saved, to the last bit.
    """
    with open(path, "rb") as file:
        start = file.read(len(b"svm_type"))
    return read_libsvm(path) if start == b"svm_type" else load_native(path)
