"""The readers that are fuzzed: good contents, changes of contents, their bytes, and what a user does with the file.

Contents are mutated, not bytes: a mutant of a .slim file has a right checksum, and a mutant of an .npz file is a right
archive, so that every check behind those is reached. A new reader is an entry in `READERS`.
"""

from __future__ import annotations

import csv
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from slimsvm import SlimSVC, SlimSVR, load, save, table_preparation
from slimsvm.files.datasets import read_data
from slimsvm.metric import Metric
from slimsvm.ship.export import export
from slimsvm.ship.json import read_json
from slimsvm.ship.runtime import Runtime

from .checkpoints import CHECKPOINTS
from .containers import container_bytes, container_content, mutate_container
from .mutations import NUMBERS, TEXTS, WORDS, Rng, mutate_array, mutate_tree, mutate_words, pick, spoiled
from .reader import Reader, answer
from .rows import ROWS

#: dense rows of more features than this are not made; such models get sparse rows
MANY_FEATURES = 10_000
#: bytes of zeros in an archive of a thousandth of that
BALLOON = 1 << 30


def _models() -> dict[str, Any]:
    """Return small fitted models of every kind that files hold."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    words = np.array(["setosa", "versicolor", "naïve"])[y]
    two = y[y < 2]
    sparse = csr_array(X * (X > 1.5))
    kernels = {
        name: SlimSVC(kernel=name, gamma=0.3, coef0=0.5) for name in ("linear", "poly", "sigmoid", "laplacian", "chi2")
    }
    return {
        **{name: model.fit(X[y < 2], two) for name, model in kernels.items()},
        "three classes": SlimSVC(C=5.0, class_weight={0: 1.0, 1: 2.0, 2: 1.0}).fit(X, y),
        "budget": SlimSVC(4, reducer="spsvm", random_state=0).fit(X, words),
        "stream": SlimSVC(trainer="bsgd", budget=5, random_state=0).fit(X, y > 0),
        "sparse": SlimSVC(gamma=0.1).fit(sparse, y),
        "metric": _with_metric(SlimSVC(4, reducer="spsvm", random_state=0).fit(X, y)),
        "precomputed": SlimSVC(kernel="precomputed").fit(X @ X.T, y),
        "scaled": make_pipeline(StandardScaler(), SlimSVC()).fit(X, words),
        "table": _of_a_table(X, y),
        "intervals": SlimSVR(4, trainer=None, calibration="conformal", random_state=0).fit(X, y.astype(float)),
        "targets": SlimSVR(4, trainer=None, random_state=0).fit(X, X[:, :2] * [1.0, 50.0]),
        "clipped": make_pipeline(MinMaxScaler(clip=True), RobustScaler(), SlimSVC(C=3.0)).fit(X, two_of(y)),
    }


def _of_a_table(X: Any, y: Any) -> Any:
    """Return a model behind encoders, imputers and other steps."""
    table = X.astype(object)
    table[::4, 0], table[:, 1] = None, np.array(["red", "blue", "green"])[np.arange(y.size) % 3]
    table[::7, 1] = None
    more = ColumnTransformer(
        [
            ("table", table_preparation(), [0, 1]),
            ("powers", make_pipeline(PowerTransformer(), PolynomialFeatures(2)), [2]),
            ("quantiles", QuantileTransformer(n_quantiles=5, output_distribution="normal"), [3]),
            ("places", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2), [1]),
        ]
    )
    return make_pipeline(more, PCA(4), SlimSVC()).fit(table, y)


def _with_metric(model: Any) -> Any:
    """Return the model with a factor for each feature and a width for each point."""
    points = model.model_.points
    factors, widths = (np.linspace(0.5, 2.0, count) for count in reversed(points.shape))
    model.model_ = replace(model.model_, metric=Metric(factors, widths))
    return model


def two_of(y: Any) -> Any:
    """Return labels of two classes."""
    return np.minimum(y, 1)


def _files_of(models: dict[str, Any], ending: str, write: Callable[[Any, Path], Any]) -> Iterable[bytes]:
    with TemporaryDirectory() as folder:
        for model in models.values():
            path = Path(folder) / f"model{ending}"
            write(model, path)
            yield path.read_bytes()


# .slim files.


def _slim_seeds() -> Iterable[Any]:
    return map(container_content, _files_of(_models(), ".slim", save))


def _use_model(path: Path) -> None:
    """Load a model, predict with it, and save it: the copy predicts the same."""
    model = load(path)
    svc = model.steps[-1][1] if isinstance(model, Pipeline) else model
    given = getattr(model, "n_features_in_", svc.n_features_in_)  # of the first step
    rows = _rows(given if isinstance(given, int) else svc.n_features_in_)
    if any(type(step).__name__ == "ColumnTransformer" for _, step in getattr(model, "steps", ())):
        rows = np.where(np.arange(rows.shape[1]) == 1, "red", rows.astype(object))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kernel values of hostile points overflow
        repr(model)
        labels = answer(model.predict, rows)
        copied = path.with_name("copy.slim")
        save(model, copied)
        if getattr(load(copied), "memory", None) is not None:
            raise AssertionError("a loaded pipeline has a memory")
        again = answer(load(copied).predict, rows)
    if labels is not None and not np.array_equal(labels, again):
        raise AssertionError("a saved copy predicts other labels")


def _rows(features: int) -> Any:
    if features > MANY_FEATURES:
        return csr_array((np.ones(3), (np.arange(3), [0, 1, features - 1])), shape=(3, features))
    return np.abs(np.random.default_rng(0).normal(size=(3, features)))


# JSON models.


def _json_seeds() -> Iterable[Any]:
    models = {name: model for name, model in _models().items() if name != "precomputed"}
    for data in _files_of(models, ".json", partial(export, force=True)):
        yield {"document": json.loads(data), "text": None}


def _mutate_json(rng: Rng, content: Any) -> None:
    if rng.random() < 0.9:
        mutate_tree(rng, content["document"])
        return
    text = content["text"] or json.dumps(content["document"])
    place = int(rng.integers(len(text) + 1))
    insert = pick(rng, (*map(str, NUMBERS), *TEXTS, "[" * 5000, '{"a":' * 5000, "1e999", "NaN", '"kernel": {},', "-", "]"))
    content["text"] = text[:place] + insert + text[place + int(rng.integers(3)) :]


def _json_bytes(content: Any) -> bytes:
    return (json.dumps(content["document"]) if content["text"] is None else content["text"]).encode(errors="replace")


def _use_json(path: Path) -> None:
    """Read a model, predict with it, and write it as source code."""
    artefact = read_json(path)
    run = Runtime(artefact)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = artefact.features if artefact.preparation is None else artefact.preparation.given
        answer(run, np.abs(np.random.default_rng(0).normal(size=(3, min(given, MANY_FEATURES)))))
        for ending in (".c", ".js", ".json"):
            answer(partial(export, artefact, force=True), path.with_name(f"out{ending}"))


# LIBSVM's models and rows, and CSV: lines of words.


def _lines(data: bytes) -> list[list[str]]:
    return [line.split() for line in data.decode().splitlines()]


def _libsvm_model_seeds() -> Iterable[Any]:
    usable = {
        name: model for name, model in _models().items() if name in ("linear", "poly", "sigmoid", "three classes", "sparse")
    }
    for data in _files_of(usable, ".libsvm", partial(export, target="libsvm", force=True)):
        yield {"lines": _lines(data)[:60], "separator": " "}


def _mutate_text(rng: Rng, content: Any) -> None:
    mutate_words(rng, content["lines"])


def _text_bytes(content: Any) -> bytes:
    return "".join(content["separator"].join(line) + "\n" for line in content["lines"]).encode(errors="replace")


def _libsvm_seeds() -> Iterable[Any]:
    X, y = load_iris(return_X_y=True)
    for labels in (y[::10], y[::10] - 1.5):
        rows = [
            [str(label), *(f"{j + 1}:{v}" for j, v in enumerate(row))] for label, row in zip(labels, X[::10], strict=True)
        ]
        yield {"lines": rows, "separator": " "}


def _csv_seeds() -> Iterable[Any]:
    X, y = load_iris(return_X_y=True)
    names = ["a", "b", "c", "d", "kind"]
    for separator, labels in ((",", y[::10]), (";", np.array(["u", "v", "w"])[y[::10]]), ("\t", y[::10] / 2)):
        rows = [[*map(str, row), str(label)] for label, row in zip(labels, X[::10], strict=True)]
        yield {"lines": [names, *rows], "separator": separator}
        yield {"lines": rows, "separator": separator}


def _mutate_csv(rng: Rng, content: Any) -> None:
    if rng.random() < 0.1:
        content["separator"] = pick(rng, [",", ";", "\t", " ,", "\r,", '","'])
    elif rng.random() < 0.1 and content["lines"]:
        _quote(rng, pick(rng, content["lines"]))
    else:
        mutate_words(rng, content["lines"])


def _quote(rng: Rng, line: list[str]) -> None:
    for place, word in enumerate(line):
        buffer = io.StringIO()
        csv.writer(buffer, quoting=csv.QUOTE_ALL).writerow([word + pick(rng, ("", "\n", ",", '"', *WORDS))])
        line[place] = buffer.getvalue().strip("\r\n")


def _use_data(path: Path) -> None:
    """Read rows and labels, train on them, and predict."""
    X, y = read_data(path)
    answer(partial(read_data, labels=False), path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for gamma in ("scale", 1.0):
            answer(partial(_train, y=y, gamma=gamma), X)


def _train(X: Any, y: Any, gamma: Any) -> Any:
    return SlimSVC(gamma=gamma, max_iter=200).fit(X, y).predict(X)


# NumPy's archives: arrays, their names, and the archive's own entries.


def _npz_seeds() -> Iterable[Any]:
    X, y = load_iris(return_X_y=True)
    X, y = X[::10], y[::10]
    rows = csr_array(X)
    parts = {"X_data": rows.data, "X_indices": rows.indices, "X_indptr": rows.indptr, "X_shape": np.array(rows.shape)}
    for arrays in ({"X": X, "y": y}, {**parts, "y": y}, {"X_train": X, "y_train": y, "X_test": X, "y_test": y}):
        yield {"arrays": arrays, "headers": {}, "compressed": False, "balloon": None}


def _mutate_npz(rng: Rng, content: Any) -> None:
    arrays, chance = content["arrays"], rng.random()
    if not arrays:
        return
    name = pick(rng, list(arrays))
    if chance < 0.7:
        arrays[name] = mutate_array(rng, arrays[name])
    elif chance < 0.78:
        arrays[pick(rng, ["X", "y", "X_data", "X_shape", "X_train", "../X", "a/b", "y_train", *TEXTS[:4]])] = arrays.pop(
            name
        )
    elif chance < 0.82:
        arrays[name] = np.full(arrays[name].shape, _Payload(), dtype=object)
    elif chance < 0.97:
        content["headers"][name] = spoiled_header(rng, arrays[name])
    elif chance < 0.971:
        content["balloon"] = name
    else:
        content["compressed"] = not content["compressed"]


class _Payload:
    """An object whose pickle runs code when it is loaded; the guards of the worker notice."""

    def __reduce__(self) -> Any:
        return (eval, ("__import__('os').getpid()",))


def spoiled_header(rng: Rng, array: Any) -> str:
    """Return the header of a .npy file with other sizes, types or syntax."""
    dtype = array.dtype.str if array.dtype != object else "|O"
    entry = {"descr": dtype, "fortran_order": False, "shape": tuple(array.shape)}
    choice = int(rng.integers(5))
    if choice == 0:
        entry["shape"] = tuple(int(pick(rng, NUMBERS)) for _ in range(int(rng.integers(4))))
    elif choice == 1:
        entry["descr"] = pick(rng, ["|O", "<f8", "<U99999999", "|V0", "<M8[s]", "(3,)f8", [("a", "<f8")], "<f16", "x", 3])
    elif choice == 2:
        entry["fortran_order"] = pick(rng, [True, 1, None])
    elif choice == 3:
        return spoiled(rng, str(entry))
    else:
        entry[pick(rng, TEXTS)] = pick(rng, NUMBERS)
    return str(entry)


def _npz_bytes(content: Any) -> bytes:
    buffer = io.BytesIO()
    compression = zipfile.ZIP_DEFLATED if content["compressed"] else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one name twice
        for name, array in content["arrays"].items():
            member = (name or "_").replace("\x00", "0") + ".npy"
            if name == content["balloon"]:
                _write_balloon(archive, member)
            else:
                archive.writestr(member, _npy(array, content["headers"].get(name)))
    return buffer.getvalue()


def _write_balloon(archive: zipfile.ZipFile, member: str) -> None:
    """Add a row of zeros, a piece at a time."""
    info = zipfile.ZipInfo(member)
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (1, BALLOON // 8)}
        np.lib.format.write_array_header_2_0(file, header)
        for _ in range(BALLOON >> 20):
            file.write(bytes(1 << 20))


def _npy(array: Any, header: str | None) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=True)
    if header is None:
        return buffer.getvalue()
    text = header.encode(errors="replace") + b"\n"
    payload = array.tobytes() if array.dtype != object else b""
    return np.lib.format.magic(2, 0) + len(text).to_bytes(4, "little") + text + payload


READERS: dict[str, Reader] = {
    "slim": Reader(".slim", _slim_seeds, mutate_container, container_bytes, _use_model),
    "json": Reader(".json", _json_seeds, _mutate_json, _json_bytes, _use_json),
    "libsvm-model": Reader(".model", _libsvm_model_seeds, _mutate_text, _text_bytes, _use_model),
    "libsvm": Reader(".libsvm", _libsvm_seeds, _mutate_text, _text_bytes, _use_data),
    "csv": Reader(".csv", _csv_seeds, _mutate_csv, _text_bytes, _use_data),
    "npz": Reader(".npz", _npz_seeds, _mutate_npz, _npz_bytes, _use_data),
    "checkpoint": CHECKPOINTS,
    "rows": ROWS,
}
