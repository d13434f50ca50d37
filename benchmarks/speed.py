"""Measure when the stochastic batch perceptron is within 0.15 points of the test error of SVC, against the time of SVC.fit.

Runs of 50, 100, 200, ... rounds, each from the start, until one is good enough: its time is printed as a share of the time
of SVC.fit. A run that stops by itself, on an error of held-out training rows that no longer falls, is printed too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from benchmarks.problems import Problem, problem
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.rows.threads import thread_count
from slimsvm.trainers import SBP

MARGIN, TARGET = 0.0015, 1 / 8


def timed(p: Problem, model: Any) -> tuple[float, float]:
    """Return the seconds of fit, and the test error."""
    start = perf_counter()
    model.fit(p.X, p.y)
    seconds = perf_counter() - start
    return seconds, float(np.mean(model.predict(p.X_test) != p.y_test))


def runs(p: Problem, good: float) -> Iterator[tuple[str, float, float, SlimSVC]]:
    """Yield the run with early stopping, then longer and longer ones until one has a test error of at most `good`."""
    model = SlimSVC(trainer=SBP(early_stopping=True), C=p.C, gamma=p.gamma, random_state=0)
    yield "early stopping", *timed(p, model), model
    for rounds in (50 * 2**k for k in range(8)):
        model = SlimSVC(trainer="sbp", C=p.C, gamma=p.gamma, max_iter=rounds, random_state=0)
        seconds, error = timed(p, model)
        yield f"{rounds} rounds", seconds, error, model
        if error <= good:
            return


def compare(p: Problem) -> None:
    """Print the lines of one problem."""
    svc_seconds, svc_error = timed(p, SVC(C=p.C, gamma=p.gamma, cache_size=2000))
    common = {"benchmark": "speed", "data": p.name, "threads": thread_count()}
    line(**common, model="svc", seconds=svc_seconds, test_error=svc_error)
    for name, seconds, error, model in runs(p, svc_error + MARGIN):
        line(
            **common,
            model=f"sbp, {name}",
            seconds=seconds,
            share_of_svc_fit=seconds / svc_seconds,
            target_share=TARGET,
            test_error=error,
            good_enough=error <= svc_error + MARGIN,
            rounds=model.n_iter_,
            ending=model.status_.name,
            support_vectors=model.model_.size,
            kernel_evaluations=model.n_kernel_evals_,
        )


def main() -> None:
    """Run a8a and mnist (8 against the rest)."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in ("a8a", "mnist8"):
        compare(problem(name))


if __name__ == "__main__":
    main()
