"""docs/results/index.md: every claim of the papers with its verdict, made from the rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.reproduce.experiment import (
    DIFFERS,
    NOT_ON_TERMS,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    RESULTS,
    Claim,
    Experiment,
    Row,
)
from benchmarks.reproduce.papers import LONG

HEAD = """# The papers' claims, from the papers' data

{summary}

A verdict is **reproduced**, **not reproduced**, **differs, because ...** or **not run on the paper's terms**. One rule
decides: an error is higher than another if it is so by more than two standard errors of the difference, of two shares on as
many test rows as there are. Runs are judged where the paper draws them. Claims about our own methods, which no paper makes,
are counted apart.

`make reproduce` runs the experiments on the data in `SLIMSVM_DATA` and makes this page. A run that was stopped goes on
where it was. `python -m benchmarks.reproduce page` makes the page alone, from the rows in `docs/results/*.csv`.
Each row has the commit that made it; those of 6e47c8b are from a machine with 16 cores that ran 16 cells at a time, so that
each took longer. {time}
"""
#: how a verdict begins, and what the summary calls it
KINDS = {
    REPRODUCED: "reproduced",
    NOT_REPRODUCED: "not reproduced",
    DIFFERS: "different for a stated reason",
    NOT_ON_TERMS: "not run on the paper's terms",
    NOT_RUN: "not run yet",
}


def write_page(experiments: Iterable[Experiment], folder: Path = RESULTS) -> Path:
    """Write the page and the figures of the experiments that have rows; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.md"
    experiments = list(experiments)
    found = [claim for e in experiments for claim in e.claims(e.rows(folder))]
    ours = [claim for claim in found if claim.ours]
    verdicts = f"Of the papers' {summary([claim for claim in found if not claim.ours])}"
    verdicts += f" Of our own {summary(ours)}" if ours else ""
    head = HEAD.format(summary=verdicts, time=time_of([e for e in experiments if e.name not in LONG], folder))
    sections = [section(experiment, folder) for experiment in experiments]
    page.write_text("\n".join([head, *sections, printed_numbers(experiments, folder)]))
    return page


def time_of(experiments: Iterable[Experiment], folder: Path) -> str:
    """Return how long the cells with rows took, and how long those without may take."""
    done = left = 0.0
    for experiment in experiments:
        done += sum(cell_seconds(experiment, experiment.rows(folder))) / 60
        left += sum(experiment.expected(cell) for cell in experiment.missing(folder)) / 60
    return (
        f"Those of `make reproduce` took {done:.0f} minutes of one core, and the cells without rows may take {left:.0f} "
        f"more: together {(done + left) / 2:.0f} minutes of two cores."
    )


def summary(claims: list[Claim]) -> str:
    """Return how many claims have which verdict."""
    counts = {words: sum(claim.verdict.startswith(kind) for claim in claims) for kind, words in KINDS.items()}
    return f"{len(claims)} claims, " + ", ".join(f"{count} {words}" for words, count in counts.items() if count) + "."


def section(experiment: Experiment, folder: Path) -> str:
    """Return the part of the page on one experiment, and draw its figure."""
    rows, missing = experiment.rows(folder), len(experiment.missing(folder))
    lines = [f"## {experiment.title}", "", experiment.terms, ""]
    lines += ["| the paper says | verdict | figures |", "|---|---|---|"]
    for claim in experiment.claims(rows):
        lines += [f"| {'(ours) ' if claim.ours else ''}{claim.words} | **{claim.verdict}** | {claim.figures} |"]
    state = f"{missing} cells are missing: the same command runs them." if missing else "All cells have been run."
    seconds = sum(cell_seconds(experiment, rows))
    made = ", ".join(dict.fromkeys(row["commit"] for row in rows if row.get("commit")))
    state += f" Commits: {made}." if made else ""
    lines += ["", f"`python -m benchmarks.reproduce {experiment.name}`, {seconds:.0f} s so far. {state}", ""]
    if failures := experiment.failures(folder):
        words = [f"{' '.join(str(row[key]) for key in experiment.keys)}: {row['failure']}" for row in failures]
        lines += ["Cells that failed: " + "; ".join(words) + ".", ""]
    if rows:
        figure = f"{experiment.name}.svg"
        experiment.draw(rows, folder / figure)
        lines += [f"![{experiment.title}]({figure})", ""]
    return "\n".join(lines)


def printed_numbers(experiments: Iterable[Experiment], folder: Path) -> str:
    """Return the table of all numbers that the papers print, beside ours."""
    found = [each for experiment in experiments for each in experiment.printed(experiment.rows(folder))]
    lines = [f"| {each.what} | {each.paper} | {each.ours} |" for each in found]
    head = ["## Every number that the papers print", "", "| | the paper | here |", "|---|---|---|"]
    return "\n".join([*head, *lines, ""]) if lines else ""


def cell_seconds(experiment: Experiment, rows: list[Row]) -> list[float]:
    """Return the seconds of each cell that has rows."""
    return list({tuple(row[key] for key in experiment.keys): float(row["seconds"]) for row in rows}.values())
