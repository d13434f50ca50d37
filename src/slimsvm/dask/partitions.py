"""The rows of a Dask array or data frame as parts that stay on the workers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np

from ..kernels import Array
from . import parts


def require_dask() -> Any:
    """Return `distributed`, or raise ImportError with the extra that has it."""
    try:
        import dask.array  # noqa: F401
        import distributed
    except ImportError as error:
        raise ImportError('slimsvm.dask needs Dask; install it by pip install "slimsvm[dask]"') from error
    return distributed


def present_client(distributed: Any) -> Any:
    """Return the client of this process, or raise ValueError if there is none or it was closed."""
    try:
        return distributed.get_client()
    except ValueError as error:
        raise ValueError(
            "there is no Dask client, or it was closed; make one before fit: dask.distributed.Client() for the cores of "
            "this machine, Client('host:8786') for a cluster"
        ) from error


#: share of a worker's memory for the parts of one group; with more, workers that also hold copies run out of memory
MEMORY_SHARE = 0.1
#: rows a thread of the worker with the most, over their mean, above which parts are moved; lower: more parts are moved
UNEVEN = 1.05
#: seconds after which the scheduler is asked again where parts are; more: after a loss, rounds are uneven for longer
KNOWN_FOR = 1.0


class Partitions:
    """Rows of numbers in parts on the workers of a cluster: where each part is, how many rows it has, and no rows.

    Parts are results that Dask knows how to compute. A part that is lost with its worker is computed again, from the file
    or the array that it came from.
    """

    def __init__(self, client: Any, held: Sequence[Any]) -> None:
        self.client = client
        self._all: Array | None = None
        self.recent: list[Any] = []  # the answers of the last call
        self.found: tuple[list[Any], float, list[list[int]]] = [], -np.inf, []  # parts, when they were found, and groups
        self.at_once = 1  # parts of a group at most; their sizes are not known yet
        known: list[parts.PartSummary] = self.gathered(held, parts.summary)
        filled = [number for number, summary in enumerate(known) if summary.count]  # without empty parts
        self.held, self.known = [held[number] for number in filled], [known[number] for number in filled]
        self._check()
        self.at_once = self._parts_at_once()

    @classmethod
    def of(cls, X: Any) -> Partitions:
        """Return the rows of a Dask array or data frame, which are computed and kept on the workers."""
        distributed = require_dask()
        if not hasattr(X, "dask"):
            raise TypeError(
                f"X is a {type(X).__name__}, not a Dask array or data frame; make one with dask.array.from_array, or fit "
                "SlimSVC or SlimSVR to it"
            )
        client = present_client(distributed)
        if hasattr(X, "chunks") and X.ndim == 2:
            check_chunks(X)
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        persisted = client.persist(X)
        return cls(client, distributed.futures_of(persisted))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return sum(summary.count for summary in self.known), self.known[0].width

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""
        return np.dtype(self.known[0].dtype)

    @cached_property
    def offsets(self) -> Array:
        """The number of the first row of each part, and the number of all rows."""
        return np.concatenate([[0], np.cumsum([summary.count for summary in self.known])])

    @property
    def mean(self) -> Array:
        """The mean row."""
        return np.sum([summary.total for summary in self.known], axis=0) / self.shape[0]

    def variance(self) -> float:
        """Return the variance of all numbers."""
        mean = float(self.mean.mean())
        return sum(self.gathered(self.held, parts.spread, mean)) / (self.shape[0] * self.shape[1])

    def most_squared_norm(self, centre: Array | None) -> float:
        """Return a bound on the squared norm of any row relative to a centre, from what is known of the parts."""
        centre = np.zeros(self.shape[1]) if centre is None else centre
        away = [float(np.linalg.norm(summary.total / summary.count - centre)) for summary in self.known]
        return max((summary.reach + distance) ** 2 for summary, distance in zip(self.known, away, strict=True))

    def fingerprint(self) -> str:
        """Return a hash of the rows."""
        words = "".join(self.gathered(self.held, parts.fingerprint))
        return hashlib.blake2b(words.encode(), digest_size=16).hexdigest()

    def everything(self) -> Array:
        """Return all rows, for a small problem."""
        if self._all is None:
            self._all = self[:]
        return self._all

    def __getitem__(self, index: Any) -> Array:
        """Return a few rows as they are."""
        numbers = np.arange(self.shape[0])[index]
        out = np.empty((numbers.size, self.shape[1]), self.dtype)
        places = locate(numbers, self.offsets)
        for (_, where, _), rows in zip(places, self.selected(self.held, places, parts.taken), strict=True):
            out[where] = rows
        return out

    # Work on the cluster.

    def submitted(self, held: Sequence[Any], work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return work(part, *arguments) for each part, as parts that stay on the workers."""
        return self._sent(work, [(part, *arguments) for part in held])

    def spread_out(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return work(part, *arguments) for each part, as parts on workers that then have about as many rows each.

        In each round all workers wait for the one with the most rows. If a worker is lost, its parts go to any other.
        """
        threads = self.client.nthreads()
        holders = self.holders(self.held, threads)
        wanted = evened([each.count for each in self.known], holders, threads)
        spread: list[Any] = [None] * len(self.held)
        for worker in dict.fromkeys(wanted):
            numbers = [number for number, each in enumerate(wanted) if each == worker]
            place = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
            made = self._sent(work, [(self.held[number], *arguments) for number in numbers], **place)
            for number, part in zip(numbers, made, strict=True):
                spread[number] = part
        return spread

    def gathered(self, held: Sequence[Any], work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return work(part, *arguments) for each part; the arguments are sent once for each group of parts."""
        groups = self.grouped(held)
        return self._answers(groups, parts.for_each, [([held[k] for k in group], work, *arguments) for group in groups])

    def each(self, held: Sequence[Any], work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return work(part, *its own arguments) for each part."""
        groups = self.grouped(held)
        calls = [([held[k] for k in group], work, [arguments[k] for k in group]) for group in groups]
        return self._answers(groups, parts.for_each_own, calls)

    def selected(self, held: Sequence[Any], places: list[tuple[int, Array, Array]], work: Callable[..., Any]) -> list[Any]:
        """Return work(part, rows) for each of the places of some rows.

        Workers answer at once for the parts that they hold. A task takes Dask some 5 ms, in which all workers would wait.
        """
        asked = {held[number].key: local for number, _, local in places}
        answers = self.client.run(at_hand, asked, work, on_error="ignore") if asked else {}
        by_key = {key: answer for of_worker in answers.values() for key, answer in of_worker.items()}
        lost = [(held[number], local) for number, _, local in places if held[number].key not in by_key]
        if lost:
            computed = self.each([part for part, _ in lost], work, [(local,) for _, local in lost])
            by_key |= {part.key: answer for (part, _), answer in zip(lost, computed, strict=True)}
        return [by_key[held[number].key] for number, _, _ in places]

    def _sent(self, work: Callable[..., Any], calls: list[tuple[Any, ...]], **place: Any) -> list[Any]:
        """Return the results of work(*call) for each call, which stay on the workers.

        All calls are one message: a Dask client sends one in 10 ms at most, so a second one would wait.
        """
        return self.client.map(work, *map(list, zip(*calls, strict=True)), pure=False, **place) if calls else []

    def _answers(self, groups: list[list[int]], work: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
        """Return the answers of calls for groups of parts, in the order of the parts.

        To release the last answers is a message too: it follows the call, which does not wait for it.
        """
        self.recent = self._sent(work, calls)
        found = zip(groups, self.client.gather(self.recent), strict=True)
        by_part = {number: answer for group, answers in found for number, answer in zip(group, answers, strict=True)}
        return [by_part[number] for number in range(len(by_part))]

    def grouped(self, held: Sequence[Any]) -> list[list[int]]:
        """Return groups of parts, by number, that one thread works on: as many groups on a worker as it has threads.

        The parts of a group are in memory together. So there are more groups if they would take too much of a worker's
        memory. A part that is being computed or was lost is a group of its own.
        """
        keys, now = [part.key for part in held], monotonic()
        if keys == self.found[0] and now < self.found[1] + KNOWN_FOR:
            return self.found[2]
        threads = self.client.nthreads()
        on: dict[str, list[int]] = {}
        alone = []
        for number, worker in enumerate(self.holders(held, threads)):
            if worker is None:
                alone.append([number])
            else:
                on.setdefault(worker, []).append(number)
        counts = {worker: max(threads[worker], -(-len(numbers) // self.at_once)) for worker, numbers in on.items()}
        shared = [numbers[k :: counts[worker]] for worker, numbers in on.items() for k in range(counts[worker])]
        groups = [group for group in shared if group] + alone
        if not alone:
            self.found = keys, now, groups
        return groups

    def holders(self, held: Sequence[Any], threads: Mapping[str, int]) -> list[str | None]:
        """Return for each part a worker that has it; None for a part that is being computed or was lost."""
        holding = self.client.who_has(held)
        return [next((worker for worker in holding.get(part.key, ()) if worker in threads), None) for part in held]

    def _parts_at_once(self) -> int:
        """Return the number of parts, all as large as the largest, for which a worker has memory in one task."""
        limits = [part["memory_limit"] for part in self.client.scheduler_info()["workers"].values()]
        largest = 8 * max(part.count * part.width for part in self.known)
        allowed = [MEMORY_SHARE * limit / largest for limit in limits if limit]
        return int(np.clip(min(allowed, default=np.inf), 1, len(self.held)))

    def _check(self) -> None:
        if not self.known:
            raise ValueError("X has no rows: all its partitions are empty")
        if not self.known[0].width:
            raise ValueError("X has no features; give one column at least")
        for what, words in (("width", "their number of features"), ("dtype", "dtype")):
            kinds = sorted({str(getattr(summary, what)) for summary in self.known})
            if len(kinds) > 1:
                raise ValueError(
                    f"the partitions of X differ in {words}: {', '.join(kinds)}; give all of them the same, e.g. with "
                    "X.astype('float32')"
                )
        bad = next((number for number, summary in enumerate(self.known) if not summary.finite), None)
        if bad is not None:
            raise ValueError(f"X contains NaN or infinity, first in partition {bad}; fill or drop such rows")


def check_chunks(X: Any) -> None:
    """Raise ValueError if the chunk sizes of a Dask array are unknown."""
    if any(math.isnan(size) for axis in X.chunks for size in axis):
        raise ValueError(
            "the chunk sizes of a Dask array are unknown, as after a selection of rows; call X.compute_chunk_sizes() first"
        )


def locate(index: Array, offsets: Array) -> list[tuple[int, Array, Array]]:
    """Return for each part with some of the rows: its number, their places in `index`, and their numbers in the part."""
    owner = np.searchsorted(offsets, index, side="right") - 1
    located = []
    for number in np.unique(owner).tolist():
        where = np.flatnonzero(owner == number)
        located.append((number, where, index[where] - offsets[number]))
    return located


def at_hand(asked: dict[str, Array], work: Callable[..., Any], dask_worker: Any = None) -> dict[str, Any]:
    """Return work(part, rows) for each of the parts that a worker holds; Dask gives it as `dask_worker`."""
    return {key: work(dask_worker.data[key], rows) for key, rows in asked.items() if key in dask_worker.data}


def evened(sizes: Sequence[int], holders: Sequence[str | None], threads: Mapping[str, int]) -> list[str | None]:
    """Return the worker that is to have each part, so that all have about as many rows for each of their threads.

    Parts go one by one from the worker with the most rows a thread to the one with the fewest, while that lowers the most.
    """
    wanted, rows = list(holders), dict.fromkeys(threads, 0)
    if not threads:
        return wanted
    for size, worker in zip(sizes, holders, strict=True):
        if worker is not None:
            rows[worker] += size
    mean = sum(rows.values()) / sum(threads.values())
    for _ in sizes:
        fullest, least = (choose(rows, key=lambda worker: rows[worker] / threads[worker]) for choose in (max, min))
        after = {
            number: max((rows[fullest] - size) / threads[fullest], (rows[least] + size) / threads[least])
            for number, size in enumerate(sizes)
            if wanted[number] == fullest
        }
        load = rows[fullest] / threads[fullest]
        if load <= UNEVEN * mean or min(after.values()) >= load:
            break
        moved = min(after, key=after.__getitem__)
        wanted[moved] = least
        rows[fullest], rows[least] = rows[fullest] - sizes[moved], rows[least] + sizes[moved]
    return wanted
