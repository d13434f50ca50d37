"""Errors and seconds of slim's default metric, "auto", beside the fixed one and a learned one. Test rows are never read.

python -m benchmarks.default_metric                         ten data sets of at most 20,000 rows, 64 points, two seeds
python -m benchmarks.default_metric --data magic --seeds 1  a quick run
python -m benchmarks.default_metric --small                 small sets, and 300 rows of the ten: ten times repeated 5-fold
                                                            cross-validation with 8 and 32 points
python -m benchmarks.default_metric --workers 16            so many fits at a time, with one thread each

A fifth of the training rows is held out. Rows are standardised. Values are those in percent of the variance that is left
unexplained. One JSON line for each data set, and seed or number of points; `difference` is that of auto and fixed with its
standard error, fold by fold.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.equal_bytes import one_thread_each
from benchmarks.problems import arrays, rows
from benchmarks.timing import line
from slimsvm import SlimSVC, SlimSVR
from slimsvm.reducers import Slim

SETS = ("a8a", "w8a", "ijcnn1", "magic", "letter", "usps", "pageblocks", "mnist", "covtype", "cal_housing")
SMALL = {"wine": load_wine, "cancer": load_breast_cancer, "iris": load_iris, "digits": load_digits}
REAL = ("cal_housing", "abalone")
MOST_ROWS, FEW_ROWS = 20_000, 300
#: times that cross-validation is repeated, and the numbers of points
REPEATS, POINTS = 10, (8, 32)

Array = np.ndarray


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--metrics", default="fixed,both,auto")
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args(arguments)
    metrics = options.metrics.split(",")
    if options.small:
        names = options.data or ",".join((*SMALL, *SETS))
        cases = [(name, points, options.repeats, metrics) for name in names.split(",") for points in POINTS]
    else:
        names = options.data or ",".join(SETS)
        cases = [(name, metrics, options.points, seed) for name in names.split(",") for seed in range(options.seeds)]
    for found in _each(validated if options.small else held_out, cases, options.workers):
        line(**found)


def _each(measure: Any, cases: Sequence[tuple[Any, ...]], workers: int) -> Iterator[dict[str, Any]]:
    """Yield the measures of all cases, in order."""
    if workers == 1:
        yield from (measure(*case) for case in cases)
        return
    one_thread_each()
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for each in [pool.submit(measure, *case) for case in cases]:
            yield each.result()


def held_out(name: str, metrics: Sequence[str], points: int, seed: int) -> dict[str, Any]:
    """Return the errors and seconds of one seed, on held-out training rows."""
    X, y = data_of(name, MOST_ROWS)
    X, X_out, y, y_out = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=None if name in REAL else y)
    found = {metric: measured(name, metric, points, seed, X, y, X_out, y_out) for metric in metrics}
    errors, seconds = ({metric: each[place] for metric, each in found.items()} for place in (0, 1))
    return {"data": name, "points": points, "seed": seed, "error": errors, "seconds": seconds}


def validated(name: str, points: int, repeats: int, metrics: Sequence[str]) -> dict[str, Any]:
    """Return the mean errors and seconds of repeated cross-validation on few rows."""
    X, y = SMALL[name](return_X_y=True) if name in SMALL else data_of(name, FEW_ROWS)
    kind = RepeatedKFold if name in REAL or np.bincount(np.unique(y, return_inverse=True)[1]).min() < 5 else None
    folds = (kind or RepeatedStratifiedKFold)(n_splits=5, n_repeats=repeats, random_state=0)
    found: dict[str, list[tuple[float, float]]] = {metric: [] for metric in metrics}
    for seed, (train, out) in enumerate(folds.split(X, y)):
        for metric in metrics:
            found[metric].append(measured(name, metric, points, seed, X[train], y[train], X[out], y[out]))
    errors, seconds = ({metric: float(np.mean(each, axis=0)[place]) for metric, each in found.items()} for place in (0, 1))
    row = {"data": name, "rows": len(y), "points": points, "error": errors, "seconds": seconds}
    if "fixed" in found and "auto" in found:
        gaps = np.array([auto[0] - fixed[0] for auto, fixed in zip(found["auto"], found["fixed"], strict=True)])
        row |= {"difference": float(gaps.mean()), "standard_error": float(gaps.std() / np.sqrt(gaps.size))}
    return row


def data_of(name: str, most: int) -> tuple[Array, Array]:
    """Return at most so many of the training rows of a shared data set."""
    stored = arrays(name)
    X, y = rows(stored, "X_train"), stored["y_train"]
    some = np.sort(np.random.default_rng(1).permutation(len(y))[:most])
    return np.asarray(X[some], dtype=np.float64), y[some]


def measured(
    name: str, metric: str, points: int, seed: int, X: Array, y: Array, X_out: Array, y_out: Array
) -> tuple[float, float]:
    """Return the error in percent and the seconds of one fit."""
    scaler = StandardScaler().fit(X)
    X, kind, begun = scaler.transform(X), SlimSVR if name in REAL else SlimSVC, perf_counter()
    model = kind(points, reducer=Slim(metric=metric), random_state=seed).fit(X, y)
    return 100 * (1 - model.score(scaler.transform(X_out), y_out)), perf_counter() - begun


if __name__ == "__main__":
    main()
