"""covtype straight from labels with a learned metric, within seconds.

python -m benchmarks.metric --device cuda                        256, 1,024 and 4,096 points in 30, 50 and 120 s
python -m benchmarks.metric --points 1024                        in 300 s on the host, with the threads of OMP_NUM_THREADS

Features are as they are (class 2 against the rest), gamma is 1e-4 and C 1e4, as for the exact SVM of `benchmarks.gpu`. 2 %
of the training rows are validation rows. Mini-batches and L-BFGS go on until their share of the time is over. Rates were
chosen on 20,000 held-out training rows.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from benchmarks.problems import arrays
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.reducers import Slim
from slimsvm.rows.threads import thread_count
from slimsvm.slim.metric_search import Learning

#: without an end of their own
ENDLESS = 10**6


@dataclass(frozen=True)
class Run:
    """The time for a size, and what it is used for."""

    seconds: float
    batch: int
    for_batches: float
    for_steps: float
    rate: float = 0.05


#: on a GPU, by the number of points
GPU_RUNS = {256: Run(30, 1 << 16, 0.75, 0.6), 1024: Run(50, 1 << 15, 0.5, 0.75), 4096: Run(120, 1 << 15, 0.85, 0.75, 0.03)}
#: on a host: small batches, whose noise asks for a lower rate, and most of the time for them
HOST_RUN = Run(300, 1 << 11, 0.8, 0.3, 0.015)


def covtype(points: int, run: Run, device: str, rows: int | None) -> None:
    """Print the test error of a model, and those of the models on the way on the validation rows."""
    stored = arrays("covtype")
    X, y = stored["X_train"][:rows].astype(np.float32), stored["y_train"][:rows]
    learning = Learning(
        passes=ENDLESS,
        steps=ENDLESS,
        batches=1,
        largest_batch=run.batch,
        rate=run.rate,
        time_for_batches=run.for_batches,
        time_for_steps=run.for_steps,
    )
    model = SlimSVC(
        points,
        trainer=None,
        gamma=1e-4,
        C=1e4,
        device=device,
        validation_fraction=0.02,
        reducer=Slim(metric="both", learning=learning),
        time_limit=run.seconds,
        random_state=0,
    )
    start = perf_counter()
    model.fit(X, y)
    took = perf_counter() - start
    line(
        benchmark="covtype with a learned metric",
        device=device,
        threads=thread_count(),
        rows=X.shape[0],
        points=model.model_.size,
        seconds=took,
        test_error=100 * float(np.mean(model.predict(stored["X_test"].astype(np.float32)) != stored["y_test"])),
        validation_errors={str(step.size): 100 * step.error for step in model.path_},
    )


def main() -> None:
    """Run the sizes asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--points", type=int, nargs="+", default=list(GPU_RUNS))
    parser.add_argument("--seconds", type=float, help="the same for all sizes")
    parser.add_argument("--batch", type=int, help="the rows of a mini-batch")
    parser.add_argument("--rate", type=float, help="the first rate of Adam")
    parser.add_argument("--for-batches", type=float, help="the share of the time for mini-batches")
    parser.add_argument("--rows", type=int, help="the first rows alone")
    given = parser.parse_args()
    asked = {
        name: vars(given)[name] for name in ("seconds", "batch", "rate", "for_batches") if vars(given)[name] is not None
    }
    warnings.simplefilter("ignore")
    on_gpu = given.device.startswith("cuda")
    if on_gpu:  # the libraries of the device are loaded
        SlimSVC(device=given.device).fit(np.eye(8), np.arange(8) % 2)
    for points in given.points:
        run = GPU_RUNS.get(points, GPU_RUNS[4096]) if on_gpu else HOST_RUN
        covtype(points, replace(run, **asked), given.device, given.rows)


if __name__ == "__main__":
    main()
