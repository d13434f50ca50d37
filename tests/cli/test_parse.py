"""Words of the library in the words of the command line."""

import pytest

from slimsvm.cli import names, parse
from slimsvm.cli.parse import in_options


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
    ("listed", "table"),
    [
        ((*names.TRAINERS, "none"), parse.trainer_names),
        (names.REDUCERS, parse.reducer_names),
        (names.KERNELS, parse.kernel_names),
        (names.EXPORTS, parse.export_names),
        (names.CALIBRATIONS, parse.calibration_names),
    ],
    ids=["trainers", "reducers", "kernels", "exports", "calibrations"],
)
def test_help_lists_the_names_of_the_tables(listed, table):
    """A new method is added to cli/names.py as well."""
    assert list(listed) == table()
