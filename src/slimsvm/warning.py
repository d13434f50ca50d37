"""Warnings that point at the user's line, however deep in the library their cause is found."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

#: packages whose lines say nothing to a user: this one, and those through which it is called
INSIDE = {__package__, "sklearn", "contextlib", "joblib"}


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package from which it was called."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
