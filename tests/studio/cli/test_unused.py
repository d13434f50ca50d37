"""No option is ignored in silence: each changes what a command does or is refused, and so does each ending of a path."""

import inspect
import shutil
import warnings
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

import slimsvm
from slimsvm import SlimSVC, report, tradeoff
from slimsvm.files.datasets import read_data
from slimsvm.files.endings import NO_ROWS, WRITTEN
from slimsvm.reducers import Slim
from slimsvm.ship.export import ALSO, EXPORTERS
from slimsvm.studio.cli import commands as cli
from slimsvm.studio.cli.arguments import Option
from slimsvm.studio.cli.unused import RULES

pytestmark = pytest.mark.usefixtures("quick_slim")

COMMANDS = {command.__name__: command for command in cli.COMMANDS}


def options(command):
    """The options of a command, by parameter."""
    hints = get_type_hints(command, include_extras=True)
    infos = {name: get_args(hints[name])[1] for name in inspect.signature(command).parameters}
    of_estimators = {name: option for name, (option, _) in getattr(infos.get("settings"), "options", {}).items()}
    return {name: info for name, info in infos.items() if isinstance(info, Option)} | of_estimators


#: permissions, and how the same thing is computed: other tests show what they do
NO_DIFFERENCE = {"categorical", "force", "trust", "keep", "device", "cache_mb", "checkpoint"}
#: the shortest command line of each command, without its output
BASE = {
    "demo": "demo",
    "train": "train rows.csv -b 3",
    "compress": "compress full.slim rows.csv -b 3",
    "predict": "predict small.slim rows.csv",
    "export": "export full.slim",
    "reader": "reader c",
    "info": "info small.slim",
    "tradeoff": "tradeoff rows.csv -m nystroem -b 2",
    "report": "report runs.csv",
    "tune": "tune rows.csv -b 2 --trials 1",
}
#: words that make a difference, by option; a second entry has words for both command lines
SHOWN = {
    "balanced": ["--balanced"],
    "budget": ["-b 2"],
    "budgets": ["-b 3"],
    "C": ["-C 0.01"],
    "calibration": ["--calibration sigmoid"],
    "coef0": ["--coef0 9", "--kernel poly --gamma 1"],
    "data": ["--data wide.csv"],
    "degree": ["--degree 1", "--kernel poly"],
    "drop": ["--drop a"],
    "epsilon": ["--epsilon 0.4", "--task regress"],
    "flavor": ["--flavor svm", "-f onnx"],
    "gamma": ["--gamma 9"],
    "kernel": ["--kernel linear"],
    "kind": ["-f js"],
    "label": ["--label other"],
    "integers": ["--integers", "-f c"],
    "limit": ["--limit 50", "-f c --precision int8"],
    "max_error": ["--max-error 0.5"],
    "max_iter": ["--max-iter 1"],
    "method": ["--method full"],
    "methods": ["-m spsvm"],
    "metric": ["--metric both"],
    "multiclass": ["--multiclass ovo"],
    "numeric": ["--numeric a"],
    "nu": ["--nu 0.05", "--task novelty"],
    "output": ["-o other.slim"],
    "precision": ["--precision int8", "-f c"],
    "proba": ["--proba"],
    "reducer": ["--reducer nystroem"],
    "rows": ["--rows wide.csv", "-f c --precision int8"],
    "scale": ["--scale minmax"],
    "scores": ["--scores"],
    "random_state": ["--seed 5"],
    "seeds": ["--seeds 2"],
    "split": ["--split test"],
    "table": ["--table table.csv"],
    "task": ["--task regress"],
    "test": ["--test wide.csv"],
    "time_limit": ["--time-limit 1e-3"],
    "title": ["--title Flowers"],
    "tol": ["--tol 1"],
    "tolerance": ["-t 0.3"],
    "update": ["--update", "-f c"],
    "trainer": ["--trainer perceptron"],
    "trials": ["--trials 3"],
    "validation": ["--validation wide.csv"],
}
#: the same for options that need other words in a command
OF_COMMAND = {
    ("export", "label"): ["--label 0", "--rows first.csv -f c --precision int8"],
    ("export", "kind"): ["-f js", "-f c"],
    ("train", "tol"): ["--tol 50", "--reducer slant-aggressive"],
    ("train", "max_iter"): ["--max-iter 1", "-t 0.3"],
    ("tune", "budget"): ["-b 4"],
    **{(name, "precision"): ["--precision int8"] for name in ("train", "compress", "tune", "tradeoff")},
    ("predict", "split"): ["--split train"],
    ("predict", "output"): ["-o other.txt"],
    ("tradeoff", "output"): ["-o other.csv"],
    ("report", "output"): ["-o other.html"],
    ("export", "output"): ["-o other.c", "-f c"],
    ("reader", "output"): ["-o other.c"],
    ("info", "target"): ["--target avr"],
    ("report", "target"): ["--target avr"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows, the same with wider ranges and in other formats, and models and runs of them."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 30, 20])
    X = rng.normal(size=(90, 2)) + np.array([[0, 0], [1.5, 0], [0, 1.5]])[y]
    np.savez(folder / "parts.npz", X_train=X, y_train=y, X_test=X[::2] + 0.5, y_test=y[::2])
    for name, factor in (("rows", 1.0), ("wide", 3.0)):
        lines = [f"{a!r},{b!r},{label}" for (a, b), label in zip((factor * X).tolist(), y.tolist(), strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,label", *lines]) + "\n")
    head, *lines = (folder / "rows.csv").read_text().splitlines()
    (folder / "more.csv").write_text("\n".join([f"{head},other", *(f"{line},{n % 3}" for n, line in enumerate(lines))]))
    (folder / "first.csv").write_text("\n".join(",".join(line.split(",")[::-1]) for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.run(["train", "rows.csv", "-o", "full.slim"]) == 0
        assert cli.run(["train", "rows.csv", "-b", "3", "-o", "small.slim", "--calibration", "sigmoid"]) == 0
        assert cli.run(["train", "parts.npz", "-b", "3", "-o", "plain.slim"]) == 0
        assert cli.run(["tradeoff", "rows.csv", "-m", "nystroem", "-b", "2", "-o", "runs.csv"]) == 0
    return folder


def outcome(folder, words, capsys, output):
    """What a command line says and writes: numbers of models, and not the settings that are saved beside them."""
    before = {path.name for path in folder.iterdir()}
    given = [word.format(folder=folder) for word in words.split()]
    named = ["-o", output] if output and "-o" not in given else []
    code = cli.run([*given, *named])
    told, files = capsys.readouterr(), []
    assert code == 0 or told.err.startswith("slimsvm: error: ")
    for path in sorted(path for path in folder.iterdir() if path.name not in before):
        try:
            files.append((path.name, contents(path)))
        finally:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return code, told.out, told.err, files


def contents(path):
    """Predictions of a model, the runs without their times in a table, or what a file has."""
    if path.suffix == ".slim":
        model = slimsvm.load(path)
        X = np.random.default_rng(0).normal(size=(20, model.n_features_in_))
        with warnings.catch_warnings(action="ignore"):  # of names of features
            return getattr(model, "decision_function", model.predict)(X).tolist(), hasattr(model, "predict_proba")
    if path.is_dir():
        return sorted(each.name for each in path.iterdir())
    if path.name.startswith("out") and path.suffix == ".csv":
        return [[row[name] for name in ("method", "budget", "seed", "size", "error")] for row in rows_of(path)]
    return path.read_bytes()


def rows_of(path):
    return slimsvm.studio.tradeoff.read_rows(path)


OUTPUTS = {"export": "", "reader": "", "predict": "out.txt", "tradeoff": "out.csv", "report": "out.html", "info": ""}


@pytest.fixture(scope="module")
def known():
    """What command lines do, by their words."""
    return {}


@pytest.mark.parametrize(
    ("command", "option"),
    [(name, option) for name, command in COMMANDS.items() for option in options(command) if option not in NO_DIFFERENCE],
)
def test_each_option_makes_a_difference(command, option, folder, known, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    words, *shared = OF_COMMAND.get((command, option), SHOWN.get(option, ()))
    base, output = " ".join([BASE[command], *shared]), OUTPUTS.get(command, "out.slim")
    if option == "split":
        base = base.replace("rows.csv", "parts.npz")
    if option == "label":  # a table with another column of labels, or a model that knows no names
        base = base.replace("rows.csv", "more.csv").replace("export full", "export plain")
    if base not in known:
        known[base] = outcome(folder, base, capsys, output)
    without = known[base]
    assert without[0] == 0, without[2]
    assert outcome(folder, f"{base} {words}", capsys, output) != without


#: a command line for each rule, in which the option would do nothing
USELESS = {
    "reducer": "train rows.csv --reducer spsvm",
    "metric": "train rows.csv -b 3 --trainer bsgd --metric both",
    "gamma": "train rows.csv --kernel linear --gamma 3",
    "degree": "train rows.csv --degree 5",
    "coef0": "train rows.csv --coef0 1",
    "C": "train rows.csv --trainer perceptron -C 3",
    "tol": "train rows.csv -b 3 --trainer none --tol 0.1",
    "max_iter": "train rows.csv -b 3 --trainer none --max-iter 9",
    "split": "tradeoff rows.csv --split test",
    "label": "export small.slim -f c --label 0",
}


@pytest.mark.parametrize("option", [rule.option for rule in RULES])
def test_an_option_that_would_do_nothing_is_refused(option, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    assert cli.run(USELESS[option].split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    name = "-C" if option == "C" else f"--{option.replace('_', '-')}"
    assert f"{name}: it would do nothing here: " in error
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        "train rows.csv --task regress -b 3 --multiclass ovo",
        "train two.csv -b 3 --multiclass ovo",
        "compress two.slim two.csv -b 3 --multiclass ovo",
        "train rows.csv --task novelty -C 3",
        "export small.slim -f c --limit 3",
        "export small.slim -f js --precision int8",
        "predict small.slim rows.csv --scores --proba",
    ],
)
def test_other_options_without_use_are_refused_too(words, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    if "two" in words and not Path("two.csv").exists():
        Path("two.csv").write_text("\n".join(Path("rows.csv").read_text().splitlines()[:60]))
        assert cli.run(["train", "two.csv", "-o", "two.slim"]) == 0
        capsys.readouterr()
    assert cli.run(words.split()) in (1, 2)
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("slimsvm: error: ")


# Endings of paths.

ENDINGS = sorted({"", ".txt", ".csv", ".html", ".slim", *NO_ROWS, *ALSO, *(each.ending for each in EXPORTERS.values())})
WHAT = {"demo": "a model", "train": "a model", "compress": "a model", "tune": "a model", "report": "a page"} | {
    "predict": "predictions, one a line",
    "tradeoff": "a table of runs",
}


@pytest.mark.parametrize("command", [name for name in BASE if name != "info"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_output_is_what_its_ending_says_or_refused(command, ending, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    made = {exporter.ending: name for name, exporter in EXPORTERS.items() if exporter.ending} | ALSO
    allowed = {"export": made, "reader": {".c"}}.get(command) or WRITTEN[WHAT[command]]
    if ending in allowed:
        return  # other tests read what is written
    before = sorted(folder.iterdir())
    assert cli.run([*BASE[command].split(), "-o", f"made{ending}"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert f"made{ending}" in error
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("ending", NO_ROWS)
def test_rows_are_not_read_from_files_of_other_kinds(ending, tmp_path):
    file = tmp_path / f"rows{ending}"
    file.write_text("1 1:2\n-1 1:3\n")
    with pytest.raises(ValueError, match=r"is no format of rows here; the formats are .*\. Save a spreadsheet"):
        read_data(file)


def test_python_functions_look_at_endings_too(folder, tmp_path):
    X, y = read_data(folder / "rows.csv")
    model = SlimSVC().fit(X, y)
    with pytest.raises(ValueError, match=r"does not end in \.slim, .* 'm\.slim'; for a pickle, use joblib"):
        slimsvm.save(model, tmp_path / "m.pkl")
    with pytest.raises(ValueError, match=r"name it 'm\.slim'; for m\.onnx, export m\.slim then"):
        slimsvm.save(model, tmp_path / "m.onnx")
    with pytest.raises(ValueError, match=r"does not end in \.csv, as the file of a table of runs does"):
        tradeoff(X, y, methods=["nystroem"], budgets=[2], file=tmp_path / "runs.xlsx")
    with pytest.raises(ValueError, match=r"does not end in \.html or \.htm"):
        report(folder / "runs.csv", X, y, tmp_path / "page.pdf")
    assert not list(tmp_path.iterdir())


# Parameters.


@pytest.mark.parametrize("unused", [{"reducer": "spsvm"}, {"reducer": Slim(metric="both")}, {"scoring": "accuracy"}])
def test_settings_for_shrinking_without_a_limit_are_warned_of(unused):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    (name,) = unused
    with pytest.warns(UserWarning, match=f"^{name}=.* does nothing here"):
        SlimSVC(**unused).fit(X, y)
    SlimSVC(reducer=Slim()).fit(X, y)


def test_a_model_has_no_more_vectors_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    with pytest.warns(UserWarning, match="budget=90 is above the number of rows, 40"):
        model = SlimSVC(90, trainer=None, reducer=Slim(steps=3), random_state=0).fit(X, y)
    assert len(model.support_vectors_) <= 40
