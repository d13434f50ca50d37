"""Memory for large copies of rows: copies of memory-mapped rows are memory-mapped files too.

`numpy.memmap` is an array whose pages the system reads from a file and may drop again. Rows that are larger than memory
come as such arrays. A copy of them, centred and in the precision of the tiles, is written to a temporary file and mapped as
well, so it works like any array. Memory then holds tiles, kernel values and vectors of one number per row only.

On POSIX, temporary files have no name, so the system removes them even if the process is killed. They are in the folder of
`tempfile`, which TMPDIR sets; it should be on a disk and not in memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from ..kernels import Array, Matrix

#: copies of mapped rows of at least this many bytes are files; less: more small files
LARGE = 1 << 24


def is_mapped(X: Any) -> bool:
    """Return whether an array is memory-mapped, or a view of one that is."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return isinstance(X, mmap.mmap)


def empty_like_rows(X: Matrix, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Return memory for a copy of some rows of X: a file if X is memory-mapped and the copy is large."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return mapped_empty(shape, dtype) if size >= LARGE and is_mapped(X) else np.empty(shape, dtype)


def mapped_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array of zeros in a temporary file; raise OSError if the disk is full."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(prefix="slimsvm-") as file:
        reserve(file.fileno(), size)
        return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=shape)) if size else np.empty(shape, dtype)


def reserve(handle: int, size: int) -> None:
    """Set a file's size and reserve the disk space: writing to mapped pages on a full disk would kill the process."""
    if hasattr(os, "posix_fallocate") and size:
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError as error:
            error.filename = tempfile.gettempdir()
            raise
    else:
        os.truncate(handle, size)


def gathered(X: Array, index: Array) -> Array:
    """Return some rows of a dense array, copied in blocks; to a file if X is memory-mapped and the rows are many."""
    if not is_mapped(X) or index.size * X.shape[1] * X.itemsize < LARGE:
        return X[index]
    out = mapped_empty((index.size, X.shape[1]), X.dtype)
    for start in range(0, index.size, 4096):
        out[start : start + 4096] = X[index[start : start + 4096]]
    return out


def check_mapped(X: Array) -> None:
    """Raise ValueError if a mapped file has become shorter than its array: reading it would kill the process."""
    whole = X
    while isinstance(whole, np.ndarray) and isinstance(whole.base, np.ndarray):
        whole = whole.base  # X is a view
    if not isinstance(whole, np.memmap) or not isinstance(whole.base, mmap.mmap):
        return
    have, need = whole.base.size(), whole.offset + whole.nbytes
    if have < need:
        raise ValueError(
            f"the file {os.fspath(whole.filename or 'of X')!r} has {have:,} bytes, but an array of shape {whole.shape} and "
            f"type {whole.dtype} in it takes {need:,}; it was cut short. Copy or write it again"
        )
