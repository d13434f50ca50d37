"""Files and messages of a command that Ctrl-C has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .interrupts import INTERRUPTED

NOT_KEPT = f"{INTERRUPTED}. --keep writes the best model found so far"


class StoppedEarly(Exception):  # noqa: N818 (Ctrl-C is no error)
    """Ctrl-C ended a command; the message says what was written."""


def finished_or_best(work: Callable[[], Any], keep: bool) -> tuple[Any, bool]:
    """Return what the work returns, and False; after Ctrl-C with --keep, the best model found so far, and True."""
    from ...estimators import Interrupted

    try:
        return work(), False
    except Interrupted as stop:
        if not keep:
            raise StoppedEarly(NOT_KEPT) from None
        return stop.best, True


@contextmanager
def saying_what_was_written(path: Path) -> Iterator[None]:
    """After Ctrl-C, raise StoppedEarly if the file has been written by then."""
    before = _stamp(path)
    try:
        yield
    except KeyboardInterrupt:
        if _stamp(path) == before:
            raise
        raise StoppedEarly(f"interrupted after {path} was written") from None


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return the time and size of a file, which change with each version; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
