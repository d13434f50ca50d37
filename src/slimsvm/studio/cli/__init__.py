"""The command line: `slimsvm` and `python -m slimsvm`."""

import os
import sys

from .interrupts import die_on_interrupt, end_at_once_on_interrupt

__all__ = ["main"]


def main() -> None:
    """Run the command line: one-line errors, exit code 1 for bad data, 2 for bad usage, 130 for Ctrl-C."""
    end_at_once_on_interrupt()
    open_missing_streams()
    from .commands import run

    code = run(sys.argv[1:])
    die_on_interrupt()
    sys.exit(code)


def open_missing_streams() -> None:
    """Put the null device in the place of standard streams that are closed, so that no file gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
