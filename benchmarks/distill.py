"""Teachers distilled into small models: errors of teacher, student, and the small model fitted to labels, on test rows.

python -m benchmarks.distill [--teachers boosting forest process] [--data magic letter ...] [--sizes 32 128] [--rows 2000]

One JSON line for each: errors are shares of wrong classes, or 1 - R^2; `gain` is what the student has less than the small
model fitted to labels, `standard_error` that of the difference on test rows; `teacher_us` and `student_us` are microseconds
for a row, one at a time. Training and test rows are the first of each data set, shuffled.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import GridSearchCV

from benchmarks.problems import arrays, problem
from benchmarks.timing import line
from slimsvm import distill, runtime
from slimsvm.estimators.svr import in_units_of
from slimsvm.kernels import dense

CLASSES = ("a9a", "covtype", "ijcnn1", "letter", "magic", "mnist", "newsgroups200", "pageblocks", "usps", "w8a")
VALUES = ("abalone", "cal_housing")
#: rows of a Gaussian process, whose time is cubic in them
FEW_ROWS = 500
TEST_ROWS = 4000
TIMED_ROWS = 20


def boosting(classes: bool, X: Any, y: Any) -> Any:
    """Return boosted trees with the leaves and the rate that are best in three folds."""
    kind: Any = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    grid = {"max_leaf_nodes": [8, 31], "learning_rate": [0.1, 0.2]}
    few = np.arange(min(1000, y.size))
    search = GridSearchCV(kind(max_iter=60, random_state=0), grid, cv=3).fit(X[few], y[few])
    return clone(search.best_estimator_).fit(X, y)


def forest(classes: bool, X: Any, y: Any) -> Any:
    """Return a forest of 500 trees."""
    kind: Any = RandomForestClassifier if classes else RandomForestRegressor
    return kind(500, random_state=0).fit(X, y)


def process(classes: bool, X: Any, y: Any) -> Any:
    """Return a Gaussian process with the width of gamma="scale"."""
    width = float(np.sqrt(X.shape[1] * X.var() / 2))
    if classes:
        return GaussianProcessClassifier(10.0 * RBF(width), optimizer=None).fit(X, y)
    return GaussianProcessRegressor(RBF(width) + WhiteKernel(0.2), normalize_y=True).fit(X, y)


TEACHERS: dict[str, Callable[[bool, Any, Any], Any]] = {"boosting": boosting, "forest": forest, "process": process}


def rows_of(name: str, count: int) -> tuple[Any, ...]:
    """Return training and test rows with their labels, features scaled."""
    if name in VALUES:
        stored = arrays(name)
        X, X_test = (stored[part].astype(np.float64) for part in ("X_train", "X_test"))
        centre, spread = X.mean(axis=0), X.std(axis=0)
        X, X_test, y, y_test = (X - centre) / spread, (X_test - centre) / spread, stored["y_train"], stored["y_test"]
    else:
        given = problem(name)
        X, X_test, y, y_test = given.X, given.X_test, given.y, given.y_test
    train, test = (np.random.default_rng(0).permutation(labels.size) for labels in (y, y_test))
    train, test = train[:count], test[:TEST_ROWS]
    return dense(X[train]), y[train], dense(X_test[test]), y_test[test]


def losses(predicted: Any, truth: Any, classes: bool) -> Any:
    """Return the loss of each row."""
    return (predicted != truth) * 1.0 if classes else np.square(predicted - truth) / np.var(truth)


def microseconds(predict: Callable[[Any], Any], X: Any) -> float:
    """Return the median time of a row."""
    times = []
    for row in X[:TIMED_ROWS]:
        start = perf_counter()
        predict(row)
        times.append(perf_counter() - start)
    return 1e6 * float(np.median(times))


def main() -> None:
    """Print a line for each data set, teacher and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teachers", nargs="+", default=list(TEACHERS), choices=TEACHERS)
    parser.add_argument("--data", nargs="+", default=[*CLASSES, *VALUES])
    parser.add_argument("--sizes", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--rows", type=int, default=2000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.data:
        for kind in given.teachers:
            X, y, X_test, y_test = rows_of(name, min(given.rows, FEW_ROWS) if kind == "process" else given.rows)
            classes = name not in VALUES
            teacher = TEACHERS[kind](classes, X, y)
            own = losses(teacher.predict(X_test), y_test, classes)
            for size in given.sizes:
                start = perf_counter()
                student = distill(teacher, X, y, budget=size, cv=3, random_state=0)
                seconds = perf_counter() - start
                found = losses(student.predict(X_test), y_test, classes)
                plain = found
                if student.distillation_.kept != "labels":
                    svm = clone(student).set_params(trainer="smo", **({} if classes else in_units_of(y)))
                    plain = losses(svm.fit(X, y).predict(X_test), y_test, classes)
                line(
                    data=name,
                    teacher=kind,
                    size=size,
                    rows=int(y.size),
                    teacher_error=float(own.mean()),
                    plain_error=float(plain.mean()),
                    student_error=float(found.mean()),
                    gain=float((plain - found).mean()),
                    standard_error=float(np.std(plain - found) / np.sqrt(y_test.size)),
                    kept=student.distillation_.kept,
                    seconds=seconds,
                    teacher_us=microseconds(teacher.predict, X_test[:, None]),
                    student_us=microseconds(runtime(student), X_test),
                )


if __name__ == "__main__":
    main()
