"""What a report of a problem needs to say about the machine and the packages."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

#: packages whose versions matter, those that are not needed last
PACKAGES = ("slimsvm", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "torch", "cupy", "dask")
#: variables that change the number of threads or the device
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES")


def show_versions() -> None:
    """Print the versions of packages, the compiled pass in use, and the threads: what a report of a problem should say.

    Examples
    --------
    >>> import slimsvm
    >>> slimsvm.show_versions()  # doctest: +ELLIPSIS
    python: ...
    """
    from threadpoolctl import threadpool_info

    from ._core import core
    from .rows.threads import thread_count

    print(f"python: {sys.version.split()[0]} ({platform.platform()}, {platform.machine()})")
    for package in PACKAGES:
        print(f"{package}: {_version(package)}")
    print(f"compiled pass: {core.instruction_set()} (its own matrix products; no BLAS is needed for kernel values)")
    print(f"threads: {thread_count()} of {os.cpu_count()} cores")
    for name in VARIABLES:
        if name in os.environ:
            print(f"{name}: {os.environ[name]!r}")
    for pool in threadpool_info():
        print(f"{pool['internal_api']}: {pool['version']}, {pool['num_threads']} threads, {pool.get('architecture', '')}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
