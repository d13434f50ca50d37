"""Where rows can live: the device by its name."""

from __future__ import annotations

from ..kernels import Array, Kernel, Matrix
from .host import HostRows
from .precision import FLOAT32_ERROR
from .protocol import Meter, Rows


def open_rows(
    kernel: Kernel,
    X: Matrix,
    *,
    device: str = "cpu",
    meter: Meter | None = None,
    cache_mb: float = 512.0,
    error: float = FLOAT32_ERROR,
    ids: Array | None = None,
    index: Array | None = None,
) -> Rows:
    """Return rows in the home of a device; `index` picks some of X."""
    if device != "cpu":
        raise ValueError(f"unknown device {device!r}; there is 'cpu'")
    return HostRows(kernel, X, meter, cache_mb, error, ids, index=index)
