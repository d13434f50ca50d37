"""Real tables from CSV to running C by two commands, and their errors beside boosted trees with native categories.

python -m benchmarks.tables [--data titanic penguins ...] [--budget 64] [--rows 5000]

One JSON line for each table: `c`, `javascript` and `runtime` are the test rows, of `test_rows`, on which each agrees with
`slimsvm predict` (values to 1e-4 of their spread); `warnings` counts those of gcc -Wall -Wextra -Wconversion -std=c99;
`bytes` is the compiled code with its tables, `said` what `slimsvm info` says; `error` is the share of wrong classes or
1 - R^2. The label is the last column; the first four fifths of the rows train.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from benchmarks.problems import folder
from benchmarks.timing import line
from slimsvm import load, runtime
from slimsvm.ship.c import CExporter
from slimsvm.ship.preparation_c import CTable
from slimsvm.ship.source import artefact_of
from slimsvm.studio.cli import commands
from slimsvm.tables.recognition import HOLES

REGRESSIONS = ("auto_imports", "diamonds", "ames")
TABLES = ("titanic", "penguins", "horse_colic", "adult", *REGRESSIONS)
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion")


def parts_of(name: str, rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training and test rows as text."""
    path = next((folder() / "tables").glob(f"{name}.csv*"), None)
    if path is None:
        sys.exit(f"there is no table {name} in {folder() / 'tables'}; set SLIMSVM_DATA to a folder with tables/{name}.csv")
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    train = len(frame) * 4 // 5
    return frame[:train][:rows], frame[train:]


def run(*words: object) -> None:
    """Run a command of slimsvm."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        failed = commands.run([str(word) for word in words])
    if failed:
        sys.exit(f"slimsvm {' '.join(map(str, words))} failed")


def compiled(model: Any, source: Path) -> tuple[Any, Any, Any, dict[str, int]]:
    """Return the shared library of a model, the type of its row, its columns, gcc's warnings and bytes."""
    target = source.with_suffix(".so")
    subprocess.run(["gcc", "-std=c99", "-Os", "-c", source, "-o", target.with_suffix(".o")], check=True)
    command = ["gcc", *STRICT, "-shared", "-fPIC", str(source), "-o", str(target), "-lm"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    artefact = artefact_of(model)
    made = CTable(artefact.preparation, source.stem, artefact.features)  # type: ignore[arg-type]
    sections = subprocess.run(["size", target.with_suffix(".o")], check=True, capture_output=True, text=True).stdout
    kinds = [ctypes.c_int if column.kind == "word" else ctypes.c_float for column in made.preparation.columns]
    row = type("Row", (ctypes.Structure,), {"_fields_": list(zip(made.fields, kinds, strict=True))})
    library = ctypes.CDLL(str(target))
    library.model_predict.restype = ctypes.c_int if artefact.classes.size else ctypes.c_float
    text, data = sections.splitlines()[1].split()[:2]
    columns = list(zip(made.fields, made.preparation.columns, strict=True))
    return library, row, columns, {"warnings": told.count("warning:"), "bytes": int(text) + int(data)}


def cells_of(columns: Any, test: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of text as programs have them: numbers, None for missing ones, and words."""
    kinds = {column.name: column.kind for column in columns}
    texts = test[list(kinds)].apply(lambda series: series.str.strip())
    numbers = {name: pd.to_numeric(texts[name], errors="coerce") for name, kind in kinds.items() if kind != "word"}
    cells = {name: numbers[name].tolist() if name in numbers else texts[name].tolist() for name in kinds}
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    holes = {name: HOLES if kind == "word" else () for name, kind in kinds.items()}
    return [{name: None if cell in holes[name] or cell != cell else cell for name, cell in row.items()} for row in rows]


def predicted_by_node(module: Path, rows: list[dict[str, Any]]) -> np.ndarray:
    """Return what an exported module predicts for rows by the names of their columns."""
    module.with_name("rows.json").write_text(json.dumps(rows))
    program = """import { readFileSync } from "node:fs";
        const { predict } = await import(process.argv[1]);
        console.log(JSON.stringify(JSON.parse(readFileSync(process.argv[2])).map(predict)));"""
    command: list[Any] = ["node", "--input-type=module", "-e", program, module.as_uri(), module.with_name("rows.json")]
    return np.array(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def predicted_by_c(library: Any, row_type: Any, columns: Any, test: pd.DataFrame) -> np.ndarray:
    """Return what the library predicts for rows of text."""
    found = []
    for record in test.to_dict("records"):
        row = row_type()
        for field, column in columns:
            text = str(record[column.name]).strip()
            if column.kind == "word":
                setattr(row, field, getattr(library, f"model_{field}_code")(ctypes.c_char_p(text.encode())))
            else:
                setattr(row, field, float(pd.to_numeric(text, errors="coerce")))
        found.append(library.model_predict(ctypes.byref(row)))
    return np.array(found)


def boosting_error(train: pd.DataFrame, test: pd.DataFrame, label: str, regression: bool) -> float:
    """Return the error of boosted trees with native categories."""
    both = pd.concat([train, test])
    for name in both.columns.drop(label):
        numbers = pd.to_numeric(both[name].replace({"": None, "NA": None}), errors="coerce")
        words = both[name].replace({"": None})
        both[name] = numbers if (numbers.isna() == words.isin([None, "NA"])).all() else words.astype("category")
    kind: Any = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    y = both[label].astype(float) if regression else both[label]
    X, n = both.drop(columns=label), len(train)
    model = kind(categorical_features="from_dtype", random_state=0).fit(X[:n], y[:n])
    return float(1 - model.score(X[n:], y[n:]))


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--budget", type=int, default=64)
    parser.add_argument("--rows", type=int, default=5000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.data:
        train, test = parts_of(name, given.rows)
        label, regression = str(train.columns[-1]), name in REGRESSIONS
        with TemporaryDirectory() as place:
            data, model_file, source = (Path(place) / file for file in ("train.csv", "model.slim", "model.c"))
            train.to_csv(data, index=False)
            test.to_csv(data.with_name("test.csv"), index=False)
            start = perf_counter()
            task = ["--task", "regress"] if regression else []
            run("train", data, "--label", label, *task, "-b", given.budget, "-o", model_file)
            run("export", model_file, "-o", source)
            seconds = perf_counter() - start
            run("predict", model_file, data.with_name("test.csv"), "--label", label, "-o", data.with_name("found.txt"))
            python = np.array(data.with_name("found.txt").read_text().split("\n")[:-1])
            model = load(model_file)
            library, row, columns, told = compiled(model, source)
            found = {"c": predicted_by_c(library, row, columns, test)}
            rows = cells_of([column for _, column in columns], test)
            found["runtime"] = np.asarray(runtime(model_file)(rows))
            if shutil.which("node"):
                run("export", model_file, "-o", source.with_suffix(".mjs"))
                found["javascript"] = predicted_by_node(source.with_suffix(".mjs"), rows)
        truth = test[label].to_numpy()
        if regression:
            python, truth = python.astype(float), truth.astype(float)
            agree = {name: np.abs(values - python) <= 1e-4 * truth.std() for name, values in found.items()}
            error = np.mean(np.square(python - truth)) / np.var(truth)
        else:
            found["c"] = artefact_of(model).classes[found["c"]]
            agree = {name: values.astype(str) == python for name, values in found.items()}
            error = np.mean(python != truth)
        line(
            data=name,
            rows=len(train),
            columns=train.shape[1] - 1,
            features=int(model[-1].n_features_in_),
            test_rows=len(test),
            **{name: int(rows_alike.sum()) for name, rows_alike in agree.items()},
            **told,
            said=CExporter().cost(artefact_of(model)).bytes,
            error=float(error),
            boosting=boosting_error(train, test, label, regression),
            seconds=seconds,
        )


if __name__ == "__main__":
    main()
