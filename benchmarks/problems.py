"""The problems that benchmarks run on: data, kernel width and cost, as the papers have them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import FunctionTransformer, StandardScaler

MISSING = """The benchmark data is not in {folder}.
Set SLIMSVM_DATA to a folder with a8a.npz, ijcnn1.npz, letter.npz and mnist.npz, each with X_train, y_train, X_test and
y_test: a8a and ijcnn1 are on LIBSVM's data page, letter is UCI's "Letter Recognition" (the first 16,000 rows train), mnist
has 784 gray values from 0 to 255."""


@dataclass(frozen=True)
class Problem:
    """Rows as a user would give them to any of the libraries, with one kernel and one cost."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    gamma: float
    C: float


#: name -> (gamma, C, rows given as CSR, how features are scaled)
SETTINGS: dict[str, tuple[float, float, bool, Any]] = {
    "a8a": (0.1, 1.0, True, None),
    "ijcnn1": (1.0, 10.0, False, None),
    "letter": (1 / 16, 10.0, False, StandardScaler()),
    "mnist": (0.02, 10.0, False, FunctionTransformer(partial(np.multiply, 1 / 255))),
}


def folder() -> Path:
    """Where the data is: SLIMSVM_DATA, or shared/data beside the project."""
    return Path(os.environ.get("SLIMSVM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def problem(name: str) -> Problem:
    """The problem of that name; ends the program with advice where its data is missing."""
    file = folder() / f"{name}.npz"
    if not file.exists():
        sys.exit(MISSING.format(folder=folder()))
    gamma, C, sparse, scaler = SETTINGS[name]
    with np.load(file) as arrays:
        X, X_test = arrays["X_train"].astype(np.float64), arrays["X_test"].astype(np.float64)
        y, y_test = arrays["y_train"], arrays["y_test"]
    if scaler is not None:
        X, X_test = scaler.fit_transform(X), scaler.transform(X_test)
    if sparse:
        X, X_test = csr_array(X), csr_array(X_test)
    return Problem(name, X, y, X_test, y_test, gamma, C)
