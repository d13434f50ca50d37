"""Checkpoints: the state of a long fit in a file, from which the same fit continues after its process was killed.

The file is a container of `files.container`: it is checked before use, has no pickle, and is written completely or not at
all. It belongs to one version of slimsvm, one set of rows and labels, and one set of settings.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..checks import check_positive
from ..files.container import container_bytes, entry_of, pack_file, unpack_file, write_whole
from ..kernels import Array, Matrix, Precomputed
from ..model import Fit, Status
from ..rows.threads import blocks
from ..run import Checkpoint
from ..selection.path import Path
from ..selection.problem import Problem
from ..states import State, StateError, whole
from ..text import short, warn_user
from ..trainers import TRAINERS
from ..trainers.base import Trainer
from ..trainers.frames.online import OnlineTrainer
from .streams import Stream

#: the version of the states in a file; raised when a method's states change
FORMAT = 6
#: rows that are hashed at a time
HASHED_ROWS = 1 << 14
#: parameters that may differ between the run that wrote a checkpoint and the run that continues
FREE = {"checkpoint", "time_limit", "verbose", "random_state"}
#: seconds between two saves, unless the checkpoint says others
SECONDS = 60.0


class CheckpointFile:
    """The states of all parts of a fit, and the file in which they are saved every `seconds`."""

    def __init__(self, path: pathlib.Path, seconds: float, identity: dict[str, Any], seed: int) -> None:
        self.path, self.seconds, self.identity, self.seed = path, seconds, identity, seed
        self.states: dict[str, State] = {}
        self.found: dict[str, State] = {}  # read from the file, and not yet used
        self.written = perf_counter()
        self.offered: dict[str, float] = {}  # when each part was saved last
        self.lock = threading.RLock()  # outputs are trained by several threads
        self.failed = False

    @classmethod
    def opened(cls, given: Any, identity: dict[str, Any], seed: int) -> CheckpointFile:
        """Return the checkpoint of a fit: with the states in its file, or empty if there is no file yet."""
        place, seconds = place_and_seconds(given)
        file = cls(place, seconds, identity, seed)
        if place.exists():
            file._read()
        return file

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of the whole fit."""
        return FileCheckpoint(self, "")

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


class FileCheckpoint(Checkpoint):
    """The checkpoint of one part of a fit, by its name in the file."""

    def __init__(self, file: CheckpointFile, name: str) -> None:
        self.file, self.name = file, name

    def within(self, name: str) -> Checkpoint:
        """Return the checkpoint of a part."""
        return FileCheckpoint(self.file, f"{self.name}/{name}")

    def saved(self) -> State | None:
        """Return the state in the file at the first call, and None afterwards."""
        with self.file.lock:
            state = self.file.found.pop(self.name, None)
            if state is not None:
                self.file.states.setdefault(self.name, state)
            return state

    def offer(self, state: Callable[[], State]) -> None:
        """Save the state if the last save is long enough ago."""
        self.file.offer(self.name, state)

    def keep(self, state: State, *, now: bool = False) -> None:
        """Keep a state."""
        self.file.keep(self.name, state, now)


def place_and_seconds(given: Any) -> tuple[pathlib.Path, float]:
    """Return the path and the seconds of a checkpoint, which is a path or both.

    Raise ValueError if the path cannot be written, before hours of work.
    """
    path, seconds = given if isinstance(given, tuple) and len(given) == 2 else (given, SECONDS)
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"checkpoint must be the name of a file, (name, seconds), or None, not {given!r}")
    check_positive("the seconds of a checkpoint", seconds)
    place = pathlib.Path(os.path.realpath(path))
    if not place.parent.is_dir() or not os.access(place.parent, os.W_OK | os.X_OK):
        raise ValueError(f"cannot write the checkpoint {os.fspath(path)!r}: there is no folder that can be written to")
    if place.exists() and not place.is_file():
        raise ValueError(f"cannot write the checkpoint {os.fspath(path)!r}, which is not a file")
    return place, float(seconds)


def check_checkpoint(estimator: Any, methods: Iterable[tuple[str, Any, dict[str, Any]]]) -> None:
    """Raise ValueError if a method cannot continue from a checkpoint; `methods` are (what, method, table)."""
    if estimator.checkpoint is None:
        return
    place_and_seconds(estimator.checkpoint)
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
        for block in blocks(part.shape[0], HASHED_ROWS):
            digest.update(np.ascontiguousarray(part[block]).data)
    return digest.hexdigest()


def _words(value: Any) -> str:
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


#: settings of a trainer that say how long it runs, and not which model it looks for
LENGTH = ("tol", "max_iter", "time_limit")


@dataclass(frozen=True)
class Start:
    """The coefficients of a fit; where a method counts the rows drawn for each output, that count and the problem."""

    dual: Any  # (n, q)
    draws: Array | None  # (q,)
    problem: str = ""

    @classmethod
    def of(cls, fit: Fit, trainer: Any, problem: Problem) -> Start:
        """Return what the next fit may start from."""
        if fit.draws is None or not fit.draws.any():
            return cls(fit.dual, None)
        return cls(fit.dual, fit.draws, problem_of(trainer, problem))

    def arguments(self, trainer: Any, problem: Problem) -> tuple[Any, ...]:
        """Return the coefficients, and the rows drawn if they were drawn for the same problem.

        For another problem the coefficients are just a guess. As the mean of many draws they would hardly move.
        """
        if self.draws is None or self.problem != problem_of(trainer, problem):
            return (self.dual,)
        return self.dual, self.draws


def problem_of(trainer: Any, problem: Problem) -> str:
    """Return text that is the same if rows, labels, weights, kernel and trainer are, however long the trainer runs."""
    settings = sorted((name, repr(value)) for name, value in vars(trainer).items() if name not in LENGTH)
    rows = fingerprint(problem.X, problem.labels, problem.weights)
    return f"{type(trainer).__name__} {settings} {problem.kernel!r} {rows}"


def check_warm_start(estimator: Any, trainer: Trainer | None) -> None:
    """Raise ValueError if `warm_start` is set and training cannot start from an earlier fit."""
    if not estimator.warm_start or (trainer is not None and trainer.starts_warm):
        return
    able = sorted(name for name, kind in TRAINERS.items() if kind.starts_warm)
    cannot = "trainer=None trains no full model" if trainer is None else f"{type(trainer).__name__} cannot"
    raise ValueError(
        f"warm_start=True starts training from the last fit, but {cannot}; the trainers that can are {able}. Give one of "
        "them, or warm_start=False"
    )


def warm_start(estimator: Any, trainer: Any, problem: Problem) -> tuple[Any, ...]:
    """Return more arguments for the trainer's `fit`, which let it start from the last one; none for the first fit."""
    if not estimator.warm_start:
        return ()
    if isinstance(trainer, OnlineTrainer):
        stream = getattr(estimator, "stream_", None)
        return () if stream is None else (_state(stream, estimator, problem),)
    start: Start | None = getattr(estimator, "_start", None)
    if start is None:
        return ()
    shape = problem.n, problem.goal.outputs
    if tuple(start.dual.shape) != shape:
        raise ValueError(
            f"warm_start=True starts from the coefficients of the last fit, {start.dual.shape[0]} rows and "
            f"{start.dual.shape[1]} outputs, but this one has {shape[0]} rows and {shape[1]} outputs; give the same rows, "
            "or fit clone(estimator)"
        )
    return start.arguments(trainer, problem)


def keep_start(estimator: Any, trainer: Any, problem: Problem, fit: Fit) -> None:
    """Keep the coefficients of all rows if the next fit may start from them; a stream is kept anyway."""
    estimator.__dict__.pop("_start", None)
    if estimator.warm_start and fit.dual is not None:
        estimator._start = Start.of(fit, trainer, problem)


def _state(stream: Stream, estimator: Any, problem: Problem) -> Any:
    """Return the state of an online learner; raise ValueError if it is of other settings, kernels or shapes."""
    stream.check_settings(estimator)
    points, X = stream.state.points, problem.X
    width = 1 if isinstance(stream.kernel, Precomputed) else X.shape[1]
    same = points.shape[1] == width and issparse(points) == issparse(X)
    if stream.kernel != problem.kernel or stream.state.coef.shape[1] != problem.goal.outputs or not same:
        raise ValueError(
            "warm_start=True continues from the points of the last fit, but kernel width, features, sparseness or number "
            "of classes differ; give rows of the same kind and gamma as a number, or fit clone(estimator)"
        )
    return stream.state


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a call after a model had been found: small models, or an unfinished exact one of a single output.

    It is a KeyboardInterrupt, so loops around the call end too.

    Attributes
    ----------
    best : SlimSVC or Pipeline
        What the call would have returned with the models found so far: the estimator of `fit`, the small model of
        `compress`. The `status_` of the SlimSVC is Status.INTERRUPTED.

    Examples
    --------
    >>> from slimsvm import Interrupted, compress
    >>> def small_model(model, X, y):
    ...     try:
    ...         return compress(model, X, y, budget=50)
    ...     except Interrupted as stop:
    ...         return stop.best
    """

    def __init__(self, best: Any = None) -> None:
        super().__init__(f"{Status.INTERRUPTED.value}, which is kept")
        self.best = best


def was_interrupted(path: Path | None) -> bool:
    """Return whether Ctrl-C ended a path, or the work on the model that was chosen from it."""
    return path is not None and path.status is Status.INTERRUPTED
