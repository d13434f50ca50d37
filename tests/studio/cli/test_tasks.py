"""`--task`: regression and novelty detection from the command line, and what does not go together."""

import numpy as np
import pytest

import slimsvm
from slimsvm import SlimOneClassSVM, SlimSVR
from slimsvm.ship.export import EXPORTERS
from slimsvm.studio.cli import commands as cli
from slimsvm.studio.cli.tasks import labels_of, quality

pytestmark = pytest.mark.usefixtures("quick_slim")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rows with a real target, alone, and with a column of words."""
    folder = tmp_path_factory.mktemp("data")
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    np.savetxt(folder / "values.csv", np.column_stack([X, y]), delimiter=",")
    np.savetxt(folder / "rows.csv", X, delimiter=",")
    np.savez(folder / "both.npz", X=X, y=y)
    words = "\n".join(",".join([*map(repr, row), "ab"[number % 2]]) for number, row in enumerate(X.tolist()))
    (folder / "words.csv").write_text(f"u,v,w,kind\n{words}\n")
    (folder / "endless.csv").write_text("a,b,t\n1,2,inf\n2,3,4\n")
    return folder


def train(files, name, *options):
    return cli.run(["train", str(files / name), *options])


@pytest.mark.parametrize("name", ["values.csv", "both.npz"])
def test_a_regressor_is_trained_and_predicts(name, files, tmp_path, capsys):
    model, data = tmp_path / "m.slim", str(files / name)
    options = ["--task", "regress", "-b", "16", "--epsilon", "0.05", "-C", "10", "--scale", "standard", "--test", data]
    assert train(files, name, *options, "-o", str(model)) == 0
    shown = capsys.readouterr().out
    assert "R^2 on these rows" in shown
    assert "R^2 on test rows" in shown
    loaded = slimsvm.load(model)
    assert isinstance(loaded[-1], SlimSVR)
    assert (loaded[-1].epsilon, loaded[-1].C) == (0.05, 10)
    assert cli.run(["predict", str(model), data, *(["--label", "3"] if name.endswith("csv") else [])]) == 0
    captured = capsys.readouterr()
    X = np.loadtxt(files / "rows.csv", delimiter=",")
    np.testing.assert_allclose([float(line) for line in captured.out.splitlines()], loaded.predict(X), rtol=1e-12)
    assert captured.err.startswith("R^2 0.9")
    assert cli.run(["info", str(model)]) == 0
    assert "1 (regression)" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize(("name", "target"), [("rows.csv", []), ("words.csv", ["--label", "kind"]), ("both.npz", [])])
def test_a_novelty_detector_needs_no_labels(name, target, files, tmp_path, capsys):
    model = tmp_path / "m.slim"
    assert train(files, name, "--task", "novelty", "--nu", "0.1", *target, "-o", str(model)) == 0
    assert "novel on these rows" in capsys.readouterr().out
    loaded, X = slimsvm.load(model), np.loadtxt(files / "rows.csv", delimiter=",")
    assert isinstance(loaded, SlimOneClassSVM)
    assert loaded.nu == 0.1
    assert cli.run(["predict", str(model), str(files / "rows.csv")]) == 0
    captured = capsys.readouterr()
    assert [int(line) for line in captured.out.splitlines()] == loaded.predict(X).tolist()
    assert captured.err.startswith("novel ")
    assert cli.run(["predict", str(model), str(files / "rows.csv"), "--scores"]) == 0
    scores = np.array(capsys.readouterr().out.split(), float)
    np.testing.assert_allclose(scores, loaded.decision_function(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("target", EXPORTERS)
@pytest.mark.parametrize("task", ["regress", "novelty"])
def test_each_target_is_written(task, target, files, tmp_path, capsys):
    if target == "onnx":
        pytest.importorskip("onnx")
    model = tmp_path / "m.slim"
    # a LIBSVM file holds no width for each point
    assert train(files, "values.csv", "--task", task, "-b", "9", "--metric", "fixed", "-o", str(model)) == 0
    assert cli.run(["export", str(model), "-f", target]) == 0
    assert (tmp_path / f"m{EXPORTERS[target].ending}").exists()
    capsys.readouterr()


def test_integers_take_their_range_from_rows_without_labels(files, tmp_path, capsys):
    model = tmp_path / "m.slim"
    assert train(files, "rows.csv", "--task", "novelty", "-b", "9", "-o", str(model)) == 0
    arguments = ["export", str(model), "-f", "c", "--precision", "int16", "--rows", str(files / "rows.csv")]
    assert cli.run(arguments) == 0
    capsys.readouterr()


REFUSED = {
    "words for targets": ("words.csv", ["--task", "regress"], 2, "the target 'a' is not a number"),
    "an infinite target": ("endless.csv", ["--task", "regress"], 1, "'inf'"),
    "no such task": ("values.csv", ["--task", "sing"], 2, "classify, regress, novelty"),
    "epsilon below 0": ("values.csv", ["--task", "regress", "--epsilon", "-0.1"], 2, "0 or more"),
    "epsilon of nan": ("values.csv", ["--task", "regress", "--epsilon", "nan"], 2, "0 or more"),
    "nu of 0": ("rows.csv", ["--task", "novelty", "--nu", "0"], 2, "above 0 and up to 1"),
    "nu above 1": ("rows.csv", ["--task", "novelty", "--nu", "1.01"], 2, "above 0 and up to 1"),
    "nu for regression": ("values.csv", ["--task", "regress", "--nu", "0.5"], 2, "--nu is for --task novelty"),
    "epsilon for classes": ("words.csv", ["--epsilon", "0.5"], 2, "--epsilon is for --task regress"),
    "C for novelty": ("rows.csv", ["--task", "novelty", "-C", "2"], 2, "-C is for --task classify or regress"),
    "balanced values": ("values.csv", ["--task", "regress", "--balanced"], 2, "--balanced is for --task classify"),
    "a trainer of classes": ("values.csv", ["--task", "regress", "--trainer", "pegasos"], 2, "there are ['bsgd', 'smo']"),
    "a reducer of classes": ("values.csv", ["--task", "regress", "-b", "5", "--reducer", "slant"], 2, "for classes"),
    "no trainer": ("rows.csv", ["--task", "novelty", "--trainer", "none", "-b", "5"], 2, "has none; give --trainer 'smo'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_one_line(name, files, tmp_path, capsys):
    data, options, code, words = REFUSED[name]
    assert train(files, data, *options, "-o", str(tmp_path / "m.slim")) == code
    message = capsys.readouterr().err
    assert words in message
    assert len(message.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_regressor_has_no_scores(files, tmp_path, capsys):
    assert train(files, "values.csv", "--task", "regress", "-b", "5", "-o", str(tmp_path / "m.slim")) == 0
    assert cli.run(["predict", str(tmp_path / "m.slim"), str(files / "rows.csv"), "--scores"]) == 2
    assert "no scores" in capsys.readouterr().err


def test_figures_are_what_their_names_say():
    y = np.array([1.0, 2.0, 3.0])
    assert quality("regress", y, y) == ("R^2", "1.0000 (root mean squared error 0)")
    assert quality("regress", np.full(3, 2.0), y)[1].startswith("0.0000")
    assert "undefined" in quality("regress", y, np.ones(3))[1]
    assert quality("novelty", np.array([1, -1, 1, 1]), None) == ("novel", "25.00 % (1 of 4)")
    assert quality("classify", np.array([1, 2]), np.array([1, 1])) == ("accuracy", "50.00 % (1 of 2)")
    assert quality("classify", np.array([1, 2]), None) is None


def test_numbers_beyond_those_that_are_exact_are_targets_too():
    """Data files keep them as text, since as labels they would merge."""
    np.testing.assert_array_equal(labels_of("regress", np.array(["1e17", "2"])), [1e17, 2.0])
