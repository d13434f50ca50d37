"""docs/results/index.md: every claim of the papers with its verdict, made from the rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.reproduce.experiment import NOT_REPRODUCED, NOT_RUN, REPRODUCED, RESULTS, Claim, Experiment
from benchmarks.reproduce.papers import LONG

HEAD = """# The papers' claims, from the papers' data

{summary}

`make reproduce` runs the experiments on the data in `SLIMSVM_DATA` and makes this page. A run that was stopped goes on
where it was. `python -m benchmarks.reproduce page` makes the page alone, from the rows in `docs/results/*.csv`.
{time}
"""
#: how a verdict begins, and what the summary calls it
KINDS = {
    REPRODUCED: "reproduced",
    NOT_REPRODUCED: "not reproduced",
    "differs": "different for a stated reason",
    NOT_RUN: "not run yet",
}


def write_page(experiments: Iterable[Experiment], folder: Path = RESULTS) -> Path:
    """Write the page and the figures of the experiments that have rows; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.md"
    experiments = list(experiments)
    verdicts = summary([claim for e in experiments for claim in e.claims(e.rows(folder))])
    head = HEAD.format(summary=verdicts, time=time_of([e for e in experiments if e.name not in LONG], folder))
    page.write_text("\n".join([head, *(section(experiment, folder) for experiment in experiments)]))
    return page


def time_of(experiments: Iterable[Experiment], folder: Path) -> str:
    """Return how long all cells took, one after the other and on two cores."""
    minutes = sum(sum(cell_seconds(experiment, experiment.rows(folder))) for experiment in experiments) / 60
    return f"All cells but those of Forest took {minutes:.0f} minutes of one core, so {minutes / 2:.0f} minutes of two."


def summary(claims: list[Claim]) -> str:
    """Return how many claims have which verdict."""
    counts = {words: sum(claim.verdict.startswith(kind) for claim in claims) for kind, words in KINDS.items()}
    return f"Of {len(claims)} claims, " + ", ".join(f"{count} {words}" for words, count in counts.items() if count) + "."


def section(experiment: Experiment, folder: Path) -> str:
    """Return the part of the page on one experiment, and draw its figure."""
    rows, missing = experiment.rows(folder), len(experiment.missing(folder))
    lines = [f"## {experiment.title}", "", experiment.terms, ""]
    lines += ["| the paper says | verdict | figures |", "|---|---|---|"]
    lines += [f"| {claim.words} | **{claim.verdict}** | {claim.figures} |" for claim in experiment.claims(rows)]
    state = f"{missing} cells are missing: the same command runs them." if missing else "All cells have been run."
    seconds = sum(cell_seconds(experiment, rows))
    lines += ["", f"`python -m benchmarks.reproduce {experiment.name}`, {seconds:.0f} s so far. {state}", ""]
    if failures := experiment.failures(folder):
        words = [f"{' '.join(str(row[key]) for key in experiment.keys)}: {row['failure']}" for row in failures]
        lines += ["Cells that failed: " + "; ".join(words) + ".", ""]
    if rows:
        figure = f"{experiment.name}.svg"
        experiment.draw(rows, folder / figure)
        lines += [f"![{experiment.title}]({figure})", ""]
    return "\n".join(lines)


def cell_seconds(experiment: Experiment, rows: list[dict[str, str]]) -> list[float]:
    """Return the seconds of each cell that has rows."""
    return list({tuple(row[key] for key in experiment.keys): float(row["seconds"]) for row in rows}.values())
