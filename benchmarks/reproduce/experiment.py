"""What an experiment is: cells that are run once each, a CSV file of rows that a later run continues, and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slimsvm.studio.runs import Row, RunTable

REPRODUCED, NOT_REPRODUCED, DIFFERS, NOT_RUN = "reproduced", "not reproduced", "differs", "not run yet"
NOT_ON_TERMS = "not run on the paper's terms"
#: an error is higher than another if it is so by more than this many standard errors of the difference
STANDARD_ERRORS = 2.0
RESULTS = Path(__file__).parents[2] / "docs" / "results"

Cell = dict[str, Any]  # what is run at once: data, method, settings


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, what the rows say of it, and the figures that decide."""

    words: str
    verdict: str
    figures: str
    ours: bool = False  # a claim about our own methods, which no paper makes

    @classmethod
    def of(cls, words: str, holds: bool | None, figures: str, reason: str = "", *, ours: bool = False) -> Claim:
        """Return a claim with the verdict of a comparison; None where rows are missing, for a reason."""
        verdict = NOT_RUN if holds is None else REPRODUCED if holds else NOT_REPRODUCED
        return cls(words, verdict, figures if holds is not None else reason, ours)

    def differing(self, because: str) -> Claim:
        """Return the claim with the verdict that it differs for a reason."""
        return replace(self, verdict=f"{DIFFERS}, because {because}")


@dataclass(frozen=True)
class Printed:
    """A number that a paper prints, and ours."""

    what: str
    paper: str
    ours: str


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper."""

    name: str
    title: str
    #: what differs from the paper, in sentences
    terms: str
    columns: tuple[str, ...]  # of the cell first, then those measured
    cells: Callable[[], Iterable[Cell]]
    run: Callable[[Cell], Iterable[Row]]
    claims: Callable[[list[Row]], list[Claim]]
    draw: Callable[[list[Row], Path], None]
    #: the numbers that the paper prints, beside those of the rows
    printed: Callable[[list[Row]], list[Printed]] = lambda rows: []  # noqa: ARG005
    #: what all cells need, made once before the first of them
    prepare: Callable[[], None] | None = None
    #: rows -> the fewer rows that the page needs
    condense: Callable[[list[Row]], list[Row]] | None = None
    #: about how many seconds a cell takes: those that take longest run first, so that all processes end together
    expected: Callable[[Cell], float] = lambda cell: 1.0  # noqa: ARG005

    def file(self, folder: Path = RESULTS) -> Path:
        """Return the CSV file of the rows."""
        return self.table(folder).path

    def table(self, folder: Path = RESULTS) -> RunTable:
        """Return the table of the rows."""
        return RunTable(folder / f"{self.name}.csv", (*self.columns, "commit", "seconds", "failure"))

    def rows(self, folder: Path = RESULTS) -> list[Row]:
        """Return the rows that there are, without those of cells that failed."""
        return [row for row in self.all_rows(folder) if not row["failure"]]

    def failures(self, folder: Path = RESULTS) -> list[Row]:
        """Return the rows of cells that failed and have not been run with success since."""
        missing = {tuple(str(value) for value in cell.values()) for cell in self.missing(folder)}
        failed = (row for row in self.all_rows(folder) if row["failure"])
        last = {tuple(row[key] for key in self.keys): row for row in failed}
        return [row for key, row in last.items() if key in missing]

    @property
    def keys(self) -> list[str]:
        """The columns that name a cell."""
        return list(next(iter(self.cells())))

    def all_rows(self, folder: Path = RESULTS) -> list[Row]:
        """Return the rows of the file, with those of failures."""
        return list(self.table(folder).rows())

    def missing(self, folder: Path = RESULTS) -> list[Cell]:
        """Return the cells without rows."""
        done = {tuple(row[key] for key in self.keys) for row in self.rows(folder)}
        return [cell for cell in self.cells() if tuple(str(value) for value in cell.values()) not in done]

    def append(self, rows: list[Row], folder: Path = RESULTS) -> None:
        """Append rows to the file."""
        folder.mkdir(parents=True, exist_ok=True)
        self.table(folder).append(rows)

    def tidy(self, folder: Path = RESULTS) -> None:
        """Condense the rows in the file, and leave out failures that are over."""
        rows = self.rows(folder)
        if self.file(folder).exists():
            self.table(folder).replace((self.condense(rows) if self.condense else rows) + self.failures(folder))


def is_higher(one: float, other: float, rows: int) -> bool:
    """Return whether an error on this many test rows is higher than another, by more than chance explains."""
    spread = (one * (1 - one) + other * (1 - other)) / rows
    return one - other > STANDARD_ERRORS * spread**0.5


def mean_by(rows: Iterable[Row], keys: tuple[str, ...], value: str) -> dict[tuple[str, ...], float]:
    """Return the mean of a column for each combination of values of other columns."""
    found: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(float(row[value]))
    return {key: sum(values) / len(values) for key, values in found.items()}
