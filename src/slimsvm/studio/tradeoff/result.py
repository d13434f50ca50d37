"""The result of a trade-off, its rows and the models of the first seed, and where they are kept: memory or files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...files.endings import check_written
from ...files.models import load
from ...files.native import save
from ...text import cell, html_table
from ..runs import Row, RunTable, columns_of
from .rows import COLUMNS, continued, finished, read_rows


@dataclass(frozen=True, repr=False)
class Tradeoff:
    """Runs of several methods and budgets on one data set.

    Parameters
    ----------
    rows : tuple of dict
        One for each run; `slimsvm.studio.tradeoff.rows.COLUMNS` names the entries.
    models : mapping
        Fitted models of the first seed, or paths of .slim files that hold them, by the entry `model` of a row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import slimsvm
    >>> X, y = load_iris(return_X_y=True)
    >>> found = slimsvm.tradeoff(X, y, methods=["nystroem"], budgets=[2, 4])
    >>> [(row["method"], row["budget"]) for row in found.rows]
    [('full', None), ('nystroem', 2), ('nystroem', 4)]
    """

    rows: tuple[Row, ...]
    models: Mapping[str, Any] = field(default_factory=dict)

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows column by column, as `pandas.DataFrame` takes them."""
        return columns_of(self.rows, COLUMNS)

    @property
    def methods(self) -> list[str]:
        """The methods in the order of their first rows."""
        return list(dict.fromkeys(row["method"] for row in self.rows))

    def model(self, row: Row) -> Any:
        """Return the fitted model of a row, or None if it was not kept."""
        model = self.models.get(row["model"])
        return load(model) if isinstance(model, Path) else model

    @property
    def _shown(self) -> tuple[str, ...]:
        """The columns that are printed."""
        seeds = ("seed",) if len({row["seed"] for row in self.rows}) > 1 else ()
        return ("method", "budget", *seeds, "size", "bytes", "error")

    def _repr_html_(self) -> str:
        return html_table(columns_of(finished(self.rows), self._shown))

    def __repr__(self) -> str:
        names = self._shown
        lines = [[cell(row[name]) for name in names] for row in finished(self.rows)]
        without = len(self.rows) - len(lines)
        title = f"Tradeoff of {len(self.rows)} runs" + f", {without} of them without a model" * bool(without)
        table = [f"{cells[0]:>18}" + "".join(f"{text:>10}" for text in cells[1:]) for cells in [names, *lines]]
        return "\n".join([title, *table])


def read_tradeoff(path: str | os.PathLike[str]) -> Tradeoff:
    """Return the rows in a CSV file with the models in the folder beside it."""
    rows, folder = read_rows(path), models_folder(path)
    files = {row["model"]: folder / row["model"] for row in rows if row["model"]}
    return Tradeoff(tuple(rows), {name: file for name, file in files.items() if file.is_file()})


def models_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of the models that belong to a CSV file."""
    path = Path(path)
    return path.with_name(f"{path.stem}-models")


class MemoryStore:
    """Models in memory; the caller keeps the rows."""

    def __init__(self) -> None:
        self.models: dict[str, Any] = {}

    def start(self, force: bool) -> list[Row]:  # noqa: ARG002
        """Return the rows of earlier runs."""
        return []

    def append(self, row: Row) -> None:
        """Keep a row."""

    def keep(self, name: str, model: Any) -> None:
        """Keep a model."""
        self.models[name] = model


class FileStore(MemoryStore):
    """A CSV file of rows and a folder of .slim files."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.file, self.folder = RunTable(path, tuple(COLUMNS)), models_folder(path)

    def start(self, force: bool) -> list[Row]:
        """Return the rows of earlier runs of this version, or begin a new file."""
        rows = continued(self.file, force=force)
        strange = sorted({row["slimsvm"] for row in rows} - {version("slimsvm")})
        if strange:
            raise ValueError(
                f"{self.file.path} has rows of slimsvm {', '.join(strange)}, and this is {version('slimsvm')}: their times "
                "and models cannot be compared. Give another file, or force=True (--force) to start a new one"
            )
        self.folder.mkdir(exist_ok=True)
        self.models = {row["model"]: self.folder / row["model"] for row in rows if row["model"]}
        return rows

    def append(self, row: Row) -> None:
        """Write a row."""
        self.file.append([row])

    def keep(self, name: str, model: Any) -> None:
        """Save a model."""
        save(model, self.folder / name)
        self.models[name] = self.folder / name


def store_of(file: str | os.PathLike[str] | None) -> MemoryStore:
    """Return the store for a file, or for memory without one."""
    if file is None:
        return MemoryStore()
    check_written("a table of runs", Path(file))
    return FileStore(Path(file))
