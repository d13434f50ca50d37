"""The README's Python and commands are run, and print what the README says they print."""

import contextlib
import io
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import train_test_split

from slimsvm import SlimSVC, export
from slimsvm.studio.cli.commands import run

README, EXPORTING = ((Path(__file__).parents[1] / name).read_text() for name in ("README.md", "docs/exporting.md"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_examples_print_what_the_readme_shows():
    names = {}
    examples = re.findall(r"```python\n((?:(?!```).)*)```\n(?:\n```text\n(.*?)```)?", README, re.DOTALL)
    assert [bool(shown) for _, shown in examples] == [True, False, True]
    for code, shown in examples:
        # an example that prints nothing is run on fewer rows, where no small model may be within the tolerance
        scope = names if shown else names | {name: names[name][:150] for name in ("X", "y")}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            if not shown:
                warnings.filterwarnings("ignore", "no model of at most|.* is enough for the")
            exec(compile(code, "README.md", "exec"), scope)
        assert printed.getvalue() == shown
        names = scope | names


def test_the_c_file_of_the_demo_has_the_head_that_the_documentation_shows():
    X, y = load_digits(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, random_state=0)
    export(SlimSVC(100, C=10, random_state=0).fit(X, y), "digits.c", precision="int8")
    head = re.search(r"```c\n(.*?)```", EXPORTING, re.DOTALL)[1]
    assert Path("digits.c").read_text().startswith(head)


def test_the_commands_work_in_their_order(capfd):
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    np.savetxt("rows.csv", np.column_stack([X.astype(str), names]), delimiter=",", fmt="%s")
    np.savetxt("new.csv", X, delimiter=",")
    block = re.search(r"## From the shell\n\n```sh\n(.*?)```", README, re.DOTALL)[1]
    lines = [line.partition("#")[0].partition(">") for line in block.splitlines()]
    commands = {shlex.split(line)[1]: shlex.split(line)[1:] for line, _, _ in lines}
    printed = {}
    for name, arguments in commands.items():
        assert run(arguments) == 0
        printed[name] = capfd.readouterr().out
    assert list(printed) == ["train", "compress", "predict", "info", "export"]
    assert np.mean(np.array(printed["predict"].split()) == names) > 0.9
    assert "StandardScaler" in printed["info"]
    written = {file.name for file in Path().iterdir()} - {"rows.csv", "new.csv"}
    assert written == {"model.slim", "small.slim", "small.c", "small.h"}
    for name in ("train", "compress", "export"):
        assert run(commands[name]) == 2, "files are replaced only with --force"
        assert "--force" in capfd.readouterr().err


def test_the_two_commands_come_first():
    assert re.search(r"^# slimsvm\n\n[^\n]+\n(?:[^\n]+\n)*\n```(?:sh|bash)\nmake demo[^\n]*\nmake test", README)


def test_the_readme_stays_short():
    """Details belong into docs/."""
    assert len(README.splitlines()) <= 180


def test_links_lead_to_files():
    root = Path(__file__).parents[1]
    assert [link for link in re.findall(r"\]\(((?!http)[^)#]+)\)", README) if not (root / link).exists()] == []
