"""Whether metric "auto" does harm: its error beside that of "fixed", on training rows that were left out.

python -m benchmarks.metric_choice --seconds 40 --workers 14

A tenth of the training rows of each data set are left out at random, and another tenth are the last rows of each class, up
to 20,000 in all. Both metrics have the same seconds. `difference` is the error of "auto" less that of "fixed".
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.contenders.base import Array
from benchmarks.equal_bytes import CLASSES, data_of, one_thread_each, validation_rows
from benchmarks.frontier import names_of
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.reducers import Slim


def wrong_labels(case: tuple[str, str], points: int, seconds: float) -> tuple[Array, bool]:
    """Return for each row left out whether its label is wrong, and whether the model has a learned metric."""
    name, metric = case
    warnings.simplefilter("ignore")
    data = data_of(name)
    left_out = np.concatenate(validation_rows(data))
    train = np.setdiff1d(np.arange(len(data.y)), left_out)
    X, X_left = data.X[train], data.X[left_out]
    if data.scaler is not None:
        scaler = clone(data.scaler).fit(X)
        X, X_left = scaler.transform(X), scaler.transform(X_left)
    model = SlimSVC(points, trainer=None, C=10.0, reducer=Slim(metric=metric), time_limit=seconds, random_state=0)
    model.fit(X, data.y[train])
    return model.predict(X_left) != data.y[left_out], model.model_.metric is not None


def row(name: str, fixed: tuple[Array, bool], auto: tuple[Array, bool]) -> dict[str, Any]:
    """Return the errors of both metrics and their difference, with its standard error."""
    gap = auto[0].astype(float) - fixed[0]
    return {
        "benchmark": "choice of the metric",
        "data": name,
        "fixed": 100 * float(fixed[0].mean()),
        "auto": 100 * float(auto[0].mean()),
        "difference": 100 * float(gap.mean()),
        "standard_error": 100 * float(gap.std() / np.sqrt(gap.size)),
        "learned": auto[1],
    }


def main() -> None:
    """Print a row for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=names_of([*CLASSES]), default=[*CLASSES], help=f"of {', '.join(CLASSES)}")
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=40.0, help="for each model")
    parser.add_argument("--workers", type=int, default=1, help="models at a time, each with one thread")
    given = parser.parse_args()
    work = partial(wrong_labels, points=given.points, seconds=given.seconds)
    one_thread_each()
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        found = pool.map(work, product(given.data, ("fixed", "auto")))
        for name in given.data:
            line(**row(name, next(found), next(found)))


if __name__ == "__main__":
    main()
