"""Threads of the host: their number, a limit on those of BLAS and OpenMP, and a crew that works through strips of rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache, cached_property
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

#: rows below which a strip is not worth a thread
SMALLEST_STRIP = 128
#: larger strips have a multiple of so many rows. BLAS rounds the last rows of a strip that are fewer otherwise, and results
#: would depend on the number of threads
ALIGNED = 64


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


#: one_blas_thread(): matrix products in the calling thread only, during a `with` block
one_blas_thread = OneBlasThread().held


def one_openmp_thread() -> AbstractContextManager[object]:
    """Limit scikit-learn's own loops to the calling thread, during a `with` block; each thread has its own limit."""
    return _controller().limit(limits=1, user_api="openmp")


def thread_count() -> int:
    """Return the number of cores this process may use; OMP_NUM_THREADS lowers it, as for scikit-learn."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(joblib.cpu_count(), int(limit)) if limit.isdigit() and int(limit) else joblib.cpu_count()


def blocks(n: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` that cover range(n)."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


class Crew:
    """Threads that work through strips of rows, with one BLAS thread each; they end with their owner.

    A nested call of `run` inside a strip runs in the strip's own thread: a crew never waits for itself.
    """

    def __init__(self, count: int | None = None) -> None:
        self.given = count
        self.pool: ThreadPoolExecutor | None = None
        self.inside = threading.local()

    @cached_property
    def count(self) -> int:
        """The number of threads; read from the system when there is work for threads."""
        return self.given or thread_count()

    def __reduce__(self) -> tuple[type[Crew], tuple[int]]:
        """Return how to make the crew in another process, which starts threads of its own."""
        return Crew, (self.count,)

    def run(self, work: Callable[[slice], None], n: int, size: int) -> None:
        """Call work(strip) for strips of at most `size` that cover range(n), four or more for each thread if n allows."""
        alone = self.count == 1 or getattr(self.inside, "working", False)
        if size > SMALLEST_STRIP:
            share = -(-n // (4 * (1 if alone else self.count)))
            size = max(min(size, share + ALIGNED - 1) // ALIGNED * ALIGNED, SMALLEST_STRIP)
        if alone or n <= size:
            for strip in blocks(n, size):
                work(strip)
            return
        self.pool = self.pool or ThreadPoolExecutor(self.count)
        strips, lock = blocks(n, size), threading.Lock()

        def worker() -> None:
            self.inside.working = True
            try:
                while True:
                    with lock:
                        strip = next(strips, None)
                    if strip is None:
                        return
                    work(strip)
            finally:
                self.inside.working = False

        with one_blas_thread():
            futures = [self.pool.submit(worker) for _ in range(self.count)]
            try:
                for future in futures:
                    future.result()
            except BaseException:  # Ctrl-C, or an error in a thread: no thread starts another strip
                with lock:
                    for _ in strips:
                        pass
                raise
