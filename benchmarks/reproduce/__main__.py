"""Run experiments of the papers, and write the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import joblib

from benchmarks.reproduce import __doc__ as words
from benchmarks.reproduce.experiment import RESULTS
from benchmarks.reproduce.page import write_page
from benchmarks.reproduce.papers import EXPERIMENTS, LONG
from benchmarks.reproduce.pool import missing_cells, run_cells


def main() -> None:
    """Run the experiments named, or all but the long ones, and write the page."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*EXPERIMENTS, "page", []], help="experiments, or the page alone")
    parser.add_argument("--cells", type=int, help="run so many cells of each experiment at most")
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count(), help="processes, one for each core by default")
    parser.add_argument("--seconds", type=float, help="begin no cell after this time, and cut those that run then")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where rows and the page are, docs/results by default")
    parser.add_argument("--rows-only", action="store_true", help="write no page and no figures: needs no matplotlib")
    given = parser.parse_args()
    names = given.names or [name for name in EXPERIMENTS if name not in LONG]
    work = missing_cells([name for name in names if name != "page"], given.cells, given.folder)
    experiments = [EXPERIMENTS[name] for name in dict.fromkeys(name for name, _ in work)]
    for experiment in experiments:
        if experiment.prepare is not None:
            experiment.prepare()
    left = run_cells(work, given.jobs, given.seconds, given.folder)
    for experiment in experiments:
        experiment.tidy(given.folder)
    if not given.rows_only:
        draw_svg()
        print(write_page(EXPERIMENTS.values(), given.folder))
    if left:
        sys.exit(f"{left} cells have no rows: the same command runs them again")


def draw_svg() -> None:
    """Let matplotlib draw files that are the same each time, and small: with letters as text."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "slimsvm", "svg.fonttype": "none"}


if __name__ == "__main__":
    main()
