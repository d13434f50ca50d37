"""Seconds on 1, 2, 4, 8 and 16 cores, beside the speed-up of NumPy's matrix product on the same cores.

python -m benchmarks.cores                                 as many cores as the machine has
python -m benchmarks.cores --threads 1 2 --sets a8a        these numbers of cores and sets
python -m benchmarks.cores --works fit predict             these works
python -m benchmarks.cores --lie 16                        so many threads on the cores there are, as where a container lies
python -m benchmarks.cores --picture rows.jsonl cores.svg  a picture of the lines of an earlier run

Each number of cores has a process of its own, which may use these cores only. Each line has the best of a few runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np

from benchmarks.problems import Problem, problem, shortened
from benchmarks.timing import line
from slimsvm import SlimSVC

SETS = ("a8a", "ijcnn1", "mnist8", "letter")
THREADS = (1, 2, 4, 8, 16)
#: rows of mnist8 that train: all 60,000 take most of the time of a run
MOST_ROWS = {"mnist8": 20_000}
#: seconds after which a work is not repeated, and the most repeats
ENOUGH, REPEATS = 2.0, 7


def best(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least seconds of a few runs, and what the last one returned."""
    seconds: list[float] = []
    spent = 0.0
    while len(seconds) < REPEATS and (not seconds or spent < ENOUGH):
        start = perf_counter()
        result = work()
        seconds.append(perf_counter() - start)
        spent += seconds[-1]
    return min(seconds), result


def product_gflops(size: int = 4096) -> float:
    """Return the speed of NumPy's matrix product in float32."""
    A = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    return 2 * size**3 / best(partial(np.matmul, A, A))[0] / 1e9


def fitted(p: Problem, **settings: Any) -> SlimSVC:
    """Return a model fitted to a problem."""
    return SlimSVC(gamma=p.gamma, C=p.C, random_state=0, **settings).fit(p.X, p.y)


#: what is measured: from a problem to what a run does
WORKS: dict[str, Callable[[Problem], Callable[[], Any]]] = {
    "fit": lambda p: partial(fitted, p),
    "predict": lambda p: partial(fitted(p).decision_function, p.X_test),
    "SlimSVC(64)": lambda p: partial(fitted, p, budget=64),
    "SlimSVC(64, trainer=None)": lambda p: partial(fitted, p, budget=64, trainer=None),
}


def measure(threads: int, sets: list[str], works: list[str]) -> None:
    """Print the lines of this process."""
    machine = {"cpu": platform.processor() or cpu(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    line(benchmark="cores", work="matrix product", threads=threads, gflops=product_gflops(), **machine)
    for name in sets:
        p = problem(name)
        p = shortened(p, MOST_ROWS.get(name, p.X.shape[0]))
        for work in works:
            seconds, model = best(WORKS[work](p))
            evaluations = {"evaluations": int(model.n_evaluations_)} if hasattr(model, "n_evaluations_") else {}
            line(benchmark="cores", data=name, work=work, threads=threads, seconds=seconds, **evaluations)


def cpu() -> str:
    """Return the name of the processor, as Linux tells it."""
    info = Path("/proc/cpuinfo")
    names = [row.partition(":")[2].strip() for row in info.read_text().splitlines() if row.startswith("model name")]
    return names[0] if names else platform.machine()


def picture(lines: Path, drawing: Path) -> None:
    """Draw the speed-up over the fewest cores of each work beside that of the matrix product."""
    from matplotlib.figure import Figure

    rows = [json.loads(text) for text in lines.read_text().splitlines() if text.startswith("{")]
    speeds: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        speed = row["gflops"] if "gflops" in row else 1 / row["seconds"]
        speeds.setdefault((row["work"], row.get("data", "")), {})[row["threads"]] = speed
    names = list(dict.fromkeys(work for work, data in speeds if data))
    figure = Figure(figsize=(4 * len(names), 4), layout="constrained")
    for axes, name in zip(np.ravel(figure.subplots(1, len(names))), names, strict=True):
        for (work, data), values in speeds.items():
            if work == name or not data:
                counts = sorted(values)
                shares = [values[count] / values[counts[0]] for count in counts]
                axes.plot(counts, shares, "o-" if data else "k--", label=data or work)
        axes.set(title=name, xlabel="cores", ylabel="speed-up", xscale="log", yscale="log")
        axes.legend()
    figure.savefig(drawing)


def main() -> None:
    """Run one process for each number of cores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = sorted(os.sched_getaffinity(0))
    parser.add_argument("--threads", nargs="+", type=int, default=[count for count in THREADS if count <= len(here)])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--lie", type=int, metavar="COUNT")
    parser.add_argument("--picture", nargs=2, type=Path, metavar=("LINES", "DRAWING"))
    parser.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.picture:
        picture(*given.picture)
    elif given.inside or given.lie:
        if given.lie:
            joblib.cpu_count = lambda *_, **__: given.lie
        measure(given.inside or given.lie, given.sets, given.works)
    else:
        for count in given.threads:
            command = [sys.executable, "-m", "benchmarks.cores", "--inside", str(count)]
            limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(count))
            pinned = ["taskset", "-c", ",".join(map(str, here[:count]))]
            chosen = ["--sets", *given.sets, "--works", *given.works]
            subprocess.run([*pinned, *command, *chosen], check=True, env=os.environ | limits)


if __name__ == "__main__":
    main()
