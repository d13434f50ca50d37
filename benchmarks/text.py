"""slim on text: 64 points from the labels of 4,000 newsgroups messages, tf-idf of 56,436 words, gamma 1, C 10.

python -m benchmarks.text                the first ten groups against the others, judged on the other training rows
python -m benchmarks.text --plain        points that move in all features, which takes minutes
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks.problems import arrays, rows
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.reducers import Slim
from slimsvm.rows.threads import thread_count
from slimsvm.solvers.point_search import Schedule

ROWS, BUDGET = 4_000, 64


def main() -> None:
    """Fit and print seconds, those of all threads together, and the error on rows that were left out."""
    stored = arrays("newsgroups20")
    X, y = csr_array(TfidfTransformer().fit_transform(rows(stored, "X_train"))), stored["y_train"] < 10
    order = np.random.default_rng(0).permutation(y.size)
    train, other = order[:ROWS], order[ROWS:]
    plain = "--plain" in sys.argv
    schedule = Schedule(wide=X.shape[1]) if plain else Schedule()
    model = SlimSVC(BUDGET, trainer=None, reducer=Slim(schedule=schedule), gamma=1.0, C=10.0, random_state=0)
    began, used = perf_counter(), process_time()
    model.fit(X[train], y[train])
    line(
        benchmark="text",
        plain=plain,
        seconds=perf_counter() - began,
        cpu_seconds=process_time() - used,
        threads=thread_count(),
        validation_error=1 - model.score(X[other], y[other]),
        support_vectors=model.model_.size,
    )


if __name__ == "__main__":
    main()
