"""The computer and the versions that made a row."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

from ..rows.threads import thread_count


def machine() -> dict[str, Any]:
    """Return threads, machine and versions."""
    return {
        "slimsvm": version("slimsvm"),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scikit_learn": version("scikit-learn"),
        "threads": thread_count(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
