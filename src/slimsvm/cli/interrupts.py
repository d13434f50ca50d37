"""What Ctrl-C does: it ends the process at once until the work begins, and raises KeyboardInterrupt from then on.

A KeyboardInterrupt that is raised while Python imports modules can end in a traceback, or be lost in a callback of the
import system. Nothing has been written by then, so the process may simply end. Later on, one that is lost in a callback is
sent again. This module imports little, since Ctrl-C is Python's own affair until it is there.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as in typing, which this module does not import

if TYPE_CHECKING:
    from typing import Any

INTERRUPTED = "interrupted; nothing was written"
#: seconds until a lost Ctrl-C is sent again, long enough for the callback that lost it to end
AGAIN = 0.05


def end_at_once_on_interrupt() -> None:
    """Let Ctrl-C end the process with one line and exit code 130, unless whoever started it has Ctrl-C ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again. Call this before work that can be cut short, and before writing files."""
    if signal.getsignal(signal.SIGINT) is _end:
        sys.unraisablehook = _send_again
        signal.signal(signal.SIGINT, signal.default_int_handler)


def die_on_interrupt() -> None:
    """Let Ctrl-C end the process without a word; for the time in which Python shuts down."""
    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(*_: Any) -> None:
    os.write(2, f"slimsvm: error: {INTERRUPTED}\n".encode())
    os._exit(130)


def _send_again(lost: Any) -> None:
    """Report what a callback raised. A KeyboardInterrupt among them would end nothing: send it once more, to the work."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    import threading

    timer = threading.Timer(AGAIN, signal.raise_signal, [signal.SIGINT])
    timer.daemon = True
    timer.start()
