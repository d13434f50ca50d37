"""Files that earlier versions wrote are loaded and answer as they did; `make_models.py` wrote them by those versions."""

import json
from pathlib import Path

import numpy as np
import pytest

import slimsvm
from slimsvm.files.container import FORMAT
from slimsvm.ship.json import VERSION

FOLDERS = sorted(path for path in (Path(__file__).parent / "models").iterdir() if path.is_dir())
FILES = [path for folder in FOLDERS for path in sorted(folder.iterdir()) if path.name != "expected.json"]


def of_kind(ending):
    return pytest.mark.parametrize(
        "path", [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in FILES if path.suffix == ending]
    )


def expected(path):
    document = json.loads((path.parent / "expected.json").read_text())
    answers = document["expected"][path.stem]
    return np.array(answers["rows"]), np.array(answers["scores"]), np.array(answers["labels"])


def scores_of(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def assert_same_answers(given, wanted):
    """Labels are equal; numbers that a regression predicts are equal but for rounding."""
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(given, wanted, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(given, wanted)


@of_kind(".slim")
def test_slim_files(path):
    X, scores, labels = expected(path)
    model = slimsvm.load(path)
    np.testing.assert_allclose(scores_of(model, X), scores, rtol=1e-9, atol=1e-9)
    assert_same_answers(model.predict(X), labels)


@of_kind(".slim")
def test_slim_files_are_saved_again(path, tmp_path):
    X, _, _ = expected(path)
    model = slimsvm.load(path)
    slimsvm.save(model, tmp_path / "again.slim")
    np.testing.assert_array_equal(scores_of(slimsvm.load(tmp_path / "again.slim"), X), scores_of(model, X))


@of_kind(".json")
def test_json_files(path):
    X, scores, labels = expected(path)
    model = slimsvm.runtime(path)
    np.testing.assert_allclose(model.scores(X), scores, rtol=1e-9, atol=1e-9)
    assert_same_answers(model(X), labels)


@of_kind(".libsvm")
def test_libsvm_files(path):
    X, _, labels = expected(path)
    np.testing.assert_array_equal(slimsvm.load(path).predict(X), labels)


def test_every_format_has_files():
    formats = {int.from_bytes(path.read_bytes()[8:12], "little") for path in FILES if path.suffix == ".slim"}
    assert formats == set(range(1, FORMAT + 1))
    versions = {json.loads(path.read_text())["version"] for path in FILES if path.suffix == ".json"}
    assert versions == set(range(1, VERSION + 1))
