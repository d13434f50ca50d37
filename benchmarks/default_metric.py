"""Errors and seconds of slim's default metric, "auto", beside the fixed one and a learned one, on held-out training rows.

python -m benchmarks.default_metric                         ten data sets of at most 20,000 rows, 64 points, two seeds
python -m benchmarks.default_metric --data magic --seeds 1  a quick run

Test rows are never read: a fifth of the training rows is held out. Values are those in percent of the variance that is left
unexplained. One JSON line a fit.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.problems import arrays, rows
from benchmarks.timing import line
from slimsvm import SlimSVC, SlimSVR
from slimsvm.reducers import Slim

SETS = ("a8a", "w8a", "ijcnn1", "magic", "letter", "usps", "pageblocks", "mnist", "covtype", "cal_housing")
REAL = ("cal_housing", "abalone")
MOST_ROWS = 20_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each data set, seed and metric."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(SETS))
    parser.add_argument("--metrics", default="fixed,both,auto")
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args(arguments)
    for name in options.data.split(","):
        for seed in range(options.seeds):
            for metric in options.metrics.split(","):
                measure(name, metric, options.points, seed)


def measure(name: str, metric: str, points: int, seed: int) -> None:
    """Print the line of one fit."""
    stored = arrays(name)
    X, y = np.asarray(rows(stored, "X_train"), dtype=np.float64), stored["y_train"]
    some = np.sort(np.random.default_rng(1).permutation(len(y))[:MOST_ROWS])
    strata = None if name in REAL else y[some]
    X, X_out, y, y_out = train_test_split(X[some], y[some], test_size=0.2, random_state=seed, stratify=strata)
    scaler = StandardScaler().fit(X)
    kind, begun = SlimSVR if name in REAL else SlimSVC, perf_counter()
    model = kind(points, reducer=Slim(metric=metric), random_state=seed).fit(scaler.transform(X), y)
    seconds, error = perf_counter() - begun, 1 - model.score(scaler.transform(X_out), y_out)
    made = model.path_[-1].settings
    line(data=name, metric=metric, points=points, seed=seed, error=round(100 * error, 2), seconds=seconds, made=made)


if __name__ == "__main__":
    main()
