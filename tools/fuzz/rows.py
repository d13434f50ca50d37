"""Mutants of the CSV file of a trade-off: rows are shown, drawn as a page, and continued."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterable
from contextlib import redirect_stdout
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.cells import cell_len
from sklearn.datasets import load_iris

from slimsvm import report, tradeoff
from slimsvm.studio.cli.tradeoffs import show_tradeoff
from slimsvm.studio.report.report import asset
from slimsvm.studio.tradeoff import read_tradeoff
from slimsvm.studio.tradeoff.result import models_folder

from .mutations import FLOATS, NUMBERS, TEXTS, Rng, mutate_tree, mutate_words, pick, spoiled
from .reader import Reader, answer

#: cells at which a reader may go wrong: other files, code of pages and terminals, numbers beyond all ranges
CELLS = (
    *map(str, NUMBERS),
    *map(str, FLOATS),
    *TEXTS,
    "ok",
    "failed",
    "1:nan",
    "2:0.5 3",
    "</script>",
    "/etc/passwd",
    "1_1",
    "{}",
)
X, y = (part[::3] for part in load_iris(return_X_y=True))
RUNS: dict[str, Any] = {"methods": ["nystroem", "bsgd"], "budgets": [2, 4], "seeds": 2}


@cache
def files() -> dict[str, bytes]:
    """Return the rows of a small trade-off and its models, by their names."""
    cell_len("水")  # rich loads its table of characters when it meets the first that needs it
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tradeoff(X, y, file=folder / "mutant.csv", name="iris", **RUNS)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}


def _seeds() -> Iterable[Any]:
    lines = list(csv.reader(io.StringIO(files()["mutant.csv"].decode(), newline="")))
    yield {"lines": lines}
    yield {"lines": [*lines, *([*row[:6], "{}", *row[7:]] for row in lines[1:])]}  # two studies


def _mutate(rng: Rng, content: Any) -> None:
    lines = content["lines"]
    if rng.random() < 0.2 or len(lines) < 2 or not all(lines):
        mutate_words(rng, lines)
        return
    line = lines[int(rng.integers(1, len(lines)))]
    place = int(rng.integers(len(line)))
    if place < len(lines[0]) and lines[0][place] == "settings" and rng.random() < 0.8:
        line[place] = _mutated_settings(rng, line[place])
        return
    column = [other[place] for other in lines[1:] if place < len(other)]
    line[place] = pick(rng, (pick(rng, CELLS), pick(rng, CELLS), spoiled(rng, line[place]), pick(rng, column)))


def _mutated_settings(rng: Rng, cell: str) -> str:
    """Return JSON with another value somewhere, or nested deeply."""
    if rng.random() < 0.05:
        return '{"test_size": ' + "[" * 20_000
    try:
        settings = json.loads(cell)
    except (ValueError, RecursionError):
        settings = {}
    mutate_tree(rng, settings)
    return json.dumps(settings)


def _to_bytes(content: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(content["lines"])
    return text.getvalue().encode(errors="replace")


def _use(path: Path) -> None:
    """Read the rows and their models, show them, write the page, and make the runs that are missing."""
    _write_models(path)
    found = read_tradeoff(path)
    repr(found)
    found.columns()
    for row in found.rows:
        found.model(row)
    with redirect_stdout(io.StringIO()):
        show_tradeoff("iris", found)
    answer(partial(_page, X=X, y=y, output=path.with_name("page.html"), force=True), found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits of few rows
        answer(lambda file: tradeoff(X, y, file=file, name="iris", **RUNS), path)


def _page(found: Any, output: Path, **given: Any) -> None:
    report(found, output=output, **given)
    if output.read_text().count("</script>") != asset("page.html").count("</script>"):
        raise AssertionError("a cell ends a script of the page")


def _write_models(path: Path) -> None:
    folder = models_folder(path)
    if not folder.exists():
        folder.mkdir()
        for name, data in files().items():
            if name.endswith(".slim"):
                (folder / Path(name).name).write_bytes(data)


ROWS = Reader(".csv", _seeds, _mutate, _to_bytes, _use)
