"""What Ctrl-C does: it ends the process at once until the work begins, and raises KeyboardInterrupt from then on.

A KeyboardInterrupt that is raised while Python imports modules can end in a traceback, or be lost in a callback of the
import system. Nothing has been written by then, so the process may simply end.
"""

from __future__ import annotations

import os
import signal
from typing import Any

INTERRUPTED = "interrupted; nothing was written"


class WorkInterruptedError(Exception):
    """Ctrl-C in a command that has written something: its message is printed, and the exit code is 130."""


def end_at_once_on_interrupt() -> None:
    """Let Ctrl-C end the process with one line and exit code 130, unless whoever started it has Ctrl-C ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again. Call this before work that can be cut short, and before writing files."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: Any) -> None:
    os.write(2, f"slimsvm: error: {INTERRUPTED}\n".encode())
    os._exit(130)
