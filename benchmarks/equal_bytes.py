"""Measure models of equal bytes: slim with each metric, boosted trees, networks, ProtoNN, Bonsai and Nystroem features.

python -m benchmarks.equal_bytes > equal_bytes.jsonl                                     all: hours on two cores
python -m benchmarks.equal_bytes --data magic,pageblocks --sizes 1,4 --contenders slim,lightgbm --seconds 20
python -m benchmarks.equal_bytes --workers 6 --seconds 60 --machine "8-core host"       six models at a time, a core each
python -m benchmarks.equal_bytes --table equal_bytes.jsonl                               a table in Markdown
python -m benchmarks.equal_bytes --figure equal_bytes.jsonl docs/equal_bytes.svg         a picture

Bytes are text and data that `size` reports for the C compiled by `gcc -Os` on x86-64, without the C library (expf): what a
budget such as "4 KB" counts. Trees are a stream of bits with one table of the splits that they share,
and leaves of 8 bits. Networks, ProtoNN and Bonsai have weights of 4 or 8 bits and are trained with their rounding.

All contenders are tuned by one rule (`benchmarks.tuning_rule`), with the same `--seconds` in all: settings are changed one
at a time on a few of the training rows, the best three are trained on more of them, and the best of these is trained
again on all of them for the rest of the time, at least half of it. Validation errors are those of the compiled C on a
fifth of the training rows, 20,000 at most: random ones, and the last ones of each class. `slim` finds points, rank and bits
by itself; `slim-fixed` has the plain kernel. Errors and microseconds are those of the C on the test rows. Errors are
percents of wrong labels, or the root of the mean squared error in percent of the targets' standard deviation.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.contenders import CONTENDERS
from benchmarks.contenders.base import Array, Contender, Data, Shipped, TooFewBytesError, c_bytes
from benchmarks.equal_bytes_shown import figure, markdown, read_rows
from benchmarks.frontier import names_of
from benchmarks.problems import arrays
from benchmarks.timing import line
from benchmarks.tuning_rule import Budget, Round, tune
from slimsvm.rows.threads import thread_count

#: kilobytes
SIZES = (1, 4, 16)
#: data set -> whether features are scaled to variance 1 (otherwise they are on one scale already)
CLASSES = {
    "a8a": False,
    "a9a": False,
    "covtype": True,
    "ijcnn1": False,
    "letter": True,
    "magic": True,
    "mnist": False,
    "pageblocks": True,
    "usps": False,
    "w8a": False,
}
VALUES = {"abalone": True, "cal_housing": True}
#: what features are divided by as they are read
DIVISORS = {"mnist": 255.0}
#: the share of the training rows that settings are compared on, and such rows at most
VALIDATION, MOST_VALIDATION = 0.2, 20_000
#: times that rows are predicted to measure the time of one
REPEATS = 20_000

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
{kind} model_predict(const float *x);
int main(int argc, char **argv)
{{
    long n = argc > 1 ? atol(argv[1]) : 0;
    float *rows = malloc(n * {features} * sizeof(float));
    {kind} *found = malloc(n * sizeof *found);
    if (!rows || !found || fread(rows, {features} * sizeof(float), n, stdin) != (size_t)n) return 1;
    for (long i = 0; i < n; i++)
        found[i] = model_predict(rows + i * {features});
    double sum = 0;
    clock_t start = clock();
    for (long i = 0; i < {repeats}; i++)
        sum += model_predict(rows + i % n * {features});
    double seconds[2] = {{(double)(clock() - start) / CLOCKS_PER_SEC / {repeats}, sum}};
    fwrite(seconds, sizeof seconds, 1, stdout);
    fwrite(found, sizeof *found, n, stdout);
    return 0;
}}
"""


def data_of(name: str) -> Data:
    """Return a data set: raw rows in float32, and class numbers or target values."""
    stored = arrays(name)
    X, X_test = ((stored[part] / DIVISORS.get(name, 1.0)).astype(np.float32) for part in ("X_train", "X_test"))
    y, y_test = stored["y_train"], stored["y_test"]
    if name in VALUES:
        y, y_test = y.astype(np.float64), y_test.astype(np.float64)
    else:
        classes = np.unique(y)
        y, y_test = np.searchsorted(classes, y), np.searchsorted(classes, y_test)
    return Data(name, X, y, X_test, y_test, StandardScaler() if (CLASSES | VALUES)[name] else None)


@dataclass(frozen=True)
class Outcome:
    """Predictions of the compiled C, and the microseconds of one."""

    found: Array
    microseconds: float


def run(data: Data, shipped: Shipped, X: Array, repeats: int = 0) -> Outcome:
    """Compile a model for speed and predict rows."""
    kind = "float" if data.real else "int"
    with tempfile.TemporaryDirectory() as folder:
        source, main, program = (Path(folder) / name for name in ("model.c", "main.c", "program"))
        source.write_bytes(shipped.source)
        main.write_text(PROGRAM.format(kind=kind, features=X.shape[1], repeats=max(repeats, 1)))
        subprocess.run(["gcc", "-O2", "-w", source, main, "-lm", "-o", program], check=True)
        rows = np.ascontiguousarray(X, dtype=np.float32).tobytes()
        done = subprocess.run([program, str(len(X))], input=rows, capture_output=True, check=True).stdout
    seconds = np.frombuffer(done[:16])[0]
    return Outcome(np.frombuffer(done[16:], np.float32 if data.real else np.int32), 1e6 * float(seconds))


def losses_of(data: Data, y: Array, found: Array) -> Array:
    """Return the loss of each row: 1 for a wrong label, or the squared error."""
    return (found - y) ** 2 if data.real else (found != y).astype(np.float64)


def error_of(data: Data, y: Array, found: Array) -> tuple[float, float]:
    """Return the error in percent, with its standard error."""
    losses = losses_of(data, y, found)
    deviation = float(losses.std() / np.sqrt(y.size))
    if not data.real:
        return 100 * float(losses.mean()), 100 * deviation
    root, unit = float(np.sqrt(losses.mean())), 100 / float(data.y.std())
    return unit * root, unit * deviation / (2 * root)


def validation_rows(data: Data) -> list[Array]:
    """Return the numbers of the validation rows: random ones, and as many that are the last ones of each class.

    Rows often come in the order of time. Then random rows have neighbours among the training rows, and test rows have none.
    """
    groups = np.zeros(len(data.y), dtype=np.int64) if data.real else data.y
    half = min(VALIDATION, MOST_VALIDATION / len(data.y)) / 2
    last = last_rows(groups, half)
    rest = np.setdiff1d(np.arange(len(data.y)), last)
    stratify = None if data.real else data.y[rest]
    _, random = train_test_split(rest, test_size=half / (1 - half), random_state=0, stratify=stratify)
    return [random, last]


def last_rows(groups: Array, share: float) -> Array:
    """Return the numbers of the last rows, the same share of every group."""
    rows = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    return np.sort(np.concatenate([each[each.size - int(share * each.size) :] for each in rows]))


def tuned(contender: Contender, data: Data, size: int, budget: Budget) -> tuple[dict[str, Any], int]:
    """Return the best setting by the validation rows, and how many were tried."""
    parts = validation_rows(data)
    validation, ends = np.concatenate(parts), np.cumsum([part.size for part in parts])[:-1]
    train = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(len(data.y)), validation))
    reasons: list[str] = []

    def losses(settings: dict[str, Any], place: Round, seconds: float) -> list[Array] | None:
        some = np.sort(train[: place.rows(train.size)])
        try:
            shipped = contender.fit(_part(data, some), size, settings, seconds)
        except TooFewBytesError as failure:
            reasons.append(str(failure))
            return None
        found = run(data, shipped, data.X[validation]).found
        return np.split(losses_of(data, data.y[validation], found), ends)

    best, tried = tune(contender.choices(), losses, budget)
    if best is None:
        raise TooFewBytesError(reasons[-1])
    return best, tried


def _part(data: Data, rows: Array) -> Data:
    return replace(data, X=data.X[rows], y=data.y[rows])


def measure(contender: Contender, data: Data, kilobytes: int, seconds: float) -> dict[str, Any]:
    """Return the row of one contender."""
    size = 1024 * kilobytes
    row: dict[str, Any] = {
        "benchmark": "equal bytes",
        "data": data.name,
        "kilobytes": kilobytes,
        "contender": contender.name,
        "goal": "values" if data.real else "classes",
    }
    start, budget = perf_counter(), Budget(seconds)
    try:
        settings, tried = tuned(contender, data, size, budget)
    except TooFewBytesError as failure:
        return row | {"skipped": str(failure)}
    began = perf_counter()
    shipped = contender.fit(data, size, settings, budget.left)
    end = perf_counter()
    outcome = run(data, shipped, data.X_test, REPEATS)
    error, deviation = error_of(data, data.y_test, outcome.found)
    python = shipped.predict(data.X_test)
    return row | {
        "error": error,
        "standard_error": deviation,
        "python_error": error_of(data, data.y_test, python)[0],
        "bytes": c_bytes(shipped.source),
        "microseconds": outcome.microseconds,
        "seconds": end - began,
        "seconds_in_all": end - start,
        "tried": tried,
        "settings": settings,
        "threads": thread_count(),
        **shipped.facts,
    }


@lru_cache(maxsize=1)
def _last_data(name: str) -> Data:
    """Return a data set; the last one is kept, as neighbouring cases are of the same."""
    return data_of(name)


def case(name: str, kilobytes: int, contender: str, seconds: float) -> dict[str, Any]:
    """Return the row of one data set, size and contender."""
    warnings.simplefilter("ignore")
    return measure(CONTENDERS[contender], _last_data(name), kilobytes, seconds) | {"seconds_given": seconds}


def one_thread_each() -> None:
    """Let each process begun from here on have one thread."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def measured(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of all data sets, sizes and contenders, as they are done, in the order of the data sets given."""
    cases = list(product(given.data, given.sizes, given.contenders, [given.seconds]))
    if given.workers == 1:
        yield from (case(*each) for each in cases)
        return
    one_thread_each()
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(case, *each) for each in cases]):
            yield done.result()


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sets, names = [*CLASSES, *VALUES], [*CONTENDERS]
    parser.add_argument("--data", type=names_of(sets), default=sets, help=f"of {', '.join(sets)}")
    parser.add_argument(
        "--sizes", type=lambda text: [int(size) for size in text.split(",")], default=list(SIZES), help="KB"
    )
    parser.add_argument("--contenders", type=names_of(names), default=names, help=f"of {', '.join(names)}")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each model, tuning included (120)")
    parser.add_argument(
        "--workers", type=int, default=1, help="models at a time, each with one thread where there are several"
    )
    parser.add_argument("--machine", default="", help="the machine in words, for the rows")
    parser.add_argument("--table", type=Path, metavar="ROWS", help="print a table of rows, and measure nothing")
    parser.add_argument("--figure", type=Path, nargs=2, metavar=("ROWS", "PICTURE"), help="draw a picture of rows")
    return parser.parse_args()


def main() -> None:
    """Measure, or show what was measured."""
    given = arguments()
    if given.table:
        sys.stdout.write(markdown(read_rows(given.table)))
    elif given.figure:
        figure(read_rows(given.figure[0]), given.figure[1])
    else:
        named = {"machine": given.machine} if given.machine else {}
        for row in measured(given):
            line(**row, **named)


if __name__ == "__main__":
    main()
