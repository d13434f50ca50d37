"""Wrong input as people give it: each error says what was given, what is possible and what to do."""

import re

import numpy as np
import pytest

import slimsvm
from slimsvm import SlimOneClassSVM, SlimSVC, SlimSVR
from slimsvm.studio.cli import commands as cli

NAMES = "warm,cold,wet"


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return SlimSVC(4, random_state=0).fit(X, np.where(X[:, 0] > 0, "yes", "no"))


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """The model in files of several kinds, and tables that do not go with it."""
    folder = tmp_path_factory.mktemp("wrong")
    slimsvm.save(model, folder / "m.slim")
    slimsvm.export(model, folder / "m.json")
    rows = [f"{a},{b},1,{'yes' if a > b else 'no'}" for a in range(6) for b in range(6)]
    (folder / "rows.csv").write_text("\n".join([f"{NAMES},label", *rows]))
    (folder / "wide.csv").write_text("1,2,3,4,5,no\n2,3,4,5,6,yes\n")
    (folder / "latin.csv").write_bytes("höhe,label\n1,no\n2,yes\n".encode("latin1"))
    (folder / "book.xlsx").write_bytes(b"PK\3\4 and so on")
    return folder


X, Y = np.random.default_rng(1).normal(size=(30, 3)), ["no", "yes", "yes"] * 10

IN_PYTHON = {
    "rows of another width": (
        lambda m, to: slimsvm.export(m, to / "m.c", precision="int8", rows=X[:, :2]),
        "rows= is of shape (30, 2), and the model has 3 features; give raw rows",
    ),
    "probability": (lambda *_: SlimSVC(probability=True), "no parameter 'probability'; .*calibration='sigmoid'"),
    "cache_size": (lambda *_: SlimSVR(cache_size=200), "SlimSVR has no parameter 'cache_size'; give cache_mb, in MiB"),
    "shrinking": (lambda *_: SlimOneClassSVM(shrinking=False), "no parameter 'shrinking'; leave it out"),
    "trainer 'none'": (lambda *_: SlimSVC(5, trainer="none").fit(X, Y), "'none'; did you mean None, without quotes?"),
    "trainer": (lambda *_: SlimSVC(trainer="pegasus").fit(X, Y), "'pegasus'; did you mean 'pegasos'? there are .*'smo'"),
    "reducer": (lambda *_: SlimSVC(5, reducer="slimm").fit(X, Y), "'slimm'; did you mean 'slim'? there are .*'spsvm'"),
    "scoring": (lambda *_: SlimSVC(5, scoring="acc").fit(X, Y), "unknown scoring 'acc'; did you mean 'accuracy'?"),
    "kernel": (lambda *_: SlimSVC(kernel="RBF").fit(X, Y), "unknown kernel 'RBF'; did you mean 'rbf'? there are .*'poly'"),
    "budget": (lambda *_: SlimSVC(0).fit(X, Y), "0.1 (a fraction of the full .*, not 0"),
    "a JSON export": (lambda _, to: slimsvm.load(to / "m.json"), "m.json.*a JSON export; slimsvm.runtime reads it"),
    "a short row": (lambda m, _: slimsvm.runtime(m)([1, 2]), "a row has 2 features, and the model takes 3"),
    "an ending": (lambda m, to: slimsvm.export(m, to / "m.java"), "ending of 'm.java'; name the target, one of .*'onnx'"),
    "a setting": (lambda m, to: slimsvm.export(m, to / "m.c", precsion="int8"), "no setting precsion; its .*: precision,"),
}
AT_THE_COMMAND_LINE = {
    "a command": (["trian", "rows.csv"], "no command 'trian'; did you mean train? the commands are demo, train,"),
    "an option": (["train", "rows.csv", "--buget", "5"], "unrecognized arguments: --buget .*did you mean --budget?"),
    "a kernel": (["train", "rows.csv", "-k", "rbt"], "--kernel: 'rbt' is not one of linear, rbf, poly"),
    "a wide table": (["predict", "m.slim", "wide.csv"], "wide.csv.* has 6 features and 3 are wanted; give the same"),
    "a table of rows": (["report", "rows.csv"], "no file of slimsvm tradeoff: its columns are .*Run slimsvm tradeoff"),
    "no UTF-8": (["train", "latin.csv"], "byte 0xf6 is no UTF-8 text; save the file as UTF-8, e.g. by iconv"),
    "a spreadsheet": (["train", "book.xlsx"], "the formats are .csv, .* Save a spreadsheet or JSON as CSV"),
    "no size": (["compress", "m.slim", "rows.csv"], "say how small: give --budget 50 .* or --tolerance 0.005"),
    "a label": (["train", "rows.csv", "--label", "klasse"], "no column 'klasse'; it has .*'warm', 'cold', 'wet', 'label'"),
}


def found_in(pattern, text):
    """Whether a text has the words of a pattern, in which only .* is special."""
    return re.search(re.escape(pattern).replace(r"\.\*", ".*"), " ".join(text.split()))


@pytest.mark.parametrize("name", IN_PYTHON)
def test_errors_in_python(name, model, folder):
    work, words = IN_PYTHON[name]
    with pytest.raises((ValueError, TypeError)) as error:
        work(model, folder)
    assert found_in(words, str(error.value)), error.value


@pytest.mark.parametrize("name", AT_THE_COMMAND_LINE)
def test_errors_at_the_command_line(name, folder, monkeypatch, capsys):
    arguments, words = AT_THE_COMMAND_LINE[name]
    monkeypatch.chdir(folder)
    assert cli.run(arguments) in (1, 2)
    assert found_in(words, capsys.readouterr().err)


def test_names_of_options_are_taken_in_any_case(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert cli.run(["train", "rows.csv", "--kernel", "RBF", "-o", "case.slim"]) == 0
    assert slimsvm.load("case.slim").kernel == "rbf"
