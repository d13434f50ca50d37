"""Checkpoints: the state of a long fit in a file, from which the same fit continues after its process was killed.

The file is a container of `files.container`: it is checked before use, has no pickle, and is written completely or not at
all. It belongs to one version of slimsvm, one set of rows and labels, and one set of settings.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..checks import check_positive
from ..files.container import container_bytes, entry_of, pack_file, unpack_file, write_whole
from ..keeping import Keeper, State, StateError
from ..kernels import Array, Matrix
from ..rows.threads import blocks
from ..states import whole
from ..text import short
from ..warning import warn_user

#: the version of the states in a file; raised when a method's states change
FORMAT = 4
#: rows that are hashed at a time
HASHED_ROWS = 1 << 14
#: parameters that may differ between the run that wrote a checkpoint and the run that continues
FREE = {"checkpoint", "checkpoint_seconds", "time_limit", "verbose", "random_state"}


class Checkpoint:
    """The states of all parts of a fit, and the file in which they are saved every `seconds`."""

    def __init__(self, path: Path, seconds: float, identity: dict[str, Any], seed: int) -> None:
        self.path, self.seconds, self.identity, self.seed = path, seconds, identity, seed
        self.states: dict[str, State] = {}
        self.found: dict[str, State] = {}  # read from the file, and not yet used
        self.written = perf_counter()
        self.offered: dict[str, float] = {}  # when each part was saved last
        self.lock = threading.RLock()  # outputs are trained by several threads
        self.failed = False

    @classmethod
    def opened(cls, path: Any, seconds: float, identity: dict[str, Any], seed: int) -> Checkpoint:
        """Return the checkpoint of a fit: with the states in its file, or empty if there is no file yet."""
        place = checked_path(path)
        checkpoint = cls(place, seconds, identity, seed)
        if place.exists():
            checkpoint._read()
        return checkpoint

    @property
    def keeper(self) -> Keeper:
        """The keeper of the whole fit."""
        return FileKeeper(self, "")

    def offer(self, name: str, state: Callable[[], State]) -> None:
        """Save the state of a part if its last save is `seconds` ago."""
        with self.lock:
            if perf_counter() - self.offered.setdefault(name, self.written) >= self.seconds:
                self.offered[name] = perf_counter()
                self.states[name] = state()
                self.write()

    def keep(self, name: str, state: State, now: bool) -> None:
        """Keep the state of a part; save all states with `now`, or if the last save is `seconds` ago."""
        with self.lock:
            self.states[name] = state
            if now or perf_counter() - self.written >= self.seconds:
                self.write()

    def write(self) -> None:
        """Save all states. If that fails, the old file stays, and the fit continues after a warning."""
        arrays: dict[str, Array] = {}
        with self.lock:
            states = {name: _packed(state, arrays) for name, state in {**self.found, **self.states}.items()}
            entry = {"format": FORMAT, "identity": self.identity, "seed": self.seed, "states": states}
            try:
                write_whole(self.path, pack_file({"slimsvm": version("slimsvm"), "checkpoint": entry}, arrays))
            except OSError as error:
                if not self.failed:
                    old = "the one before it stays" if self.path.exists() else "there is none yet"
                    warn_user(
                        f"the checkpoint {str(self.path)!r} could not be written ({error.strerror or error}); {old}, and "
                        "the fit continues. Make room on the disk: it is tried again",
                    )
                self.failed = True
            self.written = perf_counter()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Save all states at the end of a `with` block, also after an error; name the file in errors of states."""
        try:
            yield
        except StateError as error:
            raise ValueError(f"cannot continue from the checkpoint {str(self.path)!r}: {error}") from error
        finally:
            self.write()

    def remove(self) -> None:
        """Delete the file of a fit that is complete."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        """Read the states in the file; raise ValueError if it belongs to another fit."""
        try:
            header, arrays = unpack_file(container_bytes(self.path))
            if "checkpoint" not in header:
                raise ValueError("it is a model and not a checkpoint; give another name")
            entry = entry_of(header, "checkpoint", dict)
            self._check(entry, header.get("slimsvm"))
            self.seed = whole(0, np.iinfo(np.int32).max).read("seed", entry.get("seed"), {})
            self.found = {name: _unpacked(state, arrays) for name, state in entry_of(entry, "states", dict).items()}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"cannot continue from the checkpoint {str(self.path)!r}: {error}") from error

    def _check(self, entry: dict[str, Any], written_by: Any) -> None:
        theirs, ours = entry_of(entry, "identity", dict), self.identity
        if (written_by, entry.get("format")) != (version("slimsvm"), FORMAT):
            raise ValueError(
                f"slimsvm {short(written_by)} wrote it with states of version {short(entry.get('format'))}, but this is "
                f"slimsvm {version('slimsvm')} with states of version {FORMAT}; finish the fit there or delete it"
            )
        if theirs.get("data") != ours["data"]:
            raise ValueError("it is of other rows, labels or weights; give those, or delete it to start again")
        before = entry_of(theirs, "settings", dict)
        changed = sorted(
            name for name in before.keys() | ours["settings"] if before.get(name) != ours["settings"].get(name)
        )
        if changed:
            words = ", ".join(f"{name} was {short(before.get(name))}" for name in changed[:3])
            raise ValueError(f"it is of other settings ({words}); set them back, or delete it to start again")


class FileKeeper(Keeper):
    """The keeper of one part of a fit, by its name in the checkpoint."""

    def __init__(self, checkpoint: Checkpoint, name: str) -> None:
        self.checkpoint, self.name = checkpoint, name

    def within(self, name: str) -> Keeper:
        """Return the keeper of a part."""
        return FileKeeper(self.checkpoint, f"{self.name}/{name}")

    def saved(self) -> State | None:
        """Return the state in the file at the first call, and None afterwards."""
        with self.checkpoint.lock:
            state = self.checkpoint.found.pop(self.name, None)
            if state is not None:
                self.checkpoint.states.setdefault(self.name, state)
            return state

    def offer(self, state: Callable[[], State]) -> None:
        """Save the state if the last save is long enough ago."""
        self.checkpoint.offer(self.name, state)

    def keep(self, state: State, *, now: bool = False) -> None:
        """Keep a state."""
        self.checkpoint.keep(self.name, state, now)


def checked_path(path: Any) -> Path:
    """Return the path of a checkpoint; raise ValueError if it cannot be written, before hours of work."""
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"checkpoint must be the name of a file, or None, not {path!r}")
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir() or not os.access(place.parent, os.W_OK | os.X_OK):
        raise ValueError(f"cannot write the checkpoint {os.fspath(path)!r}: there is no folder that can be written to")
    if place.exists() and not place.is_file():
        raise ValueError(f"cannot write the checkpoint {os.fspath(path)!r}, which is not a file")
    return place


def check_checkpoint(estimator: Any, methods: Iterable[tuple[str, Any, dict[str, Any]]]) -> None:
    """Raise ValueError if a method cannot continue from a checkpoint; `methods` are (what, method, table)."""
    check_positive("checkpoint_seconds", estimator.checkpoint_seconds)
    if estimator.checkpoint is None:
        return
    checked_path(estimator.checkpoint)
    for what, method, table in methods:
        if not method.resumes:
            able = sorted(name for name, kind in table.items() if kind.resumes)
            raise ValueError(
                f"the {what} {type(method).__name__} cannot continue from a checkpoint; those that can are {able}. Give "
                "one of them, or checkpoint=None"
            )


def identity_of(estimator: Any, X: Matrix, labels: Array, weights: Array) -> dict[str, Any]:
    """Return the identity of a fit: a hash of rows, labels and weights, and the settings as text."""
    settings = {name: _words(value) for name, value in estimator.get_params(deep=False).items() if name not in FREE}
    if isinstance(estimator.random_state, int | np.integer):
        settings["random_state"] = _words(estimator.random_state)
    settings["classes"] = _words(getattr(estimator, "classes_", None))
    return {"data": fingerprint(X, labels, weights), "settings": settings}


def fingerprint(X: Matrix, *columns: Array) -> str:
    """Return a hash of rows and of vectors that belong to them, a block of rows at a time."""
    digest = hashlib.blake2b(digest_size=16)
    if hasattr(X, "fingerprint"):  # rows in parts, each of which has a hash of its own
        digest.update(X.fingerprint().encode())
        X = np.empty(0)
    parts: list[Any] = [X.data, X.indices, X.indptr] if issparse(X) else [X]
    for part in (*parts, *columns):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        for some in blocks(part.shape[0], HASHED_ROWS):
            digest.update(np.ascontiguousarray(part[some]).data)
    return digest.hexdigest()


def _words(value: Any) -> str:
    """Return a setting as text that is the same in every process."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = {field.name: _words(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return f"{type(value).__name__}({inner})"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)


def _packed(value: Any, arrays: dict[str, Array]) -> Any:
    """Return a state as JSON; arrays are collected under names that the JSON refers to."""
    if isinstance(value, np.ndarray):
        name = str(len(arrays))
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {key: _packed(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _unpacked(value: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"array"}:
        return arrays[value["array"]]
    return {key: _unpacked(item, arrays) for key, item in value.items()}
