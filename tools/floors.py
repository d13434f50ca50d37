"""Print the oldest versions of the dependencies that pyproject.toml declares, as a constraints file for pip."""

from __future__ import annotations

import tomllib
from pathlib import Path


def floors() -> list[str]:
    """Return "name==version" for each "name>=version"."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    return [requirement.replace(">=", "==") for requirement in project["dependencies"]]


if __name__ == "__main__":
    print(*floors(), sep="\n")
