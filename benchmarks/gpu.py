"""A GPU against the host: exact training with the error along the way, and ratios of fit and predict.

python -m benchmarks.gpu                      all parts, on device="cuda"
python -m benchmarks.gpu --parts covtype      one of them
python -m benchmarks.gpu --device cpu         the same on the host

The host's threads are those of OMP_NUM_THREADS. covtype is class 2 against the rest with raw features, gamma 1e-4, C 1e4.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from benchmarks.problems import arrays, problem
from benchmarks.timing import interleaved, line
from slimsvm import SlimSVC
from slimsvm.rows.homes import open_rows
from slimsvm.rows.threads import thread_count
from slimsvm.run import Run
from slimsvm.solvers.smo import SmoState
from slimsvm.trainers import SMO
from slimsvm.trainers.frames.per_output import Binary, Solution

#: rows and features of the problems on which cuML's documentation compares its SVC with scikit-learn's
SHAPES = ((2_000, 64), (4_000, 64), (8_000, 64), (16_000, 64), (32_000, 64))


@dataclass
class Watch:
    """Test errors of a run on the way, on a clock that stands still while they are computed."""

    device: str
    X_test: np.ndarray
    y_test: np.ndarray
    every: float
    start: float = field(default_factory=perf_counter)
    last: float = 0.0

    def seconds(self) -> float:
        """Return the seconds since the start, without those of this watch."""
        return perf_counter() - self.start

    def look(self, run: SmoState, _share: float) -> None:
        """Print the state of a run, now and then."""
        now = self.seconds()
        if not self.last:
            line(benchmark="first step", seconds=now)
        elif now - self.last < self.every:
            return
        support = np.flatnonzero(run.signed)
        error = self.error(run, support) if support.size else 0.5
        line(benchmark="on the way", seconds=now, test_error=error, gap=run.gap, steps=run.steps, vectors=support.size)
        self.start += self.seconds() - now
        self.last = now

    def error(self, run: SmoState, support: np.ndarray) -> float:
        """Return the share of test rows that the model so far gets wrong."""
        rows = open_rows(run.rows.kernel, self.X_test, device=self.device, cache_mb=0.0, error=1e-8)
        outputs = rows.product(run.rows.take(support), run.signed[support, None]) + run.bias()
        return float(np.mean((outputs[:, 0] > 0) != (self.y_test > 0)))


@dataclass(frozen=True)
class WatchedSMO(SMO):
    """SMO with a look at the run after each round."""

    watch: Watch | None = None

    def solve(self, problem: Binary) -> Solution:
        """Solve one output under the watch."""
        run = SmoState(problem.rows, problem.y, self.C * problem.weights, self, run=problem.run)
        watch = self.watch
        if watch is not None:
            run.run = Run(lambda _, done: watch.look(run, done))
        run.solve(np.inf)
        return Solution(run.signed, run.bias(), run.steps, run.gap, run.status)


def covtype(device: str, rows: int | None = None) -> None:
    """Exact training on all rows of covtype to tol 0.1."""
    stored = arrays("covtype")
    X, y = stored["X_train"][:rows].astype(np.float32), stored["y_train"][:rows]
    X_test, y_test = stored["X_test"].astype(np.float32), stored["y_test"]
    SlimSVC(gamma=1e-4, C=1e4, tol=0.1, device=device).fit(X[:4000], y[:4000])  # the libraries of the device are loaded
    watch = Watch(device, X_test, y_test, every=2.0 if device != "cpu" else 20.0)
    model = SlimSVC(gamma=1e-4, C=1e4, tol=0.1, device=device, trainer=WatchedSMO(watch=watch)).fit(X, y)
    seconds = watch.seconds()
    start = perf_counter()
    error = float(np.mean(model.predict(X_test) != y_test))
    line(
        benchmark="covtype",
        device=device,
        threads=thread_count(),
        rows=X.shape[0],
        seconds=seconds,
        test_error=error,
        vectors=model.model_.size,
        status=model.status_.name,
        predict_seconds=perf_counter() - start,
    )


def host(device: str) -> None:
    """Training and batch prediction of mnist 8 against the rest and of ijcnn1, on the device and on the host."""
    for name in ("ijcnn1", "mnist8"):
        p = problem(name)
        models = {where: SlimSVC(gamma=p.gamma, C=p.C, device=where) for where in (device, "cpu")}
        repeats = {device: 5, "cpu": 2}
        fit, fitted = interleaved({where: partial(model.fit, p.X, p.y) for where, model in models.items()}, repeats)
        predict, labels = interleaved({where: partial(m.predict, p.X_test) for where, m in fitted.items()}, repeats)
        extra: dict[str, Any] = {}
        if device.startswith("cuda"):
            extra = resident(fitted[device], p.X_test, device, predict["cpu"])
        line(
            benchmark="against the host",
            data=p.name,
            threads=thread_count(),
            fit_ratio=fit["cpu"] / fit[device],
            fit_seconds=fit[device],
            predict_ratio=predict["cpu"] / predict[device],
            predict_seconds=predict[device],
            **extra,
            vectors=fitted[device].model_.size,
            error=float(np.mean(labels[device] != p.y_test)),
            same_labels=float(np.mean(labels[device] == labels["cpu"])),
        )


def resident(model: Any, X: np.ndarray, device: str, host_seconds: float) -> dict[str, float]:
    """Return seconds and ratio of predictions for rows that are on the device already, as a torch tensor."""
    import torch

    there = torch.as_tensor(X, device=device)
    seconds, _ = interleaved({"there": partial(model.predict, there)}, {"there": 5})
    return {"resident_ratio": host_seconds / seconds["there"], "resident_seconds": seconds["there"]}


def shapes(device: str) -> None:
    """Fit and predict ratios to scikit-learn's SVC on made data of cuML's shapes, half of the rows for prediction."""
    for n, d in SHAPES:
        X, y = make_classification(2 * n, d, n_informative=d // 2, n_redundant=0, random_state=0)
        X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
        models = {"slimsvm": SlimSVC(device=device), "svc": SVC(cache_size=2000)}
        repeats = {"slimsvm": 5, "svc": 1}
        fit, fitted = interleaved({key: partial(model.fit, X, y) for key, model in models.items()}, repeats)
        predict, labels = interleaved({key: partial(m.predict, X_test) for key, m in fitted.items()}, repeats)
        line(
            benchmark="cuML's shapes",
            device=device,
            rows=n,
            features=d,
            fit_ratio=fit["svc"] / fit["slimsvm"],
            fit_seconds=fit["slimsvm"],
            predict_ratio=predict["svc"] / predict["slimsvm"],
            predict_seconds=predict["slimsvm"],
            error=float(np.mean(labels["slimsvm"] != y_test)),
            error_svc=float(np.mean(labels["svc"] != y_test)),
        )


PARTS: dict[str, Callable[[str], None]] = {"covtype": covtype, "host": host, "shapes": shapes}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--device", default="cuda")
    chosen = parser.parse_args()
    for part in chosen.parts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PARTS[part](chosen.device)
