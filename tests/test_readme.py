"""The README's Python is run, and prints what the README says it prints."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_example_prints_what_the_readme_shows():
    code, shown = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", README, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown


def test_the_two_commands_come_first():
    assert re.search(r"^# slimsvm\n\n[^\n]+\n(?:[^\n]+\n)*\n```(?:sh|bash)\nmake demo[^\n]*\nmake test", README)
