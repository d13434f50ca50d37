"""Packages that are imported are declared: as dependencies at the top of modules, as extras within functions."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: packages that are imported under other names than they are installed by
NAMES = {"scikit_learn": "sklearn", "cupy_cuda12x": "cupy"}


def declared(requirements):
    words = {re.match(r"[\w-]+", each).group().replace("-", "_").lower() for each in requirements}
    return {NAMES.get(word, word) for word in words}


def imported(nodes):
    """The packages of others that import statements name."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"slimsvm"}


def test_dependencies_are_declared():
    needed, optional = declared(PROJECT["dependencies"]), PROJECT["optional-dependencies"].values()
    extras = {"distributed"}.union(*map(declared, optional))  # which dask[distributed] brings
    for path in sorted((ROOT / "src" / "slimsvm").rglob("*.py")):
        tree = ast.parse(path.read_text())
        assert imported(ast.walk(tree)) <= needed | extras, path
        assert imported(tree.body) <= needed, path
