"""Measure how seconds grow with rows: training, and the path to 64 support vectors with SlimSVC's default settings.

The exponent is the slope of log seconds against log rows. A second part sets SlimSVC(16, trainer=None), which trains no
full model, against SVC.fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import SVC

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


def main() -> None:
    """Run ijcnn1 and covtype; then a8a without a full model."""
    for name in ("ijcnn1", "covtype"):
        scaling(name)
    straight("a8a")


if __name__ == "__main__":
    main()
