"""Models on small processors: `python -m benchmarks.device` prints what each one takes, as JSON lines.

A 4 KB model of slimsvm in floats, in int8 tables and in integers only, beside emlearn's trees (the smallest of those
tried with the same or a lower error, else the best), and beside the code that m2cgen and micromlgen make of a support
vector machine with the same points. AVR is an ATmega1284P in simavr, whose cycles are counted; Cortex-M are in qemu,
whose instructions are counted. Then streams: whether C and Python hold the same bits after many updates, and
microseconds each.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.problems import Problem, problem
from benchmarks.rivals import svc_like
from benchmarks.timing import line
from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR, export, runtime
from slimsvm.reducers import Slim
from slimsvm.ship.artefact import Artefact
from slimsvm.ship.boards import BOARDS, ROWS, board_cost, cost_of
from slimsvm.ship.c import CExporter
from slimsvm.ship.runtime import IntegerRuntime
from slimsvm.ship.source import artefact_of
from tools.targets import run_c, run_c_learning

#: flash and code of the model, and rows to train on at most
BUDGET, MOST_ROWS = "4 KB", 20_000
#: sizes of forests that are tried, the smallest that is as good as the model first: (trees, leaves of a tree)
FORESTS = [(trees, leaves) for leaves in (16, 64, 256) for trees in (3, 10, 30)]
#: how emlearn's trees take numbers
INT16 = 2**15 - 1
HEADER = """#include <stdint.h>
#define MODEL_FEATURES {}
#ifdef __cplusplus
extern "C"
#endif
int model_predict(const {} *x);
"""
#: the class of the largest score of m2cgen's code
LARGEST = """double out[{k}];
    score(row, out);
    int best = 0;
    for (int k = 1; k < {k}; k++)
        if (out[k] > out[best])
            best = k;
    return best;"""


def rows_of(p: Problem) -> tuple[Any, Any]:
    """Return training rows with all features, and test rows."""
    X, X_test = (part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in (p.X, p.X_test))
    return X, X_test


def slim_models(p: Problem, metric: str) -> SlimSVC:
    """Return a model within the budget in bytes."""
    X, _ = rows_of(p)
    some = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    model = SlimSVC(BUDGET, precision="int8", gamma=p.gamma, C=p.C, reducer=Slim(metric=metric), random_state=0)
    return model.fit(X[some], p.y[some])


def ours(p: Problem) -> Iterator[tuple[str, float, Callable[[str], Any]]]:
    """Yield each form of our model, its test error, and what it takes on a processor."""
    X, X_test = rows_of(p)
    model = slim_models(p, "auto")
    artefact = artefact_of(model)
    forms = {
        "slim float32": CExporter("float32"),
        "slim int8": CExporter("int8", rows=X[:MOST_ROWS]),
        "slim integers": CExporter("int8", integers=True, rows=X[:MOST_ROWS]),
    }
    for name, exporter in forms.items():
        error = np.mean(_labels(artefact, exporter, X_test) != p.y_test)
        yield name, float(error), lambda target, exporter=exporter: board_cost(artefact, target, exporter, X_test)  # type: ignore[misc]


def _labels(artefact: Artefact, exporter: CExporter, X: Any) -> Any:
    """Return what an exported model predicts."""
    if exporter.integers:
        return IntegerRuntime(exporter._integers(artefact))(X)
    with tempfile.TemporaryDirectory() as folder:
        for ending, data in exporter.render(artefact, "model").items():
            (Path(folder) / f"model{ending}").write_bytes(data)
        return run_c(Path(folder) / "model.c", artefact, X).labels


def others(p: Problem, error: float) -> Iterator[tuple[str, float, Callable[[str], Any]]]:
    """Yield rivals: forests that are at least as good where any of those tried is, and support vector machines in code."""
    X, X_test = rows_of(p)
    forest, own = smallest_forest(p, error)
    scaled, rows = in_int16(X, X_test)[1], None
    if forest is not None:
        yield (f"emlearn {len(forest.estimators_)} trees", own, lambda target: _emlearn(forest, scaled[:ROWS], target))
    model = slim_models(p, "fixed")
    svc = svc_like(artefact_of(model))
    own = float(np.mean(model.predict(X_test) != p.y_test))
    rows = X_test[:ROWS].astype(np.float32)
    yield f"m2cgen SVC of {model.model_.size} points", own, lambda target: _m2cgen(svc, rows, target)
    yield f"micromlgen SVC of {model.model_.size} points", own, lambda target: _micromlgen(svc, rows, target)


def in_int16(X: Any, X_test: Any) -> tuple[Any, Any]:
    """Return rows as integers, as emlearn advises for its trees."""
    low, high = X.min(axis=0), X.max(axis=0)
    scale = 2 * INT16 / np.where(high > low, high - low, 1)
    coded, coded_test = (np.clip((part - low) * scale - INT16, -INT16, INT16).astype(np.int16) for part in (X, X_test))
    return coded, coded_test


def smallest_forest(p: Problem, error: float) -> tuple[Any, float]:
    """Return the first forest that is as good as an error, or the best one, with its error."""
    rows, test = in_int16(*rows_of(p))
    best: tuple[Any, float] = None, 1.0
    for trees, leaves in FORESTS:
        forest = RandomForestClassifier(trees, max_leaf_nodes=leaves, random_state=0, n_jobs=1)
        forest.fit(rows[:MOST_ROWS], np.searchsorted(np.unique(p.y), p.y[:MOST_ROWS]))
        found = float(np.mean(np.unique(p.y)[forest.predict(test)] != p.y_test))
        best = min(best, (forest, found), key=lambda each: each[1])
        if found <= error:
            break
    return best


def _emlearn(forest: Any, rows: Any, target: str) -> Any:
    before = np.geterr()
    import emlearn  # which makes every rounding to 0 an error

    np.seterr(**before)

    with tempfile.TemporaryDirectory() as folder:
        emlearn.convert(forest, method="inline", dtype="int16_t").save(file=f"{folder}/rf.h", name="rf", format="c")
        text = (Path(folder) / "rf.h").read_text()
    d = rows.shape[1]
    source = f'#include "model.h"\n{text}\nint model_predict(const int16_t *x) {{ return (int)rf_predict(x, {d}); }}\n'
    sources = {"model.c": source.encode(), "model.h": HEADER.format(d, "int16_t").encode()}
    return cost_of(sources, target, "int16_t", rows, f"-I{emlearn.includedir}")


def _m2cgen(svc: Any, rows: Any, target: str) -> Any:
    import m2cgen

    d, several = rows.shape[1], svc.classes_.size > 2
    text = m2cgen.export_to_c(svc)
    last = LARGEST.format(k=svc.classes_.size) if several else "return score(row) > 0;"
    copy = f"double row[{d}]; for (int i = 0; i < {d}; i++) row[i] = x[i]; "
    source = f'#include "model.h"\n{text}\nint model_predict(const float *x) {{ {copy}{last} }}\n'
    return cost_of({"model.c": source.encode(), "model.h": HEADER.format(d, "float").encode()}, target, "float", rows)


def _micromlgen(svc: Any, rows: Any, target: str) -> Any:
    import micromlgen

    d = rows.shape[1]
    text = "#include <stdarg.h>\n#include <stdint.h>\n#include <math.h>\n" + micromlgen.port(svc)
    last = "int model_predict(const float *x) { static Eloquent::ML::Port::SVM model; return model.predict((float *)x); }\n"
    header = HEADER.format(d, "float")
    sources = {
        "cstdarg": b"#include <stdarg.h>\n",
        "model.cpp": f'{text}\n#include "model.h"\n{last}'.encode(),
        "model.h": header.encode(),
    }
    return cost_of(
        sources, target, "float", rows, "-I.", "-std=gnu++11", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"
    )


def compare(name: str, targets: list[str]) -> None:
    """Print a line for each contender on each processor."""
    p = problem(name)
    found = list(ours(p))
    for contender, own, cost in [*found, *others(p, min(error for _, error, _ in found))]:
        for target in targets:
            told = {"data": name, "contender": contender, "error": 100 * own, "target": target}
            try:
                took = cost(target)
            except Exception as reason:
                line(**told, fails=f"{type(reason).__name__}: {str(reason).strip()[-120:]}")
                continue
            line(**told, flash=took.flash, ram=took.ram, stack=took.stack, steps=took.steps, unit=took.unit)


TIMED = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "model.h"
int main(void)
{
    static float x[ROWS][MODEL_FEATURES + 1];
    if (fread(x, sizeof x, 1, stdin) != 1) return 1;
    clock_t start = clock();
    for (int i = 0; i < ROWS; i++) UPDATE;
    printf("%g", (double)(clock() - start) / CLOCKS_PER_SEC / ROWS * 1e6);
    return 0;
}
"""


def stream(name: str, n: int) -> None:
    """Print whether C and Python agree to the last bit after n updates, and microseconds each."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n + 200, 10))
    value = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))
    model: Any = SlimSVC(50, trainer=name, gamma=0.1, random_state=0) if name in ("bsgd", "forgetron", "rbp") else None
    y: Any = (value > 0).astype(int)
    if name == "regression":
        model, y = SlimSVR(50, trainer="bsgd", gamma=0.1, random_state=0), value
    elif name == "novelty":
        model, y = SlimOneClassSVM(50, trainer="bsgd", gamma=0.1, nu=0.1, random_state=0), np.zeros(len(X))
    more = {"classes": [0, 1]} if isinstance(model, SlimSVC) else {}
    model.partial_fit(X[:200], None if name == "novelty" else y[:200], **more)
    run, artefact = runtime(model, update=True), artefact_of(model)
    start = perf_counter()
    told = np.array([run.update(row, label) for row, label in zip(X[200:], y[200:].tolist(), strict=True)])  # type: ignore[union-attr]
    python = (perf_counter() - start) / n * 1e6
    scores = np.asarray(run.scores(X[200:]), np.float32).reshape(n, -1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        export(model, path / "model.c", update=True)
        c_told, c_scores = run_c_learning(path / "model.c", artefact, X[200:], y[200:])
        label = {"novelty": "", "regression": ", x[i][MODEL_FEATURES]"}.get(name, ", (int)x[i][MODEL_FEATURES]")
        text = TIMED.replace("ROWS", str(n)).replace("UPDATE", f"model_update(x[i]{label})")
        (path / "main.c").write_text(text)
        command = ["gcc", "-O2", "-ffp-contract=off", "main.c", "model.c", "-o", "timed"]
        subprocess.run(command, cwd=path, check=True)
        given = np.column_stack([X[200:], y[200:]]).astype(np.float32).tobytes()
        done = subprocess.run([path / "timed"], input=given, capture_output=True, check=True).stdout
    start = perf_counter()
    model.partial_fit(X[200:], None if name == "novelty" else y[200:], **more)
    batch = (perf_counter() - start) / n * 1e6
    exact = (model.predict if name == "regression" else model.decision_function)(X[200:]).reshape(n, -1)
    same = bool((told == c_told).all() and (c_scores.view(np.uint32) == scores.view(np.uint32)).all())
    apart = float(np.abs(scores - exact).max() / np.abs(exact).max())
    line(stream=name, updates=n, points_added=int(told.sum()), same_bits=same, c_us=float(done), python_us=python,
         partial_fit_us=batch, from_partial_fit=apart)  # fmt: skip


def main() -> None:
    """Print the lines that the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="*", default=["ijcnn1", "letter", "magic", "pageblocks"])
    parser.add_argument("--targets", nargs="*", default=list(BOARDS))
    parser.add_argument("--streams", nargs="*", default=["bsgd", "forgetron", "rbp", "regression", "novelty"])
    parser.add_argument("--updates", type=int, default=100_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.data:
        compare(name, options.targets)
    for name in options.streams:
        stream(name, options.updates)


if __name__ == "__main__":
    main()
