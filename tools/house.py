"""How large the house is: `python -m tools.house` prints one line of JSON, to compare two commits by.

Lines and files of Python in src/, compiled lines, the share of modules with exactly one importer (modules that a table,
an `__init__` or the command line lists do not count), what `compress` runs through, parameters of SlimSVC, the largest
class of selection/, and the lines of `commands.train`.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1] / "src" / "slimsvm"
COMPILED = {".c", ".h", ".pyx", ".pxi"}


def sources() -> list[Path]:
    """Return the Python files."""
    return sorted(ROOT.rglob("*.py"))


def count_lines(files: Iterator[Path] | list[Path]) -> int:
    """Return the lines of some files."""
    return sum(len(file.read_text().splitlines()) for file in files)


def module_name(file: Path) -> str:
    """Return the dotted name of a file."""
    parts = ("slimsvm", *file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path, modules: set[str]) -> set[str]:
    """Return the modules of the package that a file imports."""
    package = module_name(file).split(".") if file.name == "__init__.py" else module_name(file).split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            found |= {origin} | {f"{origin}.{name.name}" for name in node.names}
    return found & modules


def one_importer_share() -> float:
    """Return the share of modules with exactly one importer that no table, `__init__` or the command line lists."""
    files = {module_name(file): file for file in sources()}
    importers = Counter[str]()
    listed = set[str]()
    for name, file in files.items():
        found = imports(file, set(files)) - {name}
        importers.update(found)
        if file.name in ("__init__.py", "commands.py", "export.py"):
            listed |= found
    plain = [name for name, file in files.items() if file.name != "__init__.py"]
    return sum(importers[name] == 1 and name not in listed for name in plain) / len(plain)


class Trace:
    """The deepest stack of the package's frames, and the files that run, while it is the profiler."""

    def __init__(self) -> None:
        self.depth, self.files = 0, set[str]()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Look at a call."""
        if event != "call" or not frame.f_code.co_filename.startswith(str(ROOT)):
            return
        self.files.add(frame.f_code.co_filename)
        depth, at = 0, frame
        while at is not None:
            depth += at.f_code.co_filename.startswith(str(ROOT))
            at = at.f_back  # type: ignore[assignment]
        self.depth = max(self.depth, depth)


def traced_compress() -> Trace:
    """Return what `compress` of breast cancer to 16 vectors runs through."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.svm import SVC

    from slimsvm import compress

    X, y = load_breast_cancer(return_X_y=True)
    model, trace = SVC().fit(X, y), Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    compress(model, X, y, budget=16)
    sys.setprofile(None)
    threading.setprofile(None)
    return trace


def largest_class(package: str) -> tuple[int, str]:
    """Return the number of fields of a package's largest dataclass, and its name."""
    found = [(0, "")]
    for file in sorted((ROOT / package).glob("*.py")):
        for value in vars(import_module(module_name(file))).values():
            if inspect.isclass(value) and value.__module__ == module_name(file) and is_dataclass(value):
                found.append((len(fields(value)), value.__qualname__))
    return max(found)


def main() -> None:
    """Print everything."""
    from slimsvm import SlimSVC

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    commands = import_module("slimsvm.studio.cli.commands")
    train = getattr(commands.train, "callback", commands.train)
    trace, (size, name) = traced_compress(), largest_class("selection")
    row = {
        "lines": count_lines(sources()),
        "files": len(sources()),
        "compiled_lines": count_lines([file for file in ROOT.rglob("*") if file.suffix in COMPILED]),
        "one_importer": round(one_importer_share(), 3),
        "compress_depth": trace.depth,
        "compress_files": len(trace.files),
        "SlimSVC_parameters": len(SlimSVC().get_params(deep=False)),
        "selection_largest_class": f"{name}: {size}",
        "commands_train_lines": len(inspect.getsource(inspect.unwrap(train)).splitlines()),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
