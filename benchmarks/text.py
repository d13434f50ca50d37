"""Text: newsgroups messages as tf-idf of 56,436 words, gamma 1, C 10.

python -m benchmarks.text                slim: 64 points from the labels of 4,000 messages, the first ten groups against the
                                         others, judged on the other training rows
python -m benchmarks.text --exact        exact training against scikit-learn's SVC: 20 classes, 4,000 rows; two, 8,000 rows
"""

from __future__ import annotations

import sys
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import SVC

from benchmarks.problems import arrays, rows
from benchmarks.timing import interleaved, line
from slimsvm import SlimSVC
from slimsvm.rows.threads import thread_count

ROWS, BUDGET = 4_000, 64
SETTINGS: dict[str, Any] = {"gamma": 1.0, "C": 10.0}


def messages() -> tuple[csr_array, np.ndarray]:
    """Return the training rows in random order, and their groups."""
    stored = arrays("newsgroups20")
    X, y = csr_array(TfidfTransformer().fit_transform(rows(stored, "X_train"))), stored["y_train"]
    order = np.random.default_rng(0).permutation(y.size)
    return X[order], y[order]


def small() -> None:
    """Fit and print seconds, those of all threads together, and the error on rows that were left out."""
    X, groups = messages()
    y = groups < 10
    model = SlimSVC(BUDGET, trainer=None, random_state=0, **SETTINGS)
    began, used = perf_counter(), process_time()
    model.fit(X[:ROWS], y[:ROWS])
    line(
        benchmark="text",
        seconds=perf_counter() - began,
        cpu_seconds=process_time() - used,
        threads=thread_count(),
        validation_error=1 - model.score(X[ROWS:], y[ROWS:]),
        support_vectors=model.model_.size,
    )


def exact(name: str, y: np.ndarray, X: csr_array, count: int) -> None:
    """Print seconds of exact training on the first rows, beside those of SVC, and errors on the other training rows."""
    some, left = slice(0, count), slice(count, None)
    models: dict[str, Any] = {"slimsvm": SlimSVC(**SETTINGS), "svc": SVC(cache_size=2000, **SETTINGS)}
    given = {"slimsvm": X, "svc": csr_matrix(X)}
    contenders = {key: partial(model.fit, given[key][some], y[some]) for key, model in models.items()}
    seconds, fitted = interleaved(contenders, {"slimsvm": 2, "svc": 1})
    line(
        benchmark="exact text",
        problem=name,
        rows=count,
        threads=thread_count(),
        seconds=seconds,
        ratio=seconds["svc"] / seconds["slimsvm"],
        errors={key: 1 - model.score(given[key][left], y[left]) for key, model in fitted.items()},
    )


def main() -> None:
    """Run the part that is asked for."""
    if "--exact" in sys.argv:
        X, groups = messages()
        exact("20 classes", groups, X, 4_000)
        exact("two classes", groups < 10, X, 8_000)
    else:
        small()


if __name__ == "__main__":
    main()
