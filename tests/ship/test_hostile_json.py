"""JSON models that were made to do harm: nothing of the file reaches generated source but known names and numbers."""

import copy
import json
import random

import numpy as np
import pytest
from shipped import model_of

from slimsvm import export, runtime
from slimsvm.metric import Metric
from slimsvm.ship.c import CExporter
from slimsvm.ship.javascript import JavaScriptExporter
from slimsvm.ship.json import read_json


def written(folder, layout):
    export(model_of("poly", layout, "clipped", size=3), folder / "m.json")
    return json.loads((folder / "m.json").read_text())


@pytest.fixture
def document(tmp_path):
    return written(tmp_path, "votes")


def read(document, folder):
    (folder / "h.json").write_text(document if isinstance(document, str) else json.dumps(document))
    return read_json(folder / "h.json")


def test_the_document_as_it_was_is_read(document, tmp_path):
    artefact = read(document, tmp_path)
    assert artefact.features == 7
    assert runtime(artefact)(np.ones(7)) in artefact.classes


def test_a_document_of_version_1_is_read(document, tmp_path):
    """It had the goal under another name."""
    document["version"], document["coding"] = 1, document.pop("goal")
    assert read(document, tmp_path).goal.name == "ovo"


CHANGES = {
    "a constant of C": (lambda d: d["kernel"].update(points=100_000), "points"),
    "code for a name": (lambda d: d["kernel"].update({"x\n#define POINTS 9": 1}), "parameters"),
    "text for gamma": (lambda d: d["kernel"].update(gamma="process.exit()"), "gamma"),
    "no gamma": (lambda d: d["kernel"].pop("gamma"), "gamma"),
    "gamma of 0": (lambda d: d["kernel"].update(gamma=0), "gamma"),
    "endless degree": (lambda d: d["kernel"].update(degree=2**62), "degree"),
    "degree of half": (lambda d: d["kernel"].update(degree=2.5), "degree"),
    "unknown kernel": (lambda d: d["kernel"].update(name="fourier"), "fourier"),
    "list for a kernel": (lambda d: d.update(kernel=[]), "kernel"),
    "infinite point": (lambda d: d["points"][0].__setitem__(0, 1e999), "Infinity"),
    "overflowing point": (lambda d: d["points"][0].__setitem__(0, 10**400), ""),
    "coefficient of nan": (lambda d: d["coef"][0].__setitem__(0, float("nan")), "NaN"),
    "text for a point": (lambda d: d["points"][0].__setitem__(0, "1"), "numbers"),
    "ragged points": (lambda d: d["points"][0].pop(), "equal lengths"),
    "bias too long": (lambda d: d["bias"].append(0.0), "fit together"),
    "bias of rows": (lambda d: d.update(bias=[d["bias"]]), "numbers"),
    "scale too short": (lambda d: d["scaling"]["scale"].pop(), "scale"),
    "scale of 0": (lambda d: d["scaling"]["scale"].__setitem__(0, 0), "above 0"),
    "ends that cross": (lambda d: d["scaling"]["low"].__setitem__(0, 9), "low end"),
    "no centre": (lambda d: d["scaling"].pop("centre"), "centre"),
    "classes of lists": (lambda d: d.update(classes=[[0], [1], [2], [3]]), "classes"),
    "mixed classes": (lambda d: d.update(classes=[0, 1, 2, "3"]), "classes"),
    "equal classes": (lambda d: d.update(classes=[0, 1, 2, 2]), "different classes"),
    "classes too few": (lambda d: d.update(classes=[0, 1]), "fit together"),
    "classes beyond int64": (lambda d: d.update(classes=[0, 1, 2, 10**30]), "classes"),
    "unknown goal": (lambda d: d["goal"].update(name="ecoc"), "ecoc"),
    "number of classes in the goal": (lambda d: d["goal"].update(n_classes=3), "n_classes"),
    "break_ties of text": (lambda d: d["goal"].update(break_ties="yes"), "break_ties"),
    "regression with classes": (lambda d: d.update(goal={"name": "regression"}), "fit together"),
    "novelty with classes": (lambda d: d.update(goal={"name": "novelty"}), "fit together"),
    "settings of regression": (lambda d: d.update(goal={"name": "regression", "variance": "0"}), "variance"),
    "no classes": (lambda d: d.update(classes=[]), "two or more"),
    "version of text": (lambda d: d.update(version="1"), "version"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_document_is_refused(name, document, tmp_path):
    change, words = CHANGES[name]
    change(document)
    with pytest.raises(ValueError, match="cannot read") as caught:
        read(document, tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


WIDTHS = {
    "a width too few": ([1.0, 2.0], "3 points"),
    "width of 0": ([1.0, 0, 2.0], "above 0"),
    "negative width": ([1.0, -1.0, 2.0], "above 0"),
    "width of nan": ([1.0, float("nan"), 2.0], "NaN"),
    "width of text": ([1.0, "gamma", 2.0], "numbers"),
    "widths of rows": ([[1.0, 1.0, 1.0]], "numbers"),
    "number for widths": (1.0, "widths"),
}


@pytest.mark.parametrize("name", WIDTHS)
def test_hostile_widths_are_refused(name, tmp_path):
    export(model_of("rbf", "two", size=3, metric=Metric(None, np.array([0.5, 1.0, 2.0]))), tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text())
    assert document["version"] == 3
    document["widths"], words = WIDTHS[name]
    with pytest.raises(ValueError, match="cannot read") as caught:
        read(document, tmp_path)
    assert words in str(caught.value)


def test_widths_of_a_kernel_without_are_refused(document, tmp_path):
    document["widths"] = [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="poly kernel takes no widths"):
        read(document, tmp_path)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"a":' * 10**5], ids=["lists", "objects"])
def test_deep_nesting_is_refused(text, tmp_path):
    with pytest.raises(ValueError, match="nested too deeply"):
        read(text, tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "h.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="cannot read"):
        read_json(tmp_path / "h.json")


VALUES = [None, True, 0, -1, 0.5, 1e308, float("nan"), 2**33, 10**400, "", "POINTS", "poly"]
VALUES += [[], [[]], {}, [1, 2], [[1, 2], [3]]]


def places(tree, path=()):
    """The paths to all values in a tree of JSON but the root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.parametrize(("seed", "layout"), [(0, "votes"), (1, "votes"), (2, "regression"), (3, "novelty")])
def test_mutated_contents_raise_value_error_or_run(seed, layout, tmp_path):
    """A document that is read also runs, and becomes C and JavaScript or is refused there."""
    rng, document = random.Random(seed), written(tmp_path, layout)
    for _ in range(200):
        tree = copy.deepcopy(document)
        *path, last = rng.choice(sorted(places(tree), key=lambda place: (len(place), str(place)))[:60])
        parent = tree
        for key in path:
            parent = parent[key]
        if rng.random() < 0.2:
            del parent[last]
        else:
            parent[last] = copy.deepcopy(rng.choice(VALUES))
        try:
            artefact = read(tree, tmp_path)
            with np.errstate(all="ignore"):  # numbers that are possible, and absurd
                runtime(artefact)(np.ones((2, artefact.features)))
            CExporter().render(artefact, "m")
            JavaScriptExporter().render(artefact, "m")
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_whole_numbers_beyond_those_of_the_machine_are_numbers(document, tmp_path):
    document["kernel"]["coef0"] = 10**30
    source = CExporter("float32").render(read(document, tmp_path), "m")
    assert b"#define COEF0 1.00000002e+30f" in b"".join(source.values())
