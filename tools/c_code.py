"""How long the code of exported C models is: `python -m tools.c_code` writes src/slimsvm/c_code.json anew (160 s).

Compiles models of every kind by `gcc -Os` and takes the bytes of their tables off. `c_bytes.code_facts` has what the length
depends on. Usual combinations of facts are compiled as they are. For all others, bytes of facts and of pairs of facts are
chosen so that every compiled model is at most as long as the sum of its own, and the sums are as little more as can be.
Leaving out fifths of the models shows by how much others may exceed their sums, which is added. Run it when
`ship/model.c` changes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, lil_array

from slimsvm.c_bytes import WRITTEN_OUT, combined, laid_out, pairs
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
DECISIONS: dict[str, Any] = {
    "value": lambda _: (Regression(), 1),
    "side": lambda _: (Novelty(), 1),
    "sign": lambda _: (OneVsRest(2), 1),
    "largest": lambda classes: (OneVsRest(classes), classes),
    "votes": lambda classes: (OneVsOne(classes), classes * (classes - 1) // 2),
    "scored votes": lambda classes: (OneVsOne(classes, break_ties=True), classes * (classes - 1) // 2),
    "dag": lambda classes: (OneVsOneDag(classes), classes * (classes - 1) // 2),
}
CLASSIFIERS = ("sign", "largest", "votes", "dag")
PREPARATIONS = ("", "scaled", "clipped", "far")
MAPS = ("sigmoid", "isotonic", "temperature")
#: models drawn of each form: dense, projected, sparse
DRAWN = {"dense": 220, "projected": 130, "sparse": 130}
#: bytes by which a usual combination may be longer at sizes that were not compiled; codes are read in more ways
NEAR, NEAR_CODED = 32, 80
#: of other models that are left out, the share that the sum of their facts and pairs must cover
COVERED = 0.98
#: models that a pair of facts must be in, about, to have bytes of its own; fewer: pairs that tell noise
NOISE = 10
#: tables of more numbers than this are compiled without them: their values do not matter for the code
LONG = 64
#: the group of four of the ranks that slim tries, and ranks below
RANKS = (2, 4, 6, 8, 12)


class Sample(NamedTuple):
    """A model to compile."""

    precision: str
    kernel: str = "rbf"
    decision: str = "sign"
    features: int = 16
    preparation: str = ""
    widths: bool = False
    map: str = ""
    sparse: float = 0.0  # the share of features that are not zero; 0: dense points
    size: float = 1.0  # of the numbers of points; large ones need sums of doubles
    rank: int = 0  # of a projection; 0: none
    points: int = 40
    classes: int = 4


def kernels(precision: str) -> list[str]:
    """Return the kernels with tables of this precision."""
    return [name for name, spec in SPECS.items() if precision == "float32" or spec.total.integer]


def usual() -> Iterator[Sample]:
    """Yield the models that are compiled as they are: the rbf and the linear kernel, without votes or probabilities."""
    kinds = [("rbf", False), ("rbf", True), ("linear", False)]
    outputs = [("value", 4), ("sign", 4), ("largest", 4), ("largest", 8)]
    for precision, (kernel, widths), (decision, classes) in product(("float32", "int8", "int4"), kinds, outputs):
        sample = Sample(precision, kernel, decision, widths=widths, points=70, classes=classes)
        rows = [("", 16), ("", 160), ("scaled", 28), ("scaled", 56), ("scaled", 160)]
        rows += [("far", 56), ("far", 160)] if precision == "int8" else []
        for (preparation, features), left in product(rows, range(4)):
            yield sample._replace(preparation=preparation, features=features + left)
        for preparation, rank in product(("", "scaled"), RANKS if kernel == "rbf" and precision != "float32" else ()):
            yield sample._replace(preparation=preparation, features=60, rank=rank)
        for share, features in product((0.005, 0.03, 0.2), (200, 3000) if precision != "int4" else ()):
            yield sample._replace(sparse=share, features=features)


def drawn(rng: np.random.Generator) -> Iterator[Sample]:
    """Yield random models of each form."""
    for precision in PRECISIONS:
        for _ in range(DRAWN["dense"]):
            yield _drawn(rng, precision, kernels(precision))
        for _ in range(DRAWN["projected"]):
            sample = _drawn(rng, precision, [name for name in kernels(precision) if takes_factors(name)])
            features = int(rng.choice([12, 60, 200]))
            preparation = sample.preparation if sample.preparation != "far" else ""
            yield sample._replace(features=features, rank=min(sample.features, features), preparation=preparation)
        for _ in range(DRAWN["sparse"] if precision != "int4" else 0):
            sample = _drawn(rng, precision, kernels(precision))
            size = 30.0 if rng.random() < 0.4 and not SPECS[sample.kernel].total.inner else 1.0
            share, preparation = float(rng.choice([0.005, 0.03, 0.2])), str(rng.choice(["", "", "scaled"]))
            features = int(rng.choice([100, 300, 3000]))
            yield sample._replace(features=features, sparse=share, size=size, preparation=preparation)


def _drawn(rng: np.random.Generator, precision: str, kinds: list[str]) -> Sample:
    """Return a random model of dense points; usual kernels and decisions are drawn more often."""
    kernel = str(rng.choice(["rbf", "rbf", "rbf", "linear", *kinds]))
    decision = str(rng.choice(["value", "sign", "largest", "votes", *DECISIONS]))
    mapped = decision in CLASSIFIERS and rng.random() < 0.5
    features = int(rng.integers(1, WRITTEN_OUT)) if rng.random() < 0.4 else int(rng.integers(WRITTEN_OUT, 240))
    return Sample(
        precision,
        kernel if kernel in kinds else "rbf",
        decision,
        features,
        str(rng.choice(PREPARATIONS)),
        widths=kernel in ("rbf", "laplacian") and rng.random() < 0.4,
        map=str(rng.choice(MAPS)) if mapped else "",
        points=int(2 * 1.5 ** rng.uniform(0, 14)),
        classes=int(rng.choice([3, 4, 5, 10, 26])),
    )


def artefact_for(sample: Sample, seed: int = 0) -> Artefact:
    """Return a model with random numbers."""
    rng, d = np.random.default_rng(seed), sample.rank or sample.features
    goal, outputs = DECISIONS[sample.decision](sample.classes)
    n = sample.points
    points: Any = sample.size * np.abs(rng.normal(size=(n, d)))
    if sample.sparse:
        kept: Any = lil_array(points * (rng.random((n, d)) < sample.sparse))
        csr = csr_array(kept)
        points = SparsePoints.of(csr.indptr, csr.indices, csr.data, d)
    parameters = {parameter.name: 2 if parameter.whole else 0.37 for parameter in SPECS[sample.kernel].parameters}
    classes = np.arange(goal.n_classes) if goal.n_classes else NO_CLASSES
    return Artefact(
        sample.kernel,
        parameters,
        points,
        rng.normal(size=(n, outputs)),
        rng.normal(size=outputs),
        goal,
        classes,
        _scaling(sample, rng),
        _map(sample.map, goal.n_classes),
        rng.uniform(0.5, 2.0, n) if sample.widths else None,
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


def without_numbers(text: str) -> str:
    """Return a source whose long tables have one number each, different ones: compilers join tables that are equal."""
    number = count(1)

    def shortened(table: re.Match[str]) -> str:
        return f"{table[1]}{{{next(number)}}}" if table[2].count(",") > LONG else table[0]

    return re.sub(r"(\]\s*=\s*)\{([^{}]*)\}", shortened, text)


def facts_and_code(sample: Sample) -> tuple[list[str], int]:
    """Return the facts about a model's code, and its bytes."""
    source = source_of(sample)
    return source.facts, compiled_bytes(without_numbers(source.text()).encode()) - laid_out(source.cost.tables)


def measured() -> dict[str, dict[str, int]]:
    """Return the bytes of facts, of pairs of them and of usual combinations, for each form of tables."""
    rng, own = np.random.default_rng(0), list(usual())
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(facts_and_code, [*own, *drawn(rng)]))
    forms: dict[str, list[tuple[list[str], int]]] = defaultdict(list)
    whole: dict[str, dict[str, int]] = defaultdict(dict)
    for place, ((form, *facts), code) in enumerate(found):
        forms[form].append((facts, code))
        if place < len(own):
            name = combined(facts)
            whole[form][name] = max(whole[form].get(name, 0), code + (NEAR_CODED if form.startswith("coded") else NEAR))
    return {form: fitted(models, rng) | whole[form] for form, models in sorted(forms.items())}


def fitted(models: list[tuple[list[str], int]], rng: np.random.Generator) -> dict[str, int]:
    """Return the bytes of facts and of pairs, with those by which models that were left out exceed their sum."""
    short = [0]
    for _ in range(15):
        left_out = rng.random(len(models)) < 0.2
        known = _least_sums([model for model, out in zip(models, left_out, strict=True) if not out])
        for (facts, code), out in zip(models, left_out, strict=True):
            if out and all(fact in known for fact in facts):
                short.append(code - sum(known.get(name, 0) for name in [*facts, *pairs(facts)]))
    known = _least_sums(models)
    return known | {"code": known["code"] + int(np.quantile(short, COVERED, method="higher"))}


def _least_sums(models: Sequence[tuple[list[str], int]]) -> dict[str, int]:
    """Return whole numbers of bytes whose sums are at least the code of each model, and little more in all."""
    singles = sorted({fact for facts, _ in models for fact in facts})
    names = [*singles, *sorted({pair for facts, _ in models for pair in pairs(facts)})]
    place = {name: number for number, name in enumerate(names)}
    rows: Any = lil_array((len(models), len(names)))
    for number, (facts, _) in enumerate(models):
        for name in [*facts, *pairs(facts)]:
            rows[number, place[name]] = 1
    matrix, code = csr_array(rows), np.array([code for _, code in models], dtype=float)
    noise = np.repeat([0.0, NOISE], [len(singles), len(names) - len(singles)])
    cost = np.concatenate([matrix.sum(axis=0) + noise, -matrix.sum(axis=0) + noise])
    solved = linprog(cost, -hstack([matrix, -matrix]), -code, bounds=(0, None), method="highs")
    values = np.rint(solved.x[: len(names)] - solved.x[len(names) :]).astype(int)
    kept = {name: int(values[place[name]]) for name in names if name in singles or values[place[name]]}
    kept["code"] += max(int(np.ceil((code - matrix @ values).max())), 0)  # rounding
    return kept


if __name__ == "__main__":
    tables = {form: parts for form, parts in json.loads(TABLE.read_text()).items() if form.startswith("table in")}
    TABLE.write_text(json.dumps(measured() | tables, indent=0) + "\n")  # those of tables are of tools.c_code_tables
