"""Run the cells of experiments in several processes of one thread each; the rows of a cell are kept when it is complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from subprocess import check_output
from time import perf_counter

from benchmarks.reproduce.experiment import RESULTS, Cell, Row
from benchmarks.reproduce.papers import EXPERIMENTS

#: variables that hold the libraries in a process to one thread; they are read when a library is imported
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

#: the variable that names the commit where there is no repository
COMMIT = "REPRODUCE_COMMIT"

Work = tuple[str, Cell]  # an experiment's name, and one of its cells


def run_cells(work: Iterable[Work], jobs: int, seconds: float | None = None, folder: Path = RESULTS) -> int:
    """Run cells in `jobs` processes, until `seconds` have passed if given; return how many have no rows in the end."""
    os.environ |= ONE_THREAD
    end = perf_counter() + seconds if seconds is not None else float("inf")
    waiting, failed = list(work), 0
    while waiting and perf_counter() < end:
        running: dict[Future[list[Row]], Work] = {}
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            with suppress(BrokenProcessPool):  # a process was killed, for want of memory perhaps; others take its place
                while (waiting or running) and (left := end - perf_counter()) > 0:
                    while waiting and len(running) < jobs:
                        future = pool.submit(timed_run, *waiting[0])
                        running[future] = waiting.pop(0)
                    done, _ = wait(running, timeout=left if left < float("inf") else None, return_when=FIRST_COMPLETED)
                    for future in done:
                        failed += not kept(future, running.pop(future), folder)
            if perf_counter() >= end:
                for process in list((pool._processes or {}).values()):
                    process.kill()  # a cell that was cut leaves no rows
                return len(waiting) + len(running) + failed
        for future, cell in running.items():  # of a pool that broke
            failed += not kept(future, cell, folder)
    return len(waiting) + failed


def timed_run(name: str, cell: Cell) -> list[Row]:
    """Return the rows of one cell, with the seconds that it took."""
    start = perf_counter()
    rows = [cell | row for row in EXPERIMENTS[name].run(cell)]
    seconds = round(perf_counter() - start, 2)
    return [row | {"seconds": seconds, "commit": commit()} for row in rows]


@cache
def commit() -> str:
    """Return the commit that the rows are made with; where there is no repository, that of the environment."""
    if given := os.environ.get(COMMIT):
        return given
    return check_output(["git", "describe", "--always", "--dirty=+"], text=True, cwd=Path(__file__).parent).strip()


def kept(future: Future[list[Row]], work: Work, folder: Path) -> bool:
    """Append the rows of a cell to the file of its experiment, or one with the reason of a failure; return which."""
    name, cell = work
    try:
        rows = future.result()
        if not rows:
            raise ValueError("the cell has no rows")
    except (Exception, SystemExit) as error:  # one cell must not end the others
        print("failed:", name, *cell.values(), repr(error), file=sys.stderr, flush=True)
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        EXPERIMENTS[name].append([cell | {"seconds": 0, "failure": reason}], folder)
        return False
    EXPERIMENTS[name].append(rows, folder)
    print(name, *cell.values(), f"{rows[0]['seconds']} s", flush=True)
    return True


def missing_cells(names: Iterable[str], most: int | None = None, folder: Path = RESULTS) -> list[Work]:
    """Return the cells without rows, at most so many of each experiment, those first that take longest."""
    work = [(name, cell) for name in names for cell in EXPERIMENTS[name].missing(folder)[:most]]
    return sorted(work, key=lambda each: -EXPERIMENTS[each[0]].expected(each[1]))
