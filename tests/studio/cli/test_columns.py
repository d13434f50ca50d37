"""Columns at the command line: a reordered table predicts the same, in every command that reads rows."""

import json

import numpy as np
import pandas as pd
import pytest

import slimsvm
from slimsvm.studio.cli import commands as cli
from slimsvm.studio.tradeoff import read_rows

NAMES = ["ax_mean", "ax_std", "energy", "steps", "phase"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, its columns in another order, with an index, and without one of the features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 5)) * [1, 10, 100, 1, 1000]
    label = np.where(X[:, 0] + X[:, 1] / 10 > 0, "walk", np.where(X[:, 2] > 50, "run", "sit"))
    frame, folder = pd.DataFrame(X.round(3), columns=NAMES).assign(activity=label), tmp_path_factory.mktemp("tables")
    frame.to_csv(folder / "rows.csv", index=False)
    frame[["activity", *NAMES[::-1]]].to_csv(folder / "reordered.csv", index=False)
    frame.assign(hour=9)[[*NAMES[::-1], "hour", "activity"]].to_csv(folder / "more.csv", index=False)
    frame.to_csv(folder / "index.csv")
    frame.drop(columns="energy").to_csv(folder / "less.csv", index=False)
    label = ["--label", "activity"]
    for name, scale in (("plain", "none"), ("scaled", "standard")):
        train = [
            "train",
            str(folder / "rows.csv"),
            *label,
            "--scale",
            scale,
            "-b",
            "12",
            "-o",
            str(folder / f"{name}.slim"),
        ]
        assert cli.run(train) == 0
    return folder


def run(capsys, *arguments):
    capsys.readouterr()
    code = cli.run([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("model", ["plain", "scaled"])
@pytest.mark.parametrize("table", ["reordered", "more", "index"])
def test_predict_finds_columns_by_name(model, table, folder, capsys):
    label = ["--label", "activity"]
    _, expected, quality = run(capsys, "predict", folder / f"{model}.slim", folder / "rows.csv", *label)
    code, found, words = run(capsys, "predict", folder / f"{model}.slim", folder / f"{table}.csv", *label)
    assert code == 0
    assert found == expected
    assert quality in words
    assert "feature names" not in words
    assert ("'hour'" in words) == (table == "more")


def test_a_missing_column_is_an_error(folder, capsys):
    code, out, words = run(capsys, "predict", folder / "plain.slim", folder / "less.csv")
    assert (code, out) == (1, "")
    assert "lacks 1 of the model's features, ['energy']" in words


def test_compress_and_export_find_columns_by_name(folder, capsys):
    for table in ("rows", "reordered"):
        model, data = folder / "scaled.slim", folder / f"{table}.csv"
        small, c = folder / f"{table}-small.slim", folder / f"{table}.c"
        label = ["--label", "activity"]
        assert run(capsys, "compress", model, data, *label, "-b", "5", "-o", small)[0] == 0
        code, *words = run(capsys, "export", small, "--precision", "int8", "--rows", data, *label, "-o", c)
        assert code == 0, words
    assert (folder / "rows-small.slim").read_bytes() == (folder / "reordered-small.slim").read_bytes()
    assert (folder / "rows.c").read_text() == (folder / "reordered.c").read_text().replace("reordered", "rows")


def test_names_are_saved_and_shown(folder, capsys):
    code, out, _ = run(capsys, "info", folder / "scaled.slim")
    assert code == 0
    assert "5: ax_mean, ax_std, energy, steps, phase" in out
    frame = pd.read_csv(folder / "rows.csv")[NAMES]
    for name in ("plain", "scaled"):
        model = slimsvm.load(folder / f"{name}.slim")
        assert list(model.feature_names_in_) == NAMES
        assert list(model.predict(frame)) == run(capsys, "predict", folder / f"{name}.slim", folder / "rows.csv")[1].split()
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame[NAMES[::-1]])


def test_exports_tell_the_order_of_the_features(folder, capsys):
    for ending in ("h", "c", "json", "mjs"):
        target = folder / f"names.{ending}"
        if ending != "h":
            assert run(capsys, "export", folder / "plain.slim", "-o", target)[0] == 0
    assert json.loads((folder / "names.json").read_text())["names"] == NAMES
    for ending in ("h", "mjs"):
        text = (folder / f"names.{ending}").read_text()
        places = [text.index(name) for name in NAMES]
        assert places == sorted(places)


def test_tradeoff_and_report_know_the_names(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    options = ["--label", "activity", "-m", "nystroem", "-b", "2"]
    for table in ("rows.csv", "reordered.csv"):
        assert run(capsys, "tradeoff", "rows.csv", "--test", table, *options)[0] == 0
    assert len(read_rows("tradeoff.csv")) == 2  # to a trade-off the two tables are the same rows
    assert run(capsys, "tradeoff", "rows.csv", "-C", "3", *options)[0] == 0
    code, _, words = run(capsys, "report")
    assert code == 0
    assert "tradeoff.csv has 2 runs of other data or settings too; the page shows the last: rows.csv" in words
    page = (folder / "report.html").read_text()
    assert f'"names":{json.dumps(NAMES, separators=(",", ":"))}' in page


def test_features_on_different_scales_are_standardised_and_it_is_said(folder, tmp_path, capsys):
    arguments = ["train", folder / "rows.csv", "--label", "activity", "-b", "4", "-o"]
    for scale, step in (("auto", "StandardScaler"), ("none", "none"), ("robust", "RobustScaler")):
        _, out, words = run(capsys, *arguments, tmp_path / f"{scale}.slim", "--scale", scale)
        assert ("are standardised" in words) == (scale == "auto")
        assert out.split("preprocessing")[1].split()[0] == step


def test_tune_keeps_the_names(folder, capsys):
    where = folder / "tuned.slim"
    table = folder / "reordered.csv"
    assert run(capsys, "tune", table, "--label", "activity", "-b", "4", "--trials", "2", "-o", where)[0] == 0
    assert list(slimsvm.load(where).feature_names_in_) == NAMES[::-1]
