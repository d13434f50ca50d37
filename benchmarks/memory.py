"""Measure the memory of training on 100,000 x 50 rows, against a limit of cache_mb plus four times the data."""

from __future__ import annotations

import resource

import numpy as np

from benchmarks.timing import line
from slimsvm import SlimSVC


def peak() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def made_rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two noisy classes with a curved boundary."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    margin = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)
    return X, (margin > 0).astype(int)


def main() -> None:
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


if __name__ == "__main__":
    main()
