"""The process that reads mutants: it raises at whatever a reader must not do, and its death is a finding too."""

from __future__ import annotations

import os
import re
import resource
import sys
import tempfile
import time
import traceback
import typing
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .reader import Reader, mutant

#: bytes that a reader may use beyond what the process has at its start; the mutants have some kilobytes
MEMORY = 1 << 30
#: mutants that are kept as new beginnings
MOST_KEPT = 2000
#: what no reader does: start processes, load libraries, open connections, unpickle, change folders and files; to ask a
#: library that is loaded for a function, as threadpoolctl does, is no harm
FORBIDDEN = re.compile(
    r"os\.(system|exec|fork|posix_spawn|spawn|startfile|symlink|chown|putenv)|subprocess\.|socket\.|ctypes\.(?!dlsym)|"
    r"pickle\.|marshal\.|shutil\.|urllib|webbrowser"
)
#: what a reader may do with folders of its own
FOLDERS = ("os.mkdir", "os.rmdir", "shutil.rmtree")


class BreakoutError(BaseException):
    """A reader did what no reader may do; no `except Exception` catches it."""


class Guard:
    """An audit hook that can be switched on: files elsewhere, code from texts, processes and so on are findings."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.on, self.seen = str(folder), False, ""
        # libraries are imported when they are needed, and joblib asks the system for the number of processors
        own, libraries = str(Path(__file__).parents[2]), filter(None, sys.path)
        readable = (sys.prefix, sys.base_prefix, own, *libraries, "/sys/fs/cgroup", "/proc/self", "/proc/cpuinfo")
        self.readable = tuple(os.path.realpath(place) for place in readable)
        sys.addaudithook(self)

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        """Raise at an event that is forbidden."""
        if self.on and (reason := self._reason(event, given)):
            self.on, self.seen = False, reason
            raise BreakoutError(reason)

    def _reason(self, event: str, given: tuple[Any, ...]) -> str | None:
        if event == "open" and isinstance(given[0], str | bytes):
            return self._opened(os.path.abspath(os.fsdecode(given[0])), given[1], given[2])
        if event in FOLDERS:
            return self._opened(os.path.abspath(os.fsdecode(given[0])), "w", os.O_WRONLY)
        if event == "exec":
            file = getattr(given[0], "co_filename", "")
            of_types = sys._getframe(2).f_code.co_filename == typing.__file__  # annotations in the library's own source
            return None if file.endswith(".py") or file.startswith("<frozen") or of_types else f"runs code of {file}"
        if event == "marshal.loads" and sys._getframe(2).f_code.co_filename.startswith("<frozen importlib"):
            return None  # a module of a library, whose file was opened
        return f"{event} {given!r:.200}" if FORBIDDEN.match(event) else None

    def _opened(self, path: str, mode: Any, flags: int) -> str | None:
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR)) or (isinstance(mode, str) and bool(set(mode) & set("wax+")))
        if path.startswith(self.folder) or (not writes and os.path.realpath(path).startswith(self.readable)):
            return None
        return f"opens {path}"

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Forbid these events for a while."""
        self.on, self.seen = True, ""
        try:
            yield
        finally:
            self.on = False


def limit_memory() -> None:
    """Let the process have MEMORY more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def is_read(reader: Reader, path: Path, guard: Guard) -> bool:
    """Return whether the reader takes a file, or refuses it with an error that names it; raise whatever else happens."""
    refused = False
    try:
        with guard.watching(), warnings.catch_warnings():
            warnings.simplefilter("error")
            reader.use(path)
    except ValueError as error:
        words = str(error)
        if str(path) not in words or len(words) > 2000 or "\n" in words:
            raise
        refused = True
    if guard.seen:  # somebody caught the error
        raise BreakoutError(guard.seen)
    return not refused


def find_reader(name: str) -> Reader:
    """Return a reader by the name of its module and its name in that module's READERS."""
    module, _, key = name.rpartition(":")
    return import_module(module).READERS[key]


def work(name: str, folder: Path, seed: int, seconds: float) -> None:
    """Read mutants until the time is over; a finding is told in `finding.txt` beside the file that made it."""
    reader, rng, guard = find_reader(name), np.random.default_rng(seed), Guard(folder)
    tempfile.tempdir = str(folder)
    sys.dont_write_bytecode = True  # a module that is imported while a file is read shall write none
    path, count, read = folder / f"mutant{reader.ending}", 0, 0
    kept = list(reader.seeds())
    for content in kept:  # imports what reading needs
        path.write_bytes(reader.to_bytes(content))
        reader.use(path)
    limit_memory()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        content = mutant(reader, rng, kept[int(rng.integers(len(kept)))])
        path.write_bytes(reader.to_bytes(content))
        count += 1
        (folder / "mutants").write_text(str(count))
        try:
            taken = is_read(reader, path, guard)
        except BaseException:
            (folder / "finding.txt").write_text(traceback.format_exc())
            raise SystemExit(1) from None
        read += taken
        (folder / "read").write_text(str(read))
        if taken and len(kept) < MOST_KEPT:
            kept.append(content)  # changes add up


if __name__ == "__main__":
    work(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
