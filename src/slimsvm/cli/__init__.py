"""The command line: `slimsvm` and `python -m slimsvm`."""

import sys

from .interrupts import die_on_interrupt, end_at_once_on_interrupt

__all__ = ["main"]


def main() -> None:
    """Run the command line: one-line errors, exit code 1 for bad data, 2 for bad usage, 130 for Ctrl-C."""
    end_at_once_on_interrupt()
    from .commands import run

    code = run(sys.argv[1:])
    die_on_interrupt()
    sys.exit(code)
