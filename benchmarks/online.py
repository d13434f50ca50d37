"""Measure rows per second of each online learner: budget 100, 50 features, a stream in batches of 1,000 rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.timing import interleaved, line
from slimsvm import SlimSVC
from slimsvm.trainers import BSGD, RBP, Forgetron
from slimsvm.trainers.bsgd import MAINTENANCE

ROWS, FEATURES, BUDGET, BATCH = 20_000, 50, 100, 1_000
#: rows a second that every learner should reach
TARGET = 20_000


def learners() -> dict[str, Any]:
    """Return trainers by name; lam is that of C = 1 for the whole stream."""
    sgd = {f"bsgd {name}": BSGD(lam=1 / ROWS, maintenance=name) for name in MAINTENANCE}
    return {"forgetron": Forgetron(), "rbp": RBP(), **sgd}


def stream(trainer: Any, X: np.ndarray, y: np.ndarray) -> SlimSVC:
    """Return a model after one pass over the rows by partial_fit."""
    slim = SlimSVC(BUDGET, trainer=trainer, random_state=0)
    for start in range(0, ROWS, BATCH):
        slim.partial_fit(X[start : start + BATCH], y[start : start + BATCH], classes=[0, 1])
    return slim


def main() -> None:
    """Print a line for each learner; `moves` is the share of rows that changed the model, which take most of the time."""
    X, y = make_classification(2 * ROWS, FEATURES, n_informative=20, flip_y=0.05, random_state=0)
    contenders = {name: partial(stream, trainer, X[:ROWS], y[:ROWS]) for name, trainer in learners().items()}
    seconds, models = interleaved(contenders, dict.fromkeys(contenders, 5))
    for name, slim in models.items():
        line(
            benchmark="online",
            learner=name,
            budget=BUDGET,
            features=FEATURES,
            rows_per_second=ROWS / seconds[name],
            target=TARGET,
            moves=slim.stream_.state.moves / ROWS,
            kernel_evaluations_per_row=slim.n_kernel_evals_ / ROWS,
            test_error=1 - slim.score(X[ROWS:], y[ROWS:]),
        )


if __name__ == "__main__":
    main()
