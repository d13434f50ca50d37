"""Run experiments of the papers, and write the page."""

from __future__ import annotations

import argparse

import matplotlib as mpl

from benchmarks.reproduce import __doc__ as words
from benchmarks.reproduce import batch_perceptron, compressed_vectors, dekel_singer, optimally_sparse
from benchmarks.reproduce.page import write_page

#: in the order of the page; those in LONG run only by name
EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        optimally_sparse.EXPERIMENT,
        optimally_sparse.COVTYPE,
        batch_perceptron.EXPERIMENT,
        dekel_singer.EXPERIMENT,
        compressed_vectors.TOY,
        compressed_vectors.EXPERIMENT,
    )
}
LONG = (optimally_sparse.COVTYPE.name,)


def main() -> None:
    """Run the experiments named, or all but the long ones, and write the page."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*EXPERIMENTS, "page", []], help="experiments, or the page alone")
    parser.add_argument("--cells", type=int, help="run so many cells of each experiment at most")
    given = parser.parse_args()
    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "slimsvm"}
    for name in given.names or [name for name in EXPERIMENTS if name not in LONG]:
        if name != "page":
            EXPERIMENTS[name].go_on(given.cells)
    print(write_page(EXPERIMENTS.values()))


if __name__ == "__main__":
    main()
