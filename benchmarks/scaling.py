"""Measure how seconds grow with rows: training, and the path to 64 support vectors with SlimSVC's default settings.

The exponent is the slope of log seconds against log rows. A second part sets SlimSVC(16, trainer=None), which trains no
full model, against SVC.fit. `python -m benchmarks scaling --workers` measures fits on Dask clusters of one, two and four
worker processes with one thread each: seconds, bytes between the processes in a round, and the memory of the workers;
`--rows 100000,200000` chooses the numbers of rows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.svm import SVC

from benchmarks.memory import made_rows
from benchmarks.problems import Problem, problem, shortened
from benchmarks.timing import interleaved, line
from slimsvm import SlimSVC, compress
from slimsvm.rows.threads import thread_count

ROWS, BUDGET = (5_000, 10_000, 20_000, 40_000), 64
#: runs of each contender, the best of which counts
REPEATS = 2


def seconds_of(p: Problem) -> dict[str, float]:
    """Return the seconds of training the full model and of the path from it."""
    full = SlimSVC(C=p.C, gamma=p.gamma)
    path = partial(compress, full, p.X, p.y, budget=BUDGET, random_state=0)
    contenders: dict[str, Callable[[], Any]] = {"train": partial(full.fit, p.X, p.y), "path": path}
    return interleaved(contenders, dict.fromkeys(contenders, REPEATS))[0]


def scaling(name: str) -> None:
    """Print lines for more and more rows of one problem, then the exponents."""
    p, common = problem(name), {"benchmark": "scaling", "data": name, "reducer": SlimSVC().reducer}
    found: dict[str, list[float]] = {"train": [], "path": []}
    for count in ROWS:
        for part, seconds in seconds_of(shortened(p, count)).items():
            line(**common, part=part, rows=count, path_to=BUDGET, seconds=seconds, threads=thread_count())
            found[part].append(seconds)
    for part, times in found.items():
        line(**common, part=part, exponent=float(np.polyfit(np.log(ROWS), np.log(times), 1)[0]))


def straight(name: str, budget: int = 16) -> None:
    """Compare a small model without a full one with SVC.fit."""
    p, common = problem(name), {"benchmark": "scaling", "data": name, "threads": thread_count()}
    settings: dict[str, Any] = {"C": p.C, "gamma": p.gamma}
    slim, svc = SlimSVC(budget, trainer=None, random_state=0, **settings), SVC(cache_size=2000, **settings)
    try:
        slim.fit(p.X[:200], p.y[:200])
    except ValueError as reason:
        line(**common, model="trainer=None", skipped=str(reason))
        return
    contenders = {"trainer=None": partial(slim.fit, p.X, p.y), "svc": partial(svc.fit, p.X, p.y)}
    seconds, models = interleaved(contenders, {"trainer=None": REPEATS, "svc": 1})
    for label, model in models.items():
        line(
            **common,
            model=label,
            support_vectors=int(model.support_vectors_.shape[0]),
            test_error=1 - model.score(p.X_test, p.y_test),
            seconds=seconds[label],
            share_of_svc_fit=seconds[label] / seconds["svc"],
        )


class Traffic:
    """Counts the bytes of arrays that go to the workers of a cluster and come back."""

    def __init__(self, workers: int = 1) -> None:
        self.sent = self.received = self.rounds = self.moved = 0
        self.workers = workers

    def watch(self, kind: Any) -> None:
        """Count what a class of partitions sends and receives; `smo` asks for single rows by `selected` alone."""
        from slimsvm.dask.parts import for_each_own

        sent, answers, selected = kind._sent, kind._answers, kind.selected

        def counted_sent(rows: Any, work: Any, calls: Any, **place: Any) -> Any:
            self.sent += bytes_in(calls) if work is not for_each_own else 0
            return sent(rows, work, calls, **place)

        def counted_answers(rows: Any, groups: Any, work: Any, calls: Any) -> Any:
            found = answers(rows, groups, work, calls)
            self.received += bytes_in(found) if work is not for_each_own else 0
            if calls[0][1].__name__ == "product":  # its last argument has the coefficients of the rows that moved
                self.rounds, self.moved = self.rounds + 1, self.moved + calls[0][-1].shape[0]
            return found

        def counted_rows(rows: Any, held: Any, places: Any, work: Any) -> Any:
            found = selected(rows, held, places, work)
            self.sent += self.workers * bytes_in([local for _, _, local in places])
            self.received += bytes_in(found)
            return found

        kind._sent, kind._answers, kind.selected = counted_sent, counted_answers, counted_rows


def memory_mb() -> int:
    """Return the peak memory of this process in MiB; `peak` counts that of the process which started it too."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024


def bytes_in(values: Any) -> int:
    """Return the bytes of all arrays in lists and tuples."""
    if isinstance(values, np.ndarray):
        return values.nbytes
    return sum(map(bytes_in, values)) if isinstance(values, list | tuple) else 0


#: rows of a fit on a cluster, its workers, its features, the working set, and pair steps at most
CLUSTER_ROWS, WORKERS, FEATURES, WORKING_SET, STEPS = (100_000, 200_000, 1_000_000), (1, 2, 4), 50, 2048, 6_000
#: runs of each fit on a cluster, the best of which counts
CLUSTER_REPEATS = 5
#: parts of the rows: as many for each number of workers, so that only the workers differ
PARTS = 8


def cluster_fit(client: Any, rows: int, traffic: Traffic) -> dict[str, Any]:
    """Return the best seconds of several fits that end after STEPS pair steps, and rounds, bytes and memory of one."""
    import dask.array as da

    from slimsvm.dask import DaskSlimSVC
    from slimsvm.trainers.smo import SMO

    X, y = made_rows(rows, FEATURES)
    X = da.from_array(X.astype(np.float32), chunks=(rows // PARTS, FEATURES)).persist()
    svc = DaskSlimSVC(gamma=0.02, C=1.0, max_iter=1, trainer=SMO(working_set=WORKING_SET))
    svc.fit(X, y)  # what is imported and set up once
    svc.set_params(max_iter=STEPS)
    seconds = np.inf
    for _ in range(CLUSTER_REPEATS):
        traffic.__init__(len(client.nthreads()))  # type: ignore[misc]
        began = perf_counter()
        svc.fit(X, y)
        seconds = min(seconds, perf_counter() - began)
    rounds = max(traffic.rounds, 1)
    return {
        "rounds": traffic.rounds,
        "seconds": seconds,
        "moved": traffic.moved / rounds,
        "sent_per_round": traffic.sent // rounds,
        "received_per_round": traffic.received // rounds,
        "bound_per_round": 8 * rows + WORKING_SET * (4 * FEATURES + 8) * (1 + PARTS),
        "vectors": int(svc.model_.size),
        "worker_mb": sorted(client.run(memory_mb).values()),
    }


def workers(numbers_of_rows: Sequence[int] = CLUSTER_ROWS) -> None:
    """Measure the same fits with one, two and four worker processes."""
    from distributed import Client, LocalCluster

    from slimsvm.dask.partitions import Partitions

    warnings.simplefilter("ignore")  # few steps are all that is wanted
    traffic, seconds = Traffic(), dict[tuple[int, int], float]()
    traffic.watch(Partitions)
    common = {"benchmark": "scaling", "part": "cluster"}
    setting = {"parts": PARTS, "features": FEATURES, "working_set": WORKING_SET, "cores": cpu_count()}
    for count in WORKERS:
        made = LocalCluster(n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
        with made as cluster, Client(cluster) as client:
            for rows in numbers_of_rows:
                found = cluster_fit(client, rows, traffic)
                seconds[rows, count] = found["seconds"]
                line(**common, rows=rows, workers=count, **setting, **found)
    for rows in numbers_of_rows:
        line(**common, rows=rows, against_one_worker={count: seconds[rows, 1] / seconds[rows, count] for count in WORKERS})


def main() -> None:
    """Run ijcnn1 and covtype; then a8a without a full model; with --workers, clusters."""
    if "--workers" in sys.argv:
        chosen = sys.argv[sys.argv.index("--rows") + 1] if "--rows" in sys.argv else ""
        workers([int(number) for number in chosen.split(",")] if chosen else CLUSTER_ROWS)
        return
    for name in ("ijcnn1", "covtype"):
        scaling(name)
    straight("a8a")


if __name__ == "__main__":
    main()
