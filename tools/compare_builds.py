"""The speed of one installed slimsvm relative to another: `python -m tools.compare_builds FOLDER OTHER_FOLDER`.

Each folder holds a package `slimsvm`, as `pip install --target FOLDER WHEEL` leaves it. Both run in turn, in processes of
their own with one thread. The figure is the median over rounds of the ratio of their CPU times, 1.02 where the first takes
2 % longer.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = """
import json, os, time
import tools.without_editable
import numpy as np
import slimsvm
assert os.path.realpath(slimsvm.__file__).startswith(os.path.realpath(os.getcwd())), slimsvm.__file__

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 20))
y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=3000) > 0).astype(int)

def seconds(action, times=1):
    best = float("inf")
    for _ in range(5):
        begin = time.process_time()
        for _ in range(times):
            action()
        best = min(best, time.process_time() - begin)
    return best

full = slimsvm.SlimSVC(C=10.0)
found = {"fit": seconds(lambda: full.fit(X, y))}
found["predict"] = seconds(lambda: full.predict(X), 3)
small = slimsvm.SlimSVC(20, random_state=0)
found["fit 20 points"] = seconds(lambda: small.fit(X[:1000], y[:1000]))
decide, row = slimsvm.runtime(small), X[0]
found["one row"] = seconds(lambda: decide(row), 5000)
print(json.dumps(found))
"""


def timings(folder: str) -> dict[str, float]:
    """Return the CPU seconds of each piece of work with the slimsvm in this folder."""
    paths = os.pathsep.join([os.path.abspath(folder), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WORK], env=environment, cwd=folder, capture_output=True, text=True, timeout=600, check=True
    )
    return json.loads(done.stdout)


def main(first: str, second: str, rounds: int = 9) -> None:
    """Print the ratios of CPU times, first to second."""
    ratios: dict[str, list[float]] = {}
    for number in range(rounds):
        order = (first, second) if number % 2 else (second, first)
        measured = {folder: timings(folder) for folder in order}
        for work, taken in measured[first].items():
            ratios.setdefault(work, []).append(taken / measured[second][work])
    for work, all_ratios in ratios.items():
        print(f"{work:>15} {statistics.median(all_ratios):.3f}  (from {min(all_ratios):.3f} to {max(all_ratios):.3f})")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
