"""Exports of a text model: bytes, held-out error and microseconds a row.

python -m benchmarks.text_export             newsgroups as in `benchmarks.text`: 64 points for 4,000 messages, ten groups
                                             against the others; beside exports of the same model with all entries
python -m benchmarks.text_export --classes   the same for all 20 groups
python -m benchmarks.text_export --hashed    ten groups, with the words at random places among 2^20 features; only compact
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import slimsvm
from benchmarks.text import BUDGET, ROWS, SETTINGS, messages
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.reducers import Slim
from slimsvm.selection.costs import microseconds
from slimsvm.ship.artefact import Artefact
from slimsvm.ship.c import CExporter
from slimsvm.ship.export import EXPORTERS
from slimsvm.ship.runtime import Runtime
from slimsvm.ship.source import artefact_of
from slimsvm.solvers.point_search import Schedule
from tools.targets import run_c_sparse, run_js_on

HASHED = 1 << 20
#: times single rows, given by their nonzeros and with all features, in turn, and prints the best of each
TIMER = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "model.h"
static float dense[32][MODEL_FEATURES];
static uint32_t index[32][4096], count[32];
static float value[32][4096];
static double seconds(int sparse, int calls)
{
    float scores[MODEL_SCORES];
    const clock_t start = clock();
    for (int i = 0; i < calls; i++)
        sparse ? (void)model_scores_sparse(index[i % 32], value[i % 32], count[i % 32], scores)
               : model_scores(dense[i % 32], scores);
    return (double)(clock() - start) / CLOCKS_PER_SEC / calls;
}
int main(void)
{
    for (int i = 0; i < 32; i++) {
        if (fread(&count[i], 4, 1, stdin) != 1 || fread(index[i], 4, count[i], stdin) != count[i]
            || fread(value[i], 4, count[i], stdin) != count[i])
            return 1;
        for (uint32_t n = 0; n < count[i]; n++)
            dense[i][index[i][n]] = value[i][n];
    }
    double best[2] = { 1, 1 };
    for (int round = 0; round < 20; round++)
        for (int sparse = 0; sparse < 2; sparse++) {
            const double found = seconds(sparse, sparse ? 3200 : 320);
            best[sparse] = found < best[sparse] ? found : best[sparse];
        }
    printf("{\\"sparse\\": %g, \\"dense\\": %g}", 1e6 * best[1], 1e6 * best[0]);
    return 0;
}
"""


def hashed(X: csr_array) -> csr_array:
    """Return rows whose features are at random places among HASHED."""
    place = np.random.default_rng(0).choice(HASHED, X.shape[1], replace=False)
    moved = csr_array((X.data, place[X.indices], X.indptr), shape=(X.shape[0], HASHED))
    moved.sort_indices()
    return moved


def entries(X: csr_array) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the features and values of each row."""
    X.sort_indices()
    return list(zip(np.split(X.indices, X.indptr[1:-1]), np.split(X.data, X.indptr[1:-1]), strict=True))


def sizes(artefact: Artefact, folder: Path) -> dict[str, int]:
    """Return the bytes of the files of each exporter, and of the C object files, compiled for size."""
    found = {}
    for name, exporter in EXPORTERS.items():
        found[name] = sum(map(len, exporter().render(artefact, "model").values()))
    for precision in ("float32", "int16", "int8"):
        source = folder / "model.c"
        source.write_bytes(CExporter(precision).render(artefact, "model")[".c"])
        subprocess.run(["gcc", "-std=c99", "-Os", "-c", source, "-o", folder / "model.o"], check=True)
        words = subprocess.run(["size", folder / "model.o"], check=True, capture_output=True, text=True).stdout.split()
        found[f"object, {precision}"] = int(words[words.index("filename") + 4])
    return found


def in_c(artefact: Artefact, precision: str, rows: list[Any], folder: Path) -> tuple[np.ndarray, dict[str, float]]:
    """Return the numbers of the predicted classes of sparse rows, and microseconds a row."""
    for ending, text in CExporter(precision).render(artefact, "model").items():
        (folder / f"model{ending}").write_bytes(text)
    found = run_c_sparse(folder / "model.c", artefact, rows).labels
    (folder / "timer.c").write_text(TIMER)
    sources = [folder / "timer.c", folder / "model.c"]
    subprocess.run(["gcc", "-std=gnu99", "-O2", f"-I{folder}", *sources, "-lm", "-o", folder / "timer"], check=True)
    given = b"".join(
        np.uint32(len(index)).tobytes() + index.astype(np.uint32).tobytes() + values.astype(np.float32).tobytes()
        for index, values in rows[:32]
    )
    done = subprocess.run([folder / "timer"], input=given, check=True, capture_output=True)
    return found, json.loads(done.stdout)


def main() -> None:
    """Fit, export, run and print."""
    X, groups = messages()
    X, y = hashed(X) if "--hashed" in sys.argv else X, groups if "--classes" in sys.argv else (groups < 10).astype(int)
    model = SlimSVC(BUDGET, trainer=None, random_state=0, **SETTINGS).fit(X[:ROWS], y[:ROWS])
    artefact, left = artefact_of(model), csr_array(X[ROWS:])
    expected = model.predict(left)
    line(benchmark="text model", features=X.shape[1], nonzeros=model.model_.points.nnz, error=np.mean(expected != y[ROWS:]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        slimsvm.save(model, folder / "model.slim")
        line(benchmark="bytes", **sizes(artefact, folder), slim=(folder / "model.slim").stat().st_size)
        for precision in ("float32", "int16", "int8"):
            found, times = in_c(artefact, precision, entries(left), folder)
            line(benchmark="C", precision=precision, error=np.mean(found != y[ROWS:]), microseconds=times)
        (folder / "model.mjs").write_bytes(EXPORTERS["js"]().render(artefact, "model")[".mjs"])
        given = [{"indices": index.tolist(), "values": values.tolist()} for index, values in entries(left)]
        line(benchmark="JavaScript", error=np.mean(run_js_on(folder / "model.mjs", given).labels != y[ROWS:]))
        run, row = Runtime(artefact), left[[0]]
        line(
            benchmark="runtime",
            error=np.mean(run(left) != y[ROWS:]),
            microseconds={
                "sparse": microseconds(lambda: run(row)),
                "decision_function": microseconds(lambda: model.decision_function(row)),
            },
        )
        if "--hashed" not in sys.argv:
            every = SlimSVC(
                BUDGET, trainer=None, random_state=0, reducer=Slim(schedule=Schedule(entries_change=0)), **SETTINGS
            ).fit(X[:ROWS], y[:ROWS])
            whole = replace(artefact_of(every), points=artefact_of(every).table)
            slimsvm.save(every, folder / "every.slim")
            line(benchmark="bytes, all entries", **sizes(whole, folder), slim=(folder / "every.slim").stat().st_size)
            line(benchmark="all entries", error=1 - every.score(left, y[ROWS:]))


if __name__ == "__main__":
    main()
