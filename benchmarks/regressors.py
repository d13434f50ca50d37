"""Two regressors that others trained, VMAF and BRISQUE, shrunk from their files alone and from rows.

python -m benchmarks.regressors [--models vmaf brisque] [--sizes 8 16]

SLIMSVM_MODELS names the folder with vmaf_v0.6.1.json (github.com/Netflix/vmaf, model/) and brisque.libsvm (BRISQUE's file
`allmodel`). Differences to the full model are in points of 100, on rows between random pairs of support vectors that no fit
has seen.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from benchmarks.timing import line
from slimsvm import compress
from slimsvm.files.models import read_libsvm
from slimsvm.kernels import dense
from slimsvm.ship.c import CExporter
from slimsvm.ship.source import artefact_of

#: rows that the models are compared on, and rows to fit to where rows are given
TEST_ROWS, ROWS = 4000, 4000


def linear_scaler(slopes: np.ndarray, intercepts: np.ndarray) -> MinMaxScaler:
    """Return the fitted scaler from x to slopes * x + intercepts."""
    return MinMaxScaler().fit([-intercepts / slopes, (1 - intercepts) / slopes])


def vmaf(folder: Path) -> Any:
    """Return VMAF from raw features to points: LIBSVM's text in JSON, with a scaling of features and scores beside it."""
    parts = json.loads((folder / "vmaf_v0.6.1.json").read_text())["model_dict"]
    slopes, intercepts = (np.array(parts[name], dtype=np.float64) for name in ("slopes", "intercepts"))
    svr = read_libsvm(io.StringIO(parts["model"]), n_features=slopes.size - 1)
    # the first slope and intercept are those of the score
    whole = TransformedTargetRegressor(make_pipeline(linear_scaler(slopes[1:], intercepts[1:]), svr))
    whole.regressor_, whole.transformer_ = whole.regressor, linear_scaler(slopes[:1], intercepts[:1])
    whole._training_dim = 1
    return whole


def brisque(folder: Path) -> Any:
    """Return BRISQUE from scaled features to points."""
    return read_libsvm(folder / "brisque.libsvm")


#: model -> (how it is read, the sizes asked for)
MODELS: dict[str, tuple[Callable[[Path], Any], tuple[int, ...]]] = {
    "vmaf": (vmaf, (2, 4, 8, 16)),
    "brisque": (brisque, (8, 16, 32, 64, 128)),
}


def machine(model: Any) -> Any:
    """Return the kernel machine within the scaling of its rows and scores."""
    return model.regressor_[-1] if isinstance(model, TransformedTargetRegressor) else model


def raw_support_vectors(model: Any) -> np.ndarray:
    """Return the support vectors as rows before scaling."""
    points = dense(machine(model).support_vectors_)
    return model.regressor_[0].inverse_transform(points) if isinstance(model, TransformedTargetRegressor) else points


def between(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return rows at random places between random pairs of points."""
    rng = np.random.default_rng(seed)
    first, second = points[rng.integers(len(points), size=(2, count))]
    return first + rng.random((count, 1)) * (second - first)


def measure(name: str, folder: Path, size: int, given: str) -> None:
    """Shrink a model, and print how far it is from the full one."""
    model = MODELS[name][0](folder)
    points = raw_support_vectors(model)
    rows = [between(points, ROWS, seed=1)] if given == "rows" else []
    wall, cpu = perf_counter(), process_time()
    small = compress(model, *rows, budget=size, random_state=0)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    test = between(points, TEST_ROWS, seed=2)
    off = small.predict(test) - model.predict(test)
    line(
        benchmark="regressors",
        model=name,
        given=given,
        full_size=len(points),
        size=machine(small).support_vectors_.shape[0],
        rms=float(np.sqrt(np.mean(off**2))),
        max=float(np.abs(off).max()),
        seconds=wall,
        cpu_seconds=cpu,
        c_bytes=CExporter("float32").cost(artefact_of(machine(small))).flash,
    )


def main() -> None:
    """Measure the models named, at the sizes named, from the file alone and from rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--sizes", nargs="+", type=int)
    arguments = parser.parse_args()
    folder = Path(os.environ.get("SLIMSVM_MODELS", "../shared/models"))
    if not folder.is_dir():
        sys.exit(f"{folder} is no folder. {__doc__}")
    for name in arguments.models:
        for size in arguments.sizes or MODELS[name][1]:
            for given in ("file", "rows"):
                measure(name, folder, size, given)


if __name__ == "__main__":
    main()
