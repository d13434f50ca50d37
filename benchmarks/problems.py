"""The problems that benchmarks run on: data, gamma and C, as in the papers."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

MISSING = """The benchmark data {file} is not in {folder}.
Set SLIMSVM_DATA to a folder with a8a.npz, ijcnn1.npz, letter.npz and mnist.npz, each with X_train, y_train, X_test and
y_test: a8a and ijcnn1 are on LIBSVM's data page, letter is UCI's "Letter Recognition" (the first 16,000 rows train), mnist
has 784 grey values from 0 to 255. Some benchmarks take more: a9a.npz and w8a.npz (LIBSVM's), covtype.npz, magic.npz and
pageblocks.npz (UCI's, labels of -1 and +1), usps.npz (256 grey values from -1 to 1), reuters_moneyfx.npz (Reuters-21578,
ModApte split: word counts as the pieces X_train_data, _indices, _indptr and _shape of CSR arrays, labels of -1 and +1),
newsgroups20.npz (the "bydate" split, word counts in such pieces)."""


@dataclass(frozen=True)
class Problem:
    """Rows as a user would give them to any of the libraries, with gamma and C."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    gamma: float
    C: float


def shades(X: np.ndarray) -> np.ndarray:
    """Return grey values from 0 to 1."""
    return (X / 255).astype(np.float32)


#: word counts as 200 directions of the training rows' tf-idf, of length 1
LATENT = make_pipeline(TfidfTransformer(sublinear_tf=True), TruncatedSVD(200, random_state=0), Normalizer())

#: name -> (gamma, C, rows given as CSR, how features are scaled)
SETTINGS: dict[str, tuple[float, float, bool, Any]] = {
    "a8a": (0.1, 1.0, True, None),
    "a9a": (0.05, 1.0, True, None),
    "covtype": (0.1, 10.0, False, StandardScaler()),
    "covtype_raw": (1e-4, 1e4, False, None),
    "ijcnn1": (1.0, 10.0, False, None),
    "ijcnn1_35k": (1.0, 10.0, False, None),
    "letter": (1 / 16, 10.0, False, StandardScaler()),
    "magic": (0.1, 10.0, False, StandardScaler()),
    "mnist": (0.02, 10.0, False, FunctionTransformer(shades)),
    "mnist8": (1 / 25, 1.0, False, FunctionTransformer(shades)),
    "mnist8_c10": (0.02, 10.0, False, FunctionTransformer(shades)),
    "newsgroups20": (1.0, 10.0, True, TfidfTransformer(sublinear_tf=True)),
    "newsgroups200": (1.0, 10.0, False, LATENT),
    "pageblocks": (0.1, 10.0, False, StandardScaler()),
    "reuters_moneyfx": (2.0, 1.0, True, TfidfTransformer()),
    "usps": (0.01, 10.0, False, None),
    "w8a": (0.1, 10.0, True, None),
}
#: problems of one class of another data set against the others
ONE_CLASS = {"mnist8": ("mnist", 8), "mnist8_c10": ("mnist", 8)}
#: problems with features made of another data set's
SAME_ROWS = {"newsgroups200": "newsgroups20", "covtype_raw": "covtype"}
#: problems of the first training rows of another data set: ijcnn1's own training file, without its validation file
FIRST_ROWS = {"ijcnn1_35k": ("ijcnn1", 35_000)}


def folder() -> Path:
    """Return the folder of the data: SLIMSVM_DATA, or shared/data beside the project."""
    return Path(os.environ.get("SLIMSVM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def arrays(name: str) -> dict[str, np.ndarray]:
    """Return the stored arrays of a data set; end the program with advice where they are missing."""
    file = folder() / f"{name}.npz"
    if not file.exists():
        sys.exit(MISSING.format(file=file.name, folder=folder()))
    with np.load(file) as stored:
        return dict(stored)


def problem(name: str) -> Problem:
    """Return the problem of that name."""
    gamma, C, sparse, scaler = SETTINGS[name]
    data, wanted = ONE_CLASS.get(name, (name, None))
    data, first = FIRST_ROWS.get(name, (SAME_ROWS.get(data, data), None))
    stored = arrays(data)
    X, X_test = rows(stored, "X_train")[:first], rows(stored, "X_test")
    y, y_test = stored["y_train"][:first], stored["y_test"]
    if wanted is not None:
        y, y_test = y == wanted, y_test == wanted
    if scaler is not None:
        X, X_test = scaler.fit_transform(X), scaler.transform(X_test)
    if sparse:
        X, X_test = csr_array(X), csr_array(X_test)
    return Problem(name, X, y, X_test, y_test, gamma, C)


def shortened(p: Problem, count: int) -> Problem:
    """Return the problem with its first training rows only, for quick runs."""
    return replace(p, X=p.X[:count], y=p.y[:count])


def rows(stored: dict[str, np.ndarray], name: str) -> Any:
    """Return a dense array, or the CSR array whose pieces are stored."""
    if name in stored:
        return stored[name].astype(np.float64)
    pieces = (stored[f"{name}_data"].astype(np.float64), stored[f"{name}_indices"], stored[f"{name}_indptr"])
    return csr_array(pieces, shape=tuple(stored[f"{name}_shape"]))
