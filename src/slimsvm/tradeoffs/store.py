"""The store of a trade-off's rows and models: memory, or a CSV file and a folder beside it."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..files.native import save
from .rows import Row, RowsFile
from .value import models_folder


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
        self.file, self.folder = RowsFile(path), models_folder(path)

    def start(self, force: bool) -> list[Row]:
        """Return the rows of earlier runs of this version, or begin a new file."""
        rows = self.file.start(force=force)
        strange = sorted({row["slimsvm"] for row in rows} - {version("slimsvm")})
        if strange:
            raise ValueError(
                f"{self.file.path} has rows of slimsvm {', '.join(strange)}, and this is {version('slimsvm')}: their times "
                "and models cannot be compared. Give another file, or force=True (--force) to begin it anew"
            )
        self.folder.mkdir(exist_ok=True)
        self.models = {row["model"]: self.folder / row["model"] for row in rows if row["model"]}
        return rows

    def append(self, row: Row) -> None:
        """Write a row."""
        self.file.append(row)

    def keep(self, name: str, model: Any) -> None:
        """Save a model."""
        save(model, self.folder / name)
        self.models[name] = self.folder / name


def store_of(file: str | os.PathLike[str] | None) -> MemoryStore:
    """Return the store for a file, or for memory without one."""
    return MemoryStore() if file is None else FileStore(Path(file))
