"""covtype straight from labels with a learned metric, within seconds.

python -m benchmarks.metric --device cuda                        256, 1,024 and 4,096 points in 30, 45 and 119 s
python -m benchmarks.metric --points 1024                        in 300 s on the host, with the threads of OMP_NUM_THREADS

Features are as they are (class 2 against the rest), gamma is 1e-4 and C 1e4, as for the exact SVM of `benchmarks.gpu`. 2 %
of the training rows are validation rows. Mini-batches and L-BFGS go on until their share of the time is over. Rates were
chosen on 20,000 held-out training rows.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np

from benchmarks.problems import arrays
from benchmarks.timing import line
from slimsvm import SlimSVC
from slimsvm.reducers import Slim
from slimsvm.rows.threads import thread_count

#: seconds by the number of points on a GPU, and on a host
GPU_SECONDS, HOST_SECONDS = {256: 30, 1024: 45, 4096: 119}, 300


def covtype(points: int, seconds: float, device: str, rows: int | None) -> None:
    """Print the test error of a model, and those of the models on the way on the validation rows."""
    stored = arrays("covtype")
    X, y = stored["X_train"][:rows].astype(np.float32), stored["y_train"][:rows]
    model = SlimSVC(
        points,
        trainer=None,
        gamma=1e-4,
        C=1e4,
        device=device,
        validation_fraction=0.02,
        reducer=Slim(metric="both"),
        time_limit=seconds,
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
    parser.add_argument("--points", type=int, nargs="+", default=list(GPU_SECONDS))
    parser.add_argument("--seconds", type=float, help="the same for all sizes")
    parser.add_argument("--rows", type=int, help="the first rows alone")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    on_gpu = given.device.startswith("cuda")
    if on_gpu:  # the libraries of the device are loaded
        SlimSVC(device=given.device).fit(np.eye(8), np.arange(8) % 2)
    for points in given.points:
        usual = GPU_SECONDS.get(points, GPU_SECONDS[4096]) if on_gpu else HOST_SECONDS
        covtype(points, given.seconds or usual, given.device, given.rows)


if __name__ == "__main__":
    main()
