"""How long the code of exported C models is: `python -m tools.c_code` writes src/slimsvm/c_code.json anew.

Compiles models of every kind by `gcc -Os` and takes the bytes of their tables off. The length of code is about the sum of
its parts (the kernel, the decision, the loop over the features ...). Bytes of the parts are chosen so that every
measured model is at most as long as its parts together, and their sum is as little more as can be. Run it when
`ship/model.c` changes.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, lil_array

from slimsvm.c_bytes import WRITTEN_OUT, laid_out
from slimsvm.calibration import Isotonic, Sigmoid, Temperature
from slimsvm.goals import OneVsOne, OneVsOneDag, OneVsRest, Regression
from slimsvm.goals.values import Novelty
from slimsvm.kernels.spec import SPECS
from slimsvm.metric import takes_factors
from slimsvm.scaling import Scaling
from slimsvm.ship.artefact import NO_CLASSES, Artefact
from slimsvm.ship.c import PRECISIONS, CExporter
from slimsvm.ship.sparse import SparsePoints

TABLE = Path(__file__).parents[1] / "src" / "slimsvm" / "c_code.json"
#: points and features of most models
POINTS, FEATURES, RANK = 40, 16, 5
#: numbers of features whose loops differ
LOOPS = (*range(1, WRITTEN_OUT), 16, 17, 18, 19, 100, 101)
DECISIONS: dict[str, tuple[Any, int]] = {
    "value": (Regression(), 1),
    "side": (Novelty(), 1),
    "sign": (OneVsRest(2), 1),
    "largest": (OneVsRest(4), 4),
    "votes": (OneVsOne(4), 6),
    "scored votes": (OneVsOne(4, break_ties=True), 6),
    "dag": (OneVsOneDag(4), 6),
}
CLASSIFIERS = ("sign", "largest", "votes", "dag")
PREPARATIONS = ("", "scaled", "clipped", "far")
MAPS = ("", "sigmoid", "isotonic", "temperature")


class Sample(NamedTuple):
    """A model to compile."""

    precision: str
    kernel: str = "rbf"
    decision: str = "sign"
    features: int = FEATURES
    preparation: str = ""
    widths: bool = False
    map: str = ""
    sparse: float = 0.0  # the share of features that are not zero; 0: dense points
    size: float = 1.0  # of the numbers of points; large ones need sums of doubles
    rank: int = 0  # of a projection; 0: none


def samples() -> Iterator[Sample]:
    """Yield the models from which the table is made."""
    for precision in PRECISIONS:
        kernels = [name for name, spec in SPECS.items() if precision == "float32" or spec.total.integer]
        yield from dense_samples(precision, kernels)
        yield from projected_samples(precision, [name for name in kernels if takes_factors(name)])
        if precision != "int4":
            yield from sparse_samples(precision, kernels)


def dense_samples(precision: str, kernels: list[str]) -> Iterator[Sample]:
    """Yield models with all features."""
    for kernel, preparation, decision in product(kernels, PREPARATIONS, DECISIONS):
        yield Sample(precision, kernel, decision, preparation=preparation)
    for kernel, features, decision in product(kernels, LOOPS, ("value", "sign", "largest")):
        yield Sample(precision, kernel, decision, features)
    for kernel, decision, preparation in product(("rbf", "laplacian"), DECISIONS, PREPARATIONS):
        yield Sample(precision, kernel, decision, preparation=preparation, widths=True)
    for kernel, decision, name in product(kernels, CLASSIFIERS, MAPS):
        yield Sample(precision, kernel, decision, map=name)


def projected_samples(precision: str, kernels: list[str]) -> Iterator[Sample]:
    """Yield models of projected rows."""
    for kernel, decision, scaled in product(kernels, DECISIONS, ("", "scaled", "clipped")):
        yield Sample(precision, kernel, decision, FEATURES, scaled, rank=RANK)
    for rank, decision, wide in product(LOOPS, ("value", "sign", "largest"), (False, True)):
        yield Sample(precision, "rbf", decision, 200, widths=wide, rank=rank)
    for decision, name in product(CLASSIFIERS, MAPS):
        yield Sample(precision, "rbf", decision, map=name, rank=RANK)


def sparse_samples(precision: str, kernels: list[str]) -> Iterator[Sample]:
    """Yield models with sparse points."""
    shares = 0.005, 0.03, 0.2
    for kernel, decision, scaled, share, size in product(kernels, DECISIONS, ("", "scaled"), shares, (1.0, 30.0)):
        if size == 1 or not SPECS[kernel].total.inner:
            yield Sample(precision, kernel, decision, 300, scaled, sparse=share, size=size)
    for decision, name in product(CLASSIFIERS, MAPS):
        yield Sample(precision, "rbf", decision, 300, map=name, sparse=0.03)
    yield from (Sample(precision, kernel, features=300, widths=True, sparse=0.03) for kernel in ("rbf", "laplacian"))


def artefact_for(sample: Sample, seed: int = 0) -> Artefact:
    """Return a model with random numbers."""
    rng, d = np.random.default_rng(seed), sample.rank or sample.features
    goal, outputs = DECISIONS[sample.decision]
    points: Any = sample.size * np.abs(rng.normal(size=(POINTS, d)))
    if sample.sparse:
        kept: Any = lil_array(points * (rng.random((POINTS, d)) < sample.sparse))
        csr = csr_array(kept)
        points = SparsePoints.of(csr.indptr, csr.indices, csr.data, d)
    parameters = {parameter.name: 2 if parameter.whole else 0.37 for parameter in SPECS[sample.kernel].parameters}
    classes = np.arange(goal.n_classes) if goal.n_classes else NO_CLASSES
    return Artefact(
        sample.kernel,
        parameters,
        points,
        rng.normal(size=(POINTS, outputs)),
        rng.normal(size=outputs),
        goal,
        classes,
        _scaling(sample, rng),
        _map(sample.map, goal.n_classes),
        rng.uniform(0.5, 2.0, POINTS) if sample.widths else None,
        projection=rng.normal(size=(sample.features, sample.rank)) if sample.rank else None,
    )


def _scaling(sample: Sample, rng: np.random.Generator) -> Scaling | None:
    d, preparation = sample.features, sample.preparation
    if not preparation:
        return None
    centre = np.zeros(d) if sample.sparse else rng.normal(size=d) * (1e6 if preparation == "far" else 1.0)
    scaling = Scaling.affine(centre, rng.uniform(0.5, 2.0, d))
    if preparation != "clipped":
        return scaling
    return Scaling(scaling.centre, scaling.scale, -rng.uniform(2.0, 3.0, d), rng.uniform(2.0, 3.0, d))


def _map(name: str, classes: int) -> Any:
    scores = classes if classes > 2 else 1
    if name == "sigmoid":
        return Sigmoid(np.linspace(1.0, 2.0, scores), np.linspace(0.1, 0.2, scores))
    if name == "isotonic":
        knots = np.tile(np.linspace(-1.0, 1.0, 5), scores)
        return Isotonic(knots, np.tile(np.linspace(0.1, 0.9, 5), scores), 5 * np.arange(scores + 1))
    return Temperature(1.3) if name else None


def compiled_bytes(source: bytes, *options: str) -> int:
    """Return text and data of a source compiled by `gcc -Os`."""
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder) / "model.c", Path(folder) / "model.o"
        path.write_bytes(source)
        subprocess.run(["gcc", "-Os", "-w", *options, "-c", path, "-o", made], check=True)
        told = subprocess.run(["size", made], capture_output=True, text=True, check=True).stdout.splitlines()
    text, data = told[1].split()[:2]
    return int(text) + int(data)


def source_of(sample: Sample) -> Any:
    """Return the C source of a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # coarse tables of random numbers
        return CExporter(sample.precision)._source(artefact_for(sample), "model")


def code_of(source: Any) -> int:
    """Return the bytes of compiled code without tables."""
    return compiled_bytes(source.text().encode()) - laid_out(source.cost.tables)


def parts_and_code(sample: Sample) -> tuple[list[str], int]:
    """Return the parts of a model's code, and the bytes of all of them."""
    source = source_of(sample)
    return source.parts, code_of(source)


def measured() -> dict[str, int]:
    """Return the bytes of each part."""
    with ThreadPoolExecutor() as pool:
        return parts_of(list(pool.map(parts_and_code, samples())))


def parts_of(found: list[tuple[list[str], int]]) -> dict[str, int]:
    """Return the bytes of each part, given the parts and the bytes of each sample."""
    names = sorted({part for parts, _ in found for part in parts})
    place = {name: number for number, name in enumerate(names)}
    rows: Any = lil_array((len(found), len(names)))
    for number, (parts, _) in enumerate(found):
        for part in parts:
            rows[number, place[part]] += 1
    matrix, code = csr_array(rows), np.array([bytes_ for _, bytes_ in found], dtype=float)
    solved = linprog(matrix.sum(axis=0), -matrix, -code, bounds=(0, None), method="highs")
    values = np.ceil(solved.x - 1e-6)
    return {name: int(value) for name, value in zip(names, values, strict=True)}


if __name__ == "__main__":
    tables = {name: count for name, count in json.loads(TABLE.read_text()).items() if name.startswith("table in")}
    TABLE.write_text(json.dumps(measured() | tables, indent=1) + "\n")  # tools.c_code_tables makes those of tables
