"""Images: every reader gives what Python gives, and refuses what is damaged, without a look beyond the end."""

import struct
import sys
import zlib
from dataclasses import replace

import numpy as np
import pytest
from shipped import LAYOUTS, ROWS, WORDS, model_of

from slimsvm import export, runtime
from slimsvm.calibration import Isotonic, Sigmoid, Temperature
from slimsvm.metric import Metric
from slimsvm.ship.coded import Coded
from slimsvm.ship.image import MAGIC, PRECISIONS, image_of
from slimsvm.ship.image import model_of as model_in
from slimsvm.ship.reader import READERS, write_reader
from slimsvm.ship.source import artefact_of
from tools.fuzz_images import fuzz
from tools.images import RefusedError, build_c, build_rust, pythons, run_python, run_reader
from tools.targets import missing

PROJECTION = np.random.default_rng(5).normal(size=(7, 3))
X = np.random.default_rng(3).random((400, 7)) * [1, 2, 3, 1, 1, 0.5, 1]
CURVE = Isotonic(np.array([-1, 0.2, 0.9]), np.array([0.1, 0.4, 0.9]), np.array([0, 3]))
#: each kernel, goal, scaler, precision and map at least once: (kernel, layout, scaler, projected, precision, map)
CASES = [
    ("rbf", "rest", "none", False, "int4", None),
    ("rbf", "two", "standard", True, "int8", Sigmoid(np.array([1.5]), np.array([0.1]))),
    ("laplacian", "dag", "clipped", False, "int16", None),
    ("laplacian", "words", "none", True, "float32", Sigmoid(np.array([1.0, 2.0, 0.5, 1.0]), np.zeros(4))),
    ("linear", "rest", "range", False, "int8", Temperature(0.7)),
    ("linear", "regression", "none", False, "float32", None),
    ("poly", "votes", "standard", False, "int16", None),
    ("poly", "novelty", "two", True, "int4", None),
    ("sigmoid", "parted", "none", False, "float32", None),
    (
        "sigmoid",
        "pairs",
        "none",
        False,
        "int4",
        Isotonic(np.array([-1, 0.2, 0.9]), np.array([0.1, 0.4, 0.9]), np.array([0, 3])),
    ),
    ("chi2", "two", "none", False, "float32", Temperature(2.0)),
]
each_case = pytest.mark.parametrize(
    ("kernel", "layout", "scaler", "projected", "precision", "map_"), CASES, ids=["-".join(case[:2]) for case in CASES]
)


def made(kernel="rbf", layout="rest", scaler="none", projected=False, map_=None):
    metric = Metric(widths=np.geomspace(0.5, 3, 9)) if kernel in ("rbf", "laplacian") else None
    artefact = replace(artefact_of(model_of(kernel, layout, scaler, metric=metric)), calibration=map_)
    return replace(artefact, projection=PROJECTION, points=artefact.table @ PROJECTION) if projected else artefact


def predicted(artefact, labels):
    return artefact.classes[labels] if artefact.classes.size else labels


@pytest.fixture(scope="module", params=["c", "rust"])
def reader(request, tmp_path_factory):
    if reason := missing({"c": "gcc", "rust": "rustc"}[request.param]):
        pytest.skip(reason)
    return {"c": build_c, "rust": build_rust}[request.param](tmp_path_factory.mktemp("reader"))


@each_case
def test_compiled_readers_give_what_python_gives(reader, kernel, layout, scaler, projected, precision, map_, tmp_path):
    artefact = made(kernel, layout, scaler, projected, map_)
    path = export(artefact, tmp_path / "m.bin", precision=precision)[0]
    run = runtime(path)
    labels, scores, texts = run_reader(reader, path, X, artefact.scores, artefact.classes.size * (map_ is not None))
    expected = run.scores(X).reshape(len(X), -1)
    if layout == "regression":
        np.testing.assert_array_equal(scores[:, 0], run(X))
    else:
        np.testing.assert_array_equal(predicted(artefact, labels), run(X))
        np.testing.assert_allclose(scores[:, : artefact.scores], expected, rtol=1e-6, atol=1e-6)
    if map_ is not None:
        np.testing.assert_allclose(scores[:, artefact.scores :], run.proba(X), atol=1e-5)
    assert texts == [str(label if artefact.classes.dtype.kind != "b" else int(label)) for label in artefact.classes]
    if not artefact.by_pairs and layout != "regression":
        np.testing.assert_array_equal(scores[:, : artefact.scores], expected)


@each_case
def test_the_reader_in_micropython_gives_what_python_gives(kernel, layout, scaler, projected, precision, map_, tmp_path):
    artefact = made(kernel, layout, scaler, projected, map_)
    path = export(artefact, tmp_path / "m.bin", precision=precision)[0]
    run, rows = runtime(path), X[:60].astype(np.float32).astype(float)
    for command in pythons().values():
        found = run_python(path, rows, command)
        values = np.array([value for value, _, _ in found])
        if layout == "regression":
            np.testing.assert_allclose(values, run(rows), rtol=1e-4)
            continue
        np.testing.assert_array_equal(values, run(rows))
        np.testing.assert_allclose(
            [scores for _, scores, _ in found], run.scores(rows).reshape(60, -1), rtol=1e-4, atol=1e-4
        )
        if map_ is not None:
            np.testing.assert_allclose([proba for _, _, proba in found], run.proba(rows), atol=1e-4)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_image_holds_the_model(layout, precision):
    coded = Coded.of(made("rbf", layout), precision)
    held = model_in(image_of(coded))
    np.testing.assert_array_equal(held.outputs(X), coded.outputs(X))
    np.testing.assert_array_equal(held.a.classes, coded.a.classes)
    assert held.a.decision is coded.a.decision


def with_checksum(data):
    return data[:12] + struct.pack("<I", zlib.crc32(data[16:])) + data[16:]


def changed(data, at, value):
    return with_checksum(data[:at] + value + data[at + len(value) :])


def damaged():
    """Images that readers must refuse, by what is wrong with them."""
    data = image_of(Coded.of(made("rbf", "words", map_=Sigmoid(np.ones(4), np.zeros(4))), "int8"))
    knots = image_of(Coded.of(made("rbf", "pairs", map_=CURVE), "int8"))
    places = [(i, n) for i in range(5) for n in (0, 3, 9000, 2**31)]
    counts = {f"count {i} of {n}": changed(data, 24 + 4 * i, struct.pack("<I", n)) for i, n in places}
    return counts | {
        "empty": b"",
        "short head": data[:40],
        "short": data[:-1],
        "other file": b"PNG!" + data[4:],
        "big-endian": MAGIC + struct.pack(">2H2I", 1, 64, len(data), 0) + data[16:],
        "version": data[:4] + struct.pack("<H", 2) + data[6:],
        "flipped": data[:100] + bytes([data[100] ^ 1]) + data[101:],
        "length": data[:8] + struct.pack("<I", 2**32 - 1) + data[12:],
        "shorter length": changed(data, 8, struct.pack("<I", len(data) - 8))[: len(data)],
        "kernel": changed(data, 16, b"\x09"),
        "decision": changed(data, 17, b"\x09"),
        "other decision": changed(data, 17, b"\x00"),
        "map": changed(data, 18, b"\x07"),
        "bits": changed(data, 19, b"\x05"),
        "flags": changed(data, 20, b"\x40"),
        "clips without scale": changed(data, 20, b"\x02"),
        "knots": changed(knots, len(knots) - 16, struct.pack("<I", 77)),
        "labels": with_checksum(data[:8] + struct.pack("<I", len(data) - 8) + data[12:-8]),
    }


@pytest.mark.parametrize("name", damaged())
def test_damaged_images_are_refused(reader, name, tmp_path):
    data = damaged()[name]
    (tmp_path / "m.bin").write_bytes(data)
    with pytest.raises(RefusedError, match=r"status [1-6]"):
        run_reader(reader, tmp_path / "m.bin", X, 4)


@pytest.mark.parametrize("name", damaged())
def test_damaged_images_are_refused_in_python(name, tmp_path):
    (tmp_path / "m.bin").write_bytes(damaged()[name])
    with pytest.raises(ValueError, match="as an image that slimsvm exported"):
        runtime(tmp_path / "m.bin")


def test_damaged_images_are_refused_in_micropython():
    sys.path.insert(0, str(build_c.__globals__["READERS"]))
    try:
        import slim
    finally:
        del sys.path[0]
    for data in damaged().values():
        with pytest.raises((ValueError, UnicodeError)):
            slim.Model(data)


@pytest.mark.skipif(bool(missing("gcc")), reason="gcc is not installed")
def test_images_that_are_changed_at_random_do_no_harm():
    assert "no fault" in fuzz(1, seed=3)


@pytest.mark.parametrize("language", READERS)
def test_readers_are_written_once(language, tmp_path):
    paths = write_reader(language, tmp_path / f"mine{READERS[language][0]}")
    assert all(path.stat().st_size > 1000 for path in paths)
    assert all("SPDX-License-Identifier: 0BSD" in path.read_text() for path in paths)
    with pytest.raises(FileExistsError, match="force"):
        write_reader(language, paths[0])
    with pytest.raises(ValueError, match="no reader of images in 'java'"):
        write_reader("java", tmp_path / "x")


def test_rows_and_words_of_an_image(tmp_path):
    path = export(made("rbf", "words"), tmp_path / "m.bin")[0]
    assert set(runtime(path)(ROWS)) <= set(WORDS)
    with pytest.raises(ValueError, match="unknown precision 'int3' of images"):
        export(made(), tmp_path / "n.bin", precision="int3")
