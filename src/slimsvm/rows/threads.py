"""Threads of the host: their number, a limit on those of BLAS and OpenMP, and a thread pool that works through strips."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, cached_property, partial
from threading import Lock
from typing import Any, TypeAlias

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from .._core import core
from ..kernels import Array

#: rows below which a strip is not worth a thread
SMALLEST_STRIP = 128
#: larger strips have a multiple of so many rows. BLAS rounds the last rows of a strip that are fewer otherwise, and results
#: would depend on the number of threads
ALIGNED = 64
#: multiply-adds that are worth waking another thread for compiled work; fewer: waking takes longer than the work
HELPER_WORK = 1 << 22
#: multiply-adds that take as long as reading a kernel value from memory
READ_COST = 8
#: the most threads, for machines that count wrong
MOST_THREADS = 1024
#: the most threads that wheels of OpenBLAS are built for; as many are no limit
BLAS_THREADS = 64


class OneBlasThread:
    """Limit BLAS to one thread while any thread asks for it; the last one restores the former number.

    The setting belongs to the process, so all threads share one list of users. If each restored the number that it found,
    the second of two overlapping users would restore 1. A forked process keeps only the users of its own thread.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: list[tuple[int, object]] = []  # (thread, object unique to the user)
        self.before: list[tuple[Callable[[int], None], int]] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the limit during a `with` block."""
        user = threading.get_ident(), object()
        try:
            with self.lock:
                if not self.users:
                    self.before = [(_setter(library), library.get_num_threads()) for library in _libraries()]
                    for set_threads, _ in self.before:
                        set_threads(1)
                self.users.append(user)
            yield
        finally:
            try:
                self._leave(user)
            except BaseException:  # Ctrl-C during the restore: try again
                self._leave(user)
                raise

    def _leave(self, user: tuple[int, object]) -> None:
        """Remove a user from the list, if it is there, and restore the threads after the last one."""
        with self.lock:
            if user in self.users:
                self.users.remove(user)
            self._restore()

    def _restore(self) -> None:
        """Restore the number of BLAS threads if nobody holds the limit."""
        if not self.users:
            for set_threads, count in self.before:
                set_threads(count)
            self.before = []

    def _forked(self) -> None:
        """Forget the threads that a forked process does not have, and a lock that one of them may have held."""
        self.lock = threading.Lock()
        if self.users:
            self.users = [user for user in self.users if user[0] == threading.get_ident()]
            self._restore()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _libraries() -> list[Any]:
    return [library for library in _controller().lib_controllers if library.user_api == "blas"]


def _setter(library: Any) -> Callable[[int], None]:
    """Return a function that sets the threads of a BLAS library from any thread.

    threadpoolctl 3.8 lets only the first thread that set them do so again; here another thread may restore them.
    """
    return getattr(library, "_real_set_num_threads", library.set_num_threads)


_blas = OneBlasThread()
#: one_blas_thread(): matrix products in the calling thread only, during a `with` block
one_blas_thread = _blas.held


def one_openmp_thread() -> AbstractContextManager[object]:
    """Limit scikit-learn's own loops to the calling thread, during a `with` block; each thread has its own limit."""
    return _controller().limit(limits=1, user_api="openmp")


def thread_count() -> int:
    """Return the number of threads to use: the cores of this process, or fewer.

    joblib knows of affinity and of the CPU limits of containers. OMP_NUM_THREADS lowers the number, and so does a limit on
    the threads of OpenBLAS, such as `threadpoolctl.threadpool_limits` sets.
    """
    return max(
        min(joblib.cpu_count(), *(limit for limit in (_environment_limit(), blas_limit()) if limit), MOST_THREADS), 1
    )


def _environment_limit() -> int | None:
    """Return OMP_NUM_THREADS; None, with a warning, where it is not a number above 0."""
    given = (
        os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    )  # the numbers after a comma are of nested threads
    if given.isdecimal() and int(given):
        return int(given)
    if given:
        warnings.warn(
            f"OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']!r} is not a number above 0 and is ignored; set it to the "
            "number of threads to use, or unset it",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def blas_limit() -> int | None:
    """Return the threads of OpenBLAS where somebody has limited them; None if it has as many as it can have."""
    with _blas.lock:
        counts = [count for _, count in _blas.before] or [library.get_num_threads() for library in _libraries()]
    counts = [count for library, count in zip(_libraries(), counts, strict=True) if library.internal_api == "openblas"]
    return min(counts) if counts and min(counts) < min(joblib.cpu_count(), BLAS_THREADS) else None


def blocks(n: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` that cover range(n)."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


#: threads of a team and how many of them to wake, for compiled jobs
Helpers: TypeAlias = tuple[core.Team | None, int]


@cache
def _team(count: int) -> core.Team:
    """Return threads that wait for work, the same for all pools: starting some takes longer than a small prediction."""
    team = core.Team(count)
    for number in range(count):
        try:
            threading.Thread(target=_serve, args=(team, number), name="slimsvm", daemon=True).start()
        except RuntimeError:  # the system allows no more threads
            break
    return team


def _serve(team: core.Team, number: int) -> None:
    _inside.working = True
    team.serve(number)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.cache_clear)  # a forked process has only the thread that forked
#: whether the calling thread works on a strip
_inside = threading.local()


class _Strips:
    """Strips of range(n) that threads take one after the other."""

    def __init__(self, work: Callable[[slice], None], n: int, size: int) -> None:
        self.work, self.left, self.lock = work, blocks(n, size), threading.Lock()

    def taken(self) -> slice | None:
        """Return the next strip; None after the last one."""
        with self.lock:
            return next(self.left, None)

    def run(self) -> None:
        """Work through strips until none is left. After an error or Ctrl-C no thread takes another one."""
        try:
            while (strip := self.taken()) is not None:
                self.work(strip)
        except BaseException:
            with self.lock:
                self.left = iter(())
            raise


class ThreadPool:
    """The calling thread and helpers, which work through strips of rows, with one BLAS thread each.

    A nested call of `run` inside a strip runs in the strip's own thread. Helpers that are late, because others use them or
    the machine has fewer cores than it says, are not waited for: the calling thread does their strips.
    """

    def __init__(self, count: int | None = None) -> None:
        self.given = count

    @cached_property
    def count(self) -> int:
        """The number of threads; read from the system when there is work for threads."""
        return self.given or thread_count()

    def __reduce__(self) -> tuple[type[ThreadPool], tuple[int]]:
        """Return how to make the thread pool in another process."""
        return ThreadPool, (self.count,)

    def run(self, work: Callable[[slice], None], n: int, size: int, *, exactly: bool = False) -> None:
        """Call work(strip) for strips that cover range(n), of at most `size`, and four or more for each thread if n allows.

        They have just that size if `exactly`.
        """
        alone = getattr(_inside, "working", False) or self.count == 1
        if size > SMALLEST_STRIP and not exactly:
            share = -(-n // (4 * (1 if alone else self.count)))
            size = max(min(size, share + ALIGNED - 1) // ALIGNED * ALIGNED, SMALLEST_STRIP)
        if alone or n <= size:
            for strip in blocks(n, size):
                work(strip)
            return
        strips = _Strips(work, n, size)
        with one_blas_thread():
            self.together(strips.run, -(-n // size) - 1)

    def helpers_for(self, multiply_adds: float, most: int = MOST_THREADS) -> Helpers:
        """Return as many threads for a compiled job as its work is worth; at most `most` beside the calling one."""
        most = int(min(multiply_adds / HELPER_WORK, most))
        count = 0 if getattr(_inside, "working", False) or most < 1 else min(self.count - 1, most)
        return (_team(self.count - 1), count) if count else (None, 0)

    def together(self, work: Callable[[], None], most: int) -> None:
        """Call work() here and in at most `most` helpers, which share something out; return when all of it is done."""
        team, helpers = self.helpers_for(float("inf"), most)
        if team is None:
            _marked(work)
            return
        errors: list[BaseException] = []

        def there() -> None:
            try:
                work()
            except BaseException as error:  # raised in the calling thread
                errors.append(error)

        team.run(partial(_marked, work), there, helpers)
        if errors:
            raise errors[0]


#: the calling thread without helpers
ALONE = ThreadPool(1)


def _marked(work: Callable[[], None]) -> None:
    """Call work(), in which thread pools do not use helpers."""
    before, _inside.working = getattr(_inside, "working", False), True
    try:
        work()
    finally:
        _inside.working = before


class Spaces:
    """Pieces of memory that threads use one after the other: new ones take longer to allocate than to fill."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype, self.unused, self.lock = dtype, list[Array](), Lock()

    @contextmanager
    def of(self, size: int) -> Iterator[Array]:
        """Yield memory for `size` numbers; a larger piece takes the place of one that is too small."""
        space = self._taken(size)
        if space.size < size:
            del space  # before the new one is allocated
            space = np.empty(size, self.dtype)
        try:
            yield space
        finally:
            with self.lock:
                self.unused.append(space)

    def _taken(self, size: int) -> Array:
        """Return the smallest unused piece that is large enough, else the last one."""
        with self.lock:
            fitting = [place for place, space in enumerate(self.unused) if space.size >= size]
            place = min(fitting, key=lambda place: self.unused[place].size) if fitting else -1
            return self.unused.pop(place) if self.unused else np.empty(0, self.dtype)
