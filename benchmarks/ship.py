"""Measure exported models: agreement with Python on whole test sets, bytes and latency, beside those of other exporters."""

from __future__ import annotations

import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

import slimsvm
from benchmarks.problems import Problem, problem
from benchmarks.rivals import RIVALS, attempt, code_bytes, skl2onnx_model, svc_like
from benchmarks.timing import interleaved, line
from slimsvm import SlimSVC, export, runtime
from slimsvm.ship.artefact import Artefact
from slimsvm.ship.c import BITS, CExporter
from slimsvm.ship.export import EXPORTERS
from slimsvm.ship.onnx import ONNXExporter
from slimsvm.ship.source import artefact_of
from tools.targets import Outcome, missing, onnx_session, run_c, run_js, run_libsvm, run_onnx

#: problem -> budget
MODELS = {"a8a": 16, "ijcnn1": 128, "letter": 520, "mnist": 500}
#: trained models are kept here, so that a second run measures only
KEPT = Path("results")
#: a microcontroller's compiler
ARM = ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb")
#: times a row is predicted by the compiled program
REPEATS = 20_000

TIMED = """
#include <stdio.h>
#include <time.h>
#include "model.h"
int main(void)
{
    static float rows[64][MODEL_FEATURES];
    float scores[MODEL_SCORES], sum = 0;
    if (fread(rows, sizeof rows, 1, stdin) != 1) return 1;
    clock_t start = clock();
    for (int i = 0; i < %d; i++) {
        model_scores(rows[i %% 64], scores);
        sum += scores[0];
    }
    printf("%%g %%g\\n", (double)(clock() - start) / CLOCKS_PER_SEC / %d, sum);
    return 0;
}
"""


def trained(p: Problem, budget: int) -> SlimSVC:
    """Return the small model of a problem, trained once."""
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"ship-{p.name}-{budget}.slim"
    if not path.exists():
        slimsvm.save(SlimSVC(budget, gamma=p.gamma, C=p.C, random_state=0).fit(p.X, p.y), path)
    return slimsvm.load(path)


def dense(X: Any) -> np.ndarray:
    """Return rows as a dense array, as exported models take them."""
    return X.toarray() if issparse(X) else X


def outcomes(model: SlimSVC, X: np.ndarray, seen: np.ndarray, folder: Path) -> dict[str, Callable[[], Outcome]]:
    """Return for each target a call that runs it on all rows; `seen` are rows that set the range of integers."""
    a = artefact_of(model)
    runs: dict[str, Callable[[], Outcome]] = {}
    for precision in BITS:
        settings: dict[str, Any] = {} if precision == "float32" else {"rows": seen}
        export(model, folder / f"{precision}.c", precision=precision, **settings)
        runs[f"c {precision}"] = lambda precision=precision: run_c(folder / f"{precision}.c", a, X)  # type: ignore[misc]
    for precision in ("float32", "float64"):
        export(model, folder / f"{precision}.onnx", precision=precision)
        runs[f"onnx {precision}"] = lambda precision=precision: run_onnx(folder / f"{precision}.onnx", a, X)  # type: ignore[misc]
    for name, run in (("js", run_js), ("libsvm", run_libsvm)):
        path = folder / f"m{EXPORTERS[name].ending}"
        export(model, path)
        runs[name] = lambda run=run, path=path: run(path, a, X)  # type: ignore[misc]
    export(model, folder / "m.json")
    ready = runtime(folder / "m.json")
    runs["json in runtime"] = lambda: Outcome(ready(X), ready.scores(X).reshape(len(X), -1))
    return runs


def agreement(p: Problem, model: SlimSVC, folder: Path) -> None:
    """Compare scores and labels of every target with Python's on the whole test set."""
    X, outputs = dense(p.X_test), model.model_(p.X_test)
    labels, largest = model.predict(p.X_test), np.abs(outputs).max()
    error = np.mean(labels != p.y_test)
    ranked = np.sort(outputs, axis=1)
    margin = np.abs(outputs[:, 0]) if outputs.shape[1] == 1 else ranked[:, -1] - ranked[:, -2]
    for name, run in outcomes(model, X, dense(p.X[:2000]), folder).items():
        if name == "libsvm" and (reason := missing("svm-predict")):
            line(benchmark="agreement", data=p.name, target=name, skipped=reason)
            continue
        found = run()
        other = found.labels != labels
        scores = {} if found.scores is None else {"score_difference": float(np.abs(found.scores - outputs).max() / largest)}
        line(
            benchmark="agreement",
            data=p.name,
            points=model.model_.size,
            rows=len(X),
            target=name,
            **scores,
            other_labels=int(other.sum()),
            other_labels_but_for_ties=int((other & (margin > 1e-4 * largest)).sum()),
            error_percent=100 * float(np.mean(found.labels != p.y_test)),
            error_points_more=100 * float(np.mean(found.labels != p.y_test) - error),
        )


def sizes(p: Problem, model: SlimSVC, seen: np.ndarray) -> None:
    """Print the bytes of code and constants of the C model, and those of other exporters."""
    a = artefact_of(model)
    exporters = {name: CExporter(name, rows=None if name == "float32" else seen) for name in BITS}
    code = {name: exporter.render(a, "model")[".c"] for name, exporter in exporters.items()}
    compiled = {name: code_bytes(source) for name, source in code.items()}
    raw = exporters["float32"].cost(a).flash
    line(
        benchmark="bytes",
        data=p.name,
        points=a.size,
        raw_float32_tables=raw,
        **{f"c_{name}": size for name, size in compiled.items()},
        limit_float32=int(1.05 * raw + 2048),
        int8_to_float32=compiled["int8"] / compiled["float32"],
        **({} if missing(ARM[0]) else {f"arm_{name}": code_bytes(source, *ARM) for name, source in code.items()}),
        onnx_float32=len(ONNXExporter().render(a, "model")[".onnx"]),
    )
    svc = svc_like(a)
    line(benchmark="bytes of others", data=p.name, **{name: attempt(make, svc) for name, make in RIVALS.items()})


def c_seconds(a: Artefact, X: np.ndarray, precision: str) -> float:
    """Return the seconds of one row in compiled C."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for ending, text in CExporter(precision).render(a, "model").items():
            (folder / f"model{ending}").write_bytes(text)
        (folder / "main.c").write_text(TIMED % (REPEATS, REPEATS))
        sources = [folder / "main.c", folder / "model.c"]
        subprocess.run(["gcc", "-O2", "-std=c99", *sources, "-lm", "-o", folder / "timed"], check=True)
        rows = np.resize(X, (64, X.shape[1])).astype(np.float32).tobytes()
        runs = [subprocess.run([folder / "timed"], input=rows, capture_output=True, check=True) for _ in range(5)]
        return min(float(run.stdout.split()[0]) for run in runs)


def latency(p: Problem, model: SlimSVC) -> None:
    """Print the time of one row on one core for every target; each in turn, the best of several."""
    X = np.ascontiguousarray(dense(p.X_test)[:64])
    model.model_ = replace(model.model_, points=dense(model.model_.points))
    a = artefact_of(model)
    svc, run, row = svc_like(a), runtime(model), X[:1]
    small = row.astype(np.float32)
    ours, theirs = (onnx_session(m) for m in (ONNXExporter().render(a, "m")[".onnx"], skl2onnx_model(svc)))
    calls: dict[str, Callable[[], Any]] = {
        "runtime": lambda: run(row[0]),
        "runtime_scores": lambda: run.scores(row[0]),
        "slimsvc": lambda: model.decision_function(row),
        "svc": lambda: svc.decision_function(row),
        "onnx": lambda: ours.run(None, {"X": small}),
        "skl2onnx": lambda: theirs.run(None, {"X": small}),
    }
    counts = {name: _count(call) for name, call in calls.items()}
    timed, _ = interleaved({name: _repeated(call, counts[name]) for name, call in calls.items()}, dict.fromkeys(calls, 15))
    seconds = {name: value / counts[name] for name, value in timed.items()}
    seconds |= {f"c_{precision}": c_seconds(a, X, precision) for precision in BITS}
    line(
        benchmark="latency",
        data=p.name,
        points=a.size,
        features=a.features,
        **{f"us_{name}": 1e6 * value for name, value in seconds.items()},
        slimsvc_to_svc=seconds["slimsvc"] / seconds["svc"],
        onnx_to_skl2onnx=seconds["onnx"] / seconds["skl2onnx"],
    )


def _count(call: Callable[[], Any]) -> int:
    """Return how many calls take about 20 ms."""
    start = time.perf_counter()
    call()
    return int(np.clip(0.02 / (time.perf_counter() - start), 1, 500))


def _repeated(call: Callable[[], Any], count: int) -> Callable[[], None]:
    def many() -> None:
        for _ in range(count):
            call()

    return many


def large(folder: Path) -> None:
    """Print the seconds of each export of a full model with 20,000 support vectors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 123))
    model = SlimSVC(C=1.0).fit(X, X[:, 0] > 0)
    points, coef = rng.normal(size=(20_000, 123)), rng.normal(size=(20_000, 1))
    model.model_ = replace(model.model_, points=points, coef=coef)
    for name, exporter in EXPORTERS.items():
        path = folder / f"large{exporter.ending}"
        start = time.perf_counter()
        export(model, path)
        line(benchmark="large export", target=name, points=20_000, features=123, seconds=time.perf_counter() - start)


def main() -> None:
    """Run every problem, then latency at 64 x 123, then the large model."""
    warnings.simplefilter("ignore")
    for name, budget in MODELS.items():
        p = problem(name)
        model = trained(p, budget)
        with tempfile.TemporaryDirectory() as folder:
            agreement(p, model, Path(folder))
        sizes(p, model, dense(p.X[:2000]))
        latency(p, model)
    p = problem("a8a")
    latency(p, trained(p, 64))
    with tempfile.TemporaryDirectory() as folder:
        large(Path(folder))


if __name__ == "__main__":
    main()
