import csv

import numpy as np
import pytest
from sklearn.datasets import make_moons

from slimsvm import load
from slimsvm.studio.cli.commands import run

pytestmark = pytest.mark.usefixtures("quick_slim")


@pytest.fixture
def data(tmp_path):
    X, y = make_moons(60, noise=0.15, random_state=0)
    path = tmp_path / "moons.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="", fmt=["%.6g", "%.6g", "%d"])
    return path


def test_tune_writes_the_model_and_the_table(data, tmp_path, capsys):
    model, table = tmp_path / "m.slim", tmp_path / "trials.csv"
    assert run(["tune", str(data), "-b", "2", "--trials", "1", "-o", str(model), "--table", str(table)]) == 0
    shown = capsys.readouterr()
    assert "settings chosen" in shown.out
    assert "validation error of these settings" in shown.out
    assert shown.err == ""
    assert len(load(model)[-1].support_vectors_) <= 2
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert rows[-1]["stage"] == "last fit"
    assert float(rows[0]["gamma"]) > 0


def test_without_a_limit_the_model_is_a_full_one(data, tmp_path, capsys):
    assert run(["tune", str(data), "--trials", "1", "-o", str(tmp_path / "m.slim")]) == 0
    assert "settings chosen" in capsys.readouterr().out
    assert load(tmp_path / "m.slim")[-1].budget is None


def test_numbers_are_tuned_by_a_regressor(data, tmp_path, capsys):
    model = tmp_path / "m.slim"
    assert run(["tune", str(data), "--task", "regress", "-b", "2", "--trials", "1", "-o", str(model)]) == 0
    shown = capsys.readouterr().out
    assert "epsilon" in shown
    assert "(1 - R^2)" in shown
    assert type(load(model)[-1]).__name__ == "SlimSVR"


WRONG = {
    "bad error": (["--max-error", "2"], 2, "not a share of errors"),
    "few bytes": (["-b", "10 B"], 1, "--budget '10 B' is too small: with one support vector the C takes"),
    "no time": (["-b", "2", "--time-limit", "1e-9"], 1, "--time-limit=1e-09 is too short for one trial"),
    "novelty": (["-b", "2", "--task", "novelty"], 2, "novelty detection has no labels"),
    "weights": (["-b", "2", "--task", "regress", "--balanced"], 2, "--balanced is for --task classify"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_end_in_one_line(case, data, tmp_path, capsys):
    options, code, words = WRONG[case]
    assert run(["tune", str(data), "-o", str(tmp_path / "m.slim"), *options]) == code
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "m.slim").exists()


def test_the_model_is_not_overwritten(data, tmp_path, capsys):
    (tmp_path / "m.slim").write_text("mine")
    assert run(["tune", str(data), "-b", "2", "-o", str(tmp_path / "m.slim")]) == 2
    assert "exists already" in capsys.readouterr().err
