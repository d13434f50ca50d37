"""How long the code of the preparation of tables is in C: `python -m tools.c_code_tables` writes its parts anew.

As `tools.c_code` does for models: each preparation is compiled with a model and without, and the differences are made sums
of parts. Run it when `ship/preparation_c.py` or the steps of tables change.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)

from slimsvm.c_bytes import laid_out
from slimsvm.ship.artefact import Artefact
from slimsvm.ship.c import CExporter
from slimsvm.tables.code import c_parts, c_real
from slimsvm.tables.folding import flattened, preparation_of
from slimsvm.tables.recognition import days
from tools.c_code import TABLE, Sample, artefact_for, compiled_bytes

#: steps of numbers, of words and of dates
NUMBERS: list[list[Any]] = [
    [],
    [SimpleImputer()],
    [SimpleImputer(add_indicator=True), StandardScaler()],
    [MissingIndicator(features="all")],
    [MinMaxScaler(clip=True)],
    [QuantileTransformer(n_quantiles=10)],
    [QuantileTransformer(n_quantiles=10, output_distribution="normal")],
    [PowerTransformer()],
    [PowerTransformer("box-cox")],
    *([Normalizer(norm)] for norm in ("l1", "l2", "max")),
    [SimpleImputer(), PCA(2)],
    [PolynomialFeatures(2)],
    *([FunctionTransformer(function)] for function in (np.log1p, np.log, np.sqrt, np.square, np.abs, np.expm1)),
    [OneHotEncoder(sparse_output=False, handle_unknown="ignore")],
]
RARE = {"handle_unknown": "infrequent_if_exist", "min_frequency": 4}
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
WORDS: list[list[Any]] = [
    [],
    [OneHotEncoder(sparse_output=False, **RARE)],
    [OrdinalEncoder(**UNKNOWN)],
    [TargetEncoder()],
    [SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False, handle_unknown="ignore")],
]
DATES: list[list[Any]] = [[], [FunctionTransformer(days), StandardScaler()]]
#: bytes of a gap between tables, and of what other functions of a model need beside the preparation
GAP = 96
#: columns of numbers, words and dates
COUNTS = ((2, 1, 1), (7, 4, 2))


def frame(numbers: int, words: int, dates: int, n: int = 60) -> pd.DataFrame:
    """Return a table of random cells, with rare words."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"number {i}": np.round(rng.gamma(2.0, size=n), 1) + 0.1 for i in range(numbers)}
    letters = [letter * 5 for letter in "abcdefg"]
    columns |= {f"word {i}": rng.choice(letters, size=n, p=[0.3, 0.3, 0.2, 0.1, 0.06, 0.02, 0.02]) for i in range(words)}
    day = np.timedelta64(1, "D")
    columns |= {f"date {i}": np.datetime64("2020-01-01") + rng.integers(900, size=n) * day for i in range(dates)}
    return pd.DataFrame(columns)


def preparations() -> Iterator[Any]:
    """Yield fitted transformers of tables with one kind of steps, and a few with all kinds of columns."""
    some: list[Any] = [(steps, words, []) for steps, words in product(NUMBERS, WORDS[:2]) if steps or words]
    some += [([], words, []) for words in WORDS[2:]] + [(NUMBERS[2], words, DATES[1]) for words in WORDS[:2]]
    some += [([SimpleImputer(), StandardScaler()], words, []) for words in WORDS[2:]]
    for (numbers, words, dates), (counts, mixed) in product(some, zip(COUNTS, (False, True), strict=True)):
        table = frame(*counts)
        table = table[sorted(table.columns, key=lambda name: name.split()[::-1])] if mixed else table
        parts = [(kind, make_pipeline(*steps), list(table.filter(like=kind).columns))
                 for kind, steps in (("number", numbers), ("word", words), ("date", dates)) if steps]  # fmt: skip
        y = np.asarray(table["number 0"])
        yield ColumnTransformer(parts, sparse_threshold=0.0).fit(table, y), list(table.columns)


def artefact_of(transformer: Any, names: list[str], decision: str) -> Artefact:
    """Return a model behind the transformers, with random numbers."""
    preparation = preparation_of(flattened([transformer]), len(names), tuple(names))
    made = artefact_for(Sample("float32", decision=decision, features=preparation.outputs.size))
    return replace(made, preparation=preparation, names=preparation.names)


def parts_and_code(artefact: Artefact) -> tuple[str, list[str], int]:
    """Return the type of the tape, the parts of a preparation, and the bytes that it adds to the code of a model."""
    whole, plain = (CExporter()._source(a, "model") for a in (artefact, replace(artefact, preparation=None, names=())))
    code = [compiled_bytes(each.text().encode()) - laid_out(each.cost.tables) for each in (whole, plain)]
    parts = c_parts(whole.prepared.preparation, len(whole.raw_functions()))  # type: ignore[union-attr]
    return c_real(whole.prepared.preparation), parts, code[0] - code[1]  # type: ignore[union-attr]


def measured() -> dict[str, dict[str, int]]:
    """Return the bytes of each part, by the type of the tape."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = enumerate(preparations())
        found = [
            parts_and_code(artefact_of(transformer, names, ("value", "largest")[number % 2]))
            for number, (transformer, names) in fitted
        ]
    reals = sorted({real for real, _, _ in found})
    return {f"table in {real}": least([(parts, code) for own, parts, code in found if own == real]) for real in reals}


def least(found: list[tuple[list[str], int]]) -> dict[str, int]:
    """Return whole bytes of each part whose sums are at least the code of each preparation, and little more in all."""
    names = sorted({part for parts, _ in found for part in parts})
    counts, code = np.array([[parts.count(name) for name in names] for parts, _ in found]), np.array([c for _, c in found])
    solved = linprog(counts.sum(axis=0), -counts, -code, bounds=(0, None), method="highs")
    # tables and words of a whole model are laid out together, which may take one more gap
    return {name: int(np.ceil(value - 1e-6)) + GAP * (name == "all") for name, value in zip(names, solved.x, strict=True)}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(json.loads(TABLE.read_text()) | measured(), indent=0) + "\n")
