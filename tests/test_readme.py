"""The README's Python is run, and prints what the README says it prints."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_examples_print_what_the_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    examples = re.findall(r"```python\n((?:(?!```).)*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert len(examples) == 3
    for code, shown in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), names)
        assert printed.getvalue() == shown


def test_the_two_commands_come_first():
    assert re.search(r"^# slimsvm\n\n[^\n]+\n(?:[^\n]+\n)*\n```(?:sh|bash)\nmake demo[^\n]*\nmake test", README)
