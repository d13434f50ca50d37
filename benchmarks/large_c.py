"""Exact training as C grows: seconds, pair steps and how the run ended, and the same of SVC in a limited number of steps.

python -m benchmarks.large_c --data magic pageblocks --C 10 100 1000 10000
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

from sklearn.svm import SVC

from benchmarks.problems import problem
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.rows.threads import thread_count

#: pair steps of SVC; with a C of 1,000, many times as many would be needed
SVC_STEPS = 500_000


def compare(name: str, C: float) -> None:
    """Print the line of one problem."""
    p = problem(name)
    models = {"": SlimSVC(gamma=p.gamma, C=C), "svc_": SVC(gamma=p.gamma, C=C, max_iter=SVC_STEPS, cache_size=2000)}
    found: dict[str, object] = {}
    for prefix, model in models.items():
        start = perf_counter()
        model.fit(p.X, p.y)
        found |= {f"{prefix}seconds": perf_counter() - start, f"{prefix}converged": model.fit_status_ == 0}
        found[f"{prefix}steps"] = int(model.n_iter_ if prefix == "" else model.n_iter_.sum())
    line(benchmark="large C", data=name, C=C, threads=thread_count(), **found, vectors=models[""].model_.size)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["magic", "pageblocks", "ijcnn1"])
    parser.add_argument("--C", nargs="+", type=float, default=[10.0, 100.0, 1000.0, 10000.0])
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for data in chosen.data:
        for C in chosen.C:
            compare(data, C)
