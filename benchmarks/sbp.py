"""Measure what `sbp` saves against `smo`: seconds, kernel evaluations in units of n, and the error on test rows.

python -m benchmarks.sbp [--data a8a ijcnn1 mnist8 covtype] [--rows 50000] [--seed 0]
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

from benchmarks.problems import problem, shortened
from benchmarks.timing import line
from slimsvm import SlimSVC

DATA = ("a8a", "ijcnn1", "mnist8", "covtype")


def main() -> None:
    """Print a line for each data set and trainer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--rows", type=int, default=50_000, help="of covtype, the first ones (50,000)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws of sbp (0)")
    given = parser.parse_args()
    for name in given.data:
        p = problem(name)
        p = shortened(p, given.rows) if name == "covtype" else p
        for trainer in ("smo", "sbp"):
            begun = perf_counter()
            model = SlimSVC(C=p.C, gamma=p.gamma, trainer=trainer, random_state=given.seed).fit(p.X, p.y)
            seconds = perf_counter() - begun
            line(
                benchmark="sbp",
                data=name,
                trainer=trainer,
                seconds=round(seconds, 2),
                evaluations=round(model.n_kernel_evals_ / p.X.shape[0]),
                test_error=round(float(np.mean(model.predict(p.X_test) != p.y_test)), 5),
            )


if __name__ == "__main__":
    main()
