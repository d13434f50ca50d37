"""The Python of docs/seeing.md is run."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "seeing.md").read_text()


def test_the_examples_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "seeing.md", "exec"), names)
    names["display"].figure_.canvas.draw()
    assert {path.name for path in tmp_path.iterdir()} == {"iris.html", "iris.md", "moved.png"}

    import matplotlib.pyplot as plt

    plt.close("all")
