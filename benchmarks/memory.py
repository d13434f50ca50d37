"""Measure the memory of training: 100,000 x 50 rows in memory, and a million rows in a file (--mapped: these alone).

The first must stay below cache_mb plus four times the data. The second trains `sbp` and shrinks to 128 support vectors; it
runs in a process of its own, whose resident memory must stay below 2 GiB, mapped pages of the file included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.timing import line
from slimsvm import SlimSVC

#: rows of the file, and the resident memory allowed in MiB
MAPPED_ROWS, MAPPED_LIMIT = 1_000_000, 2048


def peak() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def made_rows(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return two noisy classes with a curved boundary."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    margin = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)
    return X, (margin > 0).astype(int)


def in_memory() -> None:
    """Fit the exact model and print the memory it took, the data included."""
    X, y = made_rows(100_000, 50)
    data_mb, before = X.nbytes / 2**20, peak()
    model = SlimSVC(cache_mb=512).fit(X, y)
    used = peak() - before + data_mb
    line(
        benchmark="memory",
        rows=X.shape[0],
        features=X.shape[1],
        support_vectors=int(model.support_vectors_.shape[0]),
        data_mb=data_mb,
        used_mb=used,
        limit_mb=512 + 4 * data_mb,
        within=used <= 512 + 4 * data_mb,
    )


def written_rows(path: Path, n: int) -> None:
    """Write a table of features and labels, a part at a time."""
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, 51))
    for number, start in enumerate(range(0, n, 10_000)):
        table[start : start + 10_000] = np.column_stack(made_rows(min(10_000, n - start), 50, number))
    table.flush()


def in_a_file(path: Path) -> None:
    """Fit to the rows of a file and print the peak of resident memory."""
    table = np.load(path, mmap_mode="r")
    X, y = table[:, :50], np.array(table[:, 50], dtype=np.int8)
    model = SlimSVC(128, trainer="sbp", gamma=0.02, random_state=0).fit(X, y)
    line(
        benchmark="memory",
        rows=X.shape[0],
        features=X.shape[1],
        stored="file",
        file_mb=table.nbytes / 2**20,
        sizes=model.path_.sizes,
        errors=model.path_.errors,
        full_model=[entry for entry in model.history_ if entry["phase"] == "train"][-1],
        support_vectors=model.full_model_.size if hasattr(model, "full_model_") else None,
        seconds=model.history_[-1]["seconds"],
        resident_mb=peak(),
        limit_mb=MAPPED_LIMIT,
        within=peak() <= MAPPED_LIMIT,
    )


def main() -> None:
    """Run both parts, or the second one alone; with a file's name, run that on it."""
    if len(sys.argv) > 1 and sys.argv[1] != "--mapped":
        in_a_file(Path(sys.argv[1]))
        return
    if len(sys.argv) == 1:
        in_memory()
    with tempfile.TemporaryDirectory() as folder:
        written_rows(Path(folder) / "rows.npy", MAPPED_ROWS)
        subprocess.run([sys.executable, "-m", "benchmarks.memory", f"{folder}/rows.npy"], check=True)


if __name__ == "__main__":
    main()
