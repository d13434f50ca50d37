"""Words of the library in the words of the command line."""

import pytest

from slimsvm.cli.parse import in_options


@pytest.mark.parametrize(
    ("library", "command_line"),
    [
        ("Give budget=16, say, or a trainer", "Give --budget 16, say, or a trainer"),
        ("target='y' names a column", "--target 'y' names a column"),
        ("stopped at the time limit; raise time_limit or tol", "stopped at the time limit; raise --time-limit or tol"),
        ("m.h exists; force=True (--force) replaces it", "m.h exists; --force replaces it"),
        ("the budget = 3 of a file my_budget=3.csv", "the budget = 3 of a file my_budget=3.csv"),
    ],
    ids=["budget", "target", "time-limit", "force", "other words"],
)
def test_settings_are_written_as_options(library, command_line):
    assert in_options(library) == command_line
