"""docs/results/index.md: every claim of the papers with its verdict, made from the rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.reproduce.experiment import RESULTS, Experiment

HEAD = """# The papers' claims, from the papers' data

Made by `make reproduce` (`python -m benchmarks.reproduce page` makes this page again from the rows in
`docs/results/*.csv`). Each experiment continues its file, so that a run which was stopped goes on where it was. The data
are in `SLIMSVM_DATA`.
"""


def write_page(experiments: Iterable[Experiment], folder: Path = RESULTS) -> Path:
    """Write the page and the figures of the experiments that have rows; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.md"
    page.write_text("\n".join([HEAD, *(section(experiment, folder) for experiment in experiments)]))
    return page


def section(experiment: Experiment, folder: Path) -> str:
    """Return the part of the page on one experiment, and draw its figure."""
    rows, missing = experiment.rows(folder), len(experiment.missing(folder))
    lines = [f"## {experiment.title}", "", experiment.terms, ""]
    lines += ["| the paper says | verdict | figures |", "|---|---|---|"]
    lines += [f"| {claim.words} | **{claim.verdict}** | {claim.figures} |" for claim in experiment.claims(rows)]
    state = f"{missing} cells are missing: the same command runs them." if missing else "All cells have been run."
    seconds = sum(cell_seconds(experiment, rows))
    lines += ["", f"`python -m benchmarks.reproduce {experiment.name}`, {seconds:.0f} s so far. {state}", ""]
    if rows:
        figure = f"{experiment.name}.svg"
        experiment.draw(rows, folder / figure)
        lines += [f"![{experiment.title}]({figure})", ""]
    return "\n".join(lines)


def cell_seconds(experiment: Experiment, rows: list[dict[str, str]]) -> list[float]:
    """Return the seconds of each cell that has rows."""
    keys = list(next(iter(experiment.cells())))
    return list({tuple(row[key] for key in keys): float(row["seconds"]) for row in rows}.values())
