"""Homes of rows by the name of a device. A new home is one file and one line in `HOMES`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..kernels import Array, Kernel, Matrix
from .array import ArrayRows, OnDevice, on_device
from .backends import Backend, has_torch_device, open_cupy, open_strict, open_torch
from .host import HostRows
from .precision import FLOAT32_ERROR, USUAL, Precision
from .protocol import Meter, Rows
from .threads import thread_count


def _on_host(device: str) -> Callable[..., Rows]:
    if device != "cpu":
        raise _unknown(device)
    return HostRows


def _on_device(opened: Callable[[str], Backend]) -> Callable[[str], Callable[..., Rows]]:
    return lambda device: partial(ArrayRows, opened(device))


#: from the first part of a device's name to a function that opens its array library
BACKENDS: dict[str, Callable[[str], Backend]] = {
    "cuda": open_torch,
    "mps": open_torch,
    "torch": open_torch,
    "cupy": open_cupy,
    "array_api_strict": open_strict,
}
#: from the first part of a device's name to a function of the whole name, which returns the class of rows there
HOMES: dict[str, Callable[[str], Callable[..., Rows]]] = {"cpu": _on_host} | {
    kind: _on_device(opened) for kind, opened in BACKENDS.items()
}
#: multiply-adds of the kernel matrix of a problem's rows, for each thread of the host, from which on "auto" takes a GPU: a
#: fit there takes about 0.08 s of calls, in which a host thread solves problems of this size. More: the host more often
WORTH_GPU = 1 << 34
#: libraries whose arrays may be on a device
DEVICE_LIBRARIES = ("torch", "cupy", "array_api_strict")


def is_device_array(X: Any) -> bool:
    """Return whether X is an array of a library with devices, such as a torch tensor."""
    return type(X).__module__.partition(".")[0] in DEVICE_LIBRARIES


def open_backend(device: str) -> Backend | None:
    """Return the array library of a device; None for homes without one."""
    device = resolve_device(device)
    opened = BACKENDS.get(device.partition(":")[0])
    return None if opened is None else opened(device)


def rows_on_device(X: Any, device: str) -> OnDevice:
    """Return a device's array as rows, on the device of that name; X is copied only if it is on another device."""
    backend = open_backend(device)
    if backend is None:
        raise ValueError(
            f"X is an array of {type(X).__module__.partition('.')[0]}, but device={device!r} takes host arrays; use "
            "device='cuda', or give X as a NumPy array"
        )
    return on_device(backend, X)


def _unknown(device: Any) -> ValueError:
    return ValueError(
        f"unknown device {device!r}; there are 'cpu' (compiled, the default), 'cuda' or 'cuda:1' (a GPU by torch), 'mps' "
        "(an Apple GPU), 'auto' (a GPU if there is one and the work is large enough, else cpu), 'torch:cpu', 'cupy', and "
        "'array_api_strict' for tests"
    )


def resolve_device(device: str) -> str:
    """Return the name of a device; "auto" is the first of cuda, mps and cpu that there is, for any work."""
    if not isinstance(device, str) or (device != "auto" and device.partition(":")[0] not in HOMES):
        raise _unknown(device)
    if device != "auto":
        return device
    return next((kind for kind in ("cuda", "mps") if has_torch_device(kind)), "cpu")


def faster_device(device: str, rows: int, features: int) -> str:
    """Return the name of a device; "auto" is a GPU where a problem of so many rows and features is large enough for it."""
    found = resolve_device(device)
    if device != "auto" or found == "cpu" or rows * rows * features >= WORTH_GPU * thread_count():
        return found
    return "cpu"


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
    precision: Precision = USUAL,
) -> Rows:
    """Return rows on a device: those of X with the numbers `index`, all by default.

    `error` is the allowed error of a kernel value, `cache_mb` the memory for kernel rows, `ids` the numbers of the rows in
    the training set (0, 1, ... by default). `precision` says when kernel values are float32.
    """
    device = resolve_device(device)
    home = HOMES[device.partition(":")[0]](device)
    return home(kernel, X, meter, cache_mb, error, ids, index=index, precision=precision)
