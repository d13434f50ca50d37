"""The command line as a user sees it: files in, files and lines out, exit codes, one-line errors."""

import io
import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm import Interrupted, estimators
from slimsvm import clock as deadline
from slimsvm.estimators.resume import CheckpointFile
from slimsvm.files import datasets, models
from slimsvm.files.datasets import read_data
from slimsvm.model import Status
from slimsvm.reducers import REDUCERS
from slimsvm.ship.export import EXPORTERS
from slimsvm.studio.cli import commands as cli
from slimsvm.studio.cli import names
from slimsvm.trainers import TRAINERS

pytestmark = pytest.mark.usefixtures("quick_slim")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Breast cancer rows in the three formats, split in two."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    for name, rows, labels in (("train", X, y), ("test", X_test, y_test)):
        dump_svmlight_file(rows, labels, str(folder / f"{name}.libsvm"), zero_based=False)
        words = np.array(["bad", "good"])[labels]
        lines = [",".join([*map(repr, row), word]) for row, word in zip(rows.tolist(), words, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        first = [",".join([word, *map(repr, row)]) for row, word in zip(rows.tolist(), words, strict=True)]
        (folder / f"{'first' if name == 'train' else 'other'}.csv").write_text("\n".join(first) + "\n")
    np.savez(folder / "both.npz", X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    (folder / "values.csv").write_text("1,2,0.25\n3,4,0.75\n")
    joblib.dump(make_pipeline(StandardScaler(), SVC()).fit(X, y), folder / "svc.joblib")
    return folder


@pytest.mark.parametrize("name", ["train.libsvm", "train.csv", "both.npz"])
def test_train_and_predict_work_on_each_format(files, tmp_path, capsys, name):
    model = tmp_path / "m.slim"
    assert cli.run(["train", str(files / name), "-o", str(model), "-b", "20", "--scale", "standard"]) == 0
    assert "support vectors" in capsys.readouterr().out
    assert slimsvm.load(model)[-1].support_vectors_.shape[0] <= 20
    test = files / name.replace("train", "test")
    assert cli.run(["predict", str(model), str(test)]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 143
    assert float(captured.err.split()[1]) > 90  # "accuracy 9x.xx % (… of 143)"


def test_predict_writes_the_labels_that_python_predicts(files, tmp_path, capsys):
    model, out = tmp_path / "m.slim", tmp_path / "labels.txt"
    assert cli.run(["train", str(files / "both.npz"), "-o", str(model), "--scale", "standard"]) == 0
    assert cli.run(["predict", str(model), str(files / "both.npz"), "-o", str(out)]) == 0
    capsys.readouterr()
    X_test = np.load(files / "both.npz")["X_test"]
    loaded = slimsvm.load(model)
    np.testing.assert_array_equal(np.loadtxt(out, dtype=int), loaded.predict(X_test))
    assert cli.run(["predict", str(model), str(files / "both.npz"), "--scores"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    np.testing.assert_allclose(scores, loaded.decision_function(X_test), rtol=1e-9, atol=1e-12)


def test_compress_shrinks_a_slim_file_and_a_trusted_pickle(files, tmp_path, capsys):
    big, small = tmp_path / "big.slim", tmp_path / "small.slim"
    data = str(files / "both.npz")
    assert cli.run(["train", data, "-o", str(big), "--scale", "minmax"]) == 0
    for model, trust in ((big, []), (files / "svc.joblib", ["--trust"])):
        assert cli.run(["compress", str(model), data, "-o", str(small), "-b", "12", "--test", data, "--force", *trust]) == 0
        assert "accuracy on test rows" in capsys.readouterr().out
        assert slimsvm.load(small)[-1].support_vectors_.shape[0] <= 12


def test_the_small_model_is_shown_beside_the_full_one(files, tmp_path, capsys):
    data = str(files / "both.npz")
    train = ["train", data, "--scale", "standard", "--test", data, "-o"]
    assert cli.run([*train, str(tmp_path / "small.slim"), "-b", "9", "--reducer", "spsvm"]) == 0
    shown = capsys.readouterr().out
    assert cli.run([*train, str(tmp_path / "full.slim")]) == 0
    assert "small model" not in capsys.readouterr().out
    full = slimsvm.load(tmp_path / "full.slim")
    compress = ["compress", str(tmp_path / "full.slim"), data, "-b", "9", "--reducer", "spsvm", "--test", data]
    assert cli.run([*compress, "-o", str(tmp_path / "again.slim")]) == 0
    rows = np.load(files / "both.npz")
    right = int((full.predict(rows["X_test"]) == rows["y_test"]).sum())
    for out in (shown, capsys.readouterr().out):
        assert re.search(rf"support vectors +{full[-1].model_.size} +9 ", out)
        assert re.search(rf"accuracy on test rows .*\({right} of 143\) .*of 143\)", out)


def test_probabilities_are_written_in_the_order_of_the_classes(files, tmp_path, capsys):
    model = tmp_path / "m.slim"
    words = ["train", str(files / "train.csv"), "-o", str(model), "-b", "9", "--scale", "standard", "--reducer", "spsvm"]
    assert cli.run([*words, "--calibration", "sigmoid"]) == 0
    capsys.readouterr()
    assert cli.run(["predict", str(model), str(files / "test.csv"), "--proba"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0] == "classes bad good"
    shown = np.array([line.split() for line in printed.out.splitlines()], dtype=float)
    X, _ = read_data(files / "test.csv")
    np.testing.assert_allclose(shown, slimsvm.load(model).predict_proba(X), rtol=1e-12)
    small = tmp_path / "small.slim"
    words = ["compress", str(model), str(files / "train.csv"), "-b", "5", "--reducer", "spsvm", "-o", str(small)]
    assert cli.run([*words, "--calibration", "temperature"]) == 0
    assert slimsvm.load(small)[-1].calibration_.name == "temperature"


@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_scores_are_written_in_the_order_of_the_classes(labels, tmp_path, capsys):
    rows = [f"{number},{number % 7},{labels[number * len(labels) // 60]}" for number in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(rows))
    train = ["train", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "m.slim"), "-b", "6", "--reducer", "spsvm"]
    assert cli.run(train) == 0
    capsys.readouterr()
    assert cli.run(["predict", str(tmp_path / "m.slim"), str(tmp_path / "rows.csv"), "--scores"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0] == ("above 0 b else a" if labels == "ab" else "classes a b c")
    assert float(printed.out.split()[0]) < 0 or labels == "abc"


def test_the_outputs_of_many_classes_can_be_chosen(tmp_path):
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    words = ["train", str(tmp_path / "iris.npz"), "-b", "6", "--reducer", "spsvm", "--multiclass", "dag"]
    assert cli.run([*words, "-o", str(tmp_path / "m.slim")]) == 0
    assert slimsvm.load(tmp_path / "m.slim").goal_.name == "dag"
    words = ["compress", str(tmp_path / "m.slim"), str(tmp_path / "iris.npz"), "-b", "4", "--reducer", "spsvm"]
    assert cli.run([*words, "--multiclass", "ovr", "-o", str(tmp_path / "small.slim")]) == 0
    assert slimsvm.load(tmp_path / "small.slim").goal_.name == "ovr"


@pytest.mark.parametrize("name", ["test.csv", "other.csv", "test.libsvm", "both.npz"])
def test_rows_come_from_a_pipe_too(name, files, small, monkeypatch, capsys):
    label = ["--label", "0"] if name == "other.csv" else []
    assert cli.run(["predict", str(small), str(files / name), *label]) == 0  # sparse rows too, which its scaler centres
    expected = capsys.readouterr().out
    stdin = io.TextIOWrapper(io.BytesIO((files / name).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert cli.run(["predict", str(small), "-", *label]) == 0
    assert capsys.readouterr().out == expected
    assert len(expected.splitlines()) == 143


def test_an_empty_pipe_is_one_line(small, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert cli.run(["predict", str(small), "-"]) == 1
    assert capsys.readouterr().err == "slimsvm: error: cannot read the standard input: it is empty\n"


def test_many_classes_of_few_rows_are_warned_of(tmp_path, capsys):
    lines = [f"{number % 5},{number % 3},{number}" for number in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    assert cli.run(["train", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "m.slim"), "--max-iter", "5"]) == 0
    (warning, *_) = lines = capsys.readouterr().err.splitlines()
    assert "60 classes in 60 rows" in warning
    assert not any("unique classes" in line for line in lines)  # scikit-learn's words for the same


def test_info_tells_size_and_cost(files, tmp_path, capsys):
    model = tmp_path / "m.slim"
    cli.run(["train", str(files / "train.csv"), "-o", str(model), "-b", "9"])
    capsys.readouterr()
    assert cli.run(["info", str(model)]) == 0
    out = capsys.readouterr().out
    for word in ("rbf", "bad, good", "support vectors", "multiply-adds per prediction"):
        assert word in out


def test_demo_prints_its_table_and_writes_the_model(tmp_path, capsys):
    model = tmp_path / "digits.slim"
    assert cli.run(["demo", "-o", str(model), "-b", "40"]) == 0
    out = capsys.readouterr().out
    for word in ("support vectors", "bytes", "test accuracy", "µs per prediction", "full", "slim"):
        assert word in out
    assert slimsvm.load(model).support_vectors_.shape[0] <= 40


@pytest.fixture(scope="module")
def small(files):
    """A small model with its scaler."""
    path = files / "small.slim"
    assert (
        cli.run(["train", str(files / "train.csv"), "-o", str(path), "-b", "9", "--scale", "standard", "--metric", "fixed"])
        == 0
    )
    return path


@pytest.mark.parametrize("target", [name for name, kind in EXPORTERS.items() if kind.ending])
def test_export_writes_each_target(small, tmp_path, capsys, target):
    if target == "onnx":
        pytest.importorskip("onnx")
    output = tmp_path / f"m{EXPORTERS[target].ending}"
    model = shutil.copy(small, tmp_path / "m.slim")
    words = ["export", str(model), "-f", target]
    if target == "libsvm":
        assert cli.run(words) == 1  # its labels are words
        assert "whole numbers" in capsys.readouterr().err
        return
    capsys.readouterr()
    assert cli.run(words) == 0
    assert capsys.readouterr().out.startswith(f"{output} ({output.stat().st_size:,} bytes)\n")
    written = output.read_bytes()
    assert cli.run(["export", str(model), "-o", str(output)]) == 2
    assert "--force" in capsys.readouterr().err
    assert cli.run(["export", str(model), "-o", str(output), "--force"]) == 0
    assert output.read_bytes() == written


def test_info_and_export_state_the_same_cost(small, files, tmp_path, capsys):
    assert cli.run(["info", str(small)]) == 0
    told = capsys.readouterr().out
    for precision in ("float32", "int8"):
        source = tmp_path / f"{precision}.c"
        words = ["export", str(small), "-o", str(source), "--precision", precision]
        rows = ["--rows", str(files / "train.csv")] if precision == "int8" else []
        assert cli.run([*words, *rows]) == 0
        assert ("int8 tables predict as the model does on" in capsys.readouterr().out) is (precision == "int8")
        flash = re.search(r"flash  ([\d,]+) bytes", source.read_text())[1]
        assert re.search(rf"flash as {precision} C tables +{flash} bytes", told)
        assert re.search(rf"bytes as {precision} C +[\d,]+", told)


def test_export_takes_rows_with_labels_anywhere_or_nowhere(small, files, tmp_path, capsys):
    cells = [line.split(",") for line in (files / "train.csv").read_text().splitlines()]
    first, bare = tmp_path / "first.csv", tmp_path / "bare.csv"
    first.write_text("\n".join(",".join([row[-1], *row[:-1]]) for row in cells))
    bare.write_text("\n".join(",".join(row[:-1]) for row in cells))
    told = set()
    for words in ([str(files / "train.csv")], [str(first), "--label", "0"], [str(bare)]):
        output = ["-o", str(tmp_path / "m.c"), "--force"]
        assert cli.run(["export", str(small), *output, "--precision", "int8", "--rows", *words]) == 0
        told.add(capsys.readouterr().out)
    assert len(told) == 1


def test_libsvm_models_are_compressed_and_predicted(files, tmp_path, capsys):
    X, y = load_breast_cancer(return_X_y=True)
    svc = SVC(gamma=1e-3).fit(X, y)
    (model,) = slimsvm.export(svc, tmp_path / "big.libsvm")
    small, data = tmp_path / "small.slim", str(files / "test.libsvm")
    assert cli.run(["compress", str(model), data, "-o", str(small), "-b", "9"]) == 0
    assert slimsvm.load(small).support_vectors_.shape[0] <= 9
    capsys.readouterr()
    assert cli.run(["predict", str(model), data]) == 0
    rows, _ = read_data(files / "test.libsvm")
    np.testing.assert_array_equal(np.array(capsys.readouterr().out.split(), dtype=int), svc.predict(rows.toarray()))


def test_a_libsvm_model_takes_rows_with_more_features_than_it_names(tmp_path, capsys):
    text = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nlabel 1 -1\nnr_sv 1 0\nSV\n1 1:1\n"
    (tmp_path / "m").write_text(text)
    (tmp_path / "rows").write_text("1 1:2 4:1\n-1 1:-2 3:5\n")
    assert cli.run(["predict", str(tmp_path / "m"), str(tmp_path / "rows")]) == 0
    assert capsys.readouterr().out.split() == ["1", "-1"]


def test_train_without_a_trainer_goes_straight_to_a_small_model(files, tmp_path, capsys):
    words = ["train", str(files / "both.npz"), "-o", str(tmp_path / "m.slim"), "--scale", "standard", "--trainer", "none"]
    assert cli.run([*words, "--reducer", "nystroem", "-b", "9"]) == 0
    model = slimsvm.load(tmp_path / "m.slim")[-1]
    assert (model.trainer, model.n_iter_) == (None, 0)
    assert model.support_vectors_.shape[0] <= 9
    assert cli.run([*words, "--reducer", "slant", "-b", "9", "--force"]) == 2
    assert "nystroem" in capsys.readouterr().err


@pytest.fixture(params=["train", "compress"])
def shrinking(request, files, tmp_path):
    """A command that shrinks a model to 30 support vectors, and where it writes it."""
    output, data = tmp_path / "m.slim", str(files / "both.npz")
    given = [data, "--scale", "standard"] if request.param == "train" else [str(files / "svc.joblib"), data, "--trust"]
    return [request.param, *given, "-o", str(output), "-b", "30", "--reducer", "slant-aggressive"], output


def test_a_time_limit_is_for_all_of_the_work(shrinking, monkeypatch, capsys):
    command, output = shrinking
    clock = iter(range(10**9))  # a second further at each look
    monkeypatch.setattr(deadline, "perf_counter", lambda: next(clock))
    assert cli.run([*command, "--time-limit", "40"]) == 0
    warnings = capsys.readouterr().err.splitlines()
    assert any(line.startswith("slimsvm: warning: AggressiveSlant stopped at the time limit") for line in warnings)
    model = slimsvm.load(output)[-1]
    assert (model.time_limit if command[0] == "train" else model.reducer.time_limit) == 40.0


def test_a_command_that_died_goes_on_from_its_checkpoint(files, tmp_path, monkeypatch, capsys):
    command = ["train", str(files / "both.npz"), "--scale", "standard", "-b", "4", "-o"]
    assert cli.run([*command, str(tmp_path / "whole.slim")]) == 0
    saving = [*command, str(tmp_path / "m.slim"), "--checkpoint", str(tmp_path / "state")]
    write = CheckpointFile.write

    def killed(self):
        write(self)
        raise SystemExit  # nothing else can be done after SIGKILL

    monkeypatch.setattr(CheckpointFile, "write", killed)
    with pytest.raises(SystemExit):
        cli.run(saving)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "whole.slim"]
    monkeypatch.setattr(CheckpointFile, "write", write)
    capsys.readouterr()
    assert cli.run([*saving, "-C", "3"]) == 1
    assert "it is of other settings (C was '1.0')" in capsys.readouterr().err
    assert cli.run(saving) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.slim", "whole.slim"]
    models = [slimsvm.load(tmp_path / name)[-1].model_ for name in ("m.slim", "whole.slim")]
    np.testing.assert_array_equal(models[0].points, models[1].points)
    np.testing.assert_array_equal(models[0].coef, models[1].coef)


def test_a_checkpoint_is_for_methods_that_can_go_on(files, tmp_path, capsys):
    words = ["train", str(files / "both.npz"), "-o", str(tmp_path / "m.slim"), "--checkpoint", str(tmp_path / "state")]
    assert cli.run([*words, "--trainer", "lp"]) == 1
    assert "the trainer LP cannot continue from a checkpoint; those that can are ['sbp', 'smo']" in capsys.readouterr().err


def test_a_metric_is_slims(shrinking, capsys):
    command, output = shrinking
    assert cli.run([*command, "--metric", "scales"]) == 2
    assert "slant-aggressive has no metric to learn; the reducers that have are slim" in " ".join(
        capsys.readouterr().err.split()
    )
    command[command.index("--reducer") + 1] = "slim"
    command[command.index("-b") + 1] = "2"
    assert cli.run([*command, "--metric", "scales", "--force"]) == 0
    small = slimsvm.load(output)[-1]
    assert small.reducer.metric == "scales"
    assert np.ptp(small.model_.factors) > 0


@contextmanager
def impatient():
    """Progress that ends the work as Ctrl-C does when the first small model is there."""

    def report(phase, _):
        if phase == "shrink":
            raise KeyboardInterrupt

    yield report


def test_ctrl_c_while_shrinking_writes_nothing_and_says_how_to_keep(shrinking, monkeypatch, capsys):
    command, output = shrinking
    monkeypatch.setattr(cli, "progress", impatient)
    assert cli.run(command) == 130
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "slimsvm: error: interrupted; nothing was written. --keep writes the best model found so far"
    ]
    assert printed.out == ""
    assert not output.exists()


def test_ctrl_c_while_shrinking_writes_the_best_so_far_if_asked(shrinking, monkeypatch, capsys):
    command, output = shrinking
    monkeypatch.setattr(cli, "progress", impatient)
    assert cli.run([*command, "--keep"]) == 130
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"slimsvm: error: interrupted; the best model found so far is in {output}"]
    svc = slimsvm.load(output)[-1]
    assert 0 < svc.support_vectors_.shape[0] < 30
    assert svc.status_ is Status.INTERRUPTED


@pytest.mark.parametrize("keep", [False, True], ids=["not kept", "kept"])
def test_ctrl_c_while_tuning(keep, files, tmp_path, monkeypatch, capsys):
    fit = Pipeline.fit

    def interrupted(self, *args, **kwargs):
        fit(self, *args, **kwargs)
        raise Interrupted(self[-1])

    monkeypatch.setattr(Pipeline, "fit", interrupted)
    output = tmp_path / "m.slim"
    command = ["tune", str(files / "train.csv"), "-b", "2", "--trials", "1", "-o", str(output)]
    assert cli.run([*command, "--keep"] if keep else command) == 130
    said = f"the best model found so far is in {output}" if keep else "nothing was written. --keep writes the best model"
    assert f"slimsvm: error: interrupted; {said}" in capsys.readouterr().err
    assert output.exists() == keep


@pytest.mark.parametrize("command", [["demo"], ["train", "{folder}/train.csv"], ["export", "{folder}/m.slim", "-f", "c"]])
def test_ctrl_c_after_the_file_is_written_does_not_deny_it(command, files, tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    assert (
        cli.run(["train", str(tmp_path / "train.csv"), "-o", str(tmp_path / "m.slim"), "-b", "5", "--reducer", "spsvm"])
        == 0
    )
    output = tmp_path / ("new.c" if command[0] == "export" else "new.slim")
    for name in ("show", "show_result", "show_files"):
        monkeypatch.setattr(cli, name, interrupted)
    capsys.readouterr()
    assert cli.run([*(word.format(folder=tmp_path) for word in command), "-o", str(output)]) == 130
    assert capsys.readouterr().err.endswith(f"slimsvm: error: interrupted after {output} was written\n")
    assert output.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["train", "{folder}/missing.csv"], 1, ["missing.csv", "No such file"]),
        (["train", "{folder}/train.csv", "--budget", "0"], 2, ["--budget", "'0'"]),
        (["train", "{folder}/train.csv", "--budget", "many"], 2, ["--budget", "many"]),
        (["train", "{folder}/train.csv", "--budget", "1_0"], 2, ["--budget", "1_0"]),
        (["train", "{folder}/train.csv", "--budget", "1e30"], 2, ["--budget", "1e30"]),
        (["train", "{folder}/train.csv", "--budget", "9" * 5000], 2, ["--budget", "999..."]),
        (["train", "{folder}/train.csv", "--budget", "nan"], 2, ["--budget", "nan"]),
        (["train", "{folder}/train.csv", "--tolerance", "1"], 2, ["--tolerance", "'1'", "0.005"]),
        (["train", "{folder}/train.csv", "--gamma", "-1"], 2, ["--gamma", "-1"]),
        (["train", "{folder}/train.csv", "--gamma", "wide"], 2, ["--gamma", "wide"]),
        (["train", "{folder}/train.csv", "--gamma", "inf"], 2, ["--gamma", "inf"]),
        (["train", "{folder}/train.csv", "-C", "0"], 2, ["-C", "'0'", "above 0"]),
        (["train", "{folder}/train.csv", "-C", "1_0"], 2, ["-C", "1_0"]),
        (["train", "{folder}/train.csv", "--tol", "nan"], 2, ["--tol", "nan"]),
        (["train", "{folder}/train.csv", "--coef0", "inf"], 2, ["--coef0", "inf"]),
        (["train", "{folder}/train.csv", "--degree", "-1"], 2, ["--degree", "-1"]),
        (["train", "{folder}/train.csv", "--degree", "1001"], 2, ["--degree", "1000"]),
        (["train", "{folder}/train.csv", "--max-iter", "1" + "0" * 30], 2, ["--max-iter", "whole number"]),
        (["train", "{folder}/train.csv", "--seed", "-1"], 2, ["--seed", "-1"]),
        (["train", "{folder}/train.csv", "--seed", "1" + "0" * 30], 2, ["--seed", "4294967295"]),
        (["train", "{folder}/train.csv", "--seed", "9" * 5000], 2, ["--seed", "4294967295"]),
        (["train", "{folder}/train.csv", "--cache-mb", "0"], 2, ["--cache-mb", "'0'"]),
        (["train", "{folder}/train.csv", "--kernel", "fourier"], 2, ["--kernel", "fourier", *names.KERNELS]),
        (["train", "{folder}/train.csv", "--kernel", "precomputed"], 2, ["--kernel", *names.KERNELS]),
        (["train", "{folder}/train.csv", "--reducer", "magic"], 2, ["--reducer", "magic", *REDUCERS]),
        (["train", "{folder}/train.csv", "--trainer", "magic"], 2, ["--trainer", "magic", *TRAINERS, "none"]),
        (["train", "{folder}/train.csv", "--scale", "much"], 2, ["--scale", "much", "minmax"]),
        (["train", "{folder}/train.libsvm", "--scale", "minmax"], 2, ["--scale", "sparse", "maxabs"]),
        (["train", "{folder}/both.npz", "--split", "all"], 2, ["--split", "all", "test"]),
        (["train", "{folder}/train.csv", "--trainer", "none", "-b", "0.5"], 2, ["--trainer none", "--budget 16"]),
        (["train", "{folder}/train.csv", "--trainer", "none", "-t", "0.1"], 2, ["--tolerance", "only a budget"]),
        (["train", "{folder}/train.csv", "--trainer", "none", "--reducer", "lars", "-b", "9"], 2, ["lars", "slim"]),
        (["train", "{folder}/train.csv", "--trainer", "bsgd"], 2, ["trainer 'bsgd'", "--budget 100"]),
        (["train", "{folder}/train.csv", "--trainer", "rbp", "-b", "1"], 2, ["trainer 'rbp'", "--budget 100"]),
        (["train", "{folder}/train.csv", "--time-limit", "0"], 2, ["--time-limit", "'0'"]),
        (["train", "{folder}/train.csv", "--kernel", "chi2", "--scale", "standard"], 1, ["chi2", "negative"]),
        (["train", "{folder}/train.csv", "--label", "9" * 5000], 1, ["no column"]),
        (["train", "{folder}/train.libsvm", "--label", "y"], 1, ["--label 'y'", "CSV"]),
        (["train", "{folder}/values.csv"], 2, ["--label", "0.25 is no class", "--task regress"]),
        (["train", "{folder}/first.csv"], 2, ["is no class", "--label 0 has words", "--task regress"]),
        (["train", "{folder}/train.csv", "--calibration", "magic"], 2, ["--calibration", "sigmoid", "temperature"]),
        (["train", "{folder}/train.csv", "--multiclass", "many"], 2, ["--multiclass", "ovr", "ovo", "dag"]),
        (
            ["train", "{folder}/train.csv", "--task", "novelty", "--calibration", "sigmoid"],
            2,
            ["--calibration"],
        ),
        (["predict", "{folder}/small.slim", "{folder}/train.csv", "--proba"], 2, ["--proba", "--calibration sigmoid"]),
        (["predict", "{folder}/small.slim", "{folder}/train.csv", "--proba", "--scores"], 2, ["--proba", "not both"]),
        (["train", "{folder}/train.csv", "--device", "gpu"], 2, ["--device", "gpu", "cuda", "auto"]),
        (["train", "{folder}/train.csv", "--device", "cuda:99"], 2, ["--device", "cuda:99"]),
        (["compress", "{folder}/small.slim", "{folder}/train.csv", "-b", "9", "--device", "gpu"], 2, ["--device", "cuda"]),
        (["predict", "{folder}/train.csv", "{folder}/train.csv"], 1, ["train.csv"]),
        (["info", "{folder}/nowhere.slim"], 1, ["nowhere.slim"]),
        (["compress", "{folder}/small.slim", "{folder}/train.csv"], 2, ["--budget 50", "--tolerance 0.005"]),
        (["compress", "{folder}/svc.joblib", "{folder}/train.csv", "-b", "9"], 2, ["--trust"]),
        (["predict", "{folder}/svc.joblib", "{folder}/train.csv"], 2, ["--trust"]),
        (["info", "{folder}/svc.joblib"], 2, ["--trust"]),
        (["info", "{folder}/nowhere.pkl", "--trust"], 1, ["nowhere.pkl", "No such file"]),
        (["export", "{folder}/small.slim", "-f", "cobol", "-o", "m.c"], 2, ["--format", "cobol", *EXPORTERS]),
        (["export", "{folder}/small.slim", "-o", "m.txt"], 2, ["m.txt", *EXPORTERS]),
        (["export", "{folder}/small.slim", "-o", "no/m.c"], 2, ["no/m.c"]),
        (["export", "{folder}/small.slim", "-o", "m.c", "--precision", "int3"], 2, ["int3", "int8"]),
        (["export", "{folder}/small.slim", "-o", "m.c", "--precision", "int8", "--limit", "0"], 2, ["--limit", "'0'"]),
        (["export", "{folder}/small.slim", "-o", "m.c", "--precision", "int8", "--limit", "0.1"], 1, ["saturate", "0.1"]),
        (["export", "{folder}/small.slim", "-o", "m.mjs", "--flavor", "svm"], 2, ["flavor"]),
        (["export", "{folder}/nowhere.slim", "-f", "c"], 1, ["nowhere.slim"]),
        (["export", "{folder}/svc.joblib", "-o", "m.c"], 2, ["--trust"]),
        (["train"], 2, ["DATA"]),
        (["train", "{folder}/train.csv", "--bugdet=9"], 2, ["--bugdet=9 (did you mean --budget?)", "slimsvm train -h"]),
        (["train", "{folder}/train.csv", "b"], 2, ["unrecognized arguments: b;"]),
        (["shrink"], 2, ["shrink"]),
    ],
    ids=lambda value: " ".join(word[-12:] for word in value) if isinstance(value, list) else None,
)
@pytest.mark.usefixtures("small")
def test_errors_are_one_line_with_an_exit_code(files, tmp_path, monkeypatch, capsys, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    assert cli.run([argument.format(folder=files) for argument in arguments]) == code
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert error.startswith("slimsvm: error: ")
    for word in words:
        assert word.lower() in error.lower()
    assert list(tmp_path.iterdir()) == []  # nothing half-written


def test_a_budget_beyond_the_model_is_said_in_one_line(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    assert cli.run(["train", str(tmp_path / "iris.npz"), "-o", str(tmp_path / "m.slim"), "-b", "5000"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("slimsvm: warning: --budget 5000 is not below")


#: the commands that write a file, with all but their output; {folder} has the data
WRITERS = {
    "demo": ["demo", "-b", "2"],
    "train": ["train", "{folder}/train.csv", "-b", "5"],
    "compress": ["compress", "{folder}/small.slim", "{folder}/train.csv", "-b", "3"],
    "predict": ["predict", "{folder}/small.slim", "{folder}/train.csv", "--label", "-1"],
    "export": ["export", "{folder}/small.slim", "-f", "json"],
}


@pytest.fixture(params=WRITERS)
def writer(request, files, small):  # noqa: ARG001
    return [word.format(folder=files) for word in WRITERS[request.param]]


@pytest.mark.parametrize(
    "place", ["", ".", "no/such/folder/m.slim", "file/m.slim"], ids=["empty", "folder", "nowhere", "file"]
)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(writer, place, tmp_path, monkeypatch, capsys):
    def work(*_, **__):
        raise AssertionError("began to work")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    for module, name in (
        (estimators, "fit_reporting"),
        (estimators, "compress_within"),
        (datasets, "read_data"),
        (models, "load"),
    ):
        monkeypatch.setattr(module, name, work)
    assert cli.run([*writer, "-o", place]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "--output" in error
    assert str(Path(place)) in error
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_files_are_replaced_by_force_alone(writer, tmp_path, capsys):
    output = tmp_path / {"export": "output.json", "predict": "output.txt"}.get(writer[0], "output.slim")
    output.write_text("mine")
    assert cli.run([*writer, "-o", str(output)]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "--force" in error
    assert str(output) in error
    assert output.read_text() == "mine"
    assert cli.run([*writer, "-o", str(output), "--force"]) == 0
    assert output.read_bytes()[:4] != b"mine"


READERS = {
    "train": ["train", "{file}"],
    "train --test": ["train", "{folder}/train.csv", "--test", "{file}"],
    "compress": ["compress", "{folder}/small.slim", "{file}", "-b", "3"],
    "predict": ["predict", "{folder}/small.slim", "{file}"],
    "predict MODEL": ["predict", "{file}", "{folder}/train.csv"],
    "export": ["export", "{file}", "-f", "json"],
    "tune": ["tune", "{file}", "-b", "3"],
    "tune --table": ["tune", "{folder}/train.csv", "-b", "3", "--table", "{file}"],
    "tradeoff": ["tradeoff", "{file}"],
    "report": ["report", "{file}"],
}


@pytest.mark.parametrize("name", READERS)
def test_what_a_command_reads_is_not_replaced_even_by_force(name, files, tmp_path, capsys):
    file, link = tmp_path / "rows.csv", tmp_path / "link.csv"
    file.write_bytes((files / "train.csv").read_bytes())
    link.symlink_to(file)
    before = file.read_bytes()
    if name == "report":  # rows are read first, for they name the data
        tradeoff = ["tradeoff", "iris", "-m", "nystroem", "-b", "2", "-o", str(file), "--force"]
        assert cli.run(tradeoff) == 0
        capsys.readouterr()
        before = file.read_bytes()
    words = [word.format(folder=files, file=file) for word in READERS[name]]
    assert cli.run([*words, "-o", str(link), "--force"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "is a file that this command reads; give another name" in error
    assert file.read_bytes() == before


def test_no_file_of_an_export_is_replaced_without_force(small, tmp_path, capsys):
    (tmp_path / "m.h").write_text("mine")
    assert cli.run(["export", str(small), "-o", str(tmp_path / "m.c")]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "m.h" in error
    assert "--force" in error
    assert "force=" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["m.h"]


HOSTILE = ["[/a]", "[red]b[/red]", "c\x1b[2J\x07", "d\u202e\u200b", "[link=x]e"]


def test_labels_are_shown_as_they_are_but_for_control_characters(tmp_path, capsys):
    rows = [f"{number},{number % 7},{HOSTILE[number % 5]}" for number in range(50)]
    (tmp_path / "[rows].csv").write_text("\n".join(rows))
    model = tmp_path / "[bold]m.slim"
    assert cli.run(["train", str(tmp_path / "[rows].csv"), "-o", str(model)]) == 0
    assert cli.run(["info", str(model)]) == 0
    shown = capsys.readouterr().out
    assert shown.count(f"{model} (") == 2
    for label in ("[/a]", "[red]b[/red]", "c[2J", "d", "[link=x]e"):
        assert len(re.findall(rf"classes.*{re.escape(label)}", shown)) == 2
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []


def test_predicted_labels_are_exact_in_a_pipe_and_safe_on_a_terminal(tmp_path, capsys, monkeypatch):
    rows = [f"{number},{number % 7},{HOSTILE[2 * (number % 2)]}" for number in range(50)]
    (tmp_path / "rows.csv").write_text("\n".join(rows))
    model = tmp_path / "m.slim"
    assert cli.run(["train", str(tmp_path / "rows.csv"), "-o", str(model), "-C", "1000"]) == 0
    words = ["predict", str(model), str(tmp_path / "rows.csv"), "--label", "-1"]
    capsys.readouterr()
    assert cli.run(words) == 0
    assert set(capsys.readouterr().out.split("\n")[:-1]) == {HOSTILE[0], HOSTILE[2]}
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert cli.run(words) == 0
    assert set(capsys.readouterr().out.split("\n")[:-1]) == {"[/a]", "c[2J"}


def test_errors_have_no_control_characters(tmp_path, capsys):
    assert cli.run(["info", str(tmp_path / "a\x1b[2J\n.slim")]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.isprintable()


@pytest.mark.parametrize("device", ["cpu", "array_api_strict"])
def test_the_device_is_passed_on(device, shrinking):
    command, output = shrinking
    given = [] if device == "cpu" else ["--device", device]
    assert cli.run([*command, *given]) == 0
    assert slimsvm.load(output)[-1].device == device


def test_info_and_predict_take_a_trusted_pickle(files, capsys):
    assert cli.run(["info", str(files / "svc.joblib"), "--trust"]) == 0
    out = capsys.readouterr().out
    for word in ("rbf", "StandardScaler", "support vectors", "multiply-adds per prediction"):
        assert word in out
    assert cli.run(["predict", str(files / "svc.joblib"), str(files / "both.npz"), "--trust"]) == 0
    expected = joblib.load(files / "svc.joblib").predict(np.load(files / "both.npz")["X_test"])
    np.testing.assert_array_equal(np.array(capsys.readouterr().out.split(), dtype=int), expected)


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x04K\x01", b"\x80\x04K\x01.", b"cno.module\nname\n.", b"\xff" * 9], ids=ascii
)
@pytest.mark.parametrize("command", ["info", "predict", "export"])
def test_a_pickle_that_holds_no_model_is_one_line(command, content, files, tmp_path, capsys):
    (tmp_path / "m.pkl").write_bytes(content)
    more = {"info": [], "predict": [str(files / "train.csv")], "export": ["-f", "json"]}[command]
    assert cli.run([command, str(tmp_path / "m.pkl"), *more, "--trust"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("slimsvm: error: ")


@pytest.mark.parametrize(
    "error",
    [OverflowError("too large"), ZeroDivisionError(), RecursionError(), MemoryError(), ImportError("get it")],
    ids=ascii,
)
def test_what_cannot_be_computed_is_one_line(error, files, tmp_path, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(estimators, "fit_reporting", fail)
    assert cli.run(["train", str(files / "train.csv"), "-o", str(tmp_path / "m.slim")]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert (str(error) or {"MemoryError": "not enough memory"}.get(type(error).__name__, type(error).__name__)) in line


def test_a_bug_keeps_its_traceback(files, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise AttributeError("a bug")

    monkeypatch.setattr(estimators, "fit_reporting", fail)
    with pytest.raises(AttributeError, match="a bug"):
        cli.run(["train", str(files / "train.csv"), "-o", str(tmp_path / "m.slim")])


def test_a_table_without_column_names_has_no_empty_line(small, capsys):
    assert cli.run(["info", str(small)]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert str(small) in first
    assert second.split()[0] == "kernel"


def test_a_failed_save_names_the_file_asked_for(tmp_path):
    model = slimsvm.SlimSVC(3, random_state=0).fit(*load_iris(return_X_y=True))
    with pytest.raises(FileNotFoundError) as caught:
        slimsvm.save(model, tmp_path / "nowhere" / "m.slim")
    assert caught.value.filename == str(tmp_path / "nowhere" / "m.slim")


def test_interrupt_ends_with_130_and_no_file(files, tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(estimators, "fit_reporting", interrupted)
    assert cli.run(["train", str(files / "train.csv"), "-o", str(tmp_path / "m.slim")]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_sees_progress(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert cli.run(["train", str(files / "train.csv"), "-o", str(tmp_path / "m.slim"), "-b", "9"]) == 0
    assert "shrink" in capsys.readouterr().err
