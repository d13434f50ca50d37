"""Teachers distilled into small models: errors of teacher, student, and the small model fitted to labels, on test rows.

python -m benchmarks.distill [--teachers boosting forest process] [--data magic letter ...] [--sizes 32 128] [--rows 2000]
                             [--seed 0] [--workers 16] [--table LINES]

One JSON line for each: errors are shares of wrong classes, or 1 - R^2; `gain` is what the student has less than the small
model fitted to labels, `possible` what the teacher has, with the standard errors of the differences on test rows;
`teacher_us` and `student_us` are microseconds for a row, one at a time. The last line counts where students are better.
Training and test rows are the first of each data set, shuffled.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
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
#: the data sets whose jobs take longest, which begin first
SLOWEST = ("mnist", "letter", "newsgroups200", "usps", "w8a", "a9a", "covtype")
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


def cell(name: str, kind: str, size: int, rows: int, seed: int) -> dict[str, Any]:
    """Return what a teacher's student of a size is worth on a data set."""
    warnings.simplefilter("ignore")
    X, y, X_test, y_test = rows_of(name, min(rows, FEW_ROWS) if kind == "process" else rows)
    classes = name not in VALUES
    teacher = TEACHERS[kind](classes, X, y)
    of_teacher = losses(teacher.predict(X_test), y_test, classes)
    start = perf_counter()
    student = distill(teacher, X, y, budget=size, cv=3, random_state=seed)
    seconds = perf_counter() - start
    of_student = losses(student.predict(X_test), y_test, classes)
    of_plain, told = of_student, student.distillation_
    if told.kept != "labels":
        plain = clone(student)
        svm = plain.steps[-1][1] if hasattr(plain, "steps") else plain
        svm.set_params(trainer="smo", **({} if classes else in_units_of(y)))
        of_plain = losses(plain.fit(X, y).predict(X_test), y_test, classes)
    return {
        "data": name,
        "teacher": kind,
        "size": size,
        "rows": int(y.size),
        "seed": seed,
        "teacher_error": float(of_teacher.mean()),
        "plain_error": float(of_plain.mean()),
        "student_error": float(of_student.mean()),
        "gain": float((of_plain - of_student).mean()),
        "standard_error": standard_error(of_plain - of_student),
        "possible": float((of_plain - of_teacher).mean()),
        "possible_standard_error": standard_error(of_plain - of_teacher),
        "kept": told.kept,
        "errors": {key: round(value, 4) for key, value in told.errors.items()},
        "seconds": seconds,
        "teacher_us": microseconds(teacher.predict, X_test[:, None]),
        "student_us": microseconds(runtime(student), X_test),
    }


def standard_error(differences: Any) -> float:
    """Return the standard error of the mean difference of losses."""
    return float(np.std(differences) / np.sqrt(differences.size))


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the three figures that distilling is judged by."""
    could = [each for each in found if each["possible"] > 2 * each["possible_standard_error"]]
    sets = {each["data"] for each in could}
    helped = {each["data"] for each in could if each["gain"] > each["standard_error"]}
    worst = min(found, key=lambda each: each["gain"] / (each["standard_error"] or 1.0))
    return {
        "cells": len(found),
        "mean_gain": float(np.mean([each["gain"] for each in found])),
        "worst": f"{worst['data']} {worst['teacher']} {worst['size']}",
        "worst_in_standard_errors": worst["gain"] / (worst["standard_error"] or 1.0),
        "cells_where_the_teacher_is_better": len(could),
        "cells_helped": sum(each["gain"] > each["standard_error"] for each in could),
        "sets_where_the_teacher_is_better": sorted(sets),
        "sets_helped": sorted(helped),
    }


def table(found: list[dict[str, Any]]) -> str:
    """Return the rows as a table in Markdown: for each data set the sizes, and errors of each teacher in percent."""
    lines = ["| data | points | " + " | ".join(TEACHERS) + " |", "|---|---|" + "---|" * len(TEACHERS)]
    by_place = {(each["data"], each["size"], each["teacher"]): each for each in found}
    for name, size in dict.fromkeys((each["data"], each["size"]) for each in sorted(found, key=lambda each: each["data"])):
        cells = [_words(by_place.get((name, size, kind))) for kind in TEACHERS]
        lines.append(f"| {name} | {size} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _words(each: dict[str, Any] | None) -> str:
    """Return the errors of teacher, small model of labels and student; the student's in bold if it is clearly better."""
    if each is None:
        return ""
    errors = [f"{100 * each[name]:.1f}" for name in ("teacher_error", "plain_error", "student_error")]
    if each["gain"] > each["standard_error"]:
        errors[2] = f"**{errors[2]}**"
    return " / ".join(errors)


def main() -> None:
    """Print a line for each data set, teacher and size, and a summary; or a table of such lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teachers", nargs="+", default=list(TEACHERS), choices=TEACHERS)
    parser.add_argument("--data", nargs="+", default=[*CLASSES, *VALUES])
    parser.add_argument("--sizes", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes, each with one thread")
    parser.add_argument("--table", type=Path, metavar="LINES", help="show lines of an earlier run, and measure nothing")
    given = parser.parse_args()
    if given.table is not None:
        found = [json.loads(text) for text in given.table.read_text().splitlines() if '"student_error"' in text]
        sys.stdout.write(table(found) + "\n")
        line(**summary(found))
        return
    if given.workers > 1:
        os.environ["OMP_NUM_THREADS"] = "1"
    jobs = [
        (name, kind, size, given.rows, given.seed)
        for name in sorted(given.data, key=lambda name: SLOWEST.index(name) if name in SLOWEST else len(SLOWEST))
        for kind in given.teachers
        for size in sorted(given.sizes, reverse=True)
    ]
    found = []
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        for future in as_completed([pool.submit(cell, *job) for job in jobs]):
            found.append(future.result())
            line(**found[-1])
    line(**summary(found))


if __name__ == "__main__":
    main()
