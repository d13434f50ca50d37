"""Ctrl-C: it ends the process at once until the work begins, and raises KeyboardInterrupt afterwards.

A KeyboardInterrupt that is raised while Python imports modules can end in a traceback, or be lost in a callback of the
import system. Nothing has been written by then, so the process may simply end. Later on, one that is lost in a callback is
sent again. This module imports little, because until it is imported Ctrl-C ends in Python's own traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TYPE_CHECKING = False  # instead of an import of typing, which takes time

if TYPE_CHECKING:
    from typing import Any

INTERRUPTED = "interrupted; nothing was written"
#: seconds until a lost Ctrl-C is sent again, long enough for the callback that lost it to end
AGAIN = 0.05


def end_at_once_on_interrupt() -> None:
    """Let Ctrl-C end the process with one line and exit code 130, unless the parent process ignores Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again. Call this before work that can be cut short, and before writing files."""
    if signal.getsignal(signal.SIGINT) is _end:
        sys.unraisablehook = _send_again
        signal.signal(signal.SIGINT, signal.default_int_handler)


def die_on_interrupt() -> None:
    """Let Ctrl-C end the process silently, while Python shuts down."""
    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(*_: Any) -> None:
    os.write(2, f"slimsvm: error: {INTERRUPTED}\n".encode())
    os._exit(130)


def _send_again(lost: Any) -> None:
    """Report an exception of a callback. A KeyboardInterrupt was lost there, so send it again, to the main work."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    import threading

    timer = threading.Timer(AGAIN, signal.raise_signal, [signal.SIGINT])
    timer.daemon = True
    timer.start()


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
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
