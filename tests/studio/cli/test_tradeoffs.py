"""slimsvm tradeoff and slimsvm report, as they are typed."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from slimsvm.studio.cli import commands as cli
from slimsvm.studio.cli import tradeoffs
from slimsvm.studio.tradeoff import read_tradeoff
from slimsvm.studio.tradeoff.rows import read_rows

QUICK = ["-m", "nystroem", "-b", "2,4"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_commands_answer_how_small(here, capsys):
    assert cli.run(["tradeoff", "iris", *QUICK]) == 0
    captured = capsys.readouterr()
    assert "Next: slimsvm report" in captured.out
    assert "support vectors" in captured.out.splitlines()[1]
    assert "instead of" in captured.out
    assert "3/3 nystroem, 4 vectors" in captured.err
    assert cli.run(["report"]) == 0
    assert "report.html" in capsys.readouterr().out
    assert sorted(path.name for path in here.iterdir()) == ["report.html", "report.md", "tradeoff-models", "tradeoff.csv"]


def test_a_second_call_continues(here, capsys):
    cli.run(["tradeoff", "iris", *QUICK])
    capsys.readouterr()
    assert cli.run(["tradeoff", "iris", "-m", "nystroem,bsgd,lp", "-b", "2,4", "-o", "tradeoff.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("1/3 bsgd, 2 vectors")
    assert "lp: " in captured.out
    assert len(read_rows(here / "tradeoff.csv")) == 6


def test_files_targets_and_test_rows_are_found_again(here):
    X, y = load_iris(return_X_y=True)
    words = np.array(["a", "b", "c"])[y]
    for name, rows in (("train.csv", range(0, 150, 2)), ("test.csv", range(1, 150, 2))):
        lines = [",".join([words[i], *map(repr, X[i].tolist())]) for i in rows]
        (here / name).write_text("\n".join(["kind,a,b,c,d", *lines]) + "\n")
    assert cli.run(["tradeoff", "train.csv", "--test", "test.csv", "--label", "kind", *QUICK, "--seeds", "2"]) == 0
    assert {row["n_test"] for row in read_rows("tradeoff.csv")} == {75}
    assert cli.run(["report", "--title", "Iris"]) == 0
    (here / "train.csv").rename(here / "moved.csv")
    assert cli.run(["report", "-o", "again.html"]) == 1
    assert cli.run(["report", "-o", "again.html", "--data", "moved.csv", "-m", "nystroem"]) == 0


def test_ctrl_c_says_that_the_command_continues(here, capsys, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tradeoffs, "_line_by_line", lambda: stop)
    assert cli.run(["tradeoff", "iris", *QUICK]) == 130
    error = capsys.readouterr().err
    assert "the same command" in error
    assert error.count("\n") == 1
    assert len(read_rows(here / "tradeoff.csv")) == 1


def test_values_are_regressed(here, capsys):
    assert cli.run(["tradeoff", "diabetes", "-C", "100", "--epsilon", "5", *QUICK]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "Unexplained variance: diabetes"
    assert "for R² of 0." in captured.out
    assert "% unexplained variance" in captured.err
    assert cli.run(["report"]) == 0
    assert "## Chosen model" in (here / "report.md").read_text()
    assert "R² of 0." in (here / "report.md").read_text()


def test_rows_without_labels_are_watched_for_novelty(here, capsys):
    X = load_iris().data
    (here / "rows.csv").write_text("\n".join(["a,b,c,d", *(",".join(map(repr, row)) for row in X.tolist())]) + "\n")
    assert cli.run(["tradeoff", "rows.csv", "--task", "novelty", "--nu", "0.1", *QUICK]) == 0
    assert "agreement with the full model on" in capsys.readouterr().out
    assert cli.run(["report"]) == 0
    assert "the full model's verdict (down) and this model's (across)" in (here / "report.md").read_text()


def test_values_that_look_like_classes_are_told(here, capsys):
    lines = [f"{i % 7},{i % 3},{value}" for i, value in enumerate(range(100, 160))]
    (here / "whole.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    (here / "fraction.csv").write_text("\n".join(["a,b,y", *(f"{line}.5" for line in lines)]) + "\n")
    assert cli.run(["tradeoff", "whole.csv", *QUICK]) == 0
    assert "60 classes in 60 rows; if these labels are not classes" in capsys.readouterr().err
    assert cli.run(["tradeoff", "fraction.csv", *QUICK]) == 2
    assert "--task regress" in capsys.readouterr().err


BAD = {
    "nu": (["tradeoff", "iris", "--nu", "0.1"], 2, "--nu is for --task novelty, and this is classify"),
    "words": (["tradeoff", "iris", "--task", "regress"], 2, "the target 'setosa' is not a number"),
    "data": (["tradeoff", "nonsense"], 1, "breast_cancer, diabetes, digits, iris, wine"),
    "folder": (["tradeoff", "missing/a8a"], 1, "there is no folder missing"),
    "method": (["tradeoff", "iris", "-m", "nonsense"], 2, "unknown method 'nonsense'"),
    "no method": (["tradeoff", "iris", "-m", ","], 2, "give one name at least"),
    "budget": (["tradeoff", "iris", "-b", "4,0"], 2, "--budget '0' must be above 0"),
    "rows": (["report"], 1, "there is no file tradeoff.csv with rows; make it with"),
    "output": (["tradeoff", "iris", "-o", "missing/rows.csv"], 2, "there is no folder missing"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.usefixtures("here")
def test_bad_words_are_one_line(capsys, name):
    words, code, message = BAD[name]
    assert cli.run(words) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_empty_file_of_rows_is_told(here, capsys):
    (here / "tradeoff.csv").touch()
    assert cli.run(["report"]) == 1
    assert "it has no rows; run slimsvm tradeoff to fill it" in capsys.readouterr().err


def test_a_page_that_exists_is_left_alone(here, capsys):
    cli.run(["tradeoff", "iris", *QUICK])
    (here / "report.html").write_text("mine")
    assert cli.run(["report"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (here / "report.html").read_text() == "mine"
    assert cli.run(["report", "--force"]) == 0


def test_names_of_methods_are_shown_as_they_are(here, capsys):
    cli.run(["tradeoff", "iris", *QUICK])
    text = (here / "tradeoff.csv").read_text()
    (here / "tradeoff.csv").write_text(text.replace(",nystroem,", ",[/a]\x1b[2J,"))
    capsys.readouterr()
    tradeoffs.show_tradeoff("iris", read_tradeoff(here / "tradeoff.csv"))
    shown = capsys.readouterr().out
    assert "the smallest [/a][2J model" in shown
    assert "\x1b" not in shown
