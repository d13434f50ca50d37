"""The problems that benchmarks run on: data, kernel width and cost, as the papers have them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler

MISSING = """The benchmark data is not in {folder}.
Set SLIMSVM_DATA to a folder with a8a.npz, ijcnn1.npz, letter.npz and mnist.npz, each with X_train, y_train, X_test and
y_test: a8a and ijcnn1 are on LIBSVM's data page, letter is UCI's "Letter Recognition" (the first 16,000 rows train), mnist
is LeCun's set of digits as rows of 784 grey values."""


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


#: name -> (gamma, C, rows given as CSR, standardised)
SETTINGS = {"a8a": (0.1, 1.0, True, False), "ijcnn1": (1.0, 10.0, False, False), "letter": (1 / 16, 10.0, False, True)}


def folder() -> Path:
    """Where the data is: SLIMSVM_DATA, or shared/data beside the project."""
    return Path(os.environ.get("SLIMSVM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def arrays(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y, X_test and y_test as they are stored; ends the program with advice where they are missing."""
    file = folder() / f"{name}.npz"
    if not file.exists():
        sys.exit(MISSING.format(folder=folder()))
    with np.load(file) as stored:
        return stored["X_train"], stored["y_train"], stored["X_test"], stored["y_test"]


def problem(name: str) -> Problem:
    """The problem of that name."""
    gamma, C, sparse, standardised = SETTINGS[name]
    X, y, X_test, y_test = arrays(name)
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    if standardised:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    if sparse:
        X, X_test = csr_array(X), csr_array(X_test)
    return Problem(name, X, y, X_test, y_test, gamma, C)
