"""Words of the library in the words of the command line."""

import pytest

from slimsvm.calibration import CALIBRATIONS
from slimsvm.files.datasets import SPLITS
from slimsvm.goals import CLASSIFIERS
from slimsvm.kernels import KERNELS
from slimsvm.reducers import REDUCERS
from slimsvm.ship.boards import BOARDS
from slimsvm.ship.export import EXPORTERS
from slimsvm.ship.reader import READERS
from slimsvm.slim.method import METRICS
from slimsvm.studio.cli import names
from slimsvm.studio.cli.parse import in_options
from slimsvm.trainers import TRAINERS


@pytest.mark.parametrize(
    ("library", "command_line"),
    [
        ("Give budget=16, say, or a trainer", "Give --budget 16, say, or a trainer"),
        ("target='y' names a column", "--label 'y' names a column"),
        ("stopped at the time limit; raise time_limit or tol", "stopped at the time limit; raise --time-limit or tol"),
        ("m.h exists; force=True (--force) replaces it", "m.h exists; --force replaces it"),
        ("the budget = 3 of a file my_budget=3.csv", "the budget = 3 of a file my_budget=3.csv"),
    ],
    ids=["budget", "target", "time-limit", "force", "other words"],
)
def test_settings_are_written_as_options(library, command_line):
    assert in_options(library) == command_line


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (names.TRAINERS, TRAINERS),
        (names.REDUCERS, REDUCERS),
        ((*names.KERNELS, "precomputed"), KERNELS),
        (names.METRICS, METRICS),
        (names.EXPORTS, EXPORTERS),
        (names.READERS, READERS),
        (names.BOARDS, BOARDS),
        (names.CALIBRATIONS, CALIBRATIONS),
        (names.MULTICLASS, CLASSIFIERS),
        (names.SPLITS, SPLITS),
    ],
    ids=[
        "trainers",
        "reducers",
        "kernels",
        "metrics",
        "exports",
        "readers",
        "boards",
        "calibrations",
        "multiclass",
        "splits",
    ],
)
def test_options_take_the_names_of_the_tables(names, table):
    """A new method is added to studio/cli/names.py as well."""
    assert names == tuple(table)
